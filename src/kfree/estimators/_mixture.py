"""Between VariationalDPMixture and the inference below it: checked rows in units of their own, a model to be asked."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from kfree.estimators._checks import check_domain, check_number, check_weight
from kfree.families import Array
from kfree.families.conjugate import CONJUGATE, Conjugate, Facts, join
from kfree.inference.variational.mixture import Mixture, Setting
from kfree.inference.variational.sweep import assign, shares
from kfree.rows import Tied
from kfree.rows.threads import in_order
from kfree.structures import StickBreaking

# Rows looked at together.
_BLOCK = 16384
# Entries of X beyond this have squares, or sums of such, that overflow.
_LARGEST = 1e150
# Coordinates (in units of the data's spread) beyond which all components are equally far: squares stay finite.
_BEYOND = 1e140


class Units(NamedTuple):
    """Rows as the inference sees them: (x - shift) / scale, with a power of two, so that scaling rounds nothing."""

    shift: Array  # (p,)
    scale: float

    def rows(self, X: Any) -> Array:
        """Rows in these units, float64."""
        with np.errstate(over="ignore"):
            gap = (np.asarray(X, dtype=np.float64) - self.shift) / self.scale
        return np.clip(gap, -_BEYOND, _BEYOND)

    def all_rows(self, X: Any) -> Array:
        """A copy of a whole table, block by block."""
        out = np.empty(X.shape)

        def fill(block: slice) -> None:
            out[block] = self.rows(X[block])

        for _ in in_order(fill, blocks(X.shape[0])):
            pass
        return out


def blocks(n: int) -> Iterator[slice]:
    """Blocks of rows."""
    return (slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK))


def check_given(prior: Any, family: Conjugate) -> Mapping[str, Any]:
    """Hyperparameters by name."""
    if prior is None:
        return {}
    if not isinstance(prior, Mapping):
        raise TypeError(
            f"prior must be None or a dict of hyperparameters, got {type(prior).__name__}. family={family.name!r} "
            f"knows {', '.join(map(repr, family.hyperparameters))}."
        )
    for name in prior:
        if name not in family.hyperparameters:
            raise ValueError(
                f"prior[{name!r}] is not a hyperparameter of family={family.name!r}. It knows "
                f"{', '.join(map(repr, family.hyperparameters))}."
            )
        try:
            np.asarray(prior[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"prior[{name!r}] must be a number or an array of numbers, got {prior[name]!r}.") from error
    return prior


def check_concentration(concentration: Any) -> StickBreaking:
    """The prior of the sticks: Beta(1, concentration), or Beta(a1, a2) for a pair."""
    if isinstance(concentration, tuple | list):
        if len(concentration) != 2:
            raise ValueError(f"concentration must be a number or a pair (a1, a2), got {len(concentration)} values.")
        pair = concentration
    else:
        pair = (1.0, concentration)
    for value in pair:
        check_number("concentration", value, above=0.0, hint="Pass a number > 0, or a pair of such.")
        if not np.isfinite(value):
            raise ValueError(f"concentration must be finite, got {value!r}.")
    return StickBreaking(float(pair[0]), float(pair[1]))


def check_rows(X: Any, family: Conjugate) -> None:
    """Whether the family can have such rows."""
    if sp.issparse(X) and family.continuous:
        raise TypeError(
            f"family={family.name!r} does not work on sparse rows because centring makes them dense. Pass "
            "X.toarray(), or use family='multinomial', 'poisson' or 'bernoulli'."
        )
    check_domain(X, family, "family")


class Problem(NamedTuple):
    """Checked rows and what is assumed of them."""

    setting: Setting
    tied: Tied  # the rows that weigh something
    units: Units
    degenerate: bool  # rows do not differ

    @classmethod
    def of(cls, X: Any, sample_weight: Any, name: str, prior: Any, weights: StickBreaking) -> "Problem":
        """Check X for the family and bring it into units of its own."""
        family = CONJUGATE[name]()
        given = check_given(prior, family)
        check_rows(X, family)
        weight = check_weight(sample_weight, X.shape[0])
        n = weight if weight.size else np.ones(X.shape[0])
        if (n == 0).any():
            X, n = X[n > 0], n[n > 0]
        units, facts = measure(X, n, family)
        degenerate = not facts.spread > 0
        facts = facts._replace(spread=1.0) if degenerate else facts
        setting = Setting(family, family.prior(facts, _in_units(given, units)), weights)
        return cls(setting, make_tied(X, n, family, units), units, degenerate)


def _in_units(given: Mapping[str, Any], units: Units) -> dict[str, Any]:
    """Hyperparameters that have the units of the data."""
    inside = dict(given)
    if "mean" in inside:
        inside["mean"] = (np.asarray(inside["mean"], dtype=np.float64) - units.shift) / units.scale
    if "covariance" in inside:
        inside["covariance"] = np.asarray(inside["covariance"], dtype=np.float64) / units.scale**2
    return inside


def make_tied(X: Any, n: Array, family: Conjugate, units: Units) -> Tied:
    """A table of single rows."""
    if sp.issparse(X):
        rows = sp.csr_matrix(X, dtype=np.float64)
    else:
        rows = units.all_rows(X) if family.continuous else np.ascontiguousarray(X, dtype=np.float64)
    log_h = np.concatenate([family.log_base(rows[block]) for block in blocks(X.shape[0])])
    if family.continuous:
        log_h -= X.shape[1] * np.log(units.scale)
    return Tied(n, rows, None, log_h)


def _largest(X: Array) -> float:
    """Largest entry of a block, by its size."""
    return float(np.abs(X.astype(np.float64, copy=False)).max())


def measure(X: Any, n: Array, family: Conjugate) -> tuple[Units, Facts]:
    """Units of the rows, and what default priors depend on, in these units."""
    p = X.shape[1]
    if not family.continuous:
        mean = sum(np.asarray(X[block].T @ n[block], dtype=np.float64).ravel() for block in blocks(X.shape[0]))
        return Units(np.zeros(p), 1.0), Facts(p, 1.0, mean / n.sum())
    peak = max(in_order(lambda block: _largest(X[block]), blocks(X.shape[0])))
    if peak > _LARGEST:
        raise ValueError(
            f"X has entries as large as {peak:g}, and the squares of such numbers overflow. Divide X by {peak:.0e}; "
            "the mixture does not depend on the units."
        )
    coarse = Units(np.asarray(X[0], dtype=np.float64), float(np.exp2(max(np.frexp(peak)[1], -1000))))
    # less the first row: of equal rows it is exactly zero
    mean = sum(in_order(lambda block: n[block] @ coarse.rows(X[block]), blocks(X.shape[0]))) / n.sum()

    def squares(block: slice) -> Array:
        gap = coarse.rows(X[block]) - mean
        return (gap * n[block][:, None]).T @ gap

    square = sum(in_order(squares, blocks(X.shape[0])))
    spread = max(float(np.linalg.eigvalsh(square / n.sum())[-1]), 0.0)
    shift = coarse.shift + mean * coarse.scale
    if not spread > np.finfo(float).tiny:
        return Units(shift, 1.0), Facts(p, 0.0, np.zeros(p))
    finer = np.round(np.log2(spread) / 2)
    scale = float(np.exp2(np.log2(coarse.scale) + finer))
    return Units(shift, scale), Facts(p, spread / float(np.exp2(2 * finer)), np.zeros(p))


class Model(NamedTuple):
    """A fitted mixture that can be asked about rows."""

    setting: Setting
    mixture: Mixture
    units: Units
    length: float  # mean total of the rows

    @classmethod
    def of(cls, problem: Problem, mixture: Mixture) -> "Model":
        """The model of a finished fit."""
        tied = problem.tied
        length = 0.0 if problem.setting.family.continuous else float(tied.n @ np.asarray(tied.mean.sum(axis=1)).ravel())
        return cls(problem.setting, mixture, problem.units, length / tied.total)

    def means(self) -> Array:
        """Expected means in the users' units."""
        return self.setting.family.means(self.mixture.params) * self.units.scale + self.units.shift

    def covariances(self) -> Array | None:
        """Covariances in the users' units."""
        inside = self.setting.family.covariances(self.mixture.params)
        return None if inside is None else inside * self.units.scale**2

    def tied(self, X: Any, n: Array | None = None) -> Tied:
        """Rows, checked and in the units of the model."""
        check_rows(X, self.setting.family)
        return make_tied(X, np.ones(X.shape[0]) if n is None else n, self.setting.family, self.units)

    def assign(self, tied: Tied) -> tuple[Array, float]:
        """Labels of rows and their free energy, from one exact look at all of them."""
        view = self.mixture.view(self.setting)
        labels, lse = assign(tied, view.form, view.log_weight)
        return labels, self.mixture.divergence(self.setting) - float(tied.n @ lse) - tied.base

    def shares(self, X: Any, tail: bool) -> Array:
        """Responsibilities (n, T + 1), the last the tail's; or of the T components alone."""
        view = self.mixture.view(self.setting)
        if tail:
            return shares(self.tied(X), view.form, view.log_weight)
        form = self.setting.family.form(self.mixture.params)
        return shares(self.tied(X), form, view.log_weight[:-1])

    def log_density(self, X: Any) -> Array:
        """Log of the predictive density of rows."""
        family = self.setting.family
        params = join([self.mixture.params, self.setting.prior])
        tied = self.tied(X)
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.setting.weights.weights(self.mixture.sticks))
        value = np.empty(tied.size)

        def of_span(span: slice) -> None:
            value[span] = logsumexp(family.log_predictive(params, tied.mean[span]) + log_weight, axis=1)

        for _ in tied.each(of_span, log_weight.size):
            pass
        return value - X.shape[1] * np.log(self.units.scale)

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows from the predictive density, and their components; -1 for those of the tail."""
        chance = self.setting.weights.weights(self.mixture.sticks)
        labels = rng.choice(chance.size, size=count, p=chance / chance.sum())
        params = join([self.mixture.params, self.setting.prior])
        length = np.full(count, round(self.length))
        rows = self.setting.family.sample(params, labels, rng, length) * self.units.scale + self.units.shift
        return rows, np.where(labels == chance.size - 1, -1, labels)
