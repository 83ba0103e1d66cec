"""Ctrl-C, a thousand times: real signals at random moments of real fits, and what becomes of each.

    python tools/interrupts.py --fits 1000 --seed 0

Children fit every estimator again and again; another process sends them SIGINT at a moment between just before a fit
begins and just after it ends. What must come of it is one of three things: the fit was over by then; a model that can
be used, with a warning; or KeyboardInterrupt, and the estimator is what it was. Each child must then exit within
seconds, under another SIGINT if the draw says so. Without ``--warm`` some children also compile what they use.
"""

import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

#: Seconds that a child has for its exit, for one fit, and to compile what it needs.
EXIT, HANG, COMPILE = 20.0, 60.0, 900.0
#: Fits of one child.
FITS_EACH = 25


class Signals:
    """A process that sends SIGINT to this one, at moments that this one chooses."""

    def __init__(self) -> None:
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        target = os.getpid()
        self.sender = os.fork()
        if self.sender == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.close(self.orders)
            while len(order := os.read(orders, 8)) == 8:
                time.sleep(struct.unpack("d", order)[0])
                os.kill(target, signal.SIGINT)
                os.write(answers, b".")
            os._exit(0)
        os.close(orders)
        self.came, self.inside, self.raised = 0, False, False
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: Any) -> None:
        self.came += 1
        if self.inside:
            self.raised = True
            self.frame = traceback.extract_stack(frame)
            raise KeyboardInterrupt

    def during(self, work: Callable[[], Any], seconds: float) -> str:
        """What comes of some work that is interrupted after some seconds: "late" if the signal came after it."""
        self.came, self.raised = 0, False
        os.write(self.orders, struct.pack("d", seconds))
        try:
            self.inside = True
            work()
            self.inside = False
            outcome = "raised" if self.raised else "late"
        except KeyboardInterrupt:
            self.inside = False
            outcome = "KeyboardInterrupt"
        os.read(self.answers, 1)
        while not self.came:  # sent, so it comes
            time.sleep(0.001)
        return outcome


class Fit(NamedTuple):
    """A fit to interrupt."""

    estimator: Any
    X: Any
    check: Callable[[Any, Any], None]
    groups: Any = None

    def run(self, model: Any, few: int | None = None) -> Any:
        """Fit all rows, or a few."""
        rows = slice(few)
        more = {} if self.groups is None else {"groups": self.groups[rows]}
        return model.fit(self.X[rows], **more)


