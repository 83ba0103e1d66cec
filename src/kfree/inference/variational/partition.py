"""What a search needs of the tied rows it runs on."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array
from kfree.inference.variational.posterior import View
from kfree.rows import Tied


class Ray(NamedTuple):
    """A direction along which a component is split, at its centre."""

    direction: Array  # (D,)
    centre: Array  # (D,)


class ComponentRows(NamedTuple):
    """The rows of a component."""

    names: Array  # what the partition calls them
    rows: Tied
    share: Array  # (R,) of the component in them
    token: Any = None  # stands for what was refined to get them


class Partition(Protocol):
    """Tied rows that may be refined and coarsened between updates."""

    tied: Tied  # another object whenever the partition has changed
    rows: Tied  # single rows, in an order of the partition's own
    places: Array | None  # of these rows in the table it was made of; None if their order is the same
    fixed: bool  # True if it never changes

    @property
    def full(self) -> bool:
        """Whether there is no room to refine it, though rows are tied."""

    @property
    def rough(self) -> float:
        """Nats per row that a split must gain at present: less may be due to rows that are tied."""

    @property
    def ways(self) -> float:
        """Children a split may have at present."""

    def sure(self, view: View, wanted: Array, prices: Array) -> Array:
        """For each of some components, given their divergences from the prior, whether a split of it that seems
        hopeless on coarse rows is so."""

    def part(self, index: Array, share: Array) -> ComponentRows:
        """Rows ``index`` (ascending) of the table, in which a component has this share."""

    def refined(self, parts: list[ComponentRows], rays: list[Ray]) -> list[ComponentRows]:
        """The rows on which splits along rays are tried, in place of those of the components; the same part where there
        is nothing to refine. The partition itself stays as it is."""

    def keep(self, token: Any) -> None:
        """Refine the partition itself as it was for the split that gave the token."""

    def expand(self, view: View) -> int:
        """Refine where the parameters ask for it; the number of rows that were split."""

    def coarsen(self, view: View) -> None:
        """Join rows that the parameters do not tell apart."""

    def sharpen(self) -> bool:
        """Growth has ended: whether from now on ``expand`` looks more closely than before."""


class SingleRows:
    """The rows as they are."""

    fixed = True
    full = False
    rough = 0.0
    ways = float("inf")

    def __init__(self, tied: Any, places: Array | None = None):  # Tied; Summable for updates alone
        self.tied, self.rows, self.places = tied, tied, places

    def sure(self, view: View, wanted: Array, prices: Array) -> Array:
        """Rows are not coarse."""
        return np.ones(len(wanted), bool)

    def part(self, index: Array, share: Array) -> ComponentRows:
        """Some of the rows."""
        return ComponentRows(index, self.tied.take(index), share)

    def refined(self, parts: list[ComponentRows], rays: list[Ray]) -> list[ComponentRows]:
        """Rows of a table cannot be refined."""
        return parts

    def keep(self, token: Any) -> None:
        """There is nothing to keep."""

    def expand(self, view: View) -> int:
        """Nothing is split."""
        return 0

    def coarsen(self, view: View) -> None:
        """Nothing is joined."""

    def sharpen(self) -> bool:
        """There is nothing to look at more closely."""
        return False
