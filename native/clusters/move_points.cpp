// Rows that move between clusters one at a time by squared distance; see the reference for the formulas.
#include "border.h"
#include "clusters/moving.h"

namespace {

// The clusters: a column for each.
struct Clusters {
    MatOut sums, mean;
    Out mass;
    Vec<i64> count;
};

// What the cluster that holds a row costs more with it than without.
double cost_at_home(In x, double w, const Clusters& clusters, i64 a, double tiny) {
    const double lighter = lighter_by(w, clusters.mass[a]);
    double square = 0.0;
    for (i64 j = 0; j < x.n; ++j) {
        const double gap = less(clusters.sums(j, a), w * x[j], tiny) / lighter - x[j];
        square += gap * gap;
    }
    return lighter * w / (lighter + w) * square;
}

// Squared distances from all centres; columns outside, so that the centres are taken several at a time.
void squares_of(In x, MatIn mean, double* __restrict squares) {
    for (i64 k = 0; k < mean.p; ++k) squares[k] = 0.0;
    for (i64 j = 0; j < x.n; ++j) {
        const double* __restrict centre = mean[j];
        const double at = x[j];
        for (i64 k = 0; k < mean.p; ++k) squares[k] += (centre[k] - at) * (centre[k] - at);
    }
}

// Take a row out of cluster `a`; whether that is empty now.
bool take_out(In x, double w, const Clusters& clusters, i64 a, In pseudo, double eta, double tiny) {
    const auto& [sums, mean, mass, count] = clusters;
    count[a] -= 1;
    mass[a] = lighter_by(w, mass[a]);
    for (i64 j = 0; j < x.n; ++j) sums(j, a) = less(sums(j, a), w * x[j], tiny);
    if (count[a] == 0) {  // exactly empty: no rounding may be left behind
        for (i64 j = 0; j < x.n; ++j) sums(j, a) = pseudo[j];
        mass[a] = eta;
        return true;
    }
    for (i64 j = 0; j < x.n; ++j) mean(j, a) = sums(j, a) / mass[a];
    return false;
}

void put_in(In x, double w, const Clusters& clusters, i64 k) {
    const auto& [sums, mean, mass, count] = clusters;
    count[k] += 1;
    mass[k] += w;
    for (i64 j = 0; j < x.n; ++j) {
        sums(j, k) += w * x[j];
        mean(j, k) = sums(j, k) / mass[k];
    }
}

std::tuple<i64, double> move_points(MatIn x, In weight, Rows rows, double factor, In pseudo, double eta, double lam,
                                    double gain, double tiny, double most, MatOut sums, MatOut mean, Out mass,
                                    Vec<i64> count, Vec<i32> labels) {
    const i64 K = count.n;
    const Clusters clusters{sums, mean, mass, count};
    const Room<double> squares(K);
    double moved = 0.0;
    i64 held = count_held(count);
    for (i64 t = 0; t < x.n; ++t) {
        const In row = x.row(t);
        const double w = weight[t];
        const i64 a = labels[rows[t]];
        require(0 <= a && a < K, "labels of the rows must be below the number of clusters");
        double alone = 0.0;
        if (eta > 0.0) {
            for (i64 j = 0; j < x.p; ++j) {
                const double gap = pseudo[j] / eta - row[j];
                alone += gap * gap;
            }
            alone *= eta * w / (eta + w);
        }
        const double home = count[a] > 1 ? factor * (cost_at_home(row, w, clusters, a, tiny) - alone) : lam;
        squares_of(row, mean, squares.data);
        i64 best = -1;
        double least = INF;
        for (i64 k = 0; k < K; ++k) {
            if (k == a || count[k] <= 0) continue;
            const double rise = factor * (mass[k] * w / (mass[k] + w) * squares[k] - alone);
            if (rise < least) best = k, least = rise;
        }
        best = destination(home, best, least, lam, gain, double(held) < most, count);
        if (best < 0) continue;
        if (best == K) return {t, moved};
        held -= take_out(row, w, clusters, a, pseudo, eta, tiny);
        held += count[best] == 0;
        put_in(row, w, clusters, best);
        labels[rows[t]] = i32(best);
        moved += w;
    }
    return {x.n, moved};
}

}  // namespace

static const border::Kernel kernels[] = {
    // not labels[n]<K: a call is for a few of many rows
    border::kernel<move_points>(
        "move_points(x[m,p], weight[m], rows[m]<n, factor, pseudo[p], eta, lam, gain, tiny, most, sums[p,K], "
        "mean[p,K], mass[K], count[K], labels[n])"),
};
static const border::Publish publish(kernels);
