// The register tile of a matrix product, fused with the search for the two least entries of each row.
//
// Each entry is one chain of multiply-adds over the columns: the result does not depend on block or position.
#pragma once
#include "simd/pack.h"

// Centres that share one load of the rows: with two vectors of rows, 8 chains of multiply-adds keep two units busy.
constexpr int GROUP = 4;

// Centres in groups of GROUP with columns outside, the order in which the tile reads them, and their offsets.
template <class R> struct Panels {
    const i64 K, p, count;
    const Room<R> coef, offset;
    Panels(Mat<const R> from, Vec<const R> at)
        : K(from.n),
          p(from.p),
          count((from.n + GROUP - 1) / GROUP),
          coef(count * p * GROUP, R(0)),
          offset(count * GROUP, std::numeric_limits<R>::infinity()) {
        for (i64 k = 0; k < K; ++k) {
            offset[k] = at[k];
            for (i64 j = 0; j < p; ++j) coef[(k / GROUP * p + j) * GROUP + k % GROUP] = from[k][j];
        }
    }
};

// The two least values that each lane has seen, and the index of the least; a tie goes to the one that came first.
template <class R> struct TwoLeast {
    using V = Lanes<R>;
    using Index = Lanes<std::conditional_t<sizeof(R) == 4, i32, i64>>;
    V best = splat<V>(std::numeric_limits<R>::infinity()), next = best;
    V index{};  // the bits of whole numbers, as one mask then serves all

    // In the form of the machine's min and max.
    KF_INLINE void see(V value, Index mine) {
        const V loser = best > value ? best : value;
        index = value < best ? (V)mine : index;
        best = value < best ? value : best;
        next = loser < next ? loser : next;
    }
};

KF_INLINE void store_wide(double* at, Lanes<double> value) { store(at, value); }
KF_INLINE void store_wide(double* at, Lanes<float> value) {  // half by half, as registers have room for no more
    float parts[WIDTH / 4];
    store(parts, value);
    store(at, widened<float, WIDTH / 8>(parts));
    store(at + WIDTH / 8, widened<float, WIDTH / 8>(parts + WIDTH / 8));
}
KF_INLINE void store_labels(i32* at, Lanes<i32> value) { store(at, value); }
KF_INLINE void store_labels(i32* at, Lanes<i64> value) {
    store(at, __builtin_convertvector(value, Lanes<i32, WIDTH / 2>));
}

// Least, second least and index of the least of offset[k] - <row, coef[k]> for the rows of one tile (p, LANES).
// A tie goes to the lower index.
template <class R>
KF_INLINE void two_least(const R* tile, const Panels<R>& centres, i32* labels, double* least, double* second) {
    using V = Lanes<R>;
    constexpr int L = WIDTH / int(sizeof(R));
    const i64 p = centres.p;
    TwoLeast<R> seen[2];
    typename TwoLeast<R>::Index mine{};
    const R *coef = centres.coef.data, *offset = centres.offset.data;
    for (i64 panel = 0; panel < centres.count; ++panel, coef += p * GROUP, offset += GROUP) {
        V cost[GROUP][2];
        for (int g = 0; g < GROUP; ++g) cost[g][0] = cost[g][1] = splat<V>(offset[g]);
        for (i64 j = 0; j < p; ++j) {
            const V a = load<V>(tile + j * 2 * L), b = load<V>(tile + j * 2 * L + L);
            for (int g = 0; g < GROUP; ++g) {
                const V c = splat<V>(coef[j * GROUP + g]);
                cost[g][0] -= a * c;
                cost[g][1] -= b * c;
            }
        }
        for (int g = 0; g < GROUP; ++g, mine += 1)
            for (int v = 0; v < 2; ++v) seen[v].see(cost[g][v], mine);
    }
    for (int v = 0; v < 2; ++v) {
        store_labels(labels + v * L, (typename TwoLeast<R>::Index)seen[v].index);
        store_wide(least + v * L, seen[v].best);
        store_wide(second + v * L, seen[v].next);
    }
}
