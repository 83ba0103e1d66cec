// Hard topics: counts by label, changes of the objective by merges, documents solved anew, fold-in.
#include <algorithm>
#include <memory>

#include "border.h"
#include "simd/wide.h"
#include "topics/cells.h"

namespace {

using corpus::entropic;
using corpus::Span;

// Steps of labels and shares before topics are dropped.
constexpr int STEPS = 5;

// One document at a time, by the topics that it holds, which are numbered in the order of their first cells.
class Mending {
  public:
    Mending(i64 longest, i64 G)
        : counts_(G), change_(G), toll_(G), added_(G * G), held_(G), place_(G, -1), own_(longest), target_(longest) {}

    void mend(In data, Labels indices, MatIn cost, double mix, double price, Vec<i32> labels) {
        data_ = data, cells_ = data.n;
        list_held(labels);
        if (n_ < 2) return;
        gather(indices, cost);
        const double length = corpus::sum_of(data);
        int steps = 0;
        while (set_tolls(mix, length) > 1) {
            find_others();
            if (steps < STEPS) {
                ++steps;
                if (relabel()) continue;
                steps = STEPS;
            }
            if (!drop_one(mix, price)) break;
        }
        for (i64 c = 0; c < cells_; ++c) labels[c] = held_[own_[c]];
    }

  private:
    void list_held(Labels labels) {
        n_ = 0;
        for (i64 c = 0; c < cells_; ++c) {
            const i32 p = labels[c];
            if (place_[p] < 0) place_[p] = n_, held_[n_++] = p;
            own_[c] = place_[p];
        }
        for (i64 i = 0; i < n_; ++i) place_[held_[i]] = -1;
    }

    // Costs of the cells in the held topics, side by side: they are looked at many times.
    void gather(Labels indices, MatIn cost) {
        if (near_->n < cells_ * n_) near_ = std::make_unique<Room<double>>(cells_ * n_);
        for (i64 c = 0; c < cells_; ++c) {
            const double* row = cost[indices[c]];
            double* to = near(c);
            for (i64 i = 0; i < n_; ++i) to[i] = row[held_[i]];
        }
    }

    // Tokens of the held topics, and what a token pays in each for its share; returns how many have any.
    i64 set_tolls(double mix, double length) {
        std::fill_n(counts_.data, n_, 0.0);
        for (i64 c = 0; c < cells_; ++c) counts_[own_[c]] += data_[c];
        i64 alive = 0;
        for (i64 i = 0; i < n_; ++i) {
            toll_[i] = counts_[i] > 0.0 ? -mix * std::log(counts_[i] / length) : INF;
            alive += counts_[i] > 0.0;
        }
        return alive;
    }

    // For every cell the topic but its own in which it costs least, the first of equals.
    void find_others() {
        bool found = true;
        for (i64 c = 0; c < cells_; ++c) {
            const double *costs = near(c), *toll = toll_.data;
            const i64 mine = own_[c];
            double least = INF;
            i64 arg = -1;
            for (i64 i = 0; i < n_; ++i) {
                const double value = costs[i] + toll[i];
                const bool better = (value < least) & (i != mine);  // no branch, as it could not be foreseen
                least = better ? value : least, arg = better ? i : arg;
            }
            target_[c] = arg;
            found &= arg >= 0;
        }
        require(found, "a cell costs infinitely much in all other topics of its document");
    }

    // Every cell to its best held topic; returns whether any moved.
    bool relabel() {
        bool moved = false;
        for (i64 c = 0; c < cells_; ++c) {
            const double* costs = near(c);
            const i64 here = own_[c], there = target_[c];
            const bool better = costs[there] + toll_[there] < costs[here] + toll_[here];
            own_[c] = better ? there : here;
            moved |= better;
        }
        return moved;
    }

    // Moves the cells of the topic whose removal saves most to their best others; false if none saves anything.
    bool drop_one(double mix, double price) {
        std::fill_n(added_.data, n_ * n_, 0.0);
        for (i64 i = 0; i < n_; ++i) change_[i] = mix * entropic(counts_[i]);
        for (i64 c = 0; c < cells_; ++c) {
            const i64 i = own_[c], other = target_[c];
            added_[i * n_ + other] += data_[c];
            change_[i] += data_[c] * (near(c)[other] - near(c)[i]);
        }
        double best = -1e-10 * (1.0 + price);
        i64 drop = -1;
        for (i64 i = 0; i < n_; ++i) {
            if (counts_[i] == 0.0) continue;
            for (i64 q = 0; q < n_; ++q) {
                const double more = added_[i * n_ + q];
                if (more > 0.0) change_[i] += mix * (entropic(counts_[q]) - entropic(counts_[q] + more));
            }
            if (change_[i] - price < best) best = change_[i] - price, drop = i;
        }
        for (i64 c = 0; c < cells_; ++c)
            if (own_[c] == drop) own_[c] = target_[c];
        return drop >= 0;
    }

    double* near(i64 c) { return near_->data + c * n_; }

