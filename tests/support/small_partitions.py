"""Small tables for samplers of partitions, and the posterior of all their partitions."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln, logsumexp

from kfree.kernels import reference


class Case(NamedTuple):
    """A kernel and its arguments up to the turns."""

    kernel: str
    arguments: tuple[Any, ...]

    @property
    def n(self) -> int:
        """Rows."""
        return self.arguments[1].size


def _table(X: Any) -> tuple[Any, ...]:
    sparse = sp.csr_matrix(X, dtype=np.float64)
    return sparse.data, sparse.indices.astype(np.int32), sparse.indptr.astype(np.int64)


def case(name: str, n: int, p: int, rng: np.random.Generator, *, weighted: bool = False) -> Case:
    """Rows of two or three groups, and a prior."""
    weight = rng.choice([0.5, 1.0, 2.0, 1.7], n) if weighted else np.ones(n)
    groups = rng.integers(0, 3, n)
    X = 2.0 * rng.normal(size=(3, p))[groups] + rng.normal(size=(n, p))
    counts, mean = np.array([0.3, p + 1.5]), 0.3 * rng.normal(size=p)
    if name == "gibbs_full":
        spread = rng.normal(size=(p, p))
        root = np.linalg.inv(np.linalg.cholesky(spread @ spread.T + np.eye(p)))
        return Case(name, (X, weight, mean, np.tril(root), counts))
    if name == "gibbs_diagonal":
        return Case(name, (X, weight, mean, rng.gamma(3.0, size=p), counts))
    if name == "gibbs_spherical":
        return Case(name, (X, weight, mean, np.array([1.7]), counts))
    if name == "gibbs_known":
        return Case(name, (X, weight, mean, 0.2))
    rates = rng.gamma(1.0, 2.0, size=(3, p))[groups]
    if name == "gibbs_positive":
        return Case(name, (rng.gamma(1.5, rates), weight, rng.gamma(3.0, size=p), 1.3, 1.5))
    if name == "gibbs_bernoulli":
        bits = (rng.random((n, p)) < rng.beta(0.5, 0.5, (3, p))[groups]).astype(np.float64)
        return Case(name, (_table(bits), weight, rng.gamma(3.0, 0.3, p), rng.gamma(3.0, 0.3, p)))
    table, shape = _table(rng.poisson(rates)), rng.gamma(2.0, 0.5, p)
    return Case(name, (table, weight, shape) if name == "gibbs_multinomial" else (table, weight, shape, 0.8))


NAMES = (
    "gibbs_bernoulli",
    "gibbs_diagonal",
    "gibbs_full",
    "gibbs_known",
    "gibbs_multinomial",
    "gibbs_poisson",
    "gibbs_positive",
    "gibbs_spherical",
)


def turns(rng: np.random.Generator, n: int, pairs: int, *, sweep: bool = True) -> tuple[Any, ...]:
    """Draws for a sweep and so many splits and merges."""
    first = rng.integers(0, n, pairs)
    beginnings = np.stack([first, (first + rng.integers(1, max(n, 2), pairs)) % n], axis=1)
    return (
        rng.permutation(n),
        rng.random(n if sweep else 0),
        beginnings,
        rng.random((pairs, n)),
        rng.random(pairs),
    )


def no_turns(n: int) -> tuple[Any, ...]:
    """Nothing is drawn: the log marginal is all that is wanted."""
    return np.arange(n), np.empty(0), np.empty((0, 2), np.int64), np.empty((0, n)), np.empty(0)


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """All partitions of n rows, as labels numbered as they come."""

    def grow(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            yield labels
            return
        for k in range(max(labels, default=-1) + 2):
            yield from grow((*labels, k))

    yield from grow(())


def posterior(case: Case, log_alpha: float, module: Any = reference) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All partitions and their probabilities."""
    every = list(partitions(case.n))
    logs = []
    for labels in every:
        array = np.array(labels, np.int32)
        K, _, marginal = getattr(module, case.kernel)(*case.arguments, no_turns(case.n), log_alpha, array, np.empty(0))
        logs.append(K * log_alpha + gammaln(np.bincount(array)).sum() + marginal)
    return every, np.exp(np.array(logs) - logsumexp(logs))
