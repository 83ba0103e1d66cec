"""Hostile inputs: a short run of the fuzz, every case it ever found, and that it finds what is broken."""

import inspect
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import kfree
from fuzz import campaign
from fuzz import check as checking
from fuzz.case import Case
from fuzz.check import check
from fuzz.shrink import shrink
from fuzz.subjects import SUBJECTS, draw_case

#: Inputs of the short run; of those that are not named fewer.
INPUTS = {
    "DPMeans": 400,
    "HDPMeans": 150,
    "VariationalDPMixture": 250,
    "KernelDPMixture": 150,
    "GibbsDPMixture": 150,
    "KFeatures": 80,
    "GibbsIBP": 20,
}
CASES = sorted(campaign.CASES.glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_was_once_broken_stays_mended(path):
    assert check(Case.from_json(path.read_text())).faults == []


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_short_run_breaks_no_law(name):
    campaign.warm_up([name])  # a clean machine has to compile first
    for index in range(INPUTS.get(name, 40)):
        faults = check(draw_case(name, [19, index])).faults
        assert faults == [], f"python -m fuzz --replay {name} 19 {index}"


def test_every_public_estimator_and_function_is_tried():
    public = [(name, getattr(kfree, name)) for name in kfree.__all__]
    estimators = {name for name, value in public if inspect.isclass(value) and issubclass(value, BaseEstimator)}
    functions = {name for name, value in public if inspect.isfunction(value)}
    functions = {name for name in functions if "X" in inspect.signature(getattr(kfree, name)).parameters}
    own = {"TablePreparer", "report"}  # have hostile tables in estimators/test_table_preparer.py and reports/
    assert estimators | functions == set(SUBJECTS) | own


def test_a_case_comes_back_from_its_file_bit_for_bit():
    for index in range(50):
        case = draw_case("HDPMeans", [5, index])
        again = Case.from_json(case.to_json())
        assert again.to_json() == case.to_json()
        assert again.values.tobytes() == case.values.tobytes()


def ordinary(name="DPMeans", **changes):
    values = np.random.default_rng(0).normal(size=(12, 3))
    return Case(name, {"radius": 5.0}, values, other=values[:2])._replace(**changes)


def broken_fit(monkeypatch, change):
    fit = kfree.DPMeans.fit

    def broken(self, X, y=None, sample_weight=None):
        fit(self, X, y, sample_weight)
        change(self)
        return self

    monkeypatch.setattr(kfree.DPMeans, "fit", broken)


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda model: setattr(model, "inertia_", np.nan), "inertia_ is not finite"),
        (lambda model: setattr(model, "objective_", 1.0), "objective_ is not that of the twin"),
        (lambda model: setattr(model, "labels_", model.labels_[::-1]), "labels_ differ from predict"),
        (lambda model: setattr(model, "objective_trace_", np.array([1.0, 2.0])), "the trace rises"),
        (lambda model: setattr(model, "radius", 3.0), "fit raises AssertionError"),
        (lambda model: setattr(model, "lam_", 5.0), "a radius is published as something else"),
        (lambda model: np.log(np.zeros(1)), "fit raises RuntimeWarning"),
        (lambda model: np.linalg.cholesky(-np.eye(2)), "fit raises LinAlgError"),
        (lambda model: np.zeros(2) + np.zeros(3), "fit raises ValueError"),
        (lambda model: fail(ZeroDivisionError("no")), "fit raises ZeroDivisionError"),
    ],
)
def test_broken_laws_are_seen(monkeypatch, change, law):
    assert check(ordinary()).faults == []
    broken_fit(monkeypatch, change)
    assert law in {fault.law for fault in check(ordinary()).faults}


def test_refusals_are_no_faults():
    refused = check(ordinary(params={"radius": -1.0}))
    assert (refused.status, refused.faults) == ("refused", [])
    values = ordinary().values.copy()
    values[3, 1] = np.nan
    assert check(ordinary(values=values)).status == "refused"


