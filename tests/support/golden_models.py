"""Files of the present format, one of each estimator, with what their models answered when they were saved.

    cd tests && python -m support.golden_models

Files that are there are left alone: they show that later versions read what earlier ones wrote. To be run once for each
format, and for what is new in it.
"""

import json
import warnings
from pathlib import Path

import numpy as np

from kfree import (
    BPMeans,
    DPMeans,
    GibbsDPMixture,
    GibbsIBP,
    HDPMeans,
    HDPTopics,
    KernelDPMixture,
    KFeatures,
    StepwiseKFeatures,
    TablePreparer,
    VariationalDPMixture,
)
from kfree.models.stored_files import FORMAT
from support.saved_models import BITS, CLOUDS, COUNTS, GROUPS, Saved

FOLDER = Path(__file__).parents[1] / "golden"
_CHAIN = {"n_samples": 3, "burn_in": 2, "n_chains": 1, "random_state": 0, "warm_start": True}
#: What is saved, and the method that is asked.
CASES = {
    "DPMeans": (Saved(DPMeans(), CLOUDS), "transform"),
    "DPMeans_kl": (Saved(DPMeans(n_clusters=3, divergence="kl", smoothing=0.1), COUNTS), "transform"),
    "HDPMeans": (Saved(HDPMeans(2.0, 20.0), CLOUDS, groups=GROUPS), "transform"),
    "HDPTopics": (Saved(HDPTopics(n_topics=3), COUNTS), "transform"),
    "BPMeans": (Saved(BPMeans(n_init=1), CLOUDS), "transform"),
    "KFeatures": (Saved(KFeatures(2, n_init=1), CLOUDS), "transform"),
    "StepwiseKFeatures": (Saved(StepwiseKFeatures(n_init=1), CLOUDS), "transform"),
    "VariationalDPMixture": (Saved(VariationalDPMixture(), CLOUDS), "score_samples"),
    "VariationalDPMixture_poisson": (Saved(VariationalDPMixture(family="poisson"), COUNTS), "predict_proba"),
    "KernelDPMixture": (Saved(KernelDPMixture(features=8, random_state=0), CLOUDS, "partial_fit"), "score_samples"),
    "GibbsDPMixture": (Saved(GibbsDPMixture(**_CHAIN), CLOUDS), "score_samples"),
    "GibbsDPMixture_bernoulli": (Saved(GibbsDPMixture(family="bernoulli", **_CHAIN), BITS), "predict_proba"),
    "TablePreparer": (Saved(TablePreparer(), np.column_stack([COUNTS, BITS])), "transform"),
    "GibbsIBP": (Saved(GibbsIBP(**_CHAIN), CLOUDS), "transform"),
}


def make(name: str) -> None:
    """Save a model, and what it answers."""
    case, method = CASES[name]
    path = FOLDER / f"format{FORMAT}_{name}.zip"
    if path.exists():
        return
    model = case.fitted()
    model.save(path)
    rows = np.round(case.X[::5], 3)  # as a text can hold them
    answer = np.asarray(getattr(model, method)(rows), float)
    told = {"method": method, "X": rows.tolist(), "answer": answer.tolist()}
    path.with_suffix(".json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for case in CASES:
        make(case)
