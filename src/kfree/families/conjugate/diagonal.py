"""Gaussians with diagonal or spherical covariance and Normal-gamma priors."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from kfree.families.base import Array
from kfree.families.components import Weighted, join
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
from kfree.families.conjugate.divergences import gamma_divergence
from kfree.families.conjugate.full import LOG_2PI, chi_square

# Largest shape that a prior may learn.
_MOST_SHAPE = 1e6


class NormalGamma(NamedTuple):
    """tau ~ Gamma(shape, rate), mu | tau ~ N(mean, 1 / (beta tau)); rates (K, D) if diagonal, (K, 1) if spherical."""

    mean: Array  # (K, D)
    beta: Array  # (K,)
    shape: Array  # (K,)
    rate: Array  # (K, D) or (K, 1)


class _Precisions(Conjugate):
    """What the two share: locations, and rates that grow with half a sum of squares."""

    continuous = True
    hyperparameters = ("mean", "mean_precision", "degrees_of_freedom", "covariance")
    starts = (1.0, 0.1)

    def _prior(self, facts: Facts, given: Mapping[str, Any], columns: int) -> NormalGamma:
        """That of the full family, cut down: one precision stands for D / columns squares of a row."""
        D = facts.p
        mean = hyperparameter(given, "mean", 0.0, (D,), -np.inf)
        beta = pseudo_count(given, "mean_precision", 0.01, (1,))
        nu = pseudo_count(given, "degrees_of_freedom", D + 1.0, (1,))
        width = hyperparameter(given, "covariance", 0.01 * facts.spread, (columns,), 0.0)
        shape = nu * (D / columns) / 2
        return NormalGamma(mean[None], beta, shape, shape * width[None])

    def hyperparameters_of(self, prior: NormalGamma) -> dict[str, Any]:
        """Those of the full family: degrees of freedom count rows, not squares; one width stands for all columns."""
        D, columns = prior.mean.shape[1], prior.rate.shape[1]
        width = prior.rate[0] / prior.shape[0]
        degrees = float(prior.shape[0]) * 2 * columns / D
        values = (prior.mean[0], float(prior.beta[0]), degrees, width if columns == D else float(width[0]))
        return dict(zip(self.hyperparameters, values))

    def learned(self, params: NormalGamma, prior: NormalGamma, hyper: Hyperprior) -> NormalGamma:
        """Block by block: widths are harmonic means of those of the components, then one shape for all, then beta."""
        star, held, (T, D) = hyper.star, hyper.held, params.mean.shape
        all_of, columns = join([params, star]), prior.rate.shape[1]
        tau = (all_of.shape[:, None] / all_of.rate).mean(axis=0)
        log_tau = (digamma(all_of.shape)[:, None] - np.log(all_of.rate)).mean(axis=0)
        width = prior.rate[0] / prior.shape[0]
        if "covariance" not in held:
            width = np.maximum(1 / tau, hyper.least if columns == D else hyper.least.mean())
        shape = float(prior.shape[0])
        if "degrees_of_freedom" not in held:
            lack = float((width * tau - 1 - np.log(width) - log_tau).mean())
            shape = _best_shape(lack, 0.5 * D / columns)
        beta = float(prior.beta[0])
        if "mean_precision" not in held:
            gap = all_of.mean - prior.mean
            away = (all_of.shape[:, None] / all_of.rate * gap * gap).sum(axis=1)
            beta = (T + 1) * D / float((D / all_of.beta + away).sum())
        return NormalGamma(prior.mean, np.array([beta]), np.array([shape]), shape * width[None])

    def _squares(self, prior: NormalGamma, sums: Moments) -> tuple[Array, Array]:
        """Posterior means, and sums of squares (K, D) with the term for their distance from the prior mean."""
        assert sums.second is not None
        beta0 = float(prior.beta[0])
        mean, gap, away = pooled(sums, prior.mean, beta0)
        within = np.maximum(sums.second - sums.mass[:, None] * gap * gap, 0.0)
        return mean, within + (beta0 * sums.mass / (beta0 + sums.mass))[:, None] * away * away

    def form(self, params: NormalGamma) -> Weighted:
        """Weighted squared distances."""
        D = params.mean.shape[1]
        log_tau = (digamma(params.shape)[:, None] - np.log(params.rate)) * (D / params.rate.shape[1])
        precision = np.broadcast_to(params.shape[:, None] / params.rate, params.mean.shape)
        return Weighted(precision.copy(), params.mean, 0.5 * (D / params.beta - log_tau.sum(axis=1)))

    def divergence(self, params: NormalGamma, prior: NormalGamma) -> Array:
        """KL of Normal-gamma distributions."""
        D, ratio = params.mean.shape[1], prior.beta / params.beta
        gap = params.mean - prior.mean
        value = 0.5 * D * (ratio - np.log(ratio) - 1)
        value += 0.5 * prior.beta * (params.shape[:, None] / params.rate * gap * gap).sum(axis=1)
        rates = gamma_divergence(params.shape[:, None], params.rate, prior.shape[:, None], prior.rate)
        return value + rates.sum(axis=1)

    def terms(self, params: NormalGamma) -> Array:
        """Logs of gamma functions for every rate."""
        return params.mean.shape[1] + params.rate.shape[1] * params.shape * np.log1p(params.shape)

    def log_base(self, X: Any) -> Array:
        """The constant of the Gaussian density."""
        return np.full(X.shape[0], -0.5 * X.shape[1] * LOG_2PI)

    def means(self, params: NormalGamma) -> Array:
        """Means of the locations."""
        return params.mean

    def deviations(self, params: NormalGamma) -> Array:
        """Of Student's t: their variances are b / (beta (a - 1))."""
        freedom = (params.beta * (params.shape - 1))[:, None]
        variance = np.where(freedom > 0, params.rate / np.where(freedom > 0, freedom, 1.0), np.inf)
        return np.sqrt(np.broadcast_to(variance, params.mean.shape))

    def draw(self, params: NormalGamma, count: int, rng: np.random.Generator) -> Drawn:
        """Precisions first, then means."""
        size = (count, *params.rate.shape)
        variance = 2 * params.rate / chi_square(2 * params.shape[:, None], rng, size)
        away = rng.normal(size=(count, *params.mean.shape)) * np.sqrt(variance / params.beta[:, None])
        return Drawn(params.mean + away, variance if self.second_moments == "diag" else variance[..., 0])

    def given(self, drawn: Drawn, prior: NormalGamma) -> Weighted:
        """Weighted squared distances."""
        assert drawn.covariances is not None
        means, variances = drawn.means[0], drawn.covariances[0]
        precision = 1 / np.broadcast_to(variances if variances.ndim == 2 else variances[:, None], means.shape)
        return Weighted(precision, means, -0.5 * np.log(precision).sum(axis=1))


