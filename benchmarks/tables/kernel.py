"""KernelDPMixture: the programme beside general solvers, densities beside rivals, and a million rows by features."""

from importlib import import_module

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.kernel_data import real_sets, six_gaussians
from benchmarks.measure import best_of
from benchmarks.mixtures import by_bic, truncated
from benchmarks.report import Mark, Table
from kfree import KernelDPMixture, VariationalDPMixture
from kfree.families.points import POINTS, Kernel
from kfree.families.points.gaussian_points import Gaussians
from kfree.inference.embedding.kernel_means import ExactTarget, SeenRows, sum_features
from kfree.inference.embedding.simplex import gap_of, solve
from kfree.rows import set_span_threads

HEADER = ["what", "who", "seconds", "optimality gap", "nats below the truth, or held-out log-density"]
TEXT = (
    "Weights of T candidates (round Gaussians at rows, 8 columns, ridge 1e-6) by kfree's non-negative least squares "
    "and by OSQP and Clarabel on the same matrices, at tolerances of 1e-9; the gap bounds by how much the objective is "
    "above its minimum. Densities: six round Gaussians (1500 rows, mean of five data sets) beside the truth, and real "
    "tables, five-fold held-out log-density a row. Features: one pass over a million rows of 16 columns beside the "
    "bare product of rows and frequencies."
)
RIDGE = 1e-6


def programme(T):
    """Inner products of candidates, and with the rows."""
    rng = np.random.default_rng(0)
    X = 2 * rng.normal(size=(2 * T, 8))
    family, params = POINTS["gaussian"]["spherical"](), Gaussians(X[:T], np.full(T, 0.3))
    rows = SeenRows(X, np.ones(len(X)), np.zeros(len(X), np.intp))
    target = ExactTarget(family, Kernel(np.array([8.0])), rows).in_units_of(params)
    return target.inner(params), target.match(params)


def by_osqp(S, R):
    """OSQP, polished."""
    import osqp
    from scipy import sparse

    T = R.size
    A = sparse.vstack([np.ones((1, T)), sparse.eye(T)], format="csc")
    solver = osqp.OSQP()
    hessian = sparse.csc_matrix(np.triu(S + RIDGE * np.eye(T)))
    low, high = np.append(1.0, np.zeros(T)), np.append(1.0, np.full(T, np.inf))
    options = {"eps_abs": 1e-9, "eps_rel": 1e-9, "polishing": True, "max_iter": 100_000, "verbose": False}
    solver.setup(hessian, -R, A, low, high, **options)
    return solver.solve().x


def by_clarabel(S, R):
    """Clarabel."""
    import clarabel
    from scipy import sparse

    T = R.size
    A = sparse.vstack([np.ones((1, T)), -sparse.eye(T)], format="csc")
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(T)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    hessian = sparse.csc_matrix(np.triu(S + RIDGE * np.eye(T)))
    return np.array(clarabel.DefaultSolver(hessian, -R, A, np.append(1.0, np.zeros(T)), cones, settings).solve().x)


RIVALS = {"osqp": by_osqp, "clarabel": by_clarabel}


def is_there(package):
    """Whether a rival is installed."""
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def solvers(settings):
    """Lines of the programme."""
    for T in (50, 100) if settings.quick else (200, 500, 1000, 2000):
        S, R = programme(T)
        repeats = 1 if T > 1000 else settings.repeats
        with set_span_threads():
            seconds, found = best_of(repeats, lambda S=S, R=R: solve(S, R, RIDGE))
        yield [f"weights, T = {T}", "kfree", seconds, f"{found.gap:.0e}", None]
        for name, call in RIVALS.items():
            if not settings.rivals or not is_there(name) or T > 1000:
                continue
            seconds, p = best_of(repeats, lambda call=call, S=S, R=R: call(S, R))
            p = np.maximum(p, 0) / np.maximum(p, 0).sum()
            yield [f"weights, T = {T}", name, seconds, f"{gap_of(S, R, RIDGE, p):.0e}", None]


