"""Mixtures by matching kernel means: weights of candidates, and a model that can be asked."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.components import take
from kfree.families.points import Kernel
from kfree.inference.clusters.fit import canonical_order
from kfree.inference.content import hash_rows, uniform
from kfree.inference.embedding.bandwidths import squared_bandwidth
from kfree.inference.embedding.candidates import Sample
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import ExactTarget, FeatureSums, SeenRows, squared_length, sum_features
from kfree.inference.embedding.moving import Moved, move
from kfree.inference.embedding.simplex import Weights, choose_ridge, objective, solve
from kfree.inference.embedding.two_sample import Comparison, permutation_test
from kfree.inference.loop import Budget, Info
from kfree.models.kernel_bandwidth import by_column
from kfree.models.kernel_problem import Frame, KernelWish, Looked
from kfree.models.kernel_rows import deviations, stack
from kfree.models.mixture_model import MixtureModel


class FoundWeights(NamedTuple):
    """The end of a fit."""

    params: Any  # of the components that have weight, the heaviest first
    p: Array  # (K,) their weights
    support: Array  # (K,) which candidates they are
    weights: Weights  # of all candidates
    n_candidates: int
    trace: list[float]  # objective after the weights were found, and after each round of moving
    converged: bool
    raised: bool  # whether candidates repeat and the ridge had to be raised


def find(looked: Looked, params: Any, wish: KernelWish, floor: Array, budget: Budget) -> FoundWeights:
    """Weights of candidates, and, if the user wants that, better places for those that have weight."""
    S, R = looked.S, looked.R
    ridge = choose_ridge(S, looked.parts) if wish.ridge is None else wish.ridge
    weights = solve(S, R, ridge)
    level = objective(S, R, weights.ridge, weights.p)
    trace, converged, raised = [level], looked.complete and not budget.spent, weights.ridge > ridge
    support = np.flatnonzero(weights.p > EMBEDDING.support)
    budget.tell("weights", 1, Info(level, 1.0, 0.0, 0, support.size))
    params, p = take(params, support), weights.p[support] / weights.p[support].sum()
    if wish.moved is not None:
        outcome = move(looked.target, wish.moved, Moved(params, weights._replace(p=p), level), floor, budget)
        found: Moved = outcome.state
        held = found.weights.p > EMBEDDING.support
        params, p, support = take(found.params, held), found.weights.p[held], support[held]
        weights, trace = found.weights, [level, *outcome.trace]
        converged = converged and outcome.converged
        p = p / p.sum()
    order = canonical_order(looked.target.family.means(params), p)
    return FoundWeights(take(params, order), p[order], support[order], weights, R.size, trace, converged, raised)


class KernelModel(NamedTuple):
    """A fitted mixture and the kernel it was fitted with: how far from it are rows?"""

    mixture: MixtureModel
    frame: Frame
    kept: Any  # some rows of the fit as the kernel sees them
    rule: Any  # how the bandwidth is chosen

    @classmethod
    def of(cls, frame: Frame, kept: Any, found: FoundWeights, rule: Any) -> "KernelModel":
        """The model of a finished fit."""
        mixture = MixtureModel(frame.family, found.params, np.log(found.p), found.p, frame.units, length=frame.length)
        return cls(mixture, frame, kept, rule)

    def bandwidth(self) -> Array | float:
        """In the users' units: that of every column, or those of all columns together."""
        root, scale = np.sqrt(self.frame.kernel.widths), self.frame.units.scale
        if by_column(self.frame.family, self.rule):
            return np.asarray(root[0] * scale)
        return float(root[0] * scale[0]) if root.size == 1 else np.asarray(root * scale[0])

    def mmd2(self, rows: SeenRows, rng: np.random.Generator, *, unbiased: bool = False) -> float:
        """Squared distance of the kernel means of rows and mixture; by random features if rows are many."""
        family, kernel = self.frame.family, self.frame.kernel
        p, params, n = self.mixture.weights, self.mixture.params, rows.X.shape[0]
        if float(n) * n <= EMBEDDING.evaluations:
            target = ExactTarget(family, kernel, rows)
            length = squared_length(family, kernel, rows)
            rest = float(p @ (target.inner(params) @ p) - 2 * (target.match(params) @ p))
        else:
            frequencies = family.frequencies(kernel, rows.X.shape[1], EMBEDDING.least_features, rng)
            length, rest = self._by_features(frequencies, sum_features(family, frequencies, rows))
        if unbiased:
            share = rows.weight / rows.weight.sum()
            length = (length - float(share**2 @ family.own(rows.X))) / (1 - float(share @ share))
            return length + rest
        return max(length + rest, 0.0)

    def mmd2_of_sums(self, frequencies: Array, sums: FeatureSums) -> float:
        """The same for rows of which sums of features are known."""
        return max(sum(self._by_features(frequencies, sums)), 0.0)

    def _by_features(self, frequencies: Array, sums: FeatureSums) -> tuple[float, float]:
        family = self.frame.family
        own = family.component_features(self.frame.kernel, frequencies, self.mixture.params).T @ self.mixture.weights
        return float(sums.mean @ sums.mean), float(own @ own - 2 * (own @ sums.mean))

    def test(self, X: Any, count: int, most: int, rng: np.random.Generator) -> Comparison:
        """Whether rows come from the distribution that the rows of the fit came from."""
        first, second = (_some(rows, most, rng) for rows in (self.kept, self.frame.seen(X)))
        both, kernel = self._seen_alike(stack(first, second))
        return permutation_test(self.frame.family, kernel, both, first.shape[0], count, rng)

    def _seen_alike(self, both: Any) -> tuple[Any, Kernel]:
        """Rows in units of columns that are chosen from both tables, and a kernel with such a bandwidth: those chosen
        from the rows of the fit would know them from the others."""
        family, n = self.frame.family, both.shape[0]
        if not family.has_width or not isinstance(self.rule, str):
            return both, self.frame.kernel
        ticket = hash_rows(both)  # of the content: the order of rows must not matter, either
        order = np.argsort(ticket, kind="stable")
        if by_column(family, self.rule):
            both = both / deviations(both[order])
        sample = Sample(both[order], both[order], np.ones(n), ticket[order])
        width = squared_bandwidth(family, sample, self.rule)
        return both, self.frame.kernel._replace(widths=np.array([width if width > 0 else 1.0]))


def keep(sample: Sample) -> Any:
    """Rows of a fit that others will be compared with: drawn by their weight."""
    count = EMBEDDING.kept_rows
    if sample.weight.size <= count:
        return sample.seen
    with np.errstate(over="ignore"):
        arrival = -np.log(uniform(sample.ticket, 5)) / sample.weight
    return sample.seen[np.sort(np.argpartition(arrival, count)[:count])]


def _some(rows: Any, most: int, rng: np.random.Generator) -> Any:
    """At most so many rows, at random."""
    return rows if rows.shape[0] <= most else rows[np.sort(rng.permutation(rows.shape[0])[:most])]
