// Triangular matrices of a few dozen columns, where a product and a sum may become one rounding: larger ones are better
// left to LAPACK. Above the diagonal of lower triangles nothing is read or written.
#pragma once
#include "views.h"

// Cholesky factor of a matrix; whether there is one.
bool lower_factor(const double* matrix, i64 D, double* lower);
void invert_lower(const double* lower, i64 D, double* inverse);
// Sum of products of n pairs.
double pair_products(const double* a, const double* b, i64 n);
