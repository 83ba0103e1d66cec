#include "mixtures/gibbs_gaussian.h"

#include "border.h"

namespace gibbs {
namespace {

std::vector<double> copied(In values) { return {values.begin(), values.end()}; }

double distance(const Located& at, const double* x) {
    double total = 0.0;
    for (std::size_t d = 0; d < at.mean.size(); ++d) total += (x[d] - at.mean[d]) * (x[d] - at.mean[d]);
    return total;
}

double log_gammas(double degrees, i64 D) {
    double total = 0.0;
    for (i64 d = 0; d < D; ++d) total += log_gamma(0.5 * (degrees - double(d)));
    return total;
}

// The change of (beta / 2 pi)^(D / 2), in logs.
double of_location(double rows, double weight, i64 D) { return 0.5 * double(D) * std::log(rows / (rows + weight)); }

}  // namespace

Full::Full(MatIn X, In weight, In mean, MatIn root, In counts)
    : X_(X), weight_(weight), gap_(std::size_t(X.p)), along_(std::size_t(X.p)), sums_(std::size_t(X.p)) {
    const i64 D = X.p;
    prior_.mean = copied(mean);
    prior_.rows = counts[0], prior_.degrees = counts[1], prior_.log_det = 0.0;
    prior_.root.assign(std::size_t(D * D), 0.0);
    for (i64 d = 0; d < D; ++d) {
        for (i64 e = 0; e <= d; ++e) prior_.root[std::size_t(e * D + d)] = root(d, e);
        prior_.log_det -= 2.0 * std::log(root(d, d));
    }
}

// along = root (x - mean), and its square.
static double squared(const double* __restrict column, const double* mean, const double* x, i64 D,
                      double* __restrict along) {
    for (i64 d = 0; d < D; ++d) along[d] = 0.0;
    for (i64 e = 0; e < D; ++e, column += D) {
        const double gap = x[e] - mean[e];
        for (i64 d = e & ~i64(7); d < D; ++d) along[d] += column[d] * gap;  // zeros before e: whole vectors
    }
    double total = 0.0;
    for (i64 d = 0; d < D; ++d) total += along[d] * along[d];
    return total;
}

// The same for a few columns, whose number is known at compile time, in registers.
template <i64 D>
static double squared(const double* column, const double* mean, const double* x, double* __restrict along) {
    double total = 0.0;
    for (i64 d = 0; d < D; ++d) {
        double sum = 0.0;
        for (i64 e = 0; e <= d; ++e) sum += column[e * D + d] * (x[e] - mean[e]);
        along[d] = sum;
        total += sum * sum;
    }
    return total;
}

double Full::square(const Cluster& cluster, const double* x) const {
    const double *root = cluster.root.data(), *mean = cluster.mean.data();
    double* along = along_.data();
    switch (X_.p) {
        case 1: return squared<1>(root, mean, x, along);
        case 2: return squared<2>(root, mean, x, along);
        case 3: return squared<3>(root, mean, x, along);
        case 4: return squared<4>(root, mean, x, along);
        case 5: return squared<5>(root, mean, x, along);
        case 6: return squared<6>(root, mean, x, along);
        case 7: return squared<7>(root, mean, x, along);
        case 8: return squared<8>(root, mean, x, along);
        default: return squared(root, mean, x, X_.p, along);
    }
}

double Full::constant(double rows, double degrees, double weight) const {
    const i64 D = X_.p;
    const double gammas = weight == 1.0
                              ? log_gamma(0.5 * (degrees + 1.0)) - log_gamma(0.5 * (degrees + 1.0 - double(D)))
                              : log_gammas(degrees + weight, D) - log_gammas(degrees, D);
    return of_location(rows, weight, D) + gammas + 0.5 * weight * double(D) * std::log(2.0);
}

double Full::join(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], share = cluster.rows * weight / (cluster.rows + weight);
    const double fixed = kept(cluster.joining, weight, [&] { return constant(cluster.rows, cluster.degrees, weight); });
    // not log1p: what it would add to a chance is rounding, and it takes as long as all the rest
    const double stretch = std::log(1.0 + share * square(cluster, X_[i]));
    return fixed - 0.5 * (weight * cluster.log_det + (cluster.degrees + weight) * stretch);
}

