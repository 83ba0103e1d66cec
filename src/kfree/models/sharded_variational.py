"""A variational mixture of rows that lie in blocks elsewhere: searched in a sample by content, closed over all of them.

A search proposes splits from the rows of a component, which blocks do not give; updates need sums only. Units are from
exact sums, so that the sample, and what is found in it, are those of any other blocks. Soft sums are rounded: which are
added to which is fixed by the numbers of the blocks, whoever answers first.
"""

import math
import operator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Family
from kfree.families.conjugate import Conjugate, Facts
from kfree.inference.loop import Budget
from kfree.inference.variational.greedy import FoundMixture, GreedyGoal, close
from kfree.inference.variational.partition import Partition
from kfree.models.checks import check_finite
from kfree.models.mixture import (
    KnownRows,
    MixtureProblem,
    MixtureRows,
    MixtureWish,
    Posterior,
    Solved,
    check_total_mass,
    facts_of_units,
    model_of,
)
from kfree.models.mixture_model import check_rows, make_tied
from kfree.models.sharded import Look, check_some_weight, first_look, look, mean_of_blocks
from kfree.models.sharded_units import Change, InUnits, draw_rows, in_floats, units_of_blocks
from kfree.rows import Tied
from kfree.rows.blocks import Beside, Blocks, ChangedBlocks, RowBlock
from kfree.rows.standardise import Units
from kfree.rows.tied import SpanSums, add_parts

_NONE = np.empty(0)
# What tells contents apart, and gives plain sums, whatever the family.
_PLAIN = "sqeuclidean"


def first_look_of_mixture(blocks: Blocks, family: Conjugate) -> Look:
    """Check all rows for a family."""
    seen = first_look(blocks, _PLAIN, "none", partial(_look, family=family))
    check_some_weight(seen)
    check_total_mass(seen.total)
    return seen


def _look(block: RowBlock, beside: Beside, divergence: Family, weighting: str, family: Conjugate) -> Look:
    if block.X.shape[0]:
        check_finite(block.X)
        check_rows(block.X, family)
    return look(block, beside, divergence, weighting)


class Base(NamedTuple):
    """What is known of the rows of a block that weigh something."""

    size: int
    base: float  # weighted sum of the log of the base measure


class Run(NamedTuple):
    """2**level blocks: those with the numbers from place * 2**level on."""

    level: int
    place: int

    @property
    def first(self) -> int:
        """The number of the first block."""
        return self.place << self.level


class Runs(NamedTuple):
    """Sums over some blocks; a record, as Dask makes plain tuples of the keys of a dictionary that it sends."""

    sums: dict[Run, tuple[Any, ...]]  # no two have a block in common

    def joined(self, other: "Runs") -> "Runs":
        """Sums of these blocks and of others. Two runs are added where they are the halves of one: the same additions
        whatever comes first, and few runs are left of many blocks."""
        runs = dict(self.sums)
        for run, sums in other.sums.items():
            while (twin := run._replace(place=run.place ^ 1)) in runs:
                there = runs.pop(twin)
                sums = add_parts(there, sums) if twin.place < run.place else add_parts(sums, there)
                run = Run(run.level + 1, run.place >> 1)
            runs[run] = sums
        return Runs(runs)

    def added(self) -> tuple[Any, ...]:
        """The sums of all, added in their order."""
        return reduce(add_parts, (self.sums[run] for run in sorted(self.sums, key=lambda run: run.first)))


class TiedBlocks:
    """Rows in blocks, in the units of a mixture: what is tied rows to those who want nothing but sums."""

    single = True

    def __init__(self, inside: Blocks, family: Conjugate, units: Units, total: float) -> None:
        self._inside, self.total, self.columns = inside, total, units.shift.size
        parts: tuple[Base, ...] = inside.ask(_base_of_block, (family, units), operator.add)
        self.size, self.base = sum(part.size for part in parts), math.fsum(part.base for part in parts)

    def added(self, function: SpanSums, work: int = 1) -> tuple[Any, ...]:
        """The sums of all spans: of each block in their order, then of runs of blocks."""
        runs: Runs = self._inside.ask(_sums_of_block, (function, work), Runs.joined)
        return runs.added()


def _weighed(block: RowBlock) -> tuple[Any, Array]:
    """The rows of a block that weigh something, and their weights."""
    X, n = block.X, block.weight if block.weight.size else np.ones(block.X.shape[0])
    return (X, n) if n.all() else (X[n > 0], n[n > 0])


def _base_of_block(block: RowBlock, beside: Beside, family: Conjugate, units: Units) -> tuple[Base, ...]:
    X, n = _weighed(block)
    return (Base(n.size, make_tied(X, n, family, units).base),) if n.size else ()


def _sums_of_block(block: RowBlock, beside: Beside, function: SpanSums, work: int) -> Runs:
    X, n = _weighed(block)
    return Runs({Run(0, block.number): Tied(n, X, None, _NONE).added(function, work)} if n.size else {})


@dataclass(frozen=True)
class ShardedMixtureRows(MixtureRows):
    """Rows in blocks: the search runs on a sample of them."""

    problem: MixtureProblem
    tied: TiedBlocks
    length: float  # mean total of rows of counts

    @classmethod
    def of(cls, blocks: Blocks, seen: Look, wish: MixtureWish) -> "ShardedMixtureRows":
        """Bind rows that were looked at for the family, in units of their own, and draw the sample."""
        units, facts, degenerate = _facts(blocks, seen, wish)
        change: Change = InUnits(units) if wish.family.continuous else in_floats
        drawn = draw_rows(blocks, change, _PLAIN)
        # a row counts once, however many it was drawn from, or copies of its noise would be split; all rows together
        # may weigh less
        n = drawn.pilot.table.rows.weight * min(1.0, drawn.pilot.scale)
        known = KnownRows(units, facts, degenerate, drawn.total_weight, seen.most)
        problem = MixtureProblem.assuming(wish, known, drawn.X, n)
        inside = ChangedBlocks(blocks, change)
        tied = TiedBlocks(inside, problem.setting.family, units, drawn.total_weight)
        return cls(problem, tied, 0.0 if wish.family.continuous else float(facts.mean.sum()))

    def finish(self, found: FoundMixture, goal: GreedyGoal, budget: Budget) -> FoundMixture:
        """Update what was found on all rows."""
        return close(found.setting, self.tied, found, goal, budget, self.problem.starts[0].learner)

    def solve(self, found: FoundMixture, partition: Partition) -> Solved:
        """What was found: the free energy is that of the last update, which has seen all rows."""
        problem = self.problem._replace(setting=found.setting)
        model = model_of(problem, found.mixture, found.mixture.view(found.setting), self.length)
        posterior = Posterior(found.setting, found.mixture, problem.units, np.arange(model.size))
        return Solved(model, None, found.energy, posterior)


def _facts(blocks: Blocks, seen: Look, wish: MixtureWish) -> tuple[Units, Facts, bool]:
    """Units of all rows, what default priors depend on, and whether rows do not differ."""
    family, p = wish.family, seen.p
    if not family.continuous:
        mean, _ = mean_of_blocks(ChangedBlocks(blocks, in_floats), seen)
        return Units.of_counts(p), Facts(p, 1.0, mean), False
    fine = units_of_blocks(blocks, seen, by_column=wish.learn and family.column_units)
    return fine.units, *facts_of_units(fine.spread, fine.variance)
