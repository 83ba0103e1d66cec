"""A plain thread pool over spans of rows; results come back in the order of the spans.

Kernels release the GIL, so threads are enough, and because sums are added in span order the result does not
depend on how many there are.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

#: Entries above which threads gain more than they cost.
WORTH_THREADS = 200_000
# Items a thread takes, on average, before results are handed on.
_WAVE = 8

_blas_lock = Lock()
_blas_users = 0
_blas_limit: Any = None
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_chosen = local()


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the libraries loaded when first asked; to look for them takes milliseconds."""
    return ThreadpoolController()


@cache
def _openmp() -> ThreadpoolController:
    """Those of them that OpenMP has."""
    return _libraries().select(user_api="openmp")


def n_threads() -> int:
    """Threads to use: what OpenMP and BLAS are limited to (``threadpoolctl``, ``OMP_NUM_THREADS``), or the cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    limits = [int(wanted)] if wanted.isdigit() and int(wanted) > 0 else []
    limits += [library["num_threads"] for library in _openmp().info()]
    return max(1, min([cores, *limits]))


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread while anybody needs it; the limit is the process's, so users are counted."""
    global _blas_users, _blas_limit
    with _blas_lock:
        if _blas_users == 0:
            _blas_limit = _libraries().limit(limits=1, user_api="blas")
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0 and _blas_limit is not None:
                _blas_limit.restore_original_limits()


@contextmanager
def set_span_threads(count: int | None = None) -> Iterator[None]:
    """Fix the number of threads for a block of code; asked of the machine once if not given."""
    before = getattr(_chosen, "count", None)
    _chosen.count = count or n_threads()
    try:
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
    """``map`` with the help of the pool, a few items at a time so that results do not pile up."""
    count, items = getattr(_chosen, "count", None) or 1, list(items)
    if count == 1 or len(items) <= 1:
        yield from map(function, items)
        return
    key = (os.getpid(), count)  # a forked child must not use its parent's threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(count - 1, thread_name_prefix="kfree")
    for start in range(0, len(items), _WAVE * count):
        yield from _together(function, items[start : start + _WAVE * count], _pools[key], count - 1)


def _together(function: Callable[[Any], T], items: list[Any], pool: ThreadPoolExecutor, helpers: int) -> list[T]:
    """Results of a few items; the calling thread works too, as a thread that waits only gets in the others' way."""
    results: list[Any] = [None] * len(items)
    left = deque(enumerate(items))

    def work() -> None:
        before, _chosen.count = getattr(_chosen, "count", None), 1
        try:
            while left:
                try:
                    place, item = left.popleft()
                except IndexError:  # another thread was quicker
                    return
                results[place] = function(item)
        finally:
            _chosen.count = before

    futures: list[Future[None]] = []
    try:
        for _ in range(min(helpers, len(items) - 1)):
            futures.append(pool.submit(work))
        work()
    finally:
        left.clear()  # after an error or an interrupt nothing may write behind the caller's back
        try:
            wait(futures)
        finally:  # nor if the interrupt comes while waiting
            wait(futures)
    for future in futures:
        future.result()
    return results
