#include "rows/exact_sums.h"

#include <cmath>

#include "border.h"
#include "rows/columns.h"
#include "rows/entries.h"

namespace {

constexpr i64 BITS = 36, HOLDS = i64(1) << 15;
constexpr i64 BASE = i64(1) << BITS;
constexpr int MOST = 28;  // parts: 1008 bits

// Adding this and taking it away again rounds to a multiple of 2^-36, 2^-72, ...
constexpr double rounder(i64 place) {
    double value = 1.5 * 0x1p16;
    for (i64 i = 0; i < place; ++i) value *= 0x1p-36;
    return value;
}
constexpr double COARSE = rounder(0), FINE = rounder(1);

// The two parts of an entry, or of several in a vector.
template <class V> struct Parts {
    V coarse, fine;
    KF_INLINE explicit Parts(V value) : coarse((value + COARSE) - COARSE), fine(((value - coarse) + FINE) - FINE) {}
};

// Entries beyond the grid make wrong sums, not undefined ones.
KF_INLINE i64 plus(i64 a, i64 b) { return i64(u64(a) + u64(b)); }

// Add to a limb; what goes beyond it is returned.
KF_INLINE i64 carried(i64& limb, i64 more) {
    const i64 all = plus(limb, more);
    limb = all & (BASE - 1);
    return all >> BITS;
}

class Book {
  public:
    explicit Book(const Ledger& ledger)
        : inverse(std::get<0>(ledger).data),
          whole(std::get<1>(ledger)),
          parts(std::get<2>(ledger)),
          limbs(std::get<3>(ledger)),
          held(std::get<4>(ledger)[0]),
          p(parts.q - 1) {
        require(parts.n >= 2 && parts.n <= MOST, "there must be 2 to 28 parts");
    }

    // Room for a row of a weight: what is there is carried on if there is none.
    KF_INLINE void make_room(double w) {
        const i64 weight = whole ? i64(w) : 1;
        if (held + weight > HOLDS) carry();
        held += weight;
    }
    void carry() {
        const i64 size = parts.p * parts.q;
        double unit[MOST] = {};
        for (i64 place = 0; place < parts.n; ++place) unit[place] = (1.5 * 0x1p52) / rounder(place);
        for (i64 a = 0; a < size; ++a) {
            i64 over = 0;
            for (i64 place = parts.n - 1, limb = 0; place >= 0; --place, ++limb) {
                double& part = parts.data[place * size + a];
                over = carried(limbs.data[limb * size + a], plus(i64(part * unit[place]), over));
                part = 0.0;
            }
            i64& top = limbs.data[parts.n * size + a];
            top = plus(top, over);
        }
        held = 0;
    }
    // As rows/exact_sums.py reads it.
    double value(i64 k, i64 j) const {
        const i64 size = parts.p * parts.q, at = k * parts.q + j;
        double unit = 0x1p-36, sum = double(limbs.data[parts.n * size + at]) * 0x1p36;
        sum = (sum + double(limbs.data[(parts.n - 1) * size + at])) * unit;
        for (i64 limb = parts.n - 2; limb >= 0; --limb) sum += double(limbs.data[limb * size + at]) * (unit *= 0x1p-36);
        return sum / inverse[j];
    }

