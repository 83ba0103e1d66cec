// Clusters of counts, bits and positive numbers, parameters integrated out: Dirichlet, gamma and beta priors.
#include "border.h"
#include "mixtures/gibbs.h"

namespace gibbs {
namespace {

struct Csr {
    In values;
    Vec<const i32> columns;
    Rows starts;

    void check() const {
        require(starts[0] == 0 && starts[starts.n - 1] == values.n, "starts must begin at 0 and end at the last entry");
        for (i64 i = 1; i < starts.n; ++i) require(starts[i - 1] <= starts[i], "starts must not fall");
    }
    double total(i64 i) const {
        double sum = 0.0;
        for (i64 at = starts[i]; at < starts[i + 1]; ++at) sum += values[at];
        return sum;
    }
};

std::vector<double> copied(In values) { return {values.begin(), values.end()}; }

// A sum after something has been taken off: what is next to nothing is rounding.
KF_INLINE double less(double sum, double part, double prior) { return larger(sum - part, prior); }

// Counts of columns with a prior, rows sparse, and logs of them, by which single counts are judged.
class Counts {
  public:
    Counts(const Csr& rows, In weight, In prior) : rows_(rows), weight_(weight), first_(copied(prior)) {
        rows.check();
        for (i64 i = 0; i < weight.n; ++i) totals_.push_back(rows.total(i));
    }

  protected:
    struct Sums {
        std::vector<double> counts, logs;
        double total = 0.0;
    };

    Sums prior_sums() const {
        Sums sums{first_, first_};
        for (double& value : sums.logs) {
            sums.total += value;
            value = std::log(value);
        }
        return sums;
    }
    void change_sums(Sums& sums, i64 i, double weight) const {
        for (i64 at = rows_.starts[i]; at < rows_.starts[i + 1]; ++at) {
            const std::size_t d = std::size_t(rows_.columns[at]);
            sums.counts[d] = larger(sums.counts[d] + weight * rows_.values[at], first_[d]);
            sums.logs[d] = std::log(sums.counts[d]);
        }
        sums.total += weight * totals_[std::size_t(i)];
    }
    double joining(const Sums& sums, i64 i) const {
        const double weight = weight_[i];
        double value = 0.0;
        for (i64 at = rows_.starts[i]; at < rows_.starts[i + 1]; ++at) {
            const std::size_t d = std::size_t(rows_.columns[at]);
            const double count = weight * rows_.values[at];
            value += count == 1.0 ? sums.logs[d] : rise(sums.counts[d], count);
        }
        return value;
    }
    double leaving(const Sums& sums, i64 i) const {
        const double weight = weight_[i];
        double value = 0.0;
        for (i64 at = rows_.starts[i]; at < rows_.starts[i + 1]; ++at) {
            const std::size_t d = std::size_t(rows_.columns[at]);
            const double count = weight * rows_.values[at];
            value += rise(less(sums.counts[d], count, first_[d]), count);
        }
        return value;
    }
    double gammas(const Sums& sums) const {
        double value = 0.0;
        for (std::size_t d = 0; d < first_.size(); ++d)
            if (sums.counts[d] != first_[d]) value += rise(first_[d], sums.counts[d] - first_[d]);
        return value;
    }

    const Csr rows_;
    const In weight_;
    const std::vector<double> first_;
    std::vector<double> totals_;
};

class Multinomial : public Counts {
  public:
    using Cluster = Counts::Sums;

