"""Mixtures by matching kernel means: checked rows in units of their own, weights of candidates, a model to be asked."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.components import take
from kfree.families.points import Kernel, PointFamily, Spread
from kfree.inference.clusters.fit import canonical_order
from kfree.inference.clusters.how_many.subsample import Pilot, draw_pilot
from kfree.inference.content import hash_rows, uniform
from kfree.inference.embedding.bandwidths import squared_bandwidth
from kfree.inference.embedding.candidates import Makers, Sample
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import (
    ExactTarget,
    FeatureSums,
    FeatureTarget,
    OutOfTime,
    SeenRows,
    Target,
    squared_length,
    sum_features,
)
from kfree.inference.embedding.moving import Moved, move
from kfree.inference.embedding.simplex import Part, Weights, choose_ridge, objective, solve
from kfree.inference.embedding.two_sample import Comparison, permutation_test
from kfree.inference.loop import Budget, Info, attempt
from kfree.models.checks import as_numbers, check_entries, check_number, check_weight
from kfree.models.clusters import Problem
from kfree.models.kernel_candidates import given_candidates
from kfree.models.mixture_model import MixtureModel, check_rows
from kfree.rows.standardise import Units, standardise
from kfree.structures import enough_pieces

SOURCES = ("clusters", "local", "prior")
BANDWIDTHS = ("local", "median")
#: Bandwidths, in units of the spread of the rows, whose squares and inverses are numbers among others.
_BANDWIDTHS = 1e-6, 1e6


class KernelWish(NamedTuple):
    """What the user wants."""

    candidates: Any  # a name of SOURCES, or components
    n_candidates: int | None
    ridge: float | None  # None to choose it
    features: int | str | None  # "auto" for as many as are needed, None for none
    refine: bool
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
        return self.family.seen(self.units.rows(X) if self.family.continuous else _floats(X))

    def weighted(self, X: Any, sample_weight: Any) -> SeenRows:
        """The same with weights, without rows that have none."""
        weight = check_weight(sample_weight, X.shape[0])
        n = weight if weight.size else np.ones(X.shape[0])
        seen, n = self.seen(X)[n > 0], n[n > 0]
        return SeenRows(seen, n, folds(seen))


class KernelProblem(NamedTuple):
    """Checked rows that have weight, and what the kernel makes of them."""

    frame: Frame
    rows: SeenRows
    pilot: Pilot
    sample: Sample
    spread: Spread
    degenerate: bool  # rows do not differ

    @classmethod
    def of(cls, X: Any, sample_weight: Any, family: PointFamily, bandwidth: Any) -> "KernelProblem":
        """Check X for the family, bring it into units of its own and choose the kernel."""
        check_seen(X, family)
        weight = check_weight(sample_weight, X.shape[0])
        n = weight if weight.size else np.ones(X.shape[0])
        if (n == 0).any():
            X, n = X[n > 0], n[n > 0]
        inside, units, variance = _inside(X, n, family, by_column=by_column(family, bandwidth))
        table = Problem.of(inside, n if weight.size else None, family.divergence, "none", 0.0, None).table
        pilot = draw_pilot(table)
        own = inside[pilot.origin]
        sample = Sample(own, family.seen(own), pilot.table.rows.weight, pilot.ticket)
        seen = family.seen(inside)
        spread, degenerate = _spread(sample, family, variance)
        total = np.asarray(inside.sum(axis=1), dtype=np.float64).ravel() if family.counted else np.zeros(n.size)
        kernel = make_kernel(bandwidth, family, sample, units, float(n @ (1 / np.maximum(total, 1.0)) / n.sum()))
        frame = Frame(family, kernel, units, spread.floor, float(n @ total / n.sum()))
        return cls(frame, SeenRows(seen, n, folds(seen)), pilot, sample, spread, degenerate)

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

    def n_features(self, wish: KernelWish, count: int) -> int:
        """Random features for so many candidates; 0 to evaluate the kernel."""
        few = self.rows.weight.size * float(count) <= EMBEDDING.evaluations
        if wish.features is None or (isinstance(wish.features, str) and few):
            return 0
        return enough_features(wish, count)

    def few(self) -> SeenRows:
        """The rows of the sample, where the user does not wait for all."""
        return SeenRows(self.sample.seen, self.sample.weight, folds(self.sample.seen))

    def look(self, params: Any, count: int, budget: Budget, rng: np.random.Generator) -> "Looked":
        """What is to be matched, from a pass over all rows or, if the user does not wait, over some."""
        family, kernel = self.frame.family, self.frame.kernel
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


class FoundWeights(NamedTuple):
    """The end of a fit."""

    params: Any  # of the components that have weight, the heaviest first
    p: Array  # (K,) their weights
    support: Array  # (K,) which candidates they are
    weights: Weights  # of all candidates
    n_candidates: int
    trace: list[float]  # objective after the weights were found, and after each round of moving
    converged: bool
    raised: bool  # whether candidates repeat and the ridge had to be raised


def find(looked: Looked, params: Any, wish: KernelWish, floor: Array, budget: Budget) -> FoundWeights:
    """Weights of candidates, and, if the user wants that, better places for those that have weight."""
    S, R = looked.S, looked.R
    ridge = choose_ridge(S, looked.parts) if wish.ridge is None else wish.ridge
    weights = solve(S, R, ridge)
    level = objective(S, R, weights.ridge, weights.p)
    trace, converged, raised = [level], looked.complete and not budget.spent, weights.ridge > ridge
    support = np.flatnonzero(weights.p > EMBEDDING.support)
    budget.tell("weights", 1, Info(level, 1.0, 0.0, 0, support.size))
    params, p = take(params, support), weights.p[support] / weights.p[support].sum()
    if wish.refine:
        outcome = move(looked.target, Moved(params, weights._replace(p=p), level), floor, budget)
        found: Moved = outcome.state
        held = found.weights.p > EMBEDDING.support
        params, p, support = take(found.params, held), found.weights.p[held], support[held]
        weights, trace = found.weights, [level, *outcome.trace]
        converged = converged and outcome.converged
        p = p / p.sum()
    order = canonical_order(looked.target.family.means(params), p)
    return FoundWeights(take(params, order), p[order], support[order], weights, R.size, trace, converged, raised)


class Stream(NamedTuple):
    """Batches that have been read: candidates of the first, sums of random features of all."""

    frame: Frame
    params: Any
    frequencies: Array
    sums: FeatureSums
    kept: Any  # rows drawn from all batches, as the kernel sees them
    arrival: Array  # when they arrive in a race in which heavy rows are fast
    rng: np.random.Generator

    @classmethod
    def begin(cls, problem: KernelProblem, wish: KernelWish, budget: Budget, rng: np.random.Generator) -> "Stream":
        """The first batch."""
        frame, params = problem.frame, problem.candidates(wish, budget, rng)
        count = enough_features(wish, params[0].shape[0])
        frequencies = frame.family.frequencies(frame.kernel, problem.rows.X.shape[1], count, rng)
        F = frame.family.row_features(frequencies, problem.rows.X[:1]).shape[1]
        none = FeatureSums(np.zeros((EMBEDDING.folds, F)), np.zeros(EMBEDDING.folds))
        return cls(frame, params, frequencies, none, problem.rows.X[:0], np.empty(0), rng).after(problem.rows)

    def after(self, rows: SeenRows) -> "Stream":
        """With one more batch."""
        sums = self.sums.plus(sum_features(self.frame.family, self.frequencies, rows))
        arrival = np.append(self.arrival, self.rng.exponential(size=rows.weight.size) / rows.weight)
        both = stack(self.kept, rows.X)
        if arrival.size > EMBEDDING.kept_rows:
            first = np.sort(np.argpartition(arrival, EMBEDDING.kept_rows)[: EMBEDDING.kept_rows])
            both, arrival = both[first], arrival[first]
        return self._replace(sums=sums, kept=both, arrival=arrival)

    def look(self) -> Looked:
        """What is to be matched."""
        plain = FeatureTarget(self.frame.family, self.frame.kernel, self.frequencies, self.sums)
        target = plain.in_units_of(self.params)
        return Looked(target, target.inner(self.params), target.parts(self.params), True)


class KernelModel(NamedTuple):
    """A fitted mixture and the kernel it was fitted with: how far from it are rows?"""

    mixture: MixtureModel
    frame: Frame
    kept: Any  # some rows of the fit as the kernel sees them
    rule: Any  # how the bandwidth is chosen

    @classmethod
    def of(cls, frame: Frame, kept: Any, found: FoundWeights, rule: Any) -> "KernelModel":
        """The model of a finished fit."""
        mixture = MixtureModel(frame.family, found.params, np.log(found.p), found.p, frame.units, length=frame.length)
        return cls(mixture, frame, kept, rule)

    def bandwidth(self) -> Array | float:
        """In the users' units: that of every column, or those of all columns together."""
        root, scale = np.sqrt(self.frame.kernel.widths), self.frame.units.scale
        if by_column(self.frame.family, self.rule):
            return np.asarray(root[0] * scale)
        return float(root[0] * scale[0]) if root.size == 1 else np.asarray(root * scale[0])

    def mmd2(self, rows: SeenRows, rng: np.random.Generator, *, unbiased: bool = False) -> float:
        """Squared distance of the kernel means of rows and mixture; by random features if rows are many."""
        family, kernel = self.frame.family, self.frame.kernel
        p, params, n = self.mixture.weights, self.mixture.params, rows.X.shape[0]
        if float(n) * n <= EMBEDDING.evaluations:
            target = ExactTarget(family, kernel, rows)
            length = squared_length(family, kernel, rows)
            rest = float(p @ (target.inner(params) @ p) - 2 * (target.match(params) @ p))
        else:
            frequencies = family.frequencies(kernel, rows.X.shape[1], EMBEDDING.least_features, rng)
            length, rest = self._by_features(frequencies, sum_features(family, frequencies, rows))
        if unbiased:
            share = rows.weight / rows.weight.sum()
            length = (length - float(share**2 @ family.own(rows.X))) / (1 - float(share @ share))
            return length + rest
        return max(length + rest, 0.0)

    def mmd2_of_sums(self, frequencies: Array, sums: FeatureSums) -> float:
        """The same for rows of which sums of features are known."""
        return max(sum(self._by_features(frequencies, sums)), 0.0)

    def _by_features(self, frequencies: Array, sums: FeatureSums) -> tuple[float, float]:
        family = self.frame.family
        own = family.component_features(self.frame.kernel, frequencies, self.mixture.params).T @ self.mixture.weights
        return float(sums.mean @ sums.mean), float(own @ own - 2 * (own @ sums.mean))

    def test(self, X: Any, count: int, most: int, rng: np.random.Generator) -> Comparison:
        """Whether rows come from the distribution that the rows of the fit came from."""
        first, second = (_some(rows, most, rng) for rows in (self.kept, self.frame.seen(X)))
        both, kernel = self._seen_alike(stack(first, second))
        return permutation_test(self.frame.family, kernel, both, first.shape[0], count, rng)

    def _seen_alike(self, both: Any) -> tuple[Any, Kernel]:
        """Rows in units of columns that are chosen from both tables, and a kernel with such a bandwidth: those chosen
        from the rows of the fit would know them from the others."""
        family, n = self.frame.family, both.shape[0]
        if not family.has_width or not isinstance(self.rule, str):
            return both, self.frame.kernel
        ticket = hash_rows(both)  # of the content: the order of rows must not matter, either
        order = np.argsort(ticket, kind="stable")
        if by_column(family, self.rule):
            both = both / _deviations(both[order])
        sample = Sample(both[order], both[order], np.ones(n), ticket[order])
        width = squared_bandwidth(family, sample, self.rule)
        return both, self.frame.kernel._replace(widths=np.array([width if width > 0 else 1.0]))


