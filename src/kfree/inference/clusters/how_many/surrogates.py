"""Tables without groups that look like a given one: the null that a number of clusters is measured against.

Columns are unimodal, and links between them are those of the table's normal scores. In one kind the radii of rows are
those of the table, so that heavy tails come in all columns at once; in the other every column has tails of its own,
which makes a star of arms. What such tables show cannot be called groups.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import norm

from kfree.families import Array

# Share of a range below which two values differ by rounding.
_ROUNDING = 1e-9
# Range of a column below which cells between its values have no width.
_NO_ROOM = 1e-290
# Largest correlation of the normal scores.
_MOST_LINKED = 0.999


class Values(NamedTuple):
    """The different values of a column, rising."""

    value: Array  # (v,)
    share: Array  # (v,) of the weight
    place: Array  # (n,) where that of each row stands


def values_of(x: Array, weight: Array) -> Values:
    """What a column holds."""
    value, place = np.unique(x, return_inverse=True)
    share = np.bincount(place, weight, value.size) / weight.sum()
    return Values(value, share, place)


class UnimodalColumn:
    """The unimodal law nearest to a column, as a quantile function; one or two values stay as they are, and so do those
    between which there are no numbers.

    The density rises to a mode and falls after it. The mode is the cell of about sqrt(n) rows for which that fits best.
    """

    def __init__(self, column: Values, n: int):
        value, share = column.value, column.share
        self._value, self._step = value, 0.0
        self._edges: Array | None = None
        span = value[-1] - value[0]
        if value.size <= 2 or span < _NO_ROOM:
            self._cdf = np.cumsum(share)
            return
        gaps = np.diff(value)
        step = gaps[gaps > _ROUNDING * span].min(initial=span)
        self._step = float(step) if span / step < n / 2 else 0.0  # a coarse lattice stays one
        ends = (gaps[0] / 2, gaps[-1] / 2) if self._step else (0.0, 0.0)
        edges = np.concatenate([[value[0] - ends[0]], (value[1:] + value[:-1]) / 2, [value[-1] + ends[1]]])
        width = np.maximum(np.diff(edges), 1e-12 * span)
        lo, hi = _mode(share, width, n)
        density = np.concatenate([share[:lo] / width[:lo], [share[lo:hi].sum() / width[lo:hi].sum()]])
        density = np.concatenate([density, share[hi:] / width[hi:]])
        width = np.concatenate([width[:lo], [width[lo:hi].sum()], width[hi:]])
        up = isotonic_regression(density[: lo + 1], weights=width[: lo + 1]).x
        down = density[lo + 1 :]
        if down.size:
            down = isotonic_regression(down, weights=width[lo + 1 :], increasing=False).x
        self._edges = np.concatenate([edges[: lo + 1], edges[hi:]])
        cdf = np.concatenate([[0.0], np.cumsum(np.concatenate([up, down]) * width)])
        self._cdf = cdf / cdf[-1]

    def quantiles(self, u: Array) -> Array:
        """Values below which the shares u of the law lie."""
        if self._edges is None:
            return self._value[np.minimum(np.searchsorted(self._cdf, u), self._value.size - 1)]
        x = np.interp(u, self._cdf, self._edges)
        if self._step:
            first, last = self._value[0], self._value[-1]
            x = np.clip(first + self._step * np.rint((x - first) / self._step), first, last)
        return x


def _mode(share: Array, width: Array, n: int) -> tuple[int, int]:
    """First and last value (exclusive) of the cell for which a density that rises to it and then falls is likeliest.

    Cells hold about sqrt(n) rows; a value with as many is a cell of its own.
    """
    least = max(2, int(np.sqrt(n))) / n
    heavy = share >= least * (1 - 1e-12)
    light = np.where(heavy, 0.0, share)
    part = np.floor((np.cumsum(light) - light) / least * (1 + 1e-12)).astype(np.intp)
    new = heavy[1:] | heavy[:-1] | (part[1:] != part[:-1])
    start = np.concatenate([[0], 1 + np.flatnonzero(new)])
    mass, size = np.add.reduceat(share, start), np.add.reduceat(width, start)
    rising = _likelihoods(mass, size)
    falling = np.concatenate([_likelihoods(mass[::-1], size[::-1])[::-1][1:], [0.0]])
    likely = rising + falling
    # of two cells either side of the top both fit as well, and rounding must not choose: it is the denser one
    tied = np.flatnonzero(likely >= likely.max() - 1e-9 * (1.0 + abs(likely.max())))
    mode = int(tied[np.argmax(mass[tied] / size[tied])])
    return int(start[mode]), int(start[mode + 1]) if mode + 1 < start.size else share.size


def _likelihoods(mass: Array, width: Array) -> Array:
    """Log-likelihood of the best rising density of the first 1, 2, ... cells: pools of adjacent violators."""
    found, pools, total = np.empty(mass.size), list[tuple[float, float]](), 0.0
    for j, (m, w) in enumerate(zip(mass.tolist(), width.tolist())):
        while pools and pools[-1][0] * w >= m * pools[-1][1]:
            before, wide = pools.pop()
            total -= before * np.log(before / wide)
            m, w = m + before, w + wide
        pools.append((m, w))
        total += m * np.log(m / w)
        found[j] = total
    return found


class Surrogates:
    """Tables like a given one without groups."""

    def __init__(self, X: Array, weight: Array):
        n, p = X.shape
        columns = [values_of(X[:, j], weight) for j in range(p)]
        self._weight, self._columns = weight, [UnimodalColumn(column, n) for column in columns]
        self._axes = _links(columns, weight)
        self._radius = _radii(X, weight)

    def draw(self, n: int, rng: np.random.Generator, *, radii: bool) -> tuple[Array, Array]:
        """So many rows, and their weights; with the radii of the table, or each column by itself but for the links."""
        rows = self._radius.size
        which = rng.permutation(rows) if n == rows else rng.choice(rows, n, replace=n > rows)
        z = rng.normal(size=(n, len(self._axes)))
        if n > 2 * len(self._axes):  # white, so that links are those of the table: noise on noise is structure
            z = np.linalg.qr(z - z.mean(axis=0))[0]
        if radii:
            length = np.linalg.norm(z, axis=1)
            z *= (self._radius[which] / np.where(length > 0, length, 1.0))[:, None]
        z = z @ self._axes
        out = np.empty((n, len(self._columns)))
        for j, column in enumerate(self._columns):
            u = np.empty(n)
            u[np.argsort(z[:, j], kind="stable")] = np.sort(rng.random(n))
            out[:, j] = column.quantiles(u)
        return out, self._weight[which]


def _links(columns: list[Values], weight: Array) -> Array:
    """A root of the correlations of normal scores, (rank, p).

    Tied values share the mean of their scores. That weakens correlations: cov = rho v_j v_k to first order, v the
    variance that is left of the scores, so division by v_j v_k undoes what ties take away.
    """
    scores = np.empty((weight.size, len(columns)))
    for j, column in enumerate(columns):
        edge = np.concatenate([[0.0], np.minimum(np.cumsum(column.share), 1.0)])
        edge[-1] = 1.0
        mean = -np.diff(norm.pdf(norm.ppf(edge))) / np.maximum(np.diff(edge), 1e-300)
        scores[:, j] = mean[column.place]
    cov = (scores * weight[:, None]).T @ scores / weight.sum()
    left = np.maximum(np.diag(cov), 1e-12)
    latent = np.clip(cov / np.outer(left, left), -_MOST_LINKED, _MOST_LINKED)
    latent[np.diag_indices(len(columns))] = 1.0
    value, vector = np.linalg.eigh(latent)
    held = value > _ROUNDING * value[-1]
    return np.sqrt(value[held])[:, None] * vector[:, held].T


def _radii(X: Array, weight: Array) -> Array:
    """Distances of the rows from their mean, in units of their spread in every direction."""
    centred = X - weight @ X / weight.sum()
    spread = np.sqrt(weight @ centred**2 / weight.sum())
    centred = centred / np.where(spread > 0, spread, 1.0)
    value, vector = np.linalg.eigh((centred * weight[:, None]).T @ centred / weight.sum())
    held = value > 1e-12 * value[-1]
    if not held.any():
        return np.ones(weight.size)
    return np.linalg.norm(centred @ (vector[:, held] / np.sqrt(value[held])), axis=1)
