"""The protocol by which algorithms see rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kfree.families import Affine, Array, Family, Geometry
from kfree.families.cached import cached_property
from kfree.kernels import kernels
from kfree.rows.exact_sums import ExactSums, Grid, Shares, WeightRange, sum_of
from kfree.rows.threads import WORTH_THREADS, cut, over

#: Rows read at a time.
SPAN = 16384

T = TypeVar("T")
_POSITIONS, _NOWHERE = np.arange(SPAN), np.full(SPAN, -1, np.int32)
# Entries of rows made dense at a time.
_ENTRIES = 250_000


class Nearest(NamedTuple):
    """The two least relative costs of some rows."""

    labels: Array  # (m,) int32, lowest index of the least
    least: Array  # (m,)
    second: Array  # (m,); -inf where nothing is known of the others
    slack: Array  # (m,) bound on the rounding error of any one of them, base cost included


class Norms(NamedTuple):
    """No row is larger than sqrt(per_root * base) + constant, in the 2-norm (kind 0) or the 1-norm (kind 1)."""

    per_root: float
    constant: float
    kind: int

    def of(self, affine: Affine) -> tuple[float, float, float]:
        """With the largest norm of the coefficients, what bounds every product."""
        return self.per_root, self.constant, float(affine.reach[self.kind])


class Assigned(NamedTuple):
    """What came of assigning a span in one call."""

    undecided: bool  # rounding leaves a decision open: only labels and bounds still hold
    compared: int  # rows that were compared with all centres
    doubted: int  # of these, undecided in the precision of the first look
    changed: float  # weight of the rows that changed label


class Descent(NamedTuple):
    """What came of several assignments in one call."""

    trace: Array  # (passes, 3) weighted sums of costs, weights that changed label, magnitudes of the offsets
    complete: bool  # the last assignment; else it is still to be made
    compared: int  # rows that were compared with all centres
    doubted: int  # of these, undecided in the precision of the first look


class Rows(ABC):
    """A table of statistics t(x) = (x - shift) * scale with weights; never copied whole."""

    n: int
    p: int
    weight: Array  # (n,), or (0,) for ones
    scale: Array  # (n,), or (0,) for ones
    shift: Array  # (p,) what is subtracted from the users' rows
    dtype: np.dtype[Any]  # of the first look at the products: float32 or float64
    #: Of the smallest entry whose size matters, however small, to the largest; None: in each column all may matter.
    ratio: float | None = 1.0
    made: bool = False  # values are made from those that were given: nothing else can be bound in their place

    def spans(self) -> list[slice]:
        """The spans the rows are read in."""
        # short tables, too, keep a few threads busy; sparse rows are cut where dense ones are: their sums are equal
        size = max(1, SPAN // 4) if self.n <= 4 * SPAN and self.n * self.p > WORTH_THREADS else SPAN
        return cut(self.n, size)

    def each(self, function: Callable[[slice], T]) -> Iterator[T]:
        """Apply a function to every span, in parallel if there is enough to do; results in span order."""
        return over(self.spans(), function, self.entries)

    def weights(self, rows: Any) -> Array:
        """Weights of some rows."""
        if self.weight.size:
            return self.weight[rows]
        return np.ones(len(range(*rows.indices(self.n))) if isinstance(rows, slice) else len(rows))

    def total_weight(self) -> float:
        """Sum of the weights."""
        return sum_of(self.weight) if self.weight.size else float(self.n)

    @abstractmethod
    def dense(self, rows: Any) -> Array:
        """Statistics of a few rows, float64."""

    @abstractmethod
    def take(self, rows: Array, weight: Array) -> "Rows":
        """A copy of some rows in memory, float64, with weights of its own."""

    @abstractmethod
    def bind(self, X: Any) -> None:
        """Read rows from here, where they have the values they had."""

    @abstractmethod
    def release(self) -> None:
        """Hold no values until rows are bound again."""

    @abstractmethod
    def part(self, rows: Array) -> "Rows":
        """A copy of some rows in memory as they are, which is not as they are measured; they weigh 1."""

    @abstractmethod
    def joined(self, other: Any) -> "Rows":
        """These rows and those of another sample of the same table."""

    @abstractmethod
    def hash(self, rows: slice) -> Array:
        """Hashes of the rows' content as the user gave it, uint64."""

    @abstractmethod
    def base(self, rows: slice, geometry: Geometry) -> Array:
        """D(x, anchor)."""

    def singleton_cost(self, rows: slice, geometry: Geometry, weight: Array) -> Array:
        """What clusters of one row each cost besides lam; a piece at a time."""
        step = max(1, _ENTRIES // max(self.p, 1))
        starts = range(rows.start, rows.stop, step)
        pieces = [slice(start, min(start + step, rows.stop)) for start in starts]
        weights = [weight[piece.start - rows.start : piece.stop - rows.start] for piece in pieces]
        return np.concatenate([geometry.singleton_cost(self.dense(i), w) for i, w in zip(pieces, weights)])

    @property
    @abstractmethod
    def entries(self) -> int:
        """Stored entries: what one pass reads."""

    @abstractmethod
    def _nearest(self, rows: Any, affine: Affine, dtype: Any, reach: Array, out: Nearest) -> Array | int:
        """Fill ``out`` in the given precision; return the number of columns each row touches."""

    @abstractmethod
    def own(self, rows: Any, labels: Array, affine: Affine) -> Array:
        """Relative costs of rows to the centres in ``labels``, float64."""

    @abstractmethod
    def distance(self, rows: Any, labels: Array, mean: Array) -> Array:
        """Squared Euclidean distances of rows from the means in ``labels``, float64."""

    @abstractmethod
    def add(self, rows: Any, labels: Array, total: Array, mass: Array) -> None:
        """Add w x and w of rows to the sums of their labels (skipped if negative)."""

    @abstractmethod
    def move(self, rows: Any, before: Array, labels: Array, sums: ExactSums) -> None:
        """Move rows whose label has changed from the sums of the one before to those of the new one; -1 is none."""

    def tally(self, span: slice, labels: Array, cost: Array, before: Array, sums: ExactSums, reach: Array) -> float:
        """Move a span to the sums of its labels, raise ``reach`` to the largest costs, and set ``before`` to the
        labels; returns the weight of those that changed. Sums of no labels take nothing."""
        if sums.K:
            self.move(span, before, labels, sums)
        weight = self.weight[span] if self.weight.size else self.weight
        return kernels().tally(weight, labels, cost, before, reach)[0]

    @abstractmethod
    def _sizes(self) -> tuple[Array, Array]:
        """(p,) At least as large as any entry of a column, and about as small as the smallest ones."""

    @cached_property
    def grid(self) -> Grid:
        """What sums are measured in."""
        return Grid.of_sizes(*self._sizes(), self.weight_range, self.ratio)

    @cached_property
    def weight_range(self) -> WeightRange:
        """What sums must know of the weights; of the whole table, where these rows are a part of it."""
        return WeightRange.of(self.weight)

    def _weighing(self, span: slice) -> Any:
        """Which rows of a span have weight: what others hold must change nothing."""
        return self.weight[span] > 0 if self.weight.size else slice(None)

    def measure(
        self,
        span: slice,
        labels: Array,
        mean: Array,
        factor: float,
        base: Array,
        unit: Array,
        alone: Array,
        size: float,
        lam: float,
        low: Array,
        cost: Array,
        left: Array,
        close: Array,
    ) -> tuple[int, int]:
        """Fill ``cost`` with ``factor`` times the squared distances of a span from the means in ``labels``; list rows
        whose nearest centre is not settled by ``low`` and rows near their threshold, and return how many."""
        cost[:] = factor * self.distance(span, labels, mean)
        return (
            kernels().unsettled(cost, base, size, low, left),
            kernels().near_threshold(cost, unit, alone, base, size, lam, close),
        )

    def assign(
        self,
        span: slice,
        mean: Array,
        factor: float,
        affine: Affine,
        norms: Norms,
        opening: tuple[Array, Array, Array, float],
        memory: tuple[bool, Array, Array, Array],
        sums: tuple[ExactSums, Array],
    ) -> Assigned | None:
        """Assign a span by ``factor`` times squared distance in one call, where there is one: what it computes is told
        by ``kernels.reference.assign_dense``. ``opening`` holds base costs, weights of a copy, costs of standing alone
        and lam, ``memory`` whether bounds are known, labels, bounds and costs, ``sums`` sums and largest costs."""
        return None

    def descend(
        self,
        mean: Array,
        geometry: Geometry,
        base: Array,
        lam: float,
        rule: tuple[int, int, float, float, bool],
        memory: tuple[Array, Array, Array],
        sums: tuple[ExactSums, Array],
        room: int,
    ) -> Descent | None:
        """Several assignments of the whole table, centres moved between, in one call, where there is one: what it
        computes is told by ``kernels.reference.descend_dense``. ``memory`` holds labels, bounds and costs."""
        return None

    def two_means(self, rows: Array, labels: Array, steps: int, mean: Array, usable: Array) -> bool:
        """Two-means by squared distance in many clusters in one call, where there is one (else False): what it computes
        is told by ``kernels.reference.two_means_dense``."""
        return False

    @abstractmethod
    def products(self, rows: Any, affine: Affine) -> tuple[Array, Array]:
        """Products (m, K) of a few rows with the coefficients, float64, and a bound (m,) on their magnitude."""

    @abstractmethod
    def parts(self, rows: Array, labels: Array, K: int, family: Family) -> "Rows":
        """The centres of K sets of rows as rows of their own; each weighs what its centre stands for."""

    def nearest(
        self, rows: Any, base: Array, affine: Affine, dtype: Any = None, norms: Norms | None = None
    ) -> tuple[Nearest, Array]:
        """The two least relative costs over all centres, with a bound on their error; and the positions where that
        bound leaves open which is the least. ``norms`` saves measuring the rows for it."""
        dtype = np.dtype(dtype or self.dtype)
        m = base.shape[0]
        found = Nearest(np.empty(m, np.int32), np.empty(m), np.empty(m), np.empty(m))
        terms = self._nearest(rows, affine, dtype, affine.reach if norms is None else np.zeros(2), found)
        unsure = np.empty(m, np.intp)
        count = kernels().open_decisions(
            base,
            np.atleast_1d(np.asarray(terms, np.int64)),
            (0.0, 0.0, 0.0) if norms is None else norms.of(affine),
            affine.size,
            limits_of(dtype),
            *found[1:],
            unsure,
        )
        return found, unsure[:count]

    @cached_property
    def whole(self) -> tuple[Array, Array]:
        """Sum (1, p) and weight (1,) of all rows."""
        return self.exact_whole.values()

    @cached_property
    def exact_whole(self) -> ExactSums:
        """The same as whole numbers."""
        return self.exact_sums(np.zeros(self.n, np.int32), 1)

    def sums(self, labels: Array, K: int) -> tuple[Array, Array]:
        """Sums (K, p) and weights (K,) by label."""
        return self.exact_sums(labels, K).values()

    def exact_sums(self, labels: Array, K: int) -> ExactSums:
        """The same as whole numbers."""
        shares = Shares(ExactSums(K, self.grid))

        def of_span(span: slice) -> None:
            with shares.one() as mine:
                self.move(span, _NOWHERE[: span.stop - span.start], labels[span], mine)

        for _ in self.each(of_span):
            pass
        return shares.total()


@cache
def limits_of(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """Relative rounding, least normal number and largest number that is safe to compute with."""
    limits = np.finfo(dtype)
    return float(limits.eps), float(limits.tiny), float(limits.max) / 4


def positions(rows: slice) -> Array:
    """0, 1, ... for the rows of a span: made once, as spans are looked at very often."""
    count = rows.stop - rows.start
    return _POSITIONS[:count] if count <= SPAN else np.arange(count)


def magnitude(one_norm: Array, square: Array, reach: Array) -> Array:
    """Bound on all products of rows with coefficients of this reach: two forms of Hölder's inequality."""
    return np.minimum(np.sqrt(square) * reach[0], one_norm * reach[1])
