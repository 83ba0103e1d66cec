"""Helper threads that share the work on spans of rows; results come back in the order of the spans.

Kernels release the GIL, so threads are enough, and because sums are added in span order the result does not
depend on how many there are, nor on whether any could be started at all.
"""

import os
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

#: Entries above which threads gain more than they cost.
WORTH_THREADS = 200_000
# Items a thread takes, on average, before results are handed on.
_WAVE = 8

_chosen = local()


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the libraries loaded when first asked; to look for them takes milliseconds."""
    return ThreadpoolController()


@cache
def _openmp() -> ThreadpoolController:
    """Those of them that OpenMP has."""
    return _libraries().select(user_api="openmp")


@cache
def _blas(*, per_thread: bool) -> list[Any]:
    """Those of them that BLAS has: one for the process, or (if OpenMP makes it) one for each thread that calls."""
    every = _libraries().select(user_api="blas").lib_controllers
    return [library for library in every if (getattr(library, "threading_layer", "") == "openmp") == per_thread]


def _limit(libraries: list[Any], counts: list[int]) -> None:
    """Set how many threads each may use."""
    for library, count in zip(libraries, counts):
        # threadpoolctl lets only the first thread that ever asked for a limit have one; here they are counted
        getattr(library, "clear_controlling_thread", lambda force: None)(force=True)
        library.set_num_threads(count)
        getattr(library, "clear_controlling_thread", lambda force: None)(force=True)


def n_threads() -> int:
    """Threads to use: what OpenMP and BLAS are limited to (``threadpoolctl``, ``OMP_NUM_THREADS``), or the cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    limits = [int(wanted)] if wanted.isdigit() and int(wanted) > 0 else []
    limits += [library["num_threads"] for library in _openmp().info()]
    return max(1, min([cores, *limits]))


class _BlasLimit:
    """Holds BLAS to one thread while anybody needs it; the limit is the process's, so users are counted.

    Both calls may be repeated after an interrupt in the middle of one: nothing is counted twice, nothing is lost.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._before = Lock(), set[object](), list[int]()
        self._waited = False

    def hold(self, user: object) -> None:
        """One thread from now on."""
        with self._lock:
            libraries, first = _blas(per_thread=False), not self._users
            self._users.add(user)
            if first:
                self._before = self._before or [library.get_num_threads() for library in libraries]
                _limit(libraries, [1] * len(libraries))

    def release(self, user: object) -> None:
        """As many as before, if nobody else needs it."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                _limit(_blas(per_thread=False), self._before)
                self._before = []

    def before_fork(self) -> None:
        """Wait until no thread is inside: locks of BLAS that it held would never be released in the child."""
        self._waited = self._lock.acquire(timeout=1.0)

    def after_fork(self, *, child: bool) -> None:
        """Go on; in the child only the thread that forked lives."""
        if child:
            self._lock = Lock()
            self._users.clear()
        elif self._waited:
            self._lock.release()


class _Helpers:
    """Threads that lend a hand to whoever calls, as many as the largest call ever asked for.

    Daemons, which the interpreter does not wait for when it exits, and started without waiting for them: so neither an
    interrupt nor a lack of memory while one starts can leave anybody waiting.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock, self._alive, self._wanted = Lock(), 0, 0

    def call(self, count: int, work: Callable[[], None]) -> None:
        """Ask ``count`` of them to do some work; those that are busy come later, or too late."""
        self._wanted = max(self._wanted, count)
        there = self._alive
        while there < self._wanted:
            try:
                start_new_thread(self._serve, ())
            except (RuntimeError, MemoryError):  # no room for another stack, or the interpreter is about to exit
                break
            there += 1
        for _ in range(min(count, there)):
            self._calls.put(work)

    def _serve(self) -> None:
        with self._lock:
            if self._alive >= self._wanted:  # two callers, or one that was interrupted, have started one too many
                return
            self._alive += 1
        _chosen.count = 1
        own = _blas(per_thread=True)
        _limit(own, [1] * len(own))
        while True:
            self._calls.get()()


_blas_limit, _helpers = _BlasLimit(), _Helpers()


def _in_forked_child() -> None:
    """The helpers are gone, and a queue that one of them was reading from cannot be trusted."""
    global _helpers
    _helpers = _Helpers()
    _blas_limit.after_fork(child=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_blas_limit.before_fork,
        after_in_parent=partial(_blas_limit.after_fork, child=False),
        after_in_child=_in_forked_child,
    )


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread."""
    user, own = object(), _blas(per_thread=True)
    before = [library.get_num_threads() for library in own]

    def release() -> None:
        _blas_limit.release(user)
        _limit(own, before)

    try:
        _blas_limit.hold(user)
        _limit(own, [1] * len(own))
        yield
    finally:
        try:
            release()
        finally:  # also if the user interrupts that
            release()