double Full::leave(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], rows = cluster.rows - weight, degrees = cluster.degrees - weight;
    const double left = 1.0 - cluster.rows * weight / rows * square(cluster, X_[i]);
    if (!(left > LEAST_LEFT)) return NOT_A_NUMBER;
    const double fixed = kept(cluster.leaving, weight, [&] { return constant(rows, degrees, weight); });
    return fixed - 0.5 * (weight * cluster.log_det - degrees * std::log(left));
}

double Full::marginal(const Cluster& cluster) const {
    const i64 D = X_.p;
    const double mass = cluster.degrees - prior_.degrees;
    return of_location(prior_.rows, cluster.rows - prior_.rows, D) + log_gammas(cluster.degrees, D) -
           log_gammas(prior_.degrees, D) + 0.5 * mass * double(D) * std::log(2.0) +
           0.5 * (prior_.degrees * prior_.log_det - cluster.degrees * cluster.log_det);
}

// B + share gap gap' has the root C^-1 root, where C C' = 1 + share along along': rows of C^-1 are what is left of each
// coordinate when those before it are known. O(D^2).
bool Full::change(Cluster& cluster, const double* x, double weight) const {
    const i64 D = X_.p;
    const double whole = square(cluster, x);
    const double share = cluster.rows * weight / (cluster.rows + weight);
    const double last = 1.0 + share * whole;
    if (!(last > LEAST_LEFT)) return false;
    shift_mean(cluster, x, weight, gap_.data());
    for (i64 e = 0; e < D; ++e) sums_[std::size_t(e)] = 0.0;
    double before = 1.0;
    for (i64 d = 0; d < D; ++d) {
        const double own = along_[std::size_t(d)], after = before + share * own * own;
        const double size = std::sqrt(before / after), part = share * own / before;
        for (i64 e = 0; e <= d; ++e) {
            double& entry = cluster.root[std::size_t(e * D + d)];
            const double old = entry;
            entry = size * (old - part * sums_[std::size_t(e)]);
            sums_[std::size_t(e)] += own * old;
        }
        before = after;
    }
    cluster.degrees += weight;
    cluster.log_det += std::log(last);
    cluster.joining = cluster.leaving = {};
    return true;
}

Diagonal::Diagonal(MatIn X, In weight, In mean, In rate, In counts) : X_(X), weight_(weight), gap_(std::size_t(X.p)) {
    prior_.mean = copied(mean), prior_.rate = copied(rate);
    prior_.rows = counts[0], prior_.shape = counts[1], prior_.log_rates = 0.0;
    for (const double one : rate) prior_.log_rates += std::log(one);
}

// Sum over columns of log(1 + share gap^2 / (2 rate)); products of a few columns share a log.
double Diagonal::logs(const Cluster& cluster, const double* x, double share) const {
    constexpr i64 FEW = 8;
    double total = 0.0;
    for (i64 start = 0; start < X_.p; start += FEW) {
        double product = 1.0, one[FEW], least = INF;
        const i64 stop = smaller(start + FEW, X_.p);
        for (i64 d = start; d < stop; ++d) {
            const double gap = x[d] - cluster.mean[std::size_t(d)];
            const double factor = one[d - start] = 1.0 + 0.5 * share * gap * gap / cluster.rate[std::size_t(d)];
            least = smaller(least, factor);
            product *= factor;
        }
        if (!(least > LEAST_LEFT)) return NOT_A_NUMBER;
        if (product < 1e300) total += std::log(product);
        else
            for (i64 d = start; d < stop; ++d) total += std::log(one[d - start]);
    }
    return total;
}

