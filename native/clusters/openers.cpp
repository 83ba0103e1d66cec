// The row of each cluster that would open one of its own first.
#include "border.h"

static void farthest(In cost, In unit, In alone, double lam, Labels labels, Vec<const u64> hashes, Vec<i64> rows,
                     Out excess) {
    for (i64 i = 0; i < cost.n; ++i) {
        const i64 k = labels[i];
        double e = cost[i];
        if (unit.n) e = unit[i] > 0 ? e * unit[i] : 0.0;
        if (alone.n) e -= alone[i];
        e -= lam;
        if (e > excess[k] || (e == excess[k] && rows[k] >= 0 && hashes[i] < hashes[rows[k]]))
            excess[k] = e, rows[k] = i;
    }
}

static const border::Kernel kernels[] = {
    border::kernel<farthest>(
        "farthest(cost[n], unit[n]?, alone[n]?, lam, labels[n]<K, hashes[n], rows[K]<n|-1, excess[K])"),
};
static const border::Publish publish(kernels);
