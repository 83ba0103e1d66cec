// Rows of tables that are padded with zero columns to a multiple of 16, in vectors of 16 single-precision lanes.
// Each lane is one chain of multiply-adds, so a result does not depend on which rows are taken together.
#pragma once
#include "simd/wide.h"

namespace corpus {

using Sixteen = Wide<float, 16>;

template <class T> KF_INLINE void require_padding(Mat<T> table) {
    require(table.p > 0 && table.p % 16 == 0, "columns must be padded to a multiple of 16");
}

}  // namespace corpus
