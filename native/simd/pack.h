// Rows laid out as the register tile reads them: a row in each lane, columns outside.
//
// Four rows are turned at a time, four columns, then two, then one: a transposition in registers, where a scalar loop
// stores every entry on its own.
#pragma once
#include "simd/vectors.h"

// Rows of a tile: two vectors side by side.
template <class R> constexpr int LANES = 2 * WIDTH / int(sizeof(R));

template <class T> struct FourRows {
    const T* at[4];
    double factor[4];
};

// tile[j, r] = (row r [j] - shift[j]) * factor r, computed in double precision, for W columns from `column` on.
template <int W, bool SCALED, class R, class T>
KF_INLINE void turn(const FourRows<T>& rows, const double* shift, R* tile, i64 column) {
    R* out = tile + column * LANES<R>;
    if constexpr (W == 1) {
        for (int r = 0; r < 4; ++r) {
            const double value = double(rows.at[r][column]) - shift[column];
            out[r] = R(SCALED ? value * rows.factor[r] : value);
        }
    } else {
        typedef Lanes<double, 8 * W> D;
        typedef Lanes<R, int(sizeof(R)) * W> Line;
        const D less = load<D>(shift + column);
        Line line[4];
        for (int r = 0; r < 4; ++r) {
            D value = widened<T, W>(rows.at[r] + column) - less;
            if constexpr (SCALED) value *= splat<D>(rows.factor[r]);
            line[r] = __builtin_convertvector(value, Line);
        }
        if constexpr (W == 2) {
            const auto a = __builtin_shufflevector(line[0], line[1], 0, 1, 2, 3);
            const auto b = __builtin_shufflevector(line[2], line[3], 0, 1, 2, 3);
            store(out, __builtin_shufflevector(a, b, 0, 2, 4, 6));
            store(out + LANES<R>, __builtin_shufflevector(a, b, 1, 3, 5, 7));
        } else {
            static_assert(W == 4);
            const auto a = __builtin_shufflevector(line[0], line[1], 0, 4, 1, 5);
            const auto b = __builtin_shufflevector(line[2], line[3], 0, 4, 1, 5);
            const auto c = __builtin_shufflevector(line[0], line[1], 2, 6, 3, 7);
            const auto d = __builtin_shufflevector(line[2], line[3], 2, 6, 3, 7);
            store(out, __builtin_shufflevector(a, b, 0, 1, 4, 5));
            store(out + LANES<R>, __builtin_shufflevector(a, b, 2, 3, 6, 7));
            store(out + 2 * LANES<R>, __builtin_shufflevector(c, d, 0, 1, 4, 5));
            store(out + 3 * LANES<R>, __builtin_shufflevector(c, d, 2, 3, 6, 7));
        }
    }
}

template <bool SCALED, class R, class T>
KF_INLINE void pack_rows(Mat<const T> X, const i64* rows, i64 n, In shift, In scale, R* tiles) {
    const i64 p = X.p, whole = p & ~i64(3);
    i64 t = 0;
    for (; t + 4 <= n; t += 4) {
        R* tile = tiles + t / LANES<R> * LANES<R> * p + t % LANES<R>;
        FourRows<T> four;
        for (int r = 0; r < 4; ++r) {
            four.at[r] = X[rows[t + r]];
            if constexpr (SCALED) four.factor[r] = scale[rows[t + r]];
        }
        for (i64 j = 0; j < whole; j += 4) turn<4, SCALED>(four, shift.data, tile, j);
        if (p & 2) turn<2, SCALED>(four, shift.data, tile, whole);
        if (p & 1) turn<1, SCALED>(four, shift.data, tile, p - 1);
    }
    for (; t < n; ++t) {
        const T* x = X[rows[t]];
        R* tile = tiles + t / LANES<R> * LANES<R> * p + t % LANES<R>;
        for (i64 j = 0; j < p; ++j) {
            const double value = double(x[j]) - shift[j];
            tile[j * LANES<R>] = R(SCALED ? value * scale[rows[t]] : value);
        }
    }
}

// Fill tiles (columns, LANES), one after the other, with shifted and scaled rows; lanes beyond the last row are left as
// they are. A scale of length 0 stands for ones.
template <class R, class T> KF_INLINE void pack(Mat<const T> X, const i64* rows, i64 n, In shift, In scale, R* tiles) {
    if (scale.n) pack_rows<true>(X, rows, n, shift, scale, tiles);
    else pack_rows<false>(X, rows, n, shift, scale, tiles);
}
