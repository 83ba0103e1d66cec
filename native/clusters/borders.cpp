// Rows between pairs of clusters.
#include <algorithm>

#include "border.h"
#include "segments.h"

namespace {

void three_least(MatIn products, In offset, Mat<i32> first, MatOut least) {
    const i64 count = first.p;
    require(count > 0, "first must have a column");
    for (i64 i = 0; i < products.n; ++i) {
        const double* product = products[i];
        double* low = least[i];
        i32* arg = first[i];
        for (i64 t = 0; t < count; ++t) low[t] = INF, arg[t] = i32(t);
        for (i64 k = 0; k < products.p; ++k) {
            const double value = offset[k] - product[k];
            if (!(value < low[count - 1])) continue;
            i64 t = count - 1;
            for (; t > 0 && value < low[t - 1]; --t) low[t] = low[t - 1], arg[t] = arg[t - 1];
            low[t] = value, arg[t] = i32(k);
        }
    }
}

// Call take(i, e, side) for every row and pair of which one end is among the row's first centres, once.
template <class Take> void each_pair(Mat<const i32> first, Mat<const i32> pairs, Rows start, Rows incident, Take take) {
    for (i64 i = 0; i < first.n; ++i) {
        const i32* mine = first[i];
        for (i64 t = 0; t < first.p; ++t)
            for (i64 q = start[mine[t]]; q < start[mine[t] + 1]; ++q) {
                const i64 e = incident[q];
                const i32 a = pairs(e, 0), b = pairs(e, 1), other = a == mine[t] ? b : a;
                if (std::find(mine, mine + t, other) == mine + t) take(i, e, mine[0] == a ? 0 : mine[0] == b ? 1 : 2);
            }
    }
}

void rows_of_pairs(Mat<const i32> first, MatIn least, Mat<const i32> pairs, Rows start, Rows incident, Vec<i64> edges,
                   Vec<i64> rows, Out third) {
    require_edges(start, incident.n, "start must rise, and end within incident");
    const Room<i64> fill(edges.n, 0);
    each_pair(first, pairs, start, incident, [&](i64, i64 e, int side) { ++fill[3 * e + side + 1]; });
    for (i64 s = 0, sum = 0; s < edges.n; ++s) edges[s] = fill[s] = sum += fill[s];
    require(edges[edges.n - 1] <= rows.n, "rows are too few for the pairs");
    each_pair(first, pairs, start, incident, [&](i64 i, i64 e, int side) {
        const i64 at = fill[3 * e + side]++;
        const i32 *mine = first[i], a = pairs(e, 0), b = pairs(e, 1);
        const i32* neither = std::find_if(mine, mine + first.p, [=](i32 k) { return k != a && k != b; });
        rows[at] = i;
        third[at] = neither == mine + first.p ? INF : least(i, neither - mine);
    });
}

// Where the numbers of a segment end that are moved to its front; what is no number counts as larger than all.
double* numbers_first(double* begin, double* end) {
    return std::partition(begin, end, [](double value) { return value == value; });
}

void sort_segments(Rows edges, Out values) {
    require_edges(edges, values.n, "edges must rise, and end within values");
    for (i64 s = 0; s + 1 < edges.n; ++s) {
        double* begin = values.data + edges[s];
        std::sort(begin, numbers_first(begin, values.data + edges[s + 1]));
    }
}

void lower_medians(In values, Rows start, Rows stop, Out medians) {
    i64 longest = 0;
    for (i64 s = 0; s < start.n; ++s) {
        require(stop[s] <= start[s] || (start[s] >= 0 && stop[s] <= values.n), "a segment is beyond the values");
        longest = larger(longest, stop[s] - start[s]);
    }
    const Room<double> copy(longest);
    for (i64 s = 0; s < start.n; ++s) {
        const i64 count = stop[s] - start[s];
        if (count <= 0) continue;
        double* end = std::copy(values.data + start[s], values.data + stop[s], copy.data);
        double *numbers = numbers_first(copy.data, end), *middle = copy.data + (count - 1) / 2;
        if (middle < numbers) std::nth_element(copy.data, middle, numbers);
        medians[s] = *middle;
    }
}

}  // namespace

static const border::Kernel kernels[] = {
    border::kernel<lower_medians>("lower_medians(values[n], start[S], stop[S], medians[S])"),
    border::kernel<rows_of_pairs>(
        "rows_of_pairs(first[n,c]<K, least[n,c], pairs[P,2]<K, start[K+1], incident[I]<P, edges[3P+1], rows[m], "
        "third[m])"),
    border::kernel<sort_segments>("sort_segments(edges[*], values[n])"),
    border::kernel<three_least>("three_least(products[n,K], offset[K], first[n,c], least[n,c])"),
};
static const border::Publish publish(kernels);
