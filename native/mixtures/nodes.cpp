#include <algorithm>

#include "border.h"
#include "mixtures/blocks.h"
#include "mixtures/node_shares.h"
#include "mixtures/wishart.h"

namespace {

void clear(Out values) {
    for (double& value : values) value = 0.0;
}
void copy(In from, double* to) { std::copy(from.begin(), from.end(), to); }

double sum(In values) {
    double total = 0.0;
    for (const double value : values) total += value;
    return total;
}
double sum_of_products(In a, In b) {
    double total = 0.0;
    for (i64 i = 0; i < a.n; ++i) total += a[i] * b[i];
    return total;
}

// Log-weights of components beside others, the tail the last of these; and what the sizes of all cost in F, but for the
// expected log-weights of these components.
double log_weights(In mass, In others, In sticks, Out log_weight) {
    const i64 K = mass.n, beside = others.n - 1, T = K + beside;
    const Room<double> sizes(T), arranged(T + 1), expected(T + 1), broken(2 * T);
    const Room<i64> order(T);
    copy(others.part(0, beside), sizes.data);
    copy(mass, sizes.data + beside);
    for (i64 i = 0; i < T; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return sizes[a] > sizes[b]; });
    for (i64 i = 0; i < T; ++i) arranged[i] = sizes[order[i]];
    arranged[T] = others[beside];
    best_sticks(arranged, sticks[0], sticks[1], broken.as(T, 2));
    double cost = stick_terms(broken.as(T, 2), sticks[0], sticks[1], expected);
    cost -= arranged[T] * expected[T];
    for (i64 i = 0; i < T; ++i)
        if (order[i] >= beside) log_weight[order[i] - beside] = expected[i];
        else cost -= arranged[i] * expected[i];
    return cost;
}

// The border takes an array without entries for none, whatever its lengths.
void check(const NodeComponents& components) {
    const i64 K = components.centre.n;
    const Cube<const double>& ways = components.directions;
    const bool right = ways.n == K && ways.p == K && ways.q == components.centre.p;
    require(!ways.n || (right && components.shift.n == K && components.shift.p == K),
            "directions and shift must be of all components, or of none");
}

}  // namespace

static void tell_apart(Cube<const double> lower, MatIn centre, Cube<double> directions, MatOut shift) {
    for (i64 j = 0; j < centre.n; ++j) point_to(j, centre, lower, directions[j], shift.row(j));
}

static void node_shares(MatIn mean, MatIn second, Cube<const double> lower, MatIn packed, MatIn centre, In offset,
                        In log_weight, Cube<const double> directions, MatIn shift, MatOut resp, Out lse) {
    const NodeComponents components{lower, packed, centre, offset, log_weight, directions, shift};
    check(components);
    share_out(mean, second, components, resp, lse);
}

static std::tuple<double, double> sweep_nodes(In n, MatIn mean, MatIn second, Cube<const double> lower, MatIn packed,
                                              MatIn centre, In offset, In log_weight, Cube<const double> directions,
                                              MatIn shift, Out mass, MatOut first, MatOut sums) {
    const i64 K = offset.n, free = mass.n;
    const NodeComponents components{lower, packed, centre, offset, log_weight, directions, shift};
    check(components);
    require(free <= K, "mass has more components than there are");
    const Room<double> shares(K * n.n), lse(n.n);
    const MatOut resp = shares.as(K, n.n);
    share_out(mean, second, components, resp, lse);
    node_sums(mean, second, n, {resp.data, free, n.n}, {centre.data, free, centre.p}, mass, first, sums);
    double tail = 0.0;
    for (i64 k = free; k < K; ++k) tail += sum_of_products(resp.row(k), n);
    return {tail, sum_of_products(n, lse)};
}

static void unpack(MatIn packed, Cube<double> full) {
    const i64 D = full.p;
    require(packed.p == D * (D + 1) / 2, "packed must have a column for each entry of a triangle");
    for (i64 k = 0; k < full.n; ++k) {
        const double* place = packed[k];
        for (i64 d = 0; d < D; ++d)
            for (i64 e = d; e < D; ++e) full[k](d, e) = full[k](e, d) = *place++;
    }
}

