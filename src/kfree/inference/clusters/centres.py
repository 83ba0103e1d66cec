"""Centres in the two forms in which they are used, and what an assignment to them returns."""

from typing import NamedTuple

import numpy as np

from kfree.families import Affine, Array, Geometry
from kfree.families.cached import cached_property
from kfree.inference.clusters.cluster_numbers import CLUSTERS


class Centres:
    """Centres in the two forms in which they are used; the second is made when it is first asked for."""

    def __init__(self, geometry: Geometry, mean: Array):
        self._geometry = geometry
        self.mean = mean  # (K, p)

    @cached_property
    def affine(self) -> Affine:
        """Coefficients and offsets of the product that gives all costs."""
        return self._geometry.affine(self.mean)

    @cached_property
    def ends(self) -> tuple[Affine, Affine] | None:
        """What tells which rows centres on an end of the domain exclude, where costs do not: see ``Geometry.ends``."""
        return self._geometry.ends(self.mean)

    @property
    def finite(self) -> Affine:
        """Costs of the rows that centres do not exclude."""
        return self.affine if self.ends is None else self.ends[0]

    def some(self, which: slice | Array) -> "Centres":
        """Some of the centres."""
        some = Centres(self._geometry, self.mean[which])
        some.affine = self.affine.some(which)
        return some

    def moved(self, mean: Array, kept: Array) -> "Centres":
        """Centres after a move; ``kept`` gives, for each of the first, its index here. Of those that have not moved the
        second form is not made again."""
        after = Centres(self._geometry, mean)
        if "affine" in self.__dict__ and mean.size >= CLUSTERS.large_centres:
            fresh = np.ones(mean.shape[0], bool)
            fresh[: kept.size] = (mean[: kept.size] != self.mean[kept]).any(axis=1)
            if 2 * np.count_nonzero(fresh) < fresh.size:
                known, made = self.affine, self._geometry.affine(mean[fresh])
                source = np.zeros(fresh.size, np.intp)
                source[: kept.size] = kept
                coef, offset = known.coef[source], known.offset[source]
                coef[fresh], offset[fresh] = made.coef, made.offset
                after.affine = Affine(coef, offset, max(known.size, made.size))
        return after

    def joined(self, other: "Centres") -> "Centres":
        """These centres and others."""
        joined, a, b = Centres(self._geometry, np.concatenate([self.mean, other.mean])), self.affine, other.affine
        coef, offset = np.concatenate([a.coef, b.coef]), np.concatenate([a.offset, b.offset])
        joined.affine = Affine(coef, offset, max(a.size, b.size))
        return joined


class Sums(NamedTuple):
    """What an assignment returns: only this crosses a block border."""

    total: Array  # (K, p) weighted sums of rows
    mass: Array  # (K,) weights
    changed: float  # weight of the rows that changed label
    cost: float  # weighted sum of divergences
    tied: int  # rows whose two least costs are exactly equal
    reach: Array  # (K,) largest divergence of a row of each cluster
