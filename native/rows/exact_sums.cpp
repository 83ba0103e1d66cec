#include "rows/exact_sums.h"

#include <cmath>

#include "border.h"
#include "rows/columns.h"
#include "rows/entries.h"

namespace {

constexpr double COARSE = 1.5 * 0x1p16, FINE = 1.5 * 0x1p-20;  // adding one and taking it away again rounds
constexpr i64 BITS = 36, HOLDS = i64(1) << 15;
constexpr i64 BASE = i64(1) << BITS;

// The two parts of an entry, or of several in a vector.
template <class V> struct Parts {
    V coarse, fine;
    KF_INLINE explicit Parts(V value) : coarse((value + COARSE) - COARSE), fine(((value - coarse) + FINE) - FINE) {}
};

KF_INLINE void carry_one(double& coarse, double& fine, i64& low, i64& middle, i64& high) {
    const i64 all = low + i64(fine * 0x1p72), over = all >> BITS;
    low = all - over * BASE;
    const i64 more = middle + i64(coarse * 0x1p36) + over, beyond = more >> BITS;
    middle = more - beyond * BASE;
    high += beyond;
    coarse = fine = 0.0;
}

class Book {
  public:
    explicit Book(const Ledger& ledger)
        : inverse(std::get<0>(ledger).data),
          whole(std::get<1>(ledger)),
          coarse(std::get<2>(ledger)[0]),
          fine(std::get<2>(ledger)[1]),
          limbs(std::get<3>(ledger)),
          held(std::get<4>(ledger)[0]),
          p(coarse.p - 1) {}

    // Room for a row of a weight: what is there is carried on if there is none.
    KF_INLINE void make_room(double w) {
        const i64 weight = whole ? i64(w) : 1;
        if (held + weight > HOLDS) carry();
        held += weight;
    }
    void carry() {
        for (i64 a = 0, size = coarse.n * coarse.p; a < size; ++a)
            carry_one(coarse.data[a], fine.data[a], limbs[0].data[a], limbs[1].data[a], limbs[2].data[a]);
        held = 0;
    }

    const double* __restrict inverse;
    const bool whole;
    const Mat<double> coarse, fine;
    const Cube<i64> limbs;
    i64& held;
    const i64 p;
};

// A whole weight multiplies the parts; any other multiplied the entry, and is 1 here.
template <bool MOVES> struct Pen {
    double *to_coarse, *to_fine, *from_coarse, *from_fine, times;
    Pen(const Book& book, i64 from, i64 to, double times)
        : to_coarse(book.coarse[to]),
          to_fine(book.fine[to]),
          from_coarse(MOVES ? book.coarse[from] : nullptr),
          from_fine(MOVES ? book.fine[from] : nullptr),
          times(times) {}
    template <class V> KF_INLINE void write(i64 j, V value) const {
        const Parts<V> parts(value);
        add(to_coarse + j, parts.coarse * times);
        add(to_fine + j, parts.fine * times);
        if constexpr (MOVES) {
            add(from_coarse + j, parts.coarse * -times);
            add(from_fine + j, parts.fine * -times);
        }
    }

  private:
    template <class V> KF_INLINE static void add(double* sum, V more) {
        if constexpr (std::is_same_v<V, double>) *sum += more;
        else store(sum, load<V>(sum) + more);
    }
};

// What a row is multiplied by before it is cut, and its parts after that.
struct Factors {
    double entry, parts, mass;
    KF_INLINE Factors(const Book& book, In scale, In weight, i64 i) {
        const double w = weight.n ? weight[i] : 1.0, s = scale.n ? scale[i] : 1.0;
        entry = book.whole ? s : w * s;
        parts = book.whole ? w : 1.0;
        mass = book.whole ? 1.0 : w;
    }
};

template <class C, class T> struct DenseRow {
    C columns;
    const T* __restrict x;
    const double* __restrict shift, * __restrict inverse;

    template <bool MOVES> KF_INLINE void write(const Pen<MOVES>& pen, double factor) const {
        using V = Lanes<double, WIDE_BYTES>;
        constexpr int W = WIDE_BYTES / 8;
        if constexpr (C::is_long)
            for (i64 j = 0; j < columns.stop; j += W)
                pen.write(j, ((widened<T, W>(x + j) - load<V>(shift + j)) * factor) * load<V>(inverse + j));
        columns.rest([&](i64 j) { pen.write(j, ((x[j] - shift[j]) * factor) * inverse[j]); });
    }
};

template <class T> struct SparseRow {
    const T* data;
    const i32* indices;
    i64 count;
    const double* inverse;

    template <bool MOVES> KF_INLINE void write(const Pen<MOVES>& pen, double factor) const {
        for (i64 q = 0; q < count; ++q) pen.write(indices[q], (data[q] * factor) * inverse[indices[q]]);
    }
};

template <bool MOVES, class Row>
KF_INLINE void write_row(const Book& book, const Row& row, const Factors& by, i64 from, i64 to) {
    const Pen<MOVES> pen(book, from, to, by.parts);
    row.write(pen, by.entry);
    pen.write(book.p, by.mass * book.inverse[book.p]);
}

// Not inline: a function for each number of columns keeps everything in registers.
template <class Find>
[[gnu::noinline]] void move_rows(Rows rows, In scale, In weight, Labels before, Labels labels, Book book, Find find) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], from = before[t], to = labels[t];
        if (from == to) continue;
        const Factors by(book, scale, weight, i);
        book.make_room(by.parts);
        const auto row = find(i);
        if (to < 0) {
            Factors back = by;
            back.parts = -by.parts;
            write_row<false>(book, row, back, 0, from);
        } else if (from < 0) write_row<false>(book, row, by, 0, to);
        else write_row<true>(book, row, by, from, to);
    }
}

}  // namespace

