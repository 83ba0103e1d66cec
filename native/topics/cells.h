// The cells of a document-term table, document by document or word by word.
#pragma once
#include <cmath>

#include "views.h"

namespace corpus {

// y log y, 0 at 0.
KF_INLINE double entropic(double y) { return y > 0.0 ? y * std::log(y) : 0.0; }

KF_INLINE double sum_of(In values) {
    double total = 0.0;
    for (const double value : values) total += value;
    return total;
}

template <class T> KF_INLINE bool all_below(Vec<const T> values, i64 below) {
    bool right = true;
    for (i64 i = 0; i < values.n; ++i) right &= values[i] >= 0 && i64(values[i]) < below;
    return right;
}

// Where the cells of documents (or words) first to last begin and end.
struct Span {
    i64 start, stop;
    Span(Rows indptr, i64 first, i64 last, i64 cells) {
        require(0 <= first && first <= last && last < indptr.n, "first and last are beyond indptr");
        start = indptr[first], stop = indptr[last];
        require(0 <= start && start <= stop && stop <= cells, "indptr is beyond the cells");
    }
    Span(Rows indptr, i64 cells) : Span(indptr, 0, indptr.n - 1, cells) {}
};

}  // namespace corpus
