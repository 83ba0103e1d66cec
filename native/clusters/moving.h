// Rows that are taken out of their clusters: what they leave behind, and where they go.
#pragma once
#include <cmath>

#include "views.h"

// What is left of nothing is nothing, not rounding.
KF_INLINE double less(double whole, double part, double tiny) {
    const double rest = whole - part;
    return std::fabs(rest) > tiny * std::fabs(part) ? rest : 0.0;
}

// What is left of a cluster's weight.
KF_INLINE double lighter_by(double w, double mass) { return larger(mass - w, 1e-15 * mass); }

KF_INLINE i64 count_held(Vec<const i64> count) {
    i64 held = 0;
    for (const i64 rows : count) held += rows != 0;
    return held;
}

// The cluster that a row moves to: `best`, where it costs `least`, or an empty one for lam, if there is room; -1 if it
// gains no more by that than `gain` of what is at stake and stays where it costs `home`.
//
// One more than there are if it would be alone and no cluster is empty.
KF_INLINE i64 destination(double home, i64 best, double least, double lam, double gain, bool room,
                          Vec<const i64> count) {
    const double option = room ? smaller(least, lam) : least;
    if (!(option < home - gain * (home + (lam < INF ? lam : 0.0)))) return -1;
    if (best >= 0 && !(least > lam && room)) return best;
    i64 k = 0;
    while (k < count.n && count[k] != 0) ++k;
    return k;
}