@contextmanager
def set_span_threads(count: int | None = None) -> Iterator[None]:
    """Fix the number of threads for a block of code; asked of the machine once if not given."""
    before = getattr(_chosen, "count", None)
    try:
        _chosen.count = count or n_threads()
        # spans are what runs in parallel; BLAS threads below them would only fight for the cores
        with _one_blas_thread():
            yield
    finally:
        _chosen.count = before


def cut(n: int, size: int) -> list[slice]:
    """0 to n in spans of a size."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def over(spans: list[Any], function: Callable[[Any], T], entries: float) -> Iterator[T]:
    """Apply a function to every span, in parallel if so many entries are looked at that it is worth while; results in
    the order of the spans, so that sums do not depend on threads."""
    return in_order(function, spans) if entries > WORTH_THREADS else map(function, spans)


def in_order(function: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
    """``map`` with the help of other threads, a few items at a time so that results do not pile up."""
    count, items = getattr(_chosen, "count", None) or 1, list(items)
    if count == 1 or len(items) <= 1:
        yield from map(function, items)
        return
    for start in range(0, len(items), _WAVE * count):
        yield from _Together(function, items[start : start + _WAVE * count]).results(count - 1)


class _Together:
    """A few items that the calling thread works on with some helpers: it works too, as a thread that waits only gets
    in the others' way."""

    def __init__(self, function: Callable[[Any], Any], items: list[Any]):
        self._function, self._left = function, deque(enumerate(items))
        self._results: list[Any] = [None] * len(items)
        # a plain lock: of those written in Python, Condition among them, an interrupt may leave one locked
        self._door, self._closed, self._inside = Lock(), False, 0
        self._gone: SimpleQueue[None] = SimpleQueue()
        self._error: BaseException | None = None

    def results(self, helpers: int) -> list[Any]:
        """What the function gives for each item."""
        before = getattr(_chosen, "count", None)
        try:
            _chosen.count = 1
            _helpers.call(min(helpers, len(self._left) - 1), self._help)
            self._work()
        finally:
            _chosen.count = before
            self._close()
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            error = None  # its traceback leads back here, and holds what the helper held
        return self._results

    def _work(self) -> None:
        while self._left:
            try:
                place, item = self._left.popleft()
            except IndexError:  # another thread was quicker
                return
            self._results[place] = self._function(item)

    def _help(self) -> None:
        with self._door:
            if self._closed:
                return
            self._inside += 1
        try:
            self._work()
        except BaseException as error:
            self._left.clear()
            self._error = error
        finally:
            with self._door:
                self._inside -= 1
            self._gone.put(None)

    def _close(self) -> None:
        """Wait for the helpers: after an error or an interrupt nothing may write behind the caller's back, nor if
        interrupts come while waiting."""
        try:
            self._left.clear()
            with self._door:
                self._closed = True
            while self._inside:
                self._gone.get()
        finally:
            if self._inside or not self._closed:
                self._close()