    const double* __restrict inverse;
    const bool whole;
    const Cube<double> parts;
    const Cube<i64> limbs;
    i64& held;
    const i64 p;
};

// Writes the parts of entries to the sums of a label, and takes them from those of another.
// A whole weight multiplies the parts; any other has multiplied the entry, and is 1 here.
template <bool MOVES, bool TWO> class Pen {
  public:
    Pen(const Book& book, i64 from, i64 to, double times)
        : to(book.parts.data + to * book.parts.q),
          from(book.parts.data + from * book.parts.q),
          next(book.parts.p * book.parts.q),
          count(book.parts.n),
          times(times) {}
    template <class V> KF_INLINE void write(i64 j, V value) const {
        if constexpr (TWO) {
            const Parts<V> two(value);
            add(j, two.coarse);
            add(next + j, two.fine);
        } else
            for (i64 place = 0; place < count; ++place) {
                const V part = (value + rounder(place)) - rounder(place);
                add(place * next + j, part);
                value -= part;
            }
    }

  private:
    template <class V> KF_INLINE void add(i64 at, V part) const {
        add_to(to + at, part * times);
        if constexpr (MOVES) add_to(from + at, part * -times);
    }
    template <class V> KF_INLINE static void add_to(double* sum, V more) {
        if constexpr (std::is_same_v<V, double>) *sum += more;
        else store(sum, load<V>(sum) + more);
    }

    // pointers, not the cube: a copy of it for each row would cost as much as the sums
    double *const to, *const from;
    const i64 next, count;  // from a part to the next, and how many there are
    const double times;
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

    template <class P> KF_INLINE void write(const P& pen, double factor) const {
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

    template <class P> KF_INLINE void write(const P& pen, double factor) const {
        for (i64 q = 0; q < count; ++q) pen.write(indices[q], (data[q] * factor) * inverse[indices[q]]);
    }
};

template <bool MOVES, bool TWO, class Row>
KF_INLINE void write_row(const Book& book, const Row& row, const Factors& by, i64 from, i64 to) {
    const Pen<MOVES, TWO> pen(book, from, to, by.parts);
    row.write(pen, by.entry);
    pen.write(book.p, by.mass * book.inverse[book.p]);
}

// Not inline: a function for each number of columns keeps everything in registers.
template <bool TWO, class Find>
[[gnu::noinline]] void move_rows(Rows rows, In scale, In weight, Labels before, Labels labels, Book book, Find find) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t], from = before[t], to = labels[t];
        if (from == to || (weight.n && !(weight[i] > 0))) continue;
        const Factors by(book, scale, weight, i);
        book.make_room(by.parts);
        const auto row = find(i);
        if (to < 0) {
            Factors back = by;
            back.parts = -by.parts;
            write_row<false, TWO>(book, row, back, 0, from);
        } else if (from < 0) write_row<false, TWO>(book, row, by, 0, to);
        else write_row<true, TWO>(book, row, by, from, to);
    }
}

}  // namespace

template <class T>
void move_dense(Mat<const T> X, Rows rows, In shift, In scale, In weight, Labels before, Labels labels, Ledger ledger) {
    const Book book(ledger);
    with_columns(X.p, [&](auto columns) {
        const auto find = [&](i64 i) {
            return DenseRow<decltype(columns), T>{columns, X[i], shift.data, book.inverse};
        };
        if (book.parts.n == 2) move_rows<true>(rows, scale, weight, before, labels, book, find);
        else move_rows<false>(rows, scale, weight, before, labels, book, find);
    });
}
template void move_dense(Mat<const double>, Rows, In, In, In, Labels, Labels, Ledger);
template void move_dense(Mat<const float>, Rows, In, In, In, Labels, Labels, Ledger);

template <class T> static void move_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                        In weight, Labels before, Labels labels, Ledger ledger) {
    const Book book(ledger);
    const auto find = [&](i64 i) {
        const Entries mine(indptr, indices, i, book.p);
        return SparseRow<T>{data.data + mine.first, indices.data + mine.first, mine.last - mine.first, book.inverse};
    };
    if (book.parts.n == 2) move_rows<true>(rows, scale, weight, before, labels, book, find);
    else move_rows<false>(rows, scale, weight, before, labels, book, find);
}

static void carry_sums(Ledger ledger) { Book(ledger).carry(); }

