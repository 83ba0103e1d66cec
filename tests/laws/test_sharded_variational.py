"""VariationalDPMixture on rows in blocks: searched in a sample by content, closed over all rows, wherever they lie."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree import VariationalDPMixture
from kfree.inference.variational.posterior import best_mixture, measure
from kfree.models.mixture import MixtureProblem, MixtureWish
from kfree.models.sharded_units import InUnits, in_floats
from kfree.models.sharded_variational import Run, Runs, TiedBlocks
from kfree.rows.blocks import ChangedBlocks, NearBlocks, RowBlock
from kfree.structures import StickBreaking
from support.in_blocks import fit_in_blocks
from support.numbers import set_numbers

FAMILIES = ("gaussian", "diag", "spherical", "multinomial", "poisson", "bernoulli")
COUNTS = FAMILIES[3:]


@pytest.fixture
def small(monkeypatch):
    """Tables of a few hundred rows are long ones, with samples and races."""
    set_numbers(monkeypatch, "CLUSTERS", search_up_to=300)
    set_numbers(monkeypatch, "HOW_MANY", contents=400, rows=300)


def draw(family, seed, n=800):
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=n)
    if family in FAMILIES[:3]:
        scale = [1.0, 1.0, 1.0] if family == "spherical" else [1.0, 30.0, 1e-3]
        centres = np.array([[-9.0, 0, 1], [0, 9, 1], [9, 0, 7]]) * scale
        return rng.normal(centres, scale, size=(n, 3, 3))[range(n), label]
    chance = np.array([[8, 1, 1, 1, 1], [1, 8, 8, 1, 1], [1, 1, 1, 1, 8]]) / 9
    if family == "bernoulli":
        return (rng.random((n, 5)) < chance[label]).astype(float)
    shares = chance / chance.sum(axis=1, keepdims=True)
    counts = [rng.multinomial(60, p) for p in shares[label]]
    return np.array(counts).astype(float)


def in_blocks(X, cuts, weight=None, **asked):
    with pytest.MonkeyPatch.context() as patch:
        return fit_in_blocks(VariationalDPMixture(**asked), X, weight, cuts, patch)


NAMES = ("weights_", "means_", "labels_", "free_energy_trace_", "free_energy_", "tied_free_energy_", "n_nodes_")
NAMES += ("prior_penalty_", "tail_weight_", "n_iter_", "converged_", "means_sd_")


def assert_same(one, two):
    """To the last bit."""
    for name in (*NAMES, *(["covariances_"] if hasattr(one, "covariances_") else [])):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def assert_close(one, two):
    """The margin that the guide promises between different blocks."""
    assert one.n_components_ == two.n_components_
    assert abs(one.free_energy_ - two.free_energy_) <= 1e-9 * abs(two.free_energy_)
    assert_allclose(one.weights_, two.weights_, atol=1e-7)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=4)
@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 800), max_size=6),
    weights=st.sampled_from(["none", "whole", "real"]),
    kind=st.sampled_from(["f8", "f4", "copies"]),
    prior=st.sampled_from(["learn", "fixed"]),
)
def test_cuts_and_the_order_of_rows_change_no_more_than_rounding(family, seed, cuts, weights, kind, prior):
    rng = np.random.default_rng(seed)
    X = draw(family, seed)
    X = X.astype("f4") if kind == "f4" else X[rng.integers(400, size=800)] if kind == "copies" else X
    weight = {"none": None, "whole": rng.integers(0, 4, 800), "real": rng.gamma(1.0, size=800)}[weights]
    one, order = in_blocks(X, [], weight, family=family, prior=prior), rng.permutation(800)
    again = in_blocks(X[order], cuts, None if weight is None else weight[order], family=family, prior=prior)
    assert_close(again, one)
    assert np.mean(again.labels_ != one.labels_[order]) < 0.01
    assert_array_equal(one.labels_, one.predict(X))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prior", ["learn", "fixed"])
def test_separate_groups_have_the_free_energy_of_memory(family, prior):
    X = draw(family, 1)
    blocks, memory = (
        in_blocks(X, [1, 300], family=family, prior=prior),
        VariationalDPMixture(family=family, prior=prior),
    )
    memory.fit(X)
    assert blocks.n_components_ == memory.n_components_
    energies = [model.free_energy_ + model.prior_penalty_ for model in (blocks, memory)]
    assert energies[0] <= energies[1] + 1e-3 * abs(energies[1])
    assert blocks.converged_


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", FAMILIES)
def test_updates_never_raise_the_free_energy_of_all_rows(family):
    for seed in range(5):
        model = in_blocks(draw(family, seed), [200, 201], family=family, tol=1e-9)
        trace = model.free_energy_trace_
        assert np.all(np.diff(trace) <= 1e-9 * np.abs(trace[0]))
        assert trace[-1] == model.free_energy_ + model.prior_penalty_
        assert model.tied_free_energy_ == model.free_energy_


def blocks_of(X, weight, cuts):
    edges = [0, *sorted(cuts), X.shape[0]]

    def fetch(number):
        part = slice(edges[number], edges[number + 1])
        return RowBlock(X[part], np.empty(0) if weight is None else weight[part], number)

    return NearBlocks(fetch, len(edges) - 1)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_update_is_that_of_the_same_rows_in_memory(family, sparse, weighted):
    """The slow twin: all rows in one table."""
    if sparse and family not in COUNTS:
        return
    rng = np.random.default_rng(0)
    X, weight = draw(family, 2), rng.integers(0, 3, 800) * rng.random(800) if weighted else None
    X = sp.csr_matrix(X) if sparse else X
    problem = MixtureProblem.of(X, weight, MixtureWish.of(family, "learn", StickBreaking(1.0, 1.0)))
    setting, change = problem.setting, in_floats if family in COUNTS else InUnits(problem.units)
    inside = ChangedBlocks(blocks_of(X, weight, [0, 7, 7, 500]), change)
    tied = TiedBlocks(inside, setting.family, problem.units, problem.tied.total)
    assert (tied.size, tied.columns) == (problem.tied.size, problem.tied.columns)
    assert_allclose(tied.base, problem.tied.base, rtol=1e-12)
    found = VariationalDPMixture(family=family).fit(X, sample_weight=weight)
    mixture = found._posterior.mixture
    whole, spread = (measure(setting, rows, mixture, np.arange(mixture.size)) for rows in (problem.tied, tied))
    assert_allclose(spread.energy, whole.energy, rtol=1e-12)
    for one, two in zip(spread.swept.sums, whole.swept.sums):
        assert (one is None and two is None) or (assert_allclose(one, two, rtol=1e-9, atol=1e-9) is None)
    one, two = best_mixture(setting, spread.swept)[0], best_mixture(setting, whole.swept)[0]
    assert_allclose(one.sticks, two.sticks, rtol=1e-9)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", COUNTS)
def test_sparse_blocks_are_dense_blocks(family):
    X = draw(family, 3)
    assert_close(in_blocks(sp.csr_matrix(X), [7, 500], family=family), in_blocks(X, [300], family=family))


@pytest.mark.usefixtures("small")
def test_whole_weights_are_copies_and_rows_without_weight_are_nobody():
    X, weight = draw("gaussian", 4), np.random.default_rng(0).integers(0, 4, 800)
    one = in_blocks(X, [100], weight)
    copies = in_blocks(np.repeat(X, weight, axis=0), [300, 301])
    assert_close(copies, one)
    assert_array_equal(copies.labels_, np.repeat(one.labels_, weight))
    X[weight == 0] = 1e9
    assert_close(in_blocks(X, [100], weight), one)


@pytest.mark.usefixtures("small")
def test_rows_that_weigh_little_together_are_not_counted_once_each():
    """The prior is as strong beside the sample as beside all rows."""
    X, light = draw("gaussian", 5), np.full(800, 0.01)
    blocks, memory = in_blocks(X, [100], light), VariationalDPMixture().fit(X, sample_weight=light)
    assert blocks.n_components_ == memory.n_components_
    assert_allclose(blocks.free_energy_, memory.free_energy_, rtol=1e-3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("family", ["gaussian", "multinomial"])
def test_what_is_lost_run_twice_or_answered_in_another_order_changes_no_bit(family, monkeypatch):
    X, cuts = draw(family, 6), [100, 250, 250, 600]
    weight = np.random.default_rng(0).gamma(1.0, size=800)
    whole = in_blocks(X, cuts, weight, family=family)
    rng, honest, lost = np.random.default_rng(0), NearBlocks.ask, []

    def forgetful(self, question, arguments, merge):
        for beside in self._beside:
            if rng.random() < 0.5:
                lost.append(bool(beside))
                beside.clear()
        if rng.random() < 0.3:  # a task that is run twice
            honest(self, question, arguments, merge)
        numbers = self._numbers
        self._numbers = rng.permutation(numbers).tolist()
        try:
            return honest(self, question, arguments, merge)
        finally:
            self._numbers = numbers

    monkeypatch.setattr(NearBlocks, "ask", forgetful)
    assert_same(in_blocks(X, cuts, weight, family=family), whole)
    assert sum(lost) > 5


@pytest.mark.usefixtures("small")
def test_an_interrupt_leaves_the_best_so_far_or_nothing(monkeypatch):
    X, honest, ends = draw("gaussian", 7), NearBlocks.ask, []
    for place in range(1, 20):
        calls = []

        def interrupted(self, question, arguments, merge, calls=calls, place=place):
            calls.append(question)
            if len(calls) == place:
                raise KeyboardInterrupt
            return honest(self, question, arguments, merge)

        monkeypatch.setattr(NearBlocks, "ask", interrupted)
        model = VariationalDPMixture()
        with pytest.MonkeyPatch.context() as patch:
            try:
                fit_in_blocks(model, X, None, [100, 600], patch)
            except KeyboardInterrupt:
                assert not hasattr(model, "labels_")
                continue
        assert_array_equal(model.labels_, model.predict(X))
        assert model.free_energy_trace_[-1] == model.free_energy_ + model.prior_penalty_
        ends.append(model.converged_)
    assert ends[0] is False
    assert ends[-1] is True


@pytest.mark.usefixtures("small")
def test_without_time_there_is_a_mixture_measured_on_all_rows():
    model = in_blocks(draw("gaussian", 8), [100], max_time=0)
    assert not model.converged_
    assert model.labels_.shape == (800,)
    assert model.free_energy_trace_.size == 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "asked",
    [
        {"accelerate": "tree"},
        {"accelerate": "kdtree", "max_nodes": 50},
        {"accelerate": None, "max_components": 2},
        {"accelerate": "tree", "final": "polish", "expand": "q"},
        {"tol": "relative", "max_iter": 2},
        {"prior": {"mean": [0.0, 1.0, 2.0], "degrees_of_freedom": 9.0}},
        {"prior": {"sd": 1.5}, "concentration": (1.5, 2.0)},
    ],
)
def test_parameters_of_the_search_act_in_the_sample(asked):
    model, again = in_blocks(draw("gaussian", 9), [100], **asked), in_blocks(draw("gaussian", 9), [400], **asked)
    assert_close(again, model)
    assert model.n_components_ == min(asked.get("max_components", 3), 3)
    assert model.n_nodes_ <= 300
    assert model.explain()
    assert model.sample_parameters(2)["means"].shape == (2, model.n_components_, 3)


@pytest.mark.usefixtures("small")
def test_earlier_components_keep_their_numbers():
    X = draw("gaussian", 10)
    again = VariationalDPMixture().fit(X).means_[::-1].copy()
    model, whole = in_blocks(X, [100, 300], match_to=again), VariationalDPMixture(match_to=again).fit(X)
    assert_array_equal(model.matched_, whole.matched_)
    assert_allclose(model.means_, whole.means_, rtol=1e-3, atol=1e-3)
    assert_allclose(model.means_sd_, whole.means_sd_, rtol=0.1)
    assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.usefixtures("small")
def test_rows_that_do_not_differ_are_one_component():
    model, whole = in_blocks(np.full((400, 2), 1 / 3), [100]), VariationalDPMixture()
    with pytest.warns(UserWarning, match="do not differ"):
        whole.fit(np.full((400, 2), 1 / 3))
    assert model.n_components_ == whole.n_components_ == 1
    assert_allclose(model.free_energy_, whole.free_energy_, rtol=1e-9)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_do_not_matter(scale):
    X = draw("gaussian", 11)
    one, two = in_blocks(X, [100]), in_blocks(scale * X, [100])
    assert one.n_components_ == two.n_components_
    assert_allclose(two.weights_, one.weights_, atol=1e-6)


@pytest.mark.usefixtures("small")
def test_large_counts_keep_their_digits():
    X = 2.0**30 * draw("poisson", 12)
    blocks, memory = in_blocks(X, [100], family="poisson"), VariationalDPMixture(family="poisson").fit(X)
    assert type(blocks._model.family) is type(memory._model.family)
    assert blocks.n_components_ >= 3


class TestErrors:
    @pytest.mark.parametrize(
        ("family", "entry", "words"),
        [
            ("gaussian", np.nan, r"Block 1 of X .*NaN: X\[400, 1\]"),
            ("bernoulli", 1.5, r"Block 1 of X .*X\[400, 1\]"),
            ("multinomial", -1.0, r"Block 1 of X .*X\[400, 1\]"),
            ("poisson", 2.0**54, r"Block 1 of X .*2\*\*53"),
        ],
    )
    def test_bad_entries_are_found_in_their_block(self, family, entry, words):
        X = draw(family, 0)
        X[500, 1] = entry
        with pytest.raises(ValueError, match=words):
            in_blocks(X, [100], family=family)

    def test_sparse_rows_of_gaussians_are_refused(self):
        with pytest.raises(ValueError, match="does not work on sparse rows"):
            in_blocks(sp.csr_matrix(draw("poisson", 0)), [100])

    @pytest.mark.parametrize(
        ("weight", "words"),
        [
            (np.zeros(800), "zero for every row"),
            (-np.ones(800), ">= 0"),
            (np.full(800, 1e14), "sum of sample_weight is 8e"),
        ],
    )
    def test_bad_weights(self, weight, words):
        with pytest.raises(ValueError, match=words):
            in_blocks(draw("gaussian", 0), [100], weight)

    @pytest.mark.usefixtures("small")
    def test_too_large_entries_are_refused_as_in_memory(self):
        X = draw("gaussian", 0)
        X[3, 0] = 1e160
        with pytest.raises(ValueError) as here:
            VariationalDPMixture().fit(X)
        with pytest.raises(ValueError, match=re.escape(str(here.value)[:30])):
            in_blocks(X, [100])

    @pytest.mark.parametrize("prior", [{"width": 1.0}, {"mean": [1.0]}])
    @pytest.mark.usefixtures("small")
    def test_bad_priors_are_refused_as_in_memory(self, prior):
        with pytest.raises(ValueError) as here:
            VariationalDPMixture(prior=prior).fit(draw("gaussian", 0))
        with pytest.raises(ValueError, match=re.escape(str(here.value))):
            in_blocks(draw("gaussian", 0), [100], prior=prior)


def test_few_rows_are_fitted_in_memory():
    X = draw("gaussian", 0)
    assert_same(in_blocks(X, [100]), VariationalDPMixture().fit(X))


@given(st.lists(st.integers(0, 60), min_size=1, unique=True), st.randoms(use_true_random=False))
def test_runs_of_blocks_are_the_same_whatever_is_joined_first(numbers, random):
    """No addition of floats is left to chance, and no block is lost or counted twice."""
    parts, found = {number: float(np.exp(number % 7)) / 3 for number in numbers}, []
    for _ in range(3):
        left = [Runs({Run(0, number): (part, _Numbers([number]))}) for number, part in parts.items()]
        while len(left) > 1:
            random.shuffle(left)
            left.append(left.pop().joined(left.pop()))
        found.append(left[0])
    assert found[0] == found[1] == found[2]
    assert sorted(number for _, there in found[0].sums.values() for number in there) == sorted(numbers)


class _Numbers(tuple):
    """Numbers of blocks, which are put one after the other where sums are added."""

    def __new__(cls, numbers):
        return super().__new__(cls, sorted(numbers))

    def __add__(self, other):
        assert self[-1] < other[0]
        return _Numbers((*self, *other))


def test_few_runs_are_left_of_many_blocks():
    runs = Runs({})
    for number in np.random.default_rng(0).permutation(1000).tolist():
        runs = runs.joined(Runs({Run(0, number): (1,)}))
    assert runs.added() == (1000,)
    assert len(runs.sums) == bin(1000).count("1")
