"""Rows in blocks elsewhere, in units of their own, from exact sums of all; and a sample by content."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.how_many.subsample import Pilot
from kfree.models.mixture_model import floats
from kfree.models.sharded import Look, Products, ShardedProblem, ask_block, first_look, mean_of_blocks
from kfree.rows.blocks import Blocks, ChangedBlocks, RowBlock
from kfree.rows.exact_sums import ExactProducts
from kfree.rows.standardise import Fine, Units, coarse_units, fine_units

Change = Callable[[RowBlock], RowBlock]


@dataclass(frozen=True)
class InUnits:
    """Puts the rows of a block in units of their own."""

    units: Units

    def __call__(self, block: RowBlock) -> RowBlock:
        """Rows that are not counts."""
        return block._replace(X=self.units.rows(block.X))


def in_floats(block: RowBlock) -> RowBlock:
    """The rows of a block, which are counts, in double precision."""
    return block._replace(X=floats(block.X))


def units_of_blocks(blocks: Blocks, seen: Look, *, by_column: bool) -> Fine:
    """Units in which rows have a spread of about one, and the variances of columns in them."""
    least, largest, _ = seen.extent
    mean, total_weight = mean_of_blocks(blocks, seen)
    mean = np.where(least == largest, least, mean)  # but for rounding it is
    coarse = coarse_units(mean, float(np.maximum(np.abs(least), np.abs(largest)).max()))
    ends = np.abs(coarse.rows(np.stack([least, largest]))).max(axis=0)
    inside = ChangedBlocks(blocks, InUnits(coarse))
    limbs = inside.ask(ask_block, (Products(np.zeros(seen.p), ends, seen.users),), np.add)
    square = ExactProducts.of_limbs(ends, seen.users, limbs).value / total_weight
    return fine_units(coarse, square, by_column=by_column)


class DrawnRows(NamedTuple):
    """Rows chosen by their content, in an order of their content."""

    pilot: Pilot
    X: Array  # (m, D), or CSR: the rows themselves
    total_weight: float  # of all rows


def draw_rows(blocks: Blocks, change: Change, divergence: str) -> DrawnRows:
    """The rows of a pilot, changed as the rows of all blocks are before they are measured."""
    inside = ChangedBlocks(blocks, change)
    known = first_look(inside, divergence, "none")
    problem = ShardedProblem.of(inside, known, divergence, "none", 0.0, None)
    pilot = problem.labelling().pilot()
    table: Any = pilot.source.rows
    return DrawnRows(pilot, table.X[pilot.origin], problem.facts.total_weight)
