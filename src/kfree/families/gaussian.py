"""Squared Euclidean distance: a Gaussian with variance 1/2, so that D is the plain squared distance."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from kfree.families.base import Array, Family, Separable, Summary, positive
from kfree.families.cached import cached_property

#: Added to a covariance that is taken from the data, in units of each column's variance: columns may depend on others.
RIDGE = 1e-6


class SquaredEuclidean(Separable):
    r"""Spherical Gaussian with fixed variance v.

    .. math:: \phi(x) = \|x\|^2 / 2v, \quad \psi(\theta) = v \|\theta\|^2 / 2, \quad D = \|x - \mu\|^2 / 2v

    ``variance=0.5`` (default) makes D the squared distance of k-means and of Kulis & Jordan (2012).
    """

    name = "sqeuclidean"
    translates = True

    def __init__(self, variance: float = 0.5):
        self.variance = positive(type(self).__name__, "variance", variance)
        self.euclidean_factor = 1.0 / (2 * variance)

    def phi(self, stats: Array) -> Array:
        """Half the squared norm over the variance."""
        return (stats * stats).sum(axis=-1) / (2 * self.variance)

    def psi(self, theta: Array) -> Array:
        """Half the variance times the squared norm."""
        return (theta * theta).sum(axis=-1) * (self.variance / 2)

    def natural(self, mean: Array) -> Array:
        """Mean over variance."""
        return mean / self.variance

    def mean(self, theta: Array) -> Array:
        """Variance times theta."""
        return theta * self.variance

    def terms(self, stats: Array, mean: Array) -> Array:
        """Squared differences."""
        gap = stats - mean
        return gap * gap / (2 * self.variance)


class Mahalanobis(Family):
    r"""Gaussian with known covariance S: :math:`D = (x - \mu)^\top S^{-1} (x - \mu) / 2`.

    Without a covariance the sample covariance of the data is taken when a fit starts (with a relative
    ridge of 1e-6, so that constant columns do no harm).
    """

    name = "mahalanobis"
    translates = True

    def __init__(self, covariance: Array | None = None):
        self.covariance = covariance

    @cached_property
    def _root(self) -> Array:
        """L with L L' = S."""
        if self.covariance is None:
            raise ValueError("Mahalanobis needs a covariance before it can measure; pass Mahalanobis(covariance=S).")
        return cholesky(np.asarray(self.covariance, dtype=float), lower=True)

    @property
    def float32(self) -> bool:  # type: ignore[override]
        """Whether single precision can carry rows and natural parameters, whose units are those of the columns."""
        size = np.diag(self._root)
        return bool(size.min() > 1e-15 and size.max() < 1e15)

    @cached_property
    def _whitener(self) -> Array:
        """L^-T, so that the precision is L^-T L^-1 and D a sum of squares, never negative."""
        return solve_triangular(self._root, np.eye(self._root.shape[0]), lower=True).T

    def adapt(self, summary: Summary) -> "Mahalanobis":
        """Take the sample covariance where none was given; check the one that was."""
        p = summary.mean.shape[0]
        if self.covariance is None:
            return Mahalanobis(_well_conditioned(np.asarray(summary.covariance(), dtype=float), summary.mean))
        given = np.asarray(self.covariance, dtype=float)
        if given.shape != (p, p):
            raise ValueError(
                f"Mahalanobis covariance has shape {given.shape}, but X has {p} columns. Pass a ({p}, {p}) matrix."
            )
        if not np.isfinite(given).all():
            raise ValueError("Mahalanobis covariance contains NaN or infinity.")
        if not np.allclose(given, given.T):
            i, j = np.unravel_index(np.argmax(np.abs(given - given.T)), given.shape)
            raise ValueError(
                f"Mahalanobis covariance must be symmetric, but entry [{i}, {j}] is {given[i, j]:g} and entry "
                f"[{j}, {i}] is {given[j, i]:g}. Pass (S + S.T) / 2."
            )
        if np.linalg.eigvalsh(given).min() <= 0:
            raise ValueError(
                "Mahalanobis covariance must be positive definite, but its smallest eigenvalue is "
                f"{np.linalg.eigvalsh(given).min():g}. Add a small ridge to its diagonal."
            )
        return self

    def phi(self, stats: Array) -> Array:
        """Half the squared Mahalanobis norm."""
        return ((stats @ self._whitener) ** 2).sum(axis=-1) / 2

    def psi(self, theta: Array) -> Array:
        """Half the squared norm of theta under the covariance."""
        return ((theta @ self._root) ** 2).sum(axis=-1) / 2

    def natural(self, mean: Array) -> Array:
        """Precision times mean."""
        return mean @ self._whitener @ self._whitener.T

    def mean(self, theta: Array) -> Array:
        """Covariance times theta."""
        return theta @ self._root @ self._root.T

    def divergence(self, stats: Array, mean: Array) -> Array:
        """phi of the difference: exact also far from the origin."""
        gap = stats - mean
        # not a BLAS product: what decides must not depend on how many rows are measured together
        return (np.einsum("...j,ji->...i", gap, self._whitener) ** 2).sum(axis=-1) / 2

    def by_column(self, stats: Array, mean: Array) -> Array:
        """Squares of whitened coordinates, each as close to its own column as may be; they sum to D (Garthwaite & Koch
        2016, Evaluating the contributions of individual variables to a quadratic form)."""
        covariance = np.asarray(self.covariance, dtype=float)
        deviation = np.sqrt(np.diag(covariance))
        value, vector = np.linalg.eigh(covariance / deviation / deviation[:, None])
        root = vector / np.sqrt(np.maximum(value, np.finfo(float).eps * value[-1]))
        return ((stats - mean) / deviation @ root @ vector.T) ** 2 / 2


def _well_conditioned(covariance: Array, mean: Array) -> Array:
    """A covariance of rows with a ridge in units of each column's own variance, whatever the units are; columns
    that do not vary count in units of their mean."""
    variance = np.diag(covariance)
    unit = np.where(np.abs(mean) < 1e-140, 1.0, np.abs(mean))
    constant = variance <= (1e-14 * unit) ** 2  # what rounding makes of equal values
    return covariance + np.diag(np.where(constant, unit**2, RIDGE * variance))


class Cosine(SquaredEuclidean):
    """Spherical clustering: ``1 - <x, m>`` for unit rows and unit centres.

    Not a Bregman divergence: the best centre is the *direction* of the sum, not the mean, so there is no
    conjugate prior and no smoothing. Every descent property of the algorithms holds all the same, because
    that centre is the constrained minimiser. ``lam`` lies in (0, 2).
    """

    name = "cosine"
    normalise = "norm"
    translates = False
    smoothable = False

    def __init__(self):
        super().__init__(variance=1.0)

    def centre(self, total: Array, mass: Array) -> Array:
        """Direction of the sum; the first axis where the rows cancel out exactly."""
        length = np.sqrt((total * total).sum(axis=-1, keepdims=True))
        unit = total / np.where(length > 0, length, 1.0)
        unit[..., 0] = np.where(length[..., 0] > 0, unit[..., 0], 1.0)
        return unit

    def pull(self, square: Array, mass: Array) -> Array:
        """Length of the sum."""
        return np.sqrt(square)

    def join_cost(self, total_a: Array, mass_a: Array, total_b: Array, mass_b: Array) -> Array:
        """Loss of resultant length, ||R_a|| + ||R_b|| - ||R_a + R_b||."""

        def length(total):
            return np.sqrt((total * total).sum(axis=-1))

        return np.maximum(length(total_a) + length(total_b) - length(total_a + total_b), 0.0)
