"""Run by benchmarks.beside in an environment of its own: fits the workload named on each line of stdin, prints JSON."""

import json
import sys
import warnings
from functools import cache
from hashlib import blake2b
from time import perf_counter

import numpy as np
import scipy.sparse as sp

import kfree
from benchmarks import data
from benchmarks.corpora import load, planted
from benchmarks.tables.hdp import SETS as GROUPED
from benchmarks.workloads import gauss, lambda_for, make_case, shared
from kfree import BPMeans, DPMeans, HDPMeans, HDPTopics, KernelDPMixture, KFeatures, VariationalDPMixture

DENSE = ("g100k-16-50", "g1m-16-50", "g1m-2-20", "g60k-50-100")
OVERLAPPING = ("separation 1.0", "separation 0.7", "sizes 1:100", "t3 noise", "1 % outliers")
REAL = ("pendigits", "letter", "hipc_flow", "mnist", "skin")
COUNTS = "c50k-5000-50"
TYPES = {"64": np.float64, "32": np.float32}
WORKLOADS = {}


def workload(*names):
    """The decorated function prepares the workload of each name and returns a call that fits and gives labels."""

    def keep(prepare):
        WORKLOADS.update({name: (lambda name=name: prepare(name.split(": ")[1])) for name in names})
        return prepare

    return keep


@cache
def dense(name):
    """A dense set with its lam: generated, or real by its name."""
    case = getattr(data, name)() if name in REAL else make_case(name)
    return case, lambda_for(case.X, case.k)


def typed(name):
    """A set in single or double precision."""
    name, bits = name.rsplit(" ", 1)
    case, lam = dense(name)
    return case._replace(X=case.X.astype(TYPES[bits])), lam


@workload(*(f"convergence: {name} {bits}" for name in DENSE for bits in TYPES))
def convergence(name):
    """A fit with defaults."""
    case, lam = typed(name)
    return lambda: DPMeans(radius=lam).fit(case.X).labels_


@workload(*(f"convergence: {COUNTS} {bits}" for bits in TYPES))
def sparse_convergence(name):
    """Sparse counts."""
    case = make_case(COUNTS, dtype=TYPES[name[-2:]])
    lam = 0.7 * kfree.radius_for_k(case.X[:20_000], case.k, divergence="kl", smoothing=1.0)
    return lambda: DPMeans(radius=lam, divergence="kl", smoothing=1.0).fit(case.X).labels_


@workload(*(f"overlap: {name}" for name in (*OVERLAPPING, *REAL)))
def overlap(name):
    """Clusters that overlap, and real tables."""
    case, lam = dense(name)
    return lambda: DPMeans(radius=lam).fit(case.X).labels_


@workload(*(f"passes: {name} {bits}" for name in DENSE for bits in TYPES))
def passes(name):
    """Rows to the nearest of the true means."""
    case, _ = typed(name)
    means = np.stack([case.X[case.truth == k].mean(axis=0, dtype=np.float64) for k in range(case.k)])
    model = DPMeans(radius=1e300, init=means, tol=1.0).fit(case.X[:1000])
    return lambda: model.predict(case.X)


@workload(*(f"sparse: {COUNTS} {bits}" for bits in TYPES))
def sparse(name):
    """Sparse histograms to the nearest of the true means."""
    case = make_case(COUNTS, dtype=TYPES[name[-2:]])
    hist = sp.diags(1 / np.asarray(case.X.sum(axis=1)).ravel()) @ case.X
    means = np.stack([np.asarray(hist[case.truth == k].mean(axis=0)).ravel() for k in range(case.k)])
    means = 0.999 * means + 0.001 * means.mean(axis=0)
    seen = means.sum(axis=0) > 0
    X, means = case.X[:, seen], means[:, seen].astype(np.float64)
    model = DPMeans(radius=1e300, divergence="kl", smoothing=1.0, init=means, tol=1.0).fit(X)
    return lambda: model.predict(X)


@workload("serial: g100k-16-50", "serial: g60k-50-100")
def serial(name):
    """One row at a time, in the order given."""
    case, lam = dense(name)
    return lambda: DPMeans(radius=lam, algorithm="serial", order="index", tol=0.0).fit(case.X).labels_


