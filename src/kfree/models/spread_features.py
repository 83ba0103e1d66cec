"""Features of rows that lie in blocks elsewhere: a search on a sample of them, then passes over all."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Family
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.features.allocation import Means
from kfree.inference.features.best_rows import RowRule
from kfree.inference.features.feature_goal import FeatureGoal, GivenStart
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_shards import (
    Allocated,
    AllocatedEverywhere,
    FeatureClosing,
    FeatureQuestion,
    RowsInSight,
    best_features,
    close_on_all_rows,
    pass_rows,
)
from kfree.inference.features.stepwise import ChosenPrice
from kfree.inference.loop import Budget
from kfree.inference.race import sample_by_content
from kfree.models.checks import check_finite
from kfree.models.feature_ranges import (
    check_evenness,
    check_length,
    check_price,
    check_sizes,
    check_spread,
    nearly_equal,
)
from kfree.models.features import (
    FeatureModel,
    FeaturePath,
    FeatureProblem,
    FittedFeatures,
    HeldFeatures,
    Seed,
    WeightedRows,
    in_precision,
)
from kfree.models.sharded import Look, ask_block, check_some_weight, first_look, look, mean_of_blocks
from kfree.rows.blocks import Beside, Blocks, RowBlock
from kfree.rows.dense import sizes_of
from kfree.rows.exact_sums import CostSum, Grid, WeightRange

# Squared distances are this much below what they are said to be at most, whatever their rounding.
_ABOVE = 1.0 + 1e-6


def first_look_at_features(blocks: Blocks) -> Look:
    """Check all rows."""
    seen = first_look(blocks, "sqeuclidean", "none", _look)
    check_some_weight(seen)
    return seen


def _look(block: RowBlock, beside: Beside, family: Family, weighting: str) -> Look:
    if block.X.shape[0]:
        check_finite(block.X)
        check_length(block.X)
    return look(block, beside, family, weighting)


class Squares(NamedTuple):
    """Limbs of the sums of squared distances from some points, and the largest of them."""

    points: Array  # (m, p)
    largest: Array  # (m,) bounds
    weights: WeightRange

    def __call__(self, block: RowBlock, beside: Beside) -> tuple[Array, Array]:
        """Of a block."""
        limbs, most = np.zeros((len(self.points), 3), np.int64), np.zeros(len(self.points))
        for i, point in enumerate(self.points):
            none = Means(np.zeros((0, point.size)), point)
            sight, total = RowsInSight(block.X, none), CostSum(self.largest[i], self.weights)
            for span in sight.spans:
                square = sight.allocate(span, RowRule()).square
                weight = block.weight[span] if block.weight.size else block.weight
                limbs[i] += total.limbs(square, weight)
                most[i] = max(most[i], float(square.max(where=weight > 0 if weight.size else True, initial=0.0)))
        return limbs, most


def _joined(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return one[0] + other[0], np.maximum(one[1], other[1])


class SpreadFeatures(NamedTuple):
    """Rows in blocks, ready for a fit."""

    blocks: Blocks
    seen: Look
    sample: FeatureProblem
    intercept: bool
    shift: Array  # (p,) what is subtracted from all rows, with an intercept
    total_weight: float
    total: float  # sum of squares, about the shift
    spread: float  # about the mean

    @classmethod
    def of(cls, blocks: Blocks, seen: Look, *, intercept: bool) -> "SpreadFeatures":
        """Bind rows that were looked at."""
        mean, total_weight = mean_of_blocks(blocks, seen)
        check_evenness(total_weight, seen.users.lightest)
        shift = mean if intercept and not seen.sparse else np.zeros(seen.p)
        points = np.stack([shift, mean])
        largest = np.array([_farthest(seen, point) for point in points])
        limbs, most = blocks.ask(ask_block, (Squares(points, largest, seen.users),), _joined)
        total, spread = (_value(some, bound, seen.users) for some, bound in zip(limbs, largest))
        least, biggest, _ = seen.extent
        n = sum(size for _, size in seen.sizes)
        ratio = total_weight / seen.users.lightest / n
        check_sizes(float(np.maximum(np.abs(least), np.abs(biggest)).max()), float(most[0]), total, ratio)
        check_spread(spread, total, alike=partial(nearly_equal, least, biggest))
        return cls(blocks, seen, _sample(blocks, seen.p, intercept), intercept, shift, total_weight, total, spread)

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(size for _, size in self.seen.sizes)

    @property
    def share(self) -> float:
        """The weight of the sample, of that of all rows: prices there are this share of the user's."""
        return self.sample.full.mass / self.total_weight

    def start(self, init: Any, K: int | None) -> GivenStart | None:
        """What the search starts from; an allocation cannot be given."""
        return self.sample.start(init, K)

    def fit_fixed(self, K: int, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """K features."""
        return self._closed(self.sample.fit_fixed(K, self._small(goal), seed, budget), goal, budget)

    def fit_priced(self, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """Features at the price of the goal."""
        assert goal.price is not None
        check_price(goal.price, self.seen.users.lightest, self.total)
        return self._closed(self.sample.fit_priced(self._small(goal), seed, budget), goal, budget)

    def fit_auto(self, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """Features at a price that a path on the sample suggests."""
        found = self.sample.fit_auto(self._small(goal), seed, budget)
        assert found.lam is not None
        return self._closed(found, goal._replace(price=found.lam / self.share), budget)

    def fit_stepwise(
        self, lam: float, patience: int, most: int | None, goal: FeatureGoal, seed: Seed, budget: Budget
    ) -> FittedFeatures:
        """Features as long as more of them pay in the sample."""
        check_price(lam, self.seen.users.lightest, self.total)
        found = self.sample.fit_stepwise(lam * self.share, patience, most, self._small(goal), seed, budget)
        return self._closed(found, goal, budget)

    def fit_stepwise_auto(self, most: int | None, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """The same at a price that is chosen there."""
        return self._closed(self.sample.fit_stepwise_auto(most, self._small(goal), seed, budget), goal, budget)

    def _small(self, goal: FeatureGoal) -> FeatureGoal:
        """The same for the sample."""
        price = None if goal.price is None else goal.price * self.share
        return goal._replace(price=price, rule=RowRule.of(self.sample.full.n, goal.rule.exact))

    def _closed(self, found: FittedFeatures, goal: FeatureGoal, budget: Budget) -> FittedFeatures:
        """The features of the sample brought to all rows."""
        users, least = self.seen.users, FEATURES.better * self.spread + FEATURES.rounding * self.total
        grid = Grid.of_sizes(*sizes_of(self.seen.extent, np.zeros(self.seen.p), 0.0), users, 1.0)
        model = found.model

        def ask(means: Means) -> tuple[Allocated, float]:
            dearest = _farthest(self.seen, means.base)
            asked = FeatureQuestion(means, self.intercept, goal.rule, grid, users, dearest)
            said = self.blocks.ask(pass_rows, (asked,), Allocated.joined)
            return said, _value(said.cost, dearest, users)

        closing = FeatureClosing(
            ask,
            grid,
            users,
            self.intercept,
            self.shift,
            goal.price,
            self.total,
            least,
            partial(_rounded, dtype=self.sample.dtype),
            goal.rule.exact and len(model.components) <= FEATURES.most_exhaustive,
            goal.max_iter,
        )
        outcome = close_on_all_rows(closing, model.means, budget)
        return self._fitted(found, outcome.state, goal, outcome.trace, outcome.converged)

    def _fitted(
        self, found: FittedFeatures, end: AllocatedEverywhere, goal: FeatureGoal, trace: list[float], converged: bool
    ) -> FittedFeatures:
        """What is published; what the search has found, in units of all rows."""
        lam = goal.price if found.lam is None or goal.price is not None else found.lam / self.share
        extra = 0.0 if lam is None or goal.price is not None else lam * end.used
        A, base = in_precision(end.means, self.sample.dtype)
        K, none = len(A), WeightedRows(np.zeros(0, bool), np.empty(0), np.empty((0, self.seen.p)))
        window, path, chosen = found.window, found.path, found.chosen
        return FittedFeatures(
            FeatureModel(A, base, self.intercept, np.empty((0, K), np.uint8), none),
            end.inertia,
            self.total,
            np.array(trace) + extra,
            converged,
            found.restarts,
            HeldFeatures(end.said.n, end.said.bare, end.said.held),
            end.used,
            lam,
            window=None if window is None else self._in_units(window),
            path=None if path is None else self._path(path),
            chosen=None if chosen is None else self._chosen(chosen),
            rows=partial(best_features, means=end.means, rule=goal.rule),
        )

    def _chosen(self, chosen: ChosenPrice) -> ChosenPrice:
        """The price that was chosen, on the scale of all rows."""
        return chosen._replace(lam=chosen.lam / self.share, window=self._in_units(chosen.window))

    def _in_units(self, window: tuple[float, float]) -> tuple[float, float]:
        """Prices on the scale of all rows."""
        return window[0] / self.share, window[1] / self.share

    def _path(self, path: FeaturePath) -> FeaturePath:
        """The path of the sample on the scale of all rows."""
        return path._replace(
            inertia=path.inertia / self.share, objective=path.objective / self.share, window=path.window / self.share
        )


def _rounded(means: Means, dtype: Any) -> Means:
    """Means in the precision in which they are published."""
    A, base = in_precision(means, dtype)
    return Means(A.astype(np.float64), base.astype(np.float64))


def _sample(blocks: Blocks, p: int, intercept: bool) -> FeatureProblem:
    """Different rows, drawn by content; together they weigh as many as they are."""
    wide = max(p, 1)
    enough = max(FEATURES.polish_rows, FEATURES.sample_entries // wide + 1)  # moves are tried on fewer of them then
    most = max(FEATURES.least_sample, min(enough, CLUSTERS.search_up_to, FEATURES.dense_entries // wide))
    drawn = sample_by_content(blocks, most)
    weight = drawn.weight * (len(drawn.weight) / drawn.weight.sum())
    even = np.allclose(weight, 1.0, 1e-12, 0.0)
    return FeatureProblem.of(drawn.X, None if even else weight, intercept=intercept, merge=False, reduce=True)


def _farthest(seen: Look, point: Array) -> float:
    """No row with weight is farther from a point, squared."""
    least, largest, _ = seen.extent
    return float(_ABOVE * (np.maximum(np.abs(least - point), np.abs(largest - point)) ** 2).sum())


def _value(limbs: Array, largest: float, weights: WeightRange) -> float:
    total = CostSum(largest, weights)
    total.add(limbs)
    return total.value


def score_of_blocks(blocks: Blocks, model: FeatureModel) -> float:
    """Minus the weighted sum of squared residuals of all rows with their best features."""
    seen = first_look_at_features(blocks)
    means, largest = model.means, _farthest(seen, model.means.base)
    limbs = blocks.ask(ask_block, (Residuals(means, largest, seen.users),), np.add)
    return -_value(limbs, largest, seen.users)


class Residuals(NamedTuple):
    """Limbs of the sum of squared residuals."""

    means: Means
    largest: float
    weights: WeightRange

    def __call__(self, block: RowBlock, beside: Beside) -> Array:
        """Of a block."""
        sight, total = RowsInSight(block.X, self.means), CostSum(self.largest, self.weights)
        limbs = np.zeros(3, np.int64)
        for span in sight.spans:
            weight = block.weight[span] if block.weight.size else block.weight
            limbs += total.limbs(sight.allocate(span, RowRule()).square, weight)
        return limbs
