"""Scores of rows in blocks: those of the same rows in memory."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kfree import DPMeans, KernelDPMixture, VariationalDPMixture
from kfree.models.sharded_mixtures import mean_log_density
from kfree.models.sharded_scores import score_blocks
from kfree.rows import set_span_threads
from support.family_data import NAMES, draw_rows, make
from support.in_blocks import CutTable


def spread_score(model, X, weight, cuts, lose=False):
    blocks = CutTable(X, weight, cuts).blocks()
    if lose:
        honest = blocks.ask

        def forgetful(*asked):
            for beside in blocks._beside:
                beside.clear()
            return honest(*asked)

        blocks.ask = forgetful
    with set_span_threads():
        if isinstance(model, DPMeans):
            return score_blocks(blocks, model._model, model.weighting)
        return mean_log_density(blocks, model._model)


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    X = draw_rows(request.param, 300, 3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return request.param, DPMeans(n_clusters=4, divergence=make(request.param, 3)).fit(X)


@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 500), max_size=6),
    weights=st.sampled_from(["none", "whole", "real", "nothing first"]),
    single=st.booleans(),
    lose=st.booleans(),
)
def test_no_cut_changes_a_bit(model, seed, cuts, weights, single, lose):
    name, fitted = model
    rng = np.random.default_rng(seed)
    X = draw_rows(name, 500, 3, seed=seed)
    X = X.astype("f4") if single else X
    weight = {"none": None, "whole": rng.integers(0, 4, 500), "real": rng.gamma(1.0, size=500)}.get(weights)
    if weights == "nothing first":
        weight = np.where(np.arange(500) < max(cuts, default=0), 0.0, 1.5)
        weight[-1] = 1.0
    try:
        whole = fitted.score(X, sample_weight=weight)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error)[:40])):
            spread_score(fitted, X, weight, cuts)
        return
    assert spread_score(fitted, X, weight, cuts, lose) == whole


@pytest.mark.parametrize("weighting", ["length", "relative"])
@pytest.mark.parametrize("weight", [None, np.arange(500) % 4])
def test_rows_that_weigh_by_their_length_change_no_bit(weighting, weight):
    X = np.random.default_rng(0).poisson(3.0, size=(500, 4)) + 1
    fitted = DPMeans(divergence="kl", weighting=weighting, n_clusters=4).fit(X)
    assert spread_score(fitted, X, weight, [1, 77, 300]) == fitted.score(X, sample_weight=weight)
    table = sp.csr_matrix(X.astype(float))
    assert spread_score(fitted, table, weight, [1, 77, 300]) == fitted.score(table, sample_weight=weight)


def test_rows_that_every_centre_excludes_cost_without_end():
    X = np.array([[3.0, 0.0], [5.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    fitted = DPMeans(divergence="poisson", n_clusters=1).fit(X[:3])
    assert fitted.score(X) == spread_score(fitted, X, None, [2]) == -np.inf


@given(seed=st.integers(0, 2**20), cuts=st.lists(st.integers(0, 300), max_size=6), weighted=st.booleans())
def test_mean_log_densities_differ_by_rounding_only(mixtures, seed, cuts, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2)) * 3
    weight = rng.integers(0, 3, 300).astype(float) if weighted else None
    for fitted in mixtures:
        value = spread_score(fitted, X, weight, cuts)
        assert_allclose(value, fitted.score(X, sample_weight=weight), rtol=1e-12)
        assert value == spread_score(fitted, X, weight, cuts, lose=True)


@pytest.fixture(scope="module")
def mixtures():
    X = np.random.default_rng(0).normal([[-5, 0], [5, 0]], 1, size=(200, 2, 2)).reshape(-1, 2)
    return [VariationalDPMixture().fit(X), KernelDPMixture(random_state=0).fit(X)]


class TestErrors:
    def test_bad_entries_are_found_in_their_block(self, mixtures):
        X = np.ones((20, 2))
        X[15, 1] = np.nan
        for fitted in [*mixtures, DPMeans().fit(np.arange(40.0).reshape(20, 2))]:
            with pytest.raises(ValueError, match=r"Block 1 of X .*X\[5, 1\]"):
                spread_score(fitted, X, None, [10])

    @pytest.mark.parametrize("weight", [np.zeros(20), np.full(20, -1.0)])
    def test_bad_weights(self, mixtures, weight):
        for fitted in [*mixtures, DPMeans().fit(np.arange(40.0).reshape(20, 2))]:
            with pytest.raises(ValueError, match="sample_weight"):
                spread_score(fitted, np.ones((20, 2)), weight, [10])

    def test_no_rows(self, mixtures):
        for fitted in [*mixtures, DPMeans().fit(np.arange(40.0).reshape(20, 2))]:
            with pytest.raises(ValueError, match="X has no rows"):
                spread_score(fitted, np.ones((0, 2)), None, [])
