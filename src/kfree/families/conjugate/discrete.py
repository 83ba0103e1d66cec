"""Counts and binary rows with Dirichlet, gamma and beta priors; rows may be sparse."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln, polygamma

from kfree.families.base import Array
from kfree.families.components import Linear, join
from kfree.families.conjugate.conjugate_family import (
    LEAST_COUNT,
    Conjugate,
    Drawn,
    Facts,
    Hyperprior,
    Moments,
    pseudo_count,
)
from kfree.families.conjugate.divergences import beta_divergence, dirichlet_divergence, gamma_divergence

# Counts that a prior may learn.
_LEAST_LEARNED, _MOST_LEARNED = 1e-6, 1e6
# Steps of the fixed point that learns counts, and of Newton's method inside.
_FIXED_POINT_STEPS, _NEWTON_STEPS = 30, 5
#: Whole numbers up to this one are exact.
LARGEST_COUNT = 2.0**53


class Dirichlet(NamedTuple):
    """Probabilities of a component ~ Dirichlet(counts)."""

    counts: Array  # (K, p)


class Gammas(NamedTuple):
    """Rates of a component ~ Gamma(shape_d, rate)."""

    shape: Array  # (K, p)
    rate: Array  # (K,)


class Betas(NamedTuple):
    """Probabilities of ones ~ Beta(ones_d, zeros_d)."""

    ones: Array  # (K, p)
    zeros: Array  # (K, p)


class Multinomial(Conjugate):
    """Counts of a row given their total; the predictive density is the Dirichlet-multinomial."""

    name = "multinomial"
    lower = 0.0
    counted = "row"
    advice = "Counts are meant; clip negative entries or use family='gaussian'."
    hyperparameters = ("counts",)
    starts = (1.0,)

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Dirichlet:
        """Half a count for every column."""
        return Dirichlet(pseudo_count(given, "counts", 0.5, (facts.p,))[None])

    def hyperparameters_of(self, prior: Dirichlet) -> dict[str, Any]:
        """Counts by column."""
        return {"counts": prior.counts[0]}

    def star(self, facts: Facts, given: Mapping[str, Any], width: float = 1.0) -> Dirichlet:
        """As many counts as by default, shared as those of the data are."""
        share = facts.mean / max(float(facts.mean.sum()), LEAST_COUNT)
        return self.prior(facts, {"counts": np.maximum(0.5 * facts.p * share, _LEAST_LEARNED), **given})

    def learned(self, params: Dirichlet, prior: Dirichlet, hyper: Hyperprior) -> Dirichlet:
        """Minka's fixed point, digamma(g_w) = digamma(sum g) + mean of E[log theta_w]: every step lowers the sum."""
        if "counts" in hyper.held:
            return prior
        counts = join([params, hyper.star]).counts
        logs = (digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))).mean(axis=0)
        best = prior.counts[0]
        for _ in range(_FIXED_POINT_STEPS):
            best = _learned_count(digamma(best.sum()) + logs)
        return Dirichlet(best[None])

    def posterior(self, prior: Dirichlet, sums: Moments) -> Dirichlet:
        """Counts add."""
        return Dirichlet(prior.counts + sums.first)

    def form(self, params: Dirichlet) -> Linear:
        """Expected log-probabilities."""
        total = digamma(params.counts.sum(axis=1))
        return Linear(digamma(params.counts) - total[:, None], np.zeros(total.shape[0]))

    def divergence(self, params: Dirichlet, prior: Dirichlet) -> Array:
        """KL of Dirichlet distributions."""
        return dirichlet_divergence(params.counts, prior.counts)

    def terms(self, params: Dirichlet) -> Array:
        """Logs of gamma functions."""
        return _terms(params.counts)

    def log_base(self, X: Any) -> Array:
        """The multinomial coefficient."""
        return gammaln(totals(X) + 1) - _sum_of_log_factorials(X)

    def log_predictive(self, params: Dirichlet, X: Any) -> Array:
        """Dirichlet-multinomial."""
        whole = params.counts.sum(axis=1)
        total = totals(X)[:, None]
        return _sum_of_rises(params.counts, X) - (gammaln(whole + total) - gammaln(whole)) + self.log_base(X)[:, None]

    def sample(self, params: Dirichlet, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Probabilities first, then counts."""
        draws = rng.standard_gamma(params.counts[labels])
        for i in np.flatnonzero(draws.sum(axis=1) < np.finfo(float).tiny):  # of small counts one column has it all
            chance = params.counts[labels[i]]
            draws[i] = rng.multinomial(1, chance / chance.sum())
        draws /= draws.sum(axis=1, keepdims=True)
        return rng.multinomial(length, draws / draws.sum(axis=1, keepdims=True)).astype(np.float64)

    def means(self, params: Dirichlet) -> Array:
        """Expected probabilities."""
        return params.counts / params.counts.sum(axis=1, keepdims=True)

    def deviations(self, params: Dirichlet) -> Array:
        """Of a Dirichlet distribution."""
        mean = self.means(params)
        return np.sqrt(mean * (1 - mean) / (params.counts.sum(axis=1, keepdims=True) + 1))

    def draw(self, params: Dirichlet, count: int, rng: np.random.Generator) -> Drawn:
        """Probabilities."""
        draws = np.maximum(rng.standard_gamma(params.counts, (count, *params.counts.shape)), np.finfo(float).tiny)
        return Drawn(draws / draws.sum(axis=2, keepdims=True), None)

    def given(self, drawn: Drawn, prior: Dirichlet) -> Linear:
        """Logs of the probabilities."""
        return Linear(_logs(drawn.means[0]), np.zeros(drawn.means.shape[1]))

    def standardised(self, X: Any, mean: Array) -> Any:
        """Rows as shares of their total: what differs between components is not how long rows are."""
        total = np.maximum(totals(X), 1.0)
        return sp.diags(1 / total) @ X if sp.issparse(X) else X / total[:, None]


class PoissonCounts(Conjugate):
    """Independent counts of unknown rates; the predictive density is a product of negative binomials."""

    name = "poisson"
    lower = 0.0
    counted = "entry"
    advice = "Counts are meant; clip negative entries or use family='gaussian'."
    hyperparameters = ("shape", "rate")

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Gammas:
        """Worth one row, with the mean of the data."""
        shape = pseudo_count(given, "shape", facts.mean + 0.5, (facts.p,), most=2 * LARGEST_COUNT)
        return Gammas(shape[None], pseudo_count(given, "rate", 1.0, (1,)))

    def hyperparameters_of(self, prior: Gammas) -> dict[str, Any]:
        """Shapes by column, and their rate."""
        return {"shape": prior.shape[0], "rate": float(prior.rate[0])}

    def posterior(self, prior: Gammas, sums: Moments) -> Gammas:
        """Counts and rows add."""
        return Gammas(prior.shape + sums.first, prior.rate + sums.mass)

    def form(self, params: Gammas) -> Linear:
        """Expected log-rates, less the expected rates."""
        coef = digamma(params.shape) - np.log(params.rate)[:, None]
        return Linear(coef, params.shape.sum(axis=1) / params.rate)

    def divergence(self, params: Gammas, prior: Gammas) -> Array:
        """KL of gamma distributions."""
        terms = gamma_divergence(params.shape, params.rate[:, None], prior.shape, prior.rate[:, None])
        return terms.sum(axis=1)

    def terms(self, params: Gammas) -> Array:
        """Logs of gamma functions."""
        return _terms(params.shape)

    def log_base(self, X: Any) -> Array:
        """Minus the logs of the factorials."""
        return -_sum_of_log_factorials(X)

    def log_predictive(self, params: Gammas, X: Any) -> Array:
        """Negative binomials."""
        total = totals(X)[:, None]
        none = params.shape.sum(axis=1) * (np.log(params.rate) - np.log1p(params.rate))
        return _sum_of_rises(params.shape, X) + none - total * np.log1p(params.rate) + self.log_base(X)[:, None]

    def sample(self, params: Gammas, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Rates first, then counts."""
        rates = rng.standard_gamma(params.shape[labels]) / params.rate[labels][:, None]
        draws = rng.poisson(np.minimum(rates, LARGEST_COUNT)).astype(np.float64)
        large = rates > LARGEST_COUNT  # more than can be drawn: Gaussian to eight digits of their spread
        draws[large] = np.rint(rates[large] + np.sqrt(rates[large]) * rng.normal(size=int(large.sum())))
        return draws

    def means(self, params: Gammas) -> Array:
        """Expected rates."""
        return params.shape / params.rate[:, None]

    def deviations(self, params: Gammas) -> Array:
        """Of gamma distributions."""
        return np.sqrt(params.shape) / params.rate[:, None]

    def draw(self, params: Gammas, count: int, rng: np.random.Generator) -> Drawn:
        """Rates."""
        return Drawn(rng.standard_gamma(params.shape, (count, *params.shape.shape)) / params.rate[:, None], None)

    def given(self, drawn: Drawn, prior: Gammas) -> Linear:
        """Logs of the rates, less the rates."""
        return Linear(_logs(drawn.means[0]), drawn.means[0].sum(axis=1))


class BernoulliBits(Conjugate):
    """Independent zeros and ones."""

    name = "bernoulli"
    lower, upper = 0.0, 1.0
    advice = "Binarise the data, or use family='poisson' for counts."
    hyperparameters = ("ones", "zeros")
    starts = (1.0,)

    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Betas:
        """Jeffreys' prior."""
        ones, zeros = (pseudo_count(given, name, 0.5, (facts.p,))[None] for name in self.hyperparameters)
        return Betas(ones, zeros)

    def hyperparameters_of(self, prior: Betas) -> dict[str, Any]:
        """Ones and zeros by column."""
        return {"ones": prior.ones[0], "zeros": prior.zeros[0]}

    def learned(self, params: Betas, prior: Betas, hyper: Hyperprior) -> Betas:
        """Minka's fixed point for pairs: every step lowers the sum."""
        ones, zeros = join([params, hyper.star])
        whole = digamma(ones + zeros)
        log_one, log_zero = (digamma(ones) - whole).mean(axis=0), (digamma(zeros) - whole).mean(axis=0)
        one, zero = prior.ones[0], prior.zeros[0]
        for _ in range(_FIXED_POINT_STEPS):
            whole = digamma(one + zero)
            one = one if "ones" in hyper.held else _learned_count(whole + log_one)
            zero = zero if "zeros" in hyper.held else _learned_count(whole + log_zero)
        return Betas(one[None], zero[None])

    def posterior(self, prior: Betas, sums: Moments) -> Betas:
        """Ones and zeros add."""
        return Betas(prior.ones + sums.first, prior.zeros + np.maximum(sums.mass[:, None] - sums.first, 0.0))

    def form(self, params: Betas) -> Linear:
        """Expected logits, less what zeros everywhere would have."""
        coef = digamma(params.ones) - digamma(params.zeros)
        return Linear(coef, (digamma(params.ones + params.zeros) - digamma(params.zeros)).sum(axis=1))

    def divergence(self, params: Betas, prior: Betas) -> Array:
        """KL of beta distributions."""
        return beta_divergence(params.ones, params.zeros, prior.ones, prior.zeros).sum(axis=1)

    def terms(self, params: Betas) -> Array:
        """Logs of gamma functions."""
        return _terms(params.ones + params.zeros)

    def log_base(self, X: Any) -> Array:
        """Zero."""
        return np.zeros(X.shape[0])

    def log_predictive(self, params: Betas, X: Any) -> Array:
        """Bernoulli with the expected probabilities."""
        none = (np.log(params.zeros) - np.log(params.ones + params.zeros)).sum(axis=1)
        return np.asarray(X @ (np.log(params.ones) - np.log(params.zeros)).T) + none

    def sample(self, params: Betas, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """Columns are independent given the component."""
        chance = self.means(params)[labels]
        return (rng.random(chance.shape) < chance).astype(np.float64)

    def means(self, params: Betas) -> Array:
        """Expected probabilities of a one."""
        return params.ones / (params.ones + params.zeros)

    def deviations(self, params: Betas) -> Array:
        """Of beta distributions."""
        mean = self.means(params)
        return np.sqrt(mean * (1 - mean) / (params.ones + params.zeros + 1))

    def draw(self, params: Betas, count: int, rng: np.random.Generator) -> Drawn:
        """Probabilities."""
        return Drawn(rng.beta(params.ones, params.zeros, (count, *params.ones.shape)), None)

    def given(self, drawn: Drawn, prior: Betas) -> Linear:
        """Logits, less what zeros everywhere would have."""
        none = _logs(1 - drawn.means[0])
        return Linear(_logs(drawn.means[0]) - none, -none.sum(axis=1))


def _learned_count(value: Array) -> Array:
    """Inverse of digamma, within what may be learned: Newton steps from Minka's first guess."""
    count = np.where(
        value >= -2.22, np.exp(np.minimum(value, 50.0)) + 0.5, -1 / np.minimum(value - digamma(1.0), -1e-3)
    )
    for _ in range(_NEWTON_STEPS):
        count = np.maximum(count - (digamma(count) - value) / polygamma(1, count), _LEAST_LEARNED)
    return np.clip(count, _LEAST_LEARNED, _MOST_LEARNED)


def _logs(chance: Array) -> Array:
    """Logs of draws, some of which are too small to be numbers."""
    return np.log(np.maximum(chance, np.finfo(float).tiny))


def totals(X: Any) -> Array:
    """Sums of rows; scipy adds sparse ones up in their own precision."""
    return np.asarray(X.astype(np.float64, copy=False).sum(axis=1)).ravel()


def _terms(count: Array) -> Array:
    return (1 + count * np.log1p(count)).sum(axis=1)


def _sum_of_log_factorials(X: Any) -> Array:
    if not sp.issparse(X):
        return gammaln(np.asarray(X, dtype=np.float64) + 1).sum(axis=1)
    logs = X.astype(np.float64)
    logs.data = gammaln(logs.data + 1)
    return np.asarray(logs.sum(axis=1)).ravel()


def _sum_of_rises(count: Array, X: Any) -> Array:
    """Sum over columns of log Gamma(count + x) - log Gamma(count), (n, K); zeros of x add nothing."""
    table = sp.csr_matrix(X, dtype=np.float64)
    value = np.empty((table.shape[0], count.shape[0]))
    base = gammaln(count)
    for k in range(count.shape[0]):
        rises = table.copy()
        rises.data = gammaln(count[k, table.indices] + table.data) - base[k, table.indices]
        value[:, k] = np.asarray(rises.sum(axis=1)).ravel()
    return value
