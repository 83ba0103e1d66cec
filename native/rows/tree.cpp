#include <algorithm>
#include <cmath>

#include "border.h"
#include "rows/directions.h"
#include "rows/slices.h"
#include "simd/lanes.h"

namespace {

constexpr i64 ROWS = 64;            // handled at a time: few enough to stay in the first cache
constexpr i64 TALL = 4, BROAD = 8;  // a tile of products that stays in registers
using Half = Lanes<double, 32>;

// <x - centre, other>
KF_INLINE double product_about(i64 p, const double* x, const double* centre, const double* other) {
    i64 c = 0;
    double product = 0.0;
    if (p >= 8) {
        const auto terms = [&](i64 at) {
            return (load<Eight>(x + at) - load<Eight>(centre + at)) * load<Eight>(other + at);
        };
        Eight sum{}, more{};
        for (; c + 16 <= p; c += 16) sum += terms(c), more += terms(c + 8);
        if (c + 8 <= p) sum += terms(c), c += 8;
        product = sum_of_lanes<double, 64>(sum + more);
    }
    for (; c < p; ++c) product += (x[c] - centre[c]) * other[c];
    return product;
}

// total[c] = add(total[c], weigh(i), X[i][c], c) for one row after the other. Four rows share each load and store of
// the totals: a sum that goes through memory waits for it.
template <class WEIGH, class ADD>
KF_INLINE void add_rows(MatIn X, i64 first, i64 last, double* __restrict total, const WEIGH& weigh, const ADD& add) {
    i64 i = first;
    for (; i + 4 <= last; i += 4) {
        const double *a = X[i], *b = X[i + 1], *d = X[i + 2], *e = X[i + 3];
        const double wa = weigh(i), wb = weigh(i + 1), wd = weigh(i + 2), we = weigh(i + 3);
        for (i64 c = 0; c < X.p; ++c)
            total[c] = add(add(add(add(total[c], wa, a[c], c), wb, b[c], c), wd, d[c], c), we, e[c], c);
    }
    for (; i < last; ++i) {
        const double* a = X[i];
        const double w = weigh(i);
        for (i64 c = 0; c < X.p; ++c) total[c] = add(total[c], w, a[c], c);
    }
}

// What moves together when rows do; all but the rows and their order may be missing.
struct Moving {
    MatOut X;
    Out weight, log_h;
    Vec<u32> key;
    Vec<i64> order;

