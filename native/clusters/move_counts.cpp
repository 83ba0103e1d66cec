// Rows of counts that move between clusters one at a time; see the reference for the formulas.
#include "border.h"
#include "clusters/moving.h"
#include "rows/entries.h"

namespace {

// h(y + d) - h(y) with h(y) = y log y, for d > 0.
KF_INLINE double grown(double y, double d) {
    return y > 0.0 ? y * std::log1p(d / y) + d * std::log(y + d) : d * std::log(d);
}

// The entries of a row, which weighs w and sums to s.
struct Row {
    const double* data;
    const i32* indices;
    i64 n;
    double factor, w, s;
    KF_INLINE double entry(i64 q) const { return data[q] * factor; }
};

// What a cluster of this size and mass costs more with the row, up to what is the same for all clusters; `sum_of`
// gives its sum at an entry.
template <class SumOf> KF_INLINE double joined(const Row& row, double size, double mass, SumOf sum_of) {
    double rise = size * std::log1p(row.w / mass) + row.s * std::log(mass + row.w);
    for (i64 q = 0; q < row.n; ++q)
        if (row.data[q] > 0.0) rise -= grown(sum_of(q), row.entry(q));
    return rise;
}

// What the row costs as a cluster of its own, likewise.
double cost_alone(const Row& row, In pseudo, double eta, double size) {
    double cost = (size + row.s) * std::log(eta + row.w) - (eta > 0.0 ? size * std::log(eta) : 0.0);
    for (i64 q = 0; q < row.n; ++q)
        if (row.data[q] > 0.0) cost -= grown(pseudo[row.indices[q]], row.entry(q));
    return cost;
}

std::tuple<i64, double> move_counts(In data, Vec<const i32> indices, Rows indptr, In scale, In weight, Rows order,
                                    In pseudo, double eta, double lam, double gain, double tiny, double most,
                                    MatOut sums, Out size, Out mass, Vec<i64> count, Vec<i32> labels) {
    const i64 K = count.n;
    double moved = 0.0, nothing = 0.0;
    for (const double value : pseudo) nothing += value;
    i64 held = count_held(count);
    for (i64 t = 0; t < order.n; ++t) {
        const i64 i = order[t], a = labels[i];
        const auto [first, last] = Entries(indptr, indices, i, sums.n);
        const double w = weight[i];
        Row row{data.data + first, indices.data + first, last - first, w * (scale.n ? scale[i] : 1.0), w, 0.0};
        for (i64 q = 0; q < row.n; ++q) row.s += row.entry(q);
        const double alone = cost_alone(row, pseudo, eta, nothing);
        double home = lam;
        if (count[a] > 1) {
            const auto without = [&](i64 q) { return less(sums(row.indices[q], a), row.entry(q), tiny); };
            home = joined(row, larger(size[a] - row.s, 0.0), lighter_by(w, mass[a]), without) - alone;
        }
        i64 best = -1;
        double least = INF;
        for (i64 k = 0; k < K; ++k) {
            if (k == a || count[k] <= 0) continue;
            const auto sum_of = [&](i64 q) { return sums(row.indices[q], k); };
            const double rise = joined(row, size[k], mass[k], sum_of) - alone;
            if (rise < least) best = k, least = rise;
        }
        best = destination(home, best, least, lam, gain, double(held) < most, count);
        if (best < 0) continue;
        if (best == K) return {t, moved};
        count[a] -= 1;
        for (i64 q = 0; q < row.n; ++q) sums(row.indices[q], a) = less(sums(row.indices[q], a), row.entry(q), tiny);
        size[a] = larger(size[a] - row.s, 0.0), mass[a] = lighter_by(w, mass[a]);
        if (count[a] == 0) {  // exactly empty: no rounding may be left behind
            for (i64 j = 0; j < pseudo.n; ++j) sums(j, a) = pseudo[j];
            size[a] = nothing, mass[a] = eta;
            --held;
        }
        held += count[best] == 0;
        for (i64 q = 0; q < row.n; ++q) sums(row.indices[q], best) += row.entry(q);
        size[best] += row.s, mass[best] += w, count[best] += 1, labels[i] = i32(best);
        moved += w;
    }
    return {order.n, moved};
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<move_counts>(
        "move_counts(data[z], indices[z], indptr[n+1], scale[n]?, weight[n], order[m]<n, pseudo[p], eta, lam, gain, "
        "tiny, most, sums[p,K], size[K], mass[K], count[K], labels[n]<K)"),
};
static const border::Publish publish(kernels);
