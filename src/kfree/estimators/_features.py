"""What the estimators of binary features have in common: the door, the fitted surface, canonical form."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from kfree.estimators._endings import warn_unfinished
from kfree.estimators._sklearn import check_table
from kfree.families import Array
from kfree.inference.features.allocation import Means, explicit_inertia, solve
from kfree.inference.features.best_rows import Rule, allocate, rule_for
from kfree.inference.features.canonical import canonical, display_order
from kfree.inference.features.copies import merge_copies
from kfree.inference.features.feature_table import Table
from kfree.inference.features.isometry import densify, reduce_columns
from kfree.inference.features.k_features import Run
from kfree.inference.features.restarts import Plan, Spread
from kfree.inference.features.stepwise import Choice, Path, Stepper, choose_lam, survey, windows
from kfree.inference.loop import Budget, Info
from kfree.models.checks import check_choice, check_number, check_verbose, check_weight
from kfree.rows import set_span_threads

_ROWS = ("exact", "coordinate")
#: Restarts for each number of features where a price is chosen.
_SURVEY = 3
#: Share of the sum of squares about the mean below which rounding decides.
_FAR = 1e-12


class FeaturePath(NamedTuple):
    """The least inertia found for K = 0, 1, 2, ... features; it serves every lam."""

    n_components: Array  # (m,) K
    inertia: Array  # (m,) J_K, never rises
    objective: Array  # (m,) J_K + lam K, for the lam of the fit
    window: Array  # (m, 2) values of lam between which K is best; NaN if it never is. The last one's low end is 0
    components: list[Array]  # means (K, p) of each solution

    def best(self, lam: float) -> int:
        """The number of features with the least objective at another lam."""
        return int(self.n_components[np.argmin(self.inertia + lam * self.n_components)])

    def plot(self, ax: Any = None) -> Any:
        """J_K over K, and the window of lam of each K that has one; returns the two axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")[1]
        left, right = ax
        left.plot(self.n_components, self.inertia, "o-", color="#1f4e79", ms=4, lw=1.4)
        left.set(xlabel="features K", ylabel="inertia", ylim=(0, None))
        for K, (lo, hi) in zip(self.n_components, self.window):
            if np.isfinite(hi) and hi > 0 and K > 0:
                low, last = max(lo, 1e-3 * hi), self.n_components[-1] == K
                right.plot([low, hi], [K, K], color="#8a949c" if last else "#c55a11", lw=5, solid_capstyle="butt")
        right.set(xscale="log", xlabel="lam", ylabel="best K")
        for side in (left, right):
            side.grid(True, alpha=0.25)
            side.spines[["top", "right"]].set_visible(False)
        return ax


class Prepared(NamedTuple):
    """Rows ready for a fit."""

    table: Table  # in as few columns as possible, for the search
    full: Table  # in the user's columns
    active: Array  # (n,) bool, rows with a positive weight
    weight: Array  # of the active rows, (0,) for ones
    place: Array  # rows of the tables that the active rows are
    idle: Any  # rows without weight
    shift: Array  # (p,) what was subtracted from the rows, with an intercept
    dtype: Any  # of the published means


class BinaryFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator whose model is a set of means, of which a row has none, one or many."""

    algorithm: Any
    row: Any
    base: Any
    init: Any
    n_init: Any
    max_iter: Any
    max_time: Any
    random_state: Any
    n_jobs: Any
    verbose: Any
    converged_: bool
    n_components_: int
    components_: Any
    intercept_: Any
    Z_: Any

    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit and return ``Z_``: which row has which feature.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        array (n, K), uint8
        """
        return self.fit(X, y, sample_weight=sample_weight).Z_

    def transform(self, X):
        """The best features of each row, means fixed; no features are added.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n, K), uint8
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._allocate(X)[0]

    def inverse_transform(self, Z):
        """Rows made of features: ``Z @ components_ + intercept_``.

        Parameters
        ----------
        Z : array (n, K)

        Returns
        -------
        array (n, p)
        """
        check_is_fitted(self)
        Z = check_array(Z, ensure_min_features=0, input_name="Z")
        if Z.shape[1] != self.n_components_:
            raise ValueError(f"Z has {Z.shape[1]} columns, but there are {self.n_components_} features.")
        return Z.astype(self.components_.dtype) @ self.components_ + self.intercept_

    def score(self, X, y=None, sample_weight=None):
        """Minus the sum of squared residuals of rows after ``transform``; larger is better. lam plays no part.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        weight = check_weight(sample_weight, X.shape[0])
        with set_span_threads():
            Z = self._allocate(X)[0]
            return -explicit_inertia(Table(X, weight), Z, self._means())

    def canonicalize(self):
        """Bring the features into canonical form: the same rows ``Z_ @ components_`` in the plainest words.

        If some feature is in all rows (a base), any other one may be complemented: removed from the rows that have
        it and given to those that have not, its mean subtracted instead of added. A pair of features of which each
        row has exactly one is a base and a feature. This makes a base from such a pair, complements features that
        more than half of the rows have, and orders by the weight of their rows. ``transform`` then works with the new
        means.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        means = Means(self.components_.astype(np.float64), self.intercept_.astype(np.float64))
        weight = self._weight if self._weight.size else np.ones(int(self._active.sum()))
        Z, means = canonical(self.Z_[self._active], weight, means, self._intercept)
        self.components_ = means.A.astype(self.components_.dtype)
        self.intercept_ = means.base.astype(self.components_.dtype)
        whole = np.zeros_like(self.Z_)
        whole[self._active] = Z
        if not self._active.all():
            with set_span_threads():
                whole[~self._active] = self._allocate(self._idle)[0]
        self.Z_, self.counts_ = whole, whole.sum(axis=0, dtype=np.int64)
        return self

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _allocate(self, X: Any) -> tuple[Array, Array]:
        means = self._means()
        if self._intercept and not sp.issparse(X):  # as in the fit: the offset is taken off first
            return allocate(Table(X - means.base, np.empty(0)), Means(means.A, np.zeros(X.shape[1])), Rule(exact=True))
        return allocate(Table(X, np.empty(0), intercept=self._intercept), means, Rule(exact=True))

    def _means(self) -> Means:
        return Means(self.components_.astype(np.float64), self.intercept_.astype(np.float64))

    def _check_common(self, algorithms: tuple[str, ...]) -> None:
        check_choice("algorithm", self.algorithm, algorithms)
        if not isinstance(self.base, bool | np.bool_):
            check_choice("base", self.base, ("auto", "intercept"))
        check_number("n_init", self.n_init, least=1, integer=True)
        check_number("max_iter", self.max_iter, least=1, integer=True)
        if self.max_time is not None:
            check_number("max_time", self.max_time, least=0.0)
        if self.n_jobs is not None:
            check_number("n_jobs", self.n_jobs, integer=True)
            if self.n_jobs == 0:
                raise ValueError("n_jobs must not be 0. Pass a number of restarts at a time, or -1 for all cores.")
        check_verbose(self.verbose)

    def _check_lam(self, lam: Any) -> float | None:
        """The price, None for "auto"."""
        if isinstance(lam, str) or lam is None:
            check_choice("lam", lam, ("auto",))
            return None
        check_number("lam", lam, above=0.0, hint="It is what one more feature must save. 'auto' chooses it.")
        if not np.isfinite(lam):
            raise ValueError(f"lam must be finite, got {lam!r}. A lam above the sum of squares of X gives no features.")
        return float(lam)

    def _prepare(self, X: Any, sample_weight: Any) -> Prepared:
        """Check X and the weights; rows without weight are left out of the fit."""
        X = check_table(self, X, reset=True)
        weight = check_weight(sample_weight, X.shape[0])
        active = weight > 0 if weight.size else np.ones(X.shape[0], bool)
        idle = X[~active]
        if not active.all():
            X, weight = X[active], weight[active]
        X = densify(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if not sp.issparse(X):
            X = np.ascontiguousarray(X)
        given, place = weight, np.arange(X.shape[0])
        if self.algorithm == "extended" and isinstance(self.init, str):
            X, weight, place = merge_copies(X, weight)
        intercept = isinstance(self.base, str) and self.base == "intercept"
        dtype, shift = np.float32 if X.dtype == np.float32 else np.float64, np.zeros(X.shape[1])
        if intercept and not sp.issparse(X):  # features do not see the offset, and neither should rounding
            shift = np.average(X.astype(np.float64, copy=False), axis=0, weights=weight if weight.size else None)
            X = X - shift
        with np.errstate(over="ignore", under="ignore"):
            full = Table(X, weight, intercept=intercept)
        _check_arithmetic(full)
        # given means may leave the space of the rows, so they are used in the user's columns
        reduced = X if isinstance(self.init, tuple) else reduce_columns(X)
        table = full if reduced is X else Table(reduced, weight, intercept=intercept)
        return Prepared(table, full, active, given, place, idle, shift, dtype)

    def _start(self, X: Prepared, K: int | None) -> tuple[Array, Array | None] | None:
        """The allocation (and means) to start from, None to draw them."""
        if isinstance(self.init, str) or self.init is None:
            choice = check_choice("init", self.init, ("auto",) if K is not None else ("auto", "empty"))
            return (np.zeros((X.full.n, 0), np.uint8), None) if choice == "empty" else None
        if isinstance(self.init, tuple) and len(self.init) != 2:
            raise ValueError(f"init is a tuple of {len(self.init)}; pass Z, or the two arrays (Z, A).")
        Z, A = self.init if isinstance(self.init, tuple) else (self.init, None)
        Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
        if Z.ndim != 2 or Z.shape[0] != X.active.size:
            raise ValueError(f"init has shape {Z.shape}, but X has {X.active.size} rows. Pass Z (n, K) or (Z, A).")
        if not np.isin(Z, (0, 1)).all():
            raise ValueError("init must hold an allocation of zeros and ones; other values were found.")
        if K is not None and Z.shape[1] != K:
            raise ValueError(f"init has {Z.shape[1]} columns, but n_components={K}.")
        Z = Z[X.active]
        if A is not None:
            A = np.asarray(A, dtype=np.float64)
            if A.shape != (Z.shape[1], X.full.p) or not np.isfinite(A).all():
                raise ValueError(
                    f"The means in init have shape {A.shape}; finite ones {(Z.shape[1], X.full.p)} are due."
                )
        return np.ascontiguousarray(Z, np.uint8), A

    def _plan(self, X: Prepared, *, algorithm: str, row: str, K: int | None = None, shuffle: bool = False) -> Plan:
        start = self._start(X, K)
        base = bool(self.base) if isinstance(self.base, bool | np.bool_) else None
        once = start is not None and (algorithm != "extended") and not shuffle
        return Plan(
            algorithm,
            rule_for(X.full.n, row == "exact"),
            base,
            int(self.max_iter),
            1 if once else int(self.n_init),
            shuffle,
            start,
        )

    def _seed(self) -> np.random.SeedSequence:
        """The user's seed; None always makes the same choices."""
        if self.random_state is None:
            return np.random.SeedSequence(0)
        return np.random.SeedSequence(int(check_random_state(self.random_state).randint(2**31 - 1)))

    def _budget(self) -> Budget:
        return Budget(self.max_time, self._reporter() if self.verbose > 1 else None)

    def _reporter(self):
        def report(phase: str, count: int, info: Info) -> None:
            print(f"[{type(self).__name__}] {phase}, pass {count}: {info.n_clusters} features, {info.objective:.6g}")

        return report

    def _spread(self, budget: Budget) -> Spread:
        """Restarts through joblib: kernels release the GIL, so threads do."""

        def spread(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
            arguments = list(arguments)
            if effective_n_jobs(self.n_jobs) == 1 or len(arguments) == 1:
                return _in_turn(function, arguments, budget)
            return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(function)(*some) for some in arguments))

        return spread

    def _survey(self, X: Prepared, plan: Plan, seed: np.random.SeedSequence, most: int | None, budget: Budget):
        """A path and the price it suggests."""
        plan = plan._replace(
            algorithm="extended", start=None, n_init=min(plan.n_init, _SURVEY), rule=rule_for(X.full.n, True)
        )
        path = survey(Stepper(X.table, plan, seed, self._spread(budget), budget), most)
        return path, choose_lam(path, X.table)

    def _publish(self, X: Prepared, run: Run, lam: float | None) -> None:
        """Write every fitted attribute, once."""
        Z = run.state.Z
        Z = np.ascontiguousarray(Z[:, display_order(Z, X.full.weight)])
        means = solve(X.full, Z).means
        self._intercept, self._active, self._idle, self._weight = X.full.intercept, X.active, X.idle, X.weight
        self.components_, self.intercept_ = means.A.astype(X.dtype), (means.base + X.shift).astype(X.dtype)
        published = Means(self.components_.astype(float), self.intercept_.astype(float) - X.shift)
        self.inertia_ = explicit_inertia(X.full, Z, published)
        self.n_components_ = int(Z.shape[1])
        self.objective_ = self.inertia_ + (0.0 if lam is None else lam * int(Z.any(axis=0).sum()))
        self.objective_trace_ = np.array(run.trace)
        self.explained_ = 1.0 - self.inertia_ / X.full.total if X.full.total > 0 else 1.0
        self.n_iter_, self.converged_ = max(1, len(run.trace)), bool(run.converged)
        whole = np.zeros((X.active.size, self.n_components_), np.uint8)
        whole[X.active] = Z[X.place]
        if not X.active.all():
            whole[~X.active] = self._allocate(self._idle)[0]
        self.Z_, self.counts_ = whole, whole.sum(axis=0, dtype=np.int64)
        if lam is not None:
            self.lam_ = lam
            self.lam_share_ = lam / X.full.total if X.full.total > 0 else np.inf

    def _path(self, path: Path, lam: float, X: Prepared) -> FeaturePath:
        """A path for the user, means in the user's columns."""
        means = [solve(X.full, run.state.Z).means.A for run in path.runs]
        K = np.arange(len(path.runs))
        return FeaturePath(K, path.inertia, path.objective(lam), windows(path), means)

    def _say(self, restarts) -> None:
        if self.verbose:
            for i, some in enumerate(restarts):
                print(
                    f"[{type(self).__name__}] restart {i}: {some.n_components} features, objective "
                    f"{some.objective:.6g}, {some.seconds:.3g} s"
                )

    def _warn(self, budget: Budget, choice: Choice | None = None) -> None:
        if choice is not None and not choice.clear:
            warnings.warn(
                f"No number of features stands out: {choice.n_components} are best only for lam from "
                f"{choice.window[0]:.3g} to {choice.window[1]:.3g}. Look at path_.plot() and choose lam yourself.",
                UserWarning,
                stacklevel=3,
            )
        warn_unfinished(self, budget, f"Features still change after max_iter={self.max_iter} passes (raise max_iter)")


