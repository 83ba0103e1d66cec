#include "border.h"
#include "topics/cells.h"

namespace {

using corpus::entropic;
using corpus::Span;

// X(y + n) - X(y) with X(y) = y log y.
KF_INLINE double grown(double y, double n) { return entropic(y + n) - entropic(y); }

// What is left of a sum; of rounding nothing.
KF_INLINE double without(double all, double part, double tiny) { return all - part > tiny * part ? all - part : 0.0; }

}  // namespace

static i64 collapse_cells(In data, Labels indices, Rows indptr, In weight, In pseudo, double mix, In price, double top,
                          double tiny, MatOut words, Out size, MatOut documents, Vec<i32> labels) {
    Span(indptr, data.n);
    const double eta = corpus::sum_of(pseudo);
    i64 moved = 0;
    for (i64 j = 0; j < price.n; ++j) {
        const double factor = weight.n ? weight[j] : 1.0;
        if (factor == 0.0) continue;
        double* held = documents[j];
        for (i64 k = indptr[j]; k < indptr[j + 1]; ++k) {
            const i64 w = indices[k], p = labels[k];
            require(0 <= w && w < words.n, "indices must hold words");
            const double n = data[k], m = factor * n, prior = pseudo[w];
            double* word = words[w];
            word[p] = without(word[p], m, tiny);
            size[p] = without(size[p], m, tiny);
            held[p] = without(held[p], n, tiny);
            const auto cost_in = [&](i64 q) {  // which does not hold the cell
                const double change =
                    grown(size[q] + eta, m) - grown(word[q] + prior, m) - factor * mix * grown(held[q], n);
                return change + (held[q] == 0.0 ? factor * price[j] : 0.0);
            };
            const double stay = cost_in(p) + (size[p] == 0.0 ? top : 0.0);
            double best = stay - tiny * (1.0 + std::fabs(stay));
            i64 arg = p;
            for (i64 q = 0; q < size.n; ++q) {
                if (q == p || !(size[q] > 0.0)) continue;
                const double value = cost_in(q);
                if (value < best) best = value, arg = q;
            }
            word[arg] += m, size[arg] += m, held[arg] += n;
            labels[k] = i32(arg);
            moved += arg != p;
        }
    }
    return moved;
}

static const border::Kernel kernels[] = {
    border::kernel<collapse_cells>(
        "collapse_cells(data[c], indices[c], indptr[D+1], weight[D]?, pseudo[V], mix, price[D], top, tiny, words[V,G], "
        "size[G], documents[D,G], labels[c]<G)"),
};
static const border::Publish publish(kernels);
