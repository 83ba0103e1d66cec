#include <cmath>

#include "border.h"
#include "mixtures/blocks.h"

namespace {

// Sums of exponentials beside the largest.
void add_up(const RowBlock& block, double* total) {
    const double* top = block.top();
    for (int i = 0; i < ABREAST; ++i) total[i] = 0.0;
    for (i64 k = 0; k < block.size(); ++k) {
        if (!block.is_alive(k)) continue;
        const double* scores = block.scores(k);
        for (int i = 0; i < ABREAST; ++i) {
            const double beside = scores[i] - top[i];
            if (beside == 0.0) total[i] += 1.0;
            else if (beside > NEGLIGIBLE) total[i] += std::exp(beside);
        }
    }
}

// The likeliest component but the last for each row.
void find_likeliest(const RowBlock& block, i64* __restrict likeliest) {
    double best[ABREAST];
    for (int i = 0; i < ABREAST; ++i) best[i] = -INF, likeliest[i] = 0;
    for (i64 k = 0; k < block.size() - 1; ++k) {
        if (!block.is_alive(k)) continue;
        const double* __restrict scores = block.scores(k);
        for (int i = 0; i < ABREAST; ++i) {
            likeliest[i] = scores[i] > best[i] ? k : likeliest[i];
            best[i] = scores[i] > best[i] ? scores[i] : best[i];
        }
    }
}

// Nodes by the component with the largest share, the last left out: one component after the other.
void order_nodes(MatIn share, Vec<i64> likeliest, Vec<i64> order) {
    const Room<i64> start(larger(share.n, i64(1)) + 1, 0);
    for (i64 t = 0; t < share.p; ++t) {
        i64 best = 0;
        for (i64 k = 1; k < share.n - 1; ++k)
            if (share(k, t) > share(best, t)) best = k;
        likeliest[t] = best;
        ++start[best + 1];
    }
    for (i64 k = 1; k < start.n; ++k) start[k] += start[k - 1];
    for (i64 t = 0; t < share.p; ++t) order[start[likeliest[t]]++] = t;
}

}  // namespace

static void assign_rows(MatIn rows, Cube<const double> lower, MatIn centre, In height, Vec<i64> labels, Out lse) {
    const i64 K = height.n;
    require(K > 0, "there are no components");
    RowBlock block(lower, centre, height);
    const Room<bool> wanted(K, false);
    double total[ABREAST];
    i64 likeliest[ABREAST] = {}, before = -1;
    for (i64 start = 0; start < rows.n; start += ABREAST) {
        const i64 m = smaller(i64(ABREAST), rows.n - start), first = likeliest[m - 1];  // neighbours may be alike
        block.load(rows, start, rows.n);
        if (first == before && first != block.pointed()) block.point_from(first);
        before = first;
        block.score_all(first, wanted.data);
        find_likeliest(block, likeliest);
        add_up(block, total);
        for (i64 i = 0; i < m; ++i) {
            labels[start + i] = likeliest[i];
            lse[start + i] = block.top()[i] + (total[i] != 1.0 ? std::log(total[i]) : 0.0);
        }
    }
}

static void gains_apart(MatIn rows, In n, Rows first, Cube<const double> lower, MatIn centre, In height, MatIn share,
                        Out gains) {
    const i64 K = height.n, nodes = gains.n;
    require(K > 0, "there are no components");
    require(first[0] >= 0 && first[nodes] <= rows.n, "first must be from 0 to the number of rows");
    for (i64 t = 0; t < nodes; ++t) require(first[t] <= first[t + 1], "first must not fall");
    RowBlock block(lower, centre, height);
    const Room<bool> wanted(K);
    const Room<i64> likeliest(nodes), order(nodes);
    order_nodes(share, likeliest, order);
    double total[ABREAST];
    for (const i64 t : order) {
        double constant = 0.0, value = 0.0, weight = 0.0;
        for (i64 k = 0; k < K; ++k) {
            wanted[k] = share(k, t) > 0.0;
            if (wanted[k]) constant += share(k, t) * std::log(share(k, t));
        }
        const i64 known = likeliest[t];
        if (known != block.pointed()) block.point_from(known);
        for (i64 start = first[t]; start < first[t + 1]; start += ABREAST) {
            block.load(rows, start, first[t + 1]);
            block.score_all(known, wanted.data);
            add_up(block, total);
            for (i64 i = 0; i < smaller(i64(ABREAST), first[t + 1] - start); ++i) {
                double gain = block.top()[i] + std::log(total[i]) + constant;
                for (i64 k = 0; k < K; ++k)
                    if (wanted[k]) gain -= share(k, t) * block.scores(k)[i];
                value += n[start + i] * gain;
                weight += n[start + i];
            }
        }
        gains[t] = value / weight;
    }
}

static const border::Kernel kernels[] = {
    border::kernel<assign_rows>("assign_rows(rows[n,D], lower[K,D,D], centre[K,D], height[K], labels[n], lse[n])"),
    border::kernel<gains_apart>(
        "gains_apart(rows[N,D], n[N], first[T+1], lower[K,D,D], centre[K,D], height[K], share[K,T], gains[T])"),
};
static const border::Publish publish(kernels);
