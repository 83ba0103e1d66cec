#include "topics/powers.h"

#include "border.h"

namespace {

using corpus::Sixteen;

// Fills out = (counts * factor + own * column) ** power, and returns the sum of logarithms without the power.
template <bool PLAIN> float power_of_row(const float* counts, const float* factor, float own, const float* column,
                                         float power, i64 width, float* out) {
    Sixteen total{};
    for (i64 p = 0; p < width; p += 16) {
        const Sixteen value = own * Sixteen::at(column + p) + Sixteen::at(counts + p) * Sixteen::at(factor + p);
        const auto there = value > 0.0f;
        const Sixteen logs = corpus::log_of(value), none{};
        const Sixteen result = PLAIN ? value : corpus::exp_of(logs * power);
        choose(there, result, none).put(out + p);
        total += choose(there, logs, none);
    }
    return sum_of_lanes(total);
}

template <bool PLAIN> void raise_all(Mat<const float> counts, i64 first, i64 last, Vec<const float> factor,
                                     Vec<const float> own, Vec<const float> column, float power, Mat<float> out,
                                     Out logs) {
    for (i64 i = first; i < last; ++i)
        logs[i] = power_of_row<PLAIN>(counts[i], factor.data, own[i], column.data, power, counts.p, out[i]);
}

}  // namespace

static void raise_rows(Mat<const float> counts, i64 first, i64 last, Vec<const float> factor, Vec<const float> own,
                       Vec<const float> column, double power, Mat<float> out, Out logs) {
    corpus::require_padding(counts);
    require(0 <= first && first <= last && last <= counts.n, "first and last are beyond the counts");
    const auto raise = power == 1.0 ? raise_all<true> : raise_all<false>;
    raise(counts, first, last, factor, own, column, float(power), out, logs);
}

static const border::Kernel kernels[] = {
    border::kernel<raise_rows>(
        "raise_rows(counts[n,p], first, last, factor[p], own[n], column[p], power, out[n,p], logs[n])"),
};
static const border::Publish publish(kernels);
