#include <algorithm>

#include "border.h"
#include "rows/directions.h"
#include "rows/entries.h"
#include "rows/slices.h"

namespace {

// Compressed sparse rows, read in an order; only the order ever changes.
struct Sparse {
    const double* data;
    const i32* indices;
    const i64* indptr;
    const i64* order;

    KF_INLINE i64 row(i64 s) const { return order[s]; }
    KF_INLINE i64 begin(i64 i) const { return indptr[i]; }
    KF_INLINE i64 end(i64 i) const { return indptr[i + 1]; }
    KF_INLINE double product(i64 i, const double* vector) const {
        double product = 0.0;
        for (i64 q = begin(i); q < end(i); ++q) product += data[q] * vector[indices[q]];
        return product;
    }
    KF_INLINE double entry(i64 i, i64 c) const {
        for (i64 q = begin(i); q < end(i); ++q)
            if (indices[q] == c) return data[q];
        return 0.0;
    }
    bool differ(i64 i, i64 k) const {
        const i64 m = end(i) - begin(i);
        if (m != end(k) - begin(k)) return true;
        for (i64 q = 0; q < m; ++q)
            if (indices[begin(i) + q] != indices[begin(k) + q] || data[begin(i) + q] != data[begin(k) + q]) return true;
        return false;
    }
};

KF_INLINE void check_row(i64 row, i64 count) { require(0 <= row && row < count, "order must hold numbers of rows"); }

// Of the order only what the slices hold is read: the rest may be moving at this time.
void check_rows(Rows start, Rows stop, Rows order, Rows indptr, Labels indices, i64 columns) {
    check_slices(start, stop, order.n);
    for (i64 t = 0; t < start.n; ++t)
        for (const i64 row : order.part(start[t], stop[t])) {
            check_row(row, indptr.n - 1);
            Entries(indptr, indices, row, columns);
        }
}

double product(In one, In other) {
    double total = 0.0;
    for (i64 c = 0; c < one.n; ++c) total += one[c] * other[c];
    return total;
}

// Puts what is beyond last; how many are not.
i64 part(Vec<const bool> beyond, i64* order) {
    i64 i = 0, j = beyond.n - 1;
    for (;;) {
        while (i <= j && !beyond[i]) ++i;
        while (i < j && beyond[j]) --j;
        if (i >= j) return i;
        std::swap(order[i++], order[j--]);
    }
}

struct Border {
    i64 column;  // -1 if all rows agree
    double value;
};

// Column of the largest range, the first if there are several, and a value that parts it.
Border widest_range(const Sparse& X, i64 first, i64 last, i64 p) {
    const Room<double> low(p, INF), high(p, -INF);
    const Room<i64> stored(p, 0);
    for (i64 s = first; s < last; ++s)
        for (i64 q = X.begin(X.row(s)); q < X.end(X.row(s)); ++q) {
            const i64 c = X.indices[q];
            low[c] = smaller(low[c], X.data[q]);
            high[c] = larger(high[c], X.data[q]);
            ++stored[c];
        }
    i64 widest = -1;
    double least = 0.0, most = 0.0;
    for (i64 c = 0; c < p; ++c) {
        if (stored[c] < last - first) low[c] = smaller(low[c], 0.0), high[c] = larger(high[c], 0.0);
        if (high[c] - low[c] > most - least) widest = c, least = low[c], most = high[c];
    }
    const double border = 0.5 * least + 0.5 * most;
    return {widest, least <= border && border < most ? border : least};
}

// sum w (x - mean) <x - mean, vector>
void covariance_times(const Sparse& X, In weight, i64 first, i64 last, In mean, In vector, Out out) {
    const double middle = product(mean, vector);
    double total = 0.0;
    std::fill(out.begin(), out.end(), 0.0);
    for (i64 s = first; s < last; ++s) {
        const i64 i = X.row(s);
        double along = X.product(i, vector.data) - middle;
        if (weight.n) along *= weight[i];
        total += along;
        for (i64 q = X.begin(i); q < X.end(i); ++q) out[X.indices[q]] += along * X.data[q];
    }
    for (i64 c = 0; c < out.n; ++c) out[c] -= total * mean[c];
}

// The column of the largest variance, or -1 if all are zero; `square` is room for a row.
i64 widest_column(const Sparse& X, In weight, i64 first, i64 last, In mean, Out square) {
    double mass = 0.0;
    std::fill(square.begin(), square.end(), 0.0);
    for (i64 s = first; s < last; ++s) {
        const i64 i = X.row(s);
        const double w = weight.n ? weight[i] : 1.0;
        mass += w;
        for (i64 q = X.begin(i); q < X.end(i); ++q) {
            const i64 c = X.indices[q];
            square[c] += w * X.data[q] * (X.data[q] - 2.0 * mean[c]);
        }
    }
    for (i64 c = 0; c < square.n; ++c) square[c] += mass * mean[c] * mean[c];
    const i64 widest = first_largest(square);
    return square[widest] > 0.0 ? widest : -1;
}

}  // namespace

