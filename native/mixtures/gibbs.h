// Partitions drawn one row at a time, and by splits and merges, with the parameters of clusters integrated out.
//
// A family F has a Cluster and says
//     empty()            one without rows
//     add(c, i)          row i comes in
//     remove(c, i)       row i goes; false if rounding left too few digits, and the cluster must be made anew
//     join(c, i)         log marginal of the cluster with row i less that without it
//     leave(c, i)        the same for a row that is in it; not a number where rounding leaves too few digits
//     marginal(c)        its log marginal
// All logs leave out what depends on the rows alone.
#pragma once
#include <cmath>
#include <utility>
#include <vector>

#include "views.h"

namespace gibbs {

// Share of a determinant, rate or sum that must be left when a row goes.
constexpr double LEAST_LEFT = 1e-6;
// Logs of chances this far below the largest are no chances.
constexpr double NO_CHANCE = -50.0;

double log_gamma(double x);
// log gamma(a + v) - log gamma(a)
double rise(double a, double v);

// What is drawn: uniform numbers made beforehand.
struct Draws {
    Rows order;            // rows in turn; also the order in which splits deal rows
    In uniforms;           // for the first of the turns; the other rows stay
    Mat<const i64> pairs;  // rows that splits and merges begin with
    MatIn deals;           // for each of the pairs and turns
    In accepts;            // for each of the pairs
};

using Turns = std::tuple<Rows, In, Mat<const i64>, MatIn, In>;

inline Draws draws_of(const Turns& turns) {
    const auto& [order, uniforms, pairs, deals, accepts] = turns;
    return {order, uniforms, pairs, deals, accepts};
}

template <class F> class Partition {
  public:
    Partition(const F& family, double log_alpha, Vec<i32> labels)
        : family_(family), log_alpha_(log_alpha), labels_(labels), logs_(labels.n + 1), empty_(family.empty()) {
        for (i64 n = 0; n <= labels.n; ++n) logs_[std::size_t(n)] = std::log(double(n));
        compact();
        for (i64 i = 0; i < labels.n; ++i) {
            while (std::size_t(labels[i]) >= slots_.size()) open();
            join(labels[i], i);
        }
    }

    void sweep(Rows order, In uniforms) {
        for (i64 t = 0; t < uniforms.n; ++t) visit(order[t], uniforms[t]);
    }

    // Splits and merges by sequential allocation (Dahl 2003); returns how many were accepted.
    i64 split_and_merge(const Draws& draws) {
        i64 accepted = 0;
        for (i64 m = 0; m < draws.pairs.n; ++m) {
            const i64 i = draws.pairs(m, 0), j = draws.pairs(m, 1);
            if (i == j) continue;
            if (labels_[i] == labels_[j]) accepted += split(i, j, draws.order, draws.deals[m], draws.accepts[m]);
            else accepted += merge(i, j, draws.order, draws.accepts[m]);
        }
        return accepted;
    }

    // Log marginal of all rows; labels are numbered as they come.
    double finish() {
        double total = 0.0;
        for (const i32 slot : active_) total += family_.marginal(at(slot).cluster);
        compact();
        return total;
    }

    i64 size() const { return i64(active_.size()); }

  private:
    using Cluster = typename F::Cluster;
    struct Slot {
        Cluster cluster;
        i64 rows = 0, place = 0;  // its place among the active ones
    };

    Slot& at(i64 slot) { return slots_[std::size_t(slot)]; }
    double log_of(i64 n) const { return logs_[std::size_t(n)]; }

    i32 open() {
        i32 slot;
        if (free_.empty()) {
            slot = i32(slots_.size());
            slots_.push_back({empty_});
        } else {
            slot = free_.back();
            free_.pop_back();
            at(slot).cluster = empty_, at(slot).rows = 0;
        }
        at(slot).place = i64(active_.size());
        active_.push_back(slot);
        return slot;
    }

    void close(i32 slot) {
        const i32 last = active_.back();
        active_[std::size_t(at(slot).place)] = last;
        at(last).place = at(slot).place;
        active_.pop_back();
        free_.push_back(slot);
    }

    void join(i32 slot, i64 i) {
        family_.add(at(slot).cluster, i);
        ++at(slot).rows;
        labels_[i] = slot;
    }

    // The cluster of a row, made anew without it.
    Cluster without(i64 i) {
        Cluster made = empty_;
        for (i64 j = 0; j < labels_.n; ++j)
            if (j != i && labels_[j] == labels_[i]) family_.add(made, j);
        return made;
    }

    void take_out(i64 i) {
        const i32 own = labels_[i];
        if (--at(own).rows == 0) close(own);
        else if (!family_.remove(at(own).cluster, i)) at(own).cluster = without(i);
    }

    void visit(i64 i, double uniform) {
        const i32 own = labels_[i];
        const i64 K = size();
        chances_.resize(std::size_t(K) + 1);
        double most = chances_.back() = log_alpha_ + family_.join(empty_, i);
        for (i64 k = 0; k < K; ++k) {
            const i32 slot = active_[std::size_t(k)];
            Slot& here = at(slot);
            double chance = -INF;
            if (slot != own) chance = log_of(here.rows) + family_.join(here.cluster, i);
            else if (here.rows > 1) {
                double value = family_.leave(here.cluster, i);
                if (!(value == value)) value = family_.join(without(i), i);
                chance = log_of(here.rows - 1) + value;
            }
            chances_[std::size_t(k)] = chance;
            most = larger(most, chance);
        }
        const i64 chosen = choose(most, uniform);
        if (chosen == K) {
            if (at(own).rows == 1) return;
            take_out(i);
            join(open(), i);
        } else if (const i32 slot = active_[std::size_t(chosen)]; slot != own) {
            take_out(i);
            join(slot, i);
        }
    }

    i64 choose(double most, double uniform) {
        double total = 0.0;
        for (double& chance : chances_) {
            const double below = chance - most;
            chance = below > NO_CHANCE ? std::exp(below) : 0.0;
            total += chance;
        }
        const double aim = uniform * total;
        double sum = 0.0;
        i64 last = i64(chances_.size()) - 1;
        for (i64 k = 0; k < i64(chances_.size()); ++k) {
            if (chances_[std::size_t(k)] == 0.0) continue;
            sum += chances_[std::size_t(k)];
            last = k;
            if (sum > aim) break;
        }
        return last;
    }

    // Two clusters that rows are dealt to, one after the other.
    struct Halves {
        Cluster one, two;
        i64 n_one = 1, n_two = 1;
        double log_chance = 0.0;
    };

    Halves begin(i64 i, i64 j) {
        Halves halves{empty_, empty_};
        family_.add(halves.one, i);
        family_.add(halves.two, j);
        return halves;
    }

    // Log of the odds that a row goes to the first half.
    double odds(Halves& halves, i64 i) {
        const double one = log_of(halves.n_one) + family_.join(halves.one, i);
        return one - log_of(halves.n_two) - family_.join(halves.two, i);
    }

    void deal(Halves& halves, i64 i, double odds, bool first) {
        halves.log_chance -= softplus(first ? -odds : odds);
        family_.add(first ? halves.one : halves.two, i);
        ++(first ? halves.n_one : halves.n_two);
    }

    static double softplus(double x) { return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

    // Log posterior of two clusters less that of the one they make.
    double gain(const Halves& halves, const Cluster& whole) {
        const double sizes = log_gamma(double(halves.n_one)) + log_gamma(double(halves.n_two)) -
                             log_gamma(double(halves.n_one + halves.n_two));
        return log_alpha_ + sizes + family_.marginal(halves.one) + family_.marginal(halves.two) -
               family_.marginal(whole);
    }

    bool split(i64 i, i64 j, Rows order, const double* deals, double accept) {
        const i32 own = labels_[i];
        Halves halves = begin(i, j);
        moved_.clear();
        for (i64 t = 0; t < order.n; ++t) {
            const i64 row = order[t];
            if (labels_[row] != own || row == i || row == j) continue;
            const double log_odds = odds(halves, row);
            const bool first = deals[t] < 1.0 / (1.0 + std::exp(-log_odds));
            deal(halves, row, log_odds, first);
            if (!first) moved_.push_back(row);
        }
        if (!(std::log(accept) < gain(halves, at(own).cluster) - halves.log_chance)) return false;
        const i32 other = open();
        labels_[j] = other;
        for (const i64 row : moved_) labels_[row] = other;
        at(own).cluster = std::move(halves.one), at(own).rows = halves.n_one;
        at(other).cluster = std::move(halves.two), at(other).rows = halves.n_two;
        return true;
    }

    bool merge(i64 i, i64 j, Rows order, double accept) {
        const i32 own = labels_[i], other = labels_[j];
        const bool keep_own = at(own).rows >= at(other).rows;
        Cluster whole = at(keep_own ? own : other).cluster;
        for (i64 row = 0; row < labels_.n; ++row)
            if (labels_[row] == (keep_own ? other : own)) family_.add(whole, row);
        const Halves present{at(own).cluster, at(other).cluster, at(own).rows, at(other).rows, 0.0};
        // a chance of the way back is at most one: most merges end here
        const double needed = std::log(accept) + gain(present, whole);
        if (!(needed < 0.0)) return false;
        Halves halves = begin(i, j);
        for (i64 t = 0; t < order.n; ++t) {
            const i64 row = order[t];
            const i32 label = labels_[row];
            if ((label != own && label != other) || row == i || row == j) continue;
            deal(halves, row, odds(halves, row), label == own);
            if (!(needed < halves.log_chance)) return false;
        }
        if (!(needed < halves.log_chance)) return false;
        for (i64 row = 0; row < labels_.n; ++row)
            if (labels_[row] == other) labels_[row] = own;
        at(own).rows += at(other).rows;
        at(own).cluster = std::move(whole);
        close(other);
        return true;
    }

    // Labels in the order in which rows have them first.
    void compact() {
        std::vector<i32> number(std::size_t(labels_.n), -1);
        i32 next = 0;
        for (i64 i = 0; i < labels_.n; ++i) {
            i32& own = number[std::size_t(labels_[i])];
            if (own < 0) own = next++;
            labels_[i] = own;
        }
    }

    const F& family_;
    const double log_alpha_;
    const Vec<i32> labels_;
    std::vector<double> logs_, chances_;
    const Cluster empty_;
    std::vector<Slot> slots_;
    std::vector<i32> active_, free_;
    std::vector<i64> moved_;
};

void check_draws(const Draws& draws, i64 rows);

// Draws all rows in turn, then tries splits and merges; fills `fresh` (if it is wanted) with log marginals of clusters
// of single rows. Returns numbers of clusters and of accepted proposals, and the log marginal of all rows.
template <class F>
std::tuple<i64, i64, double> draw(const F& family, const Draws& draws, double log_alpha, Vec<i32> labels, Out fresh) {
    check_draws(draws, labels.n);
    const typename F::Cluster empty = family.empty();
    for (i64 i = 0; i < fresh.n; ++i) fresh[i] = family.join(empty, i);
    Partition<F> partition(family, log_alpha, labels);
    partition.sweep(draws.order, draws.uniforms);
    const i64 accepted = partition.split_and_merge(draws);
    const i64 clusters = partition.size();
    return {clusters, accepted, partition.finish()};
}

}  // namespace gibbs