    In data_;
    i64 cells_ = 0, n_ = 0;
    Room<double> counts_, change_, toll_, added_;
    Room<i32> held_;
    Room<i64> place_, own_, target_;
    // (cells, n), made larger where a document needs it
    std::unique_ptr<Room<double>> near_ = std::make_unique<Room<double>>(0);
};

using Eight = Wide<double, 8>;

double product(const double* __restrict a, const double* __restrict b, i64 n) {
    Eight lanes{};
    i64 i = 0;
    for (; i + 8 <= n; i += 8) lanes += Eight::at(a + i) * Eight::at(b + i);
    double total = sum_of_lanes(lanes);
    for (; i < n; ++i) total += a[i] * b[i];
    return total;
}

// One step of the shares of a document; returns how far they move.
double step_of_shares(const double* __restrict sums, double prior, double length, Out theta) {
    const double each = prior / double(theta.n), all = length + prior;
    double* __restrict share = theta.data;
    Eight lanes{};
    i64 p = 0;
    for (; p + 8 <= theta.n; p += 8) {
        const Eight old = Eight::at(share + p), value = (old * Eight::at(sums + p) + each) / all, gap = value - old;
        lanes += larger(gap, 0.0 - gap);
        value.put(share + p);
    }
    double moved = sum_of_lanes(lanes);
    for (; p < theta.n; ++p) {
        const double value = (share[p] * sums[p] + each) / all;
        moved += std::fabs(value - share[p]);
        share[p] = value;
    }
    return moved;
}

}  // namespace

static void count_labels(In data, Labels indices, Rows indptr, In weight, Labels labels, MatOut words,
                         MatOut documents) {
    Span(indptr, data.n);
    for (i64 j = 0; j < documents.p; ++j) {
        const double factor = weight.n ? weight[j] : 1.0;
        for (i64 k = indptr[j]; k < indptr[j + 1]; ++k) {
            words(labels[k], indices[k]) += factor * data[k];
            documents(labels[k], j) += data[k];
        }
    }
}

static void merge_changes(Mat<const i64> pairs, MatIn words, In pseudo, MatIn documents, In weight, In price,
                          double mix, Out change) {
    for (i64 t = 0; t < pairs.n; ++t) {
        const i64 p = pairs[t][0], q = pairs[t][1];
        double both = 0.0;
        for (i64 w = 0; w < words.p; ++w) {
            const double a = words[p][w], b = words[q][w], e = pseudo[w];
            if (a > 0.0 && b > 0.0)  // elsewhere nothing changes
                both += entropic(a + b + e) - entropic(a + e) - entropic(b + e) + entropic(e);
        }
        double held = 0.0;
        for (i64 j = 0; j < documents.p; ++j) {
            const double a = documents[p][j], b = documents[q][j];
            if (!(a > 0.0 && b > 0.0)) continue;
            const double saved = mix * (entropic(a + b) - entropic(a) - entropic(b)) + price[j];
            held += weight.n ? saved * weight[j] : saved;
        }
        change[t] = -both - held;
    }
}

static void mend_documents(In data, Labels indices, Rows indptr, i64 first, i64 last, MatIn cost, double mix, In price,
                           Vec<i32> labels) {
    const Span all(indptr, first, last, data.n);
    require(corpus::all_below<i32>(labels.part(all.start, all.stop), cost.p), "labels must hold indices of topics");
    require(corpus::all_below(indices.part(all.start, all.stop), cost.n), "indices must hold words");
    i64 longest = 0;
    for (i64 j = first; j < last; ++j) longest = larger(longest, indptr[j + 1] - indptr[j]);
    Mending mending(longest, cost.p);
    for (i64 j = first; j < last; ++j) {
        const i64 start = indptr[j], stop = indptr[j + 1];
        mending.mend(data.part(start, stop), indices.part(start, stop), cost, mix, price[j], labels.part(start, stop));
    }
}

static void fold_in(In data, Labels indices, Rows indptr, i64 first, i64 last, MatIn topics, double prior, i64 max_iter,
                    double tol, MatOut share) {
    const Span all(indptr, first, last, data.n);
    require(corpus::all_below(indices.part(all.start, all.stop), topics.n), "indices must hold words");
    const i64 G = topics.p;
    const Room<double> room(G);
    double* __restrict sums = room.data;
    for (i64 j = first; j < last; ++j) {
        const i64 start = indptr[j], stop = indptr[j + 1];
        const double length = corpus::sum_of(data.part(start, stop));
        const Out theta = share.row(j);
        std::fill(theta.begin(), theta.end(), 1.0 / double(G));
        for (i64 step = 0; step < max_iter; ++step) {
            std::fill_n(sums, G, 0.0);
            for (i64 k = start; k < stop; ++k) {
                const double* __restrict row = topics[indices[k]], ratio = data[k] / product(theta.data, row, G);
                for (i64 p = 0; p < G; ++p) sums[p] += ratio * row[p];
            }
            if (step_of_shares(sums, prior, length, theta) < tol) break;
        }
    }
}

static const border::Kernel kernels[] = {
    border::kernel<count_labels>(
        "count_labels(data[c], indices[c]<V, indptr[D+1], weight[D]?, labels[c]<G, words[G,V], documents[G,D])"),
    border::kernel<fold_in>(
        "fold_in(data[c], indices[c], indptr[D+1], first, last, topics[V,G], prior, max_iter, tol, share[D,G])"),
    border::kernel<mend_documents>(
        "mend_documents(data[c], indices[c], indptr[D+1], first, last, cost[V,G], mix, price[D], labels[c])"),
    border::kernel<merge_changes>(
        "merge_changes(pairs[n,2]<G, words[G,V], pseudo[V], documents[G,D], weight[D]?, price[D], mix, change[n])"),
};
static const border::Publish publish(kernels);
