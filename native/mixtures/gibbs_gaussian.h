// Clusters of Gaussian rows, parameters integrated out: Normal-Wishart, Normal-gamma, and known covariances.
#pragma once
#include "mixtures/gibbs.h"

namespace gibbs {

// What all of them know of a cluster: Normal with `rows` pseudo-rows behind its mean.
struct Located {
    std::vector<double> mean;
    double rows;  // beta: those of the prior and of the cluster
};

// Moves the mean by a row that comes (weight > 0) or goes; fills gap = x - mean before. Returns the share
// beta w / (beta + w) by which the square of the gap adds to that about the mean.
inline double shift_mean(Located& at, const double* x, double weight, double* gap) {
    const double after = at.rows + weight, step = weight / after;
    for (std::size_t d = 0; d < at.mean.size(); ++d) {
        gap[d] = x[d] - at.mean[d];
        at.mean[d] += step * gap[d];
    }
    const double share = at.rows * step;
    at.rows = after;
    return share;
}

// Constants of joining and leaving depend on the weight of the row alone: those of the last weight are kept.
struct Kept {
    double weight = NOT_A_NUMBER, value = 0.0;
};

template <class Make> double kept(Kept& last, double weight, const Make& make) {
    if (last.weight != weight) last = {weight, make()};
    return last.value;
}

// Full covariance: Lambda ~ Wishart(nu, B^-1), B^-1 = root' root with a lower triangle whose columns are stored.
class Full {
  public:
    struct Cluster : Located {
        std::vector<double> root;
        double degrees, log_det;  // nu; of B
        mutable Kept joining, leaving;
    };

    Full(MatIn X, In weight, In mean, MatIn root, In counts);
    Cluster empty() const { return prior_; }
    void add(Cluster& cluster, i64 i) const { change(cluster, X_[i], weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const { return change(cluster, X_[i], -weight_[i]); }
    double join(const Cluster& cluster, i64 i) const;
    double leave(const Cluster& cluster, i64 i) const;
    double marginal(const Cluster& cluster) const;

  private:
    double square(const Cluster& cluster, const double* x) const;
    bool change(Cluster& cluster, const double* x, double weight) const;
    double constant(double rows, double degrees, double weight) const;

    const MatIn X_;
    const In weight_;
    Cluster prior_;
    mutable std::vector<double> gap_, along_, sums_;
};

// One precision for each column: tau_d ~ Gamma(shape, rate_d).
class Diagonal {
  public:
    struct Cluster : Located {
        std::vector<double> rate;
        double shape, log_rates;  // sum over columns
        mutable Kept joining, leaving;
    };

    Diagonal(MatIn X, In weight, In mean, In rate, In counts);
    Cluster empty() const { return prior_; }
    void add(Cluster& cluster, i64 i) const { change(cluster, X_[i], weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const { return change(cluster, X_[i], -weight_[i]); }
    double join(const Cluster& cluster, i64 i) const;
    double leave(const Cluster& cluster, i64 i) const;
    double marginal(const Cluster& cluster) const;

  private:
    double logs(const Cluster& cluster, const double* x, double share) const;
    bool change(Cluster& cluster, const double* x, double weight) const;
    double constant(double rows, double shape, double weight) const;

    const MatIn X_;
    const In weight_;
    Cluster prior_;
    mutable std::vector<double> gap_;
};

// One precision for all columns.
class Spherical {
  public:
    struct Cluster : Located {
        double rate, shape;
        mutable Kept joining, leaving;
    };

    Spherical(MatIn X, In weight, In mean, In rate, In counts);
    Cluster empty() const { return prior_; }
    void add(Cluster& cluster, i64 i) const { change(cluster, X_[i], weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const { return change(cluster, X_[i], -weight_[i]); }
    double join(const Cluster& cluster, i64 i) const;
    double leave(const Cluster& cluster, i64 i) const;
    double marginal(const Cluster& cluster) const;

  private:
    bool change(Cluster& cluster, const double* x, double weight) const;
    double constant(double rows, double shape, double weight) const;

    const MatIn X_;
    const In weight_;
    Cluster prior_;
    mutable std::vector<double> gap_;
};

// Covariance known and, as rows have been whitened, one.
class Known {
  public:
    struct Cluster : Located {
        double energy = 0.0;  // half a weighted sum of squares about the mean, with that of the prior mean
        mutable Kept joining, leaving;
    };

    Known(MatIn X, In weight, In mean, double rows);
    Cluster empty() const { return prior_; }
    void add(Cluster& cluster, i64 i) const { change(cluster, X_[i], weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const { return change(cluster, X_[i], -weight_[i]); }
    double join(const Cluster& cluster, i64 i) const;
    double leave(const Cluster& cluster, i64 i) const;
    double marginal(const Cluster& cluster) const;

  private:
    bool change(Cluster& cluster, const double* x, double weight) const;
    double constant(double rows, double weight) const;

    const MatIn X_;
    const In weight_;
    Cluster prior_;
    mutable std::vector<double> gap_;
};

}  // namespace gibbs
