"""Ctrl-C at any moment of a fit of topics leaves a model that fits together and can be used."""

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kfree.inference.topics as topics_room
from kfree import HDPTopics
from support.small_corpora import planted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals differ")

ROOM = str(Path(topics_room.__file__).parent)
SEARCHES = {
    "default": HDPTopics(n_topics_init=50),
    "refined": HDPTopics(mix=0, refine="collapsed", tol=0, n_topics_init=40),
    "given number": HDPTopics(n_topics=10, n_topics_init=50),
    "paper": HDPTopics(mix=0, search="paper", tol=0, n_topics_init=40),
}


@contextmanager
def sigint_after(seconds):
    """A real signal, that interrupts only what is inside; yields whether it came, as a list that is filled then."""
    came, inside = [], True

    def interrupt(number, frame):
        if inside:
            came.append(number)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield came
    finally:
        inside = False
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


def check_usable(model, X):
    K, owner = model.n_topics_, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    tokens = np.zeros((X.shape[0], K))
    np.add.at(tokens, (owner, model.labels_), X.data)
    assert_array_equal(tokens, model.doc_topic_.toarray())
    assert model.components_.shape == model.topic_word_counts_.shape == (K, X.shape[1])
    assert (model.components_ > 0).all()
    assert_allclose(model.components_.sum(axis=1), 1.0)
    assert np.isfinite(model.objective_)
    assert model.objective_ == model.objective_trace_[-1]
    assert (np.diff(model.objective_trace_) <= 1e-9 * np.abs(model.objective_trace_[0])).all()
    assert model.n_iter_ >= 1
    for hard in (False, True):
        assert_allclose(model.transform(X[:5], hard=hard).sum(axis=1), 1.0)
    assert np.isfinite(model.score(X[:5]))


def interrupted(fit, seconds):
    """The model of a fit that is interrupted, and whether that was in time; None if there was nothing to keep yet."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with sigint_after(seconds) as came:
                model = fit()
        except KeyboardInterrupt as error:
            places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            assert not any("/kfree/inference/" in place for place in places)
            return None
    assert any("interrupted" in str(warning.message) for warning in said) or not came
    return model


def spread_over(fit, count, seed):
    """Times at random over a fit, from the first moment on."""
    fit()
    start = time.perf_counter()
    fit()
    rng = np.random.default_rng(seed)
    return (np.arange(count) + rng.random(count)) / count * (time.perf_counter() - start)


@pytest.fixture(scope="module")
def corpus():
    return planted(D=700, V=1000, K=15, spread=0.3)[0]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_signal_at_any_time_leaves_a_model(corpus, name):
    def fit():
        return clone(SEARCHES[name]).fit(corpus)

    for seconds in spread_over(fit, 4, seed=len(name)):
        model = interrupted(fit, seconds)
        if model is not None:
            check_usable(model, corpus)


def test_a_signal_in_a_later_batch_keeps_the_known_topics(corpus):
    first = HDPTopics(n_topics_init=40, random_state=0)

    def fit():
        model = clone(first).partial_fit(corpus[:300])
        earlier.append(model.topic_word_counts_)
        return model.partial_fit(corpus[300:])

    earlier = []
    for seconds in spread_over(fit, 4, seed=0):
        earlier.clear()
        model = interrupted(fit, seconds)
        if model is not None:
            check_usable(model, corpus[300:])
            assert model.n_topics_ >= len(earlier[0])
            assert_allclose(model.topic_word_counts_.sum(), earlier[0].sum() + corpus[300:].sum(), rtol=1e-4)


class Interrupter:
    """Raises KeyboardInterrupt at the n-th line that a search executes; counts them if there is no n."""

    def __init__(self, n=None):
        self.n, self.lines, self.searching = n, 0, False

    def __call__(self, frame, event, arg):
        self.searching |= frame.f_code.co_name in ("anneal_topics", "paper_topics")
        if not (self.searching and frame.f_code.co_filename.startswith(ROOM)):
            return None if self.searching else self
        if event == "line":
            self.lines += 1
            if self.lines == self.n:
                raise KeyboardInterrupt
        return self

    @contextmanager
    def watching(self):
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(before)


@pytest.mark.parametrize("name", SEARCHES)
def test_an_interrupt_at_any_line_of_a_search_leaves_a_model(name):
    X = planted(D=40, V=50, K=3, length=40)[0]

    def fit(watcher):
        with watcher.watching():
            return clone(SEARCHES[name]).set_params(n_topics_init=6, **few).fit(X)

    few = {"n_topics": 3} if name == "given number" else {}
    count = Interrupter()
    fit(count)
    rng = np.random.default_rng(0)
    for n in np.sort(rng.choice(count.lines, 20, replace=False)) + 1:
        with pytest.warns(match="interrupted"):
            model = fit(Interrupter(n))
        check_usable(model, X)
