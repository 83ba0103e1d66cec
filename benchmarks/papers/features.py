"""Broderick, Kulis & Jordan (2013), Section 5: features of tabletop photographs and of faces."""

import warnings
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from benchmarks import data
from benchmarks.plots import BLUE, GREY, panels, save
from benchmarks.report import Mark, Table
from kfree import BPMeans, GibbsIBP, StepwiseKFeatures, lam_for_n_components

LAM = 20.0
CONCENTRATIONS = (0.5, 1.0, 2.0, 5.0)
HEADER = ["algorithm", "seconds per run", "total", "features", "paper: per run", "paper: total", "paper: features"]
TEXT = (
    "Figure 1 of the paper: 100 photographs of four objects on a table, 99 principal components, lam = 20; 1000 random "
    "starts of the collapsed and the basic algorithm, 300 starts of K-features for each K, as in the paper. The last "
    "two lines are kfree's defaults. Below it Figures 2 and 3."
)
PAPER = {
    "Gibbs": (8.5e3, None, 10),
    "collapsed": (11.0, 1.1e4, 5),
    "BP-means": (0.36, 3.6e2, 6),
    "stepwise": (0.1, 155.0, 5),
}


def timed(model, X):
    """A fitted model and the seconds it took."""
    start = perf_counter()
    model.fit(X)
    return model, perf_counter() - start


def line(name, model, X, paper=(None, None, None)):
    """A line of the table."""
    model, seconds = timed(model, X)
    each = float(np.median([restart.seconds for restart in model.restarts_]))
    return [name, each, seconds, model.n_components_, *paper], model


