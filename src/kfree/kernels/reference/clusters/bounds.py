"""Which decisions products leave open, and which rows a bound cannot settle."""

import numpy as np


def _list(mask, rows):
    found = np.flatnonzero(mask)
    rows[: found.size] = found
    return found.size


def open_decisions(base, terms, norms, size, limits, least, second, slack, rows):
    """Turn ``slack`` from the magnitude of the products into a bound on their error, and list what it leaves open.

    The numbers on the way are at most slack + base + size, plus reach * norm where the row norms are known from the
    base cost: norm = sqrt(base * per_root) + at_anchor, ``norms`` = (per_root, at_anchor, reach), all 0 if not.
    ``terms`` columns (one for all, or each its own) enter a product; ``limits`` = (eps, tiny, largest) of the
    precision. Where it overflows nothing is known. Returns how many ``rows`` were listed: those whose second least
    cost is not certainly above the least.
    """
    eps, tiny, largest = limits
    per_root, at_anchor, reach = norms
    with np.errstate(over="ignore", invalid="ignore"):
        total = slack + base + size + reach * (np.sqrt(base * per_root) * (1 + 1e-9) + at_anchor)
        known = (total < largest) & np.isfinite(least)
        slack[:] = np.where(known, (terms + 4) * (eps * total + tiny), np.inf)
        least[~known], second[~known] = 0.0, 0.0
        return _list(~(second - least > 2 * slack), rows)


def unsettled(cost, base, size, low, rows):
    """List the rows whose own cost is not certainly below ``low``, the bound on all others; returns how many."""
    return _list(~(cost + 1e-12 * (base + size) < low), rows)


def lower_bounds(labels, fall, low):
    """Add ``fall[k]`` to ``low`` of the rows of cluster k; nothing is known of rows in clusters beyond ``fall``."""
    known = labels < fall.size
    low[known] += fall[labels[known]]
    low[~known] = -np.inf


def least_changes(drop, lift, length, radius, start, fall):
    """For clusters a from ``start`` on: least of ``lift[k] - drop[a, k] - radius[a] length[k]`` over other centres k,
    less its rounding; -inf where nothing is known. ``drop`` (m, K) holds the products of a's centre with k's step."""
    some = np.arange(start, start + drop.shape[0])
    with np.errstate(invalid="ignore"):
        spread = np.outer(radius[some], length)
        change = lift - drop - spread
        change -= 1e-12 * (np.abs(lift) + np.abs(drop) + spread)
    change[some - start, some] = np.inf
    least = change.min(axis=1)
    fall[some] = np.where(np.isfinite(least), least, -np.inf)


def relabel(rank, labels):
    """Replace every label by its rank."""
    labels[:] = rank[labels]


def near_threshold(cost, unit, alone, base, size, lam, rows):
    """List the rows whose cost is so near the opening threshold that rounding could decide; returns how many."""
    one = unit * np.where(unit > 0, cost, 0.0) if unit.size else cost
    e = one - (alone if alone.size else 0.0)
    with np.errstate(invalid="ignore"):
        return _list(np.abs(e - lam) <= 1e-10 * (base + lam + size), rows)