def enough_features(wish: KernelWish, count: int) -> int:
    """Random features for so many candidates, where there are any."""
    if isinstance(wish.features, int | np.integer):
        return int(wish.features)
    return max(EMBEDDING.least_features, EMBEDDING.features_each * count)


def folds(seen: Any) -> Array:
    """Which part of the rows each is held out with: copies together."""
    return (uniform(hash_rows(seen), 3) * EMBEDDING.folds).astype(np.intp)


def stack(first: Any, second: Any) -> Any:
    """Rows of two tables; sparse if either is."""
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([sp.csr_matrix(first), sp.csr_matrix(second)], format="csr")
    return np.concatenate([first, second])


def _floats(X: Any) -> Any:
    return sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def _some(rows: Any, most: int, rng: np.random.Generator) -> Any:
    """At most so many rows, at random."""
    return rows if rows.shape[0] <= most else rows[np.sort(rng.permutation(rows.shape[0])[:most])]


def keep(sample: Sample) -> Any:
    """Rows of a fit that others will be compared with: drawn by their weight."""
    count = EMBEDDING.kept_rows
    if sample.weight.size <= count:
        return sample.seen
    with np.errstate(over="ignore"):
        arrival = -np.log(uniform(sample.ticket, 5)) / sample.weight
    return sample.seen[np.sort(np.argpartition(arrival, count)[:count])]


