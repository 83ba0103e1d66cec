#include <cmath>

#include "border.h"
#include "mixtures/softening.h"
#include "simd/vectors.h"

namespace {

typedef Lanes<double> V;
constexpr i64 W = WIDTH / 8;
constexpr int ROWS = 4;  // that share one load of a strip

}  // namespace

static void subtract_squares(MatIn products, MatIn shift, i64 first, MatOut scores) {
    const i64 D = shift.n, K = shift.p;
    require(products.p == D * K, "products must have a column for each entry of shift");
    require(first >= 0 && first <= scores.p - K, "first is beyond the components");
    const Room<double> room(K);
    double* __restrict total = room.data;
    for (i64 i = 0; i < products.n; ++i) {
        for (i64 k = 0; k < K; ++k) total[k] = 0.0;
        for (i64 d = 0; d < D; ++d) {
            const double* __restrict product = products[i] + d * K;
            const double* __restrict mine = shift[d];
            for (i64 k = 0; k < K; ++k) {
                const double gap = product[k] - mine[k];
                total[k] += gap * gap;
            }
        }
        double* __restrict out = scores[i] + first;
        for (i64 k = 0; k < K; ++k) out[k] -= 0.5 * total[k];
    }
}

static void weighted_scores(MatIn rows, MatIn precision, MatIn mean, In offset, MatOut scores) {
    const i64 D = mean.n, K = mean.p, strips = (K + W - 1) / W;
    // strips of components, W of them, with their columns one after the other; those beyond the last have no weight
    const Room<double> packed(strips * D * 2 * W, 0.0);
    for (i64 d = 0; d < D; ++d)
        for (i64 k = 0; k < K; ++k) {
            double* at = packed.data + ((k / W * D) + d) * 2 * W + k % W;
            at[0] = mean(d, k), at[W] = precision(d, k);
        }
    for (i64 start = 0; start < rows.n; start += ROWS) {
        const i64 m = smaller(rows.n - start, i64(ROWS));
        const double* row[ROWS];
        for (i64 r = 0; r < ROWS; ++r) row[r] = rows[start + smaller(r, m - 1)];
        for (i64 s = 0; s < strips; ++s) {
            const double* strip = packed.data + s * D * 2 * W;
            V total[ROWS] = {};
            for (i64 d = 0; d < D; ++d) {
                const V centre = load<V>(strip + d * 2 * W), factor = load<V>(strip + d * 2 * W + W);
                for (int r = 0; r < ROWS; ++r) {
                    const V gap = splat<V>(row[r][d]) - centre;
                    total[r] += factor * gap * gap;
                }
            }
            double found[ROWS * W];
            for (int r = 0; r < ROWS; ++r) store(found + r * W, total[r]);
            for (i64 r = 0; r < m; ++r)
                for (i64 k = s * W; k < smaller(K, (s + 1) * W); ++k)
                    scores(start + r, k) = -0.5 * found[r * W + k - s * W] - offset[k];
        }
    }
}

static void soften(MatIn scores, In log_weight, MatOut resp, Out lse) {
    soften_rows(resp, lse, [&](i64 i, double* row) {
        double top = -INF;
        for (i64 k = 0; k < scores.p; ++k) {
            row[k] = scores(i, k) + log_weight[k];
            top = larger(top, row[k]);
        }
        return top;
    });
}

static i64 collect(MatIn rows, In weight, In resp, In centre, MatOut out) {
    const i64 D = rows.p;
    i64 count = 0;
    for (i64 i = 0; i < rows.n; ++i) {
        const double w = weight[i] * resp[i];
        if (!(w > 0.0)) continue;
        const double root = std::sqrt(w);
        const double* __restrict row = rows[i];
        const double* __restrict from = centre.data;
        double* __restrict held = out[count++];
        held[0] = root;
        for (i64 d = 0; d < D; ++d) held[d + 1] = root * (row[d] - from[d]);
    }
    return count;
}

static void add_squares(MatIn rows, In weight, MatIn resp, MatIn centre, Out mass, MatOut first, MatOut second) {
    for (i64 k = 0; k < centre.n; ++k) {
        const double* __restrict share = resp[k];
        const double* __restrict from = centre[k];
        double* __restrict sum = first[k];
        double* __restrict squares = second[k];
        for (i64 i = 0; i < rows.n; ++i) {
            const double w = weight[i] * share[i];
            if (!(w > 0.0)) continue;
            mass[k] += w;
            const double* __restrict row = rows[i];
            for (i64 d = 0; d < rows.p; ++d) {
                const double gap = row[d] - from[d];
                sum[d] += w * gap;
                squares[d] += w * gap * gap;
            }
        }
    }
}

static const border::Kernel kernels[] = {
    border::kernel<add_squares>(
        "add_squares(rows[n,D], weight[n], resp[K,n], centre[K,D], mass[K], first[K,D], second[K,D])"),
    border::kernel<collect>("collect(rows[n,D], weight[n], resp[n], centre[D], out[n..,D+1])"),
    border::kernel<soften>("soften(scores[n,K], log_weight[K], resp[K,n], lse[n])"),
    border::kernel<subtract_squares>("subtract_squares(products[n,*], shift[D,K], first, scores[n,*])"),
    border::kernel<weighted_scores>("weighted_scores(rows[n,D], precision[D,K], mean[D,K], offset[K], scores[n,K])"),
};
static const border::Publish publish(kernels);
