"""VariationalDPMixture on handwritten digits: Fast-VDP beside VDP."""

from benchmarks import data
from benchmarks.report import Mark, Table
from benchmarks.tables.variational import HEADER, measure

TEXT = (
    "60 000 handwritten digits (MNIST) in 50 principal components, one fit each. VDP and Fast-VDP as in the table of "
    "generated Gaussians."
)


def make(settings):
    """The table."""
    lines, marks = [], []
    if data.has("mnist_train"):
        rows = 1000 if settings.quick else 60_000
        line, _ = measure(f"MNIST {rows} x 50", data.mnist(rows).X, settings._replace(repeats=1))
        marks.append(Mark("Fast-VDP, times faster than our VDP on MNIST", line[6], 5.0))
        marks.append(Mark("Fast-VDP, free energy ratio on MNIST (paper: 1.044)", line[7], 1.044, at_least=False))
        lines.append([*line[:7], f"{line[7]:.5f}"])
    return Table("variational_mnist", "Variational mixtures: handwritten digits", TEXT, HEADER[:8], lines, [], marks)