double Diagonal::constant(double rows, double shape, double weight) const {
    const double D = double(X_.p);
    return of_location(rows, weight, X_.p) + D * rise(shape, 0.5 * weight);
}

double Diagonal::join(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], share = cluster.rows * weight / (cluster.rows + weight);
    const double fixed = kept(cluster.joining, weight, [&] { return constant(cluster.rows, cluster.shape, weight); });
    return fixed - 0.5 * weight * cluster.log_rates - (cluster.shape + 0.5 * weight) * logs(cluster, X_[i], share);
}

double Diagonal::leave(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], rows = cluster.rows - weight, shape = cluster.shape - 0.5 * weight;
    const double fixed = kept(cluster.leaving, weight, [&] { return constant(rows, shape, weight); });
    return fixed - 0.5 * weight * cluster.log_rates + shape * logs(cluster, X_[i], -cluster.rows * weight / rows);
}

double Diagonal::marginal(const Cluster& cluster) const {
    const double D = double(X_.p);
    return of_location(prior_.rows, cluster.rows - prior_.rows, X_.p) +
           D * rise(prior_.shape, cluster.shape - prior_.shape) + prior_.shape * prior_.log_rates -
           cluster.shape * cluster.log_rates;
}

bool Diagonal::change(Cluster& cluster, const double* x, double weight) const {
    if (weight < 0.0) {
        const double left = logs(cluster, x, cluster.rows * weight / (cluster.rows + weight));
        if (!(left == left)) return false;
    }
    const double share = shift_mean(cluster, x, weight, gap_.data());
    cluster.log_rates = 0.0;
    for (std::size_t d = 0; d < gap_.size(); ++d) {
        cluster.rate[d] += 0.5 * share * gap_[d] * gap_[d];
        cluster.log_rates += std::log(cluster.rate[d]);
    }
    cluster.shape += 0.5 * weight;
    cluster.joining = cluster.leaving = {};
    return true;
}

Spherical::Spherical(MatIn X, In weight, In mean, In rate, In counts) : X_(X), weight_(weight), gap_(std::size_t(X.p)) {
    prior_.mean = copied(mean);
    prior_.rows = counts[0], prior_.shape = counts[1], prior_.rate = rate[0];
}

double Spherical::constant(double rows, double shape, double weight) const {
    return of_location(rows, weight, X_.p) + rise(shape, 0.5 * weight * double(X_.p));
}

double Spherical::join(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], share = cluster.rows * weight / (cluster.rows + weight);
    const double half = 0.5 * weight * double(X_.p);
    const double fixed = kept(cluster.joining, weight, [&] { return constant(cluster.rows, cluster.shape, weight); });
    const double stretch = std::log1p(0.5 * share * distance(cluster, X_[i]) / cluster.rate);
    return fixed - half * std::log(cluster.rate) - (cluster.shape + half) * stretch;
}

double Spherical::leave(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], rows = cluster.rows - weight, half = 0.5 * weight * double(X_.p);
    const double left = 1.0 - 0.5 * cluster.rows * weight / rows * distance(cluster, X_[i]) / cluster.rate;
    if (!(left > LEAST_LEFT)) return NOT_A_NUMBER;
    const double fixed = kept(cluster.leaving, weight, [&] { return constant(rows, cluster.shape - half, weight); });
    return fixed - half * std::log(cluster.rate) + (cluster.shape - half) * std::log(left);
}

double Spherical::marginal(const Cluster& cluster) const {
    return of_location(prior_.rows, cluster.rows - prior_.rows, X_.p) +
           rise(prior_.shape, cluster.shape - prior_.shape) + prior_.shape * std::log(prior_.rate) -
           cluster.shape * std::log(cluster.rate);
}

