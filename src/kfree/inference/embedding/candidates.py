"""Candidates: components among which the weights choose.

All are made from a sample of the rows that stands in the order of its tickets, so that neither the order of the table nor
copies in place of weights matter.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from kfree.families import Array
from kfree.families.components import join, take
from kfree.families.points import Kernel, PointFamily, Spread
from kfree.inference.clusters.how_many.inertia_curve import Curve
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
        """Clusters at several grains, as they are and after soft passes; coarse ones first."""
        grains, found = self._grains(most), [self._whole()]
        curve = Curve(self.pilot, self.budget)

        def make() -> None:
            curve.forward(grains)
            curve.backward(grains)
            for K in grains:
                if K in curve.solutions and not self.budget.spent:
                    found.append(self._grain(curve.solutions[K].labels, K))

        attempt(make, lambda: None, self.budget)  # those that there are will do
        params = self._once_each(join(found))
        return take(params, slice(int(min(most, params[0].shape[0]))))

    def _grains(self, most: float) -> list[int]:
        """Numbers of clusters, hard and soft, that make no more candidates than are wanted."""
        n, columns = self.pilot.n_distinct, self.sample.X.shape[1]
        each = max(EMBEDDING.rows_each, 2 * int(self.family.least_rows(columns)))
        grains, left = [], most - 1
        for K in EMBEDDING.grains[1:]:
            if K * each <= n and left > 0:
                grains.append(K)
                left -= K
        return grains

    def _whole(self) -> Any:
        """One component of all rows."""
        return self.family.estimate(self.sample.X, self.sample.weight[:, None], self.spread)

    def _grain(self, labels: Array, K: int) -> Any:
        """The components of a clustering, hard and soft."""
        family, sample = self.family, self.sample
        columns = sample.X.shape[1]
        resp = np.zeros((labels.size, K))
        resp[np.arange(labels.size), labels] = sample.weight
        least = family.least_rows(columns) * float(sample.weight.mean())
        hard = family.estimate(sample.X, resp, self.spread)
        work = EMBEDDING.soft_work / (EMBEDDING.soft_passes * K * columns * (columns if family.movable else 1))
        some = sample.first(int(max(EMBEDDING.soft_rows, work)))
        mass, soft = resp.sum(axis=0), hard
        for _ in range(EMBEDDING.soft_passes):
            if self.budget.spent:
                break
            with np.errstate(divide="ignore"):
                logs = family.log_predictive(soft, some.X) + np.log(mass / mass.sum())
            resp = softmax(logs, axis=1) * some.weight[:, None]
            soft, mass = family.estimate(some.X, resp, self.spread), resp.sum(axis=0)
        hard_mass = np.bincount(labels, weights=sample.weight, minlength=K)
        return join([take(soft, mass > least), take(hard, hard_mass > least)])

    def _once_each(self, params: Any) -> Any:
        """Candidates without those whose kernel mean is that of one before."""
        logs = self.family.log_norms(self.kernel, params)
        kernel = self.kernel._replace(log_unit=float(logs.max()))
        S = self.family.inner(kernel, params, params)
        length = np.sqrt(np.maximum(np.diagonal(S), np.finfo(float).tiny))
        same = S > EMBEDDING.same * length[:, None] * length
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
