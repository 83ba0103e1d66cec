"""Draw the pictures of docs/guide/features.md: python docs/images/make_features.py.

Baskets, faces and digits are drawn if the shared data are there (``KFREE_DATA`` names another place).
"""

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from kfree import KFeatures, StepwiseKFeatures

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("KFREE_DATA", HERE.parents[2] / "shared" / "data"))
BLUE, GREY = "#1f4e79", "#8a949c"


def show(ax, picture, title="", **options):
    """A picture without axes."""
    ax.imshow(picture, **options)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)


def save(fig, name):
    """Write a picture and forget it."""
    fig.savefig(HERE / name, dpi=110, metadata={"Software": None})
    plt.close(fig)


def planted(n=200, noise=0.3):
    """Pictures of 6 x 6 pixels, each with some of four shapes."""
    rng = np.random.default_rng(0)
    shapes = np.zeros((4, 6, 6))
    shapes[0, :2, :2], shapes[1, 1:5, 4], shapes[2, 4, :4], shapes[3, 2:4, 1:3] = 1, 1, 1, 1
    return rng.integers(2, size=(n, 4)) @ shapes.reshape(4, -1) + noise * rng.normal(size=(n, 36))


def bars():
    """Six of the pictures, and the features found; then the path."""
    X = planted()
    model = StepwiseKFeatures().fit(X).canonicalize()
    fig, axes = plt.subplots(2, 6, figsize=(8.4, 3.1), layout="constrained")
    for ax, row, bits in zip(axes[0], X, model.Z_):
        show(ax, row.reshape(6, 6), "row " + "".join(map(str, bits)), cmap="Blues", vmin=-0.5, vmax=1.5)
    for ax in axes[1]:
        ax.axis("off")
    for k, (ax, mean) in enumerate(zip(axes[1], model.components_)):
        ax.axis("on")
        show(ax, mean.reshape(6, 6), f"feature {k + 1}: {model.counts_[k]} rows", cmap="RdBu", vmin=-1.2, vmax=1.2)
    save(fig, "features.png")
    axes = model.path_.plot()
    axes[0].figure.savefig(HERE / "features_path.png", dpi=110, metadata={"Software": None})
    plt.close(axes[0].figure)


def baskets():
    """What is bought together: the items of each feature."""
    X = sp.load_npz(DATA / "groceries.npz").astype(float).tocsr()
    items = np.load(DATA / "groceries.npz")["items"]
    model = KFeatures(8, random_state=0).fit(X)
    fig, axes = plt.subplots(2, 4, figsize=(11.0, 4.4), layout="constrained")
    for ax, mean, count in zip(axes.flat, model.components_, model.counts_):
        top = np.argsort(-np.abs(mean))[:5][::-1]
        ax.barh(items[top], mean[top], color=np.where(mean[top] > 0, BLUE, GREY))
        ax.set_title(f"{count:,} baskets", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    save(fig, "features_baskets.png")
    return model


def pictures(images, model, name, base):
    """The base and the features of pictures."""
    shape = images.shape[1:]
    K = model.n_components_
    parts = [("base", model.intercept_)] if base else []
    parts += [(f"{model.counts_[k]:,} pictures", model.components_[k]) for k in range(K)]
    rows = -(-len(parts) // 7)
    fig, axes = plt.subplots(rows, 7, figsize=(10.2, 1.75 * rows), layout="constrained", squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, (title, row) in zip(axes.flat, parts):
        ax.axis("on")
        size = np.abs(row).max()
        options = {"cmap": "gray"} if title == "base" else {"cmap": "RdBu", "vmin": -size, "vmax": size}
        show(ax, row.reshape(shape), title, **options)
    save(fig, name)


def faces():
    """Features of faces."""
    images = np.load(DATA / "olivetti.npz")["X"] / 255.0
    model = KFeatures(6, base="intercept", random_state=0, n_init=4).fit(images.reshape(len(images), -1))
    pictures(images, model, "features_faces.png", True)
    return model


def digits():
    """Features of handwritten digits."""
    images = np.load(DATA / "mnist_train.npz")["X"][:5000] / 255.0
    model = KFeatures(12, random_state=0, n_init=2).fit(images.reshape(len(images), -1))
    pictures(images, model, "features_digits.png", False)
    return model


if __name__ == "__main__":
    bars()
    for draw, file in ((baskets, "groceries"), (faces, "olivetti"), (digits, "mnist_train")):
        if (DATA / f"{file}.npz").exists():
            made = draw()
            print(draw.__name__, f"explained {made.explained_:.3f}", made.counts_)