    using Counts::Counts;
    Cluster empty() const { return prior_sums(); }
    void add(Cluster& cluster, i64 i) const { change_sums(cluster, i, weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const {
        change_sums(cluster, i, -weight_[i]);
        return true;
    }
    double join(const Cluster& cluster, i64 i) const {
        return joining(cluster, i) - rise(cluster.total, weight_[i] * totals_[std::size_t(i)]);
    }
    double leave(const Cluster& cluster, i64 i) const {
        const double own = weight_[i] * totals_[std::size_t(i)];
        return leaving(cluster, i) - rise(cluster.total - own, own);
    }
    double marginal(const Cluster& cluster) const {
        double prior = 0.0;
        for (const double value : first_) prior += value;
        return gammas(cluster) - rise(prior, larger(cluster.total - prior, 0.0));
    }
};

class Poisson : public Counts {
  public:
    struct Cluster : Counts::Sums {
        double rate = 0.0;
    };

    Poisson(const Csr& rows, In weight, In shape, double rate) : Counts(rows, weight, shape), rate_(rate) {}
    Cluster empty() const { return {prior_sums(), rate_}; }
    void add(Cluster& cluster, i64 i) const { change(cluster, i, weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const {
        if (!(cluster.rate - weight_[i] > LEAST_LEFT * cluster.rate)) return false;
        change(cluster, i, -weight_[i]);
        return true;
    }
    double join(const Cluster& cluster, i64 i) const {
        const double weight = weight_[i], rate = cluster.rate + weight;
        return joining(cluster, i) - cluster.total * std::log1p(weight / cluster.rate) -
               weight * totals_[std::size_t(i)] * std::log(rate);
    }
    double leave(const Cluster& cluster, i64 i) const {
        const double weight = weight_[i], rate = cluster.rate - weight, own = weight * totals_[std::size_t(i)];
        if (!(rate > LEAST_LEFT * cluster.rate)) return NOT_A_NUMBER;
        return leaving(cluster, i) - (cluster.total - own) * std::log1p(weight / rate) - own * std::log(cluster.rate);
    }
    double marginal(const Cluster& cluster) const {
        double prior = 0.0;
        for (const double value : first_) prior += value;
        return gammas(cluster) + prior * std::log(rate_) - cluster.total * std::log(cluster.rate);
    }

  private:
    void change(Cluster& cluster, i64 i, double weight) const {
        change_sums(cluster, i, weight);
        cluster.rate += weight;
    }
    const double rate_;
};

// Zeros and ones: `ones` and `zeros` of a column make up what it has in all.
class Bernoulli {
  public:
    struct Cluster {
        std::vector<double> ones, zeros;
        double rows = 0.0;  // weight
        // what rows of zeros add, of the last weight: when they come and when they go
        mutable double joining = 0.0, leaving = 0.0, weight = NOT_A_NUMBER;
    };

    Bernoulli(const Csr& rows, In weight, In ones, In zeros)
        : rows_(rows), weight_(weight), ones_(copied(ones)), zeros_(copied(zeros)) {
        rows.check();
    }
    Cluster empty() const { return {ones_, zeros_}; }
    void add(Cluster& cluster, i64 i) const { change(cluster, i, weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const {
        change(cluster, i, -weight_[i]);
        return true;
    }
    double join(const Cluster& cluster, i64 i) const {
        const double weight = weight_[i];
        prepare(cluster, weight);
        double value = cluster.joining;
        for (i64 at = rows_.starts[i]; at < rows_.starts[i + 1]; ++at) {
            const std::size_t d = std::size_t(rows_.columns[at]);
            const double one = weight * rows_.values[at], zero = weight - one;
            value += rise(cluster.ones[d], one) - rise(cluster.zeros[d], weight);
            if (zero > 0.0) value += rise(cluster.zeros[d], zero);
        }
        return value;
    }
    double leave(const Cluster& cluster, i64 i) const {
        const double weight = weight_[i];
        prepare(cluster, weight);
        double value = cluster.leaving;
        for (i64 at = rows_.starts[i]; at < rows_.starts[i + 1]; ++at) {
            const std::size_t d = std::size_t(rows_.columns[at]);
            const double one = weight * rows_.values[at], zero = weight - one;
            value += rise(less(cluster.ones[d], one, ones_[d]), one);
            if (may_go(cluster, d, weight)) value -= rise(cluster.zeros[d] - weight, weight);
            if (zero > 0.0) value += rise(less(cluster.zeros[d], zero, zeros_[d]), zero);
        }
        return value;
    }
    double marginal(const Cluster& cluster) const {
        double value = 0.0;
        for (std::size_t d = 0; d < ones_.size(); ++d)
            value += rise(ones_[d], cluster.ones[d] - ones_[d]) + rise(zeros_[d], cluster.zeros[d] - zeros_[d]) -
                     rise(ones_[d] + zeros_[d], cluster.rows);
        return value;
    }

  private:
    bool may_go(const Cluster& cluster, std::size_t d, double weight) const {
        return cluster.zeros[d] - weight > 0.5 * zeros_[d];
    }
    void prepare(const Cluster& cluster, double weight) const {
        if (cluster.weight == weight) return;
        double in = 0.0, out = 0.0;
        for (std::size_t d = 0; d < ones_.size(); ++d) {
            const double whole = ones_[d] + zeros_[d] + cluster.rows;
            in += rise(cluster.zeros[d], weight) - rise(whole, weight);
            if (may_go(cluster, d, weight)) out += rise(cluster.zeros[d] - weight, weight);
            if (cluster.rows >= weight) out -= rise(whole - weight, weight);
        }
        cluster.joining = in, cluster.leaving = out, cluster.weight = weight;
    }
    void change(Cluster& cluster, i64 i, double weight) const {
        for (double& value : cluster.zeros) value += weight;
        for (i64 at = rows_.starts[i]; at < rows_.starts[i + 1]; ++at) {
            const std::size_t d = std::size_t(rows_.columns[at]);
            cluster.zeros[d] -= weight * rows_.values[at];
            cluster.ones[d] = larger(cluster.ones[d] + weight * rows_.values[at], ones_[d]);
        }
        for (std::size_t d = 0; d < zeros_.size(); ++d) cluster.zeros[d] = larger(cluster.zeros[d], zeros_[d]);
        cluster.rows = larger(cluster.rows + weight, 0.0);
        cluster.weight = NOT_A_NUMBER;
    }

    const Csr rows_;
    const In weight_;
    const std::vector<double> ones_, zeros_;
};

// Positive numbers of known shape: minus theta ~ Gamma(shape * count + 1, rate) in every column.
class Positive {
  public:
    struct Cluster {
        std::vector<double> rate;
        double power, log_rates;  // shape of the posterior; sum of the logs of the rates
    };

    Positive(MatIn X, In weight, In rate, double count, double shape) : X_(X), weight_(weight), shape_(shape) {
        prior_.rate = copied(rate);
        prior_.power = shape * count + 1.0, prior_.log_rates = 0.0;
        for (const double value : rate) prior_.log_rates += std::log(value);
    }
    Cluster empty() const { return prior_; }
    void add(Cluster& cluster, i64 i) const { change(cluster, i, weight_[i]); }
    bool remove(Cluster& cluster, i64 i) const {
        const double left = logs(cluster, X_[i], -weight_[i]);
        if (!(left == left)) return false;
        change(cluster, i, -weight_[i]);
        return true;
    }
    double join(const Cluster& cluster, i64 i) const {
        const double more = shape_ * weight_[i];
        return double(X_.p) * rise(cluster.power, more) - more * cluster.log_rates -
               (cluster.power + more) * logs(cluster, X_[i], weight_[i]);
    }
    double leave(const Cluster& cluster, i64 i) const {
        const double more = shape_ * weight_[i], power = cluster.power - more;
        return double(X_.p) * rise(power, more) - more * cluster.log_rates + power * logs(cluster, X_[i], -weight_[i]);
    }
    double marginal(const Cluster& cluster) const {
        return double(X_.p) * rise(prior_.power, cluster.power - prior_.power) + prior_.power * prior_.log_rates -
               cluster.power * cluster.log_rates;
    }

  private:
    // Sum over columns of log(1 + weight x / rate).
    double logs(const Cluster& cluster, const double* x, double weight) const {
        double total = 0.0;
        for (i64 d = 0; d < X_.p; ++d) {
            const double factor = 1.0 + weight * x[d] / cluster.rate[std::size_t(d)];
            if (!(factor > LEAST_LEFT)) return NOT_A_NUMBER;
            total += std::log(factor);
        }
        return total;
    }
    void change(Cluster& cluster, i64 i, double weight) const {
        cluster.log_rates = 0.0;
        for (i64 d = 0; d < X_.p; ++d) {
            double& rate = cluster.rate[std::size_t(d)];
            rate += weight * X_(i, d);
            cluster.log_rates += std::log(rate);
        }
        cluster.power += shape_ * weight;
    }

    const MatIn X_;
    const In weight_;
    const double shape_;
    Cluster prior_;
};

}  // namespace
}  // namespace gibbs

using Drawn = std::tuple<i64, i64, double>;
using Table = std::tuple<In, Vec<const i32>, Rows>;

static gibbs::Csr csr_of(const Table& table) {
    const auto& [values, columns, starts] = table;
    return {values, columns, starts};
}

static Drawn gibbs_multinomial(Table table, In weight, In counts, gibbs::Turns turns, double log_alpha, Vec<i32> labels,
                               Out fresh) {
    return gibbs::draw(gibbs::Multinomial(csr_of(table), weight, counts), gibbs::draws_of(turns), log_alpha, labels,
                       fresh);
}

static Drawn gibbs_poisson(Table table, In weight, In shape, double rate, gibbs::Turns turns, double log_alpha,
                           Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Poisson(csr_of(table), weight, shape, rate), gibbs::draws_of(turns), log_alpha, labels,
                       fresh);
}

static Drawn gibbs_bernoulli(Table table, In weight, In ones, In zeros, gibbs::Turns turns, double log_alpha,
                             Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Bernoulli(csr_of(table), weight, ones, zeros), gibbs::draws_of(turns), log_alpha, labels,
                       fresh);
}

static Drawn gibbs_positive(MatIn X, In weight, In rate, double count, double shape, gibbs::Turns turns,
                            double log_alpha, Vec<i32> labels, Out fresh) {
    return gibbs::draw(gibbs::Positive(X, weight, rate, count, shape), gibbs::draws_of(turns), log_alpha, labels,
                       fresh);
}

#define TABLE "table(values[z], columns[z]<p, starts[N+1]), weight[N], "
#define TURNS "turns(order[N]<N, uniforms[n], pairs[P,2]<N, deals[P,N], accepts[P]), log_alpha, labels[N]<N, fresh[N]?)"
static const border::Kernel kernels[] = {
    border::kernel<gibbs_bernoulli>("gibbs_bernoulli(" TABLE "ones[p], zeros[p], " TURNS),
    border::kernel<gibbs_multinomial>("gibbs_multinomial(" TABLE "counts[p], " TURNS),
    border::kernel<gibbs_poisson>("gibbs_poisson(" TABLE "shape[p], rate, " TURNS),
    border::kernel<gibbs_positive>("gibbs_positive(X[N,p], weight[N], rate[p], count, shape, " TURNS),
};
static const border::Publish publish(kernels);
