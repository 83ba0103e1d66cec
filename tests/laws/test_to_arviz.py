"""Samples as arviz takes them."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kfree.inference.gibbs.to_arviz import by_chain, inference_data


def test_samples_are_cut_into_chains_of_equal_length():
    values, chain = np.arange(14).reshape(7, 2), np.array([3, 3, 3, 3, 5, 5, 5])
    assert_array_equal(by_chain(values, chain), [values[1:4], values[4:]])


def test_without_arviz_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        inference_data({"n_clusters": np.ones(4)}, np.zeros(4, int))


def test_arviz_accepts_the_samples():
    arviz = pytest.importorskip("arviz", reason="arviz is optional")
    rng, chain = np.random.default_rng(0), np.repeat([0, 1], 50)
    found = inference_data(
        {"n_clusters": rng.integers(1, 4, 100), "labels": rng.integers(0, 3, (100, 8))},
        chain,
        sample_stats={"lp": rng.normal(size=100)},
        dims={"labels": ["row"]},
    )
    assert dict(found["posterior"].sizes) == {"chain": 2, "draw": 50, "row": 8}
    assert found["sample_stats"]["lp"].shape == (2, 50)
    table = arviz.summary(found, var_names=["n_clusters"])
    assert list(table.index) == ["n_clusters"]
