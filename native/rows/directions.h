// Steps of a power iteration, the same for dense and sparse rows.
#pragma once
#include "views.h"

// Divides a vector by its length, if it has one; returns the length.
double normalise(Out vector);
// The square of the distance between two vectors.
double square_apart(In one, In other);
// The first of the largest values; what rounding tells apart is equal. There is at least one.
i64 first_largest(In values);

// From the axis `widest` on, at most so many times `apply(now, next)`, until the square of a change is within the
// tolerance or nothing is left; `now` becomes the direction, `next` is room.
template <class APPLY>
KF_INLINE void iterate(i64 widest, i64 steps, double tolerance, const APPLY& apply, Out now, Out next) {
    for (double& value : now) value = 0.0;
    now[widest] = 1.0;
    for (i64 step = 0; step < steps; ++step) {
        apply(now, next);
        if (normalise(next) == 0.0) break;
        const double change = square_apart(next, now);
        for (i64 c = 0; c < now.n; ++c) now[c] = next[c];
        if (change <= tolerance) break;
    }
}
