#pragma once
#include "simd/wide_rows.h"

// Columns as a loop sees them: most tables have few, and a loop over two or five that the compiler knows is several
// times as fast as one over any number. REST are those beyond a multiple of WIDE; there are no others unless LONG.
template <int REST, bool LONG> struct Columns {
    i64 stop;
    explicit Columns(i64 p) : stop(LONG ? p - REST : 0) {}
    template <class Body> KF_INLINE void rest(Body body) const {
        for (int j = 0; j < REST; ++j) body((LONG ? stop : 0) + j);
    }
    static constexpr bool is_long = LONG;
};

template <int REST, class Body> KF_INLINE void call_with(i64 p, Body body) {
    if (p < WIDE) body(Columns<REST, false>(p));
    else body(Columns<REST, true>(p));
}

template <class Body> KF_INLINE void with_columns(i64 p, Body body) {
    switch (p % WIDE) {
        case 0: return call_with<0>(p, body);
        case 1: return call_with<1>(p, body);
        case 2: return call_with<2>(p, body);
        case 3: return call_with<3>(p, body);
        case 4: return call_with<4>(p, body);
        case 5: return call_with<5>(p, body);
        case 6: return call_with<6>(p, body);
        default: return call_with<7>(p, body);
    }
}