def gibbs(X, quick, path):
    """The line of the sampler, a note, and the histogram of the last K over concentrations and chains."""
    sweeps, chains = (20, 2) if quick else (1000, 5)
    last, rhats, lines = [], [], {}
    for concentration in CONCENTRATIONS:
        model = GibbsIBP(
            concentration=concentration, n_samples=sweeps // 2, burn_in=sweeps // 2, n_chains=chains, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the note says what the warnings say
            model, seconds = timed(model, X)
        K = np.asarray(model.n_components_trace_).astype(int)
        last += K[:, -1].tolist()
        rhats.append(model.diagnostics_["log_posterior"].rhat)
        most = int(np.bincount(K[:, sweeps // 2 :].ravel()).argmax())
        lines[concentration] = ["IBP Gibbs sampler", seconds / chains, seconds, most, *PAPER["Gibbs"]]
    figure, (ax,) = panels(1, 4.2, 2.8)
    values, times = np.unique(last, return_counts=True)
    ax.bar(values, times, color=BLUE, width=0.8)
    ax.set(xlabel="features at the end of a chain", ylabel="chains", xticks=values)
    save(figure, path)
    tried = ", ".join(map(str, CONCENTRATIONS))
    note = (
        f"IBP Gibbs sampler: {chains} chains of {sweeps} sweeps (the paper's number) for each of the concentrations "
        f"{tried}; variances are sampled. The line is that of concentration 1, its features are the most frequent "
        f"number in the second half. Split R-hat of the log posterior is {min(rhats):.3g} to {max(rhats):.3g}; above "
        "1.1 chains have not mixed, and the number then is one of those where chains stay, not the mode of the "
        "posterior. "
        f"Last K of all chains: {', '.join(map(str, sorted(last)))} (paper: 7 or more). "
        "![last K of the chains](004-gibbs.png)"
    )
    return lines[1.0], note


def figure1(X, quick, path):
    """Time and features of the algorithms, and the default model."""
    runs, starts = (5, 3) if quick else (1000, 300)
    for algorithm in ("collapsed", "paper"):
        BPMeans(LAM, algorithm=algorithm, n_init=2).fit(X)  # compiles
    first, note = gibbs(X, quick, path)
    rows = [first]
    rows.append(line("collapsed BP-means", BPMeans(LAM, algorithm="collapsed", n_init=runs), X, PAPER["collapsed"])[0])
    rows.append(line("BP-means", BPMeans(LAM, algorithm="paper", n_init=runs), X, PAPER["BP-means"])[0])
    stepwise = StepwiseKFeatures(LAM, algorithm="paper", n_init=starts)
    rows.append(line("stepwise K-features", stepwise, X, PAPER["stepwise"])[0])
    rows.append(line("BPMeans(20)", BPMeans(LAM), X)[0])
    last, model = line("StepwiseKFeatures(20)", StepwiseKFeatures(LAM), X)
    return [*rows, last], model.canonicalize(), note


def show(ax, picture, title="", below="", **options):
    """A picture without axes."""
    ax.imshow(picture, **options)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)
    ax.set_xlabel(below, fontsize=9)
    for spine in ax.spines.values():
        spine.set_visible(False)


def figure2(model, images, objects, truth, path):
    """Four photographs with their features, and the features as pictures."""
    Z, pixels = model.Z_.astype(float), images.reshape(len(images), -1) / 255.0
    means = np.linalg.lstsq(Z, pixels, rcond=None)[0].reshape(-1, *images.shape[1:])
    codes = ["".join(map(str, row)) for row in model.Z_]
    chosen = [codes.index(code) for code in sorted(set(codes), key=lambda c: (-c.count("1"), c))[::5]][:4]
    figure, axes = plt.subplots(2, 5, figsize=(11.0, 4.2), layout="constrained")
    for ax, n in zip(axes[0], chosen):
        show(ax, images[n], f"photograph {n}", codes[n])
    axes[0, 4].axis("off")
    axes[0, 4].text(0.0, 0.5, "first bit: the base,\nthen the four features", fontsize=9, color=GREY)
    show(axes[1, 0], means[0].clip(0, 1), "base", f"{model.counts_[0]} photographs")
    for ax, mean, column, count in zip(axes[1, 1:], means[1:], model.Z_[:, 1:].T, model.counts_[1:]):
        alike = [np.corrcoef(column, truth[:, j])[0, 1] for j in range(truth.shape[1])]
        j = int(np.abs(alike).argmax())
        sign = "adds" if alike[j] > 0 else "removes"
        show(ax, (0.5 + mean / 2).clip(0, 1), f"{sign} {objects[j]}".replace("_", " "), f"{count} photographs")
    save(figure, path)


def faces(quick):
    """Rows, the way back to pictures, and the pictures."""
    images = np.load(data.FOLDER / "olivetti.npz")["X"]
    images = images[::8] if quick else images
    pixels = images.reshape(len(images), -1) / 255.0
    pca = PCA(min(100, len(images) - 1), random_state=0).fit(pixels)
    return pca.transform(pixels), pca, images


def figure3(quick, path):
    """Base and two features of faces, and clusters beside them; a note with the counts."""
    X, pca, images = faces(quick)
    lam = lam_for_n_components(X, 2, base="intercept")
    model = StepwiseKFeatures(lam, base="intercept", n_init=3 if quick else 10).fit(X).canonicalize()
    K = model.n_components_
    kmeans = [KMeans(k, n_init=50, random_state=0).fit(X) for k in (3, 4)]
    codes = np.array(["1" + "".join(map(str, row)) for row in model.Z_])
    samples = [int(np.flatnonzero(codes == code)[0]) for code in sorted(set(codes))][:4]
    shape = images.shape[1:]

    def picture(row):
        return pca.inverse_transform(row[None])[0].reshape(shape)

    figure, axes = plt.subplots(4, 4, figsize=(6.6, 7.6), layout="constrained")
    grey = {"cmap": "gray", "vmin": 0, "vmax": 1}
    for ax in axes.flat:
        ax.axis("off")
    for ax, n in zip(axes[0], samples):
        ax.axis("on")
        labels = " / ".join(str(some.labels_[n] + 1) for some in kmeans)
        show(ax, images[n] / 255.0, f"features {codes[n]}", f"clusters {labels}", **grey)
    parts = [("base", model.intercept_)]
    parts += [(f"base + feature {k + 1}", model.intercept_ + model.components_[k]) for k in range(min(K, 3))]
    for ax, (title, row) in zip(axes[1], parts):
        ax.axis("on")
        show(ax, picture(row), title, **grey)
    for line_, some in zip(axes[2:], kmeans):
        for k, (ax, centre) in enumerate(zip(line_, some.cluster_centers_)):
            ax.axis("on")
            show(ax, picture(centre), f"cluster {k + 1} of {some.n_clusters}", **grey)
    save(figure, path)
    count = ", ".join(f"{code}: {int((codes == code).sum())}" for code in sorted(set(codes)))
    clusters = " and ".join(str(tuple(int(n) for n in np.bincount(some.labels_))) for some in kmeans)
    return (
        f"Figure 3, {len(images)} Olivetti faces (the paper's FEI faces are not ours to give): StepwiseKFeatures with "
        f"an intercept as base, lam = {lam:.3g}, finds {K} features beside the base. Faces by features: {count} "
        f"(paper, on its faces: 139, 106, 80, 75). K-means with 3 and 4 clusters: {clusters}. "
        "![base, features and clusters of faces](004-faces.png)"
    )


def make(settings):
    """The page."""
    arrays = np.load(data.FOLDER / "tabletop.npz")
    X = np.ascontiguousarray(arrays["scores"], dtype=float)
    rows, model, sampled = figure1(X, settings.quick, settings.out / "004-gibbs.png")
    figure2(model, arrays["images"], arrays["objects"], arrays["Z"], settings.out / "004-features.png")
    notes = [
        "The units of lam are those of `tabletop.npz`; the paper's lam = 1 belongs to another scaling, which it does "
        "not state. Times of the paper: Matlab, 2013.",
        sampled,
        f"Figure 2: {len(np.unique(model.Z_, axis=0))} combinations of the four features occur (of 16); features are "
        "drawn as grey plus what they add.",
        figure3(settings.quick, settings.out / "004-faces.png"),
    ]
    marks = [Mark("features that StepwiseKFeatures finds (paper: 5)", model.n_components_, 5)]
    title = "Paper 004, features of photographs and faces"
    return Table("004-features", title, TEXT, HEADER, rows, notes, marks, "004-features.png")
