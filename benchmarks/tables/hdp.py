"""Clusters shared by groups: the papers' three-part pass in blocks, against the same compiled one row at a time."""

from benchmarks.hdp_loop import hdp_loop
from benchmarks.measure import best_of, n_used, nmi, same_partition
from benchmarks.report import Table
from benchmarks.rivals import MAX_ITER
from benchmarks.workloads import lambda_for, shared
from kfree import HDPMeans

#: name: groups, rows of each, columns, clusters, separation, clusters that a group has.
SETS = {
    "10 000 groups of 10": (10_000, 10, 16, 40, 12.0, 3),
    "500 groups of 200": (500, 200, 16, 40, 8.0, 4),
    "10 groups of 10 000": (10, 10_000, 16, 40, 12.0, 10),
}
HEADER = ["data", "passes", "K", "local clusters", "NMI", "kfree seconds", "loop seconds", "times"]
TEXT = (
    "`HDPMeans(search='points')`, rows in the order given, to the fixed point (tol=0), beside a numba loop that does "
    "the same one row and one local cluster at a time. lam_local is a quarter of the lam that farthest-first gives for "
    "the pooled rows, lam_global the rest. Both must give the same partition; the run stops with an error if they do "
    "not."
)


def measure(name, settings):
    """A line of the table."""
    groups, each, *rest = SETS[name]
    if settings.quick:
        groups, each = max(3, groups // 1000), min(each, 50)
    X, truth, code = shared(groups, each, *rest)
    lam = lambda_for(X, rest[1])
    model = HDPMeans(lam / 4, 3 * lam / 4, search="points", order="index", tol=0.0, max_iter=MAX_ITER)
    small = code < 3
    model.fit(X[small], groups=code[small])  # compiles both
    hdp_loop(X[small], code[small], lam / 4, 3 * lam / 4, 3)
    mine, fitted = best_of(settings.repeats, lambda: model.fit(X, groups=code))
    theirs, (labels, n_iter) = best_of(1, lambda: hdp_loop(X, code, lam / 4, 3 * lam / 4, MAX_ITER))
    if not same_partition(fitted.labels_, labels):
        raise AssertionError(f"{name}: kfree and the one-row loop disagree")
    local = fitted.n_local_clusters_
    return [name, n_iter, n_used(labels), local, nmi(truth, labels), mine, theirs, theirs / mine]


def make(settings):
    """The table."""
    rows = [measure(name, settings) for name in SETS]
    return Table("hdp", "Clusters shared by groups: speed", TEXT, HEADER, rows)
