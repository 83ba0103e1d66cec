"""Draw the pictures of docs/tasks: python docs/images/make_tasks.py.

The code of a page is run as it stands there, and its names are drawn: a picture cannot show anything else.
"""

import contextlib
import io
import re
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from kfree import ClusterMapDisplay, MixtureDisplay, TopicsDisplay

HERE = Path(__file__).resolve().parent
PAGES = HERE.parent / "tasks"


def names_of(page, most=None):
    """What the code of a page leaves behind, or its first blocks alone."""
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text(), re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for code in [code for code in blocks if not code.startswith("# not run")][:most]:
            exec(compile(code, page, "exec"), names)
    plt.close("all")
    return names


def save(figure, name):
    """Write a picture and close it."""
    figure.savefig(HERE / f"tasks_{name}.png", dpi=100)
    plt.close(figure)


def customers():
    """The customers on a map."""
    names = names_of("customers.md")
    figure, ax = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    ClusterMapDisplay.from_estimator(names["model"], names["X"], noun="customers", ax=ax)
    save(figure, "customers")


def texts():
    """The words of the topics."""
    names = names_of("texts.md")
    display = TopicsDisplay.from_estimator(names["model"], n_words=5)
    display.figure_.set_size_inches(8.5, 2.6)
    save(display.figure_, "texts")


def densities():
    """The density, and the row that is far from it."""
    names = names_of("densities.md")
    figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    MixtureDisplay.from_estimator(names["model"], names["X"], columns=(0, 1), ax=ax)
    odd = names["new"][names["unusual"]]
    ax.plot(*odd.T, "X", color="#b03a2e", markeredgecolor="black", markersize=11)
    ax.annotate("unusual", odd[0], xytext=(10, -4), textcoords="offset points")
    ax.set_ylim(top=10)  # the display ends where the density does
    save(figure, "densities")


def pictures():
    """The objects that were found, and pictures that show some of them."""
    names = names_of("pictures.md")
    model, X = names["model"], names["X"]
    order = np.argsort(model.Z_.sum(axis=1), kind="stable")
    shown = order[[40, 100, 190]]
    figure, axes = plt.subplots(1, 8, figsize=(8.5, 1.7), layout="constrained")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    for k in range(4):
        axes[k].imshow(model.components_[k].reshape(8, 8), cmap="Greys", vmin=0)
        axes[k].set_title(f"object {k}", fontsize=10)
    axes[4].set_visible(False)
    for ax, i in zip(axes[5:], shown, strict=True):
        ax.imshow(X[i].reshape(8, 8), cmap="Greys", vmin=0)
        ax.set_title(" + ".join(str(k) for k in np.flatnonzero(model.Z_[i])), fontsize=10)
    save(figure, "pictures")


if __name__ == "__main__":
    for draw in (customers, texts, densities, pictures):
        draw()
