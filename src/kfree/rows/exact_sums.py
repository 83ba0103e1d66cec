"""Sums of rows by label in whole numbers: they do not depend on the order in which rows are added, nor on the spans,
threads or machines that add them, and rows can be taken out again without a trace.

An entry is a power of two of its column (above all its entries) times a number below 1, of which 72 bits are kept; more
where that would lose too much of the smallest entries.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import frexp, inf, ldexp
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.kernels import kernels

_BITS = 36
# Bits of the smallest entry that a sum of nothing else keeps, at least, and most parts that there are.
_ENOUGH, _MOST_PARTS = 30, 28
# Powers of two that entries are measured in.
_LEAST_EXPONENT, _MOST_EXPONENT = -1000, 1024
#: Whole weights up to this are so many copies, to the last bit; larger ones, and all others, multiply the entries.
MOST_COPIES = 4096


class WeightRange(NamedTuple):
    """What sums must know of the weights of all rows."""

    heaviest: float = 1.0
    lightest: float = 1.0  # of those above 0
    whole: bool = True  # weights are whole numbers, and not too large

    @classmethod
    def of(cls, weight: Array) -> "WeightRange":
        """Of the weights of all rows, (0,) for ones."""
        if not weight.size:
            return cls()
        heaviest = float(weight.max())
        whole = bool(heaviest <= MOST_COPIES and (weight == np.rint(weight)).all())
        return cls(heaviest, float(weight.min(where=weight > 0, initial=np.inf)), whole)

    def joined(self, other: "WeightRange") -> "WeightRange":
        """Of these rows and others."""
        heaviest, lightest = max(self.heaviest, other.heaviest), min(self.lightest, other.lightest)
        return WeightRange(heaviest, lightest, self.whole and other.whole)


class Grid(NamedTuple):
    """What entries are measured in."""

    exponent: Array  # (p + 1,) int: entries of a column are below 2**exponent; the last is that of the weights
    whole: bool  # weights are whole numbers
    parts: int = 2  # of 36 bits each

    @classmethod
    def of(cls, largest: Array, weights: WeightRange, ratio: float = 1.0) -> "Grid":
        """The grid of columns whose entries are at most so large, and of the weights of the rows.

        ``ratio`` is that of the smallest entry that counts to the largest, and of no weight.
        """
        each, mass = np.frexp(largest)[1], np.frexp(weights.heaviest)[1]
        exponents = np.append(each, 1) if weights.whole else np.append(each + mass, mass)
        if not weights.whole:
            ratio *= min(weights.lightest, weights.heaviest) / weights.heaviest
        bits = _ENOUGH - np.log2(max(ratio, np.finfo(float).tiny))
        exponents = np.clip(exponents, _LEAST_EXPONENT, _MOST_EXPONENT)
        return cls(exponents, weights.whole, int(np.clip(np.ceil(bits / _BITS), 2, _MOST_PARTS)))

    @classmethod
    def of_sizes(cls, largest: Array, finest: Array, weights: WeightRange, ratio: float | None) -> "Grid":
        """The same, where it is the smallest entries of each column that count if ``ratio`` is None."""
        if ratio is None:
            uneven = finest < largest
            ratio = float((finest[uneven] / largest[uneven]).min(initial=1.0))
        return cls.of(largest, weights, ratio)

    @property
    def inverse(self) -> Array:
        """(p + 1,) what makes entries smaller than 1."""
        return np.ldexp(1.0, -self.exponent)


class ExactSums:
    """Sums by label (K, p) and weights (K,), as whole numbers."""

    def __init__(self, K: int, grid: Grid, inverse: Array | None = None) -> None:
        self.grid, size = grid, grid.exponent.size
        self._inverse = grid.inverse if inverse is None else inverse
        self._parts, self._limbs = np.zeros((grid.parts, K, size)), np.zeros((grid.parts + 1, K, size), np.int64)
        self._held = np.zeros(1, np.int64)

    @property
    def ledger(self) -> tuple[Any, ...]:
        """What kernels write to."""
        return self._inverse, self.grid.whole, self._parts, self._limbs, self._held

    @property
    def limbs(self) -> Array:
        """(parts + 1, K, p + 1) int64, of 36 bits each, lowest first."""
        if self._held[0]:
            kernels().carry_sums(self.ledger)
        return self._limbs

    @property
    def K(self) -> int:
        """Number of labels."""
        return self._limbs.shape[1]

    @classmethod
    def of_limbs(cls, grid: Grid, limbs: Array) -> "ExactSums":
        """Sums that come from elsewhere."""
        sums = cls(limbs.shape[1], grid)
        sums._limbs = _carried(limbs)
        return sums

    def empty(self) -> "ExactSums":
        """Sums of no rows, for as many labels."""
        return ExactSums(self.K, self.grid, self._inverse)

    def resized(self, K: int) -> "ExactSums":
        """The same for another number of labels; those that are dropped must be empty."""
        if self.K == K:
            return self
        other, kept = ExactSums(K, self.grid, self._inverse), min(K, self.K)
        other._limbs[:, :kept] = self.limbs[:, :kept]
        return other

    def relabelled(self, new: Array, K: int) -> "ExactSums":
        """The same after every label has become its new number."""
        other = ExactSums(K, self.grid, self._inverse)
        for mine, theirs in zip(self.limbs, other._limbs):
            np.add.at(theirs, new[: self.K], mine)
        other._limbs[:] = _carried(other._limbs)
        return other

    def add(self, other: "ExactSums") -> None:
        """Add the sums of other rows."""
        self._limbs = _carried(self.limbs + other.limbs)

    def less(self, shift: Array) -> Array:
        """(K, p) The sums of the rows if so much (p,) were subtracted from each, rounded once."""
        numbers = sum(limb.astype(object) << (_BITS * place) for place, limb in enumerate(self.limbs))
        places, mass = (self.grid.parts * _BITS - self.grid.exponent).tolist(), numbers[:, -1].tolist()
        found = np.empty((self.K, shift.size))
        for k, row in enumerate(numbers[:, :-1].tolist()):
            weight = Fraction(mass[k]) / Fraction(2) ** places[-1]
            exact = (Fraction(n) / Fraction(2) ** at for n, at in zip(row, places))
            found[k] = [float(total - weight * Fraction(x)) for total, x in zip(exact, shift.tolist())]
        return found

    def values(self) -> tuple[Array, Array]:
        """Sums (K, p) and weights (K,)."""
        total, mass = np.empty((self.K, self.grid.exponent.size - 1)), np.empty(self.K)
        kernels().read_sums(self.ledger, total, mass)
        return total, mass


class Shares:
    """Sums that several threads add to, each to its own share; the first of them is what was known before."""

    def __init__(self, first: ExactSums) -> None:
        self._free: SimpleQueue[ExactSums] = SimpleQueue()
        self._free.put(first)
        self._all = [first]

    @contextmanager
    def one(self) -> Iterator[ExactSums]:
        """A share that nobody else adds to meanwhile."""
        try:
            mine = self._free.get_nowait()
        except Empty:
            mine = self._all[0].empty()
            self._all.append(mine)
        yield mine
        self._free.put(mine)

    def total(self) -> ExactSums:
        """All of them together."""
        first, *others = self._all
        for share in others:
            first.add(share)
        return first


class CostSum:
    """A weighted sum of costs, free of their order."""

    def __init__(self, largest: float, weights: WeightRange) -> None:
        self._largest, self._whole, self._limbs = largest, weights.whole, np.zeros(3, np.int64)
        # in plain numbers: a small batch would feel the arrays of a grid
        mass = 0 if weights.whole else frexp(weights.heaviest)[1]
        self._exponent = min(max(frexp(largest)[1] + mass, _LEAST_EXPONENT), _MOST_EXPONENT) if largest < inf else None

    def limbs(self, cost: Array, weight: Array) -> Array:
        """The sum of some costs, none of which exceeds the largest."""
        if self._exponent is None:
            return np.zeros(3, np.int64)
        return np.array(kernels().sum_costs(weight, cost, self._whole, ldexp(1.0, -self._exponent)))

    def add(self, limbs: Array) -> None:
        """Add the sum of some costs."""
        self._limbs = _carried(self._limbs + limbs)

    @property
    def value(self) -> float:
        """The sum; infinite if a cost is."""
        return self._largest if self._exponent is None else float(np.ldexp(_value(self._limbs), self._exponent))


def sum_of(values: Array) -> float:
    """The sum of numbers >= 0, free of their order."""
    total = CostSum(float(values.max(initial=0.0)), WeightRange())
    total.add(total.limbs(values, np.empty(0)))
    return total.value


class ExactProducts:
    """Sums (p, p) of products of columns, ``sum_i w_i x_i x_i'``, free of the order of the rows.

    Entries are cut in slices of 20 bits, so that BLAS adds products of 1024 rows without rounding, in whatever order.
    """

    _SLICE, _ROWS = 20, 1024

    def __init__(self, largest: Array, weights: WeightRange) -> None:
        """Entries of a column must not exceed ``largest`` (p,)."""
        self._each = Grid.of(largest, WeightRange()).exponent[:-1]
        self._both = Grid.of(largest, weights)
        self._limbs = np.zeros((4, largest.size, largest.size), np.int64)  # of 20, 20 and 40 bits, and beyond

    def add(self, x: Array, w: Array) -> None:
        """Add rows (m, p) with weights (m,)."""
        step = self._ROWS if not self._both.whole else max(1, self._ROWS // max(1, int(w.max(initial=1.0))))
        for start in range(0, len(x), step):
            some, times = x[start : start + step], w[start : start + step, None]
            right = self._slices(np.ldexp(some, -self._each))
            if self._both.whole:
                left = [part * times for part in right]
            else:
                left = self._slices(np.ldexp(some * times, -self._both.exponent[:-1]))
            fine = left[0].T @ right[2] + left[2].T @ right[0] + left[1].T @ right[1]
            sums = fine, left[0].T @ right[1] + left[1].T @ right[0], left[0].T @ right[0]
            self._limbs[:3] += np.stack(sums).astype(np.int64)
            self._carry()

    def _slices(self, x: Array) -> list[Array]:
        slices = []
        for _ in range(3):
            x = x * 2.0**self._SLICE
            slices.append(np.rint(x))
            x = x - slices[-1]
        return slices

    def _carry(self) -> None:
        for place, bits in enumerate((self._SLICE, self._SLICE, 2 * self._SLICE)):
            over = self._limbs[place] >> bits
            self._limbs[place] -= over << bits
            self._limbs[place + 1] += over

    @property
    def limbs(self) -> Array:
        """(4, p, p) int64: what may be added to that of other rows."""
        return self._limbs

    @classmethod
    def of_limbs(cls, largest: Array, weights: WeightRange, limbs: Array) -> "ExactProducts":
        """Sums that come from elsewhere."""
        products = cls(largest, weights)
        products._limbs = limbs
        products._carry()
        return products

    @property
    def value(self) -> Array:
        """(p, p), symmetric."""
        low, middle, high, top = self._limbs * np.ldexp(1.0, [[[-80]], [[-60]], [[-40]], [[0]]])
        found = np.ldexp(top + high + (middle + low), self._both.exponent[:-1, None] + self._each)
        return found if self._both.whole else (found + found.T) / 2


def _carried(limbs: Array) -> Array:
    """The same numbers with limbs of 36 bits."""
    limbs = limbs.copy()
    for place in range(len(limbs) - 1):
        limbs[place + 1] += limbs[place] >> _BITS
        limbs[place] &= 2**_BITS - 1
    return limbs


def _value(limbs: Array) -> Array:
    """As floats; whole numbers up to 2**53 times 2**-36 are rounded once."""
    low, middle, high = limbs
    return (high * 2.0**_BITS + middle) * 2.0**-_BITS + low * 2.0 ** (-2 * _BITS)