def _best_shape(lack: float, least: float) -> float:
    """The shape a of gamma distributions of mean 1 with log a - digamma(a) = lack, but not below the least."""

    def gap(log_shape: float) -> float:
        shape = np.exp(log_shape)
        return float(np.log(shape) - digamma(shape) - lack)

    low, high = float(np.log(least)), float(np.log(_MOST_SHAPE))
    if gap(low) <= 0:
        return least
    return _MOST_SHAPE if gap(high) >= 0 else float(np.exp(brentq(gap, low, high)))


class DiagonalGaussian(_Precisions):
    """Gaussian rows with independent columns; the predictive density is a product of Student's t."""

    name = "diag"
    column_units = True
    second_moments = "diag"

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> NormalGamma:
        """A precision for each column."""
        return self._prior(facts, given, facts.p)

    def star(self, facts: Facts, given: Mapping[str, Any], width: float = 1.0) -> NormalGamma:
        """As wide as the data in every column."""
        return self.prior(facts, {"covariance": width * facts.variance, **given})

    def posterior(self, prior: NormalGamma, sums: Moments) -> NormalGamma:
        """Squares count half a degree of freedom each."""
        mean, squares = self._squares(prior, sums)
        return NormalGamma(mean, prior.beta + sums.mass, prior.shape + sums.mass / 2, prior.rate + squares / 2)

    def log_predictive(self, params: NormalGamma, X: Any) -> Array:
        """Student's t in every column: 2 a degrees of freedom, squared scale b (beta + 1) / (a beta)."""
        a, shrink = params.shape, params.beta / (params.beta + 1)
        width = params.rate * 2 / shrink[:, None]
        constant = X.shape[1] * (gammaln(a + 0.5) - gammaln(a)) - 0.5 * np.log(np.pi * width).sum(axis=1)
        value = np.empty((X.shape[0], a.shape[0]))
        for k in range(a.shape[0]):
            gap = X - params.mean[k]
            value[:, k] = constant[k] - (a[k] + 0.5) * np.log1p(gap * gap / width[k]).sum(axis=1)
        return value

    def sample(self, params: NormalGamma, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Student's t in every column."""
        a, beta = params.shape[labels][:, None], params.beta[labels][:, None]
        draws = rng.standard_t(np.broadcast_to(2 * a, (labels.shape[0], params.mean.shape[1])))
        draws = np.clip(draws, -FARTHEST, FARTHEST)
        return params.mean[labels] + draws * np.sqrt(params.rate[labels] * (beta + 1) / (a * beta))

    def covariances(self, params: NormalGamma) -> Array:
        """Variances (K, D)."""
        return params.rate / params.shape[:, None]


class SphericalGaussian(_Precisions):
    """Gaussian rows with one variance for all columns; the predictive density is D-variate Student's t."""

    name = "spherical"
    second_moments = "spherical"

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> NormalGamma:
        """One precision, which D squares of a row speak of."""
        return self._prior(facts, given, 1)

    def star(self, facts: Facts, given: Mapping[str, Any], width: float = 1.0) -> NormalGamma:
        """As wide as the columns of the data are on average."""
        return self.prior(facts, {"covariance": width * float(facts.variance.mean()), **given})

    def posterior(self, prior: NormalGamma, sums: Moments) -> NormalGamma:
        """Squares of all columns count."""
        mean, squares = self._squares(prior, sums)
        shape = prior.shape + sums.mass * mean.shape[1] / 2
        return NormalGamma(mean, prior.beta + sums.mass, shape, prior.rate + squares.sum(axis=1, keepdims=True) / 2)

    def log_predictive(self, params: NormalGamma, X: Any) -> Array:
        """D-variate Student's t: 2 a degrees of freedom, squared scale b (beta + 1) / (a beta)."""
        D, a = X.shape[1], params.shape
        width = params.rate[:, 0] * 2 * (params.beta + 1) / params.beta
        constant = gammaln(a + D / 2) - gammaln(a) - 0.5 * D * np.log(np.pi * width)
        value = np.empty((X.shape[0], a.shape[0]))
        for k in range(a.shape[0]):
            gap = X - params.mean[k]
            value[:, k] = constant[k] - (a[k] + D / 2) * np.log1p(np.einsum("nd,nd->n", gap, gap) / width[k])
        return value

    def sample(self, params: NormalGamma, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """A Gaussian over the root of a chi-square."""
        a, beta = params.shape[labels], params.beta[labels]
        draws = rng.normal(size=(labels.shape[0], params.mean.shape[1]))
        stretch = np.sqrt(2 * params.rate[labels, 0] * (beta + 1) / beta / chi_square(2 * a, rng))
        return params.mean[labels] + draws * stretch[:, None]

    def covariances(self, params: NormalGamma) -> Array:
        """Variances (K,)."""
        return params.rate[:, 0] / params.shape
