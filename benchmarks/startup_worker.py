"""Run in a fresh process: seconds of each step up to the first result. Prints JSON."""

import json
from time import perf_counter

clock = [perf_counter()]


def lap():
    """Seconds since the last lap."""
    clock.append(perf_counter())
    return clock[-1] - clock[-2]


import numpy as np  # noqa: E402
import sklearn.cluster  # noqa: E402
import sklearn.utils.validation  # noqa: E402, F401

steps = {"numpy and scikit-learn": lap()}

import kfree  # noqa: E402

steps["import kfree"] = lap()
model, X = kfree.DPMeans(radius=4.0), np.random.default_rng(0).normal(size=(5000, 3))
steps["DPMeans"] = lap()

import numba  # noqa: E402, F401

steps["numba"] = lap()
model.fit(X)
steps["first fit"] = lap()
model.fit(X)
steps["second fit"] = lap()
print(json.dumps(steps))
