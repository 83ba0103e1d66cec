"""A plain thread pool over spans of rows; results come back in the order of the spans.

Kernels release the GIL, so threads are enough, and because sums are added in span order the result does not
depend on how many there are.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

_blas_lock = Lock()
_blas_users = 0
_blas_limit: Any = None
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_chosen = local()


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the libraries loaded when first asked; to look for them takes milliseconds."""
    return ThreadpoolController()


def n_threads() -> int:
    """Threads to use: what OpenMP and BLAS are limited to (``threadpoolctl``, ``OMP_NUM_THREADS``), or the cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    limits = [int(wanted)] if wanted.isdigit() and int(wanted) > 0 else []
    limits += [library["num_threads"] for library in _libraries().info() if library["user_api"] == "openmp"]
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


def in_order(function: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
    """``map`` on the pool, with a few items in flight so that results do not pile up."""
    count, items = getattr(_chosen, "count", None) or 1, list(items)
    if count == 1 or len(items) <= 1:
        yield from map(function, items)
        return
    key = (os.getpid(), count)  # a forked child must not use its parent's threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(count, thread_name_prefix="kfree")
    pool = _pools[key]
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 3 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:  # after an interrupt nothing may write behind the caller's back
            future.cancel()
        for future in waiting:
            if not future.cancelled():
                future.exception()