static double share_nodes(In n, MatIn mean, MatIn second, MatOut resp, MatIn centre, In others, In prior_mean,
                          MatIn prior_scale, In prior, In sticks, double enough, double whole, double empty,
                          i64 updates, MatOut best_mean, Cube<double> best_scale, Cube<double> best_root,
                          Out best_log_det, Out best_mass, Out best_weight) {
    const i64 K = centre.n, D = centre.p, P = second.p;
    require(K > 0, "there are no components");
    const Room<double> mass(K), first(K * D), packed(K * P), about(K * D), location(K * D), log_det(K), beta(K), nu(K);
    const Room<double> full(K * D * D), scale(K * D * D), root(K * D * D), scaled(K * D * D), lower(K * D * D);
    const Room<double> half(K * P), offset(K), log_weight(K), own(K), lse(n.n);
    const auto matrices = [&](const Room<double>& room) { return Cube<double>{room.data, K, D, D}; };
    const auto add_sums = [&] {
        clear(mass), clear(first), clear(packed);
        node_sums(mean, second, n, resp, about.as(K, D), mass, first.as(K, D), packed.as(K, P));
    };
    const NodeComponents components{matrices(lower), half.as(K, P), location.as(K, D), offset, log_weight, {}, {}};
    double best = INF, last = INF, fall = INF;
    copy({centre.data, K * D}, about.data);
    add_sums();
    for (i64 left = updates - 1; left >= 0; --left) {
        unpack(packed.as(K, P), matrices(full));
        if (!wishart_posterior(mass, first.as(K, D), matrices(full), about.as(K, D), prior_mean, prior_scale, prior[0],
                               location.as(K, D), matrices(scale), matrices(root), log_det))
            return NOT_A_NUMBER;
        double cost = log_weights(mass, others, sticks, log_weight);
        for (i64 k = 0; k < K; ++k) beta[k] = prior[0] + mass[k], nu[k] = prior[1] + mass[k];
        wishart_form(beta, nu, matrices(root), log_det, matrices(scaled), offset);
        half_precisions(matrices(scaled), matrices(lower), half.as(K, P));
        share_out(mean, second, components, resp, lse);
        wishart_divergence(location.as(K, D), beta, nu, matrices(root), log_det, prior_mean, prior_scale, prior, own);
        cost += sum(own) - sum_of_products(n, lse);
        if (cost < best) {
            best = cost;
            copy(location, best_mean.data), copy(scale, best_scale.data), copy(root, best_root.data);
            copy(log_det, best_log_det.data), copy(mass, best_mass.data), copy(log_weight, best_weight.data);
        }
        const double before = fall;
        fall = last - cost;
        const double slowing = before < INF ? smaller(1.0, fall / before) : 1.0;
        if (left == 0 || !(fall > enough / 10) || cost - whole > double(left) * fall * slowing) break;
        copy(location, about.data);
        last = cost;
        add_sums();
        if (*std::min_element(mass.begin(), mass.end()) <= empty) break;
    }
    return best;
}

static const border::Kernel kernels[] = {
    border::kernel<half_precisions>("half_precisions(root[K,D,D], lower[K,D,D], packed[K,P])"),
    border::kernel<node_scores>(
        "node_scores(mean[R,D], second[R,P], lower[K,D,D], packed[K,P], centre[K,D], offset[K], scores[R,K])"),
    border::kernel<node_shares>(
        "node_shares(mean[R,D], second[R,P], lower[K,D,D], packed[K,P], centre[K,D], offset[K], log_weight[K], "
        "directions[K,K,D]?, shift[K,K]?, resp[K,R], lse[R])"),
    border::kernel<node_sums>("node_sums(mean[R,D], second[R,P], n[R], resp[K..,R], centre[K,D], mass[K], first[K,D], "
                              "packed[K,P])"),
    border::kernel<share_nodes>(
        "share_nodes(n[R], mean[R,D], second[R,P], resp[K,R], centre[K,D], others[T+1], prior_mean[D], "
        "prior_scale[D,D], prior[3], sticks[2], enough, whole, empty, updates, best_mean[K,D], best_scale[K,D,D], "
        "best_root[K,D,D], best_log_det[K], best_mass[K], best_weight[K])"),
    border::kernel<sweep_nodes>(
        "sweep_nodes(n[R], mean[R,D], second[R,P], lower[K,D,D], packed[K,P], centre[K,D], offset[K], log_weight[K], "
        "directions[K,K,D]?, shift[K,K]?, mass[F], first[F,D], sums[F,P])"),
    border::kernel<tell_apart>("tell_apart(lower[K,D,D], centre[K,D], directions[K,K,D], shift[K,K])"),
    border::kernel<unpack>("unpack(packed[K,P], full[K,D,D])"),
};
static const border::Publish publish(kernels);
