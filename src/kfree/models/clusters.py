"""Between an estimator and the inference below it: a problem to be solved, and a model to be asked."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Family, Geometry
from kfree.inference.clusters.assign import Centres, assign, cost_matrix
from kfree.inference.clusters.fit import Fitted, Plan, fit
from kfree.inference.clusters.how_many.choose import AutoLam, choose_lam
from kfree.inference.clusters.seeds import covering_centres, farthest_first, global_centre, seeded_centres
from kfree.inference.clusters.stream import absorb
from kfree.inference.clusters.table import Table, make_memory, make_table
from kfree.inference.loop import Budget
from kfree.models.checks import (
    WEIGHTINGS,
    Prepared,
    as_numbers,
    check_choice,
    check_domain,
    check_entries,
    check_family,
    check_number,
    check_reach,
    check_weight,
    make_geometry,
    make_rows,
    row_scale,
    summarise,
    weighted_mean,
)


def publish(mean: Array, shift: Array) -> Array:
    """Centres rounded once to the users' units, and back."""
    return (mean + shift) - shift


class Start(NamedTuple):
    """Where a fit starts and with which penalty."""

    lam: float
    init: Any  # name of the seeding, or centres (K, p) in the geometry of the table
    given: bool  # not to be looked for on samples
    price: bool  # lam and the start were found together
    window: tuple[float, float] | None = None
    n_groups: int | None = None
    message: str = ""  # what the user should know of the choice


class Problem(NamedTuple):
    """Checked rows with their geometry."""

    table: Table
    family: Family
    shift: Array  # (p,)
    unit: float  # length of a row that weighs 1 with relative weighting

    @classmethod
    def of(
        cls, X: Any, sample_weight: Any, divergence: Any, weighting: str, smoothing: float, smoothing_mean: Any
    ) -> "Problem":
        """Check X for the divergence and bind it."""
        check_choice("weighting", weighting, WEIGHTINGS)
        check_number("smoothing", smoothing, least=0.0)
        if not np.isfinite(smoothing):
            raise ValueError(f"smoothing must be finite, got {smoothing!r}.")
        family = check_family(divergence, X)
        check_domain(X, family)
        weight = check_weight(sample_weight, X.shape[0])
        if type(family).adapt is not Family.adapt:
            family = family.adapt(summarise(X, weight, weighted_mean(X, weight, row_scale(X, family)[0])))
        prepared = make_rows(X, family, weight, None, weighting=weighting)
        geometry = make_geometry(prepared, smoothing, smoothing_mean)
        table = make_table(prepared.rows, geometry, prepared.once)
        check_reach(table, family)
        return cls(table, family, prepared.shift, prepared.unit)

    def publish(self, mean: Array) -> Array:
        """Centres as ``predict`` will have them."""
        return publish(mean, self.shift)

    def start(self, init: Any, lam: Any, most: float, budget: Budget) -> Start:
        """Resolve ``lam`` and ``init``."""
        centres = None if isinstance(init, str) else self.check_centres(init)
        if centres is not None and centres.shape[0] > most:
            raise ValueError(f"init has {centres.shape[0]} centres, more than max_clusters={most}.")
        if isinstance(lam, str):
            return self._auto(init, centres, most, budget)
        if centres is not None:
            return Start(float(lam), centres, True, False)
        return Start(float(lam), init, init in ("farthest_first", "k-means++"), False)

    def _auto(self, init: Any, centres: Array | None, most: float, budget: Budget) -> Start:
        """lam from the data, and the solution that comes with it unless the user wants another start."""
        check_reach(self.table, self.family, auto=True)
        try:
            found = choose_lam(self.table, budget)
        except KeyboardInterrupt:
            budget.interrupted = True
            reach = float(farthest_first(self.table, 1)[0][0])
            return Start(reach if 0 < reach < np.inf else 1.0, "mean", False, False)
        message = auto_message(found, budget)
        start: Any = centres if centres is not None else init
        own = isinstance(start, str) and start == "auto"
        if own:
            start = found.mean[: int(min(most, found.mean.shape[0]))]
        return Start(found.lam, start, True, own, found.window, found.n_groups, message)

    def check_centres(self, init: Any) -> Array:
        """First centres in the geometry of the table."""
        centres = as_numbers("init", init)
        p = self.table.rows.p
        if centres.ndim != 2 or centres.shape[1] != p or centres.shape[0] < 1:
            raise ValueError(f"init has shape {centres.shape}, but centres of shape (K, {p}) are needed.")
        check_entries("init", centres)
        check_domain(centres, self.family, name="init")
        scale, _ = row_scale(centres, self.family, "init")
        return (centres * scale[:, None] if scale.size else centres) - self.shift

    def check_order(self, order: Any) -> None:
        """An explicit order must be a permutation of the rows."""
        if isinstance(order, str):
            return
        n = self.table.n
        if order.shape != (n,) or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n)):
            raise ValueError(
                f"order must be 'random', 'index' or a permutation of 0 .. {n - 1}, "
                f"got an array of shape {order.shape} that is not one."
            )

    def fit(self, start: Start, plan: Plan, budget: Budget, rng: np.random.Generator) -> Fitted:
        """One fit."""
        try:
            first = self.first_centres(start, plan.max_clusters, budget, rng)
        except KeyboardInterrupt:
            budget.interrupted, first = True, global_centre(self.table)
        return fit(self.table, first, plan, budget, rng, self.publish)

    def first_centres(self, start: Start, most: float, budget: Budget, rng: np.random.Generator) -> Array:
        """The centres that a start stands for."""
        if not isinstance(start.init, str):
            return start.init
        if start.init == "farthest_first":
            return covering_centres(self.table, start.lam, most, budget)
        if start.init == "k-means++":
            return seeded_centres(self.table, start.lam, most, budget, rng)
        return global_centre(self.table)


