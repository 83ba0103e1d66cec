// Means of features from their sums, S A = T: parts that the kernels share.
#pragma once
#include "views.h"

namespace features {

template <class T> KF_INLINE void copy(i64 n, const T* __restrict from, T* __restrict to) {
    for (i64 i = 0; i < n; ++i) to[i] = from[i];
}

// to += factor * from
KF_INLINE void add(i64 n, double factor, const double* __restrict from, double* __restrict to) {
    for (i64 i = 0; i < n; ++i) to[i] += factor * from[i];
}

// The product of each row with x, each summed in order: several rows at a time, as one sum waits for itself.
KF_INLINE void products_in_order(MatIn A, i64 rows, const double* x, double* out) {
    constexpr int MANY = 4;
    i64 k = 0;
    for (; k + MANY <= rows; k += MANY) {
        double sum[MANY] = {};
        for (i64 d = 0; d < A.p; ++d)
            for (int r = 0; r < MANY; ++r) sum[r] += A(k + r, d) * x[d];
        for (int r = 0; r < MANY; ++r) out[k + r] = sum[r];
    }
    for (; k < rows; ++k) {
        double sum = 0.0;
        for (i64 d = 0; d < A.p; ++d) sum += A(k, d) * x[d];
        out[k] = sum;
    }
}

// S = Z'WZ and T = Z'WX; z and wz are room for Z and WZ.
void fill_sums(MatIn X, In weight, Mat<const u8> Z, MatOut z, MatOut wz, MatOut S, MatOut T);

// G = A A'
void fill_gram(MatIn A, MatOut G);

// M = S^-1, A = M T, G = A A'; returns whether S was positive definite.
bool invert(MatIn S, MatIn T, MatOut M, MatOut A, MatOut G);

}  // namespace features