template <class T>
void move_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, Labels before, Labels labels, Ledger ledger) {
    const Book book(ledger);
    with_columns(X.p, [&](auto columns) {
        move_rows(rows, scale, weight, before, labels, book,
                  [&](i64 i) { return DenseRow<decltype(columns), T>{columns, X[i], shift.data, book.inverse}; });
    });
}
template void move_dense(Mat<const double>, Rows, In, In, In, Labels, Labels, Ledger);
template void move_dense(Mat<const float>, Rows, In, In, In, Labels, Labels, Ledger);

template <class T> static void move_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                        In weight, Labels before, Labels labels, Ledger ledger) {
    const Book book(ledger);
    move_rows(rows, scale, weight, before, labels, book, [&](i64 i) {
        const Entries mine(indptr, indices, i, book.p);
        return SparseRow<T>{data.data + mine.first, indices.data + mine.first, mine.last - mine.first, book.inverse};
    });
}

static void carry_sums(Ledger ledger) { Book(ledger).carry(); }

// As rows/exact_sums.py reads them.
static double value_of(i64 low, i64 middle, i64 high) {
    return (double(high) * 0x1p36 + double(middle)) * 0x1p-36 + double(low) * 0x1p-72;
}

void read_sums(Ledger ledger, MatOut total, Out mass) {
    Book book(ledger);
    if (book.held) book.carry();
    for (i64 k = 0; k < total.n; ++k)
        for (i64 j = 0; j <= book.p; ++j) {
            const double value = value_of(book.limbs[0](k, j), book.limbs[1](k, j), book.limbs[2](k, j));
            (j < book.p ? total(k, j) : mass[k]) = value / book.inverse[j];
        }
}

// Sums of the two parts of some numbers, side by side: any order gives the same.
static void sum_parts(const double* value, i64 n, double inverse, double& coarse, double& fine) {
    using V = Lanes<double>;
    constexpr i64 W = WIDTH / 8;
    V many = {}, more = {};
    i64 t = 0;
    for (; t + W <= n; t += W) {
        const Parts<V> parts(load<V>(value + t) * inverse);
        many += parts.coarse, more += parts.fine;
    }
    for (i64 lane = 0; lane < W; ++lane) coarse += many[lane], fine += more[lane];
    for (; t < n; ++t) {
        const Parts<double> parts(value[t] * inverse);
        coarse += parts.coarse, fine += parts.fine;
    }
}

