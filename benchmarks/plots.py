"""Pictures in one plain style."""

from matplotlib import use

use("Agg")

import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#1f4e79", "#c55a11", "#7f7f7f"


def panels(count, width=4.6, height=3.6):
    """A figure with axes side by side, without boxes."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, height), squeeze=False, layout="constrained")
    for ax in axes[0]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, alpha=0.25)
    return figure, list(axes[0])


def log_ticks(ax, sizes):
    """A logarithmic axis with the sizes themselves as labels."""
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:g}" if size < 10_000 else f"{size / 1e6:g}M" for size in sizes])
    ax.minorticks_off()


def save(figure, path):
    """Write a picture that is the same for the same figures."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)
