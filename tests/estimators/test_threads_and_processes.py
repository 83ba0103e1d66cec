"""Fits in threads, forked children and pools: the same results, no more threads than cores want, and no waiting."""

import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController, threadpool_limits

from kfree.rows import n_threads, set_span_threads
from kfree.rows import threads as threads_module
from kfree.rows.threads import in_order
from support.interrupts import sigint_after
from support.short_fits import FITS, results

#: Seconds after which something hangs.
HANG = 60.0
#: Fits for processes that have to load everything first.
SOME = ["radius", "lam", "shared", "features", "tree"]
unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
linux = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="threads are counted where Linux lists them")


@pytest.fixture(scope="module")
def alone():
    """What the fits come to one after the other, in a process that has used its threads."""
    return results()


# Threads


def test_fits_from_many_threads_at_once_are_those_of_one(alone):
    names = [*FITS, *FITS]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: FITS[name].result(), names, timeout=HANG))
    assert found == [alone[name] for name in names]


@pytest.mark.parametrize("how", ["threadpoolctl", "OMP_NUM_THREADS"])
def test_fits_on_one_thread_are_those_of_several(alone, how, monkeypatch):
    if how == "OMP_NUM_THREADS":
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        assert n_threads() == 1
        assert results() == alone
    else:
        with threadpool_limits(1):
            assert n_threads() == 1
            assert results() == alone


def threads_now():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads"))


@linux
def test_nested_fits_share_the_threads_that_help(alone):
    most, over = [], threading.Event()

    def count():
        while not over.is_set():
            most.append(threads_now())
            time.sleep(0.002)

    before = threads_now()
    watch = threading.Thread(target=count)
    watch.start()
    names = [name for name in FITS if name != "features"] * 2  # that one is told to take two threads
    found = Parallel(n_jobs=4, backend="threading")(delayed(FITS[name].result)() for name in names)
    over.set()
    watch.join()
    assert found == [alone[name] for name in names]
    # the watch, joblib's four and those that tend them
    assert max(most) <= before + 1 + 4 + 4 + n_threads() - 1


def test_callers_share_the_helpers():
    """However many threads call, and however often, there are no more helpers than one caller wants."""
    inside, most, lock = 0, 0, threading.Lock()

    def work(_):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.001)
        with lock:
            inside -= 1

    def call(_):
        with set_span_threads(2):
            return len(list(in_order(work, range(40))))

    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(call, range(10), timeout=HANG)) == [40] * 10
    assert most <= 5 + max(1, threads_module._helpers._wanted)


@unix
def test_ctrl_c_is_the_main_threads(alone):
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(FITS["radius"].result)
        with pytest.raises(KeyboardInterrupt), sigint_after(0.05):
            time.sleep(HANG)
        assert found.result(HANG) == alone["radius"]


# Helpers that do not come


def test_without_helpers_the_caller_works_alone(alone, monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads_module, "start_new_thread", refuse)
    monkeypatch.setattr(threads_module, "_helpers", threads_module._Helpers())
    with set_span_threads(4):
        assert list(in_order(lambda i: i * i, range(50))) == [i * i for i in range(50)]
    assert FITS["radius"].result() == alone["radius"]
    assert threads_module._helpers._calls.empty()  # nothing waits for a helper that never comes


# BLAS


@unix
def test_interrupts_at_any_moment_leave_the_limits_of_blas_as_they_were():
    def interrupt(number, frame):
        raise KeyboardInterrupt

    def limits():
        return [library["num_threads"] for library in ThreadpoolController().info()]

    expected, delay, came = limits(), np.random.default_rng(0).uniform(1e-6, 2e-4, 400), 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for seconds in delay:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # again, if it comes within a finalizer
                while True:
                    with set_span_threads(2):
                        list(in_order(abs, range(3)))
            except KeyboardInterrupt:
                came += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert came == delay.size
    assert threads_module._blas_limit._users == set()
    assert limits() == expected
    with set_span_threads(2):
        assert list(in_order(abs, range(-50, 0))) == list(range(50, 0, -1))


# Processes


def in_child(work):
    """What some work gives in a forked child; fails if it hangs."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writes, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(writes)
    try:
        if not select.select([reads], [], [], HANG)[0]:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child hangs")
        return pickle.loads(os.read(reads, 1 << 16))
    finally:
        os.close(reads)
        os.waitpid(child, 0)


@unix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_fits_as_its_parent_did(alone):
    assert in_child(results) == alone


@unix
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_others_fit_can_fit(alone):
    over = threading.Event()

    def fit_on():
        while not over.is_set():
            FITS["radius"].run()

    others = [threading.Thread(target=fit_on) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for _ in range(8):
            assert in_child(FITS["radius"].result) == alone["radius"]
    finally:
        over.set()
        for other in others:
            other.join()
    assert threads_module._blas_limit._users == set()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_pools_of_processes_fit_as_the_parent_did(alone, method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply_async(results, [SOME]).get(HANG) == {name: alone[name] for name in SOME}


def test_joblib_workers_fit_as_the_parent_did(alone):
    found = Parallel(n_jobs=2, timeout=HANG)(delayed(FITS[name].result)() for name in SOME)
    assert found == [alone[name] for name in SOME]


# The end of a process

EXIT_WHILE_A_HELPER_STARTS = """
import threading
from kfree.rows import set_span_threads
from kfree.rows.threads import in_order

start = threading.Thread.start

def interrupted(self):
    start(self)
    threading.Thread.start = start
    raise KeyboardInterrupt

threading.Thread.start = interrupted
try:
    with set_span_threads(2):
        list(in_order(abs, range(50)))
except KeyboardInterrupt:
    pass
"""
EXIT_WHILE_A_DAEMON_FITS = """
import threading, time
from support.short_fits import FITS

def fit_on():
    while True:
        FITS["radius"].run()

FITS["radius"].run()
threading.Thread(target=fit_on, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("script", [EXIT_WHILE_A_HELPER_STARTS, EXIT_WHILE_A_DAEMON_FITS], ids=["start", "daemon"])
def test_a_process_exits(script):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], timeout=HANG, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
