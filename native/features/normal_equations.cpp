#include "features/normal_equations.h"

#include <cmath>

#include "features/products.h"

namespace features {

void fill_sums(MatIn X, In weight, Mat<const u8> Z, MatOut z, MatOut wz, MatOut S, MatOut T) {
    for (i64 i = 0; i < Z.n; ++i)
        for (i64 k = 0; k < Z.p; ++k) {
            z(i, k) = Z(i, k);
            wz(i, k) = z(i, k) * weight[i];
        }
    product_of_columns(wz, z, S);
    product_of_columns(wz, X, T);
}

void fill_gram(MatIn A, MatOut G) {
    for (i64 k = 0; k < A.n; ++k) {
        products_in_order(A, k + 1, A[k], G[k]);
        for (i64 j = 0; j < k; ++j) G(j, k) = G(k, j);
    }
}

bool invert(MatIn S, MatIn T, MatOut M, MatOut A, MatOut G) {
    const i64 C = S.n;
    const Room<double> factor(C * C, 0.0), column(C);
    const MatOut L = factor.as(C, C);
    for (i64 i = 0; i < C; ++i)
        for (i64 j = 0; j <= i; ++j) {
            double inner = S(i, j);
            for (i64 m = 0; m < j; ++m) inner -= L(i, m) * L(j, m);
            if (i != j) L(i, j) = inner / L(j, j);
            else if (inner <= 1e-13 * S(i, i)) return false;
            else L(i, i) = std::sqrt(inner);
        }
    for (i64 k = 0; k < C; ++k) {
        for (i64 i = 0; i < C; ++i) {
            double inner = i == k ? 1.0 : 0.0;
            for (i64 m = 0; m < i; ++m) inner -= L(i, m) * column[m];
            column[i] = inner / L(i, i);
        }
        for (i64 i = C - 1; i >= 0; --i) {
            double inner = column[i];
            for (i64 m = i + 1; m < C; ++m) inner -= L(m, i) * column[m];
            column[i] = inner / L(i, i);
        }
        for (i64 i = 0; i < C; ++i) M(i, k) = column[i];
    }
    for (i64 i = 0; i < C; ++i) {
        for (i64 d = 0; d < A.p; ++d) A(i, d) = 0.0;
        for (i64 k = 0; k < C; ++k) add(A.p, M(i, k), T[k], A[i]);
    }
    fill_gram(A, G);
    return true;
}

}  // namespace features