def _check_arithmetic(table: Table) -> None:
    """Sums of squares that float64 holds, and in which the differences between rows are not lost."""
    X = table.X
    largest = float(np.abs(X.data if table.sparse else X).max(initial=0.0))
    if not np.isfinite(table.total) or (largest > 0 and table.total < 1e-290):
        raise ValueError(
            f"The sum of squares of X (largest entry {largest:g}, weights included) is {table.total:g}, which "
            "float64 cannot work with. Rescale the data; lam scales with their square."
        )
    if not table.sparse and table.spread < _FAR * table.total and not _nearly_equal(X):
        raise ValueError(
            f"The rows are too far from the origin for what they differ by: of their sum of squares {table.total:.3g} "
            f"only {table.spread:.3g} is about their mean, and shares below {_FAR:g} are lost to rounding. "
            "Subtract the mean, or use base='intercept', which does."
        )


def _nearly_equal(X: Array) -> bool:
    """Whether all rows are the same but for rounding: one mean is all they have."""
    return bool((np.ptp(X, axis=0) <= 1e-12 * np.abs(X).max(axis=0)).all())


def _in_turn(function: Callable[..., Any], arguments: list[tuple[Any, ...]], budget: Budget) -> list[Any]:
    """Restarts one after the other; an interrupt or the end of the time keeps those that are done."""
    found: list[Any] = []
    for some in arguments:
        if found and budget.spent:
            break
        try:
            found.append(function(*some))
        except KeyboardInterrupt:
            budget.interrupted = True
            if not found:
                raise
    return found
