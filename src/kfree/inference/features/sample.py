"""A sample of a long table: moves are tried on it, and what they end in is brought to all rows."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.model import Means, State, solve
from kfree.inference.features.reduce import isometric
from kfree.inference.features.table import Table

#: Rows and entries above which moves are tried on a sample first, and the least rows of that.
SAMPLE_ROWS, SAMPLE_ENTRIES, LEAST_ROWS = 1024, 200_000, 512


class Sample(NamedTuple):
    """Some rows of a table."""

    rows: Array
    table: Table  # dense, for the moves
    stored: Table  # in the columns of the whole table

    def means(self, state: State) -> Means:
        """The means of an allocation of the sample, in the columns of the whole table."""
        return state.means if self.stored is self.table else solve(self.stored, state.Z).means

    def part(self, state: State) -> State:
        """What an allocation of all rows is here."""
        Z = state.Z[self.rows]
        means = state.means if self.stored is self.table else solve(self.table, Z).means
        return State(Z, means, np.nan)


def draw_sample(table: Table, rng: np.random.Generator) -> Sample | None:
    """Rows to search with; None if the table is short. A row of weight w is drawn as often as w rows would be."""
    limit = max(LEAST_ROWS, min(SAMPLE_ROWS, SAMPLE_ENTRIES // max(table.p, 1)))
    if table.n <= limit or table.n * table.p <= SAMPLE_ENTRIES:
        return None
    if table.weight.min() == table.weight.max():
        rows = np.sort(rng.choice(table.n, limit, replace=False))
        stored = table.take(rows)
    else:
        times = rng.multinomial(limit, table.weight / table.mass)
        rows = np.flatnonzero(times)
        stored = table.take(rows, times[rows].astype(np.float64))
    if not stored.sparse:
        return Sample(rows, stored, stored)
    weight = stored.weight if stored.weighted else np.empty(0)
    return Sample(rows, Table(isometric(stored.X), weight, intercept=table.intercept), stored)
