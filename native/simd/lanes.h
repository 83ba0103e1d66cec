// Sums over vectors of a fixed number of lanes: their order, and so their rounding, is the same on every machine.
#pragma once
#include "simd/vectors.h"

using Eight = Lanes<double, 64>;

// Halves added to halves: a fixed order.
template <class R, int BYTES> KF_INLINE R sum_of_lanes(Lanes<R, BYTES> value) {
    if constexpr (BYTES == sizeof(R)) {
        return value[0];
    } else {
        Lanes<R, BYTES / 2> half[2];
        std::memcpy(half, &value, BYTES);
        return sum_of_lanes<R, BYTES / 2>(half[0] + half[1]);
    }
}
