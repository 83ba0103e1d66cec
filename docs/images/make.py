"""Draw the pictures of the documentation: python docs/images/make.py."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from kfree import DPMeans, HDPMeans, HDPTopics, ItakuraSaito, Mahalanobis, Poisson, SquaredEuclidean, lam_path
from kfree.displays.palette import colours

HERE = Path(__file__).parent
INK, GREY, BLUE, ORANGE = "#22303c", "#8a949c", "#1f4e79", "#c55a11"
PALETTE = colours(60)
plt.rcParams.update({"font.size": 10, "axes.edgecolor": "#c8ced3", "text.color": INK, "axes.titlesize": 11})


def spread_blobs(k, each, spread, seed, gap=1.0):
    """Rows around k centres at least ``gap`` apart in a square of side 10; and the centres."""
    rng = np.random.default_rng(seed)
    centres = [rng.uniform(0, 10, 2)]
    while len(centres) < k:
        new = rng.uniform(0, 10, 2)
        if min(np.hypot(*(new - old)) for old in centres) > gap:
            centres.append(new)
    return np.vstack([rng.normal(centre, spread, (each, 2)) for centre in centres])


def scatter(ax, X, labels, centres, size=4):
    """Rows by colour, centres as black crosses."""
    ax.scatter(*X.T, s=size, c=[PALETTE[label % len(PALETTE)] for label in labels], lw=0, alpha=0.75)
    ax.plot(*centres.T, "x", color="black", ms=5, mew=1.3)
    ax.set(xticks=[], yticks=[], aspect="equal")


def radius_and_price():
    """The same number as a radius and as a price."""
    X = spread_blobs(5, 150, 0.62, seed=9, gap=3.4)
    fig, axes = plt.subplots(1, 2, figsize=(8.4, 4.4), layout="constrained")
    fig.get_layout_engine().set(h_pad=0.12)
    low, high = X.min(axis=0) - 1.5, X.max(axis=0) + 1.5
    for ax, name in zip(axes, ("radius", "lam")):
        model = DPMeans(**{name: 6.0}).fit(X)
        scatter(ax, X, model.labels_, model.cluster_centers_, size=6)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        ax.set_title(f"DPMeans({name}=6): {model.n_clusters_} clusters", color=BLUE, fontweight="bold")
        if name == "radius":
            for centre in model.cluster_centers_:
                ax.add_patch(plt.Circle(centre, np.sqrt(6.0), fill=False, color=INK, lw=0.6, alpha=0.5))
    axes[0].set_xlabel("rows may be this far (squared) from their centre", color=INK)
    axes[1].set_xlabel("a cluster exists if it saves this much in all", color=INK)
    save(fig, "radius_and_price.png")


def path():
    """What lam_path(X).plot() draws, for the rows of the picture before."""
    X = spread_blobs(5, 150, 0.62, seed=9, gap=3.4)
    fig, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
    lam_path(X).plot(ax)
    save(fig, "lam_path.png")


def divergences():
    """Which points are equally far from a centre, for four divergences."""
    grid = np.linspace(0.05, 12, 400)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    families = {
        "sqeuclidean": (SquaredEuclidean(), [0.5, 1.5, 3.0]),
        "mahalanobis": (Mahalanobis(np.array([[1.0, 0.7], [0.7, 1.0]])), [0.25, 1.0, 2.25]),
        "poisson": (Poisson(), [0.1, 0.3, 0.6]),
        "itakura_saito": (ItakuraSaito(), [0.025, 0.075, 0.15]),
    }
    fig, axes = plt.subplots(1, 4, figsize=(10.4, 3.1), layout="constrained", sharey=True)
    for ax, (name, (family, levels)) in zip(axes, families.items()):
        for centre, colour in (([2.0, 2.0], ORANGE), ([7.0, 7.0], BLUE)):
            far = family.divergence(points, np.array(centre)).reshape(400, 400)
            ax.contour(grid, grid, far, levels=levels, colors=[colour], linewidths=[1.6, 1.1, 0.7])
            ax.plot(*centre, "x", color=colour, ms=6, mew=1.6)
        ax.set(title=name, aspect="equal", xlim=(0, 12), ylim=(0, 12), xticks=[0, 4, 8, 12], yticks=[0, 4, 8, 12])
    save(fig, "divergences.png")


def shared_clusters():
    """Three of many groups; all rows without and with the groups."""
    rng = np.random.default_rng(5)
    centres = np.stack(np.meshgrid([2.0, 5.0, 8.0], [2.0, 5.0, 8.0]), axis=-1).reshape(-1, 2)
    groups = np.repeat(np.arange(40), 75)
    uses = np.argsort(rng.random((40, 9)), axis=1)[:, :2]
    truth = uses[groups, rng.integers(2, size=groups.size)]
    X = centres[truth] + 0.65 * rng.normal(size=(groups.size, 2))
    pooled, shared = DPMeans().fit(X), HDPMeans().fit(X, groups=groups)
    fig, axes = plt.subplots(1, 3, figsize=(10.4, 3.8), layout="constrained")
    axes[0].scatter(*X.T, s=3, c="#d5dade", lw=0)
    for group, colour in zip((0, 1, 3), (BLUE, ORANGE, "#2e8b57")):
        axes[0].scatter(*X[groups == group].T, s=9, c=colour, lw=0)
    axes[0].set(xticks=[], yticks=[], aspect="equal")
    axes[0].set_title("three of 40 groups, each uses 2 of 9")
    for ax, model, name in ((axes[1], pooled, "DPMeans"), (axes[2], shared, "HDPMeans")):
        ours = (truth[:, None] == np.arange(9)).T.astype(float) @ (model.labels_[:, None] == np.unique(model.labels_))
        right = ours.max(axis=0).sum() / truth.size
        scatter(ax, X, model.labels_, model.cluster_centers_)
        ax.set_title(f"{name}: {model.n_clusters_} clusters, {100 * right:.0f} % of rows right")
    save(fig, "hdp_means.png")


def topics():
    """Six planted topics of neighbouring words, the documents, the topics found, and how their number fell."""
    rng = np.random.default_rng(1)
    words, K = np.arange(120), 6
    planted = np.exp(-0.5 * ((words - np.linspace(8, 112, K)[:, None]) / 6) ** 2) + 0.002
    planted /= planted.sum(axis=1, keepdims=True)
    X = np.array([rng.multinomial(80, share @ planted) for share in rng.dirichlet(np.full(K, 0.2), 400)])
    model = HDPTopics().fit(X)
    fig, axes = plt.subplots(1, 3, figsize=(10.4, 3.2), layout="constrained")
    axes[0].imshow(X[:60], aspect="auto", cmap="Blues", vmax=6)
    axes[0].set(title="60 of 400 documents", xlabel="word", ylabel="document")
    for p, row in enumerate(model.components_):
        axes[1].plot(words, row, color=PALETTE[p], lw=1.6)
    axes[1].plot(words, planted.T, color="black", lw=0.8, ls=":")
    axes[1].set(title=f"{model.n_topics_} topics found (dotted: planted)", xlabel="word", yticks=[])
    axes[2].step(np.arange(len(model.soft_trace_)), model.soft_trace_[:, 1], where="post", color=BLUE, lw=1.8)
    axes[2].set(title="topics left after each soft pass", xlabel="pass", ylim=(0, None))
    save(fig, "topics.png")


def save(fig, name):
    """Write a picture and forget it."""
    fig.savefig(HERE / name, dpi=130)
    plt.close(fig)


if __name__ == "__main__":
    radius_and_price()
    path()
    divergences()
    shared_clusters()
    topics()
