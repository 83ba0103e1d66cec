"""Many inputs on all cores: each worker is a process of its own, so that a crash or a hang costs one input."""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fuzz.check import check
from fuzz.shrink import shrink
from fuzz.subjects import SUBJECTS, draw_case
from fuzz.watched import HANGS, Fault

CASES = Path(__file__).parent / "cases"
#: Seconds after which a worker that says nothing is killed: it cannot be interrupted where it is.
_SILENT = 4 * HANGS


class Found(NamedTuple):
    """A broken law, and the smallest input known to break it."""

    subject: str
    law: str
    detail: str
    seed: list[int]


class Tally(NamedTuple):
    """What became of all inputs."""

    fitted: Counter[str]  # by subject
    refused: Counter[str]
    bad: Counter[str]
    late: dict[str, float]  # most seconds a fit returned after max_time
    found: list[Found]

    @classmethod
    def empty(cls) -> "Tally":
        """Before the first input."""
        return cls(Counter(), Counter(), Counter(), {}, [])

    def add(self, line: dict[str, Any]) -> None:
        """Count one input."""
        subject = line["subject"]
        (self.refused if line["status"] == "refused" else self.fitted)[subject] += 1
        self.late[subject] = max(self.late.get(subject, 0.0), line["late"])
        if line["faults"]:
            self.bad[subject] += 1
        self.found.extend(Found(subject, law, detail, line["seed"]) for law, detail in line["faults"])


def subject_of(seed: list[int], only: list[str]) -> str:
    """Which subject an input is for."""
    names = only or list(SUBJECTS)
    share = np.array([SUBJECTS[name].share for name in names])
    return names[int(np.random.default_rng([*seed, 1]).choice(len(names), p=share / share.sum()))]


def work(seed: int, first: int, step: int, only: list[str]) -> None:
    """A worker: inputs ``first``, ``first + step``, ... one line each on standard output, without end."""
    for index in itertools.count(first, step):
        name = subject_of([seed, index], only)
        case = draw_case(name, [seed, index])
        verdict = check(case)
        timed = verdict.status == "fitted" and case.params.get("max_time") is not None
        late = max(verdict.seconds - case.params["max_time"], 0.0) if timed else 0.0
        print(json.dumps(_line(name, [seed, index], verdict.status, verdict.faults, late)), flush=True)


def _line(name: str, seed: list[int], status: str, faults: list[Fault], late: float = 0.0) -> dict[str, Any]:
    """What a worker says of an input."""
    return {"subject": name, "seed": seed, "status": status, "faults": faults, "late": late}


def warm_up(only: list[str]) -> None:
    """Have the kernels compiled and kept, so that clocks measure fits."""
    for name in only or list(SUBJECTS):
        for index in range(20):
            check(draw_case(name, [0, index]))


def run(seed: int, seconds: float, jobs: int, only: list[str], tell: Any = print) -> Tally:
    """Try inputs for some time."""
    tally, lines, end = Tally.empty(), queue.Queue(), time.monotonic() + seconds
    threads = [
        threading.Thread(target=_keep_working, args=(seed, first, jobs, only, lines, end), daemon=True)
        for first in range(jobs)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or not lines.empty():
        try:
            line = lines.get(timeout=0.5)
        except queue.Empty:
            continue
        tally.add(line)
        for law, detail in line["faults"]:
            tell(f"{line['subject']} {line['seed']}: {law}: {detail}")
    return tally


def _command(seed: int, first: int, step: int, only: list[str]) -> list[str]:
    """How a worker is started."""
    where = ["--work", str(first), "--seed", str(seed), "--jobs", str(step)]
    return [sys.executable, "-m", "fuzz", *where, *(f"--only={name}" for name in only)]


def _keep_working(seed: int, index: int, step: int, only: list[str], lines: Any, end: float) -> None:
    """Keep one worker process going until the end; start another after the input that one died of."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    while time.monotonic() < end:
        command = _command(seed, index, step, only)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for line in _lines(process, end):
            lines.put(json.loads(line))
            index += step
        process.kill()
        _, error = process.communicate()
        if time.monotonic() < end:
            fault = Fault("kills the process", f"exit {process.returncode}: {error[-300:]}")
            lines.put(_line(subject_of([seed, index], only), [seed, index], "fitted", [fault]))
            index += step


def _lines(process: Any, end: float) -> Iterator[str]:
    """Lines of a worker until the end, or until it dies or falls silent."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while time.monotonic() < end:
        try:
            line = lines.get(timeout=min(_SILENT, max(end - time.monotonic(), 0.01)))
        except queue.Empty:
            return
        if not line:
            return
        yield line


def keep(found: Found, folder: Path = CASES) -> Path:
    """Shrink an input and keep it as a regression test."""
    case = draw_case(found.subject, found.seed)
    case = shrink(case, found.law)
    name = "".join(c if c.isalnum() else "_" for c in f"{found.subject} {found.law}".lower())
    path = folder / f"{name}_{found.seed[0]}_{found.seed[1]}.json"
    path.write_text(case.to_json() + "\n")
    return path
