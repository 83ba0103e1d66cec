"""Run in a fresh process: the seconds of an import and of the first two fits, and the peak memory. Prints JSON.

python startup_worker.py DPMeans      an estimator of kfree, or KMeans of scikit-learn
"""

import json
import resource
import sys
from time import perf_counter

start = perf_counter()
import numpy as np  # noqa: E402

NAME, ROWS = sys.argv[1], np.random.default_rng(0)
X = ROWS.normal(size=(3000, 5)) + 6.0 * ROWS.integers(3, size=(3000, 1))
more = {}
if NAME == "KMeans":
    from sklearn.cluster import KMeans

    model = KMeans(3, random_state=0)
else:
    import kfree

    sweeps = {"n_samples": 20, "burn_in": 20} if NAME.startswith("Gibbs") else {}
    model = getattr(kfree, NAME)(**sweeps, **({"init": "empty"} if NAME == "GibbsIBP" else {}))
imported = perf_counter()
if NAME == "HDPTopics":
    import scipy.sparse as sp

    kinds = ROWS.dirichlet(np.full(200, 0.1), 5)
    X = sp.csr_matrix(
        ROWS.poisson(60 * kinds[ROWS.integers(5, size=500)]).astype(float) + np.eye(200)[np.arange(500) % 200]
    )
if NAME in ("BPMeans", "KFeatures", "StepwiseKFeatures", "GibbsIBP"):
    X = (
        ROWS.integers(2, size=(3000, 2)) @ np.array([[6.0, 6, 0, 0, 0], [0, 0, 6, 6, 6]])
        + ROWS.normal(size=(3000, 5)) / 2
    )
if NAME == "HDPMeans":
    more = {"groups": np.arange(len(X)) % 7}
before = perf_counter()
model.fit(X, **more)
first = perf_counter()
model.fit(X, **more)
second = perf_counter()
print(
    json.dumps(
        {
            "import": imported - start,
            "first": first - before,
            "second": second - first,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )
)
