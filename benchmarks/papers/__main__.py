"""``python -m benchmarks.papers [page ...] [--quick]``: do the papers' experiments again and write docs/papers/."""

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks import data
from benchmarks.papers import PAGES
from benchmarks.report import Settings, render


def main(arguments=None):
    """Write one page after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="page", help=", ".join(PAGES))
    parser.add_argument("--quick", action="store_true", help="few rows, to prove that everything works")
    parser.add_argument("--out", type=Path, help="folder to write to (docs/papers; quick: build/papers)")
    options = parser.parse_args(arguments)
    if not data.has("scene15_bow"):
        parser.exit(message=f"The images' counts (scene15_bow.npz) are not in {data.FOLDER.name}; nothing to do.\n")
    out = options.out or data.ROOT / ("build/papers" if options.quick else "docs/papers")
    out.mkdir(parents=True, exist_ok=True)
    for name in options.pages or PAGES:
        table = import_module(f"benchmarks.papers.{name}").make(Settings(quick=options.quick, out=out))
        page = render(table, options.quick)
        print(page, flush=True)
        (out / f"{table.name}.md").write_text(page)


if __name__ == "__main__":
    main()
