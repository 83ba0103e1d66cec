#include "rows/sums.h"

#include "border.h"
#include "clusters/bounds.h"
#include "rows/columns.h"
#include "rows/entries.h"
#include "simd/wide_rows.h"

namespace {

// Sum over all columns of term(x, other, total) for each row and the row of `other` that its label names.
// Not inline: a function for each number of columns keeps everything in registers.
template <bool SCALED, class C, class T, class Term, class Take>
[[gnu::noinline]] void sum_columns(C columns, Mat<const T> X, Rows rows, In shift, In scale, Labels labels, MatIn other,
                                   Term term, Take take) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], k = labels[t];
        const double factor = SCALED ? scale[i] : 1.0, *centre = other[k];
        const T* x = X[i];
        double total = 0.0;
        if constexpr (C::is_long) total = over_columns(x, shift.data, factor, centre, columns.stop, term);
        columns.rest([&](i64 j) { total = term((x[j] - shift[j]) * factor, centre[j], total); });
        take(t, k, total);
    }
}

template <class T, class Term, class Take> KF_INLINE void each_row(Mat<const T> X, Rows rows, In shift, In scale,
                                                                   Labels labels, MatIn other, Term term, Take take) {
    with_columns(X.p, [&](auto columns) {
        if (scale.n) sum_columns<true>(columns, X, rows, shift, scale, labels, other, term, take);
        else sum_columns<false>(columns, X, rows, shift, scale, labels, other, term, take);
    });
}

// Add w x and w, one row after the other.
template <bool PLAIN, class C, class T> [[gnu::noinline]] void add_rows(C columns, Mat<const T> X, Rows rows, In shift,
                                                                        In scale, In weight, Labels labels,
                                                                        MatOut total, Out mass) {
    const double* __restrict less = shift.data;
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], k = labels[t];
        if (k < 0) continue;
        const T* __restrict x = X[i];
        double* __restrict sum = total[k];
        const double w = !PLAIN && weight.n ? weight[i] : 1.0, factor = w * (!PLAIN && scale.n ? scale[i] : 1.0);
        const auto add = [&](i64 j) { sum[j] += PLAIN ? x[j] - less[j] : (x[j] - less[j]) * factor; };
        mass[k] += w;
        if constexpr (C::is_long)
            for (i64 j = 0; j < columns.stop; ++j) add(j);
        columns.rest(add);
    }
}

}  // namespace

template <class T>
static void own_dense(Mat<const T> X, Rows rows, In shift, In scale, Labels labels, MatIn coef, In offset, Out cost) {
    const auto term = [](auto x, auto c, auto total) { return total + x * c; };
    const auto take = [=](i64 t, i64 k, double product) { cost[t] = offset[k] - product; };
    each_row(X, rows, shift, scale, labels, coef, term, take);
}

template <class T>
void distance_dense(Mat<const T> X, Rows rows, In shift, In scale, Labels labels, MatIn mean, Out square) {
    const auto term = [](auto x, auto centre, auto total) {
        const auto gap = x - centre;
        return total + gap * gap;
    };
    const auto take = [=](i64 t, i64, double total) { square[t] = total; };
    each_row(X, rows, shift, scale, labels, mean, term, take);
}
template void distance_dense(Mat<const double>, Rows, In, In, Labels, MatIn, Out);
template void distance_dense(Mat<const float>, Rows, In, In, Labels, MatIn, Out);

template <class T>
void add_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, Labels labels, MatOut total, Out mass) {
    with_columns(X.p, [&](auto columns) {
        if (!weight.n && !scale.n) add_rows<true>(columns, X, rows, shift, scale, weight, labels, total, mass);
        else add_rows<false>(columns, X, rows, shift, scale, weight, labels, total, mass);
    });
}
template void add_dense(Mat<const double>, Rows, In, In, In, Labels, MatOut, Out);
template void add_dense(Mat<const float>, Rows, In, In, In, Labels, MatOut, Out);

template <class T> static std::tuple<i64, i64> measure_dense(Mat<const T> X, Rows rows, In shift, In scale,
                                                             Labels labels, MatIn mean, double factor, In base, In unit,
                                                             In alone, double size, double lam, In low, Out cost,
                                                             Vec<i64> left, Vec<i64> close) {
    distance_dense(X, rows, shift, scale, labels, mean, cost);
    for (i64 t = 0; t < rows.n; ++t) cost[t] *= factor;
    // one call where there could be three: other threads wait at every return to Python
    return {unsettled(cost, base, size, low, left), near_threshold(cost, unit, alone, base, size, lam, close)};
}

Tally tally(In weight, Labels labels, In cost, Vec<i32> before, Out reach) {
    double changed = 0.0, paid = 0.0;
    for (i64 t = 0; t < labels.n; ++t) {
        const i32 k = labels[t];
        const double c = cost[t], w = weight.n ? weight[t] : 1.0;
        if (k != before[t]) before[t] = k, changed += w;
        if (w > 0) paid += w * c;
        if (!(c <= reach[k])) reach[k] = c;
    }
    return {changed, paid};
}

