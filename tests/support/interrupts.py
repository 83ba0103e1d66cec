"""A real Ctrl-C at a given moment of a fit."""

import os
import signal
import threading
import time
import traceback
import warnings

import numpy as np

#: Where inference is only prepared: there is no model yet that could be kept.
PREPARED = ("kfree/inference/clusters/table.py", "kfree/inference/shared/groups.py")


class Stopped:
    """What came of a fit into which a SIGINT was sent."""

    def __init__(self, model, interrupted, frames):
        self.model = model  # None if the interrupt reached the caller
        self.interrupted = interrupted  # the fit said so
        self.frames = frames  # files that an interrupt which reached the caller came through


def fit_with_interrupt(fit, after):
    """Call ``fit`` and send SIGINT after some seconds, if it still runs then."""
    sent = threading.Event()

    def send():
        sent.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    model, frames = None, []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            timer.start()
            model = fit()
            timer.cancel()
            timer.join()
            time.sleep(0.01 if sent.is_set() else 0.0)  # a signal that came too late must not hit the next one
        except KeyboardInterrupt as error:
            frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        finally:
            timer.cancel()
    return Stopped(model, any("interrupted" in str(one.message) for one in told), frames)


def check_interrupts(make, check, *, times=12, seed=0):
    """Fits interrupted at random times, spread over the time that a whole one takes; ``check`` looks at each model.

    An interrupt may reach the caller only before inference has begun or after it has ended. Returns how many fits
    noticed theirs.
    """
    make()  # compiled by now
    start = time.perf_counter()
    make()
    seconds, noticed = time.perf_counter() - start, 0
    for after in np.random.default_rng(seed).uniform(0.0, seconds, size=times):
        stopped = fit_with_interrupt(make, float(after))
        if stopped.model is None:
            inside = [name for name in stopped.frames if "kfree/inference" in name.replace(os.sep, "/")]
            assert not inside or inside[0].replace(os.sep, "/").endswith(PREPARED), stopped.frames[-3:]
            continue
        noticed += stopped.interrupted
        check(stopped.model)
    return noticed
