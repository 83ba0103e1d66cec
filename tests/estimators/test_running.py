"""Whoever wants to know how a fit goes is told: by logging, by ``verbose``, by callbacks; who does not pays nothing."""

import logging
import re
import subprocess
import sys
import warnings
from io import StringIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree import DPMeans, GibbsDPMixture, GibbsIBP, HDPMeans, HDPTopics, KFeatures, VariationalDPMixture
from kfree.estimators import _running
from kfree.inference.loop import Budget, Info
from support.short_fits import FITS, ShortFit, check, clouds, counts, features

CHAINS = {
    "partitions": ShortFit(GibbsDPMixture(n_samples=60, burn_in=40, random_state=0), clouds(60, 2, 3, 6.0)),
    "allocations": ShortFit(GibbsIBP(n_samples=60, burn_in=40, random_state=0, init="empty"), features(40, 5, 2)),
}
SHARED = ShortFit(HDPMeans(8.0, 60.0, random_state=0), clouds(900, 3, 8), np.arange(900) % 7)
QUICK = FITS | CHAINS | {"shared": SHARED}


# Logging and verbose


@pytest.mark.parametrize("name", QUICK)
def test_verbose_prints_what_is_logged_and_leaves_no_trace(name, caplog, capsys):
    cls = type(QUICK[name].estimator).__name__
    QUICK[name].run(verbose=1)
    printed = capsys.readouterr().out.splitlines()
    assert printed
    assert all(line.startswith(f"[{cls}] ") for line in printed)
    logger = logging.getLogger(f"kfree.{cls}")
    assert not logger.handlers
    assert logger.level == logging.NOTSET
    assert not caplog.records  # the root logger wants warnings only
    caplog.set_level(logging.INFO, logger="kfree")
    QUICK[name].run()
    logged = [record.getMessage() for record in caplog.records if record.name == f"kfree.{cls}"]
    assert logged
    if name not in CHAINS:  # how often these are looked at depends on the clock
        assert [f"[{cls}] {message}" for message in logged] == printed
    assert capsys.readouterr().out == ""


def test_verbose_2_tells_more():
    lines = []
    for verbose in (0, 1, 2):
        out, sys.stdout = sys.stdout, StringIO()
        try:
            KFeatures(2, n_init=3, verbose=verbose).fit(features(60, 4, 2))
            lines.append(sys.stdout.getvalue().splitlines())
        finally:
            sys.stdout = out
    assert lines[0] == []
    assert [line.split(":")[0] for line in lines[1]] == [
        "[KFeatures] restart 1 of 3 (33 %)",
        "[KFeatures] restart 2 of 3 (66 %)",
        "[KFeatures] restart 3 of 3 (100 %)",
    ]
    assert set(lines[1]) <= set(lines[2])
    assert any("K-features, pass 1" in line for line in lines[2])


@pytest.mark.parametrize("name", QUICK)
def test_if_nobody_listens_nothing_is_told(name, monkeypatch):
    reports = []

    class Watched(Budget):
        def __init__(self, max_time=None, report=None, each=True):
            reports.append(report)
            super().__init__(max_time, report, each)
            assert not self.told

    monkeypatch.setattr(_running, "Budget", Watched)
    QUICK[name].run()
    assert set(reports) == {None}


@pytest.mark.parametrize("name", ["auto", "topics", "features", "mixture"])
def test_who_listens_does_not_change_the_result(name, caplog):
    before = FITS[name].result()
    caplog.set_level(logging.DEBUG, logger="kfree")
    assert FITS[name].result() == before


def test_topics_are_told_of_in_few_lines_that_say_how_far(capsys):
    HDPTopics(n_topics_init=15, verbose=1).fit(counts(300, 200, 4))
    said = capsys.readouterr().out
    assert "free energy" not in said  # it rises as soft passes cool
    assert len(said.splitlines()) < 40
    assert "soft, pass 25 of 25 (100 %): 15 topics" in said
    assert "merge 1: 13 topics" in said
    objectives = [float(value) for value in re.findall(r"objective (\S+)", said)]
    assert objectives
    assert objectives == sorted(objectives, reverse=True)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_say_how_far_they_are(name, capsys):
    CHAINS[name].run(verbose=1)
    shares = [int(share) for share in re.findall(r"\((\d+) %\)", capsys.readouterr().out)]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert len(shares) <= 12


