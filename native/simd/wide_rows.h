// Sums over the columns of one row and one centre, in WIDE double-precision chains on every machine.
//
// The rows may be single precision; every difference, product and sum is double. The chains are added in a fixed order.
#pragma once
#include "simd/vectors.h"

// Columns looked at together; what is left over of a row is the caller's.
constexpr int WIDE = 8;
// Bytes of a vector: wider ones take longer to add up than they save on rows of usual length.
constexpr int WIDE_BYTES = WIDTH < 32 ? WIDTH : 32;

// Halves added to halves.
KF_INLINE double sum_of_lanes(Lanes<double, 16> v) { return v[0] + v[1]; }
KF_INLINE double sum_of_lanes(Lanes<double, 32> v) {
    return sum_of_lanes(__builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3));
}

// Sum of term(x, other, total) over the columns below `stop`, a multiple of WIDE, of a shifted and scaled row.
template <class T, class Term> KF_INLINE double over_columns(const T* x, const double* shift, double factor,
                                                             const double* other, i64 stop, Term term) {
    using V = Lanes<double, WIDE_BYTES>;
    constexpr int W = WIDE_BYTES / 8, N = WIDE / W;
    V total[N] = {};
    const V by = splat<V>(factor);
    for (i64 j = 0; j < stop; j += WIDE)
        for (int v = 0; v < N; ++v) {
            const i64 at = j + v * W;
            total[v] = term((widened<T, W>(x + at) - load<V>(shift + at)) * by, load<V>(other + at), total[v]);
        }
    for (int half = N / 2; half; half /= 2)
        for (int v = 0; v < half; ++v) total[v] += total[half + v];
    return sum_of_lanes(total[0]);
}
