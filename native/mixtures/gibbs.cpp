#include "mixtures/gibbs.h"

#include <math.h>  // lgamma_r, which std has not

#include "border.h"

namespace gibbs {

// Unlike std::lgamma it keeps the sign to itself: threads do not meet.
double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

// Small whole numbers by products, large arguments by Stirling's series, so that few digits cancel.
double rise(double a, double v) {
    constexpr double FEW = 8.0, LARGE = 1e4;
    if (v == 1.0) return std::log(a);
    if (v <= FEW && v == std::floor(v)) {
        double product = 1.0;
        for (double j = 0.0; j < v; j += 1.0) product *= a + j;
        if (product > 1e-300 && product < 1e300) return std::log(product);
    }
    if (a < LARGE) return log_gamma(a + v) - log_gamma(a);
    const double whole = a + v, one = 1.0 / a, other = 1.0 / whole;
    return (a - 0.5) * std::log1p(v / a) + v * (std::log(whole) - 1.0) + (other - one) / 12.0 -
           (other * other * other - one * one * one) / 360.0;
}

void check_draws(const Draws& draws, i64 rows) {
    require(draws.uniforms.n <= rows, "uniforms must not be more than the rows");
    std::vector<bool> seen(std::size_t(rows), false);
    for (const i64 row : draws.order) {
        require(!seen[std::size_t(row)], "order must hold every row once");
        seen[std::size_t(row)] = true;
    }
}

}  // namespace gibbs

// Rows draw clusters whose parameters are given, from place `begin` of the order on; clusters without rows are gone.
// Ends at the first row that opens a cluster, which has then no label, and returns its place; N if there is none.
static i64 gibbs_given(MatIn scores, In fresh, Rows order, In uniforms, i64 begin, double log_alpha, Vec<i32> labels,
                       Vec<i64> rows) {
    require(begin >= 0, "begin must not be negative");
    const i64 K = scores.n, N = scores.p;
    for (const i64 count : rows) require(count >= 0 && count <= N, "rows must be numbers of rows");
    std::vector<double> logs(std::size_t(N) + 1), chances(std::size_t(K) + 1);
    for (i64 n = 0; n <= N; ++n) logs[std::size_t(n)] = std::log(double(n));
    for (i64 t = begin; t < N; ++t) {
        const i64 i = order[t];
        if (labels[i] >= 0) {
            require(rows[labels[i]] > 0, "a label has no rows");
            --rows[labels[i]];
        }
        double most = chances[std::size_t(K)] = log_alpha + fresh[i];
        for (i64 k = 0; k < K; ++k) {
            const double chance = rows[k] > 0 ? logs[std::size_t(rows[k])] + scores(k, i) : -INF;
            chances[std::size_t(k)] = chance;
            most = larger(most, chance);
        }
        double total = 0.0;
        for (double& chance : chances) {
            const double below = chance - most;
            chance = below > gibbs::NO_CHANCE ? std::exp(below) : 0.0;
            total += chance;
        }
        const double aim = uniforms[t] * total;
        double sum = 0.0;
        i64 chosen = K;
        for (i64 k = 0; k <= K; ++k) {
            if (chances[std::size_t(k)] == 0.0) continue;
            sum += chances[std::size_t(k)];
            chosen = k;
            if (sum > aim) break;
        }
        labels[i] = chosen < K ? i32(chosen) : -1;
        if (chosen == K) return t;
        require(rows[chosen] < N, "rows are more than there are");
        ++rows[chosen];
    }
    return N;
}

static const border::Kernel kernels[] = {
    border::kernel<gibbs_given>("gibbs_given(scores[K,N], fresh[N], order[N]<N, uniforms[N], begin, log_alpha, "
                                "labels[N]<K|-1, rows[K])"),
};
static const border::Publish publish(kernels);
