"""Gaussians with known mean and covariance under a Gaussian kernel: everything is a Gaussian of a wider covariance."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from kfree.families.base import Array
from kfree.families.components import Form, Weighted, Whitened
from kfree.families.points.point_family import (
    Kernel,
    MovableFamily,
    Slopes,
    Spread,
    few_bits,
    log_mean_exp,
    products,
    waves,
)

_LOG_2PI = float(np.log(2 * np.pi))
# Rounding of squared distances above which rows are centred for each component.
_FAR = 1e-10
# Share by which variances exceed those of rows that lie in a plane: rounding must not make a matrix of them indefinite.
_NOT_SINGULAR = 1e-10
# Entries of a temporary over pairs of components.
_PAIRS = 1_000_000
# Covariance of a draw from the prior, as a share of that of all rows, and its degrees of freedom beyond the columns.
_DRAWN_SHARE, _DRAWN_FREEDOM = 0.05, 4.0


class Gaussians(NamedTuple):
    """Means and covariances."""

    mean: Array  # (K, D)
    covariance: Array  # (K, D, D), (K, D) or (K,)


class GaussianPoints(MovableFamily):
    r"""What Gaussians of all shapes of covariance share; the kernel is :math:`\exp(-|x - y|^2 / 2 s^2)`.

    mu[N(m, C)](x) = \|I + C / s^2\|^{-1/2} exp(-1/2 (x - m)' (C + s^2 I)^{-1} (x - m)), and <mu_i, mu_j> is that of
    covariance C_i + C_j at m_i. Song et al. (2008); Muandet (2012).
    """

    name = "gaussian"
    continuous = True
    divergence = "sqeuclidean"

    @abstractmethod
    def widened(self, params: Gaussians, width: float) -> Form:
        """Log-density of the Gaussians with covariance C + width, without log h."""

    @abstractmethod
    def shaped(self, covariance: Array) -> Array:
        """Covariances (K, D, D) in the shape of the family."""

    def made_of(self, means: Array, covariances: Array | None) -> Gaussians:
        """As they are."""
        assert covariances is not None
        return Gaussians(means, covariances)

    @abstractmethod
    def log_inner(self, width: float, one: Gaussians, other: Gaussians) -> Array:
        """Logs of inner products under a kernel of one squared bandwidth."""

    @abstractmethod
    def log_det_ratio(self, params: Gaussians, width: float, times: float) -> Array:
        """log |I + times C / width|."""

    @abstractmethod
    def quadratic(self, params: Gaussians, W: Array) -> Array:
        """w' C w for directions (D, M), (K, M)."""

    @abstractmethod
    def _root_times(self, params: Gaussians, labels: Array, draws: Array) -> Array:
        """A root of the covariance of each label times draws."""

    def form(self, params: Gaussians) -> Form:
        """Log-density."""
        return self.widened(params, 0.0)

    def log_base(self, X: Any) -> Array:
        """The constant of the Gaussian density."""
        return np.full(X.shape[0], -0.5 * X.shape[1] * _LOG_2PI)

    def log_predictive(self, params: Gaussians, X: Any) -> Array:
        """The density itself."""
        return scores(self.form(params), X) - 0.5 * X.shape[1] * _LOG_2PI

    def sample(self, params: Gaussians, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Means and what is around them."""
        draws = rng.normal(size=(labels.shape[0], params.mean.shape[1]))
        return params.mean[labels] + self._root_times(params, labels, draws)

    def means(self, params: Gaussians) -> Array:
        """Means."""
        return params.mean

    def covariances(self, params: Gaussians) -> Array:
        """Covariances."""
        return params.covariance

    def apart(self, X: Any, Y: Any) -> Array:
        """Squared distances."""
        return _weighted_squares(X, np.ones_like(Y), Y)

    def between(self, kernel: Kernel, X: Any, Y: Any) -> Array:
        """Gaussian kernel."""
        apart = self.apart(X, Y)
        return log_mean_exp([apart * (-0.5 / width) for width in kernel.widths], 0.0)

    def embed(self, kernel: Kernel, params: Gaussians, X: Any) -> Array:
        """Gaussians widened by the kernel, less their height."""
        logs = []
        for width in kernel.widths:
            height = 0.5 * X.shape[1] * np.log(width)
            logs.append(scores(self.widened(params, float(width)), X) + height)
        return log_mean_exp(logs, kernel.log_unit)

    def inner(self, kernel: Kernel, one: Gaussians, other: Gaussians) -> Array:
        """Gaussians widened by each other and the kernel."""
        return log_mean_exp([self.log_inner(float(width), one, other) for width in kernel.widths], kernel.log_unit)

    def log_norms(self, kernel: Kernel, params: Gaussians) -> Array:
        """Minus half of log |I + 2 C / s^2|."""
        logs = [-0.5 * self.log_det_ratio(params, float(width), 2.0) for width in kernel.widths]
        return np.logaddexp.reduce(logs) - np.log(len(logs))

    def frequencies(self, kernel: Kernel, columns: int, count: int, rng: np.random.Generator) -> Array:
        """Directions (D, M) from the Fourier transform of the kernel; bandwidths in turn."""
        width = np.resize(kernel.widths, count)
        return few_bits((rng.normal(size=(count, columns)) / np.sqrt(width)[:, None]).T)

    def row_features(self, frequencies: Array, X: Any) -> Array:
        """exp(i w'x)."""
        return waves(products(X, frequencies))

    def component_features(self, kernel: Kernel, frequencies: Array, params: Gaussians) -> Array:
        """exp(i w'm - w'Cw / 2)."""
        height = np.exp(-0.5 * self.quadratic(params, frequencies)) / np.sqrt(frequencies.shape[1])
        phase = params.mean @ frequencies
        return np.concatenate([np.cos(phase) * height, np.sin(phase) * height], axis=1)

    @abstractmethod
    def _pull(self, total: Array, gap: Array, weight: Array) -> tuple[Array, Array]:
        """Sums over rows of weight times A e, and of weight times (A e e'A - A) / 2, for gaps e and A the inverse of
        ``total``, one for each row or one for all."""

    @abstractmethod
    def _plus(self, covariance: Array, width: float) -> Array:
        """Covariances widened by the kernel, as ``_pull`` wants them."""

    def inner_slopes(self, kernel: Kernel, params: Gaussians, p: Array) -> Slopes:
        """Derivatives of 1/2 p'Sp."""
        mean, covariance = np.zeros_like(params.mean), np.zeros_like(params.covariance)
        for width in kernel.widths:
            S = np.exp(self.log_inner(float(width), params, params) - kernel.log_unit)
            pull = p[:, None] * p * S / kernel.widths.size
            for i in range(p.size):
                total = self._plus(params.covariance[i] + params.covariance, float(width))
                first, second = self._pull(total, params.mean[i] - params.mean, pull[i])
                mean[i] -= first
                covariance[i] += second
        return Slopes(mean, covariance)

    def row_slopes(self, kernel: Kernel, params: Gaussians, p: Array, X: Array, share: Array) -> Slopes:
        """Derivatives of p'R, with weights of rows that sum to one over all of them."""
        mean, covariance = np.zeros_like(params.mean), np.zeros_like(params.covariance)
        for width in kernel.widths:
            height = 0.5 * X.shape[1] * np.log(width) - kernel.log_unit
            value = np.exp(scores(self.widened(params, float(width)), X) + height) / kernel.widths.size
            for i in range(p.size):
                total = self._plus(params.covariance[i : i + 1], float(width))
                first, second = self._pull(total, X - params.mean[i], p[i] * share * value[:, i])
                mean[i] += first
                covariance[i] += second
        return Slopes(mean, covariance)

    def feature_slopes(self, frequencies: Array, params: Gaussians, p: Array, excess: Array) -> Slopes:
        """Derivatives of 1/2 |z|^2 for an excess z = Phi'p - z0 of expected features over those of rows."""
        M, phase = frequencies.shape[1], params.mean @ frequencies
        height = p[:, None] * np.exp(-0.5 * self.quadratic(params, frequencies)) / np.sqrt(M)
        cosine, sine = np.cos(phase), np.sin(phase)
        turn = height * (excess[M:] * cosine - excess[:M] * sine)
        along = height * (excess[:M] * cosine + excess[M:] * sine)
        return Slopes(turn @ frequencies.T, -0.5 * self._outer(frequencies, along))

    @abstractmethod
    def _outer(self, W: Array, weight: Array) -> Array:
        """Sums over directions (D, M) of weight w w', in the shape of covariances."""

    def estimate(self, X: Any, resp: Array, spread: Spread) -> Gaussians:
        """Means; covariances between those of the rows of a component and those of all components together."""
        mass = np.maximum(resp.sum(axis=0), np.finfo(float).tiny)
        mean = (resp.T @ X) / mass[:, None]
        scatter = np.stack([_scatter(X, resp[:, k], mean[k]) for k in range(mass.size)])
        return Gaussians(mean, self.shaped(pooled_covariance(scatter, mass, spread)))

    def draw(self, spread: Spread, count: int, rng: np.random.Generator) -> Gaussians:
        """Means spread as the rows, covariances from an inverse Wishart distribution."""
        D = spread.mean.size
        of_means, of_shapes, of_freedom = rng.spawn(3)  # so that the first draws are the same for any count
        root = np.linalg.cholesky(spread.covariance + np.diag(spread.floor))
        mean = spread.mean + of_means.normal(size=(count, D)) @ root.T
        df = D + _DRAWN_FREEDOM - 1
        bartlett = np.tril(of_shapes.normal(size=(count, D, D)), -1)
        diagonal = np.sqrt(2 * of_freedom.standard_gamma((df - np.arange(D)) / 2, size=(count, D)))
        bartlett[:, np.arange(D), np.arange(D)] = diagonal
        # the inverse of a Wishart draw with identity scale, in the coordinates of the rows
        half = root @ np.linalg.inv(bartlett).transpose(0, 2, 1)
        covariance = _DRAWN_SHARE * (df - D - 1) * (half @ half.transpose(0, 2, 1))
        return Gaussians(mean, self.shaped(covariance + np.diag(spread.floor)))


class FullPoints(GaussianPoints):
    """Any covariance."""

    column_units = True

    def widened(self, params: Gaussians, width: float) -> Whitened:
        """Whitened distances."""
        root, log_det = _roots(params.covariance, width)
        return Whitened(root, params.mean, 0.5 * log_det)

    def shaped(self, covariance: Array) -> Array:
        """As they are."""
        return covariance

    def covariance_shape(self, K: int, columns: int) -> tuple[int, ...]:
        """Matrices."""
        return K, columns, columns

    def least_rows(self, columns: int) -> float:
        """Fewer would have no volume."""
        return float(columns)

    def log_det_ratio(self, params: Gaussians, width: float, times: float) -> Array:
        """From Cholesky factors."""
        D = params.mean.shape[1]
        return _roots(times * params.covariance, width)[1] - D * np.log(width)

    def log_inner(self, width: float, one: Gaussians, other: Gaussians) -> Array:
        """A Cholesky factor for every pair, some at a time."""
        K, L, D = one.mean.shape[0], other.mean.shape[0], one.mean.shape[1]
        value, step = np.empty((K, L)), max(1, _PAIRS // max(L * D * D, 1))
        for start in range(0, K, step):
            some = slice(start, min(start + step, K))
            rest = slice(start if one is other else 0, L)  # of the same components each pair once
            joint = one.covariance[some, None] + other.covariance[None, rest]
            joint[..., np.arange(D), np.arange(D)] += width
            lower = np.linalg.cholesky(joint)
            gap = (one.mean[some, None] - other.mean[None, rest])[..., None]
            white = np.linalg.solve(lower, gap)[..., 0]
            log_det = 2 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
            value[some, rest] = -0.5 * ((white * white).sum(axis=-1) + log_det - D * np.log(width))
            if one is other:
                value[rest, some] = value[some, rest].T
        return value

    def _plus(self, covariance: Array, width: float) -> Array:
        return covariance + width * np.eye(covariance.shape[1])

    def _pull(self, total: Array, gap: Array, weight: Array) -> tuple[Array, Array]:
        inverse = np.linalg.inv(total)
        white = gap @ inverse[0] if inverse.shape[0] == 1 else (inverse @ gap[..., None])[..., 0]
        second = (white * weight[:, None]).T @ white
        if inverse.shape[0] == 1:
            return weight @ white, 0.5 * (second - weight.sum() * inverse[0])
        return weight @ white, 0.5 * (second - np.tensordot(weight, inverse, 1))

    def _outer(self, W: Array, weight: Array) -> Array:
        return np.stack([(W * one) @ W.T for one in weight])

    def quadratic(self, params: Gaussians, W: Array) -> Array:
        """Squared lengths of directions under each covariance."""
        return np.stack([((C @ W) * W).sum(axis=0) for C in params.covariance])

    def _root_times(self, params: Gaussians, labels: Array, draws: Array) -> Array:
        out = np.empty_like(draws)
        for k in np.unique(labels):
            own = labels == k
            out[own] = draws[own] @ np.linalg.cholesky(params.covariance[k]).T
        return out


class _Independent(GaussianPoints):
    """Covariances without correlations: one variance for each column, or for all."""

    def _variances(self, params: Gaussians) -> Array:
        """(K, D), or (K, 1) that stands for all columns."""
        return params.covariance.reshape(params.mean.shape[0], -1)

    def widened(self, params: Gaussians, width: float) -> Weighted:
        """Weighted squared distances."""
        D, total = params.mean.shape[1], self._variances(params) + width
        precision = np.broadcast_to(1 / total, params.mean.shape)
        return Weighted(precision.copy(), params.mean, 0.5 * np.log(total).sum(axis=1) * (D / total.shape[1]))

    def log_det_ratio(self, params: Gaussians, width: float, times: float) -> Array:
        """A sum of logs."""
        value = np.log1p(times * self._variances(params) / width)
        return value.sum(axis=1) * (params.mean.shape[1] / value.shape[1])

    def log_inner(self, width: float, one: Gaussians, other: Gaussians) -> Array:
        """A sum over columns for every pair, some at a time."""
        K, L, D = one.mean.shape[0], other.mean.shape[0], one.mean.shape[1]
        mine, theirs = self._variances(one), self._variances(other)
        value, step = np.empty((K, L)), max(1, _PAIRS // max(L * D, 1))
        for start in range(0, K, step):
            some = slice(start, min(start + step, K))
            total = mine[some, None] + theirs[None] + width
            gap = one.mean[some, None] - other.mean[None]
            log_det = np.log(total / width).sum(axis=-1) * (D / total.shape[-1])
            value[some] = -0.5 * ((gap * gap / total).sum(axis=-1) + log_det)
        return value

    def _plus(self, covariance: Array, width: float) -> Array:
        return covariance.reshape(covariance.shape[0], -1) + width

    def _pull(self, total: Array, gap: Array, weight: Array) -> tuple[Array, Array]:
        white = gap / total
        squares = white * white - 1 / total
        return weight @ white, 0.5 * self._over_columns(weight @ squares)

    def _outer(self, W: Array, weight: Array) -> Array:
        return self._over_columns(weight @ (W * W).T)

    @abstractmethod
    def _over_columns(self, slope: Array) -> Array:
        """Derivatives by the variances of columns as those by what the family has of them."""

    def quadratic(self, params: Gaussians, W: Array) -> Array:
        """Variances times squares."""
        return np.broadcast_to(self._variances(params), params.mean.shape) @ (W * W)

    def _root_times(self, params: Gaussians, labels: Array, draws: Array) -> Array:
        return draws * np.sqrt(self._variances(params))[labels]


class DiagonalPoints(_Independent):
    """A variance for each column."""

    column_units = True

    def shaped(self, covariance: Array) -> Array:
        """Their diagonals."""
        return np.ascontiguousarray(np.diagonal(covariance, axis1=1, axis2=2))

    def covariance_shape(self, K: int, columns: int) -> tuple[int, ...]:
        """A variance for each column."""
        return K, columns

    def _over_columns(self, slope: Array) -> Array:
        return slope


class SphericalPoints(_Independent):
    """One variance for all columns."""

    def shaped(self, covariance: Array) -> Array:
        """Means of their diagonals."""
        return np.diagonal(covariance, axis1=1, axis2=2).mean(axis=1)

    def covariance_shape(self, K: int, columns: int) -> tuple[int, ...]:
        """A variance."""
        return (K,)

    def _over_columns(self, slope: Array) -> Array:
        return slope.sum(axis=-1)


def pooled_covariance(scatter: Array, mass: Array, spread: Spread) -> Array:
    """Covariances from sums of squares (K, D, D): those of few rows are drawn to the mean over all components."""
    D = spread.mean.size
    pool = scatter.sum(axis=0) / mass.sum()
    worth = D + 2.0
    covariance = (scatter + worth * pool) / (mass + worth)[:, None, None]
    own = np.diagonal(covariance, axis1=1, axis2=2)
    covariance[:, np.arange(D), np.arange(D)] += spread.floor + _NOT_SINGULAR * own
    return covariance


def scores(form: Form, X: Array) -> Array:
    """Gaussian log-densities of dense rows without log h, (n, K)."""
    if isinstance(form, Whitened):
        value = np.empty((X.shape[0], form.offset.size))
        for k, (root, mean) in enumerate(zip(form.root, form.mean)):
            gap = (X - mean) @ root
            value[:, k] = np.einsum("nd,nd->n", gap, gap)
    else:
        assert isinstance(form, Weighted)
        value = _weighted_squares(X, form.precision, form.mean)
    return value * -0.5 - form.offset


def _weighted_squares(X: Array, precision: Array, mean: Array) -> Array:
    """Sums over columns of precision (x - mean)^2, (n, K): products, unless these lose digits."""
    largest = max(np.abs(X).max(initial=0.0), np.abs(mean).max(initial=0.0))
    if largest * largest * precision.max(initial=0.0) * np.finfo(float).eps * X.shape[1] > _FAR:
        value = np.empty((X.shape[0], mean.shape[0]))
        for k in range(mean.shape[0]):
            gap = X - mean[k]
            value[:, k] = (gap * gap) @ precision[k]
        return value
    weighted = precision * mean
    value = (X * X) @ precision.T - 2 * (X @ weighted.T) + (weighted * mean).sum(axis=1)
    return np.maximum(value, 0.0, out=value)


def _roots(covariance: Array, width: float) -> tuple[Array, Array]:
    """Upper roots of the inverses of C + width, and logs of determinants."""
    D = covariance.shape[1]
    lower = np.linalg.cholesky(covariance + width * np.eye(D))
    root = np.stack([solve_triangular(one, np.eye(D), lower=True, check_finite=False).T for one in lower])
    return root, 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)


def _scatter(X: Array, weight: Array, mean: Array) -> Array:
    """Weighted sum of squares about a mean."""
    own = np.flatnonzero(weight > 0)
    gap = (X[own] - mean) * np.sqrt(weight[own])[:, None]
    return gap.T @ gap
