"""``max_time`` is looked at in every phase: where time is up, a model that can be used comes back soon."""

import importlib
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from kfree import BPMeans, DPMeans, HDPMeans, HDPTopics
from kfree.estimators import _running
from kfree.inference import loop
from kfree.inference.loop import Budget
from support.short_fits import FITS, ShortFit, check, clouds, counts, features


class Clock:
    """A clock that a look moves on by one second: a budget of n seconds is spent at its n-th look, on any machine."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


#: Fits with phases of their own.
PHASES = FITS | {
    "serial": ShortFit(DPMeans(radius=1.0, algorithm="serial", random_state=0), clouds(1500, 3, 8)),
    "collapsed": ShortFit(DPMeans(radius=2.0, algorithm="collapsed", random_state=0), clouds(800, 3, 8)),
    "delayed": ShortFit(DPMeans(radius=4.0, algorithm="delayed"), clouds(1500, 3, 8)),
    "farthest first": ShortFit(DPMeans(radius=4.0, init="farthest_first"), clouds(1500, 3, 8)),
    "full": ShortFit(DPMeans(radius=30.0, search="full"), clouds(1500, 3, 8)),
    "price, serial": ShortFit(DPMeans(lam=60.0, algorithm="serial", random_state=0), clouds(800, 3, 8)),
    "number, collapsed": ShortFit(DPMeans(n_clusters=12, algorithm="collapsed", random_state=0), clouds(500, 3, 8)),
    "number, many": ShortFit(DPMeans(n_clusters=150), clouds(600, 3, 8)),
    "samples": ShortFit(DPMeans(radius=8.0), clouds(6000, 3, 8)),
    "shared, chosen": ShortFit(HDPMeans(random_state=0), clouds(900, 3, 6), np.arange(900) % 5),
    "shared, full": ShortFit(HDPMeans(4.0, 30.0, search="full"), clouds(900, 3, 6), np.arange(900) % 5),
    "topics, refined": ShortFit(HDPTopics(mix=0, refine="collapsed", tol=0, n_topics_init=12), counts(200, 100, 4)),
    "topics, given": ShortFit(HDPTopics(n_topics=5, n_topics_init=12), counts(200, 100, 4)),
    "topics, paper": ShortFit(HDPTopics(mix=0, search="paper", tol=0, n_topics_init=12), counts(200, 100, 4)),
    "price, chosen": ShortFit(BPMeans(n_init=1), features(60, 5, 2)),
}


@pytest.mark.parametrize("name", PHASES)
def test_time_may_run_out_at_any_look_at_the_clock(name, monkeypatch):
    fit, clock = PHASES[name], Clock()
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=clock.monotonic))
    fit.run(max_time=1e9)
    looks, rng = int(clock.now), np.random.default_rng(0)
    assert looks > 3
    for look in [0, 1, 2, *sorted(rng.integers(3, looks, size=5).tolist())]:
        clock.now = 0.0
        model = fit.run(max_time=float(look))
        check(model, fit)
        # after that nothing but the end of the fit looks at it: no phase begins, or goes on for long
        assert clock.now - look <= 40 + 0.2 * looks


def test_the_clock_starts_before_the_data_are_checked(monkeypatch):
    made, checked = [], []

    class Watched(Budget):
        def __init__(self, *args):
            made.append(len(checked))
            super().__init__(*args)

    monkeypatch.setattr(_running, "Budget", Watched)
    for module in ("dp_means", "hdp_means", "_fitted_topics", "variational", "_features"):
        estimators = importlib.import_module(f"kfree.estimators.{module}")
        original = estimators.check_table
        monkeypatch.setattr(
            estimators,
            "check_table",
            lambda *args, original=original, **more: checked.append(1) or original(*args, **more),
        )
    for name in ("lam", "number", "radius", "shared", "topics", "mixture", "features"):
        checked.clear()
        FITS[name].run()
    assert made == [0] * 7


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_without_any_time_there_is_a_model_and_a_warning(seconds):
    for name, fit in FITS.items():
        model = type(fit.estimator)(**{**fit.estimator.get_params(), "max_time": seconds})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(fit.X) if fit.groups is None else model.fit(fit.X, groups=fit.groups)
        assert any("max_time" in str(warning.message) for warning in told), name
        check(model, fit)
        assert not model.converged_


def test_given_topics_are_there_even_if_there_was_no_time_to_choose_them():
    X = counts(300, 80, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert HDPTopics(n_topics=7, max_time=0.0).fit(X).n_topics_ == 7


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(name, monkeypatch):
    fit = FITS[name]
    model = fit.run()
    before = dict(vars(model))
    publish = type(model)._publish

    def fail(self, *args):
        publish(self, *args)
        raise MemoryError

    monkeypatch.setattr(type(model), "_publish", fail)
    narrower = fit.X[:, :-1]
    groups = {} if fit.groups is None else {"groups": fit.groups}
    with pytest.raises(MemoryError):
        model.fit(narrower, **groups)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
