"""Work that Ctrl-C must not hit in the middle."""

from _thread import start_new_thread
from collections.abc import Callable
from threading import Lock, current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")


def undisturbed(work: Callable[[], T]) -> T:
    """Do something in a thread of its own, if this is the main one, where signals are handled.

    numba does not survive an interrupt while it is imported or sets itself up: every later use fails. And one that
    comes in a finalizer, of which llvmlite has many, is lost. Here it reaches the caller when the work is done: not
    before, as numba changes the filters of warnings meanwhile, which are the process's.
    """
    if current_thread() is not main_thread():
        return work()
    answer: list[tuple[Any, BaseException | None]] = []
    done = Lock()
    done.acquire()

    def run() -> None:
        try:
            answer.append((work(), None))
        except BaseException as error:
            answer.append((None, error))
        finally:
            done.release()

    def wait() -> None:
        try:
            done.acquire()
        finally:
            if not answer:  # interrupted
                wait()

    try:
        start_new_thread(run, ())
    except (RuntimeError, MemoryError):  # no room for another stack, or the interpreter is about to exit
        return work()
    wait()
    ((value, error),) = answer
    if error is not None:
        raise error
    return value