static void halve_csr(In data, Labels indices, Rows indptr, Vec<i64> order, Rows start, Rows stop, MatIn mean,
                      MatIn direction, In margin, Vec<i64> cut) {
    check_rows(start, stop, order, indptr, indices, mean.p);
    const Sparse X{data.data, indices.data, indptr.data, order.data};
    i64 most = 0;
    for (i64 t = 0; t < start.n; ++t) most = larger(most, stop[t] - start[t]);
    const Room<bool> room(most);
    for (i64 t = 0; t < start.n; ++t) {
        const i64 first = start[t], size = stop[t] - first;
        const Vec<bool> beyond{room.data, size};
        const double middle = product(mean.row(t), direction.row(t));
        for (i64 i = 0; i < size; ++i) beyond[i] = X.product(X.row(first + i), direction[t]) - middle > margin[t];
        i64 count = part(beyond, order.data + first);
        if (count == 0 || count == size) {
            const auto [column, value] = widest_range(X, first, stop[t], mean.p);
            for (i64 i = 0; i < size; ++i) beyond[i] = column >= 0 && X.entry(X.row(first + i), column) > value;
            count = part(beyond, order.data + first);
        }
        cut[t] = first + count;
    }
}

static void alike_csr(In data, Labels indices, Rows indptr, Rows order, Rows start, Rows stop, Vec<bool> alike) {
    check_slices(start, stop, order.n);
    const Sparse X{data.data, indices.data, indptr.data, order.data};
    for (i64 t = 0; t < start.n; ++t) {
        check_row(order[start[t]], indptr.n - 1);
        Entries(indptr, indices, order[start[t]]);
        i64 s = start[t] + 1;
        for (; s < stop[t]; ++s) {  // most slices end at their second row
            check_row(order[s], indptr.n - 1);
            Entries(indptr, indices, order[s]);
            if (X.differ(X.row(s), X.row(start[t]))) break;
        }
        alike[t] = s == stop[t];
    }
}

static void mean_csr(In data, Labels indices, Rows indptr, In weight, In log_h, Rows order, Rows start, Rows stop,
                     Out n, MatOut mean, Out level) {
    check_rows(start, stop, order, indptr, indices, mean.p);
    const Sparse X{data.data, indices.data, indptr.data, order.data};
    for (i64 t = 0; t < start.n; ++t) {
        const Out total = mean.row(t);
        double mass = 0.0, height = 0.0;
        std::fill(total.begin(), total.end(), 0.0);
        for (i64 s = start[t]; s < stop[t]; ++s) {
            const i64 i = X.row(s);
            const double w = weight.n ? weight[i] : 1.0;
            mass += w;
            if (log_h.n) height += w * log_h[i];
            for (i64 q = X.begin(i); q < X.end(i); ++q) total[X.indices[q]] += w * X.data[q];
        }
        n[t] = mass, level[t] = height / mass;
        for (double& value : total) value /= mass;
    }
}

static void leading_csr(In data, Labels indices, Rows indptr, In weight, Rows order, Rows start, Rows stop, MatIn mean,
                        i64 steps, double tolerance, MatOut direction) {
    check_rows(start, stop, order, indptr, indices, mean.p);
    require(mean.p > 0, "there are no columns");
    const Sparse X{data.data, indices.data, indptr.data, order.data};
    const Room<double> next(mean.p);
    for (i64 t = 0; t < start.n; ++t) {
        const Out now = direction.row(t);
        const i64 widest = widest_column(X, weight, start[t], stop[t], mean.row(t), next);
        if (widest < 0) {
            std::fill(now.begin(), now.end(), 0.0);
            continue;
        }
        const auto apply = [&](In from, Out to) {
            covariance_times(X, weight, start[t], stop[t], mean.row(t), from, to);
        };
        iterate(widest, steps, tolerance, apply, now, next);
    }
}

static const border::Kernel kernels[] = {
    border::kernel<alike_csr>("alike_csr(data[e], indices[e], indptr[N+1], order[o], start[t], stop[t], alike[t])"),
    border::kernel<halve_csr>(
        "halve_csr(data[e], indices[e], indptr[N+1], order[o], start[t], stop[t], mean[t,p], direction[t,p], "
        "margin[t], cut[t])"),
    border::kernel<leading_csr>(
        "leading_csr(data[e], indices[e], indptr[N+1], weight[N]?, order[o], start[t], stop[t], mean[t,p], steps, "
        "tolerance, direction[t,p])"),
    border::kernel<mean_csr>(
        "mean_csr(data[e], indices[e], indptr[N+1], weight[N]?, log_h[N]?, order[o], start[t], stop[t], n[t], "
        "mean[t,p], level[t])"),
};
static const border::Publish publish(kernels);
