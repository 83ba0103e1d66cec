"""``python -m benchmarks.beside PYTHON``: this kfree beside the one that another interpreter imports, in turns.

For "is it slower than it was": the same data, the same machine, one process for each, workload after workload, each
asked in turns and the least time of each taken. What differs in answers is shown, not hidden.
"""

import argparse
import json
import os
import subprocess
import sys
from importlib.util import find_spec

from benchmarks.data import ROOT
from benchmarks.report import lines, show

HEADER = ["workload", "other seconds", "seconds", "times faster", "labels"]


class Worker:
    """An interpreter that fits on demand."""

    def __init__(self, python, environment):
        """``environment``: words NAME=value."""
        more = dict(word.split("=", 1) for word in environment)
        command = [python, "-m", "benchmarks.beside_worker"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | more, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, name, seconds):
        """The answer of the worker about a workload, or None if it failed (it said why on stderr)."""
        if self.process.poll() is not None:
            return None
        self.process.stdin.write(json.dumps([name, seconds]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else None


def compare(name, other, mine, *, rounds, seconds):
    """A line of the table: both in turns."""
    before, now = {}, {}
    for _ in range(rounds):
        for worker, found in ((other, before), (mine, now)):
            answer = worker.ask(name, seconds)
            if answer is None:
                return [name, None, None, None, "failed"]
            found |= answer | {"seconds": min(answer["seconds"], found.get("seconds", float("inf")))}
    same = "equal" if before["digest"] == now["digest"] else f"K {before['K']}, {now['K']}"
    return [name, before["seconds"], now["seconds"], before["seconds"] / now["seconds"], same]


def main(arguments=None):
    """Print a table of all workloads, or of those whose names begin with a word."""
    if find_spec("kfree") is None:
        sys.exit("kfree is not installed here")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description=__doc__)
    parser.add_argument("python", help="interpreter of the other environment")
    parser.add_argument("workloads", nargs="*", help="beginnings of names; all by default")
    parser.add_argument("--theirs", action="append", default=[], metavar="NAME=VALUE", help="their environment")
    parser.add_argument("--mine", action="append", default=[], metavar="NAME=VALUE", help="environment of this kfree")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="least time of a workload in a round")
    options = parser.parse_args(arguments)
    from benchmarks.beside_worker import WORKLOADS

    other, mine = Worker(options.python, options.theirs), Worker(sys.executable, options.mine)
    chosen = [name for name in WORKLOADS if name.startswith(tuple(options.workloads or ("",)))]
    rows = []
    for name in chosen:
        rows.append(compare(name, other, mine, rounds=options.rounds, seconds=options.seconds))
        print("  ".join(show(cell) for cell in rows[-1]), file=sys.stderr, flush=True)
    print("\n".join(lines(HEADER, rows)))


if __name__ == "__main__":
    main()
