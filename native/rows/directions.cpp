#include "rows/directions.h"

#include <cmath>

double normalise(Out vector) {
    double square = 0.0;
    for (const double value : vector) square += value * value;
    const double size = std::sqrt(square);
    if (size > 0.0)
        for (double& value : vector) value /= size;
    return size;
}

double square_apart(In one, In other) {
    double square = 0.0;
    for (i64 c = 0; c < one.n; ++c) square += (one[c] - other[c]) * (one[c] - other[c]);
    return square;
}

i64 first_largest(In values) {
    double top = values[0];
    for (const double value : values) {
        if (value != value) return 0;
        top = larger(top, value);
    }
    for (i64 c = 0; c < values.n; ++c)
        if (values[c] >= top * (1 - 1e-9)) return c;
    return 0;
}