    KF_INLINE void swap(i64 i, i64 j) const {
        double* __restrict one = X[i];
        double* __restrict two = X[j];
        for (i64 c = 0; c < X.p; ++c) std::swap(one[c], two[c]);
        std::swap(order[i], order[j]);
        if (key.n) std::swap(key[i], key[j]);
        if (weight.n) std::swap(weight[i], weight[j]);
        if (log_h.n) std::swap(log_h[i], log_h[j]);
    }
};

// The place from which on rows are with <x - centre, direction> > margin, after they have been put there.
i64 part(const Moving& rows, i64 first, i64 last, const double* centre, const double* direction, double margin) {
    const i64 p = rows.X.p;
    const auto beyond = [&](i64 k) { return product_about(p, rows.X[k], centre, direction) > margin; };
    i64 i = first, j = last - 1;
    // many rows: those on the wrong side are noted in blocks, as half of all branches on a side would be guessed wrong
    i64 ahead[ROWS], behind[ROWS];
    i64 done_ahead = 0, some_ahead = 0, done_behind = 0, some_behind = 0;
    while (j - i >= 2 * ROWS) {
        if (some_ahead == done_ahead) {
            done_ahead = some_ahead = 0;
            for (i64 k = i; k < i + ROWS; ++k) {
                ahead[some_ahead] = k;
                some_ahead += beyond(k);
            }
        }
        if (some_behind == done_behind) {
            done_behind = some_behind = 0;
            for (i64 k = j; k > j - ROWS; --k) {
                behind[some_behind] = k;
                some_behind += !beyond(k);
            }
        }
        while (done_ahead < some_ahead && done_behind < some_behind)
            rows.swap(ahead[done_ahead++], behind[done_behind++]);
        if (done_ahead == some_ahead) i += ROWS;
        if (done_behind == some_behind) j -= ROWS;
    }
    for (;;) {
        while (i <= j && !beyond(i)) ++i;
        while (i < j && beyond(j)) --j;
        if (i >= j) return i;
        rows.swap(i++, j--);
    }
}

// In the middle of the column with the largest range: only values count, not how often or where they occur.
i64 part_widest(const Moving& rows, i64 first, i64 last) {
    const MatIn X = rows.X;
    const Room<double> least(X.p), most(X.p);
    std::copy_n(X[first], X.p, least.data);
    std::copy_n(X[first], X.p, most.data);
    for (i64 i = first + 1; i < last; ++i)
        for (i64 c = 0; c < X.p; ++c) {
            least[c] = smaller(least[c], X(i, c));
            most[c] = larger(most[c], X(i, c));
        }
    i64 widest = -1;
    double low = 0.0, high = 0.0;
    for (i64 c = 0; c < X.p; ++c)
        if (most[c] - least[c] > high - low) widest = c, low = least[c], high = most[c];
    if (widest < 0) return last;
    const double border = 0.5 * low + 0.5 * high;
    const Room<double> centre(X.p, 0.0), direction(X.p, 0.0);
    centre[widest] = low <= border && border < high ? border : low;
    direction[widest] = 1.0;
    return part(rows, first, last, centre.data, direction.data, 0.0);
}

i64 halve(const Moving& rows, i64 first, i64 last, const double* mean, const double* direction, double margin) {
    const i64 cut = part(rows, first, last, mean, direction, margin);
    return cut == first || cut == last ? part_widest(rows, first, last) : cut;
}

bool alike(MatIn X, i64 first, i64 last) {
    for (i64 i = first + 1; i < last; ++i)
        if (!same_rows(X, i, first)) return false;
    return true;
}

// total[a][b] = sum_i rows[i][a] rows[i][b], or += that, for TALL columns a from `tall` and BROAD columns b from
// `broad` on; both matrices are `width` wide.
template <bool ADDS> KF_INLINE void multiply_tile(i64 count, i64 width, const double* __restrict rows, i64 tall,
                                                  i64 broad, double* __restrict total) {
    constexpr int PARTS = BROAD / 4;
    Half sum[TALL][PARTS] = {};
    for (i64 i = 0; i < count; ++i, rows += width) {
        Half value[PARTS];
        for (int v = 0; v < PARTS; ++v) value[v] = load<Half>(rows + broad + 4 * v);
        for (i64 a = 0; a < TALL; ++a) {
            const Half factor = splat<Half>(rows[tall + a]);
            for (int v = 0; v < PARTS; ++v) sum[a][v] += factor * value[v];
        }
    }
    for (i64 a = 0; a < TALL; ++a)
        for (int v = 0; v < PARTS; ++v) {
            double* at = total + (tall + a) * width + broad + 4 * v;
            store(at, ADDS ? load<Half>(at) + sum[a][v] : sum[a][v]);
        }
}

// Columns of a matrix of p columns of which no tile reads or writes beyond the end.
constexpr i64 padded(i64 p) { return p + BROAD; }

// The upper triangle of rows' rows, p columns of it; a little of what is below it is filled, too.
template <bool ADDS> void multiply(i64 count, i64 p, const double* rows, double* total) {
    for (i64 c = 0; c < p; c += TALL)
        for (i64 d = c; d < p; d += BROAD) multiply_tile<ADDS>(count, padded(p), rows, c, d, total);
}

// Covariances of slices, one after the other.
class Scatter {
  public:
    explicit Scatter(i64 p) : p_(p), width_(padded(p)), block_(ROWS * width_, 0.0), scatter_(width_ * width_) {}

    void operator()(MatIn X, In weight, i64 first, i64 last, double n, const double* mean, double* packed) const {
        for (i64 s = first; s < last; s += ROWS) {
            const i64 count = smaller(ROWS, last - s);
            for (i64 i = 0; i < count; ++i) {
                const double root = weight.n ? std::sqrt(weight[s + i]) : 1.0;
                centre(X[s + i], mean, root, block_.data + i * width_);
            }
            if (s == first) multiply<false>(count, p_, block_.data, scatter_.data);
            else multiply<true>(count, p_, block_.data, scatter_.data);
        }
        for (i64 c = 0; c < p_; ++c)
            for (i64 d = c; d < p_; ++d) *packed++ = scatter_[c * width_ + d] / n;
    }

  private:
    void centre(const double* __restrict x, const double* __restrict mean, double root, double* __restrict out) const {
        for (i64 c = 0; c < p_; ++c) out[c] = (x[c] - mean[c]) * root;
    }

