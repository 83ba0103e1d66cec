// Gains of several seed topics at once, in vectors of eight single-precision lanes.
#include "border.h"
#include "simd/wide.h"
#include "topics/cells.h"

static void gain_of_seeds(In data, Labels indices, Rows indptr, i64 first, i64 last, Mat<const float> values,
                          Mat<float> gain) {
    using Eight = Wide<float, 8>;
    const corpus::Span all(indptr, first, last, data.n);
    require(corpus::all_below(indices.part(all.start, all.stop), values.n), "indices must hold words");
    for (i64 j = first; j < last; ++j) {
        Eight total{};
        for (i64 k = indptr[j]; k < indptr[j + 1]; ++k) total += float(data[k]) * Eight::at(values[indices[k]]);
        total.put(gain[j]);
    }
}

static const border::Kernel kernels[] = {
    border::kernel<gain_of_seeds>(
        "gain_of_seeds(data[c], indices[c], indptr[D+1], first, last, values[V,8], gain[D,8])"),
};
static const border::Publish publish(kernels);
