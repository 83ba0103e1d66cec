// The soft pass over the cells of a document-term table, up to four cells of a word at a time: they share every load
// of the word's row and hide the latency of the additions.
#include <algorithm>

#include "border.h"
#include "topics/cells.h"
#include "topics/lanes.h"

namespace {

using corpus::Sixteen;
using corpus::Span;
using Table = Mat<const float>;

// Calls visit(k, COUNT) for all cells of a word, by fours and what is left over.
template <class Visit> KF_INLINE void by_fours(i64 start, i64 stop, Visit visit) {
    i64 k = start;
    for (; k + 4 <= stop; k += 4) visit(k, std::integral_constant<int, 4>());
    switch (stop - k) {
        case 3: return visit(k, std::integral_constant<int, 3>());
        case 2: return visit(k, std::integral_constant<int, 2>());
        case 1: return visit(k, std::integral_constant<int, 1>());
        default: return;
    }
}

template <int COUNT, class T> KF_INLINE void find_rows(Mat<T> table, const i32* rows, T** found) {
    for (int c = 0; c < COUNT; ++c) found[c] = table[rows[c]];
}

// The scalar products of some rows with one.
template <int COUNT> KF_INLINE void products(const float* const* rows, const float* one, i64 width, float* out) {
    Sixteen sums[COUNT] = {};
    for (i64 p = 0; p < width; p += 16) {
        const Sixteen mine = Sixteen::at(one + p);
        for (int c = 0; c < COUNT; ++c) sums[c] += mine * Sixteen::at(rows[c] + p);
    }
    for (int c = 0; c < COUNT; ++c) out[c] = sum_of_lanes(sums[c]);
}

// Adds a row to some rows, one after the other, each time with another factor.
template <int COUNT> KF_INLINE void add_to_rows(const float* one, i64 width, const float* factors, float* const* rows) {
    for (i64 p = 0; p < width; p += 16) {
        const Sixteen mine = Sixteen::at(one + p);
        for (int c = 0; c < COUNT; ++c) (Sixteen::at(rows[c] + p) + factors[c] * mine).put(rows[c] + p);
    }
}

// Adds some rows with their factors to a total, one after the other.
template <int COUNT>
KF_INLINE void add_rows(const float* const* rows, const float* factors, i64 width, float* __restrict total) {
    for (i64 p = 0; p < width; p += 16) {
        Sixteen sum = Sixteen::at(total + p);
        for (int c = 0; c < COUNT; ++c) sum += factors[c] * Sixteen::at(rows[c] + p);
        sum.put(total + p);
    }
}

// The first p with the largest a[p] * b[p].
KF_INLINE i32 first_of_largest(const float* a, const float* b, i64 width) {
    using Places = Sixteen::Mask;
    constexpr i32 FIRST[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Places current = Places::at(FIRST), index = current;
    Sixteen best = -1.0f;
    for (i64 p = 0; p < width; p += 16) {
        const Sixteen value = Sixteen::at(a + p) * Sixteen::at(b + p);
        const auto more = value > best;
        best = choose(more, value, best);
        index = choose(more, current, index);
        current += 16;
    }
    // the largest of all lanes, then the lowest place among those that hold it
    const Sixteen top = joined(best, [](auto x, auto y) { return x > y ? x : y; });
    index = choose(best == top, index, Places(std::numeric_limits<i32>::max()));
    return joined(index, [](auto x, auto y) { return x < y ? x : y; });
}

}  // namespace

static void soft_documents(Vec<const float> data, Labels rows, Rows indptr, Table topics, Table share, Vec<float> ratio,
                           Mat<float> total) {
    corpus::require_padding(topics);
    Span(indptr, data.n);
    for (i64 w = 0; w < topics.n; ++w) {
        by_fours(indptr[w], indptr[w + 1], [&](i64 k, auto count) {
            const float* from[count];
            float *into[count], part[count];
            find_rows<count>(share, rows.data + k, from);
            find_rows<count>(total, rows.data + k, into);
            products<count>(from, topics[w], topics.p, part);
            for (int c = 0; c < count; ++c) ratio[k + c] = part[c] = data[k + c] / part[c];
            add_to_rows<count>(topics[w], topics.p, part, into);
        });
    }
}

static void soft_words(Vec<const float> ratio, Labels rows, Rows indptr, i64 first, i64 last, Table share,
                       Mat<float> total) {
    corpus::require_padding(share);
    const Span all(indptr, first, last, ratio.n);
    require(corpus::all_below(rows.part(all.start, all.stop), share.n), "rows must hold documents");
    const i64 width = share.p;
    const Room<float> sums(width);
    for (i64 w = first; w < last; ++w) {
        if (indptr[w] == indptr[w + 1]) continue;
        std::fill(sums.begin(), sums.end(), 0.0f);
        by_fours(indptr[w], indptr[w + 1], [&](i64 k, auto count) {
            const float* from[count];
            find_rows<count>(share, rows.data + k, from);
            add_rows<count>(from, ratio.data + k, width, sums.data);
        });
        for (i64 p = 0; p < width; ++p) total[w][p] += sums[p];
    }
}

static void likeliest(Labels rows, Rows indptr, Rows cells, Table topics, Table share, Vec<i32> labels) {
    corpus::require_padding(topics);
    Span(indptr, rows.n);
    for (i64 w = 0; w < topics.n; ++w)
        for (i64 k = indptr[w]; k < indptr[w + 1]; ++k)
            labels[cells[k]] = first_of_largest(topics[w], share[rows[k]], topics.p);
}

static void add_columns(Table table, i64 first, i64 last, Out total) {
    require(0 <= first && first <= last && last <= table.n, "first and last are beyond the table");
    require(total.n <= table.p, "total has more columns than the table");
    double* __restrict sums = total.data;
    for (i64 i = first; i < last; ++i) {
        const float* __restrict row = table[i];
        for (i64 p = 0; p < total.n; ++p) sums[p] += double(row[p]);
    }
}

static const border::Kernel kernels[] = {
    border::kernel<add_columns>("add_columns(table[n,p], first, last, total[*])"),
    border::kernel<likeliest>("likeliest(rows[m]<D, indptr[V+1], cells[m]<c, topics[V,p], share[D,p], labels[c])"),
    border::kernel<soft_documents>(
        "soft_documents(data[m], rows[m]<D, indptr[V+1], topics[V,p], share[D,p], ratio[m], total[D,p])"),
    border::kernel<soft_words>("soft_words(ratio[m], rows[m], indptr[V+1], first, last, share[D,p], total[V,p])"),
};
static const border::Publish publish(kernels);