    const i64 p_, width_;
    const Room<double> block_, scatter_;
};

// Leading eigenvectors of packed covariances, one after the other.
class Leading {
  public:
    explicit Leading(i64 p)
        : p_(p),
          width_(padded(p)),
          one_(width_ * width_, 0.0),
          two_(width_ * width_, 0.0),
          diagonal_(p),
          now_(width_),
          next_(width_) {}

    void operator()(const double* packed, i64 squarings, i64 steps, double tolerance, Out direction) const {
        std::fill(direction.begin(), direction.end(), 0.0);
        double *matrix = one_.data, *other = two_.data;
        unpack(packed, matrix);
        const double total = trace(matrix);
        if (!(total > 0.0)) return;
        divide(matrix, total);
        for (i64 s = 0; s < squarings; ++s) {
            square(matrix, other);
            std::swap(matrix, other);
            divide(matrix, trace(matrix));
        }
        for (i64 c = 0; c < p_; ++c) diagonal_[c] = matrix[c * width_ + c];
        const Out now{now_.data, p_}, next{next_.data, p_};
        std::copy_n(matrix + first_largest(diagonal_) * width_, p_, now.data);
        normalise(now);
        for (i64 step = 0; step < steps; ++step) {
            times(matrix, now.data, next_.data);
            normalise(next);
            const double change = square_apart(next, now);
            std::copy_n(next.data, p_, now.data);
            if (change <= tolerance) break;
        }
        std::copy_n(now.data, p_, direction.data);
    }

  private:
    void unpack(const double* packed, double* matrix) const {
        for (i64 c = 0; c < p_; ++c)
            for (i64 d = c; d < p_; ++d) matrix[c * width_ + d] = matrix[d * width_ + c] = *packed++;
    }
    double trace(const double* matrix) const {
        double total = 0.0;
        for (i64 c = 0; c < p_; ++c) total += matrix[c * width_ + c];
        return total;
    }
    void divide(double* matrix, double by) const {
        for (i64 c = 0; c < p_ * width_; ++c) matrix[c] /= by;
    }
    // The matrix is symmetric: its square is the product of its columns.
    void square(const double* matrix, double* out) const {
        multiply<false>(p_, p_, matrix, out);
        for (i64 c = 0; c < p_; ++c)
            for (i64 d = c + 1; d < p_; ++d) out[d * width_ + c] = out[c * width_ + d];
    }
    void times(const double* matrix, const double* vector, double* out) const {
        i64 c = 0;
        for (; c + 4 * BROAD <= width_; c += 4 * BROAD) times<4>(matrix, vector, c, out);
        for (; c < p_; c += BROAD) times<1>(matrix, vector, c, out);
    }
    // PARTS * BROAD entries of it. Sums of rows instead of products with them, so that no lanes are to be added.
    template <int PARTS> KF_INLINE void times(const double* matrix, const double* vector, i64 c, double* out) const {
        Eight sum[PARTS] = {};
        for (i64 d = 0; d < p_; ++d)
            for (int v = 0; v < PARTS; ++v)
                sum[v] += splat<Eight>(vector[d]) * load<Eight>(matrix + d * width_ + c + v * BROAD);
        for (int v = 0; v < PARTS; ++v) store(out + c + v * BROAD, sum[v]);
    }

    const i64 p_, width_;  // columns beyond p_ are never part of a result
    const Room<double> one_, two_, diagonal_, now_, next_;
};

void check_packed(i64 p, i64 width) { require(width == p * (p + 1) / 2, "second must hold upper triangles"); }

// Weight, mean and mean log h of a slice; `total` is room for a row.
void measure(MatIn X, In weight, In log_h, i64 first, i64 last, const double* __restrict centre,
             double* __restrict total, double& n, double* __restrict mean, double& level) {
    double height = 0.0, mass = 0.0;
    const auto weigh = [&](i64 i) {
        const double w = weight.n ? weight[i] : 1.0;
        mass += w;
        if (log_h.n) height += w * log_h[i];
        return w;
    };
    std::fill_n(total, X.p, 0.0);
    add_rows(X, first, last, total, weigh,
             [=](double sum, double w, double x, i64 c) { return sum + w * (x - centre[c]); });
    n = mass, level = height / mass;
    for (i64 c = 0; c < X.p; ++c) mean[c] = centre[c] + total[c] / mass;
    if (last - first == 1) std::copy_n(X[first], X.p, mean);  // a single row is its own mean, to the last bit
}

// sum w (x - mean)^2 of each column
void add_squares(MatIn X, In weight, i64 first, i64 last, const double* __restrict mean, double* __restrict total) {
    std::fill_n(total, X.p, 0.0);
    add_rows(
        X, first, last, total, [=](i64 i) { return weight.n ? weight[i] : 1.0; },
        [=](double sum, double w, double x, i64 c) { return sum + w * (x - mean[c]) * (x - mean[c]); });
}

// sum w (x - mean) <x - mean, vector>
void covariance_times(MatIn X, In weight, i64 first, i64 last, const double* __restrict mean,
                      const double* __restrict vector, double* __restrict out) {
    const auto along = [=](i64 i) {
        const double product = product_about(X.p, X[i], mean, vector);
        return weight.n ? product * weight[i] : product;
    };
    std::fill_n(out, X.p, 0.0);
    add_rows(X, first, last, out, along,
             [=](double sum, double w, double x, i64 c) { return sum + w * (x - mean[c]); });
}

}  // namespace