def check_seen(X: Any, family: PointFamily) -> None:
    """Whether the kernel of the family can have such rows."""
    check_rows(X, family)
    if family.upper == 1.0:
        _check_bits(X)
    if family.counted:
        _check_not_empty(X)


def _check_bits(X: Any) -> None:
    values = X.data if sp.issparse(X) else X
    if not ((values == 0) | (values == 1)).all():
        dense = X.toarray() if sp.issparse(X) else X
        wrong = np.argwhere((dense != 0) & (dense != 1))
        i, j = wrong[0]
        raise ValueError(
            f"family='bernoulli' needs zeros and ones, but X[{i}, {j}] = {float(dense[i, j]):g}, and {len(wrong) - 1} "
            "more entries are neither. Binarise the data, for instance with sklearn.preprocessing.Binarizer."
        )


def _check_not_empty(X: Any) -> None:
    empty = np.flatnonzero(np.asarray(X.sum(axis=1), dtype=np.float64).ravel() == 0)
    if empty.size:
        some = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
        raise ValueError(
            f"family='multinomial' compares the shares of columns, and rows that are all zero have none, but "
            f"{empty.size} of {X.shape[0]} are (rows {some}). Drop them before the fit."
        )


def by_column(family: PointFamily, bandwidth: Any) -> bool:
    """Whether every column has a unit of its own; numbers are in the units of X, the same for all columns."""
    return family.column_units and isinstance(bandwidth, str)


