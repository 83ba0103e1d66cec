// Nearest centres of packed rows. For R float and double.
#pragma once
#include "simd/tile.h"

// Tiles packed before they are read: what was just stored in small pieces is slow to load in large ones.
constexpr int RUN = 16;
// Rows of a run.
template <class R> constexpr i64 ROWS_OF_RUN = RUN * LANES<R>;

// Two least costs of packed rows, and the index of the least.
template <class R>
void nearest_packed(const R* tiles, const Panels<R>& centres, i64 n, i32* labels, double* least, double* second);
