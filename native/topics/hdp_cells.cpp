// The hard HDP on cells, up to the next topic that must be opened.
#include <algorithm>

#include "border.h"
#include "topics/cells.h"

namespace {

using corpus::entropic;

// The topics a document holds, oldest first: there is room for two a cell.
template <class T> Vec<T> held_by(i64 j, Rows indptr, Vec<T> held, i64 n_held) {
    require(0 <= n_held && n_held <= 2 * (indptr[j + 1] - indptr[j]), "n_held is beyond the cells of a document");
    return held.part(2 * indptr[j], 2 * indptr[j] + n_held);
}

// Fills the place to go on from, and says whether a topic must be opened there.
bool stopped(i64 outer, i64 inner, bool opens, Vec<i64> where) {
    where[0] = outer, where[1] = inner;
    return opens;
}

}  // namespace

static bool paper_cells(In data, Labels indices, Rows indptr, Rows order, Rows cells, MatIn prices, In pseudo,
                        In lam_local, double lam_global, In best, Rows arg, Vec<i32> held, Vec<i64> n_held,
                        Vec<i32> labels, Vec<i64> where) {
    corpus::Span(indptr, data.n);
    require(where[0] >= 0 && where[1] >= 0, "where is no place");
    const double eta = corpus::sum_of(pseudo), at_rest = entropic(eta);
    i64 t = where[0], i = where[1];
    for (; t < order.n; ++t, i = 0) {
        const i64 j = order[t];
        require(0 <= j && j < n_held.n, "order must hold documents");
        Vec<i32> mine = held_by(j, indptr, held, n_held[j]);
        require(corpus::all_below<i32>(mine, prices.p), "held must hold topics");
        for (; i < indptr[j + 1] - indptr[j]; ++i) {
            const i64 k = cells[indptr[j] + i];
            require(0 <= k && k < data.n, "cells must hold places of cells");
            const i64 w = indices[k];
            require(0 <= w && w < prices.n, "indices must hold words");
            const i64 cheapest = arg[w];
            const double n = data[k], *price = prices[w];
            double low = INF;
            i64 p = -1;
            bool outside = true;
            for (const i64 q : mine) {
                outside &= q != cheapest;
                const double value = n * price[q];
                if (value < low || (value == low && q < p)) low = value, p = q;
            }
            // outside the document only the best of all can win: where that is held, so is the winner
            const double value = n * best[w] + lam_local[j];
            const bool opens = outside && (value < low || (value == low && cheapest < p));
            if (opens) low = value, p = cheapest;
            const double alone = entropic(n + eta) - at_rest - entropic(n + pseudo[w]) + entropic(pseudo[w]);
            if (low > lam_local[j] + lam_global + alone) return stopped(t, i, true, where);
            if (opens) {
                require(0 <= p && p < prices.p, "arg must hold topics");
                mine = held_by(j, indptr, held, n_held[j] + 1);
                mine[n_held[j]++] = i32(p);
            }
            labels[k] = i32(p);
        }
    }
    return stopped(t, i, false, where);
}

static bool paper_clusters(In data, Labels indices, Rows indptr, MatIn prices, i64 n_topics, In pseudo,
                           double lam_global, Labels held, Rows n_held, Labels before, Vec<i32> labels,
                           Vec<i64> where) {
    corpus::Span(indptr, data.n);
    require(where[0] >= 0 && where[1] >= 0, "where is no place");
    require(0 <= n_topics && n_topics <= prices.p, "n_topics is beyond the prices");
    const double eta = corpus::sum_of(pseudo), at_rest = entropic(eta);
    const Room<double> room(n_topics);
    double* __restrict cost = room.data;
    i64 j = where[0], slot = where[1];
    for (; j < n_held.n; ++j, slot = 0) {
        const i64 start = indptr[j], stop = indptr[j + 1];
        const Labels mine = held_by(j, indptr, held, n_held[j]);
        for (; slot < mine.n; ++slot) {
            const i32 p = mine[slot];
            std::fill_n(cost, n_topics, 0.0);
            double size = 0.0, alone = -at_rest;
            for (i64 k = start; k < stop; ++k) {
                if (before[k] != p) continue;
                const i64 w = indices[k];
                require(0 <= w && w < prices.n, "indices must hold words");
                const double n = data[k], e = pseudo[w], *__restrict row = prices[w];
                for (i64 q = 0; q < n_topics; ++q) cost[q] += n * row[q];
                size += n;
                alone += entropic(e) - entropic(n + e);
            }
            alone += entropic(size + eta);
            double low = INF;
            i64 best = -1;
            for (i64 q = 0; q < n_topics; ++q)
                if (cost[q] < low) low = cost[q], best = q;
            if (low > lam_global + alone) return stopped(j, slot, true, where);
            for (i64 k = start; k < stop; ++k)
                if (before[k] == p) labels[k] = i32(best);
        }
    }
    return stopped(j, slot, false, where);
}

static const border::Kernel kernels[] = {
    border::kernel<paper_cells>(
        "paper_cells(data[c], indices[c], indptr[D+1], order[*], cells[c], prices[V,G], pseudo[V], lam_local[D], "
        "lam_global, best[V], arg[V], held[2c], n_held[D], labels[c], where[2])"),
    border::kernel<paper_clusters>(
        "paper_clusters(data[c], indices[c], indptr[D+1], prices[V,G], n_topics, pseudo[V], lam_global, held[2c], "
        "n_held[D], before[c], labels[c], where[2])"),
};
static const border::Publish publish(kernels);