@workload("stream: g1m-16-50", "stream: g1m-2-20")
def stream(name):
    """Batches of 10 000 rows."""
    case, lam = dense(name)

    def call():
        model = DPMeans(radius=lam)
        for first in range(0, case.X.shape[0], 10_000):
            model.partial_fit(case.X[first : first + 10_000])
        return model.predict(case.X)

    return call


@workload("scaling: 200000 rows, 400 clusters", "scaling: 3160000 rows, 50 clusters")
def scaling(name):
    """Many clusters, many rows."""
    n, k = (int(word) for word in name.split() if word.isdigit())
    X, _ = gauss(n, 16, k, 2.0)
    lam = lambda_for(X, k)
    return lambda: DPMeans(radius=lam).fit(X).labels_


@workload(*(f"hdp: {name}" for name in GROUPED))
def hdp(name):
    """Clusters shared by groups."""
    groups, each, *rest = GROUPED[name]
    X, _, code = shared(groups, each, *rest)
    lam = lambda_for(X, rest[1])
    model = HDPMeans(lam / 4, 3 * lam / 4, search="points", order="index", tol=0.0)
    return lambda: model.fit(X, groups=code).labels_


@workload("topics: nips12", "topics: kos", "topics: planted")
def topics(name):
    """Documents."""
    X = planted(20_000, 5000, 20, 50) if name == "planted" else load(name)[0]
    return lambda: HDPTopics(random_state=0).fit(X).transform(X[:500]).argmax(axis=1)


@workload(
    "variational: 10000 plain", "variational: 100000 plain", "variational: 100000 tree", "variational: 1000000 tree"
)
def variational(name):
    """Mixtures of Gaussians."""
    n, how = name.split()
    X, _ = gauss(int(n), 16, 10, 2.0)
    return lambda: VariationalDPMixture(accelerate="tree" if how == "tree" else None).fit(X).predict(X)


@workload("features: K = 5", "features: collapsed", "features: paper", "features: auto")
def features(name):
    """Photographs taken apart; inertia stands for the labels, as their order is free."""
    X = np.ascontiguousarray(data.arrays("tabletop")["scores"], dtype=float)
    model = {
        "K = 5": KFeatures(5, random_state=0, n_jobs=2),
        "collapsed": BPMeans(20.0, algorithm="collapsed", base=True, n_init=200, random_state=0),
        "paper": BPMeans(20.0, algorithm="paper", base=True, n_init=200, random_state=0),
        "auto": BPMeans("auto", random_state=0, n_jobs=2),
    }[name]
    return lambda: np.round([model.fit(X).inertia_, model.n_components_], 6)


@workload("kernel: 1500 x 8", "kernel: pendigits")
def kernel(name):
    """A density by matching kernel means."""
    X = data.pendigits().X if name == "pendigits" else gauss(1500, 8, 6, 1.5)[0]
    return lambda: KernelDPMixture(random_state=0).fit(X).predict(X)


@workload("auto: 3000 x 5", "auto: pendigits", "auto: letter", "auto: g100k-16-50", "auto: citeseer")
def auto(name):
    """Nothing given."""
    options = {"divergence": "kl"} if name == "citeseer" else {}
    if name == "citeseer":
        X = data.citeseer().X
    else:
        X = gauss(3000, 5, 4, 2.0)[0] if name == "3000 x 5" else dense(name)[0].X
    return lambda: DPMeans(**options).fit(X).labels_


def answer(call, seconds):
    """The least time of calls that together take about so long, and what stands for their result."""
    least, spent, times = np.inf, 0.0, 0
    while times < 1 or spent < seconds:
        start = perf_counter()
        labels = call()
        spent, least, times = spent + perf_counter() - start, min(least, perf_counter() - start), times + 1
    digest = blake2b(np.ascontiguousarray(labels).tobytes(), digest_size=6).hexdigest()
    return {"seconds": least, "digest": digest, "K": int(np.unique(labels).size)}


def main():
    """Prepare a workload when it is first asked for; forget it when another comes."""
    warnings.simplefilter("ignore")
    name = call = None
    for line in sys.stdin:
        wanted, seconds = json.loads(line)
        if wanted != name:
            name, call = wanted, WORKLOADS[wanted]()
            call()  # kernels are loaded or compiled here
        print(json.dumps(answer(call, seconds)), flush=True)


if __name__ == "__main__":
    main()
