"""Work that Ctrl-C must not hit in the middle."""

import atexit
import time
from _thread import start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from threading import current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds that the exit of the interpreter waits for work that goes on after an interrupt.
_PATIENCE = 5.0
_under_way: set[object] = set()


def undisturbed(work: Callable[[], T]) -> T:
    """Do something in a thread of its own, if this is the main one, where signals are handled.

    numba does not survive an interrupt while it is imported or sets itself up: every later use fails. And one that
    comes in a finalizer, of which llvmlite has many, is lost. Here it reaches the caller at once, and the work goes on.
    """
    if current_thread() is not main_thread():
        return work()
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except BaseException as error:
            answers.put((None, error))
        finally:
            _under_way.discard(answers)

    _under_way.add(answers)
    try:
        start_new_thread(run, ())
    except (RuntimeError, MemoryError):  # no room for another stack, or the interpreter is about to exit
        _under_way.discard(answers)
        return work()
    value, error = answers.get()
    if error is not None:
        raise error
    return value


@atexit.register
def _wait() -> None:
    """LLVM must not be taken down while it compiles."""
    end = time.monotonic() + _PATIENCE
    while _under_way and time.monotonic() < end:
        time.sleep(0.01)
