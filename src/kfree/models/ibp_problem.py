"""Binary features to be sampled: rows in units of their own, priors, and allocations to start from."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.features.best_rows import RowRule
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.isometry import reduce_columns
from kfree.inference.gibbs.ibp import IBPLevel, IBPPrior, IBPSampler, Rate, Spread
from kfree.inference.gibbs.ibp_numbers import IBP
from kfree.inference.loop import Budget
from kfree.models.checks import as_numbers, check_entries
from kfree.models.features import FeatureProblem
from kfree.structures import IndianBuffet

STARTS = ("bpmeans", "prior", "empty")


class IBPProblem(NamedTuple):
    """Rows and priors, in units in which the mean square of an entry is about one."""

    X: Array  # (n, p) in as few columns as possible
    full: Array  # (n, D) in the user's columns
    unit: float  # a power of two
    prior: IBPPrior

    @classmethod
    def of(cls, X: Any, concentration: Any, noise: Any, feature_scale: Any) -> "IBPProblem":
        """Bind rows; variances that are "auto" get priors that follow the rows."""
        X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        unit = _unit(X)
        X = X / unit
        total, about = float(np.mean(X**2)), float(np.mean((X - X.mean(axis=0)) ** 2))
        rest = max(about, IBP.least_rest * total) or 1.0
        _check_place(X, total, about)
        prior = IBPPrior(
            rate_of(concentration),
            spread_of("noise", noise, unit, IBP.noise_share * rest),
            spread_of("feature_scale", feature_scale, unit, total or 1.0),
        )
        problem = cls(np.ascontiguousarray(reduce_columns(X), dtype=np.float64), X, unit, prior)
        problem._check_ratio()
        return problem

    @property
    def least_ridge(self) -> float:
        """Of the sampler: the least noise variance as a share of that of the features."""
        return max(IBP.least_ridge, IBP.least_ridge_of_row * len(self.X))

    @property
    def constant(self) -> float:
        """What the log posterior in the user's units is more."""
        learned = (self.prior.noise.value is None) + (self.prior.scale.value is None)
        return -float(np.log(self.unit)) * (self.full.size + 2 * learned)

    def sampler(self, allocations: list[Array]) -> IBPSampler:
        """A sampler with an allocation for each chain to start from."""
        return IBPSampler(self.X, self.full.shape[1], self.prior, [(Z, self.level(Z)) for Z in allocations])

    def starts(self, init: Any, n_chains: int, seed: np.random.SeedSequence, budget: Budget) -> list[Array]:
        """First allocations of the chains."""
        n = len(self.X)
        if not isinstance(init, str):
            return [self._given(init)] * n_chains
        if init == "empty":
            return [np.zeros((n, 0), np.uint8)] * n_chains
        if init == "prior":
            gamma = self.level(np.zeros((n, 0), np.uint8)).gamma
            return [IndianBuffet(n).draw(gamma, np.random.default_rng(own)) for own in seed.spawn(n_chains)]
        return self._by_bp_means(n_chains, seed, budget)

    def level(self, Z: Array) -> IBPLevel:
        """Numbers that suit an allocation."""
        (n, K), D = Z.shape, self.full.shape[1]
        bits = Z.astype(np.float64)
        A = np.linalg.lstsq(bits, self.X, rcond=None)[0]
        noise = _likely(self.prior.noise, n * D, float(((self.X - bits @ A) ** 2).sum()))
        scale = _likely(self.prior.scale, K * D, float((A**2).sum()))
        if self.prior.noise.value is None:
            noise = max(noise, 2 * self.least_ridge * scale)
        else:  # the scale is not given, or their ratio has been checked
            scale = min(scale, noise / (2 * self.least_ridge)) if self.prior.scale.value is None else scale
        rate = self.prior.concentration
        gamma = rate.value if rate.value is not None else (rate.shape + K) / (rate.rate + IndianBuffet(n).harmonic)
        return IBPLevel(gamma, noise, scale)

    def _by_bp_means(self, n_chains: int, seed: np.random.SeedSequence, budget: Budget) -> list[Array]:
        """Features of BP-means at a price that it chooses; of other restarts at that price for the other chains."""
        problem = FeatureProblem.of(self.full, None, intercept=False, merge=True, reduce=True)
        goal = FeatureGoal(
            "extended", RowRule.of(len(self.X), exact=True), max_iter=IBP.start_passes, n_init=IBP.start_restarts,
            n_jobs=None, first="in turn", shuffle=False, start=None, price=None,
        )  # fmt: skip
        first, *others = seed.spawn(n_chains)
        found = [problem.fit_auto(goal, first, budget)]
        again = goal._replace(n_init=1, price=found[0].lam)
        for own in others:
            found.append(found[0] if budget.spent else problem.fit_priced(again, own, budget))
        return [_with_members(some.model.Z) for some in found]

    def _given(self, init: Any) -> Array:
        """An allocation of the user."""
        Z = as_numbers("init", init.toarray() if sp.issparse(init) else init)
        if Z.ndim != 2 or len(Z) != len(self.X):
            raise ValueError(f"init has shape {Z.shape}, but X has {len(self.X)} rows. Pass an allocation (n, K).")
        if not np.isin(Z, (0, 1)).all():
            raise ValueError("init must hold an allocation of zeros and ones; other values were found.")
        return _with_members(Z.astype(np.uint8))

    def _check_ratio(self) -> None:
        """Noise that features do not drown."""
        noise, scale = self.prior.noise.value, self.prior.scale.value
        if noise is not None and scale is not None and noise < self.least_ridge * scale:
            least = np.sqrt(self.least_ridge)
            raise ValueError(
                f"noise={np.sqrt(noise) * self.unit:g} is too small beside feature_scale="
                f"{np.sqrt(scale) * self.unit:g}: for {len(self.X)} rows it must be at least {least:.3g} times as "
                "large, or rounding decides. Raise noise, or use noise='auto'."
            )


