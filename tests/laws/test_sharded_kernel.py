"""KernelDPMixture on rows in blocks: the mixture of memory, however rows are cut and whatever is lost."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree import KernelDPMixture
from kfree.rows.blocks import NearBlocks
from support.in_blocks import fit_in_blocks
from support.numbers import set_numbers

SHAPES = [("gaussian", "full"), ("gaussian", "diag"), ("gaussian", "spherical"), ("multinomial", "full")]
SHAPES += [("bernoulli", "full")]


@pytest.fixture
def small(monkeypatch):
    """Tables of a few hundred rows are long ones, with samples and races."""
    set_numbers(monkeypatch, "CLUSTERS", search_up_to=300)
    set_numbers(monkeypatch, "HOW_MANY", contents=250, rows=150)
    set_numbers(monkeypatch, "EMBEDDING", evaluations=1000.0, least_features=60)


def draw(family, seed, n=800):
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=n)
    if family == "gaussian":
        return rng.normal([[-6.0, 0, 1], [0, 300, 1], [6, 900, 1]], [1, 30, 1e-3], size=(n, 3, 3))[range(n), label]
    chance = rng.dirichlet(np.full(5, 0.3), size=3)[label]
    if family == "multinomial":
        return np.stack([rng.multinomial(20, p) for p in chance]).astype(float)
    return (rng.random((n, 5)) < np.clip(3 * chance, 0.05, 0.95)).astype(float)


def fitted(model, X, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, sample_weight=weight)


def in_blocks(model, X, weight, cuts):
    with pytest.MonkeyPatch.context() as patch:
        return fit_in_blocks(model, X, weight, cuts, patch)


NAMES = ("weights_", "means_", "support_", "labels_", "objective_trace_", "ridge_", "gap_", "mmd2_", "n_candidates_")


def assert_same(one, two):
    for name in (*NAMES, *(name for name in ("covariances_", "bandwidth_") if hasattr(two, name))):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert one.converged_ == two.converged_
    assert one.explain() == two.explain()


def assert_close(blocks, memory, X):
    """The margins that the guide promises: the same candidates, weights and density but for rounding."""
    assert blocks.n_candidates_ == memory.n_candidates_
    assert_array_equal(blocks.support_, memory.support_)
    assert_allclose(blocks.weights_, memory.weights_, atol=1e-9)
    assert_allclose(blocks.means_, memory.means_, rtol=1e-9)
    assert_allclose(blocks.score_samples(X), memory.score_samples(X), rtol=1e-9, atol=1e-9)
    assert np.mean(blocks.labels_ != memory.labels_) < 0.01


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("family", "covariance"), SHAPES)
@settings(max_examples=4)
@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 800), max_size=6),
    weights=st.sampled_from(["none", "whole", "real"]),
    kind=st.sampled_from(["f8", "f4", "copies"]),
    candidates=st.sampled_from(["clusters", "local", "prior"]),
)
def test_cuts_change_no_bit_and_memory_has_the_same_mixture(family, covariance, seed, cuts, weights, kind, candidates):
    rng = np.random.default_rng(seed)
    X = draw(family, seed)
    X = X.astype("f4") if kind == "f4" else X[rng.integers(400, size=800)] if kind == "copies" else X
    weight = {"none": None, "whole": rng.integers(0, 4, 800), "real": rng.gamma(1.0, size=800)}[weights]
    asked = {"family": family, "covariance": covariance, "candidates": candidates, "n_candidates": 12}
    asked |= {"random_state": seed % 1000}
    one = in_blocks(KernelDPMixture(**asked), X, weight, [])
    assert_same(in_blocks(KernelDPMixture(**asked), X, weight, cuts), one)
    assert_close(one, fitted(KernelDPMixture(**asked), X, weight), X)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("asked", [{"refine": True}, {"ridge": "auto"}, {"bandwidth": [0.5, 2.0]}, {"features": 77}])
def test_what_follows_upon_the_sums_is_done_as_in_memory(asked):
    X = draw("gaussian", 1)
    one = in_blocks(KernelDPMixture(random_state=0, **asked), X, None, [])
    assert_same(in_blocks(KernelDPMixture(random_state=0, **asked), X, None, [1, 70, 400]), one)
    assert_close(one, fitted(KernelDPMixture(random_state=0, **asked), X), X)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", ["multinomial", "bernoulli"])
def test_sparse_blocks_are_dense_blocks(family):
    X = draw(family, 3)
    one = in_blocks(KernelDPMixture(family=family, random_state=0), sp.csr_matrix(X), None, [])
    assert_same(in_blocks(KernelDPMixture(family=family, random_state=0), sp.csr_matrix(X), None, [7, 500]), one)
    assert_close(one, fitted(KernelDPMixture(family=family, random_state=0), sp.csr_matrix(X)), sp.csr_matrix(X))


@pytest.mark.usefixtures("small")
def test_random_features_stand_for_the_kernel():
    X, new = draw("gaussian", 2), draw("gaussian", 1000)
    blocks = in_blocks(KernelDPMixture(random_state=0, features=4000), X, None, [100])
    memory = fitted(KernelDPMixture(random_state=0, features=None), X)
    assert abs(blocks.score(new) - memory.score(new)) < 0.05
    assert abs(blocks.mmd2_ - memory.mmd2_) < 5e-3


@pytest.mark.usefixtures("small")
def test_neither_the_order_of_the_rows_nor_copies_for_weights_change_a_bit():
    X, weight = draw("gaussian", 4), np.random.default_rng(0).integers(0, 4, 800)
    one = in_blocks(KernelDPMixture(random_state=0), X, weight, [100])
    order = np.random.default_rng(1).permutation(800)
    two = in_blocks(KernelDPMixture(random_state=0), X[order], weight[order], [300, 301])
    assert_array_equal(two.labels_, one.labels_[order])
    copies = in_blocks(KernelDPMixture(random_state=0), np.repeat(X, weight, axis=0), None, [300, 301])
    assert_array_equal(copies.labels_, np.repeat(one.labels_, weight))
    for name in NAMES:
        if name != "labels_":
            assert_array_equal(getattr(two, name), getattr(one, name), err_msg=name)
            assert_array_equal(getattr(copies, name), getattr(one, name), err_msg=name)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", ["gaussian", "multinomial"])
def test_what_was_kept_beside_blocks_may_be_lost_at_any_time(family, monkeypatch):
    X = draw(family, 5)
    whole = in_blocks(KernelDPMixture(family=family, random_state=0), X, None, [])
    rng, honest, lost = np.random.default_rng(0), NearBlocks.ask, []

    def forgetful(self, question, arguments, merge):
        for beside in self._beside:
            if rng.random() < 0.5:
                lost.append(bool(beside))
                beside.clear()
        if rng.random() < 0.3:  # a task that is run twice
            honest(self, question, arguments, merge)
        return honest(self, question, arguments, merge)

    monkeypatch.setattr(NearBlocks, "ask", forgetful)
    spread = in_blocks(KernelDPMixture(family=family, random_state=0), X, None, [100, 250, 600])
    assert sum(lost) > 5
    assert_same(spread, whole)


@pytest.mark.usefixtures("small")
def test_an_interrupt_leaves_the_best_so_far_or_nothing(monkeypatch):
    X, honest, ends = draw("gaussian", 6), NearBlocks.ask, []
    for place in range(1, 15):
        calls = []

        def interrupted(self, question, arguments, merge, calls=calls, place=place):
            calls.append(question)
            if len(calls) == place:
                raise KeyboardInterrupt
            return honest(self, question, arguments, merge)

        monkeypatch.setattr(NearBlocks, "ask", interrupted)
        model = KernelDPMixture(random_state=0)
        try:
            in_blocks(model, X, None, [100, 600])
        except KeyboardInterrupt:
            assert not hasattr(model, "labels_")
            continue
        assert_array_equal(model.labels_, model.predict(X))
        ends.append(model.converged_)
    assert ends[0] is False  # of some rows
    assert ends[-1] is True


@pytest.mark.usefixtures("small")
def test_without_time_there_is_a_mixture_of_the_sample():
    model = in_blocks(KernelDPMixture(max_time=0, random_state=0), draw("gaussian", 7), None, [100])
    assert not model.converged_
    assert model.labels_.shape == (800,)


@pytest.mark.usefixtures("small")
def test_earlier_components_keep_their_numbers():
    X = draw("gaussian", 8)
    before = fitted(KernelDPMixture(random_state=0), X)
    again = before.means_[::-1].copy()
    model = in_blocks(KernelDPMixture(random_state=0, match_to=again), X, None, [100, 300])
    whole = fitted(KernelDPMixture(random_state=0, match_to=again), X)
    assert_array_equal(model.matched_, whole.matched_)
    assert_close(model, whole, X)


@pytest.mark.usefixtures("small")
def test_rows_that_do_not_differ_are_one_component():
    with pytest.MonkeyPatch.context() as patch:
        model = fit_in_blocks(KernelDPMixture(random_state=0), np.full((400, 2), 1 / 3), None, [100], patch)
    assert model.n_components_ == 1
    assert_allclose(model.covariances_, fitted(KernelDPMixture(), np.full((400, 2), 1 / 3)).covariances_)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(scale):
    X = draw("gaussian", 9)
    one = in_blocks(KernelDPMixture(random_state=0), scale * X, None, [100])
    assert_close(one, fitted(KernelDPMixture(random_state=0), scale * X), scale * X)


class TestErrors:
    @pytest.mark.usefixtures("small")
    def test_the_kernel_itself_is_refused_with_a_way_out(self):
        with pytest.raises(ValueError, match=r"features=None evaluates the kernel.*kfree\.read"):
            in_blocks(KernelDPMixture(features=None), draw("gaussian", 0), None, [100])

    @pytest.mark.parametrize(
        ("family", "entry", "words"),
        [
            ("gaussian", np.nan, r"Block 1 of X .*NaN: X\[400, 1\]"),
            ("bernoulli", 0.5, r"Block 1 of X .*zeros and ones, but X\[400, 1\]"),
            ("multinomial", -1.0, r"Block 1 of X .*X\[400, 1\]"),
        ],
    )
    def test_bad_entries_are_found_in_their_block(self, family, entry, words):
        X = draw(family, 0)
        X[500, 1] = entry
        with pytest.raises(ValueError, match=words):
            in_blocks(KernelDPMixture(family=family), X, None, [100])

    def test_rows_of_zeros_are_no_documents(self):
        X = draw("multinomial", 0)
        X[500] = 0
        with pytest.raises(ValueError, match=r"Block 1 of X .*rows that are all zero.*rows 400"):
            in_blocks(KernelDPMixture(family="multinomial"), X, None, [100])

    @pytest.mark.parametrize(("weight", "words"), [(np.zeros(800), "zero for every row"), (-np.ones(800), ">= 0")])
    def test_bad_weights(self, weight, words):
        with pytest.raises(ValueError, match=words):
            in_blocks(KernelDPMixture(), draw("gaussian", 0), weight, [100])

    @pytest.mark.usefixtures("small")
    def test_too_large_entries_are_refused_as_in_memory(self):
        X = draw("gaussian", 0)
        X[3, 0] = 1e160
        with pytest.raises(ValueError) as here:
            fitted(KernelDPMixture(), X)
        with pytest.raises(ValueError, match=re.escape(str(here.value)[:30])):
            in_blocks(KernelDPMixture(), X, None, [100])


def test_few_rows_are_fitted_in_memory():
    X = draw("gaussian", 0)
    assert_same(in_blocks(KernelDPMixture(features=None), X, None, [100]), fitted(KernelDPMixture(features=None), X))