template <class T> static void two_means_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, Labels labels,
                                               i64 steps, MatOut mean, Vec<bool> usable) {
    const i64 C = usable.n, p = mean.p;
    const Room<double> coefs(C * p), offset(C), value(rows.n), totals(2 * C * p), mass(2 * C);
    const Room<i32> side(rows.n);
    const MatOut coef = coefs.as(C, p), total = totals.as(2 * C, p);
    for (i64 step = 0; step < steps; ++step) {
        for (i64 c = 0; c < C; ++c) {
            const double *a = mean[2 * c], *b = mean[2 * c + 1];
            offset[c] = 0.0;
            for (i64 j = 0; j < p; ++j) {
                const double gap = a[j] - b[j];
                coef[c][j] = 2 * gap;
                offset[c] += gap * (a[j] + b[j]);
            }
        }
        own_dense(X, rows, shift, scale, labels, MatIn(coef), offset, value);
        for (i64 t = 0; t < rows.n; ++t) side[t] = 2 * labels[t] + (value[t] > 0);
        for (double& sum : totals) sum = 0.0;
        for (double& sum : mass) sum = 0.0;
        add_dense(X, rows, shift, scale, weight, side, total, mass);
        for (i64 c = 0; c < C; ++c) {
            usable[c] = usable[c] && mass[2 * c] > 0 && mass[2 * c + 1] > 0;
            for (i64 k = 2 * c; usable[c] && k < 2 * c + 2; ++k)
                for (i64 j = 0; j < p; ++j) mean[k][j] = total[k][j] / mass[k];
        }
    }
}

template <class T> static void own_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                       Labels labels, MatIn coef, In offset, Out cost) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], k = labels[t];
        const double factor = scale.n ? scale[i] : 1.0, *centre = coef[k];
        const Entries mine(indptr, indices, i, coef.p);
        double product = 0.0;
        for (i64 q = mine.first; q < mine.last; ++q) product += data[q] * factor * centre[indices[q]];
        cost[t] = offset[k] - product;
    }
}

template <class T> static void add_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                       In weight, Labels labels, MatOut total, Out mass) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], k = labels[t];
        if (k < 0) continue;
        const double w = weight.n ? weight[i] : 1.0, factor = w * (scale.n ? scale[i] : 1.0);
        const Entries mine(indptr, indices, i, total.p);
        double* sum = total[k];
        mass[k] += w;
        for (i64 q = mine.first; q < mine.last; ++q) sum[indices[q]] += data[q] * factor;
    }
}

template <class T> static void distance_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                            Labels labels, MatIn mean, In norm, Out square) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], k = labels[t];
        const double factor = scale.n ? scale[i] : 1.0, *own = mean[k];
        const Entries mine(indptr, indices, i, mean.p);
        double total = norm[k];
        for (i64 q = mine.first; q < mine.last; ++q) {
            const double centre = own[indices[q]], gap = data[q] * factor - centre;
            total += gap * gap - centre * centre;
        }
        square[t] = larger(total, 0.0);
    }
}

static const border::Kernel kernels[] = {
    border::kernel<add_csr<double>, add_csr<float>>(
        "add_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, weight[N]?, labels[n]<K|-1, total[K,p], "
        "mass[K])"),
    border::kernel<add_dense<double>, add_dense<float>>(
        "add_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, weight[N]?, labels[n]<K|-1, total[K,p], mass[K])"),
    border::kernel<distance_csr<double>, distance_csr<float>>(
        "distance_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, labels[n]<K, mean[K,p], norm[K], "
        "square[n])"),
    border::kernel<distance_dense<double>, distance_dense<float>>(
        "distance_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, labels[n]<K, mean[K,p], square[n])"),
    border::kernel<measure_dense<double>, measure_dense<float>>(
        "measure_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, labels[n]<K, mean[K,p], factor, base[n], unit[n]?, "
        "alone[n]?, size, lam, low[n], cost[n], left[n..], close[n..])"),
    border::kernel<own_csr<double>, own_csr<float>>(
        "own_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, labels[n]<K, coef[K,p], offset[K], cost[n])"),
    border::kernel<own_dense<double>, own_dense<float>>(
        "own_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, labels[n]<K, coef[K,p], offset[K], cost[n])"),
    border::kernel<tally>("tally(weight[n]?, labels[n]<K, cost[n], before[n], reach[K])"),
    border::kernel<two_means_dense<double>, two_means_dense<float>>(
        "two_means_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, weight[N]?, labels[n]<C, steps, mean[2C,p], "
        "usable[C])"),
};
static const border::Publish publish(kernels);
