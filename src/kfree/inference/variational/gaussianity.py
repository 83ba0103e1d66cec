"""How far rows are from a sample of a Gaussian, by their third and fourth moments."""

import numpy as np

from kfree.families import Array
from kfree.inference.variational.variational_numbers import VARIATIONAL


def negentropy(white: Array, n: Array) -> float:
    """Nats per row, about, that a Gaussian lacks in describing whitened rows (m, D) of weights n; 0 if this may be
    chance.

    From Mardia's kurtosis and the length of the mean of y |y|^2, to second order. Standard errors are the sample's own,
    as weights may differ much; rows are scaled to a mean squared length of D.
    """
    errors, D, square = VARIATIONAL.moment_errors, white.shape[1], np.einsum("id,id->i", white, white)
    near = square <= D + VARIATIONAL.far_rows * (1 + np.sqrt(2 * D))
    white, square, n = white[near], square[near], n[near]
    total = float(n.sum())
    mean = float(n @ square) / total if total > 0 else 0.0
    if not mean > VARIATIONAL.no_variance:  # copies of one row
        return 0.0
    white, square, weight = white * np.sqrt(D / mean), square * (D / mean), n / total
    # what each row adds to a moment, less what it adds by way of the mean and the covariance
    fourth, third = square**2 - 2 * (D + 2) * square + D * (D + 2), (square - (D + 2))[:, None] * white
    kurtosis, skew = float(weight @ fourth), weight @ third
    error = weight**2 @ (fourth - kurtosis) ** 2, weight**2 @ ((third - skew) ** 2).sum(axis=1) / D
    if kurtosis**2 <= errors**2 * error[0] and skew @ skew <= (D + errors * np.sqrt(2 * D)) * error[1]:
        return 0.0
    return float(kurtosis**2 / (16 * D * (D + 2)) + skew @ skew / (4 * (D + 2)))
