#include "features/products.h"

#include <utility>

#include "simd/vectors.h"

namespace features {

namespace {

using Full = Lanes<double>;
using Half = Lanes<double, WIDTH == 16 ? 16 : WIDTH / 2>;  // where few columns are left

constexpr i64 W = WIDTH / 8;                     // doubles of a vector
constexpr int MOST_ROWS = WIDTH == 64 ? 8 : 6;   // of a tile: with two vectors each they fill the registers
constexpr i64 ENTRIES = 8192, LEAST_TERMS = 64;  // of the right factor at a time, so that it stays in the cache

// The left factor, by rows or by columns: entry (r, t) is at r * row + t * term.
struct Left {
    const double* data;
    i64 row, term;
    KF_INLINE Left from(i64 r, i64 t) const { return {data + r * row + t * term, row, term}; }
};

// Adds the product to ROWS rows and VECTORS vectors of columns of the sums.
template <class V, int VECTORS, int ROWS>
void add_tile(Left left, const double* right, i64 width, i64 terms, double* sums, i64 sums_width) {
    constexpr i64 SIZE = sizeof(V) / 8;
    V sum[ROWS][VECTORS];
    for (int r = 0; r < ROWS; ++r)
        for (int v = 0; v < VECTORS; ++v) sum[r][v] = load<V>(sums + r * sums_width + v * SIZE);
    for (i64 t = 0; t < terms; ++t) {
        V some[VECTORS];
        for (int v = 0; v < VECTORS; ++v) some[v] = load<V>(right + t * width + v * SIZE);
        for (int r = 0; r < ROWS; ++r) {
            const double factor = left.data[r * left.row + t * left.term];
            for (int v = 0; v < VECTORS; ++v) sum[r][v] += factor * some[v];
        }
    }
    for (int r = 0; r < ROWS; ++r)
        for (int v = 0; v < VECTORS; ++v) store(sums + r * sums_width + v * SIZE, sum[r][v]);
}

template <class V, int VECTORS>
void add_panel(Left left, i64 rows, const double* right, i64 width, i64 terms, double* sums, i64 sums_width) {
    i64 r = 0;
    for (; r + MOST_ROWS <= rows; r += MOST_ROWS)
        add_tile<V, VECTORS, MOST_ROWS>(left.from(r, 0), right, width, terms, sums + r * sums_width, sums_width);
    const auto rest = [&]<int... ONE_LESS>(std::integer_sequence<int, ONE_LESS...>) {
        ((rows - r == ONE_LESS + 1 ? add_tile<V, VECTORS, ONE_LESS + 1>(left.from(r, 0), right, width, terms,
                                                                        sums + r * sums_width, sums_width)
                                   : void()),
         ...);
    };
    rest(std::make_integer_sequence<int, MOST_ROWS - 1>());
}

// The last columns, fewer than a vector has, by copies that fill it.
template <class V> void add_last(Left left, i64 rows, const double* right, i64 width, i64 terms, i64 columns,
                                 double* sums, double* filled, double* filled_sums) {
    constexpr i64 SIZE = sizeof(V) / 8;
    for (i64 t = 0; t < terms; ++t)
        for (i64 c = 0; c < SIZE; ++c) filled[t * SIZE + c] = c < columns ? right[t * width + c] : 0.0;
    for (i64 r = 0; r < rows; ++r)
        for (i64 c = 0; c < SIZE; ++c) filled_sums[r * SIZE + c] = c < columns ? sums[r * width + c] : 0.0;
    add_panel<V, 1>(left, rows, filled, SIZE, terms, filled_sums, SIZE);
    for (i64 r = 0; r < rows; ++r)
        for (i64 c = 0; c < columns; ++c) sums[r * width + c] = filled_sums[r * SIZE + c];
}

void multiply(Left left, MatIn right, MatOut out) {
    for (i64 i = 0; i < out.n * out.p; ++i) out.data[i] = 0.0;
    const i64 width = right.p, last = width % W;
    const i64 together = larger(LEAST_TERMS, ENTRIES / larger(width, i64(1)));
    const Room<double> filled(last ? W * smaller(together, right.n) : 0), sums(last ? W * out.n : 0);
    for (i64 t = 0; t < right.n; t += together) {
        const i64 terms = smaller(together, right.n - t);
        const Left some = left.from(0, t);
        i64 c = 0;
        for (; c + 2 * W <= width; c += 2 * W)
            add_panel<Full, 2>(some, out.n, right[t] + c, width, terms, out.data + c, width);
        for (; c + W <= width; c += W) add_panel<Full, 1>(some, out.n, right[t] + c, width, terms, out.data + c, width);
        const double* from = right[t] + c;
        double* to = out.data + c;
        if (8 * last > i64(sizeof(Half)))
            add_last<Full>(some, out.n, from, width, terms, last, to, filled.data, sums.data);
        else if (last) add_last<Half>(some, out.n, from, width, terms, last, to, filled.data, sums.data);
    }
}

// ROWS rows at a time, each as if it were alone: eight sums on every machine, then what is left over in order.
template <int ROWS> KF_INLINE void dot_some(const double* a, i64 p, const double* b, double* out) {
    constexpr int PARTS = 64 / WIDTH;
    Full sum[ROWS][PARTS] = {};
    i64 d = 0;
    for (; d + 8 <= p; d += 8)
        for (int part = 0; part < PARTS; ++part) {
            const Full some = load<Full>(b + d + part * W);
            for (int r = 0; r < ROWS; ++r) sum[r][part] += load<Full>(a + r * p + d + part * W) * some;
        }
    double total[ROWS];
    for (int r = 0; r < ROWS; ++r) {
        double x[8];
        for (int part = 0; part < PARTS; ++part) store(x + part * W, sum[r][part]);
        total[r] = ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
    }
    for (; d < p; ++d)
        for (int r = 0; r < ROWS; ++r) total[r] += a[r * p + d] * b[d];
    for (int r = 0; r < ROWS; ++r) out[r] = total[r];
}

}  // namespace

void transpose(MatIn A, MatOut out) {
    for (i64 i = 0; i < A.n; ++i)
        for (i64 j = 0; j < A.p; ++j) out(j, i) = A(i, j);
}

void product(MatIn A, MatIn B, MatOut out) { multiply({A.data, A.p, 1}, B, out); }

void product_of_columns(MatIn A, MatIn B, MatOut out) { multiply({A.data, 1, A.p}, B, out); }

double dot(In a, In b) {
    double out;
    dot_some<1>(a.data, a.n, b.data, &out);
    return out;
}

void dot_rows(MatIn A, In r, Out out) {
    i64 i = 0;
    for (; i + 4 <= A.n; i += 4) dot_some<4>(A[i], A.p, r.data, out.data + i);
    for (; i < A.n; ++i) dot_some<1>(A[i], A.p, r.data, out.data + i);
}

}  // namespace features
