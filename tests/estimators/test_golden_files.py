"""Files that earlier versions wrote are read, and their models answer as they did."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator

import kfree

FILES = sorted((Path(__file__).parents[1] / "golden").glob("format*.zip"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_every_format_are_read_and_answer_as_they_did(path, tmp_path):
    told = json.loads(path.with_suffix(".json").read_text())
    model = kfree.load(path)
    assert type(model).__name__ == path.stem.split("_")[1]
    model.save(tmp_path / "again")
    for one in (model, kfree.load(tmp_path / "again")):
        assert_allclose(getattr(one, told["method"])(np.array(told["X"])), told["answer"], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["DPMeans", "HDPTopics", "KernelDPMixture"])
def test_models_of_every_format_learn_on(name):
    for path in FILES:
        if path.stem.split("_")[1] == name:
            told = json.loads(path.with_suffix(".json").read_text())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kfree.load(path).partial_fit(np.array(told["X"]))
            assert np.isfinite(model.objective_)


def test_there_is_a_file_of_every_estimator():
    kinds = (getattr(kfree, name) for name in kfree.__all__)
    estimators = {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseEstimator)}
    assert {path.stem.split("_")[1] for path in FILES} == estimators
