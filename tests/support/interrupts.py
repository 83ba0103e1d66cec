"""Ctrl-C at a given moment of a fit: a real signal after some seconds, or an interrupt at a given line."""

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import kfree

INFERENCE = str(Path(kfree.__file__).parent / "inference")
#: Where rows are only prepared: there is no model yet that could be kept.
PREPARING = {
    ("models/clusters.py", "of"),
    ("models/clusters.py", "table"),
    ("models/clusters.py", "goal"),
    ("models/clusters.py", "check_start"),
    ("models/how_many.py", "_check_number"),
    ("models/features.py", "of"),
    ("models/kernel_problem.py", "of"),
    ("models/mixture.py", "of"),
    ("models/acceleration.py", "partition"),
    ("inference/shared/groups.py", "make_groups"),
    # how many clusters there are is not known yet: a job that is stopped must not publish "one cluster"
    ("inference/clusters/how_many/choose.py", "choose_lam"),
    ("inference/shared/hdp_lams.py", "choose_lams"),
    ("inference/shared/hdp_lams.py", "best_start"),
    ("inference/clusters/how_many/subsample.py", "draw_pilot"),
    ("inference/clusters/how_many/price_path.py", "__init__"),
    ("inference/clusters/how_many/price_path.py", "trace"),
    ("inference/clusters/how_many/price_path.py", "best_at"),
    ("inference/clusters/how_many/price_path.py", "window_of"),
    ("inference/clusters/how_many/price_path.py", "look"),
}
#: Where how many there are is looked for.
LOOKING = "how_many"
#: What joins the parts of a fit, each of which is protected: single lines between two of them are not.
JOINTS = {"fit", "_find", "_finish", "fit_batch", "fit_shared", "absorb", "attempt", "repeat", "run"}


@contextmanager
def sigint_after(seconds):
    """A real signal that interrupts only what is inside; yields a list that is filled when it comes."""
    came, inside = [], True

    def interrupt(number, frame):
        if inside:
            came.append(number)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield came
    finally:
        inside = False
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


class AtLine:
    """Raises KeyboardInterrupt at the n-th line of inference that is executed; only counts them if there is no n."""

    def __init__(self, n=None, skip=None):
        self.n, self.skip, self.lines, self.came = n, skip, 0, []

    def __call__(self, frame, event, arg):
        file = frame.f_code.co_filename
        if event == "line" and file.startswith(INFERENCE) and not (self.skip and self.skip in file):
            self.lines += 1
            if self.lines == self.n:
                self.came.append(self.n)
                raise KeyboardInterrupt
        return self

    @contextmanager
    def watching(self):
        """Watch the lines of this thread."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield self.came
        finally:
            sys.settrace(before)


def _fit(fit, interrupt):
    """The model of a fit under an interrupt, None if there was nothing to keep yet."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with interrupt as came:
                model = fit()
        except KeyboardInterrupt as error:
            frames = traceback.extract_tb(error.__traceback__)
            inside = [frame for frame in frames if frame.filename.startswith(INFERENCE)]
            places = {(frame.filename[len(INFERENCE) - len("inference") :], frame.name) for frame in frames}
            prepares = bool(places & PREPARING)
            joints = len(inside) == 1 or all(frame.name in JOINTS for frame in inside)
            assert prepares or joints, "".join(traceback.format_list(frames))
            return None
    assert any("interrupted" in str(warning.message) for warning in told) or not came
    return model


def check_signals(fit, check, *, times=8, seed=0, least=1):
    """Interrupt a fit by signals at random times, spread over what a whole one takes; ``check`` looks at each model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()  # compiled by now
        start = time.perf_counter()
        fit()
    seconds = time.perf_counter() - start
    shares = (np.arange(times) + np.random.default_rng(seed).random(times)) / times
    models = [_fit(fit, sigint_after(share * seconds)) for share in shares]
    models = [model for model in models if model is not None]
    assert len(models) >= least  # so many fits were interrupted after they had begun
    for model in models:
        check(model)


def check_lines(fit, check, *, times=20, seed=0, skip=None):
    """Interrupt a fit at random lines of inference; ``check`` looks at each model. Returns how many there were.

    Lines of files with ``skip`` in their path do not count.
    """
    count = AtLine(skip=skip)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()
        with count.watching():
            fit()
    lines = np.random.default_rng(seed).choice(count.lines, times)
    models = [_fit(fit, AtLine(int(n) + 1, skip).watching()) for n in lines]
    models = [model for model in models if model is not None]
    for model in models:
        check(model)
    return len(models)
