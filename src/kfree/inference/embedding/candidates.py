"""Candidates: components among which the weights choose.

All are made from a sample of the rows that stands in the order of its tickets, so that neither the order of the table
nor copies in place of weights matter.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from kfree.families import Array
from kfree.families.components import join, take
from kfree.families.points import Kernel, PointFamily, Spread
from kfree.inference.clusters.how_many.price_path import PricePath
from kfree.inference.clusters.how_many.subsample import Pilot
from kfree.inference.content import uniform
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.loop import Budget, attempt


class Sample(NamedTuple):
    """Rows that speak for all."""

    X: Any  # (m, p) in units of their own
    seen: Any  # (m, p) as the kernel sees them
    weight: Array  # (m,)
    ticket: Array  # (m,) rising: a hash of the content and of the number among copies

    def first(self, count: int) -> "Sample":
        """Some of them: tickets are as good as random."""
        return Sample(self.X[:count], self.seen[:count], self.weight[:count], self.ticket[:count])


class Makers(NamedTuple):
    """What candidates are made of."""

    family: PointFamily
    kernel: Kernel
    sample: Sample
    pilot: Pilot  # the same rows, for clusterings
    spread: Spread
    budget: Budget

    def clusters(self, most: float) -> Any:
        """Soft clusters of 1, 2, 3, ... up to as many as predict rows best that they were not made from."""
        found: list[Any] = []

        def make() -> None:
            curve = PricePath(self.pilot, self.budget)
            grains = self._grains(curve, most)
            curve.backward(grains)
            for K in reversed(grains):  # the best first: of candidates that are alike the first is kept
                if not self.budget.spent:
                    found.append(self._grain(curve.solutions[K].labels, K))

        attempt(make, lambda: None, self.budget)  # those that there are will do
        params = self._once_each(join([*found, self.whole()]))
        return take(params, slice(int(min(most, params[0].shape[0]))))

    def _grains(self, curve: PricePath, most: float) -> list[int]:
        """Numbers of clusters, up to the best; finer ones are tried until a few in a row are worse."""
        columns = self.sample.X.shape[1]
        each = max(EMBEDDING.rows_each, 2 * int(self.family.least_rows(columns)))
        # of rows that take few values many are copies, which say nothing of the width of a Gaussian
        rows = self.pilot.n_distinct if self.family.continuous else self.pilot.n
        made: list[int] = []
        best, level, worse = 1, self._predicts(curve.solutions[1].labels, 1), 0
        for K in EMBEDDING.grains:
            if K * each > rows or self.pilot.n_distinct < K or sum(made) >= most - 1 or worse > EMBEDDING.patience:
                break
            curve.forward([K])
            if K not in curve.solutions or self.budget.spent:
                break
            made.append(K)
            now = self._predicts(curve.solutions[K].labels, K)
            worse = 0 if now > level else worse + 1
            best, level = (K, now) if now > level else (best, level)
        return [K for K in made if best >= K]

    def _predicts(self, labels: Array, K: int) -> float:
        """Log-density of each half of the rows under soft clusters of the other half."""
        some, total = self._affordable(K), 0.0
        for half in (slice(0, None, 2), slice(1, None, 2)):
            other = slice(1 - (half.start or 0), None, 2)
            one, two = (Sample(some.X[h], some.seen[h], some.weight[h], some.ticket[h]) for h in (half, other))
            if not one.weight.size or not two.weight.size:
                return -np.inf
            params, mass = self._soften(one, _shares(labels[: some.weight.size][half], one.weight, K))
            total += float(two.weight @ logsumexp(self._logs(params, mass, two.X), axis=1))
        return total

    def whole(self) -> Any:
        """One component of all rows."""
        return self.family.estimate(self.sample.X, self.sample.weight[:, None], self.spread)

    def _affordable(self, K: int) -> Sample:
        """Rows on which soft passes are made: all, unless that would take too long."""
        columns = self.sample.X.shape[1]
        work = EMBEDDING.soft_passes * K * columns * (columns if self.family.continuous else 1)
        return self.sample.first(int(max(EMBEDDING.soft_rows, EMBEDDING.soft_work / work)))

    def _grain(self, labels: Array, K: int) -> Any:
        """The components of a clustering after soft passes, those that rows say enough of."""
        some = self._affordable(K)
        params, mass = self._soften(some, _shares(labels[: some.weight.size], some.weight, K))
        return take(params, mass > self.family.least_rows(some.X.shape[1]) * float(some.weight.mean()))

    def _soften(self, sample: Sample, resp: Array) -> tuple[Any, Array]:
        """Parameters and weights of clusters after a few passes in which rows are shared."""
        params, mass = self.family.estimate(sample.X, resp, self.spread), resp.sum(axis=0)
        for _ in range(EMBEDDING.soft_passes):
            if self.budget.spent:
                break
            resp = softmax(self._logs(params, mass, sample.X), axis=1) * sample.weight[:, None]
            params, mass = self.family.estimate(sample.X, resp, self.spread), resp.sum(axis=0)
        return params, mass

    def _logs(self, params: Any, mass: Array, X: Any) -> Array:
        """Logs of the weighted densities of rows, (n, K)."""
        with np.errstate(divide="ignore"):
            return self.family.log_predictive(params, X) + np.log(mass / mass.sum())

    def _once_each(self, params: Any) -> Any:
        """Candidates without those whose kernel mean is that of one before."""
        logs = self.family.log_norms(self.kernel, params)
        kernel = self.kernel._replace(log_unit=float(logs.max()))
        S = self.family.inner(kernel, params, params)
        length = np.sqrt(np.maximum(np.diagonal(S), np.finfo(float).tiny))
        same = EMBEDDING.same * length[:, None] * length < S
        kept: list[int] = []
        for j in range(length.size):
            if not same[j, kept].any():
                kept.append(j)
        return take(params, kept)

    def local(self, count: int, stream: int) -> Any:
        """Components of rows that were drawn and their nearest neighbours; the first of many are those of few."""
        sample, family = self.sample, self.family
        with np.errstate(over="ignore"):
            arrival = -np.log(uniform(sample.ticket, stream)) / sample.weight
        drawn = np.argsort(arrival, kind="stable")[:count]
        near = EMBEDDING.near_rows + int(family.least_rows(sample.X.shape[1]))
        resp = np.zeros((sample.weight.size, drawn.size))
        for k, row in enumerate(drawn):
            close = np.argsort(family.apart(sample.seen[[row]], sample.seen)[0], kind="stable")
            enough = np.cumsum(sample.weight[close]) <= near * sample.weight.mean()
            enough[0] = True
            resp[close[enough], k] = sample.weight[close[enough]]
        return family.estimate(sample.X, resp, self.spread)

    def prior(self, count: int, rng: np.random.Generator) -> Any:
        """Draws from a prior as wide as the rows, as in the paper; the first of many are those of few."""
        return self.family.draw(self.spread, count, rng)


def _shares(labels: Array, weight: Array, K: int) -> Array:
    """Weights (n, K) of rows in hard clusters."""
    resp = np.zeros((labels.size, K))
    resp[np.arange(labels.size), labels] = weight
    return resp
