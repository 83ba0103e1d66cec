"""A conjugate family bound to rows: which kernel draws their partitions, and sums and scores of their clusters."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.components import Form, Linear, Weighted
from kfree.families.conjugate import Conjugate, Moments
from kfree.kernels import kernels


class Binding(NamedTuple):
    """A kernel, and its arguments but for weights, draws and labels."""

    kernel: str
    rows: Any
    prior: tuple[Any, ...]
    log_volume: float = 0.0  # by which marginals are too large, for each unit of weight


def _full(prior: Any, rows: Any) -> Binding:
    counts = np.array([prior.beta[0], prior.nu[0]])
    return Binding("gibbs_full", rows, (prior.mean[0], np.ascontiguousarray(prior.root[0].T), counts))


def _diagonal(prior: Any, rows: Any) -> Binding:
    return Binding("gibbs_diagonal", rows, (prior.mean[0], prior.rate[0], np.array([prior.beta[0], prior.shape[0]])))


def _spherical(prior: Any, rows: Any) -> Binding:
    return Binding("gibbs_spherical", rows, (prior.mean[0], prior.rate[0], np.array([prior.beta[0], prior.shape[0]])))


def _known(prior: Any, rows: Any) -> Binding:
    root = prior.root[0]
    whitened = np.ascontiguousarray(rows @ root)
    return Binding("gibbs_known", whitened, (prior.mean[0] @ root, float(prior.beta[0])), 0.5 * float(prior.log_det[0]))


def _multinomial(prior: Any, rows: Any) -> Binding:
    return Binding("gibbs_multinomial", _sparse(rows), (prior.counts[0],))


def _poisson(prior: Any, rows: Any) -> Binding:
    return Binding("gibbs_poisson", _sparse(rows), (prior.shape[0], float(prior.rate[0])))


def _bernoulli(prior: Any, rows: Any) -> Binding:
    return Binding("gibbs_bernoulli", _sparse(rows), (prior.ones[0], prior.zeros[0]))


def _sparse(rows: Any) -> tuple[Array, Array, Array]:
    table = sp.csr_matrix(rows, dtype=np.float64)
    return table.data, table.indices.astype(np.int32, copy=False), table.indptr.astype(np.int64)


_BINDINGS: dict[str, Callable[[Any, Any], Binding]] = {
    "gaussian": _full,
    "diag": _diagonal,
    "spherical": _spherical,
    "known": _known,
    "multinomial": _multinomial,
    "poisson": _poisson,
    "bernoulli": _bernoulli,
}


class Turns(NamedTuple):
    """Numbers drawn for a sweep, and for splits and merges after it."""

    order: Array  # (N,) rows in turn
    uniforms: Array  # for the first of them; the others stay
    pairs: Array  # (P, 2) rows that splits and merges begin with
    deals: Array  # (P, N)
    accepts: Array  # (P,)

    @classmethod
    def drawn(cls, n: int, proposals: int, rng: np.random.Generator, *, sweep: bool) -> "Turns":
        """Draw them."""
        count = proposals if n > 1 else 0
        first = rng.integers(0, n, size=count)
        pairs = np.stack([first, (first + rng.integers(1, max(n, 2), size=count)) % n], axis=1)
        uniforms = rng.random(n if sweep else 0)
        return cls(rng.permutation(n), uniforms, pairs, rng.random((count, n)), rng.random(count))

    @classmethod
    def none(cls, n: int) -> "Turns":
        """Nothing moves."""
        return cls(np.arange(n), np.empty(0), np.empty((0, 2), np.int64), np.empty((0, n)), np.empty(0))


class Partitioned(NamedTuple):
    """A partition that was drawn."""

    labels: Array  # (N,) int32, clusters in the order in which they appear
    n_clusters: int
    accepted: int  # splits and merges
    log_marginal: float  # of all rows given the partition, without the base measure


class BoundFamily:
    """A family with its prior, and rows in its units."""

    def __init__(self, family: Conjugate, prior: Any, rows: Any):
        self.family, self.prior, self.rows = family, prior, rows
        if family.name == "gamma":
            power = (float(prior.rows[0]), family.shape)  # type: ignore[attr-defined]
            self._binding = Binding("gibbs_positive", rows, (prior.rate[0], *power))
        else:
            self._binding = _BINDINGS[family.name](prior, rows)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    def draw(self, labels: Array, weight: Array, turns: Turns, log_alpha: float) -> Partitioned:
        """Rows, then splits and merges, by their chances given all others."""
        return self._call(labels.copy(), weight, turns, log_alpha, np.empty(0))

    def fresh(self, weight: Array) -> Array:
        """(N,) Log marginals of clusters of single rows, without the base measure."""
        found = np.empty(self.n)
        self._call(np.zeros(self.n, np.int32), weight, Turns.none(self.n), 0.0, found)
        return found - self._binding.log_volume * weight

    def _call(self, labels: Array, weight: Array, turns: Turns, log_alpha: float, fresh: Array) -> Partitioned:
        name, rows, prior, log_volume = self._binding
        drawn = (turns.order, turns.uniforms, turns.pairs, turns.deals, turns.accepts)
        K, accepted, value = getattr(kernels(), name)(rows, weight, *prior, drawn, log_alpha, labels, fresh)
        return Partitioned(labels, K, accepted, value - log_volume * float(weight.sum()))

    def moments(self, labels: Array, weight: Array, K: int) -> Moments:
        """Weighted sums over the rows of each cluster."""
        n, p = self.rows.shape
        mass = np.bincount(labels, weight, minlength=K)
        indicator = sp.csr_matrix((weight, (labels, np.arange(n))), shape=(K, n))
        first = indicator @ self.rows
        first = first.toarray() if sp.issparse(first) else np.asarray(first)
        if not self.family.continuous:
            return Moments(mass, first, None, np.zeros((K, p)))
        about = first / mass[:, None]
        full = self.family.second_moments == "full"
        second = np.empty((K, p, p) if full else (K, p))
        for k, members in enumerate(np.split(np.argsort(labels, kind="stable"), np.bincount(labels).cumsum()[:-1])):
            gap, w = self.rows[members] - about[k], weight[members]
            second[k] = (gap * w[:, None]).T @ gap if full else w @ (gap * gap)
        return Moments(mass, np.zeros((K, p)), second, about)

    def posterior(self, labels: Array, weight: Array, K: int) -> Any:
        """Posteriors of the parameters of clusters."""
        return self.family.posterior(self.prior, self.moments(labels, weight, K))

    def parameters(self, labels: Array, weight: Array, K: int, rng: np.random.Generator) -> Form:
        """Parameters of clusters drawn from their posteriors, as the form of their likelihoods."""
        return self.family.given(self.family.draw(self.posterior(labels, weight, K), 1, rng), self.prior)

    def parameters_of_row(self, i: int, weight: float, rng: np.random.Generator) -> Form:
        """Parameters of a cluster that holds one row."""
        alone = BoundFamily.__new__(BoundFamily)
        alone.family, alone.prior, alone.rows = self.family, self.prior, self.rows[i : i + 1]
        return alone.parameters(np.zeros(1, np.int32), np.array([weight]), 1, rng)

    def scores(self, form: Form, weight: Array) -> Array:
        """(K, N) Log-likelihoods of rows under given parameters, without the base measure, times weights."""
        if isinstance(form, Linear):
            value = np.asarray(self.rows @ form.coef.T).T - form.offset[:, None]
        elif isinstance(form, Weighted):
            value = np.stack(
                [-0.5 * ((self.rows - m) ** 2 @ q) - c for q, m, c in zip(form.precision, form.mean, form.offset)]
            )
        else:
            value = np.empty((form.offset.size, self.n))
            for k, (root, mean, offset) in enumerate(zip(*form)):
                gap = (self.rows - mean) @ root
                value[k] = -0.5 * np.einsum("nd,nd->n", gap, gap) - offset
        return np.ascontiguousarray(value * weight)
