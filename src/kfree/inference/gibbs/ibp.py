"""Samples of binary features: rows are sums of the features they have, and noise; their number is unknown.

    Z ~ IBP(gamma),  a_k ~ N(0, r2 I),  x_n ~ N(z_n A, s2 I)

The means A are integrated out (Griffiths & Ghahramani 2011; accelerated as by Doshi-Velez & Ghahramani 2009). A row
that is visited keeps in mind how many features it has for itself: to forget them first, as is easily done, is another
chain. Its bits are drawn in a random order: that of the columns depends on the bits, through births and deaths.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from kfree.families import Array
from kfree.inference.gibbs.ibp_numbers import IBP
from kfree.inference.loop import Info
from kfree.kernels import kernels
from kfree.structures import IndianBuffet


class Spread(NamedTuple):
    """What is known of a variance: its value, or an inverse gamma prior."""

    value: float | None  # None: learned
    shape: float = 0.0
    scale: float = 0.0

    def log_density(self, variance: float) -> float:
        """Of the prior; 0 if the variance is given."""
        if self.value is not None:
            return 0.0
        a, b = self.shape, self.scale
        return float(a * np.log(b) - gammaln(a) - (a + 1) * np.log(variance) - b / variance)

    def draw(self, count: float, squares: float, rng: np.random.Generator) -> float:
        """Given so many normal variables of mean 0 and the sum of their squares."""
        if self.value is not None:
            return self.value
        return (self.scale + squares / 2) / rng.gamma(self.shape + count / 2)


class Rate(NamedTuple):
    """What is known of gamma: its value, or a gamma prior."""

    value: float | None  # None: learned
    shape: float = 0.0
    rate: float = 0.0

    def log_density(self, gamma: float) -> float:
        """Of the prior; 0 if gamma is given."""
        if self.value is not None:
            return 0.0
        a, b = self.shape, self.rate
        return float(a * np.log(b) - gammaln(a) + (a - 1) * np.log(gamma) - b * gamma)

    def draw(self, K: int, harmonic: float, rng: np.random.Generator) -> float:
        """Given the number of features."""
        if self.value is not None:
            return self.value
        # a gamma variable of small shape may be no number above 0
        return max(float(rng.gamma(self.shape + K)) / (self.rate + harmonic), 1e-300)


class IBPPrior(NamedTuple):
    """What is known before the rows are seen."""

    concentration: Rate
    noise: Spread  # of the noise variance
    scale: Spread  # of the variance of the entries of features


class IBPLevel(NamedTuple):
    """The numbers that a chain updates besides the allocation."""

    gamma: float
    noise: float  # variance
    scale: float  # variance

    @property
    def ridge(self) -> float:
        """Noise as a share of the features' variance."""
        return self.noise / self.scale


class IBPState(NamedTuple):
    """An allocation, and what follows from it."""

    Z: Array  # (n, K) uint8, each column with a member
    level: IBPLevel
    S: Array  # (K, K) Z'Z
    T: Array  # (K, p) Z'X
    M: Array  # (K, K) (S + ridge I)^-1
    A: Array  # (K, p) means of the features given Z: M T
    G: Array  # (K, K) A A'
    residual: float  # sum of squares of X - Z A
    log_posterior: float  # log of the joint density of rows, allocation and level


class KeptFeatures(NamedTuple):
    """A sample."""

    bits: Array  # (ceil(n K / 8),) uint8, Z packed
    shape: tuple[int, int]
    level: IBPLevel
    log_posterior: float

    @property
    def Z(self) -> Array:
        """(n, K) uint8"""
        return np.unpackbits(self.bits, count=self.shape[0] * self.shape[1]).reshape(self.shape)