def make_fits() -> dict[str, Fit]:
    """Fits of every estimator and algorithm, of some ten to some hundred milliseconds."""
    import numpy as np
    import scipy.sparse as sp

    from kfree import (
        BPMeans,
        DPMeans,
        HDPMeans,
        HDPTopics,
        KernelDPMixture,
        KFeatures,
        StepwiseKFeatures,
        VariationalDPMixture,
    )

    rng = np.random.default_rng(0)

    def clouds(n: int, p: int, k: int, gap: float = 2.0) -> Any:
        return (gap * rng.normal(size=(k, p)))[rng.integers(k, size=n)] + rng.normal(size=(n, p))

    def counts(n: int, p: int, k: int) -> Any:
        kinds = rng.dirichlet(np.full(p, 0.3), k)
        return rng.poisson(30 * kinds[rng.integers(k, size=n)]) + np.eye(p)[np.arange(n) % p]

    def features(n: int, p: int, k: int) -> Any:
        return rng.integers(2, size=(n, k)) @ (3 * rng.normal(size=(k, p))) + 0.5 * rng.normal(size=(n, p))

    groups = np.arange(2000) % 9
    corpus = sp.csr_matrix(counts(400, 300, 8))
    texts = Fit(HDPTopics(n_topics_init=30), corpus, check_topics)
    table, few = features(150, 8, 5), features(80, 8, 4)
    return {
        "dp auto": Fit(DPMeans(), clouds(3000, 3, 8, 6.0), check_clusters),
        "dp auto long": Fit(DPMeans(), clouds(110_000, 2, 6, 6.0), check_clusters),
        "dp radius": Fit(DPMeans(radius=12.0), clouds(12_000, 6, 40), check_clusters),
        "dp price": Fit(DPMeans(lam=2000.0), clouds(12_000, 6, 40), check_clusters),
        "dp number": Fit(DPMeans(n_clusters=40), clouds(12_000, 6, 40), check_clusters),
        "dp threads": Fit(DPMeans(radius=12.0), clouds(60_000, 6, 40), check_clusters),
        "dp full": Fit(DPMeans(radius=40.0, search="full"), clouds(4000, 4, 30), check_clusters),
        "dp serial": Fit(
            DPMeans(radius=2.0, algorithm="serial", random_state=0), clouds(10_000, 3, 30), check_clusters
        ),
        "dp collapsed": Fit(
            DPMeans(radius=1.0, algorithm="collapsed", random_state=0), clouds(2000, 3, 30), check_clusters
        ),
        "dp delayed": Fit(DPMeans(radius=4.0, algorithm="delayed"), clouds(4000, 3, 30), check_clusters),
        "dp k-means++": Fit(
            DPMeans(radius=2.0, init="k-means++", n_init=3, random_state=0), clouds(6000, 3, 9), check_clusters
        ),
        "dp kl": Fit(
            DPMeans(radius=0.8, divergence="kl", smoothing=0.1), sp.csr_matrix(counts(900, 60, 6)), check_clusters
        ),
        "hdp auto": Fit(HDPMeans(random_state=0), clouds(2000, 3, 12, 3.0), check_clusters, groups),
        "hdp full": Fit(
            HDPMeans(lam_local=8.0, lam_global=60.0, search="full"), clouds(2000, 3, 12, 3.0), check_clusters, groups
        ),
        "topics": texts,
        "topics refined": texts._replace(estimator=HDPTopics(mix=0, refine="collapsed", tol=0, n_topics_init=30)),
        "topics paper": texts._replace(estimator=HDPTopics(mix=0, search="paper", tol=0, n_topics_init=30)),
        "bp": Fit(BPMeans(n_init=1), few, check_features),
        "bp lam": Fit(BPMeans(100.0, n_init=2), table, check_features),
        "bp paper": Fit(BPMeans(40.0, n_init=40, algorithm="paper"), table, check_features),
        "bp collapsed": Fit(BPMeans(60.0, n_init=20, algorithm="collapsed", shuffle=True), table, check_features),
        "kf": Fit(KFeatures(5, n_init=6), table, check_features),
        "kf threads": Fit(KFeatures(5, n_init=12, n_jobs=2), table, check_features),
        "kf long": Fit(KFeatures(4, n_init=2), features(4000, 55, 4), check_features),
        "skf": Fit(StepwiseKFeatures(200.0, n_init=1), table, check_features),
        "vdp rows": Fit(VariationalDPMixture(accelerate=None), clouds(5000, 4, 8), check_mixture),
        "vdp tree": Fit(VariationalDPMixture(accelerate="tree", final="refine"), clouds(12_000, 4, 8), check_mixture),
        "vdp kdtree": Fit(VariationalDPMixture(accelerate="kdtree", family="diag"), clouds(4000, 3, 6), check_mixture),
        "vdp poisson": Fit(
            VariationalDPMixture(accelerate="tree", family="poisson"), counts(5000, 20, 8), check_mixture
        ),
        "kernel": Fit(KernelDPMixture(), clouds(1500, 3, 6), check_embedding),
        "kernel local": Fit(KernelDPMixture(candidates="local", ridge="auto"), clouds(600, 3, 6), check_embedding),
        "kernel features": Fit(KernelDPMixture(features=300), clouds(20_000, 3, 6), check_embedding),
        "kernel refine": Fit(KernelDPMixture(refine=True), clouds(400, 2, 4), check_embedding),
        "kernel documents": Fit(
            KernelDPMixture(family="multinomial"), sp.csr_matrix(counts(500, 40, 6)), check_embedding
        ),
    }


def check_clusters(model: Any, fit: Fit) -> None:
    """Labels, centres and objective belong together."""
    import numpy as np

    groups = {} if fit.groups is None else {"groups": fit.groups}
    np.testing.assert_array_equal(model.labels_, model.predict(fit.X, **groups))
    assert np.unique(model.labels_).size == model.n_clusters_
    assert np.isfinite(model.cluster_centers_).all()
    _check_trace(model.objective_trace_, model.objective_)


def check_topics(model: Any, fit: Fit) -> None:
    """Counts are those of the labels."""
    import numpy as np

    X = fit.X
    tokens, owner = np.zeros((X.shape[0], model.n_topics_)), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    np.add.at(tokens, (owner, model.cell_labels_), X.data)
    np.testing.assert_array_equal(tokens, model.doc_topic_counts_.toarray())
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.transform(X[:5]).sum(axis=1), 1.0)
    _check_trace(model.objective_trace_, model.objective_)


def check_features(model: Any, fit: Fit) -> None:
    """The inertia is that of the features, and no allocation of the model's own is worse."""
    import numpy as np

    left = ((fit.X - model.inverse_transform(model.Z_)) ** 2).sum()
    np.testing.assert_allclose(model.inertia_, left, rtol=1e-7, atol=1e-7)
    assert model.Z_.shape == (len(fit.X), model.n_components_)
    assert np.isfinite(model.components_).all()
    assert -model.score(fit.X) <= left * (1 + 1e-7) + 1e-7


def check_mixture(model: Any, fit: Fit) -> None:
    """Labels are those of the components, and what is told is finite."""
    import numpy as np

    np.testing.assert_array_equal(model.predict(fit.X), model.labels_)
    assert np.isfinite([model.free_energy_, model.tied_free_energy_]).all()
    assert np.isfinite(model.means_).all()
    np.testing.assert_allclose(model.weights_.sum() + model.tail_weight_, 1.0)


