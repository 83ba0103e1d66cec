"""A kernel mixture bound to data: checked rows, the kernel, candidates, and what is to be matched."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array
from kfree.families.points import Kernel, MovableFamily, PointFamily, Spread
from kfree.inference.clusters.how_many.subsample import Pilot, draw_pilot
from kfree.inference.embedding.candidates import Makers, Sample
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import (
    ExactTarget,
    FeatureSums,
    FeatureTarget,
    OutOfTime,
    SeenRows,
    Target,
    sum_features,
)
from kfree.inference.embedding.simplex import Part
from kfree.inference.loop import Budget, attempt
from kfree.models.checks import check_weight
from kfree.models.clusters import LocalProblem
from kfree.models.kernel_bandwidth import by_column, make_kernel
from kfree.models.kernel_candidates import given_candidates
from kfree.models.kernel_rows import check_seen, folds, inside_units
from kfree.models.mixture_model import floats
from kfree.rows.standardise import Units
from kfree.structures import enough_pieces

SOURCES = ("clusters", "local", "prior")


class KernelWish(NamedTuple):
    """What the user wants."""

    candidates: Any  # a name of SOURCES, or components
    n_candidates: int | None
    ridge: float | None  # None to choose it
    features: int | str | None  # "auto" for as many as are needed, None for none
    moved: MovableFamily | None  # the family, if its components are to be moved, too
    concentration: float


class Frame(NamedTuple):
    """What a fit knows of its rows when it has forgotten them."""

    family: PointFamily
    kernel: Kernel
    units: Units
    floor: Array  # (p,) variances that no component is below, if the family is continuous
    length: float  # mean total of rows of counts

    def seen(self, X: Any) -> Any:
        """Rows, checked, as the kernel sees them."""
        check_seen(X, self.family)
        return self.family.seen(self.units.rows(X) if self.family.continuous else floats(X))

    def weighted(self, X: Any, sample_weight: Any) -> SeenRows:
        """The same with weights, without rows that have none."""
        weight = check_weight(sample_weight, X.shape[0])
        n = weight if weight.size else np.ones(X.shape[0])
        seen, n = self.seen(X)[n > 0], n[n > 0]
        return SeenRows(seen, n, folds(seen))


class Looked(NamedTuple):
    """What a pass over the rows found."""

    target: Target
    S: Array  # (T, T)
    parts: list[Part]
    complete: bool  # whether all rows were seen

    @property
    def R(self) -> Array:
        """Inner products with the kernel mean of all rows."""
        return np.asarray(sum(part.R * part.mass for part in self.parts) / sum(part.mass for part in self.parts))


class Measures(Protocol):
    """A fitted model that measures how far rows are from it."""

    def mmd2(self, rows: SeenRows, rng: np.random.Generator) -> float:
        """Squared distance of kernel means."""

    def mmd2_of_sums(self, frequencies: Array, sums: FeatureSums) -> float:
        """The same for rows of which sums of features are known."""


@dataclass(frozen=True)
class KernelProblem(ABC):
    """Checked rows, wherever they are, and what the kernel makes of them."""

    frame: Frame
    pilot: Pilot
    sample: Sample
    spread: Spread
    degenerate: bool  # rows do not differ

    @abstractmethod
    def look(self, params: Any, wish: KernelWish, budget: Budget, rng: np.random.Generator) -> Looked:
        """What is to be matched, from a pass over all rows or, if the user does not wait, over some."""

    @abstractmethod
    def mmd2(self, model: Measures, rng: np.random.Generator) -> float:
        """Squared distance of the kernel means of all rows and a model."""

    def distance(self, model: Measures, rng: np.random.Generator, *, complete: bool) -> float:
        """The same, of the rows of the sample if the user does not wait for all."""
        return self.mmd2(model, rng) if complete else model.mmd2(self.few(), rng)

    def few(self) -> SeenRows:
        """The rows of the sample, where the user does not wait for all."""
        return SeenRows(self.sample.seen, self.sample.weight, folds(self.sample.seen))

    def candidates(self, wish: KernelWish, budget: Budget, rng: np.random.Generator) -> Any:
        """Components to choose from."""
        frame, count = self.frame, wish.n_candidates
        if not isinstance(wish.candidates, str):
            return given_candidates(wish.candidates, frame.family, self.sample, self.spread, frame.units)
        makers = Makers(frame.family, frame.kernel, self.sample, self.pilot, self.spread, budget)
        if wish.candidates == "clusters":
            return makers.clusters(np.inf if count is None else count)
        seed = int(rng.integers(2**31))
        if wish.candidates == "local":
            near = partial(makers.local, EMBEDDING.drawn if count is None else count, seed)
            return attempt(near, makers.whole, budget)
        if count is None:
            enough = enough_pieces(wish.concentration, 1 / EMBEDDING.truncation, "mean", 0.0)
            if enough > EMBEDDING.most_drawn:
                raise ValueError(
                    f"concentration={wish.concentration:g} asks for {enough} candidates, more than "
                    f"{EMBEDDING.most_drawn}, which take long. Pass n_candidates."
                )
            count = max(EMBEDDING.drawn, enough)
        return attempt(partial(makers.prior, count, np.random.default_rng(seed)), makers.whole, budget)


@dataclass(frozen=True)
class LocalKernelProblem(KernelProblem):
    """Rows in memory, those that have weight."""

    rows: SeenRows

    @classmethod
    def of(cls, X: Any, sample_weight: Any, family: PointFamily, bandwidth: Any) -> "LocalKernelProblem":
        """Check X for the family, bring it into units of its own and choose the kernel."""
        check_seen(X, family)
        weight = check_weight(sample_weight, X.shape[0])
        n = weight if weight.size else np.ones(X.shape[0])
        if (n == 0).any():
            X, n = X[n > 0], n[n > 0]
        inside, units, variance = inside_units(X, n, family, by_column=by_column(family, bandwidth))
        table = LocalProblem.of(inside, n if weight.size else None, family.divergence, "none", 0.0, None).table
        pilot = draw_pilot(table)
        sample = sample_of(pilot, inside[pilot.origin], family)
        seen = family.seen(inside)
        spread, degenerate = spread_of(sample, family, variance)
        total = np.asarray(inside.sum(axis=1), dtype=np.float64).ravel() if family.counted else np.zeros(n.size)
        kernel = make_kernel(bandwidth, family, sample, units, float(n @ (1 / np.maximum(total, 1.0)) / n.sum()))
        frame = Frame(family, kernel, units, spread.floor, float(n @ total / n.sum()))
        return cls(frame, pilot, sample, spread, degenerate, SeenRows(seen, n, folds(seen)))

    def mmd2(self, model: Measures, rng: np.random.Generator) -> float:
        """Squared distance of the kernel means of all rows and a model."""
        return model.mmd2(self.rows, rng)

    def _n_features(self, wish: KernelWish, count: int) -> int:
        """Random features for so many candidates; 0 to evaluate the kernel."""
        few = self.rows.weight.size * float(count) <= EMBEDDING.evaluations
        if wish.features is None or (isinstance(wish.features, str) and few):
            return 0
        return enough_features(wish, count)

    def look(self, params: Any, wish: KernelWish, budget: Budget, rng: np.random.Generator) -> Looked:
        """What is to be matched, from a pass over all rows or, if the user does not wait, over some."""
        family, kernel, count = self.frame.family, self.frame.kernel, self._n_features(wish, params[0].shape[0])
        frequencies = family.frequencies(kernel, self.rows.X.shape[1], count, rng) if count else None

        def over_rows(rows: SeenRows, budget: Budget | None) -> Looked:
            if frequencies is None:
                target: Target = ExactTarget(family, kernel, rows).in_units_of(params)
            else:
                sums = sum_features(family, frequencies, rows, budget)
                target = FeatureTarget(family, kernel, frequencies, sums).in_units_of(params)
            return Looked(target, target.inner(params), target.parts(params, budget), budget is not None)

        some = partial(over_rows, self.few(), None)
        try:
            return attempt(partial(over_rows, self.rows, budget), some, budget)
        except OutOfTime:
            return some()


def enough_features(wish: KernelWish, count: int) -> int:
    """Random features for so many candidates, where there are any."""
    if isinstance(wish.features, int | np.integer):
        return int(wish.features)
    return max(EMBEDDING.least_features, EMBEDDING.features_each * count)


def sample_of(pilot: Pilot, X: Any, family: PointFamily) -> Sample:
    """The rows of a pilot, which stand in X in its order."""
    return Sample(X, family.seen(X), pilot.table.rows.weight, pilot.ticket)


def spread_of(sample: Sample, family: PointFamily, variance: Array) -> tuple[Spread, bool]:
    """What candidates may depend on, and whether rows differ at all."""
    share = sample.weight / sample.weight.sum()
    if not family.continuous:
        seen = np.asarray(sample.seen.T @ share).ravel()
        return Spread(seen, np.zeros((0, 0)), np.zeros(seen.size)), False
    largest = float(variance.max(initial=0.0))
    mean = share @ sample.X
    gap = (sample.X - mean) * np.sqrt(share)[:, None]
    floor = np.maximum(EMBEDDING.floor * variance, EMBEDDING.flat * largest)
    return Spread(mean, gap.T @ gap, floor if largest > 0 else np.full(mean.size, EMBEDDING.bare**2)), not largest > 0