void read_sums(Ledger ledger, MatOut total, Out mass) {
    Book book(ledger);
    if (book.held) book.carry();
    for (i64 k = 0; k < total.n; ++k) {
        for (i64 j = 0; j < book.p; ++j) total(k, j) = book.value(k, j);
        mass[k] = book.value(k, book.p);
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
                const i64 fine_ones = i64(parts.fine * weight[t] * 0x1p72);
                const i64 ones = plus(i64(parts.coarse * weight[t] * 0x1p36), carried(low, fine_ones));
                high = plus(high, carried(middle, ones));
            }
        }
        high = plus(high, carried(middle, plus(i64(coarse * 0x1p36), carried(low, i64(fine * 0x1p72)))));
    }
    return {low, middle, high};
}

double sum_of_costs(In weight, In cost, bool whole, double largest) {
    if (weight.n) largest = 0.0;  // what a row without weight costs must change nothing
    for (i64 i = 0; i < weight.n; ++i)
        if (weight[i] > 0) largest = larger(largest, cost[i]);
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
    return std::ldexp((double(high) * 0x1p36 + double(middle)) * 0x1p-36 + double(low) * 0x1p-72, exponent);
}

// The least and the largest entry of each column, of rows times their scales, and the smallest size above 0.
template <class T> static void extent_dense(Mat<const T> X, Rows rows, In scale, Out least, Out largest, Out finest) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t];
        const double factor = scale.n ? scale[i] : 1.0;
        const T* __restrict x = X[i];
        double* __restrict lo = least.data, * __restrict hi = largest.data, * __restrict fine = finest.data;
        for (i64 j = 0; j < X.p; ++j) {
            const double value = x[j] * factor, size = value == 0.0 ? INF : std::fabs(value);
            lo[j] = value < lo[j] ? value : lo[j];
            hi[j] = value > hi[j] ? value : hi[j];
            fine[j] = size < fine[j] ? size : fine[j];
        }
    }
}

template <class T> static void extent_csr(Vec<const T> data, Vec<const i32> indices, Rows indptr, Rows rows, In scale,
                                          Out least, Out largest, Out finest) {
    for (i64 t = 0; t < rows.n; ++t) {
        const i64 i = rows[t];
        const double factor = scale.n ? scale[i] : 1.0;
        const Entries mine(indptr, indices, i, least.n);
        for (i64 q = mine.first; q < mine.last; ++q) {
            const double value = data[q] * factor, size = value == 0.0 ? INF : std::fabs(value);
            double &lo = least[indices[q]], &hi = largest[indices[q]], &fine = finest[indices[q]];
            lo = value < lo ? value : lo;
            hi = value > hi ? value : hi;
            fine = size < fine ? size : fine;
        }
    }
}

static const border::Kernel kernels[] = {
    border::kernel<carry_sums>("carry_sums(ledger(inverse[q], whole, parts[P,K,q], limbs[P+1,K,q], held[1]))"),
    border::kernel<extent_csr<double>, extent_csr<float>>(
        "extent_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, least[p], largest[p], finest[p])"),
    border::kernel<extent_dense<double>, extent_dense<float>>(
        "extent_dense(X[N,p], rows[n]<N, scale[N]?, least[p], largest[p], finest[p])"),
    border::kernel<move_csr<double>, move_csr<float>>(
        "move_csr(data[z], indices[z], indptr[N+1], rows[n]<N, scale[N]?, weight[N]?, before[n]<K|-1, labels[n]<K|-1, "
        "ledger(inverse[q], whole, parts[P,K,q], limbs[P+1,K,q], held[1]))"),
    border::kernel<move_dense<double>, move_dense<float>>(
        "move_dense(X[N,p], rows[n]<N, shift[p], scale[N]?, weight[N]?, before[n]<K|-1, labels[n]<K|-1, "
        "ledger(inverse[p+1], whole, parts[P,K,p+1], limbs[P+1,K,p+1], held[1]))"),
    border::kernel<read_sums>(
        "read_sums(ledger(inverse[p+1], whole, parts[P,K,p+1], limbs[P+1,K,p+1], held[1]), total[K,p], mass[K])"),
    border::kernel<sum_costs>("sum_costs(weight[n]?, cost[n], whole, inverse)"),
};
static const border::Publish publish(kernels);
