"""Jiang, Kulis & Jordan (2012), Section 5: images by visual words, multinomial against Gaussian DP-means."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.measure import nmi
from benchmarks.plots import BLUE, GREY, ORANGE, log_ticks, panels, save
from benchmarks.report import Mark, Table
from kfree import DPMeans, radius_for_k

SEEDS = 10
SMOOTHINGS = (0.01, 0.1, 0.2, 1.0, 5.0)
DRAWN = (None, 0.1, 1.0)
#: Expected numbers of clusters at which the picture is drawn.
KS = (4, 6, 8, 10, 15, 20, 30, 45)
HEADER = ["model", "smoothing", "radius", "K", "NMI, mean of 10 orders", "sd", "NMI of batch", "K of batch", "paper"]
TEXT = (
    "Clusters of images described by counts of 1000 visual words. Both models get their radius by farthest-first "
    "traversal for the true number of classes and start from its centres; rows are visited in a fresh random order in "
    "each pass, as in the paper. NMI is against the classes. Beside it the default algorithm, which is deterministic."
)
NOTES = [
    "Other images: the paper took 1000 ImageNet pictures of 10 classes, which it does not publish; these are 1500 "
    "pictures of 15 kinds of scene (100 each), by the same recipe (dense SIFT, 1000 words). Compare the order of the "
    "models, not the numbers.",
    "Without smoothing the multinomial model has no finite radius: nearly every image lacks a word that another one "
    "has, so farthest-first radii are infinite (the paper does not say how it dealt with this). `smoothing` is the "
    "weight of one pseudo-image, the mean of all, in every cluster. All values that were tried are shown; none is "
    "chosen by the classes. The picture has two of them.",
    "The Gaussian model sees raw counts, and frequencies in the second row.",
    "Orders matter only where a cluster is opened after the start; elsewhere the standard deviation is zero.",
]


def models(X):
    """Name, smoothing, rows, options of ``DPMeans``, the paper's NMI."""
    frequencies = X.multiply(1 / np.asarray(X.sum(axis=1))).tocsr()
    yield "Gaussian, counts", None, X, {}, 0.06
    yield "Gaussian, frequencies", None, frequencies, {}, None
    for smoothing in SMOOTHINGS:
        yield "multinomial", smoothing, X, {"divergence": "kl", "smoothing": smoothing}, 0.27


def fits(X, lam, options, seeds):
    """The paper's algorithm from different orders."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            DPMeans(radius=lam, algorithm="serial", init="farthest_first", random_state=seed, **options).fit(X)
            for seed in range(seeds)
        ]


def measure(case, model, seeds):
    """A line of the table."""
    name, smoothing, X, options, paper = model
    lam = radius_for_k(X, case.k, **options)
    serial = fits(X, lam, options, seeds)
    batch = DPMeans(radius=lam, **options).fit(X)
    scores = [nmi(case.truth, fitted.labels_) for fitted in serial]
    found = f"{min(f.n_clusters_ for f in serial)}-{max(f.n_clusters_ for f in serial)}"
    mean, spread = float(np.mean(scores)), float(np.std(scores))
    return [name, smoothing, lam, found, mean, spread, nmi(case.truth, batch.labels_), batch.n_clusters_, paper]


def curve(case, X, options, ks):
    """Clusters found and NMI as lam runs over farthest-first radii."""
    points = []
    for k in ks:
        fitted = fits(X, radius_for_k(X, k, **options), options, 1)[0]
        points.append((fitted.n_clusters_, nmi(case.truth, fitted.labels_)))
    return np.array(sorted(points))


def draw(case, ks, path):
    """NMI over the number of clusters: the gap between the models does not hang on lam."""
    figure, (ax,) = panels(1, 5.4)
    colours = {"Gaussian, counts": ORANGE, "Gaussian, frequencies": GREY, "multinomial": BLUE}
    for name, smoothing, X, options, _ in models(case.X):
        if smoothing not in DRAWN:
            continue
        points = curve(case, X, options, ks)
        label = name if smoothing is None else f"{name}, smoothing {smoothing:g}"
        ax.plot(*points.T, "o-" if smoothing != 1.0 else "s--", color=colours[name], label=label, ms=4)
    ax.axvline(case.k, color=GREY, lw=0.8, ls=":")
    log_ticks(ax, ks)
    ax.set(xlabel="clusters found", ylabel="NMI with the classes", ylim=(0, None))
    ax.legend(frameon=False, fontsize=8)
    save(figure, path)


def make(settings):
    """The page."""
    case = data.scenes()
    if settings.quick:
        case = case._replace(X=case.X[::10], truth=case.truth[::10])
    rows = [measure(case, model, 2 if settings.quick else SEEDS) for model in models(case.X)]
    draw(case, KS[:3] if settings.quick else KS, settings.out / "000-images.png")
    gap = min(row[4] for row in rows[2:]) - max(row[4] for row in rows[:2])
    marks = [Mark("NMI, multinomial minus Gaussian, least (paper: 0.21)", gap, 0.0)]
    title = "Paper 000, image clustering: multinomial against Gaussian"
    return Table("000-images", title, TEXT, HEADER, rows, NOTES, marks, "000-images.png")