def generated(settings):
    """Lines of six Gaussians."""
    models = {
        "kfree, KernelDPMixture": lambda: KernelDPMixture(),
        "kfree, KernelDPMixture, refined": lambda: KernelDPMixture(refine=True),
        "kfree, VariationalDPMixture": lambda: VariationalDPMixture(),
    }
    for D in (2, 8):
        cases = [six_gaussians(D, seed, 300 if settings.quick else 1500) for seed in range(2 if settings.quick else 5)]
        for who, make in models.items():
            seconds, lost = [], []
            for X, held_out, log_density in cases:
                time, model = best_of(1, lambda X=X, make=make: make().fit(X))
                seconds.append(time)
                lost.append(float(log_density(held_out).mean() - model.score(held_out)))
            yield [f"six Gaussians, {D} columns", who, float(np.mean(seconds)), None, float(np.mean(lost))]


def held_out(make, X):
    """Mean seconds and held-out log-density of five folds."""
    seconds, score = [], []
    for seen, rest in KFold(5, shuffle=True, random_state=0).split(X):
        time, model = best_of(1, lambda seen=seen: make(X[seen]))
        seconds.append(time)
        score.append(model.score(X[rest]))
    return float(np.mean(seconds)), float(np.mean(score))


def real(settings):
    """Lines of real tables."""
    models = {
        "kfree, KernelDPMixture": lambda X: KernelDPMixture().fit(X),
        "kfree, VariationalDPMixture": lambda X: VariationalDPMixture().fit(X),
    }
    if settings.rivals:
        models |= {
            "BayesianGaussianMixture": lambda X: truncated().fit(X),
            "GaussianMixture, BIC": by_bic,
        }
    for name, X in real_sets(settings.quick):
        for who, make in models.items():
            seconds, score = held_out(make, X)
            yield [f"{name}, {X.shape[0]} x {X.shape[1]}", who, seconds, None, score]


def features(settings):
    """Lines of a pass by features, and how many times the bare product it takes."""
    n, M = (20_000, 200) if settings.quick else (1_000_000, 500)
    X, family = np.random.default_rng(0).normal(size=(n, 16)), POINTS["gaussian"]["full"]()
    W = family.frequencies(Kernel(np.array([4.0])), 16, M, np.random.default_rng(1))
    rows = SeenRows(X, np.ones(n), np.zeros(n, np.intp))

    def product():
        for start in range(0, n, 8192):  # nothing is kept: all together would be four gigabytes
            X[start : start + 8192] @ W

    with set_span_threads():
        seconds, _ = best_of(settings.repeats, lambda: sum_features(family, W, rows))
    bare, _ = best_of(settings.repeats, product)
    what = f"{M} features, {n} x 16"
    return [[what, "kfree", seconds, None, None], [what, "the bare product", bare, None, None]], seconds / bare


def where_lost(rows):
    """The tables on which a rival has the higher held-out density, in words."""
    lost = []
    for what in dict.fromkeys(row[0] for row in rows):
        group = [row for row in rows if row[0] == what]
        best = max(group, key=lambda row: row[4])
        if "KernelDPMixture" not in best[1]:
            lost.append(f"{what}: {best[1]}")
    return "KernelDPMixture loses: " + ("; ".join(lost) if lost else "nowhere here") + "."


def make(settings):
    """The table."""
    first, second, third = list(solvers(settings)), list(generated(settings)), list(real(settings))
    fourth, times = features(settings)
    notes = [
        "It minimises a distance of distributions, not a likelihood: `refine=True` comes closer in distance, and loses "
        "held-out density.",
        where_lost(third),
    ]
    gaps = [float(row[3]) for row in first if row[1] == "kfree"]
    lost = [row[4] for row in second if row[1] == "kfree, KernelDPMixture"]
    seconds = {row[1]: row[2] for row in first if row[0] == "weights, T = 1000"}
    marks = [
        Mark("largest optimality gap", max(gaps), 1e-12, at_least=False),
        Mark("six Gaussians, nats below the truth, the larger of both", max(lost), 0.15, at_least=False),
        Mark("a pass by features over the bare product", times, 3.0, at_least=False),
    ]
    if seconds:
        marks.append(Mark("seconds for 1000 candidates", seconds["kfree"], 0.5, at_least=False))
        others = [seconds[name] for name in RIVALS if name in seconds]
        if others:
            marks.append(
                Mark(
                    "the same over the faster of OSQP and Clarabel", seconds["kfree"] / min(others), 1.0, at_least=False
                )
            )
    rows = first + second + third + fourth
    return Table("kernel", "Mixtures by matching kernel means", TEXT, HEADER, rows, notes, marks)
