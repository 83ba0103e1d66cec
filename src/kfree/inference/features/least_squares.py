"""Least squares where weights differ by many powers of ten: by rotations of the weighted rows.

Their condition is the root of that of the sums ``Z'WZ``. Rows are taken by falling weight and columns by falling
length, so that a light row is rounded by its own size (Cox & Higham 1998, Stability of Householder QR factorization
for weighted least squares problems).
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from kfree.families import Array


class Rotated(NamedTuple):
    """Weighted columns as an orthonormal basis times a triangle."""

    basis: Array  # (n, K) of the rows times the roots of their weights
    triangle: Array  # (K, K) of the columns in their order
    order: Array  # (K,) of the columns

    def solve(self, along: Array) -> Array:
        """The means, from the products of the basis with the weighted rows."""
        A = np.empty_like(along)
        A[self.order] = scipy.linalg.solve_triangular(self.triangle, along, check_finite=False)
        return A

    def leverages(self, rows: Array) -> Array:
        """``y (Z'WZ)^-1 y'`` of other rows y."""
        reach = scipy.linalg.solve_triangular(self.triangle, rows.T[self.order], trans="T", check_finite=False)
        return np.einsum("ij,ij->j", reach, reach)


def rotate(columns: Array, weight: Array) -> Rotated:
    """Factor independent columns."""
    falling = np.argsort(-weight, kind="stable")
    weighted = np.sqrt(weight[falling])[:, None] * columns[falling]
    sorted_basis, triangle, order = scipy.linalg.qr(weighted, mode="economic", pivoting=True, check_finite=False)
    basis = np.empty_like(sorted_basis)
    basis[falling] = sorted_basis
    return Rotated(basis, triangle, order)
