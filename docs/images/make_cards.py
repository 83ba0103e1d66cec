"""Draw the small pictures of the first page of the docs: python docs/images/make_cards.py.

As in make_tasks.py the code of a page is run as it stands there, and what it leaves behind is drawn.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
from make_tasks import HERE, PAGES, names_of
from matplotlib.patches import Ellipse
from sklearn.decomposition import PCA

COLOURS = ("#1b50a2", "#ff9e1b", "#5bd0bd", "#8e0b52")
TEXT = "#1d2733"


def card(name, draw, **limits):
    """One picture, without axes, in the proportions that the page gives it."""
    figure = plt.figure(figsize=(4.0, 2.5))
    ax = figure.add_axes((0.04, 0.04, 0.92, 0.92))
    ax.axis("off")
    draw(ax)
    ax.set(**limits)
    figure.savefig(HERE / f"card_{name}.png", dpi=100)
    plt.close(figure)


def dots(ax, X, labels, words=(), above=0):
    """Rows on a plane, with a word on each cluster, or above it."""
    for k in range(max(labels) + 1):
        ax.plot(*X[labels == k].T, "o", color=COLOURS[k], markersize=3, alpha=0.8, markeredgewidth=0)
    for k, word in enumerate(words):
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": COLOURS[k], "alpha": 0.92}
        at = {"xy": X[labels == k].mean(axis=0), "xytext": (0, above), "textcoords": "offset points"}
        ax.annotate(word, **at, ha="center", va="center", fontsize=13, color=TEXT, bbox=box)
    ax.margins(0.12, 0.2)


def customers(ax):
    """The customers on a map."""
    names = names_of("customers.md")
    labels = names["model"].labels_
    words = names["model"].profile(names["X"])["name"]
    dots(ax, PCA(2).fit_transform(names["X"]), labels, [word.split(",")[0].split(" and ")[0] for word in words])


def texts(ax):
    """The first words of three topics."""
    names = names_of("texts.md")
    words, shares = names["model"].top_words(3), np.sort(names["model"].components_, axis=1)[:, ::-1]
    for k in range(3):
        for i in range(3):
            ax.barh(-4 * k - i, shares[k, i], color=COLOURS[k], height=0.82)
            ax.text(-0.002, -4 * k - i, words[k, i], ha="right", va="center", fontsize=13, color=TEXT)
    ax.set_xlim(-0.45 * shares.max(), shares.max())


def pictures(ax):
    """A picture as the sum of its objects."""
    names = names_of("pictures.md")
    model = names["model"]
    row = int(np.flatnonzero(model.Z_.sum(axis=1) == 2)[0])
    first, second = np.flatnonzero(model.Z_[row])
    for at, part in enumerate((names["X"][row], model.components_[first], model.components_[second])):
        ax.imshow(part.reshape(8, 8), cmap="Greys", vmin=0, extent=(at * 11, at * 11 + 8, 0, 8))
        if at:
            ax.text(at * 11 - 1.5, 4, "=+"[at - 1], ha="center", va="center", fontsize=22, color=TEXT)
    ax.set(xlim=(-0.5, 30.5), ylim=(-0.5, 8.5), aspect="equal")


def embeddings(ax):
    """Documents by their embeddings, with the word that is commonest in each group."""
    names = names_of("embeddings.md", 2)
    labels = names["model"].labels_
    said = [" ".join(d for d, k in zip(names["documents"], labels) if k == own).split() for own in range(4)]
    dots(ax, PCA(2).fit_transform(names["embeddings"]), labels, [max(set(all_), key=all_.count) for all_ in said], 20)


def single_cells(ax):
    """The cells of the page, on their first two components."""
    adata = names_of("single_cells.md")["adata"]
    dots(ax, adata.obsm["X_pca"][:, :2], adata.obs["kfree"].astype(int).to_numpy())


def densities(ax):
    """The components, and the row that is far from them."""
    names = names_of("densities.md")
    model, X = names["model"], names["X"]
    dots(ax, X, model.predict(X))
    for k in range(model.n_components_):
        value, vector = np.linalg.eigh(model.covariances_[k])
        angle = np.degrees(np.arctan2(*vector[::-1, 1]))
        for size in (2, 4):
            width, height = size * np.sqrt(value[::-1])
            ax.add_patch(Ellipse(model.means_[k], width, height, angle=angle, fill=False, color=COLOURS[k], lw=2))
    odd = names["new"][names["unusual"]][0]
    ax.plot(*odd, "X", color="#b03a2e", markersize=13)
    ax.annotate("unusual", odd, xytext=(10, 0), textcoords="offset points", va="center", fontsize=13, color=TEXT)


def big_files(ax):
    """Seconds for growing numbers of rows, as the table of the benchmark has them."""
    lines = (PAGES.parent / "benchmarks" / "scaling.md").read_text()
    found = re.findall(r"^\| (\d+) +\| 50 +\| ([\d.]+)", lines, re.MULTILINE)
    rows, seconds = np.array(sorted({int(n): float(s) for n, s in found if n != "200000"}.items())).T
    ax.loglog(rows, seconds, "o-", color=COLOURS[0], lw=3, markersize=9)
    for i in (np.flatnonzero(rows == 1e6)[0], len(rows) - 1):
        text = f"{rows[i] / 1e6:.0f} million rows\n{seconds[i]:.2g} s"
        ax.annotate(text, (rows[i], seconds[i]), xytext=(-14, 8), textcoords="offset points", ha="right", fontsize=13)
    ax.set_ylim(seconds.min() / 1.6, seconds.max() * 3.2)


def command(ax):
    """A command, and what it says."""
    ax.set_facecolor(TEXT)
    ax.axis("on")
    ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    lines = (
        "$ kfree cluster customers.csv",
        "",
        "4 clusters",
        "  33%  high orders a year",
        "  27%  high discount share",
    )
    for i, line in enumerate((*lines, "  26%  high days since last order", "Open report.html")):
        ax.text(0.05, 0.88 - 0.13 * i, line, family="monospace", fontsize=9.5, color="white", va="center")


if __name__ == "__main__":
    for draw in (customers, texts, pictures, embeddings, single_cells, densities, big_files, command):
        card(draw.__name__, draw)