def test_the_choice_of_a_number_of_clusters_is_told_of(capsys):
    FITS["auto"].run(verbose=1)
    said = capsys.readouterr().out
    for phase in ("path, step", "table without groups", "all rows, pass"):
        assert f"[DPMeans] {phase} 1" in said
    assert re.search(r"table without groups (\d+) of \1 \(100 %\)", said)


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(1, 50),
    of=st.integers(0, 50),
    value=st.floats(),
    changed=st.floats(0, 1) | st.just(np.nan),
    number=st.integers(-1, 5),
)
def test_a_line_holds_numbers_only_where_there_are_any(count, of, value, changed, number):
    words = _running.Words(moves=True)
    said = words.say("some phase", count, Info(value, 0.0, changed, 0, number, of=max(count, of) if of else 0))
    assert said.startswith(f"some phase, pass {count}")
    assert "nan" not in said
    assert "inf" not in said
    assert "-1 " not in said or value < 0
    assert not re.search(r"\((1[01]\d|[2-9]\d\d) %\)", said.replace("(100 %)", ""))


# Callbacks of scikit-learn


class Passes:
    """A callback that counts passes and stops a fit after some."""

    def __init__(self, most=10**9):
        self.most, self.told, self.calls = most, [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        if context.parent is None:
            self.calls.append("begin")

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        if context.parent is None:
            self.calls.append("end")
            return False
        self.told.append(metadata)
        return len(self.told) >= self.most


@pytest.mark.parametrize("name", QUICK)
def test_a_callback_may_stop_a_fit_and_the_best_so_far_is_kept(name):
    pytest.importorskip("sklearn.callback")
    fit, every, few = QUICK[name], Passes(), Passes(3)
    groups = {} if fit.groups is None else {"groups": fit.groups}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(fit.estimator).set_callbacks(every).fit(fit.X, **groups)
        stopped = clone(fit.estimator).set_callbacks(few)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        stopped.fit(fit.X, **groups)
    assert every.calls == few.calls == ["setup", "begin", "end", "teardown"]
    if len(every.told) <= 3:
        return  # it ended by itself
    assert 3 <= len(few.told) <= 6  # phases that make a pass in any case do so
    if fit in CHAINS.values():
        assert stopped.n_iter_ < 100
    else:
        check(stopped, fit)
    assert not stopped.converged_
    assert any("was stopped by a callback" in str(one.message) for one in said)


def test_callbacks_are_told_what_was_found():
    pytest.importorskip("sklearn.callback")
    passes = Passes()
    model = DPMeans(radius=30.0).set_callbacks(passes).fit(clouds(500, 2, 3, 6.0))
    last = passes.told[-1]
    assert last["n_clusters"] == model.n_clusters_
    assert last["objective"] == pytest.approx(model.objective_)


def test_a_fit_that_fails_tears_its_callbacks_down_and_leaves_the_estimator_as_it_was():
    pytest.importorskip("sklearn.callback")
    passes = Passes()
    model = DPMeans(radius=30.0).set_callbacks(passes)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[np.nan], [1.0]])
    assert passes.calls == ["setup", "begin", "teardown"]
    assert vars(model) == before

    def fail(*_, **__):
        raise RuntimeError("of the callback")

    passes.on_fit_task_end = fail
    with pytest.raises(RuntimeError, match="of the callback"):
        model.fit(clouds(100, 2, 3))
    assert passes.calls[-1] == "teardown"
    assert vars(model) == before


def test_callbacks_survive_clones_and_hear_of_batches():
    pytest.importorskip("sklearn.callback")
    passes, X = Passes(), clouds(3000, 2, 8)
    model = clone(DPMeans(radius=3.0).set_callbacks(passes))
    model.partial_fit(X[:1000]).partial_fit(X[1000:])
    assert passes.calls == 2 * ["setup", "begin", "end", "teardown"]
    passes.most = 1
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        model.fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_progress_bar_of_scikit_learn_shows_a_fit(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X = clouds(400, 2, 3, 6.0)
    VariationalDPMixture().set_callbacks(callback.ProgressBar()).fit(X)
    assert "VariationalDPMixture - fit" in capsys.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_pipeline(StandardScaler(), DPMeans()).set_callbacks(callback.ProgressBar()).fit(X)
    assert "DPMeans - fit" in capsys.readouterr().out


def test_without_callbacks_in_scikit_learn_everything_else_works():
    code = (
        "import sys, sklearn.neighbors, sklearn.exceptions, sklearn.utils.validation\n"
        "sys.modules['sklearn.callback'] = None\n"
        "import kfree\n"
        "model = kfree.DPMeans(n_clusters=2, verbose=1).fit([[0.0], [0.1], [9.0]])\n"
        "print(model.n_clusters_, hasattr(model, 'set_callbacks'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "2 False", done.stderr
