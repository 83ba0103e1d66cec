"""Rows as a search sees them: about zero, with a spread of about one."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.kernels import kernels
from kfree.rows.threads import cut, in_order

# Rows looked at together.
_BLOCK = 16_384
# Columns up to which a compiled loop beats products.
_FEW = 64
# Entries of X beyond this have squares, or sums of such, that overflow.
LARGEST = 1e150
# Rows that differ by less have units with fewer digits than others.
SMALLEST = 1e-305
# Deviation of a column, as a share of its mean, up to which it may be rounding.
_CONSTANT = 1e-12
# Coordinates (in units of the data's spread) beyond which all components are equally far: squares over the least
# variance of a component stay finite.
_BEYOND = 1e100


class Units(NamedTuple):
    """(x - shift) / scale; as ``standardise`` chooses them scales are powers of two, and scaling rounds nothing."""

    shift: Array  # (p,)
    scale: Array  # (p,)

    @classmethod
    def of_counts(cls, p: int) -> "Units":
        """Rows as they are."""
        return cls(np.zeros(p), np.ones(p))

    @property
    def log_volume(self) -> float:
        """Log of the volume of a unit cube, by which densities differ from those in the users' units."""
        return float(np.log(self.scale).sum())

    def means(self, inside: Array) -> Array:
        """Points (K, p) in the users' units."""
        return inside * self.scale + self.shift

    def covariances(self, inside: Array) -> Array:
        """Covariances (K, p, p), variances (K, p), or one variance (K,) for all columns, in the users' units."""
        if inside.ndim == 1:
            return inside * self.scale[0] ** 2
        return inside * (self.scale**2 if inside.ndim == 2 else self.scale[:, None] * self.scale)

    def covariances_inside(self, given: Array) -> Array:
        """The way back from ``covariances``; one unit at a time, for squares of units may leave the range."""
        if given.ndim == 1:
            return given / self.scale[0] / self.scale[0]
        return given / self.scale / (self.scale if given.ndim == 2 else self.scale[:, None])

    def rows(self, X: Any) -> Array:
        """A copy of a table in these units, float64."""
        out = np.empty(X.shape)

        def fill(block: slice) -> None:
            kernels().place_rows(_values(X[block]), self.shift, self.scale, _BEYOND, out[block])

        for _ in in_order(fill, blocks(X.shape[0])):
            pass
        return out


def _values(X: Any) -> Array:
    """A block of dense rows as an array of floats, in C order."""
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)


def blocks(n: int) -> list[slice]:
    """Blocks of rows."""
    return cut(n, _BLOCK)


class Standardised(NamedTuple):
    """Rows in units of their own."""

    rows: Array  # (n, p) a copy
    units: Units
    spread: float  # variance along their longest direction, 0 if rows do not differ
    variance: Array  # (p,) of the columns


def standardise(X: Any, n: Array, *, by_column: bool) -> Standardised:
    """Dense rows in units of their own: one for all columns, or one for each."""
    p, origin, share = X.shape[1], np.ascontiguousarray(X[0], dtype=np.float64), n / n.sum()

    def sums(block: slice) -> tuple[Array, float]:
        total = np.zeros(p)  # less the first row: of equal rows it is exactly zero
        return total, kernels().sum_rows(_values(X[block]), share[block], origin, total)

    mean, peak = np.zeros(p), 0.0
    for part, largest in in_order(sums, blocks(X.shape[0])):
        mean, peak = mean + part, max(peak, largest)
    coarse = coarse_units(origin + mean, peak)
    rows = coarse.rows(X)
    fine = fine_units(coarse, _squares(rows, share), by_column=by_column)
    if not fine.spread:
        return Standardised(fine.units.rows(X), *fine[:3])
    finer = fine.finer
    if (finer != 1.0).any():
        for _ in in_order(lambda block: np.divide(rows[block], finer, out=rows[block]), blocks(X.shape[0])):
            pass
        if finer.min() * _BEYOND < 1.0:  # rows of next to no weight
            np.clip(rows, -_BEYOND, _BEYOND, out=rows)
    return Standardised(rows, *fine[:3])


class Fine(NamedTuple):
    """Units, and what rows look like in them."""

    units: Units
    spread: float  # variance along their longest direction, 0 if rows do not differ
    variance: Array  # (p,) of the columns
    finer: Array  # (p,) the units in those that came before


def coarse_units(mean: Array, peak: float) -> Units:
    """Units in which rows whose entries are at most so large have squares that are numbers."""
    if peak > LARGEST:
        raise ValueError(
            f"X has entries as large as {peak:g}, and beyond {LARGEST:g} variances overflow. Divide X by {peak:.0e}; "
            "the mixture does not depend on the units."
        )
    return Units(mean, np.full(mean.size, float(np.exp2(max(np.frexp(peak)[1], -1000)))))


def fine_units(coarse: Units, square: Array, *, by_column: bool) -> Fine:
    """Units in which rows have a spread of about one, from their covariance in coarse ones."""
    p, spread = coarse.shift.size, _largest(square)
    if not spread > np.finfo(float).tiny:
        return Fine(Units(coarse.shift, np.ones(p)), 0.0, np.zeros(p), np.ones(p))
    finer = np.full(p, float(np.exp2(np.round(np.log2(spread) / 2))))
    if by_column:
        variance = np.diagonal(square)
        # a column that does not vary, but for rounding, has the unit of the others
        varies = variance > np.maximum((_CONSTANT * np.abs(coarse.shift) / coarse.scale) ** 2, np.finfo(float).tiny)
        finer[varies] = np.exp2(np.round(np.log2(variance[varies]) / 2))
    if (coarse.scale * finer).min() < SMALLEST:
        raise ValueError(
            f"The rows of X differ by about {(coarse.scale * finer).min():.0e}, weights included, and numbers below "
            f"{SMALLEST:g} have too few digits. Divide X by its largest entry; the mixture depends on no units."
        )
    square = square / finer / finer[:, None]
    units = Units(coarse.shift, coarse.scale * finer)
    return Fine(units, _largest(square), np.diagonal(square).copy(), finer)


def _largest(square: Array) -> float:
    """Largest eigenvalue of a matrix of which the upper triangle is given."""
    return max(float(np.linalg.eigvalsh(square, UPLO="U")[-1]), 0.0)


def _squares(rows: Array, share: Array) -> Array:
    """Upper triangle of the covariance of rows about zero whose weights sum to one."""
    p = rows.shape[1]
    one, zero, upper = np.ones(1), np.zeros((1, p)), np.triu_indices(p)

    def squares(block: slice) -> Array:
        square = np.zeros((p, p))
        if p > _FEW:
            some = rows[block] * np.sqrt(share[block])[:, None]
            return np.matmul(some.T, some, out=square)
        packed, where = np.empty((1, upper[0].size)), (np.array([block.start]), np.array([block.stop]))
        kernels().second_full(rows, share, *where, one, zero, packed)
        square[upper] = packed[0]
        return square

    return np.asarray(sum(in_order(squares, blocks(rows.shape[0]))))
