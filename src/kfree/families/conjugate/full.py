"""Gaussian with full covariance and a Normal-Wishart prior."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from kfree.families.base import Array
from kfree.families.components import Whitened, join
from kfree.families.conjugate.conjugate_family import (
    FARTHEST,
    Conjugate,
    Drawn,
    Facts,
    Hyperprior,
    Moments,
    hyperparameter,
    pooled,
    pseudo_count,
)

LOG_2PI = float(np.log(2 * np.pi))
# Degrees of freedom beyond D - 1 that a prior may learn.
_DEGREES = 2.0, 1e4
# Of the narrowest that a component may be: precisions below are no narrower than rounding.
_LEAST_PRECISION = 1e-30


class NormalWishart(NamedTuple):
    """Lambda ~ Wishart(nu, B^-1), mu | Lambda ~ N(mean, (beta Lambda)^-1)."""

    mean: Array  # (K, D)
    beta: Array  # (K,)
    nu: Array  # (K,)
    scale: Array  # (K, D, D) B
    root: Array  # (K, D, D) with B^-1 = root root'
    log_det: Array  # (K,) of B


class FullGaussian(Conjugate):
    r"""Gaussian rows of unknown mean and covariance.

    E[log p(x)] = 1/2 (E log|Lambda| - D/beta - nu (x - m)' B^-1 (x - m)) + log h, log h = -D/2 log 2 pi. The predictive
    density is Student's t with nu + 1 - D degrees of freedom. Kurihara, Welling & Vlassis (2006); Bishop (2006), 10.2.
    """

    name = "gaussian"
    continuous = True
    second_moments = "full"
    column_units = True
    hyperparameters = ("mean", "mean_precision", "degrees_of_freedom", "covariance")
    starts = (1.0, 0.1)

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> NormalWishart:
        """Cluster means spread as the data, clusters a tenth as wide as the data; nearly the weakest proper prior."""
        D = facts.p
        mean = hyperparameter(given, "mean", 0.0, (D,), -np.inf)
        beta = pseudo_count(given, "mean_precision", 0.01, (1,))
        nu = pseudo_count(given, "degrees_of_freedom", D + 1.0, (1,), D - 1.0)
        width = np.asarray(given.get("covariance", 0.01 * facts.spread), dtype=np.float64)
        if width.ndim < 2:
            width = np.diag(hyperparameter(given, "covariance", width, (D,), 0.0))
        elif width.shape != (D, D) or not np.allclose(width, width.T) or not is_definite(width):
            raise ValueError(
                f"prior['covariance'] must be a positive number, {D} of them, or a positive definite ({D}, {D}) matrix."
            )
        return _record(mean[None], beta, nu, nu[:, None, None] * width, None)

    def hyperparameters_of(self, prior: NormalWishart) -> dict[str, Any]:
        """The four of a Normal-Wishart; its covariance is B / nu."""
        covariance = prior.scale[0] / prior.nu[0]
        return dict(zip(self.hyperparameters, (prior.mean[0], float(prior.beta[0]), float(prior.nu[0]), covariance)))

    def star(self, facts: Facts, given: Mapping[str, Any], width: float = 1.0) -> NormalWishart:
        """As wide as the data in every column."""
        return self.prior(facts, {"covariance": width * facts.variance, **given})

    def learned(self, params: NormalWishart, prior: NormalWishart, hyper: Hyperprior) -> NormalWishart:
        """Block by block: the covariance is a harmonic mean of those of the components, then nu, then beta."""
        (T, D), star, held = params.mean.shape, hyper.star, hyper.held
        all_of = join([params, star])
        precisions = all_of.nu[:, None, None] * (all_of.root @ all_of.root.transpose(0, 2, 1))
        mean_precision = precisions.sum(axis=0) / (T + 1)
        log_det = float((_digammas(all_of.nu, D) + D * np.log(2.0) - all_of.log_det).sum()) / (T + 1)
        width = prior.scale[0] / prior.nu[0]
        if "covariance" not in held:
            width = _inverse_above(mean_precision, hyper.least)
        nu = float(prior.nu[0])
        if "degrees_of_freedom" not in held:
            nu = _best_degrees(
                nu, D, float(np.linalg.slogdet(width)[1]) + log_det - float((width * mean_precision).sum())
            )
        beta = float(prior.beta[0])
        if "mean_precision" not in held:
            gap = ((all_of.mean - prior.mean)[:, None, :] @ all_of.root)[:, 0]
            beta = (T + 1) * D / float((D / all_of.beta + all_of.nu * (gap * gap).sum(axis=1)).sum())
        return _record(prior.mean, np.array([beta]), np.array([nu]), nu * width[None], None)

    def posterior(self, prior: NormalWishart, sums: Moments) -> NormalWishart:
        """Sums of squares about the mean of the rows, and a term for its distance from the prior mean."""
        assert sums.second is not None
        beta0 = float(prior.beta[0])
        mean, gap, away = pooled(sums, prior.mean, beta0)
        shrunk = (beta0 * sums.mass / (beta0 + sums.mass))[:, None, None]
        scatter = sums.second - sums.mass[:, None, None] * _outer(gap) + shrunk * _outer(away)
        return _record(mean, beta0 + sums.mass, prior.nu + sums.mass, prior.scale + scatter, prior)

    def form(self, params: NormalWishart) -> Whitened:
        """Whitened distances."""
        D = params.mean.shape[1]
        log_det = _digammas(params.nu, D) + D * np.log(2.0) - params.log_det
        root = np.sqrt(params.nu)[:, None, None] * params.root
        return Whitened(root, params.mean, 0.5 * (D / params.beta - log_det))

    def divergence(self, params: NormalWishart, prior: NormalWishart) -> Array:
        """KL of Normal-Wishart distributions."""
        D, nu, nu0 = params.mean.shape[1], params.nu, prior.nu
        ratio = prior.beta / params.beta
        gap = ((params.mean - prior.mean)[:, None, :] @ params.root)[:, 0]
        trace = (params.root * (prior.scale @ params.root)).sum(axis=(1, 2))
        value = 0.5 * D * (ratio - np.log(ratio) - 1) + 0.5 * prior.beta * nu * (gap * gap).sum(axis=1)
        value += 0.5 * nu0 * (params.log_det - prior.log_det) + 0.5 * (nu - nu0) * _digammas(nu, D)
        return value + 0.5 * nu * (trace - D) + _log_gammas(nu0, D) - _log_gammas(nu, D)

    def terms(self, params: NormalWishart) -> Array:
        """Logs of gamma functions for every column."""
        return params.mean.shape[1] * (1 + params.nu * np.log1p(params.nu))

    def blur(self, prior: NormalWishart, total: float) -> float:
        """Sums of squares of rows, whose variance is about one, and of the distance of the prior mean may be singular:
        there the scale of the prior is beside their rounding. The divergence of scales is a quarter of its square."""
        squares = total + prior.mean[0] @ prior.mean[0] * min(float(prior.beta[0]), total)
        with np.errstate(over="ignore"):  # of rows that hardly differ
            precision = prior.root[0] @ prior.root[0].T
            return float(0.5 * np.finfo(float).eps * squares * np.sqrt((precision * precision).sum()))

    def log_base(self, X: Any) -> Array:
        """The constant of the Gaussian density."""
        return np.full(X.shape[0], -0.5 * X.shape[1] * LOG_2PI)

    def log_predictive(self, params: NormalWishart, X: Any) -> Array:
        """Student's t, location m, scale B (beta + 1) / (beta (nu + 1 - D)), nu + 1 - D degrees of freedom."""
        D = X.shape[1]
        half, shrink = (params.nu + 1) / 2, params.beta / (params.beta + 1)
        constant = gammaln(half) - gammaln(half - D / 2) + 0.5 * (D * np.log(shrink / np.pi) - params.log_det)
        value = np.empty((X.shape[0], params.nu.shape[0]))
        for k, (mean, root) in enumerate(zip(params.mean, params.root)):
            gap = (X - mean) @ root
            value[:, k] = constant[k] - half[k] * np.log1p(shrink[k] * np.einsum("nd,nd->n", gap, gap))
        return value

    def sample(self, params: NormalWishart, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """A Gaussian over the root of a chi-square."""
        D, df = params.mean.shape[1], params.nu + 1 - params.mean.shape[1]
        draws = rng.normal(size=(labels.shape[0], D)) / np.sqrt(chi_square(df[labels], rng))[:, None]
        stretch = np.sqrt((params.beta + 1) / params.beta)
        for k in np.unique(labels):
            own = labels == k
            draws[own] = params.mean[k] + stretch[k] * draws[own] @ _lower(params, k).T
        return draws

    def means(self, params: NormalWishart) -> Array:
        """Means of the locations."""
        return params.mean

    def covariances(self, params: NormalWishart) -> Array:
        """B / nu."""
        return params.scale / params.nu[:, None, None]

    def deviations(self, params: NormalWishart) -> Array:
        """Of a Student's t: its covariance is B / (beta (nu - D - 1))."""
        freedom = (params.beta * (params.nu - params.mean.shape[1] - 1))[:, None]
        variance = np.diagonal(params.scale, axis1=1, axis2=2) / np.where(freedom > 0, freedom, 1.0)
        return np.sqrt(np.where(freedom > 0, variance, np.inf))

    def draw(self, params: NormalWishart, count: int, rng: np.random.Generator) -> Drawn:
        """Bartlett's factors A of Wishart matrices: Lambda = root A A' root'."""
        K, D = params.mean.shape
        factor = np.tril(rng.normal(size=(count, K, D, D)), -1)
        squares = chi_square(params.nu[:, None] - np.arange(D), rng, (count, K, D))
        factor[..., np.arange(D), np.arange(D)] = np.sqrt(squares)
        half = np.linalg.inv(params.root @ factor).swapaxes(-1, -2)  # half half' is the covariance
        away = (half @ rng.normal(size=(count, K, D, 1)))[..., 0] / np.sqrt(params.beta)[:, None]
        return Drawn(params.mean + away, half @ half.swapaxes(-1, -2))

    def given(self, drawn: Drawn, prior: NormalWishart) -> Whitened:
        """Whitened distances."""
        assert drawn.covariances is not None
        lower = np.linalg.cholesky(drawn.covariances[0])
        log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return Whitened(np.linalg.inv(lower).transpose(0, 2, 1), drawn.means[0], 0.5 * log_det)

    def directions(self, params: NormalWishart, prior: NormalWishart, deviation: Array | None) -> list[Array]:
        """Leading eigenvectors of B; in units of the columns' deviations, and beside what the prior expects."""
        if deviation is None:
            return [np.asarray(np.linalg.eigh(params.scale)[1][:, :, -1])]
        return [_longest(params.scale, np.diag(1 / deviation)), _longest(params.scale, prior.root[0])]


def chi_square(df: Array, rng: np.random.Generator, size: tuple[int, ...] | None = None) -> Array:
    """Draws to be divided by: with few degrees of freedom most are below the least number."""
    return np.maximum(rng.chisquare(df, size), FARTHEST**-2)


def _outer(rows: Array) -> Array:
    return rows[:, :, None] * rows[:, None, :]


def is_definite(matrix: Array) -> bool:
    """Whether a matrix is positive definite beyond rounding."""
    values = np.linalg.eigvalsh(matrix)
    return bool(values[0] > matrix.shape[0] * np.finfo(float).eps * values[-1])


def least_pivots(prior: NormalWishart) -> Array:
    """Pivots (D,) of the Cholesky factor of a scale matrix that only rounding can go below: those of a matrix that is
    larger than the prior's are at least as large as its own."""
    return 0.5 / np.diagonal(prior.root[0]) ** 2


def _record(mean: Array, beta: Array, nu: Array, scale: Array, prior: NormalWishart | None) -> NormalWishart:
    """Parameters; scale matrices are larger than the prior's, but for rounding."""
    scale = 0.5 * (scale + scale.transpose(0, 2, 1))
    least = 0.0 if prior is None else least_pivots(prior)
    try:
        lower = np.linalg.cholesky(scale)
        rounded = bool((np.diagonal(lower, axis1=1, axis2=2) ** 2 < least).any())
    except np.linalg.LinAlgError:
        rounded = True
    if rounded and prior is not None:
        lower = np.stack([_lower_above(matrix, prior.scale[0]) for matrix in scale])
        scale = lower @ lower.transpose(0, 2, 1)
    root = np.triu(np.linalg.inv(lower).transpose(0, 2, 1))
    log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return NormalWishart(mean, beta, nu, np.ascontiguousarray(scale), np.ascontiguousarray(root), log_det)


def _lower_above(matrix: Array, least: Array) -> Array:
    """Lower factor of the matrix made as large as ``least`` in those of its own directions in which it is smaller."""
    unit = np.sqrt(np.maximum(np.diagonal(matrix), np.diagonal(least)))  # so that columns of all scales are alike
    values, vectors = np.linalg.eigh(matrix / np.outer(unit, unit))
    floor = np.einsum("di,de,ei->i", vectors, least / np.outer(unit, unit), vectors)
    half = (vectors * np.sqrt(np.maximum(values, floor))).T * unit
    triangle = np.asarray(np.linalg.qr(half, mode="r")).T
    return triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def _inverse_above(precision: Array, least: Array) -> Array:
    """Inverse of a precision matrix, no narrower in any direction than the variances ``least`` of the columns."""
    unit = np.sqrt(least)
    values, vectors = np.linalg.eigh(precision * np.outer(unit, unit))  # 1 is as narrow as it may be
    half = vectors / np.sqrt(np.clip(values, _LEAST_PRECISION, 1.0)) * unit[:, None]
    return np.asarray(half @ half.T)


def _best_degrees(nu: float, D: int, gap: float) -> float:
    """Degrees of freedom of a Wishart prior with a given covariance V, from ``gap``, the mean of log |V Lambda| less
    the trace of V times the mean of Lambda; the present ones if none are better."""

    def cost(log_excess: float) -> float:
        degrees = D - 1 + np.exp(log_excess)
        return float(0.5 * degrees * (D * np.log(2.0 / degrees) - gap) + _log_gammas(np.array([degrees]), D)[0])

    bounds = float(np.log(_DEGREES[0])), float(np.log(_DEGREES[1]))
    best = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-4}).x
    return D - 1 + float(np.exp(best)) if cost(best) < cost(np.log(nu - D + 1)) else nu


def _longest(scale: Array, metric: Array) -> Array:
    """Directions along which to project rows so that their variance is largest in units of ``metric``."""
    along = np.linalg.eigh(metric.T @ scale @ metric)[1][:, :, -1] @ metric.T
    return np.asarray(along / np.linalg.norm(along, axis=1, keepdims=True))


def _lower(params: NormalWishart, k: int) -> Array:
    """Cholesky factor of B of a component."""
    try:
        return np.asarray(cholesky(params.scale[k], lower=True, check_finite=False))
    except np.linalg.LinAlgError:  # nearly singular
        return np.linalg.inv(params.root[k]).T


def _digammas(nu: Array, D: int) -> Array:
    return digamma((nu[:, None] - np.arange(D)) / 2).sum(axis=1)


def _log_gammas(nu: Array, D: int) -> Array:
    """Log of the multivariate gamma function at nu / 2, without its constant."""
    return gammaln((nu[:, None] - np.arange(D)) / 2).sum(axis=1)
