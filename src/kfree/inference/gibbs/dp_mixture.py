"""The sampler of partitions of a Dirichlet-process mixture: one row at a time, splits and merges, concentration.

Partitions have the density P(z) prop. to alpha^K prod_c (n_c - 1)! exp(M_c), where M_c is the log marginal of the rows
of a cluster, each as often as its weight times beta says. Neal (2000), Algorithms 2 and 3; Dahl (2003).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from kfree.families import Array
from kfree.families.components import Form
from kfree.inference.gibbs.bound_family import BoundFamily, Partitioned, Turns
from kfree.inference.gibbs.gibbs_numbers import GIBBS
from kfree.inference.labels import renumbered
from kfree.inference.loop import Info
from kfree.kernels import kernels


class Concentration(NamedTuple):
    """What is known of the concentration: its log, or a gamma prior of it."""

    log_value: float  # to begin with
    prior: tuple[float, float] | None = None  # shape and rate

    def log_density(self, log_alpha: float) -> float:
        """Log of the prior density."""
        if self.prior is None:
            return 0.0
        a, b = self.prior
        return float(a * np.log(b) - gammaln(a) + (a - 1) * log_alpha - b * np.exp(log_alpha))

    def drawn(self, log_alpha: float, K: int, n: int, rng: np.random.Generator) -> float:
        """Given K clusters of n rows: a mixture of two gamma distributions (Escobar & West 1995, section 6)."""
        if self.prior is None:
            return log_alpha
        a, b = self.prior
        rate = b - np.log(rng.beta(np.exp(log_alpha) + 1.0, n))
        first = rng.random() * (a + K - 1 + n * rate) < a + K - 1
        return float(np.log(max(rng.gamma(a + K - (not first)) / rate, np.finfo(float).tiny)))


class Way(NamedTuple):
    """How it is sampled."""

    beta: Array  # of the first sweeps; the last one stays
    collapsed: bool = True  # parameters are integrated out
    proposals: int = GIBBS.proposals  # splits and merges after each sweep


class DPState(NamedTuple):
    """Where a chain is."""

    labels: Array  # (N,) int32, clusters in the order in which they appear
    n_clusters: int
    log_alpha: float  # at beta = 1
    log_posterior: float
    accepted: int = 0  # splits and merges of the last sweep
    given: Form | None = None  # parameters of the clusters, where they are not integrated out


class Kept(NamedTuple):
    """A sample."""

    labels: Array  # (N,) in a compact type
    log_alpha: float


class DPSampler:
    """Bound to rows; see ``chains.Sampler``."""

    def __init__(self, bound: BoundFamily, weight: Array, concentration: Concentration, way: Way, starts: list[Array]):
        self.bound, self.weight, self.concentration, self.way, self.starts = bound, weight, concentration, way, starts
        self._log_h = np.asarray(bound.family.log_base(bound.rows))
        self._fresh: dict[float, Array] = {}

    def start(self, chain: int, rng: np.random.Generator) -> DPState:
        """The partition this chain begins with."""
        weight, n = self._at(0), self.bound.n
        found = self.bound.draw(self.starts[chain % len(self.starts)], weight, Turns.none(n), 0.0)
        return self._state(found, self.concentration.log_value, 0, rng)

    def sweep(self, state: DPState, turn: int, rng: np.random.Generator) -> DPState:
        """All rows, then splits and merges, then the concentration."""
        weight, log_alpha = self._at(turn), state.log_alpha * self._beta(turn)
        turns = Turns.drawn(self.bound.n, self.way.proposals, rng, sweep=True)
        labels = state.labels
        if not self.way.collapsed:
            labels = self._with_parameters(state, turns, turn, rng)
            turns = turns._replace(uniforms=np.empty(0))
        found = self.bound.draw(labels, weight, turns, log_alpha)
        after = self.concentration.drawn(state.log_alpha, found.n_clusters, self.bound.n, rng)
        return self._state(found, after, turn, rng)

    def trace(self, state: DPState) -> tuple[float, ...]:
        """Number of clusters, log posterior, concentration, splits and merges accepted."""
        return state.n_clusters, state.log_posterior, float(np.exp(state.log_alpha)), state.accepted

    def keep(self, state: DPState) -> Kept:
        """Labels, one byte each up to 256 clusters."""
        return Kept(state.labels.astype(np.min_scalar_type(state.n_clusters - 1)), state.log_alpha)

    def info(self, state: DPState) -> Info:
        """Number of clusters and log posterior."""
        return Info(state.log_posterior, abs(state.log_posterior), 1.0, 0, state.n_clusters)

    def _beta(self, turn: int) -> float:
        return float(self.way.beta[min(turn, self.way.beta.size - 1)])

    def _at(self, turn: int) -> Array:
        """How often rows count in a sweep."""
        return self.weight * self._beta(turn)

    def _state(self, found: Partitioned, log_alpha: float, turn: int, rng: np.random.Generator) -> DPState:
        beta, weight, n, K = self._beta(turn), self._at(turn), self.bound.n, found.n_clusters
        sizes = np.bincount(found.labels, minlength=K)
        value = K * beta * log_alpha + float(gammaln(sizes).sum()) - _log_rising(beta * log_alpha, n)
        value += found.log_marginal + float(weight @ self._log_h) + self.concentration.log_density(log_alpha)
        given = None if self.way.collapsed else self.bound.parameters(found.labels, weight, K, rng)
        return DPState(found.labels, K, log_alpha, value, found.accepted, given)

    def _with_parameters(self, state: DPState, turns: Turns, turn: int, rng: np.random.Generator) -> Array:
        """Rows choose between clusters whose parameters are given; a new one draws its own from its first row."""
        assert state.given is not None
        n, weight, labels = self.bound.n, self._at(turn), state.labels.copy()
        fresh, log_alpha = self._fresh_at(turn), state.log_alpha * self._beta(turn)
        table = _Scores(self.bound.scores(state.given, weight), np.bincount(labels, minlength=state.n_clusters))
        place = 0
        while place < n:  # as often as clusters are opened
            arguments = (table.scores, fresh, turns.order, turns.uniforms, place, log_alpha, labels, table.rows)
            place = kernels().gibbs_given(*arguments)
            if place < n:
                row = int(turns.order[place])
                form = self.bound.parameters_of_row(row, float(weight[row]), rng)
                labels[row] = table.open(self.bound.scores(form, weight)[0])
                place += 1
        return renumbered(labels)

    def _fresh_at(self, turn: int) -> Array:
        """Log marginals of single rows; those of the last beta are kept."""
        beta = self._beta(turn)
        found = self._fresh.get(beta)
        if found is None:
            found = self.bound.fresh(self._at(turn))
            self._fresh = {beta: found}
        return found


class _Scores:
    """Scores of rows under clusters, with room for more of them."""

    def __init__(self, scores: Array, rows: Array):
        self.scores, self.rows = scores, rows.astype(np.int64)

    def open(self, scores: Array) -> int:
        """A cluster of one row, in a place that is free."""
        free = np.flatnonzero(self.rows == 0)
        if not free.size:
            K = self.rows.size
            more = 1 + int(GIBBS.room * K)
            self.scores = np.concatenate([self.scores, np.zeros((more, self.scores.shape[1]))])
            self.rows = np.concatenate([self.rows, np.zeros(more, np.int64)])
            free = np.array([K])
        k = int(free[0])
        self.scores[k], self.rows[k] = scores, 1
        return k


def _log_rising(log_alpha: float, n: int) -> float:
    """Log of alpha (alpha + 1) ... (alpha + n - 1)."""
    return log_alpha + float(np.logaddexp(log_alpha, np.log(np.arange(1, n))).sum())
