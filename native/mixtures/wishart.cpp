#include "mixtures/wishart.h"

#include <math.h>  // lgamma_r, which std has not

#include <cmath>

#include "border.h"
#include "mixtures/triangles.h"

namespace {

// Derivative of log gamma, x > 0.
double digamma(double x) {
    double value = 0.0;
    while (x < 10.0) {
        value -= 1.0 / x;
        x += 1.0;
    }
    const double y = 1.0 / (x * x);
    const double series =
        y * (1.0 / 12 -
             y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
    return value + std::log(x) - 0.5 / x - series;
}

// Unlike std::lgamma it keeps the sign to itself: threads do not meet.
double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

double digammas(double nu, i64 D) {
    double total = 0.0;
    for (i64 d = 0; d < D; ++d) total += digamma(0.5 * (nu - double(d)));
    return total;
}

double log_gammas(double nu, i64 D) {
    double total = 0.0;
    for (i64 d = 0; d < D; ++d) total += log_gamma(0.5 * (nu - double(d)));
    return total;
}

}  // namespace

bool wishart_posterior(In mass, MatIn first, Cube<const double> second, MatIn about, In prior_mean, MatIn prior_scale,
                       double beta, MatOut mean, Cube<double> scale, Cube<double> root, Out log_det) {
    const i64 K = first.n, D = first.p;
    const Room<double> gap(D), away(D), factor(D * D), inverted(D * D, 0.0);
    const MatOut lower = factor.as(D, D), inverse = inverted.as(D, D);
    for (i64 k = 0; k < K; ++k) {
        const double share = mass[k] / (beta + mass[k]), shrunk = beta * mass[k] / (beta + mass[k]);
        for (i64 d = 0; d < D; ++d) {
            gap[d] = mass[k] > 0.0 ? first(k, d) / mass[k] : 0.0;
            away[d] = about(k, d) + gap[d] - prior_mean[d];
            mean(k, d) = prior_mean[d] + share * away[d];
        }
        for (i64 d = 0; d < D; ++d)
            for (i64 e = 0; e <= d; ++e) {
                const double own = 0.5 * (second[k](d, e) + second[k](e, d)) - mass[k] * gap[d] * gap[e];
                scale[k](d, e) = scale[k](e, d) = prior_scale(d, e) + own + shrunk * away[d] * away[e];
            }
        if (!lower_factor(scale[k].data, D, lower.data)) return false;
        invert_lower(lower.data, D, inverse.data);
        log_det[k] = 0.0;
        for (i64 d = 0; d < D; ++d) {
            log_det[k] += 2.0 * std::log(lower(d, d));
            for (i64 e = 0; e < D; ++e) root[k](e, d) = inverse(d, e);
        }
    }
    return true;
}

void wishart_form(In beta, In nu, Cube<const double> root, In log_det, Cube<double> scaled, Out offset) {
    const i64 D = root.p;
    for (i64 k = 0; k < root.n; ++k) {
        const double size = std::sqrt(nu[k]);
        for (i64 d = 0; d < D; ++d)
            for (i64 e = 0; e < D; ++e) scaled[k](d, e) = size * root[k](d, e);
        const double expected = digammas(nu[k], D) + double(D) * std::log(2.0) - log_det[k];
        offset[k] = 0.5 * (double(D) / beta[k] - expected);
    }
}

void wishart_divergence(MatIn mean, In beta, In nu, Cube<const double> root, In log_det, In prior_mean,
                        MatIn prior_scale, In prior, Out value) {
    const i64 K = mean.n, D = mean.p;
    const double beta0 = prior[0], nu0 = prior[1], log_det0 = prior[2], columns = double(D);
    const double constant = log_gammas(nu0, D);
    for (i64 k = 0; k < K; ++k) {
        double away = 0.0, trace = 0.0;
        for (i64 e = 0; e < D; ++e) {
            double along = 0.0;
            for (i64 d = 0; d <= e; ++d) along += (mean(k, d) - prior_mean[d]) * root[k](d, e);
            away += along * along;
        }
        for (i64 d = 0; d < D; ++d)
            for (i64 e = d; e < D; ++e)
                if (prior_scale(d, e) != 0.0) {                                               // mostly a diagonal
                    const double own = pair_products(root[k][d] + e, root[k][e] + e, D - e);  // of an upper triangle
                    trace += (d == e ? 1.0 : 2.0) * prior_scale(d, e) * own;
                }
        const double ratio = beta0 / beta[k];
        double own = 0.5 * columns * (ratio - std::log(ratio) - 1.0) + 0.5 * beta0 * nu[k] * away;
        own += 0.5 * nu0 * (log_det[k] - log_det0) + 0.5 * (nu[k] - nu0) * digammas(nu[k], D);
        value[k] = own + 0.5 * nu[k] * (trace - columns) + constant - log_gammas(nu[k], D);
    }
}

void best_sticks(In sizes, double a1, double a2, MatOut sticks) {
    double behind = 0.0;
    for (i64 i = sticks.n - 1; i >= 0; --i) {
        behind += sizes[i + 1];
        sticks(i, 0) = a1 + sizes[i], sticks(i, 1) = a2 + behind;
    }
}

double stick_terms(MatIn sticks, double a1, double a2, Out expected) {
    const double prior = log_gamma(a1) + log_gamma(a2) - log_gamma(a1 + a2);
    double past = 0.0, total = 0.0;
    for (i64 i = 0; i < sticks.n; ++i) {
        const double g1 = sticks(i, 0), g2 = sticks(i, 1), whole = digamma(g1 + g2);
        const double here = digamma(g1) - whole, beyond = digamma(g2) - whole;
        total += prior - log_gamma(g1) - log_gamma(g2) + log_gamma(g1 + g2);
        total += (g1 - a1) * here + (g2 - a2) * beyond;
        expected[i] = past + here;
        past += beyond;
    }
    const double whole = digamma(a1 + a2);
    expected[sticks.n] = past + digamma(a1) - whole - std::log(-std::expm1(digamma(a2) - whole));
    return total;
}

static double wishart_view(MatIn mean, In beta, In nu, Cube<const double> root, In log_det, In prior_mean,
                           MatIn prior_scale, Cube<const double> prior_root, In prior, MatIn sticks, In weights,
                           Cube<double> scaled, Out offset, Out expected) {
    const i64 T = mean.n, D = mean.p;
    const Room<double> own(T);
    wishart_form(beta, nu, root, log_det, {scaled.data, T, D, D}, offset.part(0, T));
    wishart_form(prior.part(0, 1), prior.part(1, 2), prior_root, prior.part(2, 3), {scaled[T].data, 1, D, D},
                 offset.part(T, T + 1));
    wishart_divergence(mean, beta, nu, root, log_det, prior_mean, prior_scale, prior, own);
    double divergence = 0.0;
    for (const double value : own) divergence += value;
    return stick_terms(sticks, weights[0], weights[1], expected) + divergence;
}

static const border::Kernel kernels[] = {
    border::kernel<best_sticks>("best_sticks(sizes[T+1], a1, a2, sticks[T,2])"),
    border::kernel<stick_terms>("stick_terms(sticks[T,2], a1, a2, expected[T+1])"),
    border::kernel<wishart_divergence>("wishart_divergence(mean[K,D], beta[K], nu[K], root[K,D,D], log_det[K], "
                                       "prior_mean[D], prior_scale[D,D], prior[3], value[K])"),
    border::kernel<wishart_form>("wishart_form(beta[K], nu[K], root[K,D,D], log_det[K], scaled[K,D,D], offset[K])"),
    border::kernel<wishart_posterior>(
        "wishart_posterior(mass[K], first[K,D], second[K,D,D], about[K,D], prior_mean[D], prior_scale[D,D], beta, "
        "mean[K,D], scale[K,D,D], root[K,D,D], log_det[K])"),
    border::kernel<wishart_view>(
        "wishart_view(mean[T,D], beta[T], nu[T], root[T,D,D], log_det[T], prior_mean[D], prior_scale[D,D], "
        "prior_root[1,D,D], prior[3], sticks[T,2], weights[2], scaled[T+1,D,D], offset[T+1], expected[T+1])"),
};
static const border::Publish publish(kernels);