// Costs times `inverse` are below 1; the sum of their parts, in limbs.
static std::tuple<i64, i64, i64> sum_costs(In weight, In cost, bool whole, double inverse) {
    i64 low = 0, middle = 0, high = 0;
    for (i64 start = 0; start < cost.n; start += HOLDS) {
        const i64 stop = smaller(start + HOLDS, cost.n);
        double coarse = 0.0, fine = 0.0;
        if (!weight.n) {
            sum_parts(cost.data + start, stop - start, inverse, coarse, fine);
        } else if (!whole) {
            for (i64 t = start; t < stop; ++t) {
                const Parts<double> parts(weight[t] > 0 ? (weight[t] * cost[t]) * inverse : 0.0);
                coarse += parts.coarse, fine += parts.fine;
            }
        } else {
            for (i64 t = start; t < stop; ++t) {
                if (!(weight[t] > 0)) continue;
                const Parts<double> parts(cost[t] * inverse);
                double one = parts.coarse * weight[t], rest = parts.fine * weight[t];
                carry_one(one, rest, low, middle, high);
            }
        }
        carry_one(coarse, fine, low, middle, high);
    }
    return {low, middle, high};
}

double sum_of_costs(In weight, In cost, bool whole, double largest) {
    if (!(largest < INF)) return largest;
    int exponent = 0;
    std::frexp(largest, &exponent);
    double heaviest = 0.0;
    if (!whole)
        for (const double w : weight) heaviest = larger(heaviest, w);
    int more = 0;
    std::frexp(heaviest, &more);
    exponent = int(larger(-1000, smaller(1024, i64(exponent + (whole ? 0 : more)))));
    const auto [low, middle, high] = sum_costs(weight, cost, whole, std::ldexp(1.0, -exponent));
    return std::ldexp(value_of(low, middle, high), exponent);
}

// The least and the largest entry of each column, of rows times their scales.
template <class T> static void extent_dense(Mat<const T> X, Rows rows, In scale, Out least, Out largest) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t];
        const double factor = scale.n ? scale[i] : 1.0;
        const T* __restrict x = X[i];
        double* __restrict lo = least.data, * __restrict hi = largest.data;
        for (i64 j = 0; j < X.p; ++j) {
            const double value = x[j] * factor;
            lo[j] = value < lo[j] ? value : lo[j];
            hi[j] = value > hi[j] ? value : hi[j];
        }
    }
}

template <class T> static void extent_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                          Out least, Out largest) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t];
        const double factor = scale.n ? scale[i] : 1.0;
        const Entries mine(indptr, indices, i, least.n);
        for (i64 q = mine.first; q < mine.last; ++q) {
            const double value = data[q] * factor;
            double &lo = least[indices[q]], &hi = largest[indices[q]];
            lo = value < lo ? value : lo;
            hi = value > hi ? value : hi;
        }
    }
}

static const border::Kernel kernels[] = {
    border::kernel<carry_sums>("carry_sums(ledger(inverse[q], whole, parts[2,K,q], limbs[3,K,q], held[1]))"),
    border::kernel<extent_csr<double>, extent_csr<float>>(
        "extent_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, least[p], largest[p])"),
    border::kernel<extent_dense<double>, extent_dense<float>>(
        "extent_dense(X[N,p], rows[n]<N, scale[N]?, least[p], largest[p])"),
    border::kernel<move_csr<double>, move_csr<float>>(
        "move_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, weight[N]?, before[n]<K|-1, labels[n]<K|-1, "
        "ledger(inverse[q], whole, parts[2,K,q], limbs[3,K,q], held[1]))"),
    border::kernel<move_dense<double>, move_dense<float>>(
        "move_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, weight[N]?, before[n]<K|-1, labels[n]<K|-1, "
        "ledger(inverse[p+1], whole, parts[2,K,p+1], limbs[3,K,p+1], held[1]))"),
    border::kernel<read_sums>(
        "read_sums(ledger(inverse[p+1], whole, parts[2,K,p+1], limbs[3,K,p+1], held[1]), total[K,p], mass[K])"),
    border::kernel<sum_costs>("sum_costs(weight[n]?, cost[n], whole, inverse)"),
};
static const border::Publish publish(kernels);
