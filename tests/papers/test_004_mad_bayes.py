"""Broderick, Kulis & Jordan (2013), MAD-Bayes, Section 6: photographs of a table with four objects."""

import numpy as np
import pytest
from benchmarks import data

from kfree import BPMeans, KFeatures, StepwiseKFeatures
from support.slow_features import all_rows

pytestmark = [
    pytest.mark.papers,
    pytest.mark.skipif(not data.has("tabletop"), reason="tabletop.npz is not there (see KFREE_DATA)"),
]


@pytest.mark.parametrize(
    ("K", "least"), [(1, 615.9), (2, 423.2), (3, 295.3), (4, 205.8), (5, 161.25), (6, 150.5), (8, 135.9)]
)
def test_the_tabletop_marks_are_reached(K, least):
    X = np.load(data.FOLDER / "tabletop.npz")["scores"].astype(float)
    assert KFeatures(K, random_state=1).fit(X).inertia_ <= least * 1.001


@pytest.mark.parametrize("model", [StepwiseKFeatures(20.0), BPMeans(20.0)], ids=lambda model: type(model).__name__)
def test_the_objects_on_the_table_are_found(model):
    arrays = np.load(data.FOLDER / "tabletop.npz")
    X, truth = arrays["scores"].astype(float), arrays["Z"]
    model.fit(X).canonicalize()
    assert model.n_components_ == 5
    assert model.counts_[0] == 100
    smaller = np.where(2 * truth.sum(axis=0) > 100, 1 - truth, truth)
    assert {tuple(c) for c in model.Z_[:, 1:].T} >= {tuple(c) for c in smaller.T if 2 * c.sum() != 100}
    assert len(np.unique(model.Z_, axis=0)) == len(all_rows(4))
