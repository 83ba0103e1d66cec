"""Clusters shared by groups: the papers' three-part pass in blocks, against the same compiled one row at a time."""

from benchmarks.hdp_loop import hdp_loop
from benchmarks.measure import best_of, n_used, nmi, same_partition
from benchmarks.report import Mark, Table
from benchmarks.workloads import lambda_for, shared
from kfree import HDPMeans

#: name: groups, rows of each, columns, clusters, separation, clusters that a group has.
SETS = {
    "30 000 groups of 10": (30_000, 10, 16, 40, 12.0, 3),
    "1000 groups of 300": (1000, 300, 16, 40, 12.0, 4),
    "10 groups of 30 000": (10, 30_000, 16, 40, 12.0, 10),
}
#: Passes of both.
PASSES = 10
HEADER = ["data", "passes", "K", "local clusters", "NMI", "kfree seconds", "loop seconds", "times"]
TEXT = (
    "`HDPMeans(search='points')`, rows in the order given, ten passes (tol=0), beside a numba loop that does "
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
    model = HDPMeans(lam / 4, 3 * lam / 4, search="points", order="index", tol=0.0, max_iter=PASSES)
    small = code < 3
    model.fit(X[small], groups=code[small])  # compiles both
    hdp_loop(X[small], code[small], lam / 4, 3 * lam / 4, 3)
    mine, fitted = best_of(settings.repeats, lambda: model.fit(X, groups=code))
    theirs, (labels, n_iter) = best_of(1, lambda: hdp_loop(X, code, lam / 4, 3 * lam / 4, PASSES))
    if not same_partition(fitted.labels_, labels):
        raise AssertionError(f"{name}: kfree and the one-row loop disagree")
    local = fitted.n_local_clusters_
    return [name, n_iter, n_used(labels), local, nmi(truth, labels), mine, theirs, theirs / mine]


def make(settings):
    """The table."""
    rows = [measure(name, settings) for name in SETS]
    mark = Mark("times faster than one row at a time, least", min(row[-1] for row in rows), 3.0)
    return Table("hdp", "Clusters shared by groups: speed", TEXT, HEADER, rows, marks=[mark])