def rate_of(concentration: Any) -> Rate:
    """A number, or a pair (shape, rate) of a gamma prior."""
    if isinstance(concentration, Real):
        return Rate(float(concentration))
    return Rate(None, *_pair("concentration", concentration, "(shape, rate) of a gamma prior"))


def spread_of(name: str, given: Any, unit: float, scale: float) -> Spread:
    """A standard deviation, "auto", or a pair (shape, scale) of an inverse gamma prior of its square."""
    if isinstance(given, str):
        return Spread(None, IBP.shape, scale)
    if isinstance(given, Real):
        shape, root = 0.0, float(given) / unit
    else:
        shape, own = _pair(name, given, "(shape, scale) of an inverse gamma prior of its square")
        given, root = own, float(np.sqrt(own)) / unit
    if not 1e-50 < root < 1e50:
        raise ValueError(f"{name} has {given:g}, which is out of all proportion to X. Give it in the units of X.")
    return Spread(None, shape, root**2) if shape else Spread(root**2)


def _pair(name: str, given: Any, what: str) -> tuple[float, float]:
    values = as_numbers(name, given)
    if values.shape != (2,):
        raise ValueError(f"{name} must be a number or a pair {what}, got {values.size} values.")
    check_entries(name, values)
    if not (values > 0).all():
        raise ValueError(f"{name}={tuple(given)!r}: both must be above 0, the prior {what} is improper else.")
    return float(values[0]), float(values[1])


def _check_place(X: Array, total: float, about: float) -> None:
    """Rows whose differences are not lost beside their distance from the origin."""
    if np.ptp(X, axis=0).max() > 1e-12 * np.abs(X).max() and about < IBP.far * total:
        raise ValueError(
            f"The rows are too far from the origin for what they differ by: of their mean square {total:.3g} only "
            f"{about:.3g} is about their mean, and features have mean 0. Subtract the mean of each column first."
        )


def _unit(X: Array) -> float:
    """A power of two near the root mean square of the entries; 1 for zeros."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    first = 2.0 ** int(np.frexp(largest)[1] - 1)
    return float(first * 2.0 ** int(np.round(np.log2(np.sqrt(np.mean((X / first) ** 2))))))


def _likely(spread: Spread, count: int, squares: float) -> float:
    if spread.value is not None:
        return spread.value
    return (spread.scale + squares / 2) / (spread.shape + count / 2)


def _with_members(Z: Array) -> Array:
    return np.ascontiguousarray(Z[:, Z.any(axis=0)], dtype=np.uint8)
