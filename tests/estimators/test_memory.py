"""Where memory is short a fit ends in a MemoryError or in what it would have found anyway: never in a crash."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and sizes as Linux has them")

#: Fits under rising limits on the process; prints the limit (MB beyond what is in use) and what came of each.
CHILD = """
import gc, json, resource
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from support.short_fits import FITS

# OpenBLAS ends the process where it finds no room for its buffers, one for each thread that multiplies at that time
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda size: np.ones((size, size)) @ np.ones((size, size)), [900] * 16))

def in_use():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def attempt(fit, megabytes):
    resource.setrlimit(resource.RLIMIT_AS, (in_use() + megabytes * 2**20, resource.RLIM_INFINITY))
    try:
        return fit.result()
    except MemoryError:
        return "MemoryError"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        gc.collect()

for name, fit in FITS.items():
    expected = fit.result() if {warm} else None
    for megabytes in {limits}:
        print(json.dumps([name, megabytes, attempt(fit, megabytes), expected or fit.result()]), flush=True)
"""


def fits(limits, *, warm):
    """What a child tells of its fits."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = CHILD.format(limits=limits, warm=warm)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_fits_under_a_limit_end_in_a_memory_error_or_in_the_same_result():
    told = fits([0, 2, 8, 32, 1000], warm=True)
    for name, megabytes, found, expected in told:
        assert found in ("MemoryError", expected), (name, megabytes)
        assert found == expected or megabytes < 1000, name
    assert any(found == "MemoryError" for _, _, found, _ in told)


def test_kernels_are_not_loaded_where_there_is_no_room_for_them():
    for name, megabytes, found, expected in fits([20], warm=False):
        assert found in ("MemoryError", expected), (name, megabytes)
