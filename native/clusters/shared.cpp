// Rows that come in groups: visiting them in turn, and the clusters that each group holds.
#include <cmath>

#include "border.h"
#include "segments.h"

namespace {

using Pair = std::tuple<double, double>;

template <class I> void arrange(Rows order, Vec<const I> bins, Rows start, Vec<i64> out) {
    const i64 n_bins = start.n - 1;
    const Room<i64> place(n_bins);
    for (i64 b = 0; b < n_bins; ++b) place[b] = start[b];
    for (const i64 row : order) {
        const i64 b = bins[row];
        require(0 <= b && b < n_bins && 0 <= place[b] && place[b] < out.n, "start does not fit the bins");
        out[place[b]++] = row;
    }
}

void find_slots(Rows rows, Rows row_start, Labels labels, Rows start, Labels member, Vec<i64> place, Vec<i64> slot) {
    require_edges(row_start, rows.n, "row_start must rise, and end within rows");
    require_edges(start, member.n, "start must rise, and end within member");
    for (i64 g = 0; g + 1 < start.n; ++g) {
        for (i64 t = start[g]; t < start[g + 1]; ++t) place[member[t]] = t;
        for (i64 q = row_start[g]; q < row_start[g + 1]; ++q) {
            const i32 label = labels[rows[q]];
            slot[q] = label >= 0 ? place[label] : -1;
        }
        for (i64 t = start[g]; t < start[g + 1]; ++t) place[member[t]] = -1;
    }
}

// What a cluster costs a row: more if its group does not hold it.
KF_INLINE double penalised(double cost, double unit, bool held, double local) {
    const double value = unit * cost;
    return held ? value : value + local;
}

i64 may_open(MatIn cost, In slack, In unit, In alone, Rows group, Mat<const bool> held, Pair lam, Vec<i64> rows) {
    const auto [local, top] = lam;
    i64 count = 0;
    for (i64 r = 0; r < cost.n; ++r) {
        const bool* mine = held[group[r]];
        const double limit = local + top + alone[r] - slack[r];
        i64 k = 0;
        while (k < cost.p && !(penalised(cost(r, k), unit[r], mine[k], local) < limit)) ++k;
        if (k == cost.p) rows[count++] = r;
    }
    return count;
}

i64 visit_rows(i64 first, MatIn cost, In slack, In unit, In alone, Rows group, Rows column, Pair lam, Vec<i64> room,
               Vec<bool> known, Mat<bool> held, Vec<i32> labels, Vec<bool> grew) {
    require(first >= 0 && cost.p > 0, "first must not be negative, and there must be a cluster");
    const auto [local, top] = lam;
    const i64 K = cost.p;
    for (i64 r = first; r < cost.n; ++r) {
        bool* mine = held[group[r]];
        double best = INF, second = INF;
        i64 arg = 0;
        for (i64 k = 0; k < K; ++k) {
            if (!known[k]) continue;
            const double value = penalised(cost(r, k), unit[r], mine[k], local);
            if (!(value < second)) continue;
            if (value < best) second = best, best = value, arg = k;
            else second = value;
        }
        const double threshold = local + top + alone[r];
        if (slack[r] > 0 && !(second - best > 2 * slack[r] && std::fabs(best - threshold) > slack[r])) return r;
        if (best > threshold && room[0] > 0) {
            arg = column[r];
            known[arg < 0 ? K - 1 : arg] = true;
            room[0] -= 1;
        }
        const i64 at = arg < 0 ? K - 1 : arg;  // as the twin has it: -1 counts from the end
        labels[r] = i32(arg);
        grew[r] = !mine[at];
        mine[at] = true;
    }
    return cost.n;
}

void share_gains(MatIn cost, In weight, Rows group, Mat<const bool> held, MatOut add, MatOut drop, Vec<i32> labels) {
    const i64 K = cost.p;
    // What is added to costs so that clusters do not count that the group holds, and that it does not hold: loops
    // over numbers are done several at a time, those that ask flags are not.
    std::vector<double> if_held(std::size_t(held.n * K)), if_not(std::size_t(held.n * K));
    for (i64 at = 0; at < held.n * K; ++at) (held[0][at] ? if_not : if_held)[std::size_t(at)] = INF;
    for (i64 r = 0; r < cost.n; ++r) {
        const i64 g = group[r];
        const double* __restrict mine = cost[r], w = weight[r];
        const double* __restrict own = if_held.data() + g * K;
        const double* __restrict others = if_not.data() + g * K;
        double best = INF, second = INF;
        i64 arg = -1;
        for (i64 k = 0; k < K; ++k) {
            const double value = mine[k] + own[k];
            if (!(value < second)) continue;
            if (value < best) second = best, best = value, arg = k;
            else second = value;
        }
        labels[r] = i32(arg);
        double* __restrict gains = add[g];
        for (i64 k = 0; k < K; ++k) {
            const double gain = best - (mine[k] + others[k]);
            gains[k] += w * (gain > 0.0 ? gain : 0.0);
        }
        if (arg >= 0) drop(g, arg) += w * (second - best);
    }
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<arrange<i32>, arrange<i64>>("arrange(order[n]<N, bins[N], start[J+1], out[n])"),
    border::kernel<find_slots>(
        "find_slots(rows[n]<N, row_start[J+1], labels[N]<K|-1, start[J+1], member[T]<K, place[K], slot[n])"),
    border::kernel<may_open>(
        "may_open(cost[n,K], slack[n], unit[n], alone[n], group[n]<G, held[G,K], lam(local, top), rows[n..])"),
    border::kernel<share_gains>(
        "share_gains(cost[n,K], weight[n], group[n]<G, held[G,K], add[G,K], drop[G,K], labels[n])"),
    border::kernel<visit_rows>(
        "visit_rows(first, cost[n,K], slack[n], unit[n], alone[n], group[n]<G, column[n]<K|-1, lam(local, top), "
        "room[1], known[K], held[G,K], labels[n], grew[n])"),
};
static const border::Publish publish(kernels);
