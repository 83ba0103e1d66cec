// Products of rows of double precision whose sums stay in registers. For files that are contracted.
#pragma once
#include "simd/vectors.h"

// Chains of multiply-adds that a sum is made of, on every machine.
constexpr int CHAINS = 8;

// `total` and the sum of products of n pairs, n below CHAINS: one after the other, but not in a loop, of which
// compilers make vector code that is slow for so few.
KF_INLINE double few_products(double total, const double* a, const double* b, i64 n) {
    if (n & 4) {
        total += a[0] * b[0], total += a[1] * b[1], total += a[2] * b[2], total += a[3] * b[3];
        a += 4, b += 4;
    }
    if (n & 2) {
        total += a[0] * b[0], total += a[1] * b[1];
        a += 2, b += 2;
    }
    return n & 1 ? total + a[0] * b[0] : total;
}

// Sum of products of n pairs: chains side by side, added in a fixed order.
KF_INLINE double product(const double* a, const double* b, i64 n) {
    constexpr int W = WIDTH / 8, N = CHAINS / W;
    typedef Lanes<double> V;
    double total = 0.0;
    const i64 rest = n % CHAINS, whole = n - rest;
    if (whole > 0) {
        V sums[N] = {};
        for (i64 j = 0; j < whole; j += CHAINS)
            for (int v = 0; v < N; ++v) sums[v] += load<V>(a + j + v * W) * load<V>(b + j + v * W);
        double lane[CHAINS];
        for (int v = 0; v < N; ++v) store(lane + v * W, sums[v]);
        for (int half = CHAINS / 2; half; half /= 2)
            for (int c = 0; c < half; ++c) lane[c] += lane[half + c];
        total = lane[0];
    }
    return few_products(total, a + whole, b + whole, rest);
}

// Rows that are looked at side by side: entry j of row i is at j * ABREAST + i.
constexpr int ABREAST = 16;

namespace abreast {

typedef Lanes<double> V;
constexpr int W = WIDTH / 8, PARTS = ABREAST / W;

// Products of all rows with two others.
KF_INLINE void two_products(const double* rows, const double* one, const double* two, i64 columns, V (&first)[PARTS],
                            V (&second)[PARTS]) {
    for (int v = 0; v < PARTS; ++v) first[v] = second[v] = V{};
    for (i64 j = 0; j < columns; ++j) {
        const V a = splat<V>(one[j]), b = splat<V>(two[j]);
        for (int v = 0; v < PARTS; ++v) {
            const V mine = load<V>(rows + j * ABREAST + v * W);
            first[v] += a * mine;
            second[v] += b * mine;
        }
    }
}

// Whether any bit is set.
template <class M> KF_INLINE bool any(M mask) {
    if constexpr (sizeof(M) == 64)
        return any(__builtin_shufflevector(mask, mask, 0, 1, 2, 3) | __builtin_shufflevector(mask, mask, 4, 5, 6, 7));
    else if constexpr (sizeof(M) == 32)
        return any(__builtin_shufflevector(mask, mask, 0, 1) | __builtin_shufflevector(mask, mask, 2, 3));
    else return (mask[0] | mask[1]) != 0;
}

KF_INLINE bool any_above(const V (&values)[PARTS], const double* least) {
    auto above = values[0] > load<V>(least);
    for (int v = 1; v < PARTS; ++v) above |= values[v] > load<V>(least + v * W);
    return any(above);
}

}  // namespace abreast
