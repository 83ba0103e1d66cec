"""Rows in blocks: the answers of the same rows in memory to the last bit, however they are cut and whatever is lost."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kfree import DPMeans
from kfree.rows.blocks import NearBlocks
from support.family_data import NAMES, draw_rows, make
from support.in_blocks import fit_in_blocks
from support.numbers import set_numbers

ASKS = ("radius", "lam", "n_clusters", "auto")


@pytest.fixture
def small(monkeypatch):
    """Tables of a few hundred rows are long ones, with samples and races."""
    set_numbers(monkeypatch, "CLUSTERS", search_up_to=300, first_sample=50, last_sample=300)
    set_numbers(monkeypatch, "HOW_MANY", contents=250, rows=150)


def settings_of(ask, X, name):
    kind = {"divergence": make(name, X.shape[1])}
    dense = X.toarray() if sp.issparse(X) else X
    spread = float(np.var(dense, axis=0).sum()) if name in ("sqeuclidean", "mahalanobis") else 1.0
    return kind | {"radius": {"radius": spread / 2}, "lam": {"lam": 20 * spread}, "n_clusters": {"n_clusters": 5}}.get(
        ask, {}
    )


def in_memory(model, X, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, sample_weight=weight)


def assert_same(one, two):
    assert_array_equal(one.labels_, two.labels_)
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert_array_equal(one.objective_trace_, two.objective_trace_)
    assert_array_equal(one.probabilities_, two.probabilities_)
    for name in ("inertia_", "objective_", "lam_", "lam_window_", "radius_", "n_iter_", "converged_"):
        assert getattr(one, name) == getattr(two, name), name
    assert one.explain() == two.explain()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3)
@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 800), max_size=6),
    weights=st.sampled_from(["none", "whole", "real"]),
    kind=st.sampled_from(["f8", "f4", "copies"]),
    smoothing=st.sampled_from([0.0, 0.1]),
)
def test_blocks_change_no_bit(name, ask, seed, cuts, weights, kind, smoothing):
    rng = np.random.default_rng(seed)
    X = draw_rows(name, 800, 3, seed=seed)
    X = X.astype("f4") if kind == "f4" else X[rng.integers(400, size=800)] if kind == "copies" else X
    weight = {"none": None, "whole": rng.integers(0, 4, 800), "real": rng.gamma(1.0, size=800)}[weights]
    asked = settings_of(ask, X, name)
    if asked["divergence"].smoothable:
        asked["smoothing"] = smoothing
    refused = ""
    try:
        whole = in_memory(DPMeans(**asked), X, weight)
    except ValueError as error:
        refused = re.escape(str(error)[:40])
    with pytest.MonkeyPatch.context() as patch:
        if refused:
            with pytest.raises(ValueError, match=refused):
                fit_in_blocks(DPMeans(**asked), X, weight, cuts, patch)
        else:
            assert_same(fit_in_blocks(DPMeans(**asked), X, weight, cuts, patch), whole)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "poisson", "bernoulli", "cosine"])
def test_sparse_blocks_change_no_bit(name, ask, monkeypatch):
    X = sp.csr_matrix(draw_rows(name, 800, 5, seed=3).astype(float))
    model = DPMeans(**settings_of(ask, X, name))
    whole = in_memory(model, X, None)
    set_numbers(monkeypatch, "CLUSTERS", search_up_to=300, first_sample=50, last_sample=300)
    with pytest.MonkeyPatch.context() as patch:
        spread = fit_in_blocks(DPMeans(**settings_of(ask, X, name)), X, None, [100, 100, 333], patch)
    assert_same(spread, whole)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["kl", "cosine"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_in_other_powers_of_two_change_no_bit(name, size, sparse):
    X = size * draw_rows(name, 800, 3, seed=1).astype(float)
    X = sp.csr_matrix(X) if sparse else X
    whole = in_memory(DPMeans(divergence=name, n_clusters=4), X, None)
    with pytest.MonkeyPatch.context() as patch:
        assert_same(fit_in_blocks(DPMeans(divergence=name, n_clusters=4), X, None, [1, 500], patch), whole)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["mahalanobis", "binomial", "negative_binomial"])
def test_what_a_family_learns_from_all_rows_changes_no_bit(name):
    X = draw_rows(name, 800, 3, seed=7)
    whole = in_memory(DPMeans(divergence=name, n_clusters=4), X, None)
    with pytest.MonkeyPatch.context() as patch:
        spread = fit_in_blocks(DPMeans(divergence=name, n_clusters=4), X, None, [1, 500], patch)
    assert_same(spread, whole)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("weighting", ["length", "relative"])
def test_rows_that_weigh_by_their_length_change_no_bit(weighting):
    X = np.random.default_rng(0).poisson(3.0, size=(800, 4)) + 1
    whole = in_memory(DPMeans(divergence="kl", weighting=weighting, n_clusters=4), X, None)
    with pytest.MonkeyPatch.context() as patch:
        spread = fit_in_blocks(DPMeans(divergence="kl", weighting=weighting, n_clusters=4), X, None, [1, 500], patch)
    assert_same(spread, whole)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", ["sqeuclidean", "mahalanobis", "kl", "bernoulli"])
def test_what_was_kept_beside_blocks_may_be_lost_at_any_time(name, ask, monkeypatch):
    X = draw_rows(name, 800, 3, seed=5)
    whole = in_memory(DPMeans(**settings_of(ask, X, name)), X, None)
    rng, honest = np.random.default_rng(0), NearBlocks.ask
    lost = []

    def forgetful(self, question, arguments, merge):
        for beside in self._beside:
            if rng.random() < 0.5:
                lost.append(bool(beside))
                beside.clear()
        if rng.random() < 0.3:  # a task that is run twice
            honest(self, question, arguments, merge)
        return honest(self, question, arguments, merge)

    monkeypatch.setattr(NearBlocks, "ask", forgetful)
    with pytest.MonkeyPatch.context() as patch:
        spread = fit_in_blocks(DPMeans(**settings_of(ask, X, name)), X, None, [100, 250, 600], patch)
    assert sum(lost) > 5
    assert_same(spread, whole)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("place", [3, 12, 20])
def test_an_interrupt_leaves_the_best_so_far_or_nothing(place, monkeypatch):
    X, calls, honest = draw_rows("sqeuclidean", 800, 3, seed=6), [], NearBlocks.ask

    def interrupted(self, question, arguments, merge):
        calls.append(question)
        if len(calls) == place:
            honest(self, question, arguments, merge)  # it was done, and nobody heard of it
            raise KeyboardInterrupt
        return honest(self, question, arguments, merge)

    monkeypatch.setattr(NearBlocks, "ask", interrupted)
    model = DPMeans(radius=0.3)
    with pytest.MonkeyPatch.context() as patch:
        try:
            fit_in_blocks(model, X, None, [100, 600], patch)
        except KeyboardInterrupt:
            assert not hasattr(model, "labels_")
            return
    assert len(calls) > place
    assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.usefixtures("small")
def test_more_of_the_rows_than_of_their_contents_are_fitted_by_their_contents(monkeypatch):
    X = np.repeat(np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]), 300, axis=0)
    whole = in_memory(DPMeans(radius=4.0), X, None)
    with pytest.MonkeyPatch.context() as patch:
        spread = fit_in_blocks(DPMeans(radius=4.0), X, None, [10, 700], patch)
    assert_same(spread, whole)
    assert whole.n_clusters_ == 2


class TestErrors:
    @pytest.mark.usefixtures("small")
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"algorithm": "serial", "radius": 1.0}, "algorithm='serial' visits rows one by one.*kfree.read"),
            ({"algorithm": "collapsed", "radius": 1.0}, "algorithm='collapsed'"),
            ({"order": np.arange(800)}, "permutation"),
            ({"init": "k-means++", "radius": 1.0}, "a pass over all rows for every centre"),
            ({"init": np.zeros((1, 3)), "lam": 5.0}, 'search="points"'),
            ({"radius": 1.0, "search": "full"}, 'search="points"'),
        ],
    )
    def test_what_looks_at_rows_one_by_one_is_refused_with_a_way_out(self, settings, words, monkeypatch):
        with pytest.raises(ValueError, match=words):
            fit_in_blocks(DPMeans(**settings), draw_rows("sqeuclidean", 800, 3), None, [400], monkeypatch)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_bad_entries_are_found_in_their_block(self, value, monkeypatch):
        X = draw_rows("sqeuclidean", 800, 3)
        X[500, 1] = value
        with pytest.raises(ValueError, match=r"Block 1 of X .*X\[100, 1\]"):
            fit_in_blocks(DPMeans(), X, None, [400], monkeypatch)

    def test_weights_that_are_all_zero_are_an_error(self, monkeypatch):
        with pytest.raises(ValueError, match="zero for every row"):
            fit_in_blocks(DPMeans(), draw_rows("sqeuclidean", 800, 3), np.zeros(800), [400], monkeypatch)

    @pytest.mark.usefixtures("small")
    def test_more_clusters_than_rows_differ_are_an_error(self, monkeypatch):
        X = np.repeat(np.arange(12.0).reshape(4, 3), 200, axis=0)
        with pytest.raises(ValueError, match="only 4 different rows"):
            fit_in_blocks(DPMeans(n_clusters=9), X, None, [400], monkeypatch)