def check_embedding(model: Any, fit: Fit) -> None:
    """Labels are those of the components, the weights a distribution, and what is told is finite."""
    import numpy as np

    np.testing.assert_array_equal(model.predict(fit.X), model.labels_)
    assert np.isfinite([model.mmd2_, model.gap_]).all()
    assert np.isfinite(model.score(fit.X[:50]))
    np.testing.assert_allclose(model.weights_.sum(), 1.0)


def _check_trace(trace: Any, objective: float) -> None:
    import numpy as np

    assert len(trace)
    assert np.isclose(trace[-1], objective)
    assert (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()


def same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether an estimator holds what it held: the very same objects."""
    return before.keys() == after.keys() and all(after[name] is value for name, value in before.items())


def one_fit(signals: Signals, name: str, fit: Fit, seconds: float, share: float, refit: bool) -> str:
    """Fit once under a signal; returns what came of it, and raises if that is not what was promised."""
    model = type(fit.estimator)(**fit.estimator.get_params())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if refit:
            fit.run(model, 60)
        before = dict(vars(model))
        told.clear()
        outcome = signals.during(lambda: fit.run(model), max(0.0, share * seconds))
        warned = any("interrupted" in str(warning.message) for warning in told)
    if outcome == "KeyboardInterrupt":
        if same(before, vars(model)):
            return f"KeyboardInterrupt, {'early' if share < 0.5 else 'in the second half'}"
        fit.check(model, fit)  # interrupted when all was done
        return "KeyboardInterrupt after the fit"
    assert warned or outcome == "late", "the signal was lost at\n" + "".join(traceback.format_list(signals.frame[-30:]))
    fit.check(model, fit)
    return "model, with a warning" if warned else "model, the signal came before or after the fit"


def child(seed: int, fits: int, only: str) -> None:
    """Fit again and again; prints what came of each fit, and at last that it is about to exit."""
    signals = Signals()  # forked before there are threads
    every = make_fits()
    rng, names, seconds = random.Random(seed), sorted(name for name in every if name.startswith(only)), {}
    for _ in range(fits):
        name = rng.choice(names)
        fit, share, refit = every[name], rng.uniform(-0.05, 1.1), rng.random() < 0.5
        if name not in seconds and rng.random() < 0.5:  # else what it needs is loaded, or compiled, under the signal
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit.run(type(fit.estimator)(**fit.estimator.get_params()))
            seconds[name] = time.perf_counter() - start
        try:
            came = one_fit(signals, name, fit, seconds.get(name, 0.5), share, refit)
        except Exception:
            came = f"BROKEN {name} at {share:.2f}"
            traceback.print_exc()
        print(f"{name}\t{came}", flush=True)
    print("exit", flush=True)
    os.close(signals.orders)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run_child(seed: int, fits: int, only: str, fresh: bool, at_exit: bool) -> list[str]:
    """What a child tells, and how it ended."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        place: dict[str, str] = {"NUMBA_CACHE_DIR": folder} if fresh else {}
        command = [sys.executable, __file__, "--child", "--seed", str(seed), "--fits", str(fits), "--only", only]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | place)
        told, leaves = list[str](), False
        watch = threading.Timer(HANG * fits + (COMPILE if fresh else 0.0), process.kill)
        watch.start()
        assert process.stdout is not None
        for line in process.stdout:
            leaves = line.strip() == "exit"
            if leaves:
                break
            told.append(line.strip())
        watch.cancel()
        if at_exit:
            time.sleep(random.Random(seed).uniform(0, 0.2))
            process.send_signal(signal.SIGINT)
        start = time.monotonic()
        try:
            code = process.wait(EXIT)
        except subprocess.TimeoutExpired:
            process.kill()
            code = "hangs"
        if not leaves or code not in (0, 1, -signal.SIGINT) or (code and not at_exit):
            told.append(f"exit\tBROKEN exit: {code} after {time.monotonic() - start:.1f} s, seed {seed}")
        else:
            told.append(f"exit\texit, {'interrupted' if code else 'as usual'}")
        errors.seek(0)
        text = errors.read()
        if any("BROKEN" in line for line in told) or "Exception ignored" in text:
            print(f"seed {seed}\n{text}", file=sys.stderr)
    return told


def main() -> None:
    """Run children until there were enough fits, and count what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="fits whose name begins with this")
    parser.add_argument("--warm", action="store_true", help="no child compiles anything")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.seed, options.fits, options.only)
        return
    rng, came, made = random.Random(options.seed), Counter[str](), 0
    while made < options.fits:
        fresh = not options.warm and rng.random() < 0.1
        fits = min(FITS_EACH // 8 if fresh else FITS_EACH, options.fits - made)
        told = run_child(rng.randrange(2**31), fits, options.only, fresh, rng.random() < 0.5)
        made += fits
        print(f"{made} fits", file=sys.stderr, flush=True)
        came.update(line.split("\t")[1] for line in told)
    for what, count in came.most_common():
        print(f"{count:6d}  {what}")
    sys.exit(any("BROKEN" in what for what in came))


if __name__ == "__main__":
    main()