def test_fits_that_return_late_are_seen(monkeypatch):
    monkeypatch.setattr(checking, "LATE", -10.0)
    found = check(ordinary(params={"radius": 5.0, "max_time": 1}))
    assert "returns late" in {fault.law for fault in found.faults}


@pytest.mark.parametrize("relation", ["again", "layout", "order", "price", "repeat", "zero weights"])
def test_second_fits_are_compared(monkeypatch, relation):
    weight = np.array([0.0, 1, 2, 1, 1, 0, 3, 1, 1, 1, 2, 1])
    params = {"lam": 8.0} if relation == "price" else {"radius": 5.0}
    case = ordinary(params=params, relation=relation, weight=weight, ordinary=True, kind="noise")
    assert check(case).faults == []
    made = []

    def each_time_another(model):
        made.append(0)
        model.objective_ *= 1.0 + len(made)

    broken_fit(monkeypatch, each_time_another)
    assert any(fault.law.startswith(relation) for fault in check(case).faults)


def test_a_case_is_shrunk_to_what_breaks_the_law(monkeypatch):
    fit = kfree.DPMeans.fit

    def broken(self, X, y=None, sample_weight=None):
        if (np.asarray(X) > 100).any():
            raise ZeroDivisionError("one large entry")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(kfree.DPMeans, "fit", broken)
    case = ordinary(params={"radius": 5.0, "tol": 0.0}, layout="F")
    case.values[7, 1] = 1234.5
    small = shrink(case, "fit raises ZeroDivisionError")
    assert small.values.shape == (1, 1)
    assert (small.params, small.layout, small.other) == ({}, "C", None)


def test_a_worker_that_dies_costs_one_input(monkeypatch):
    line = '{"subject": "DPMeans", "seed": [1, 0], "status": "fitted", "faults": [], "late": 0.0}'
    dies = f"import os, time; time.sleep(0.3); print({line!r}, flush=True); os._exit(11)"
    monkeypatch.setattr(campaign, "_command", lambda *where: [sys.executable, "-c", dies])
    tally = campaign.run(seed=1, seconds=2, jobs=1, only=["DPMeans"], tell=lambda text: None)
    assert tally.fitted["DPMeans"] - tally.bad["DPMeans"] in (tally.bad["DPMeans"], tally.bad["DPMeans"] + 1)
    assert [found.law for found in tally.found] == ["kills the process"] * tally.bad["DPMeans"]
    assert tally.found[0].seed == [1, 1]
    assert "exit 11" in tally.found[0].detail


def test_workers_try_inputs_until_the_time_is_up(monkeypatch):
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{here}{os.pathsep}{here.parent / 'tools'}")
    tally = campaign.run(seed=1, seconds=10, jobs=1, only=["lam_for_k"], tell=lambda text: None)
    assert (tally.fitted + tally.refused).total() > 5


@pytest.mark.parametrize(
    ("params", "change", "law"),
    [
        ({"n_clusters": 3}, lambda model: setattr(model, "n_clusters_", 4), "another number of clusters"),
        ({"lam": 8.0}, lambda model: setattr(model, "lam_", None), "there is no price, or no window of it"),
        ({"lam": 8.0}, lambda model: setattr(model, "lam_window_", (9.0, 10.0)), "the price is not in its window"),
        ({"lam": 8.0}, lambda model: setattr(model, "radius_", -1.0), "radius_ is negative"),
        ({"lam": 8.0}, lambda model: setattr(model, "choice_", ()), "choice_ is there, or not"),
        ({}, lambda model: setattr(model, "choice_", None), "choice_ is there, or not"),
        ({}, lambda model: model.choice_.window.fill(1.0), "windows of prices do not nest"),
        ({}, lambda model: model.choice_.score.fill(2.0), "the choice does not fit together"),
    ],
)
def test_broken_answers_to_how_many_are_seen(monkeypatch, params, change, law):
    assert check(ordinary(params=params)).faults == []
    broken_fit(monkeypatch, change)
    assert law in {fault.law for fault in check(ordinary(params=params)).faults}
