// Segments of an array: values[edges[s]] up to values[edges[s + 1]].
#pragma once
#include "views.h"

// Edges must rise, within an array of this length; `what` says so.
inline void require_edges(Rows edges, i64 length, const char* what) {
    bool rise = edges.n == 0 || (edges[0] >= 0 && edges[edges.n - 1] <= length);
    for (i64 s = 0; s + 1 < edges.n; ++s) rise &= edges[s] <= edges[s + 1];
    require(rise, what);
}
