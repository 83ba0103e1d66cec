// Shares of terms in sums of exponentials.
#pragma once
#include <cmath>

#include "views.h"

// exp of this is below 1e-16: nothing next to 1.
constexpr double NEGLIGIBLE = -37.0;

// Fills the shares (K, n) of rows and the logs of their sums. `fill(i, row)` fills the K scores of row i and returns
// the largest. Some rows are written together: lines of resp may be so far apart that they want the same place in a
// cache.
template <class Fill> KF_INLINE void soften_rows(MatOut resp, Out lse, Fill&& fill) {
    constexpr i64 TOGETHER = 8;
    const i64 K = resp.n;
    const Room<double> room(TOGETHER * K);
    double total[TOGETHER];
    for (i64 start = 0; start < lse.n; start += TOGETHER) {
        const i64 m = smaller(lse.n - start, TOGETHER);
        for (i64 r = 0; r < m; ++r) {
            double* row = room.data + r * K;
            const double top = fill(start + r, row);
            total[r] = 0.0;
            for (i64 k = 0; k < K; ++k) {
                const double gap = row[k] - top;
                row[k] = gap > NEGLIGIBLE ? std::exp(gap) : 0.0;
                total[r] += row[k];
            }
            lse[start + r] = top + std::log(total[r]);
        }
        for (i64 k = 0; k < K; ++k)
            for (i64 r = 0; r < m; ++r) resp(k, start + r) = room[r * K + k] / total[r];
    }
}
