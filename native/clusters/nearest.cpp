#include "clusters/nearest.h"

#include <cmath>

#include "border.h"
#include "rows/entries.h"
#include "simd/wide_rows.h"

template <class R>
void nearest_packed(const R* tiles, const Panels<R>& centres, i64 n, i32* labels, double* least, double* second) {
    constexpr i64 L = LANES<R>;
    const i64 whole = n - n % L;
    for (i64 t = 0; t < whole; t += L) two_least(tiles + t * centres.p, centres, labels + t, least + t, second + t);
    if (whole == n) return;
    i32 last[L];
    double low[L], low2[L];
    two_least(tiles + whole * centres.p, centres, last, low, low2);
    for (i64 t = whole; t < n; ++t) labels[t] = last[t - whole], least[t] = low[t - whole], second[t] = low2[t - whole];
}
template void nearest_packed(const float*, const Panels<float>&, i64, i32*, double*, double*);
template void nearest_packed(const double*, const Panels<double>&, i64, i32*, double*, double*);

namespace {

// Bounds on the products of packed rows with coefficients of this reach: two forms of Hölder's inequality.
template <class R> void magnitudes(const R* tiles, i64 p, In reach, Out slack) {
    using V = Lanes<double, WIDE_BYTES>;
    constexpr int L = LANES<R>, W = WIDE_BYTES / 8;
    const double longest = reach[0], largest = reach[1];
    for (i64 start = 0; start < slack.n; start += L) {
        double one_norm[L], two_norm[L];
        const R* tile = tiles + start * p;
        for (i64 r = 0; r < L; r += W) {
            V one{}, two{};
            for (i64 j = 0; j < p; ++j) {
                const V value = widened<R, W>(tile + j * L + r);  // its square may leave the range of float32
                one += value < 0 ? -value : value;
                two += value * value;
            }
            store(one_norm + r, one), store(two_norm + r, two);
        }
        for (i64 r = 0; r < L; ++r) two_norm[r] = smaller(std::sqrt(two_norm[r]) * longest, one_norm[r] * largest);
        for (i64 r = 0; r < smaller(i64(L), slack.n - start); ++r) slack[start + r] = two_norm[r];
    }
}

template <class T, class R> void nearest_dense(Mat<const T> X, Rows rows, In shift, In scale, Mat<const R> coef,
                                               Vec<const R> offset, In reach, Vec<i32> labels, Out least, Out second,
                                               Out slack) {
    const Panels<R> centres(coef, offset);
    const Room<R> tiles(ROWS_OF_RUN<R> * X.p, R(0));  // zeros, as lanes may stay unused
    const bool bounded = reach[0] > 0 || reach[1] > 0;
    for (i64 start = 0; start < rows.n; start += ROWS_OF_RUN<R>) {
        const i64 m = smaller(ROWS_OF_RUN<R>, rows.n - start);
        pack(X, rows.data + start, m, shift, scale, tiles.data);
        nearest_packed(tiles.data, centres, m, labels.data + start, least.data + start, second.data + start);
        const Out part = slack.part(start, start + m);
        if (bounded) magnitudes(tiles.data, X.p, reach, part);
        else
            for (double& value : part) value = 0.0;
    }
}

// Bytes of centres that one pass over a sparse row keeps in registers; theirs are a multiple of it.
constexpr int STRIP = 256;

// The two least of all lanes.
template <class R> KF_INLINE void over_lanes(const TwoLeast<R>& seen, i32& label, double& least, double& second) {
    constexpr int L = WIDTH / int(sizeof(R));
    R best[L], next[L], low = std::numeric_limits<R>::infinity(), low2 = low;
    std::conditional_t<sizeof(R) == 4, i32, i64> index[L], arg = 0;
    store(best, seen.best), store(next, seen.next), store(index, seen.index);
    for (int r = 0; r < L; ++r) {
        const bool first = best[r] < low || (best[r] == low && index[r] < arg);
        const R loser = first ? low : best[r];
        low = first ? best[r] : low, arg = first ? index[r] : arg;
        low2 = loser < low2 ? loser : low2, low2 = next[r] < low2 ? next[r] : low2;
    }
    label = i32(arg), least = low, second = low2;
}

template <class T, class R> void nearest_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows,
                                             In scale, Mat<const R> coef_t, Vec<const R> offset, In reach,
                                             Vec<i32> labels, Out least, Out second, Out slack) {
    using V = Lanes<R>;
    using Index = typename TwoLeast<R>::Index;
    constexpr int L = WIDTH / int(sizeof(R)), N = STRIP / WIDTH, S = STRIP / int(sizeof(R));
    require(offset.n % S == 0, "centres must be padded to a multiple of 256 bytes");
    const bool bounded = reach[0] > 0 || reach[1] > 0;
    Index first_lanes;
    for (int r = 0; r < L; ++r) first_lanes[r] = r;
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t];
        const auto [first, last] = Entries(indptr, indices, i, coef_t.n);
        const double factor = scale.n ? scale[i] : 1.0;
        TwoLeast<R> seen;
        Index mine = first_lanes;
        for (i64 centre = 0; centre < offset.n; centre += S) {
            V total[N];
            for (int v = 0; v < N; ++v) total[v] = load<V>(offset.data + centre + v * L);
            for (i64 q = first; q < last; ++q) {
                const V x = splat<V>(R(double(data[q]) * factor));
                const R* line = coef_t[indices[q]] + centre;
                for (int v = 0; v < N; ++v) total[v] -= x * load<V>(line + v * L);
            }
            for (int v = 0; v < N; ++v, mine += L) seen.see(total[v], mine);
        }
        over_lanes(seen, labels[t], least[t], second[t]);
        slack[t] = 0.0;
        if (!bounded) continue;
        double one_norm = 0.0, two_norm = 0.0;
        for (i64 q = first; q < last; ++q) {
            const double value = data[q] * factor;
            one_norm += std::fabs(value);
            two_norm += value * value;
        }
        slack[t] = smaller(std::sqrt(two_norm) * reach[0], one_norm * reach[1]);
    }
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<nearest_csr<double, double>, nearest_csr<double, float>, nearest_csr<float, float>,
                   nearest_csr<float, double>>(
        "nearest_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, coef_t[p,K], offset[K], reach[2], "
        "labels[n], least[n], second[n], slack[n])"),
    border::kernel<nearest_dense<double, double>, nearest_dense<double, float>, nearest_dense<float, float>,
                   nearest_dense<float, double>>(
        "nearest_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, coef[K,p], offset[K], reach[2], labels[n], least[n], "
        "second[n], slack[n])"),
};
static const border::Publish publish(kernels);
