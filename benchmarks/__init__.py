"""Measurements of kfree beside its rivals: ``python -m benchmarks`` and ``python -m benchmarks.papers``.

Two threads for everybody; the variables must be set before numpy is loaded.
"""

import os

THREADS = 2

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, str(THREADS))
