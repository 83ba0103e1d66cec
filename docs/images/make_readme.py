"""Draw the picture that opens the README: python docs/images/make_readme.py.

Needs the shared data, which are not part of this repository (``KFREE_DATA`` names another place).
"""

import io
import os
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

from kfree import BPMeans, DPMeans, TablePreparer
from kfree.displays.palette import colours

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("KFREE_DATA", HERE.parents[2] / "shared" / "data"))
INK, GREY = "#22303c", "#5d6a75"
#: Photographs that are shown as sums, by the objects in them.
SHOWN = ([0, 1, 1, 1], [1, 1, 0, 1])
#: The channel of the customers that are shops; nothing but what they spend is shown to the model.
SHOP = 2
#: Where words begin beside bars, in widths of these.
LEFT = -0.61
CALLED = ("hand axe", "glass bottle", "phone", "banknote")
#: The photographs are dark: all of them, and their parts, are shown brighter by the same factor and curve.
GAIN, GAMMA = 1.7, 0.8
#: Twice the width that a README has.
DPI = 200


def parts_of(photographs, truth):
    """The table without anything on it, what each object adds to it, and who has which, in the order of ``truth``."""
    pixels = photographs.reshape(len(photographs), -1) / 255.0
    model = BPMeans(base="intercept").fit(pixels)
    found = model.Z_.astype(bool)
    same = np.array([[np.mean(mine == known) for mine in found.T] for known in truth.T.astype(bool)])
    place = np.abs(same - 0.5).argmax(axis=1)
    # a feature that takes an object off the table says the same as one that puts it there: all are told as additions
    flipped = same[np.arange(len(place)), place] < 0.5
    parts = np.where(flipped[:, None], -1, 1) * model.components_[place]
    base = model.intercept_ - parts[flipped].sum(axis=0)
    shape = photographs.shape[1:]
    return base.reshape(shape), parts.reshape(-1, *shape), found[:, place] ^ flipped


def show(ax, picture, title="", edge=None):
    """A picture without axes."""
    ax.imshow(np.clip(GAIN * picture, 0, 1) ** GAMMA)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=8, color=INK, pad=3)
    for spine in ax.spines.values():
        spine.set(visible=edge is not None, color=edge, linewidth=1.6)


def between(axes, signs):
    """Signs in the gaps before pictures."""
    for ax, sign in zip(axes, signs):
        ax.text(-0.072, 0.48, sign, transform=ax.transAxes, ha="center", va="center", fontsize=11, color=INK)


def photographs(figure):
    """Three lines: what was found, and two photographs as sums of it."""
    file = np.load(DATA / "tabletop.npz")
    images = file["images"] / 255.0
    base, parts, Z = parts_of(file["images"], file["Z"])
    axes = figure.add_gridspec(3, 5, left=0.012, right=0.66, top=0.8, bottom=0.01, wspace=0.15, hspace=0.2).subplots()
    tints = [colours(6)[k] for k in (1, 4, 2, 5)]
    show(axes[0, 0], base, "the table: in all", GREY)
    for ax, part, has, name, tint in zip(axes[0, 1:], parts, Z.T, CALLED, tints):
        show(ax, part, f"{name}: in {has.sum()}", tint)
    for line, bits in zip(axes[1:], SHOWN):
        n = int(np.flatnonzero((np.array(bits, bool) == Z).all(axis=1))[0])
        show(line[0], images[n], f"photograph {n + 1}")
        show(line[1], base, edge=GREY)
        for ax, j in zip(line[2:], np.flatnonzero(bits)):
            show(ax, parts[j], edge=tints[j])
        for ax in line[2 + sum(bits) :]:
            ax.axis("off")
        between(line[1 : 2 + sum(bits)], "=" + "+" * sum(bits))


def customers(figure):
    """What each segment spends, and what it is called."""
    file = np.load(DATA / "wholesale.npz")
    names = [name.replace("_Paper", "").replace("Delicassen", "Delicatessen").lower() for name in file["columns"]]
    table, channel = pd.DataFrame(file["X"], columns=names), file["channel"]
    X = TablePreparer().set_output(transform="pandas").fit_transform(table)
    model = DPMeans().fit(X)
    found = model.profile(X)
    K = model.n_clusters_
    axes = figure.add_gridspec(K, 1, left=0.805, right=0.985, top=0.71, bottom=0.095, hspace=0.52).subplots(sharex=True)
    for k, (ax, tint) in enumerate(zip(axes, colours(K))):
        mine = model.labels_ == k
        ax.barh(names[::-1], (table[mine].median() / 1000)[::-1], color=tint, height=0.66)
        ax.text(
            LEFT, 1.19, f"“{found['name'].iloc[k]}”", transform=ax.transAxes, fontsize=8, color=tint, fontweight="bold"
        )
        share = np.mean(channel[mine] == SHOP)
        who = f"{share:.0%} shops" if share > 0.5 else f"{1 - share:.0%} hotels and restaurants"
        ax.text(LEFT, 1.035, f"{mine.sum()} customers, {who}", transform=ax.transAxes, fontsize=7.5, color=GREY)
        ax.tick_params(length=0, labelsize=7.5, labelcolor=INK)
        ax.set_xticks([0, 5, 10], ["0", "5 000", "10 000"])
        ax.spines[:].set_visible(False)
        ax.spines["left"].set(visible=True, color=GREY)
    axes[-1].set_xlabel("spent a year, median", fontsize=7.5, color=GREY, labelpad=2)


def save(figure, path):
    """A PNG without the lowest bits of its colours, which are grain: half the size, and nobody sees it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, format="png")
    colour = np.asarray(Image.open(drawn).convert("RGB"))
    Image.fromarray(np.where(colour > 250, colour, colour & 0xF8)).save(path, optimize=True)


def main():
    """Draw it."""
    missing = [name for name in ("tabletop.npz", "wholesale.npz") if not (DATA / name).exists()]
    if missing:
        print(f"Skipped: {DATA} has no {' and no '.join(missing)}.")
        return 0
    figure = plt.figure(figsize=(8.0, 3.55))
    photographs(figure)
    customers(figure)
    for left, title, below in (
        (
            0.015,
            "100 photographs taken apart: a table and four objects",
            'BPMeans(base="intercept").fit(pixels) finds them. Each photograph is a sum.',
        ),
        (0.695, "440 customers: two kinds", "DPMeans() finds and names them."),
    ):
        figure.text(left, 0.945, title, fontsize=11.5, color=INK, fontweight="bold")
        figure.text(left, 0.885, below, fontsize=8.5, color=GREY)
    save(figure, HERE / "readme.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
