"""Draw the picture of docs/guide/gibbs.md: python docs/images/make_gibbs.py."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from kfree import GibbsDPMixture

HERE = Path(__file__).resolve().parent
BLUE, GREY = "#1f4e79", "#8a949c"


def rows():
    """The rows of the page: a clear group, and two that overlap."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, size=(60, 2)) for m in ([0, 0], [3.5, 0], [0, 8])])


def main():
    """The rows, who is with whom, and how many clusters there are."""
    X = rows()
    model = GibbsDPMixture(prior="learn", random_state=0).fit(X)
    share = model.coclustering_
    order = leaves_list(linkage(squareform(1 - share, checks=False), "average", optimal_ordering=True))
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11.0, 3.5), layout="constrained")
    sure = model.cluster_probability_
    drawn = left.scatter(*X.T, c=sure, cmap="viridis", s=14, vmin=sure.min(), vmax=1)
    left.set(title="probability of each row's own cluster", xticks=[], yticks=[], aspect="equal")
    fig.colorbar(drawn, ax=left, shrink=0.8)
    image = middle.imshow(share[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    middle.set(title="probability of being together", xticks=[], yticks=[])
    fig.colorbar(image, ax=middle, shrink=0.8)
    K, probability = model.posterior_n_clusters_
    right.bar(K, probability, color=BLUE, width=0.7)
    right.set(title="how many clusters", xlabel="K", ylabel="probability", xticks=K)
    right.spines[["top", "right"]].set_visible(False)
    fig.savefig(HERE / "gibbs.png", dpi=110, metadata={"Software": None})
    plt.close(fig)


if __name__ == "__main__":
    main()
