"""Sampled binary features that can be asked."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np

from kfree.families import Array
from kfree.inference.features.canonical import display_order
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.gibbs.ibp import KeptFeatures
from kfree.inference.gibbs.ibp_numbers import IBP
from kfree.models.ibp_problem import IBPProblem


class FeatureSample(NamedTuple):
    """A sample of the posterior, in the user's units."""

    Z: Array  # (n, K) uint8, which row has which feature
    concentration: float
    noise: float  # standard deviation
    feature_scale: float  # standard deviation


class FeatureSamples(Sequence[FeatureSample]):
    """Samples one chain after the other; a bit for each row and feature, unpacked when one is asked for."""

    def __init__(self, kept: list[KeptFeatures], unit: float) -> None:
        self._kept, self._unit = kept, unit

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> FeatureSample: ...

    @overload
    def __getitem__(self, index: slice) -> "FeatureSamples": ...

    def __getitem__(self, index: int | slice) -> "FeatureSample | FeatureSamples":
        if isinstance(index, slice):
            return FeatureSamples(self._kept[index], self._unit)
        one = self._kept[index]
        noise, scale = np.sqrt([one.level.noise, one.level.scale]) * self._unit
        return FeatureSample(one.Z, one.level.gamma, float(noise), float(scale))

    def __iter__(self) -> Iterator[FeatureSample]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} samples, {self.nbytes} bytes>"

    @property
    def nbytes(self) -> int:
        """Memory of all allocations."""
        return sum(one.bits.nbytes for one in self._kept)


class SampledFeatures(NamedTuple):
    """The features of one sample: rows are asked which of them they have."""

    Z: Array  # (n, K) uint8, columns by decreasing number of members
    A: Array  # (K, D) expected means given Z, in units
    M: Array  # (K, K) (Z'Z + noise / scale I)^-1
    noise: float  # variance, in units
    unit: float

    @classmethod
    def of(cls, problem: IBPProblem, sample: KeptFeatures) -> "SampledFeatures":
        """Features of a sample of a problem."""
        Z = sample.Z
        Z = np.ascontiguousarray(Z[:, display_order(Z, np.ones(len(Z)))])
        bits = Z.astype(np.float64)
        M = np.linalg.inv(bits.T @ bits + sample.level.ridge * np.eye(Z.shape[1]))
        return cls(Z, M @ (bits.T @ problem.full), M, sample.level.noise, problem.unit)

    @property
    def components(self) -> Array:
        """Expected means in the user's units."""
        return self.A * self.unit

    def allocate(self, X: Array) -> Array:
        """The most probable features of each row, those of the sample given; no others are added."""
        X = self._in_units(np.asarray(X, dtype=np.float64))
        n, K = X.shape[0], len(self.A)
        Z = np.zeros((n, K), np.uint8)
        step = max(IBP.entries >> min(K, FEATURES.most_exhaustive), 1)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            Z[rows] = self._best(X[rows]) if FEATURES.most_exhaustive >= K else self._climb(X[rows])
        return Z

    def _in_units(self, X: Array) -> Array:
        """Rows whose squares float64 holds."""
        largest, most = float(np.abs(X).max(initial=0.0)), np.sqrt(FEATURES.largest / X.shape[1])
        if largest / most > self.unit:
            raise ValueError(
                f"X has entries up to {largest:g}, out of all proportion to those of the fit, which are about "
                f"{self.unit:g}. Are they in the same units?"
            )
        return X / self.unit

    def _best(self, X: Array) -> Array:
        """Of all 2^K rows of bits."""
        K = len(self.A)
        bits = ((np.arange(1 << K)[:, None] >> np.arange(K)) & 1).astype(np.float64)
        means, spread = bits @ self.A, self.noise * (1 + ((bits @ self.M) * bits).sum(axis=1))
        prior = bits @ self._odds - 0.5 * X.shape[1] * np.log(spread)
        # squares of differences as products: those of the rows themselves count too, as spreads differ
        square = (X**2).sum(axis=1)[:, None] - 2 * X @ means.T + (means**2).sum(axis=1)
        return bits[np.argmax(prior - 0.5 * square / spread, axis=1)].astype(np.uint8)

    def _climb(self, X: Array) -> Array:
        """By single bits from no features, until none of them changes."""
        Z = np.zeros((len(X), len(self.A)))
        value = self._value(X, Z)
        for _ in range(IBP.bit_sweeps):
            before = value
            for k in range(Z.shape[1]):
                other = Z.copy()
                other[:, k] = 1 - Z[:, k]
                found = self._value(X, other)
                better = found > value
                Z[better], value = other[better], np.where(better, found, value)
            if np.array_equal(before, value):
                break
        return Z.astype(np.uint8)

    def _value(self, X: Array, Z: Array) -> Array:
        """Log probability of rows of bits, but for a constant."""
        spread = self.noise * (1 + ((Z @ self.M) * Z).sum(axis=1))
        square = ((X - Z @ self.A) ** 2).sum(axis=1)
        return Z @ self._odds - 0.5 * (X.shape[1] * np.log(spread) + square / spread)

    @property
    def _odds(self) -> Array:
        """Log odds that another row has each feature, before it is seen."""
        counts = self.Z.sum(axis=0, dtype=np.int64)
        return np.log(counts / (len(self.Z) + 1 - counts))