bool Spherical::change(Cluster& cluster, const double* x, double weight) const {
    const double before = cluster.rows * weight / (cluster.rows + weight);
    const double rate = cluster.rate + 0.5 * before * distance(cluster, x);
    if (!(rate > LEAST_LEFT * cluster.rate)) return false;
    shift_mean(cluster, x, weight, gap_.data());
    cluster.rate = rate;
    cluster.shape += 0.5 * weight * double(X_.p);
    cluster.joining = cluster.leaving = {};
    return true;
}

Known::Known(MatIn X, In weight, In mean, double rows) : X_(X), weight_(weight), gap_(std::size_t(X.p)) {
    prior_.mean = copied(mean);
    prior_.rows = rows;
}

double Known::constant(double rows, double weight) const { return of_location(rows, weight, X_.p); }

double Known::join(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], share = cluster.rows * weight / (cluster.rows + weight);
    const double fixed = kept(cluster.joining, weight, [&] { return constant(cluster.rows, weight); });
    return fixed - 0.5 * share * distance(cluster, X_[i]);
}

double Known::leave(const Cluster& cluster, i64 i) const {
    const double weight = weight_[i], rows = cluster.rows - weight;
    if (!(rows > LEAST_LEFT * cluster.rows)) return NOT_A_NUMBER;
    const double fixed = kept(cluster.leaving, weight, [&] { return constant(rows, weight); });
    return fixed - 0.5 * cluster.rows * weight / rows * distance(cluster, X_[i]);
}

double Known::marginal(const Cluster& cluster) const {
    return of_location(prior_.rows, cluster.rows - prior_.rows, X_.p) - cluster.energy;
}

bool Known::change(Cluster& cluster, const double* x, double weight) const {
    if (!(cluster.rows + weight > LEAST_LEFT * cluster.rows)) return false;
    const double square = distance(cluster, x);
    cluster.energy += 0.5 * shift_mean(cluster, x, weight, gap_.data()) * square;
    cluster.joining = cluster.leaving = {};
    return true;
}

}  // namespace gibbs

using Drawn = std::tuple<i64, i64, double>;

static Drawn gibbs_full(MatIn X, In weight, In mean, MatIn root, In counts, gibbs::Turns turns, double log_alpha,
                        Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Full(X, weight, mean, root, counts), gibbs::draws_of(turns), log_alpha, labels, fresh);
}

static Drawn gibbs_diagonal(MatIn X, In weight, In mean, In rate, In counts, gibbs::Turns turns, double log_alpha,
                            Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Diagonal(X, weight, mean, rate, counts), gibbs::draws_of(turns), log_alpha, labels,
                       fresh);
}

static Drawn gibbs_spherical(MatIn X, In weight, In mean, In rate, In counts, gibbs::Turns turns, double log_alpha,
                             Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Spherical(X, weight, mean, rate, counts), gibbs::draws_of(turns), log_alpha, labels,
                       fresh);
}

static Drawn gibbs_known(MatIn X, In weight, In mean, double rows, gibbs::Turns turns, double log_alpha,
                         Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Known(X, weight, mean, rows), gibbs::draws_of(turns), log_alpha, labels, fresh);
}

#define TURNS "turns(order[N]<N, uniforms[n], pairs[P,2]<N, deals[P,N], accepts[P]), log_alpha, labels[N]<N, fresh[N]?)"
static const border::Kernel kernels[] = {
    border::kernel<gibbs_diagonal>("gibbs_diagonal(X[N,D], weight[N], mean[D], rate[D], counts[2], " TURNS),
    border::kernel<gibbs_full>("gibbs_full(X[N,D], weight[N], mean[D], root[D,D], counts[2], " TURNS),
    border::kernel<gibbs_known>("gibbs_known(X[N,D], weight[N], mean[D], rows, " TURNS),
    border::kernel<gibbs_spherical>("gibbs_spherical(X[N,D], weight[N], mean[D], rate[1], counts[2], " TURNS),
};
static const border::Publish publish(kernels);