template <class T> static double sum_rows(Mat<const T> X, In weight, In origin, Out total) {
    const Room<double> room(X.p, 0.0);
    double* __restrict largest = room.data;
    double* __restrict sum = total.data;
    const double* __restrict zero = origin.data;
    for (i64 i = 0; i < X.n; ++i) {
        const T* __restrict x = X[i];
        const double w = weight[i];
        for (i64 c = 0; c < X.p; ++c) {
            const double value = x[c];
            sum[c] += w * (value - zero[c]);
            largest[c] = larger(largest[c], std::fabs(value));
        }
    }
    double most = 0.0;
    for (i64 c = 0; c < X.p; ++c) most = larger(most, largest[c]);
    return most;
}

template <class T> static void place_rows(Mat<const T> X, In shift, In scale, double beyond, MatOut out) {
    for (i64 i = 0; i < X.n; ++i) {
        const T* __restrict x = X[i];
        double* __restrict to = out[i];
        for (i64 c = 0; c < X.p; ++c) to[c] = smaller(larger((x[c] - shift[c]) / scale[c], -beyond), beyond);
    }
}

static void halve_dense(MatOut X, Out weight, Out log_h, Vec<u32> key, Vec<i64> order, Rows start, Rows stop,
                        MatIn mean, MatIn direction, In margin, Vec<i64> cut) {
    check_slices(start, stop, X.n);
    const Moving rows{X, weight, log_h, key, order};
    for (i64 t = 0; t < start.n; ++t)
        if (cut[t] < 0) cut[t] = halve(rows, start[t], stop[t], mean[t], direction[t], margin[t]);
}

static void alike_dense(MatIn X, Rows start, Rows stop, Vec<bool> same) {
    check_slices(start, stop, X.n);
    for (i64 t = 0; t < start.n; ++t) same[t] = alike(X, start[t], stop[t]);
}

static void mean_dense(MatIn X, In weight, In log_h, Rows start, Rows stop, MatIn centre, Out n, MatOut mean,
                       Out level) {
    check_slices(start, stop, X.n);
    const Room<double> total(X.p);
    for (i64 t = 0; t < start.n; ++t)
        measure(X, weight, log_h, start[t], stop[t], centre[t], total.data, n[t], mean[t], level[t]);
}

static void second_full(MatIn X, In weight, Rows start, Rows stop, In n, MatIn mean, MatOut second) {
    check_slices(start, stop, X.n);
    check_packed(X.p, second.p);
    const Scatter scatter(X.p);
    for (i64 t = 0; t < start.n; ++t) scatter(X, weight, start[t], stop[t], n[t], mean[t], second[t]);
}

static void second_diag(MatIn X, In weight, Rows start, Rows stop, In n, MatIn mean, MatOut second) {
    check_slices(start, stop, X.n);
    for (i64 t = 0; t < start.n; ++t) {
        add_squares(X, weight, start[t], stop[t], mean[t], second[t]);
        for (double& value : second.row(t)) value /= n[t];
    }
}

static void leading_packed(MatIn second, i64 squarings, i64 steps, double tolerance, MatOut direction) {
    check_packed(direction.p, second.p);
    require(direction.p > 0, "there are no columns");
    const Leading leading(direction.p);
    for (i64 t = 0; t < second.n; ++t) leading(second[t], squarings, steps, tolerance, direction.row(t));
}

