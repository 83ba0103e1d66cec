"""Draw the pictures of docs/guide/displays.md: python docs/images/make_displays.py.

They are of the shared data (``KFREE_DATA`` names another place); without these nothing is drawn.
"""

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

from kfree import (
    CentersDisplay,
    ClusterMapDisplay,
    ClusterTreeDisplay,
    DPMeans,
    FeaturesDisplay,
    HDPTopics,
    LamPathDisplay,
    MixtureDisplay,
    StepwiseKFeatures,
    TopicsDisplay,
    VariationalDPMixture,
    lam_path,
)

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("KFREE_DATA", HERE.parents[2] / "shared" / "data"))


def save(display, name):
    """Write a picture and forget it."""
    display.figure_.savefig(HERE / name, dpi=90, metadata={"Software": None})
    plt.close(display.figure_)


def customers():
    """Wholesale customers: the map, the tree, the centres, the prices."""
    file = np.load(DATA / "wholesale.npz")
    X = pd.DataFrame(np.log(file["X"]), columns=file["columns"])
    model = DPMeans(n_clusters=5).fit(X)
    path = lam_path(X)
    save(ClusterMapDisplay.from_estimator(model, X, noun="customers"), "displays_map.png")
    save(ClusterTreeDisplay.from_estimator(model, X, noun="customers"), "displays_tree.png")
    save(CentersDisplay.from_estimator(model, X), "displays_centers.png")
    save(LamPathDisplay.from_path(path, n_clusters=6, kind="price"), "displays_prices.png")


def eruptions():
    """The density of the eruptions of Old Faithful."""
    X = pd.DataFrame(np.load(DATA / "faithful.npz")["X"], columns=["eruption (minutes)", "waiting (minutes)"])
    save(MixtureDisplay.from_estimator(VariationalDPMixture().fit(X), X, noun="eruptions"), "displays_mixture.png")


def news():
    """Topics of a few hundred newspaper articles."""
    X = sp.load_npz(DATA / "reuters395.npz").astype(float)
    words = np.load(DATA / "reuters395.npz")["vocab"]
    model = HDPTopics().fit(X)
    save(TopicsDisplay.from_estimator(model, vocabulary=words, n_words=6, max_topics=8), "displays_topics.png")
    save(TopicsDisplay.from_estimator(model, vocabulary=words, kind="map"), "displays_topic_map.png")


def tabletop():
    """What lies on a table: the first feature is in all photographs, some of the others are things taken away."""
    pictures = np.load(DATA / "tabletop.npz")["images"]
    X = pictures.reshape(len(pictures), -1) / 255
    mean = X.mean(axis=0)
    left, size, right = np.linalg.svd(X - mean, full_matrices=False)
    model = StepwiseKFeatures(base=True, n_init=3).fit(left * size).canonicalize()

    def inverse(rows):
        return rows @ right + mean

    names = ["the table", "banknote", "no phone", "no bottle", "cloth"]
    shape = pictures.shape[1:]
    display = FeaturesDisplay.from_estimator(model, inverse=inverse, image_shape=shape, names=names, noun="photographs")
    save(display, "displays_features.png")


def main():
    """All of them."""
    if not DATA.exists():
        raise SystemExit(f"{DATA} is not there: set KFREE_DATA.")
    customers()
    eruptions()
    news()
    tabletop()


if __name__ == "__main__":
    main()
