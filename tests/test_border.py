"""Whatever is handed to a compiled kernel, the process lives, and the error names the kernel and the argument."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kfree.kernels import native, reference

#: Kernels called with one argument made wrong at a time; what is running is said before it runs.
FUZZ = """
import copy, inspect, sys
from kfree.kernels import native
from support.kernel_calls import recorded_calls, spoilt
calls, count = recorded_calls(), 0
print("recorded", *sorted(calls))
for name, arguments in sorted(calls.items()):
    kernel = getattr(native, name)
    places = [argument in ("first", "last", "start") for argument in inspect.signature(kernel).parameters]
    for i in range(len(arguments)):
        for how, wrong in spoilt(arguments[i], places[i]):
            others = copy.deepcopy(arguments)
            print(name, i, how, file=sys.stderr, flush=True)
            try:
                kernel(*others[:i], wrong, *others[i + 1:])
            except (TypeError, ValueError, IndexError, MemoryError) as error:
                count += 1
                assert name in str(error) or isinstance(error, MemoryError), error
print("refused", count)
"""


def test_no_argument_made_wrong_ends_the_process():
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{FUZZ}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(done.stderr.splitlines()[-5:])
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    seen = said["recorded"].split()
    assert len(seen) >= 0.75 * len(native.__all__), set(native.__all__) - set(seen)
    assert int(said["refused"]) > 1000


Z, ROWS = np.zeros(5), np.zeros(5, np.int64)
READ_ONLY = ROWS.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("place", "value", "error", "words"),
    [
        (0, np.zeros(5, np.float32), TypeError, "cost must be a 1-dimensional array of float64, but .* of float32"),
        (0, np.zeros((5, 1)), TypeError, "cost must be a 1-dimensional array of float64, but is a 2-dim"),
        (1, np.zeros(10)[::2], TypeError, "base must be contiguous, in C order"),
        (1, np.zeros(4), ValueError, "base has length 4 along axis 0, but 5 is wanted, as cost tells"),
        (2, "one", TypeError, "size is neither an array of numbers nor a number"),
        (2, Z, TypeError, "size must be a float, but is a 1-dimensional array"),
        (4, np.zeros(3, np.int64), ValueError, "rows has length 3 along axis 0, but at least 5 is wanted"),
        (4, READ_ONLY, TypeError, "rows must be writable, but is a 1-dimensional array of int64 that is read-only"),
        (4, [0] * 5, TypeError, "rows is neither an array of numbers nor a number"),
    ],
)
def test_an_error_says_which_argument_of_which_kernel_is_wrong(place, value, error, words):
    arguments = [Z, Z, 1.0, Z, ROWS]
    arguments[place] = value
    with pytest.raises(error, match=f"unsettled: {words}"):
        native.unsettled(*arguments)


def test_indices_out_of_range_are_refused():
    labels = np.array([0, 2], np.int32)
    with pytest.raises(IndexError, match="relabel: labels must hold indices below 2"):
        native.relabel(np.zeros(2, np.int32), labels)


def test_nothing_is_converted_and_outputs_are_those_handed_over():
    rows = ROWS.copy()
    assert native.unsettled(np.ones(5), np.float64(0) + Z, np.float32(1), Z, rows) == 5
    assert rows.tolist() == [0, 1, 2, 3, 4]


def test_numbers_of_arguments_are_checked():
    with pytest.raises(TypeError, match="unsettled takes 5 arguments, but got 1"):
        native.unsettled(Z)


def test_kernels_have_signatures_that_python_reads():
    for name in native.__all__:
        assert list(inspect.signature(getattr(native, name)).parameters) == list(
            inspect.signature(getattr(reference, name)).parameters
        )
