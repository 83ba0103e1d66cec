"""Gaussian of known covariance, and positive numbers of known shape: one natural parameter for each column."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from kfree.families.base import Array
from kfree.families.components import Linear, Whitened
from kfree.families.conjugate.conjugate_family import (
    Conjugate,
    Drawn,
    Facts,
    Moments,
    hyperparameter,
    pooled,
    pseudo_count,
)
from kfree.families.conjugate.divergences import gamma_divergence
from kfree.families.conjugate.full import LOG_2PI, is_definite

# Means of positive numbers, from which rates of priors are made.
_LEAST_MEAN, _MOST_MEAN = 1e-150, 1e150
# Draws to be divided by.
_LEAST_RATE = 1e-150


class Normal(NamedTuple):
    """mu ~ N(mean, S / beta) with S known."""

    mean: Array  # (K, D)
    beta: Array  # (K,)
    root: Array  # (K, D, D) with S^-1 = root root', upper triangles; the same for all
    log_det: Array  # (K,) of S


class KnownGaussian(Conjugate):
    """Gaussian rows whose covariance S is known; the prior of the mean is worth ``mean_precision`` rows.

    The family of Jiang, Kulis & Jordan (2012) whose divergence is (x - mu)' S^-1 (x - mu) / 2.
    """

    name = "known"
    continuous = True
    second_moments = "spherical"
    hyperparameters = ("mean", "mean_precision", "covariance")

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Normal:
        """As for the other Gaussians: clusters are a tenth as wide as the data."""
        D = facts.p
        mean = hyperparameter(given, "mean", 0.0, (D,), -np.inf)
        beta = pseudo_count(given, "mean_precision", 0.01, (1,))
        width = np.asarray(given.get("covariance", 0.01 * facts.spread), dtype=np.float64)
        if width.ndim < 2:
            width = np.diag(hyperparameter(given, "covariance", width, (D,), 0.0))
        elif width.shape != (D, D) or not np.allclose(width, width.T) or not is_definite(width):
            raise ValueError(
                f"prior['covariance'] must be a positive number, {D} of them, or a positive definite ({D}, {D}) matrix."
            )
        lower = np.linalg.cholesky(width)
        root = np.triu(np.linalg.inv(lower).T)
        return Normal(mean[None], beta, root[None], np.array([2 * np.log(np.diagonal(lower)).sum()]))

    def hyperparameters_of(self, prior: Normal) -> dict[str, Any]:
        """Mean, its rows, and the covariance."""
        return dict(zip(self.hyperparameters, (prior.mean[0], float(prior.beta[0]), self.covariances(prior)[0])))

    def posterior(self, prior: Normal, sums: Moments) -> Normal:
        """Rows and sums add."""
        mean, _, _ = pooled(sums, prior.mean, float(prior.beta[0]))
        K = sums.mass.shape[0]
        return Normal(mean, prior.beta + sums.mass, np.repeat(prior.root, K, axis=0), np.repeat(prior.log_det, K))

    def form(self, params: Normal) -> Whitened:
        """Whitened distances."""
        return Whitened(params.root, params.mean, 0.5 * (params.mean.shape[1] / params.beta + params.log_det))

    def given(self, drawn: Drawn, prior: Normal) -> Whitened:
        """Whitened distances."""
        K = drawn.means.shape[1]
        return Whitened(np.repeat(prior.root, K, axis=0), drawn.means[0], np.repeat(0.5 * prior.log_det, K))

    def divergence(self, params: Normal, prior: Normal) -> Array:
        """KL of normal distributions."""
        D, ratio = params.mean.shape[1], prior.beta / params.beta
        gap = ((params.mean - prior.mean)[:, None, :] @ params.root)[:, 0]
        return 0.5 * (D * (ratio - np.log(ratio) - 1) + prior.beta * (gap * gap).sum(axis=1))

    def terms(self, params: Normal) -> Array:
        """One for each column."""
        return np.full(params.beta.shape[0], 1.0 + params.mean.shape[1])

    def log_base(self, X: Any) -> Array:
        """The constant of the Gaussian density."""
        return np.full(X.shape[0], -0.5 * X.shape[1] * LOG_2PI)

    def log_predictive(self, params: Normal, X: Any) -> Array:
        """Normal, with covariance S (beta + 1) / beta."""
        D, shrink = X.shape[1], params.beta / (params.beta + 1)
        constant = 0.5 * (D * (np.log(shrink) - LOG_2PI) - params.log_det)
        value = np.empty((X.shape[0], shrink.shape[0]))
        for k, (mean, root) in enumerate(zip(params.mean, params.root)):
            gap = (X - mean) @ root
            value[:, k] = constant[k] - 0.5 * shrink[k] * np.einsum("nd,nd->n", gap, gap)
        return value

    def sample(self, params: Normal, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Normal."""
        lower = np.linalg.inv(params.root[0]).T
        stretch = np.sqrt((params.beta + 1) / params.beta)[labels]
        return params.mean[labels] + stretch[:, None] * (rng.normal(size=(labels.shape[0], lower.shape[0])) @ lower.T)

    def means(self, params: Normal) -> Array:
        """Means of the locations."""
        return params.mean

    def covariances(self, params: Normal) -> Array:
        """S, for all."""
        return np.linalg.inv(params.root @ params.root.transpose(0, 2, 1))

    def deviations(self, params: Normal) -> Array:
        """Roots of the variances in S / beta."""
        variance = np.diagonal(self.covariances(params), axis1=1, axis2=2)
        return np.sqrt(variance / params.beta[:, None])

    def draw(self, params: Normal, count: int, rng: np.random.Generator) -> Drawn:
        """Means; the covariance is known."""
        lower = np.linalg.inv(params.root[0]).T
        away = rng.normal(size=(count, *params.mean.shape)) @ lower.T / np.sqrt(params.beta)[:, None]
        covariances = np.broadcast_to(self.covariances(params), (count, *params.root.shape))
        return Drawn(params.mean + away, covariances)


