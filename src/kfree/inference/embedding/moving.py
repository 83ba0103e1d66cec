"""Moving the components: weights and parameters in turn, each for as long as the distance of distributions falls."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from kfree.families import Array
from kfree.families.components import take
from kfree.families.points import MovableFamily
from kfree.families.points.gaussian_points import Gaussians
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import Target
from kfree.inference.embedding.simplex import Weights, objective, solve
from kfree.inference.loop import Budget, Info, Outcome, run


class Moved(NamedTuple):
    """Components and weights."""

    params: Gaussians
    weights: Weights
    objective: float  # 1/2 p' (S + ridge I) p - R' p


def move(target: Target, family: MovableFamily, start: Moved, floor: Array, budget: Budget) -> Outcome:
    """Move the components that have weight; the others go. The state of the outcome is a ``Moved``."""

    def step(state: Moved) -> tuple[Moved, Info]:
        params = _descend(target, family, state, floor, budget)
        S, R = target.inner(params), target.match(params)
        weights = solve(S, R, state.weights.ridge)
        after = Moved(params, weights, objective(S, R, weights.ridge, weights.p))
        if not after.objective < state.objective:  # only decreases are accepted
            after = state
        fall = (state.objective - after.objective) / max(abs(state.objective), np.finfo(float).tiny)
        kept = after.weights.p > EMBEDDING.support
        scale = float(np.abs(R).max() + np.abs(S).max())
        return after, Info(after.objective, scale, 0.0 if fall <= EMBEDDING.gain else 1.0, 0, int(kept.sum()))

    held = start.weights.p > EMBEDDING.support
    params, p = take(start.params, held), start.weights.p[held] / start.weights.p[held].sum()
    S, R = target.inner(params), target.match(params)
    first = Moved(params, start.weights._replace(p=p), objective(S, R, start.weights.ridge, p))
    return run(step, first, budget, phase="moving", tol=0.5, max_iter=EMBEDDING.rounds, guard=first.objective)


def _descend(target: Target, family: MovableFamily, state: Moved, floor: Array, budget: Budget) -> Gaussians:
    """L-BFGS over means and roots of covariances with the weights held."""
    p, shape = state.weights.p, _Shape(state.params, floor)

    def value(x: Array) -> tuple[float, Array]:
        params = shape.params(x)
        level = float(0.5 * p @ (target.inner(params) @ p) - target.match(params) @ p)
        return level, shape.slope(x, *target.slopes(family, params, p))

    def look_at_the_clock(x: Array) -> None:
        if budget.spent:
            raise StopIteration

    start = shape.start()
    options = {"maxiter": EMBEDDING.steps, "ftol": EMBEDDING.gain**2, "gtol": EMBEDDING.gain**2}
    found = minimize(value, start, jac=True, method="L-BFGS-B", callback=look_at_the_clock, options=options)
    return shape.params(found.x) if np.isfinite(found.x).all() else state.params


class _Shape:
    """Means and roots of covariances as one vector; a covariance is the square of its root and a floor."""

    def __init__(self, params: Gaussians, floor: Array):
        self._given, self._K, self._D = params, *params.mean.shape
        self._full = params.covariance.ndim == 3
        # one variance for all columns has one floor
        self._level = np.diag(floor) if self._full else floor if params.covariance.ndim == 2 else floor.mean()

    def start(self) -> Array:
        """The vector of the parameters that were given."""
        above = self._given.covariance - self._level
        if self._full:
            values, vectors = np.linalg.eigh(above)
            least = np.finfo(float).eps * np.maximum(values[:, -1:], np.finfo(float).tiny)
            half = vectors * np.sqrt(np.maximum(values, least))[:, None]
            upper = np.asarray(np.linalg.qr(half.transpose(0, 2, 1), mode="r"))
            root = upper.transpose(0, 2, 1)[:, *np.tril_indices(self._D)]
        else:
            root = np.sqrt(np.maximum(above, 0.0))
        return np.concatenate([self._given.mean.ravel(), root.ravel()])

    def params(self, x: Array) -> Gaussians:
        """The parameters of a vector."""
        mean, root = self._cut(x)
        square = root @ root.transpose(0, 2, 1) if self._full else root * root
        return Gaussians(mean, square + self._level)

    def slope(self, x: Array, mean: Array, covariance: Array) -> Array:
        """Derivatives by the vector from those by means and covariances."""
        _, root = self._cut(x)
        if self._full:
            by_root = 2 * (0.5 * (covariance + covariance.transpose(0, 2, 1))) @ root
            by_root = by_root[:, *np.tril_indices(self._D)]
        else:
            by_root = 2 * root * covariance
        return np.concatenate([mean.ravel(), by_root.ravel()])

    def _cut(self, x: Array) -> tuple[Array, Array]:
        mean, rest = x[: self._K * self._D].reshape(self._K, self._D), x[self._K * self._D :]
        if not self._full:
            return mean, rest.reshape(self._given.covariance.shape)
        root = np.zeros((self._K, self._D, self._D))
        root[:, *np.tril_indices(self._D)] = rest.reshape(self._K, -1)
        return mean, root
