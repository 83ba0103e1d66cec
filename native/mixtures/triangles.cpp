#include "mixtures/triangles.h"

#include <cmath>

#include "simd/products.h"

bool lower_factor(const double* matrix, i64 D, double* lower) {
    for (i64 c = 0; c < D; ++c) {
        double* line = lower + c * D;
        for (i64 d = 0; d <= c; ++d) {
            const double value = matrix[c * D + d] - product(line, lower + d * D, d);
            if (d < c) line[d] = value / lower[d * D + d];
            else if (value > 0.0) line[c] = std::sqrt(value);
            else return false;
        }
    }
    return true;
}

void invert_lower(const double* lower, i64 D, double* inverse) {
    for (i64 c = 0; c < D; ++c) {
        const double* given = lower + c * D;
        double* __restrict line = inverse + c * D;
        for (i64 d = 0; d < c; ++d) {
            const double* __restrict other = inverse + d * D;
            for (i64 e = 0; e < d; ++e) line[e] -= given[d] * other[e];
            line[d] = 0.0 - given[d] * other[d];
        }
        for (i64 e = 0; e < c; ++e) line[e] /= given[c];
        line[c] = 1.0 / given[c];
    }
}

double pair_products(const double* a, const double* b, i64 n) { return product(a, b, n); }
