// Slices of rows: the nodes of a tree.
#pragma once
#include "views.h"

KF_INLINE void check_slices(Rows start, Rows stop, i64 rows) {
    bool fits = true;
    for (i64 t = 0; t < start.n; ++t) fits &= 0 <= start[t] && start[t] < stop[t] && stop[t] <= rows;
    require(fits, "slices must hold rows, and end with the table at the latest");
}

KF_INLINE bool same_rows(MatIn X, i64 i, i64 k) {
    for (i64 c = 0; c < X.p; ++c)
        if (X(i, c) != X(k, c)) return false;
    return true;
}
