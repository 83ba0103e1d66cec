"""Time over the number of rows, read from disk, and over the number of clusters."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import best_of, n_used, nmi
from benchmarks.plots import BLUE, GREY, log_ticks, panels, save
from benchmarks.report import Mark, Table
from benchmarks.workloads import centres, gauss, lambda_for
from kfree import DPMeans

ROWS = (100_000, 316_000, 1_000_000, 3_160_000, 10_000_000)
CLUSTERS = (25, 50, 100, 200, 400, 800)
D, K, SEPARATION, ROWS_FOR_K = 16, 50, 2.0, 200_000
BLOCK = 100_000
HEADER = ["rows", "true K", "seconds", "microseconds a row", "passes", "K", "NMI"]
TEXT = (
    "Gaussians in 16 columns, separation 2. First more rows at 50 clusters, as float64 memory maps on disk that "
    "are never loaded whole; then more clusters at 200 000 rows in memory. radius = 0.7 x farthest-first at the true "
    "K. The dashed line is exactly linear."
)


def write_rows(path, n, seed=0):
    """A memory map of n rows from the same mixture for every n, written block by block; returns the truth."""
    mean = centres(np.random.default_rng(seed), K, D, SEPARATION * np.sqrt(D))
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, D))
    truth = np.empty(n, np.int32)
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng([seed, start])
        rows = slice(start, min(start + BLOCK, n))
        truth[rows] = rng.integers(K, size=rows.stop - rows.start)
        X[rows] = mean[truth[rows]] + rng.standard_normal((rows.stop - rows.start, D))
    X.flush()
    return truth


def measure(X, truth, k, lam, settings):
    """A line of the table."""
    seconds, model = best_of(settings.repeats, lambda: DPMeans(radius=lam).fit(X))
    labels = model.labels_
    return [X.shape[0], k, seconds, 1e6 * seconds / X.shape[0], model.n_iter_, n_used(labels), nmi(truth, labels)]


def over_rows(settings):
    """More and more rows of one mixture."""
    lines, lam = [], None
    for n in (1000, 3000) if settings.quick else ROWS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            truth = write_rows(path, n)
            X = np.load(path, mmap_mode="r")
            lam = lam or lambda_for(X, K)
            lines.append(measure(X, truth, K, lam, settings))
    return lines


def over_clusters(settings):
    """More and more clusters in the same number of rows."""
    lines = []
    for k in (5, 10) if settings.quick else CLUSTERS:
        X, truth = gauss(1000 if settings.quick else ROWS_FOR_K, D, k, SEPARATION)
        lines.append(measure(X, truth, k, lambda_for(X, k), settings))
    return lines


def last_growth(sizes, seconds):
    """Exponent of the growth over the last two steps: fixed costs weigh little there, and one odd fit not too much."""
    first = max(-3, -len(sizes))
    return float(np.log(seconds[-1] / seconds[first]) / np.log(sizes[-1] / sizes[first]))


def draw(by_rows, by_clusters, path):
    """Seconds over rows and over clusters, each beside a linear growth."""
    figure, axes = panels(2)
    for ax, rows, column, label in ((axes[0], by_rows, 0, "rows"), (axes[1], by_clusters, 1, "clusters")):
        size, seconds = np.array([row[column] for row in rows], float), np.array([row[2] for row in rows])
        ax.plot(size, seconds[-1] * size / size[-1], "--", color=GREY, lw=1, label="linear")
        ax.plot(size, seconds, "o-", color=BLUE, label="kfree")
        log_ticks(ax, size)
        ax.set(yscale="log", xlabel=label, ylabel="seconds to convergence")
        ax.legend(frameon=False)
    save(figure, path)


def make(settings):
    """The table and its picture."""
    by_rows, by_clusters = over_rows(settings), over_clusters(settings)
    draw(by_rows, by_clusters, settings.out / "scaling.png")
    marks = [
        Mark(
            "exponent of growth in rows, last two steps",
            last_growth([r[0] for r in by_rows], [r[2] for r in by_rows]),
            1.1,
            at_least=False,
        ),
        Mark(
            "exponent of growth in clusters, last two steps",
            last_growth([r[1] for r in by_clusters], [r[2] for r in by_clusters]),
            1.1,
            at_least=False,
        ),
    ]
    rows = by_rows + by_clusters
    return Table("scaling", "Growth with rows and clusters", TEXT, HEADER, rows, marks=marks, picture="scaling.png")
