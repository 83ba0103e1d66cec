"""Tables in markdown, with the machine and the versions they were measured with."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from benchmarks import THREADS

PDC = "pdc-dp-means: time, K, NMI"
OPENING = (
    "Separated Gaussian clusters and sparse counts, fitted to convergence with 2 threads for everybody; times of the "
    "others as multiples of kfree's in the same run. K is told to KMeans and found by the other two."
)
PACKAGES = ("kfree", "numpy", "scipy", "scikit-learn")


#: Rows of a short table, and how many times as often its runs are repeated.
SHORT, SHORT_RUNS = 12_000, 4


class Settings(NamedTuple):
    """How a table is measured."""

    quick: bool = False  # small sizes, to prove that everything works
    rivals: bool = True  # run what needs an environment of its own
    repeats: int = 3
    out: Path = Path("docs/benchmarks")

    def for_rows(self, n):
        """The same for a table of n rows: three runs of some milliseconds tell more about what ran before them than
        about the fit, so short ones are repeated more often."""
        return self._replace(repeats=SHORT_RUNS * self.repeats) if n <= SHORT else self


class Mark(NamedTuple):
    """A figure that was promised, and what was measured."""

    what: str
    measured: float
    promised: float
    at_least: bool = True

    def __str__(self):
        reached = self.measured >= self.promised if self.at_least else self.measured <= self.promised
        bound = "at least" if self.at_least else "at most"
        return f"{self.what}: **{show(self.measured)}** ({bound} {show(self.promised)}: {'yes' if reached else 'NO'})"


class Table(NamedTuple):
    """What a benchmark returns."""

    name: str
    title: str
    text: str
    header: list[str]
    rows: list[list]
    notes: list[str] = []  # noqa: RUF012 - never changed in place
    marks: list[Mark] = []  # noqa: RUF012
    picture: str | None = None


def show(value):
    """A cell: three significant digits, nothing for nothing."""
    if value is None:
        return "-"
    if isinstance(value, float) and abs(value) < 1e-9:
        return "0"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def ratio(other, mine):
    """How many times faster I am."""
    return None if other is None else other / mine


def lines(header, rows):
    """A markdown table."""
    cells = [[show(value) for value in row] for row in rows]
    widths = [max(len(row[column]) for row in [header, *cells]) for column in range(len(header))]
    rule = ["-" * width for width in widths]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths)] for row in [header, rule, *cells]]
    return ["| " + " | ".join(row) + " |" for row in padded]


def render(table, quick=False):
    """The page of a table."""
    page = [f"# {table.title}", "", table.text, ""]
    if quick:
        page += ["**A quick run on tiny data: it shows that the code works, not how fast it is.**", ""]
    page += lines(table.header, table.rows)
    if table.picture:
        page += ["", f"![{table.title}]({table.picture})"]
    if table.marks:
        page += ["", *[f"* {mark}" for mark in table.marks]]
    if table.notes:
        page += ["", *[f"* {note}" for note in table.notes]]
    return "\n".join([*page, "", machine(), ""])


def machine():
    """Processor, memory, versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Machine: {_processor()}, {os.cpu_count()} processors, {memory:.0f} GiB; {THREADS} threads for everybody. "
        f"Python {platform.python_version()}, {versions}."
    )


def _processor():
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def summary(page):
    """The first table of the index, from the page of the convergence table: float64 rows, a line for each set."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line[:1] == "|"]
    found = []
    for row in rows[2:]:
        if row[2] == "kfree":
            found.append({"data": row[0], "type": row[1]})
        found[-1][row[2]] = row
    table = []
    for runs in found:
        if runs["type"] != "float64":
            continue
        mine = runs["kfree"]
        line = [runs["data"], f"{mine[3]} s, K {mine[6]}, {mine[7]}"]
        for who in ("KMeans, true K", "pdc-dp-means"):
            theirs = runs.get(who)
            line.append("-" if theirs is None else f"{theirs[4]} times, K {theirs[6]}, {theirs[7]}")
        table.append(line)
    return lines(["rows, columns, clusters (true K)", "kfree: time, K, NMI", "KMeans told K: time, K, NMI", PDC], table)


def opening(folder):
    """What the index begins with: the table to show to somebody in a hurry, if it was measured."""
    page = folder / "convergence.md"
    return [OPENING, "", *summary(page.read_text()), ""] if page.exists() else []


def write_index(folder, tables):
    """README of a folder of tables, with the marks of each; pages of earlier runs stay listed."""
    titles = {}
    for page in sorted(folder.glob("*.md")):
        if page.name != "README.md":
            text = page.read_text().splitlines()
            titles[page.stem] = (
                text[0].removeprefix("# "),
                [line for line in text if line.startswith("* ") and "**" in line],
            )
    known = [name for name in tables if name in titles] + [name for name in titles if name not in tables]
    parts = [
        "# Benchmarks",
        "",
        "Written by `make bench`; a ratio compares two figures of one run.",
        "",
        *opening(folder),
    ]
    for name in known:
        title, marks = titles[name]
        parts += [f"## [{title}]({name}.md)", "", *(marks or ["No figure was promised here."]), ""]
    (folder / "README.md").write_text("\n".join([*parts, machine(), ""]))
