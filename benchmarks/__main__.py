"""``python -m benchmarks [table ...] [--quick]``: measure, print, and write docs/benchmarks/."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from benchmarks.data import ROOT
from benchmarks.measure import warm_up
from benchmarks.report import Settings, render, write_index
from benchmarks.tables import NAMES, make


def parse(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure kfree beside its rivals.")
    parser.add_argument("tables", nargs="*", metavar="table", help=f"{', '.join(NAMES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="tiny data, to prove that everything works")
    parser.add_argument("--no-rivals", action="store_true", help="leave out what needs an environment of its own")
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the fastest counts (3)")
    parser.add_argument("--out", type=Path, help="folder to write to (docs/benchmarks; quick: build/benchmarks)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.tables if name not in NAMES]
    if unknown:
        parser.error(f"no table called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if not options.quick and find_spec("numba") is None:
        parser.error("the loops of rivals need numba, which is in the extra bench: make bench installs it")
    return options


def main(arguments=None):
    """Measure the tables one after the other."""
    options = parse(arguments)
    out = options.out or ROOT / ("build/benchmarks" if options.quick else "docs/benchmarks")
    out.mkdir(parents=True, exist_ok=True)
    settings = Settings(options.quick, not options.no_rivals, 1 if options.quick else options.repeats, out)
    warm_up()
    for name in options.tables or NAMES:
        page = render(make(name, settings), options.quick)
        print(page, flush=True)
        (out / f"{name}.md").write_text(page)
    write_index(out, NAMES)


if __name__ == "__main__":
    main()
