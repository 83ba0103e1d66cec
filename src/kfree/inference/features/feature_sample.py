"""A sample of a long table: moves are tried on it, and what they end in is brought to all rows."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, Means, solve
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.isometry import isometric


class FeatureSample(NamedTuple):
    """Some rows of a table."""

    rows: Array
    table: FeatureTable  # dense, for the moves
    stored: FeatureTable  # in the columns of the whole table

    def means(self, state: FeatureState) -> Means:
        """The means of an allocation of the sample, in the columns of the whole table."""
        return state.means if self.stored is self.table else solve(self.stored, state.Z).means

    def part(self, state: FeatureState) -> FeatureState:
        """What an allocation of all rows is here."""
        Z = state.Z[self.rows]
        means = state.means if self.stored is self.table else solve(self.table, Z).means
        return FeatureState(Z, means)


def draw_sample(table: FeatureTable, rng: np.random.Generator) -> FeatureSample | None:
    """Rows to search with; None if the table is short."""
    limit = max(FEATURES.least_sample, min(FEATURES.sample_rows, FEATURES.sample_entries // max(table.p, 1)))
    if table.n <= limit or table.n * table.p <= FEATURES.sample_entries:
        return None
    if table.weight.min() == table.weight.max():
        rows = np.sort(rng.choice(table.n, limit, replace=False))
        stored = table.take(rows)
    else:
        rows, weight = _by_weight(table.weight, limit, rng)
        stored = table.take(rows, weight)
    if not stored.sparse:
        return FeatureSample(rows, stored, stored)
    weight = stored.weight if stored.weighted else np.empty(0)
    return FeatureSample(rows, FeatureTable(isometric(stored.X), weight, intercept=table.intercept), stored)


def _by_weight(weight: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows drawn as often as copies in place of their weights would be, and their weights in the sample; rows that
    would be drawn more than once are all there, as they are."""
    heavy, room, rest = np.zeros(weight.size, bool), count, float(weight.sum())
    while room and (more := ~heavy & (weight * room > rest)).any():
        heavy |= more
        room, rest = count - int(heavy.sum()), float(weight[~heavy].sum())
    sampled = np.where(heavy, weight, 0.0)
    light = np.flatnonzero(~heavy)
    if room and light.size:
        sampled[light] = rng.multinomial(room, weight[light] / rest) * (rest / room)
    rows = np.flatnonzero(sampled)
    return rows, sampled[rows]
