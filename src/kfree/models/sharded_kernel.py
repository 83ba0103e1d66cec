"""A kernel mixture of rows that lie in blocks elsewhere: candidates from a sample, sums of random features of all rows.

Units, bandwidth and candidates are those of the same rows in memory but for rounding, as the sample is chosen by
content. All that is summed is summed exactly, so that blocks, their order and their workers leave no trace.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Family, make_family
from kfree.families.points import PointFamily
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import (
    FeatureSums,
    FeatureTarget,
    OutOfTime,
    SeenRows,
    feature_grid,
    sum_exactly,
    sum_features,
)
from kfree.inference.loop import Budget, attempt
from kfree.models.checks import check_finite
from kfree.models.kernel_bandwidth import by_column, make_kernel
from kfree.models.kernel_problem import (
    Frame,
    KernelProblem,
    KernelWish,
    Looked,
    Measures,
    enough_features,
    sample_of,
    spread_of,
)
from kfree.models.kernel_rows import check_seen, folds, steady_units
from kfree.models.sharded import Look, ask_block, check_some_weight, first_look, look, mean_size
from kfree.models.sharded_units import Change, InUnits, draw_rows, in_floats, units_of_blocks
from kfree.rows.blocks import Beside, Blocks, RowBlock
from kfree.rows.exact_sums import CostSum, ExactSums, Grid, WeightRange
from kfree.rows.standardise import Units


def first_look_of_kernel(blocks: Blocks, family: PointFamily) -> Look:
    """Check all rows for a family."""
    seen = first_look(blocks, family.divergence, "none", partial(_look, family=family))
    check_some_weight(seen)
    return seen


def _look(block: RowBlock, beside: Beside, divergence: Family, weighting: str, family: PointFamily) -> Look:
    if block.X.shape[0]:
        check_finite(block.X)
        check_seen(block.X, family)
    return look(block, beside, divergence, weighting)


class Brevity(NamedTuple):
    """Limbs of the sum of one over the totals of rows."""

    users: WeightRange

    def __call__(self, block: RowBlock, beside: Beside) -> Array:
        """Of a block."""
        total = np.asarray(block.X.sum(axis=1), dtype=np.float64).ravel()
        return CostSum(1.0, self.users).limbs(1 / np.maximum(total, 1.0), block.weight)


class FeaturesOf(NamedTuple):
    """Limbs of the sums of random features."""

    frame: Frame
    frequencies: Array
    grid: Grid

    def __call__(self, block: RowBlock, beside: Beside) -> Array:
        """Of a block."""
        seen = self.frame.seen(block.X)
        weight = block.weight if block.weight.size else np.ones(block.X.shape[0])
        rows = SeenRows(seen, weight, folds(seen))
        return sum_exactly(self.frame.family, self.frequencies, rows, self.grid).limbs


@dataclass(frozen=True)
class ShardedKernelProblem(KernelProblem):
    """Rows in blocks."""

    blocks: Blocks
    users: WeightRange
    p: int

    @classmethod
    def of(cls, blocks: Blocks, seen: Look, family: PointFamily, bandwidth: Any) -> "ShardedKernelProblem":
        """Bind rows that were looked at for the family, in units of their own, and choose the kernel."""
        units, variance = Units.of_counts(seen.p), np.ones(seen.p)
        change: Change = in_floats
        if family.continuous:
            units, variance = _units(blocks, seen, by_column=by_column(family, bandwidth))
            change = InUnits(units)
        drawn = draw_rows(blocks, change, family.divergence)
        sample = sample_of(drawn.pilot, drawn.X, family)
        spread, degenerate = spread_of(sample, family, variance)
        length, brevity = 0.0, 1.0
        if family.counted:
            length = mean_size(blocks, seen, make_family(family.divergence))
            shorter = CostSum(1.0, seen.users)
            shorter.add(blocks.ask(ask_block, (Brevity(seen.users),), np.add))
            brevity = shorter.value / drawn.total_weight
        frame = Frame(family, make_kernel(bandwidth, family, sample, units, brevity), units, spread.floor, length)
        return cls(frame, drawn.pilot, sample, spread, degenerate, blocks, seen.users, seen.p)

    def look(self, params: Any, wish: KernelWish, budget: Budget, rng: np.random.Generator) -> Looked:
        """What is to be matched, from a pass over all rows or, if the user does not wait, over some."""
        family, kernel = self.frame.family, self.frame.kernel
        frequencies = family.frequencies(kernel, self.p, enough_features(wish, params[0].shape[0]), rng)

        def looked(sums: FeatureSums, *, complete: bool) -> Looked:
            target = FeatureTarget(family, kernel, frequencies, sums).in_units_of(params)
            return Looked(target, target.inner(params), target.parts(params), complete)

        def of_all() -> Looked:
            if budget.spent:
                raise OutOfTime
            return looked(self._sums(frequencies), complete=True)

        def of_some() -> Looked:
            return looked(sum_features(family, frequencies, self.few()), complete=False)

        try:
            return attempt(of_all, of_some, budget)
        except OutOfTime:
            return of_some()

    def mmd2(self, model: Measures, rng: np.random.Generator) -> float:
        """Squared distance of the kernel means of all rows and a model, by random features."""
        frequencies = self.frame.family.frequencies(self.frame.kernel, self.p, EMBEDDING.least_features, rng)
        return model.mmd2_of_sums(frequencies, self._sums(frequencies))

    def _sums(self, frequencies: Array) -> FeatureSums:
        grid = feature_grid(self.frame.family, frequencies, self.sample.seen, self.users)
        limbs = self.blocks.ask(ask_block, (FeaturesOf(self.frame, frequencies, grid),), np.add)
        return FeatureSums(*ExactSums.of_limbs(grid, limbs).values())


def _units(blocks: Blocks, seen: Look, *, by_column: bool) -> tuple[Units, Array]:
    """Units in which rows have a spread of about one, and the variances of columns in them."""
    fine = units_of_blocks(blocks, seen, by_column=by_column)
    if not fine.spread:
        return fine.units, fine.variance
    return steady_units(fine.units, fine.variance, by_column=by_column)