def _inside(X: Any, n: Array, family: PointFamily, *, by_column: bool) -> tuple[Any, Units, Array]:
    """Rows in units of their own, these units, and variances of columns."""
    if not family.continuous:
        return _floats(X), Units.of_counts(X.shape[1]), np.ones(X.shape[1])
    found = standardise(X, n, by_column=by_column)
    if not found.spread > 0:
        return found.rows, found.units, found.variance
    # samples are drawn by the content of rows: the last digits of means and deviations must not be a part of it
    scale = found.units.scale
    if by_column:  # from the nearest power of two to the deviation itself, but for its last digits
        deviation = np.sqrt(found.variance)
        near = (deviation > 0.5) & (deviation < 2.0)
        scale = scale * np.where(near, np.rint(deviation / EMBEDDING.scale_step) * EMBEDDING.scale_step, 1.0)
    step = scale * EMBEDDING.shift_step
    units = Units(np.rint(found.units.shift / step) * step, scale)
    return units.rows(X), units, found.variance * (found.units.scale / scale) ** 2


def _deviations(rows: Array) -> Array:
    """Of columns: the median deviation from the median, which single rows far away do not change, or, where most rows
    are equal, the standard deviation; 1 where all are."""
    middle = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0)
    varies = rows.max(axis=0) > rows.min(axis=0)
    return np.where(middle > 0, middle, np.where(varies, rows.std(axis=0), 1.0))


def _spread(sample: Sample, family: PointFamily, variance: Array) -> tuple[Spread, bool]:
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


def make_kernel(bandwidth: Any, family: PointFamily, sample: Sample, units: Units, brevity: float) -> Kernel:
    """The kernel that the user wants, in the units of the rows."""
    if not family.has_width:
        if not (isinstance(bandwidth, str) and bandwidth == "local"):
            raise ValueError(
                f"family={family.name!r} compares shares by their inner product, which has no bandwidth, but "
                f"bandwidth={bandwidth!r}. Leave bandwidth='local'."
            )
        return Kernel(np.ones(1), brevity)
    if isinstance(bandwidth, str):
        width = squared_bandwidth(family, sample, bandwidth)
        return Kernel(np.array([width if width > 0 else 1.0]), brevity)
    return Kernel(_given_widths(bandwidth, float(units.scale[0])), brevity)


def check_bandwidth(bandwidth: Any) -> None:
    """A name, a number above 0, or a list of such."""
    hint = f"Pass one of {', '.join(map(repr, BANDWIDTHS))}, a number > 0, or a list of such."
    if isinstance(bandwidth, str):
        if bandwidth not in BANDWIDTHS:
            raise ValueError(f"Unknown bandwidth {bandwidth!r}. {hint}")
        return
    if isinstance(bandwidth, list | tuple | np.ndarray):
        values = as_numbers("bandwidth", bandwidth)
        if values.ndim != 1 or not values.size:
            raise ValueError(f"bandwidth has shape {values.shape}. {hint}")
        check_entries("bandwidth", values)
        for value in values:
            check_number("bandwidth", float(value), above=0.0, hint=hint)
        return
    check_number("bandwidth", bandwidth, above=0.0, hint=hint)
    if not np.isfinite(float(bandwidth)):
        raise ValueError(f"bandwidth must be finite, got {bandwidth!r}. {hint}")


def _given_widths(bandwidth: Any, unit: float) -> Array:
    """Squared bandwidths in the units of the rows."""
    with np.errstate(over="ignore"):
        inside = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64)) / unit
    least, most = _BANDWIDTHS
    if not (least <= inside.min() and inside.max() <= most):
        raise ValueError(
            f"bandwidth={bandwidth!r} is from {inside.min():g} to {inside.max():g} in units of the spread of X, about "
            f"{unit:g}, and must be within {least:g} and {most:g} there. Are its units those of X?"
        )
    return inside**2
