// Documents as facility location: which topics to open when every open one costs a price.
#include <algorithm>

#include "border.h"
#include "topics/cells.h"

namespace {

// Memory for one document at a time: what its cells cost, and what is known of the open topics.
struct Location {
    Location(i64 longest, i64 G)
        : costs(longest * G), best(longest), second(longest), arg(longest), gain(G), loss(G * G), is_open(G) {}

    double settle();
    struct Move {
        double saved;
        i64 opened, closed;  // -1: none
    };
    Move best_move(double price);
    double descend(double price);
    i64 n_open() const {
        i64 count = 0;
        for (const bool open : is_open) count += open;
        return count;
    }

    Room<double> costs, best, second;  // (cells, G); the two least of every cell among open topics
    Room<i64> arg;
    Room<double> gain, loss;  // of opening p; of closing q where p is opened, (G, G)
    Room<bool> is_open;
    MatOut cost;  // of this document
};

// The two least costs of every cell among open topics; returns the sum of the least.
double Location::settle() {
    double total = 0.0;
    for (i64 t = 0; t < cost.n; ++t) {
        double low = INF, next = INF;
        i64 at = -1;
        for (i64 p = 0; p < cost.p; ++p) {
            if (!is_open[p]) continue;
            const double value = cost[t][p];
            if (value < low) next = low, low = value, at = p;
            else if (value < next) next = value;
        }
        require(at >= 0, "a cell costs infinitely much in all topics of its document");
        best[t] = low, second[t] = next, arg[t] = at;
        total += low;
    }
    return total;
}

// The opening, closing or exchange that saves most.
Location::Move Location::best_move(double price) {
    const i64 G = cost.p;
    std::fill(gain.begin(), gain.end(), 0.0);
    for (i64 q = 0; q < G; ++q)
        if (is_open[q]) std::fill_n(loss.data + q * G, G, 0.0);
    for (i64 t = 0; t < cost.n; ++t) {
        const double low = best[t], high = second[t], *__restrict row = cost[t];
        double* __restrict gained = gain.data, * __restrict lost = loss.data + arg[t] * G;
        for (i64 p = 0; p < G; ++p) {
            gained[p] += larger(0.0, low - row[p]);
            lost[p] += smaller(high, larger(row[p], low)) - low;
        }
    }
    const bool may_close = n_open() > 1;
    Move top{0.0, -1, -1};
    for (i64 p = 0; p < G; ++p) {
        if (is_open[p]) {
            if (!may_close) continue;
            double lost = 0.0;  // its cells go to their second best
            for (i64 t = 0; t < cost.n; ++t)
                if (arg[t] == p) lost += second[t] - best[t];
            if (price - lost > top.saved) top = {price - lost, -1, p};
            continue;
        }
        if (gain[p] - price > top.saved) top = {gain[p] - price, p, -1};
        for (i64 q = 0; q < G; ++q)
            if (is_open[q] && gain[p] - loss[q * G + p] > top.saved) top = {gain[p] - loss[q * G + p], p, q};
    }
    return top;
}

// Best moves until none saves anything; returns the cost with the price of the open topics.
double Location::descend(double price) {
    double total = settle();
    while (true) {
        const Move move = best_move(price);
        if ((move.opened < 0 && move.closed < 0) || move.saved <= 1e-10 * (price + total)) break;
        if (move.opened >= 0) is_open[move.opened] = true;
        if (move.closed >= 0) is_open[move.closed] = false;
        total = settle();
    }
    return total + price * double(n_open());
}

// The topic in which all cells together cost least.
i64 best_single(MatIn cost, double* __restrict total) {
    std::fill_n(total, cost.p, 0.0);
    for (i64 t = 0; t < cost.n; ++t)
        for (i64 p = 0; p < cost.p; ++p) total[p] += cost[t][p];
    i64 arg = 0;
    double least = INF;
    for (i64 p = 0; p < cost.p; ++p)
        if (total[p] < least) arg = p, least = total[p];
    return arg;
}

}  // namespace

static void place_documents(In data, Labels indices, Rows indptr, i64 first, i64 last, MatIn cost, In price,
                            Vec<i32> labels) {
    const corpus::Span all(indptr, first, last, data.n);
    const i64 G = cost.p;
    require(corpus::all_below<i32>(labels.part(all.start, all.stop), G), "labels must hold indices of topics");
    require(corpus::all_below(indices.part(all.start, all.stop), cost.n), "indices must hold words");
    i64 longest = 0;
    for (i64 j = first; j < last; ++j) longest = larger(longest, indptr[j + 1] - indptr[j]);
    Location here(longest, G);
    Room<bool> held(G);
    for (i64 j = first; j < last; ++j) {
        const i64 start = indptr[j], u = indptr[j + 1] - start;
        if (u == 0) continue;
        const MatOut mine = here.cost = here.costs.as(u, G);
        std::fill(held.begin(), held.end(), false);
        double now = 0.0;
        for (i64 t = 0; t < u; ++t) {
            const double n = data[start + t], *__restrict from = cost[indices[start + t]];
            double* __restrict to = mine[t];
            for (i64 p = 0; p < G; ++p) to[p] = n * from[p];
            held[labels[start + t]] = true;
            now += to[labels[start + t]];
        }
        for (i64 p = 0; p < G; ++p) now += price[j] * double(held[p]);
        const i64 single = best_single(mine, here.gain.data);
        for (int attempt = 0; attempt < 2; ++attempt) {
            for (i64 p = 0; p < G; ++p) here.is_open[p] = attempt == 0 ? held[p] : p == single;
            const double total = here.descend(price[j]);
            if (!(total < now - 1e-10 * (price[j] + now))) continue;
            now = total;
            for (i64 t = 0; t < u; ++t) labels[start + t] = i32(here.arg[t]);
        }
    }
}

static const border::Kernel kernels[] = {
    border::kernel<place_documents>(
        "place_documents(data[c], indices[c], indptr[D+1], first, last, cost[V,G], price[D], labels[c])"),
};
static const border::Publish publish(kernels);