class IBPSampler:
    """The sampler for given rows."""

    def __init__(self, X: Array, dims: int, prior: IBPPrior, starts: list[tuple[Array, IBPLevel]]) -> None:
        """Rows (n, p), which in ``dims - p`` more columns are zero; a first allocation and level of each chain."""
        self.X, self.dims, self.prior, self.starts = X, dims, prior, starts
        self.buffet = IndianBuffet(X.shape[0])
        self.harmonic = self.buffet.harmonic
        self.least_ridge = max(IBP.least_ridge, IBP.least_ridge_of_row * X.shape[0])

    def start(self, chain: int, rng: np.random.Generator) -> IBPState:
        """First state of a chain."""
        return self.state(*self.starts[chain])

    def sweep(self, state: IBPState, turn: int, rng: np.random.Generator) -> IBPState:
        """Every row, then gamma and the variances."""
        Z = self.rows(state, rng)
        level = state.level._replace(gamma=self.prior.concentration.draw(Z.shape[1], self.harmonic, rng))
        if self.prior.noise.value is None or self.prior.scale.value is None:
            level = self._variances(self.state(Z, level), rng)
        return self.state(Z, level)

    def trace(self, state: IBPState) -> tuple[float, ...]:
        """Number of features, log posterior, gamma, variances of noise and of features."""
        return (float(state.Z.shape[1]), state.log_posterior, *state.level)

    def keep(self, state: IBPState) -> KeptFeatures:
        """A sample in little memory."""
        n, K = state.Z.shape
        return KeptFeatures(np.packbits(state.Z), (n, K), state.level, state.log_posterior)

    def info(self, state: IBPState) -> Info:
        """What is told of a state."""
        return Info(state.log_posterior, 1.0, 1.0, 0, state.Z.shape[1])

    def state(self, Z: Array, level: IBPLevel) -> IBPState:
        """All that follows from an allocation."""
        K, p = Z.shape[1], self.X.shape[1]
        bits = Z.astype(np.float64)
        S, T = bits.T @ bits, bits.T @ self.X
        M, A, G = np.empty((K, K)), np.empty((K, p)), np.empty((K, K))
        B = S.copy()
        B.flat[:: K + 1] += level.ridge
        kernels().rebuild(B, T, M, A, G)
        gap = self.X - bits @ A if K else self.X
        residual = float(np.vdot(gap, gap))
        likelihood = self._likelihood(B, A, residual, level)
        prior = self.buffet.log_prior(Z, level.gamma) + self.prior.concentration.log_density(level.gamma)
        prior += self.prior.noise.log_density(level.noise) + self.prior.scale.log_density(level.scale)
        return IBPState(Z, level, S, T, M, A, G, residual, likelihood + prior)

    def rows(self, state: IBPState, rng: np.random.Generator) -> Array:
        """The allocation after a visit of each row in order."""
        n, K = state.Z.shape
        C = K + IBP.room
        gamma, noise, scale = state.level
        (keys, coins), deals = rng.random((2, n, C)), rng.random(n)
        Z, S, T, M, A, G = _with_room(state.Z, state.S, state.T, state.M, state.A, state.G, C)
        row, event = 0, 1
        while event:
            row, event, K, _ = kernels().gibbs_ibp(
                self.X, keys, coins, deals, self.dims, noise, scale, gamma, IBP.most_private, row, K, Z, S, T, M, A, G
            )
            if event:  # the row needs more columns
                C += IBP.most_private
                keys, coins = np.concatenate([[keys, coins], rng.random((2, n, IBP.most_private))], axis=2)
                keys, coins = np.ascontiguousarray(keys), np.ascontiguousarray(coins)
                Z, S, T, M, A, G = _with_room(Z, S, T, M, A, G, C)
        return np.ascontiguousarray(Z[:, :K])

    def _likelihood(self, B: Array, A: Array, residual: float, level: IBPLevel) -> float:
        """Log density of the rows given the allocation, the features integrated out."""
        n, K = self.X.shape[0], len(A)
        squares = residual + level.ridge * float(np.vdot(A, A))
        determinant = float(np.linalg.slogdet(B)[1]) if K else 0.0
        halves = n * np.log(2 * np.pi * level.noise) - K * np.log(level.ridge) + determinant
        return float(-0.5 * (self.dims * halves + squares / level.noise))

    def _variances(self, state: IBPState, rng: np.random.Generator) -> IBPLevel:
        """Draw features given the allocation, and the variances given the features."""
        n, K = state.Z.shape
        level, ridge = state.level, state.level.ridge
        residual, squares = state.residual, float(np.vdot(state.A, state.A))
        if K:
            B = state.S.copy()
            B.flat[:: K + 1] += ridge
            step = np.sqrt(level.noise) * np.linalg.solve(np.linalg.cholesky(B).T, self._normals(K, rng))
            own = step[:, : state.A.shape[1]]  # in the columns of the rows; in the others features have mean 0
            along = float(np.vdot(own, state.A))
            # Z'(X - Z A) = ridge A: what is left of the rows, without a difference of large sums
            residual += float(np.vdot(step, state.S @ step)) - 2 * ridge * along
            squares += float(np.vdot(step, step)) + 2 * along
        noise = self.prior.noise.draw(n * self.dims, residual, rng)
        scale = self.prior.scale.draw(K * self.dims, squares, rng)
        if noise < self.least_ridge * scale:  # outside what the prior is cut to: the chain stays where it is
            return level
        return level._replace(noise=noise, scale=scale)

    def _normals(self, K: int, rng: np.random.Generator) -> Array:
        """Normals (K, dims); of many columns in which the rows are zero only their products, as a triangle."""
        p = self.X.shape[1]
        beyond = self.dims - p
        if beyond <= K:
            return rng.standard_normal((K, self.dims))
        triangle = np.tril(rng.standard_normal((K, K)), -1)  # Bartlett (1933)
        triangle.flat[:: K + 1] = np.sqrt(rng.chisquare(beyond - np.arange(K)))
        return np.hstack([rng.standard_normal((K, p)), triangle])


def _with_room(Z: Array, S: Array, T: Array, M: Array, A: Array, G: Array, C: int) -> tuple[Array, ...]:
    """The arrays of an allocation with zeros for as many features as there are to be room for."""
    n, p = Z.shape[0], T.shape[1]
    shapes = (n, C), (C, C), (C, p), (C, C), (C, p), (C, C)
    return tuple(_padded(array, shape) for array, shape in zip((Z, S, T, M, A, G), shapes))


def _padded(array: Array, shape: tuple[int, int]) -> Array:
    wide = np.zeros(shape, array.dtype)
    wide[: array.shape[0], : array.shape[1]] = array
    return wide