_TOO_SHORT = (
    "max_time ran out while lam was chosen, before a gap between groups was found, so all rows are one cluster. "
    "Raise max_time, or pass lam."
)


def auto_message(found: AutoLam, budget: Budget) -> str:
    """What a user should know of a lam that was chosen."""
    if found.n_groups > 1:
        return ""
    return _TOO_SHORT if budget.spent else no_gap_message(found.suggestions)


def no_gap_message(suggestions: Any) -> str:
    """What to tell a user whose data show no gap."""
    text = "lam='auto' found no gap between groups, so all rows are one cluster."
    if suggestions:
        some = "; ".join(f"K = {s[0]} for lam in ({s[1]:.3g}, {s[2]:.3g})" for s in suggestions)
        text += f" If you expect clusters all the same, pass search='full' and a price: {some}."
    return text


class Model(NamedTuple):
    """Centres that can be asked about rows, and can learn from more of them."""

    geometry: Geometry
    shift: Array  # (p,)
    centres: Array  # (K, p) in the users' units
    total: Array  # (K, p) weighted sums of the rows seen, in the geometry
    mass: Array  # (K,)
    unit: float  # length of a row that weighs 1 with relative weighting
    reach: float  # largest divergence of a row of the fit from its centre, if that was told

    @classmethod
    def of(cls, problem: Problem, fitted: Any, reach: float = np.inf) -> "Model":
        """The model of a finished fit."""
        return cls(
            problem.table.geometry,
            problem.shift,
            fitted.mean + problem.shift,
            fitted.total,
            fitted.mass,
            problem.unit,
            reach,
        )

    def table(self, X: Any, weight: Array, weighting: str = "none", *, opens: bool = False) -> Table:
        """Rows as the fit saw its own, without hashes."""
        family = check_family(self.geometry.family, X)
        prepared: Prepared = make_rows(X, family, weight, self.shift, weighting=weighting, unit=self.unit)
        return make_table(prepared.rows, self.geometry, prepared.once, hashes=False, opens=opens)

    def inside(self) -> Centres:
        """The centres in the geometry of the rows."""
        return Centres(self.geometry, self.centres - self.shift)

    def nearest(self, X: Any) -> tuple[Array, Array]:
        """Labels and divergences of rows."""
        table = self.table(X, np.empty(0))
        memory = make_memory(table.n)
        assign(table, self.inside(), memory)
        return memory.labels, memory.cost

    def divergences(self, X: Any) -> Array:
        """Divergences (n, K)."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        return cost_matrix(self.table(X, np.empty(0)), self.inside(), dtype)

    def score(self, X: Any, sample_weight: Any, weighting: str) -> float:
        """Minus the weighted mean divergence."""
        table = self.table(X, check_weight(sample_weight, X.shape[0]), weighting)
        memory = make_memory(table.n)
        sums = assign(table, self.inside(), memory)
        return -sums.cost / float(sums.mass.sum())

    def radius(self) -> tuple[float, tuple[float, float]]:
        """A radius that keeps the clusters apart, and the window it lies in: beyond the rows of the fit, short of the
        next centre."""
        mean = self.inside().mean
        between = self.geometry.divergence(mean[:, None], mean[None])
        np.fill_diagonal(between, np.inf)
        gap = float(between.min())
        if self.reach <= 0:
            if not np.isfinite(gap):
                raise ValueError(
                    "lam='auto' needs a first batch whose rows differ, to see how far apart rows of a cluster are. "
                    "Pass a larger first batch, or lam."
                )
            return gap / 2, (0.0, gap)
        if self.reach < gap < np.inf:
            return float(np.sqrt(self.reach * gap)), (self.reach, gap)
        return 2 * self.reach, (self.reach, np.inf)

    def absorb(
        self, X: Any, sample_weight: Any, weighting: str, lam: float, most: float, budget: Budget
    ) -> tuple["Model", Array, tuple[float, float], bool]:
        """The model after one more batch, the batch's labels, its costs without and with penalty, and whether the
        budget sufficed."""
        table = self.table(X, check_weight(sample_weight, X.shape[0]), weighting, opens=True)
        mean = self.centres - self.shift
        result = absorb(table, mean, self.total, self.mass, lam, most, lambda mean: publish(mean, self.shift), budget)
        model = self._replace(centres=result.mean + self.shift, total=result.total, mass=result.mass)
        objective = result.inertia + result.prior + lam * result.mean.shape[0]
        return model, result.labels, (result.inertia, objective), result.complete
