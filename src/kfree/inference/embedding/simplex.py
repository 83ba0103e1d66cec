"""The quadratic programme over the simplex: weights of candidates whose kernel means come closest to that of the rows.

    min  1/2 p' (S + ridge I) p - R' p,  p >= 0, sum p = 1

With S + ridge I = L L' and b = L^{-1} R it is non-negative least squares: w minimises
|L' w - b (1' w)|^2 + (1' w - 1)^2 and p = w / sum w, for with w = t p the minimum over t is an increasing function of
|L' p - b|^2.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import nnls

from kfree.families import Array
from kfree.inference.embedding.embedding_numbers import EMBEDDING


class Weights(NamedTuple):
    """A solution."""

    p: Array  # (T,)
    ridge: float  # that was used
    gap: float  # by which the objective may be above its minimum, at most


class NoSolution(RuntimeError):
    """The optimality gap is too large: a bug, or numbers beyond what float64 holds."""


def objective(S: Array, R: Array, ridge: float, p: Array) -> float:
    """1/2 p' (S + ridge I) p - R' p."""
    return float(0.5 * (p @ (S @ p) + ridge * (p @ p)) - R @ p)


def gap_of(S: Array, R: Array, ridge: float, p: Array) -> float:
    """g' p - min g with the gradient g: zero at the minimum, and else at least as much as the objective is above it."""
    gradient = S @ p + ridge * p - R
    return max(float(gradient @ p - gradient.min()), 0.0)


def solve(S: Array, R: Array, ridge: float) -> Weights:
    """The best weights; the ridge is raised where S has no Cholesky factor, as with repeated candidates."""
    T = R.size
    lower = _factor(S + ridge * np.eye(T))
    if lower is None:
        ridge = max(10 * ridge, EMBEDDING.least_ridge * max(float(np.trace(S)) / T, 1.0))
        return solve(S, R, ridge)
    b = solve_triangular(lower, R, lower=True, check_finite=False)
    system = np.concatenate([lower.T - b[:, None], np.ones((1, T))])
    w, _ = nnls(system, np.append(np.zeros(T), 1.0), maxiter=30 * T + 100)
    total = w.sum()
    p = w / total if total > 0 else np.full(T, 1.0 / T)
    best, gap = p, gap_of(S, R, ridge, p)
    # where rows are far longer than candidates, least squares loses these; one candidate is a start, too
    for start in (p, np.eye(1, T, int((0.5 * np.diagonal(S) - R).argmin()))[0]):
        if gap > EMBEDDING.small_gap * _scale(R, ridge):
            found = follow(S, R, ridge, start)
            best, gap = min((best, gap), (found, gap_of(S, R, ridge, found)), key=lambda one: one[1])
    if not gap <= EMBEDDING.most_gap * _scale(R, ridge):
        raise NoSolution(
            f"The weights of {T} candidates may be {gap:g} above the minimum, more than rounding. This is a bug in "
            "kfree; please report it with the data."
        )
    return Weights(best, ridge, gap)


def _factor(matrix: Array) -> Array | None:
    """The Cholesky factor; None where there is none, or a pivot is rounding and of any sign."""
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    pivots, rounding = np.diagonal(lower) ** 2, np.finfo(float).eps * matrix.shape[0]
    return lower if pivots.min() > rounding * np.diagonal(matrix).max() else None


def _scale(R: Array, ridge: float) -> float:
    """Size of what gradients are differences of: their rounding scales with it."""
    return max(1.0, ridge, float(np.abs(R).max()))


def follow(S: Array, R: Array, ridge: float, p: Array) -> Array:
    """Weights from others that are close: a primal active set, which adds the candidate whose gradient is least and
    steps until a weight is zero, or all gradients are equal."""
    p, best, least = p.copy(), p, gap_of(S, R, ridge, p)
    active = p > 0
    for _ in range(3 * R.size + 10):
        target = _on_support(S, R, ridge, np.flatnonzero(active))
        if target is None:
            break
        step = np.zeros_like(p)
        step[active] = target - p[active]
        falling = step < 0
        reach = np.where(falling, p / np.where(falling, -step, 1.0), np.inf)
        length = min(1.0, float(reach.min()))
        p = np.maximum(p + length * step, 0.0)
        if not p.sum() > 0:  # rounding has eaten the step
            break
        if length < 1.0:
            p[int(reach.argmin())] = 0.0
            active &= p > 0
            if not active.any():
                break
            p /= p.sum()
            continue
        p /= p.sum()
        gap = gap_of(S, R, ridge, p)
        if gap < least:
            best, least = p.copy(), gap
        gradient = S @ p + ridge * p - R
        worst = int(gradient.argmin())
        if gap <= EMBEDDING.small_gap * _scale(R, ridge) or active[worst]:
            break
        active[worst] = True
    return best


def _on_support(S: Array, R: Array, ridge: float, support: Array) -> Array | None:
    """Weights of some candidates that sum to one, of any sign; None if these cannot be told apart."""
    lower = _factor(S[np.ix_(support, support)] + ridge * np.eye(support.size))
    if lower is None:
        return None
    plain, ones = (cho_solve((lower, True), side, check_finite=False) for side in (R[support], np.ones(support.size)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weights = plain + (1 - plain.sum()) / ones.sum() * ones
    return weights if np.isfinite(weights).all() else None  # beside a ridge of 1e-300 they may not be


class Part(NamedTuple):
    """Inner products of candidates with some of the rows."""

    R: Array  # (T,) mean over these rows
    mass: float


def choose_ridge(S: Array, parts: list[Part]) -> float:
    """The ridge whose weights match parts of the rows best that they were not found from."""
    total, grid = sum(part.mass for part in parts), EMBEDDING.ridges
    parts = [part for part in parts if 0 < part.mass < total]  # with very uneven weights one may be all
    if len(parts) < 2:
        return EMBEDDING.ridges[2]
    loss = np.zeros(len(grid))
    whole = sum(part.R * part.mass for part in parts)
    for part in parts:
        rest = (whole - part.R * part.mass) / (total - part.mass)
        p: Array | None = None
        for g in range(len(grid) - 1, -1, -1):  # from the largest, where all candidates have weight, downwards
            found = solve(S, rest, grid[g]) if p is None else _next(S, rest, grid[g], p)
            p = found.p
            loss[g] += part.mass * float(p @ (S @ p) - 2 * (part.R @ p))
    # of ridges that only rounding tells apart, as with repeated candidates, the first: rows in any order say the same
    return grid[int(np.argmax(loss <= loss.min() + 1e-9 * (np.abs(loss).max() + total)))]


def _next(S: Array, R: Array, ridge: float, p: Array) -> Weights:
    """Weights on the path over the ridge, from those of the ridge before."""
    found = follow(S, R, ridge, p)
    gap = gap_of(S, R, ridge, found)
    return Weights(found, ridge, gap) if gap <= EMBEDDING.path_gap * _scale(R, ridge) else solve(S, R, ridge)