static i64 part_nodes(MatOut X, Out weight, Out log_h, double level, Vec<u32> key, Vec<i64> order, Rows nodes,
                      i64 first, std::tuple<i64, i64> marks, double tie, i64 squarings, i64 steps, double tolerance,
                      Vec<i64> start, Vec<i64> stop, Out n, MatOut mean, Out own_log_h, MatOut second, Vec<i64> left,
                      Vec<i64> parent) {
    const i64 p = X.p;
    const auto [unsplit, leaf] = marks;
    check_packed(p, second.p);
    require(p > 0, "there are no columns");
    require(first >= 0 && first <= start.n - 2 * nodes.n, "there is no room for the children");
    for (const i64 node : nodes) {
        require(node < first, "children must come after their parents");
        check_slices(start.part(node, node + 1), stop.part(node, node + 1), X.n);
    }
    const Moving rows{X, weight, log_h, key, order};
    const Room<double> direction(p), total(p);
    const Leading leading(p);
    const Scatter scatter(p);
    i64 count = first;
    for (const i64 node : nodes) {
        leading(second[node], squarings, steps, tolerance, direction);
        double spread = 0.0;
        for (i64 c = 0, place = 0; c < p; place += p - c++) spread += second(node, place);
        const double margin = tie * std::sqrt(spread);
        const i64 begin = start[node], end = stop[node];
        const i64 cut = halve(rows, begin, end, mean[node], direction.data, margin);
        left[node] = cut < end ? count : leaf;
        if (cut == end) continue;
        start[count] = begin, stop[count] = start[count + 1] = cut, stop[count + 1] = end;
        for (const i64 until = count + 2; count < until; ++count) {
            const i64 one = start[count], last = stop[count];
            measure(X, weight, log_h, one, last, mean[node], total.data, n[count], mean[count], own_log_h[count]);
            own_log_h[count] += level;
            scatter(X, weight, one, last, n[count], mean[count], second[count]);
            left[count] = alike(X, one, last) ? leaf : unsplit;
            parent[count] = node;
        }
    }
    return count - first;
}

static void leading_dense(MatIn X, In weight, Rows start, Rows stop, MatIn mean, i64 steps, double tolerance,
                          MatOut direction) {
    check_slices(start, stop, X.n);
    require(X.p > 0, "there are no columns");
    const Room<double> spread(X.p), next(X.p);
    for (i64 t = 0; t < start.n; ++t) {
        const Out now = direction.row(t);
        add_squares(X, weight, start[t], stop[t], mean[t], spread.data);
        const i64 widest = first_largest(spread);
        if (!(spread[widest] > 0.0)) {
            std::fill(now.begin(), now.end(), 0.0);
            continue;
        }
        const auto apply = [&](In from, Out to) {
            covariance_times(X, weight, start[t], stop[t], mean[t], from.data, to.data);
        };
        iterate(widest, steps, tolerance, apply, now, next);
    }
}

static const border::Kernel kernels[] = {
    border::kernel<alike_dense>("alike_dense(X[N,p], start[t], stop[t], alike[t])"),
    border::kernel<halve_dense>(
        "halve_dense(X[N,p], weight[N]?, log_h[N]?, key[N]?, order[N], start[t], stop[t], mean[t,p], direction[t,p], "
        "margin[t], cut[t])"),
    border::kernel<leading_dense>(
        "leading_dense(X[N,p], weight[N]?, start[t], stop[t], mean[t,p], steps, tolerance, direction[t,p])"),
    border::kernel<leading_packed>("leading_packed(second[t,q], squarings, steps, tolerance, direction[t,p])"),
    border::kernel<mean_dense>(
        "mean_dense(X[N,p], weight[N]?, log_h[N]?, start[t], stop[t], centre[t,p], n[t], mean[t,p], level[t])"),
    border::kernel<part_nodes>(
        "part_nodes(X[N,p], weight[N]?, log_h[N]?, level, key[N]?, order[N], nodes[t]<S, first, marks(unsplit, leaf), "
        "tie, squarings, steps, tolerance, start[S], stop[S], n[S], mean[S,p], own_log_h[S], second[S,q], left[S], "
        "parent[S])"),
    border::kernel<place_rows<double>, place_rows<float>>("place_rows(X[n,p], shift[p], scale[p], beyond, out[n,p])"),
    border::kernel<second_diag>("second_diag(X[N,p], weight[N]?, start[t], stop[t], n[t], mean[t,p], second[t,p])"),
    border::kernel<second_full>("second_full(X[N,p], weight[N]?, start[t], stop[t], n[t], mean[t,p], second[t,q])"),
    border::kernel<sum_rows<double>, sum_rows<float>>("sum_rows(X[n,p], weight[n], origin[p], total[p])"),
};
static const border::Publish publish(kernels);
