#include "clusters/bounds.h"

#include "border.h"

namespace {

i64 list_open(i64 n, const double* least, const double* second, const double* slack, i64* rows) {
    i64 count = 0;
    for (i64 i = 0; i < n; ++i)
        if (!(second[i] - least[i] > 2 * slack[i])) rows[count++] = i;
    return count;
}

KF_INLINE double from_threshold(i64 i, In cost, In unit, In alone, double lam) {
    double excess = cost[i];
    if (unit.n) excess = unit[i] > 0 ? excess * unit[i] : 0.0;
    if (alone.n) excess -= alone[i];
    return std::fabs(excess - lam);
}

}  // namespace

i64 open_alike(double columns, i64 n, const double* __restrict base, const Weighing& how, double* __restrict least,
               double* __restrict second, double* __restrict slack, i64* rows) {
    const Weighing weigh = how;  // a copy, which nothing that is written can be: else there is no vector code
    i64 count = 0;
    for (i64 i = 0; i < n; ++i) count += weigh(columns, base[i], least[i], second[i], slack[i]);
    return count ? list_open(n, least, second, slack, rows) : 0;
}

static i64 open_decisions(In base, Rows terms, Three norms, double size, Three limits, Out least, Out second, Out slack,
                          Vec<i64> rows) {
    require(terms.n == 1 || terms.n == base.n, "terms must have one entry, or one for each row");
    const Weighing weigh(limits, norms, size);
    if (terms.n == 1)
        return open_alike(double(terms[0]), base.n, base.data, weigh, least.data, second.data, slack.data, rows.data);
    i64 count = 0;
    for (i64 i = 0; i < base.n; ++i) count += weigh(double(terms[i]), base[i], least[i], second[i], slack[i]);
    return count ? list_open(base.n, least.data, second.data, slack.data, rows.data) : 0;
}

i64 unsettled(In cost, In base, double size, In low, Vec<i64> rows) {
    i64 count = 0;
    for (i64 i = 0; i < cost.n; ++i)
        if (!(cost[i] + 1e-12 * (base[i] + size) < low[i])) rows[count++] = i;
    return count;
}

static void lower_bounds(Labels labels, In fall, Out low) {
    for (i64 i = 0; i < labels.n; ++i) low[i] = labels[i] < fall.n ? low[i] + fall[labels[i]] : -INF;
}

static void least_changes(MatIn drop, In lift, In length, In radius, i64 start, Out fall) {
    require(start >= 0 && start + drop.n <= fall.n, "start is beyond the clusters");
    for (i64 a = 0; a < drop.n; ++a) {
        double least = INF;
        for (i64 k = 0; k < drop.p; ++k) {
            const double spread = radius[start + a] * length[k];
            double change = lift[k] - drop[a][k] - spread;
            change -= 1e-12 * (std::fabs(lift[k]) + std::fabs(drop[a][k]) + spread);
            if (k != start + a && !(change >= least))
                least = change == change ? change : -INF;  // NaN: nothing is known
        }
        fall[start + a] = least < INF ? least : -INF;
    }
}

static void relabel(Labels rank, Vec<i32> labels) {
    for (i64 i = 0; i < labels.n; ++i) labels[i] = rank[labels[i]];
}

i64 count_near(In cost, In unit, In alone, In base, double size, double lam) {
    i64 count = 0;
    if (!unit.n && !alone.n) {  // becomes vector code
        for (i64 i = 0; i < cost.n; ++i) count += std::fabs(cost[i] - lam) <= 1e-10 * (base[i] + lam + size);
        return count;
    }
    for (i64 i = 0; i < cost.n; ++i)
        count += from_threshold(i, cost, unit, alone, lam) <= 1e-10 * (base[i] + lam + size);
    return count;
}

i64 near_threshold(In cost, In unit, In alone, In base, double size, double lam, Vec<i64> rows) {
    if (!count_near(cost, unit, alone, base, size, lam)) return 0;  // nearly always
    i64 count = 0;
    for (i64 i = 0; i < cost.n; ++i)
        if (from_threshold(i, cost, unit, alone, lam) <= 1e-10 * (base[i] + lam + size)) rows[count++] = i;
    return count;
}

static const border::Kernel kernels[] = {
    border::kernel<least_changes>("least_changes(drop[a,K], lift[K], length[K], radius[K], start, fall[K])"),
    border::kernel<lower_bounds>("lower_bounds(labels[n], fall[K], low[n])"),
    border::kernel<near_threshold>("near_threshold(cost[n], unit[n]?, alone[n]?, base[n], size, lam, rows[n..])"),
    border::kernel<open_decisions>(
        "open_decisions(base[n], terms[*], norms(per_root, at_anchor, reach), size, limits(eps, tiny, largest), "
        "least[n], second[n], slack[n], rows[n..])"),
    border::kernel<relabel>("relabel(rank[K], labels[n]<K)"),
    border::kernel<unsettled>("unsettled(cost[n], base[n], size, low[n], rows[n..])"),
};
static const border::Publish publish(kernels);