class Rates(NamedTuple):
    """shape / mean of each column ~ Gamma(shape * rows + 1, rate)."""

    rate: Array  # (K, p)
    rows: Array  # (K,)


class PositiveRows(Conjugate):
    """Positive numbers, gamma of known shape (1: exponential), independent over columns: Itakura-Saito's family.

    log p(x) = k log(k / mu) - k x / mu + (k - 1) log x - log gamma(k); the predictive density is compound gamma.
    """

    name = "gamma"
    lower = 0.0
    lower_open = True
    advice = "Add a small positive constant, drop those rows, or use another family."
    hyperparameters = ("shape", "mean", "mean_precision")

    def __init__(self, shape: float = 1.0):
        self.shape = shape

    @classmethod
    def made(cls, given: Mapping[str, Any]) -> "PositiveRows":
        """The family with the shape that is given."""
        return cls(float(pseudo_count(given, "shape", 1.0, (1,))[0]))

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Rates:
        """Worth one row, with the mean of the data."""
        mean = hyperparameter(given, "mean", facts.mean, (facts.p,), 0.0)
        if not (mean.min() >= _LEAST_MEAN and mean.max() <= _MOST_MEAN):
            raise ValueError(
                f"family='gamma' needs means from {_LEAST_MEAN:g} to {_MOST_MEAN:g}, got {mean.min():g} to "
                f"{mean.max():g}. Multiply X by a number: nothing else changes."
            )
        rows = pseudo_count(given, "mean_precision", 1.0, (1,))
        return Rates(rows * mean[None], rows)

    def hyperparameters_of(self, prior: Rates) -> dict[str, Any]:
        """Shape, mean and what it is worth."""
        rows = float(prior.rows[0])
        return {"shape": self.shape, "mean": prior.rate[0] / rows, "mean_precision": rows}

    def _power(self, params: Rates) -> Array:
        return self.shape * params.rows + 1

    def posterior(self, prior: Rates, sums: Moments) -> Rates:
        """Rows and sums add."""
        return Rates(prior.rate + sums.first, prior.rows + sums.mass)

    def form(self, params: Rates) -> Linear:
        """Expected parameters."""
        power = self._power(params)
        logs = digamma(power)[:, None] - np.log(params.rate)
        return Linear(-power[:, None] / params.rate, -self.shape * logs.sum(axis=1))

    def given(self, drawn: Drawn, prior: Rates) -> Linear:
        """Minus shape / mean."""
        coef = self.shape / drawn.means[0]
        return Linear(-coef, -self.shape * np.log(coef).sum(axis=1))

    def divergence(self, params: Rates, prior: Rates) -> Array:
        """KL of gamma distributions."""
        own, first = self._power(params)[:, None], self._power(prior)[:, None]
        return gamma_divergence(own, params.rate, first, prior.rate).sum(axis=1)

    def terms(self, params: Rates) -> Array:
        """Logs of gamma functions."""
        power = self._power(params)
        return params.rate.shape[1] * (1 + power * np.log1p(power))

    def log_base(self, X: Any) -> Array:
        """What does not depend on the mean."""
        return (self.shape - 1) * np.log(X).sum(axis=1) - X.shape[1] * gammaln(self.shape)

    def log_predictive(self, params: Rates, X: Any) -> Array:
        """Compound gamma in every column."""
        k, power = self.shape, self._power(params)
        constant = X.shape[1] * (gammaln(power + k) - gammaln(power)) - k * np.log(params.rate).sum(axis=1)
        value = np.empty((X.shape[0], power.shape[0]))
        for j, rate in enumerate(params.rate):
            value[:, j] = constant[j] - (power[j] + k) * np.log1p(X / rate).sum(axis=1)
        return value + self.log_base(X)[:, None]

    def sample(self, params: Rates, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Means first, then rows."""
        rates = rng.standard_gamma(self._power(params)[labels][:, None], params.rate[labels].shape)
        return rng.standard_gamma(self.shape, rates.shape) * params.rate[labels] / np.maximum(rates, _LEAST_RATE)

    def means(self, params: Rates) -> Array:
        """Expected means: of an inverse gamma distribution."""
        return params.rate / params.rows[:, None]

    def deviations(self, params: Rates) -> Array:
        """Of inverse gamma distributions; +inf where they have none."""
        freedom = (self._power(params) - 2)[:, None]
        return np.where(freedom > 0, self.means(params) / np.sqrt(np.where(freedom > 0, freedom, 1.0)), np.inf)

    def draw(self, params: Rates, count: int, rng: np.random.Generator) -> Drawn:
        """Means."""
        draws = rng.standard_gamma(self._power(params)[:, None], (count, *params.rate.shape))
        return Drawn(self.shape * params.rate / np.maximum(draws, _LEAST_RATE), None)
