"""Kurihara, Welling & Vlassis (2006): Fast-VDP beside VDP and a truncated mixture; Figures 1 to 3 and Table 1."""

import numpy as np
from sklearn.decomposition import PCA, LatentDirichletAllocation

from benchmarks import data
from benchmarks.mixtures import fit, fit_truncated, free_energy_from, ratio
from benchmarks.plots import BLUE, GREY, ORANGE, panels, plt, save
from benchmarks.report import Mark, Table
from benchmarks.workloads import gauss

K, ROWS, D, SEPARATION = 10, 10_000, 16, 2.0
HEADER = ["experiment", "Fast-VDP s", "VDP s", "speedup", "free energy ratio", "K Fast-VDP", "K VDP", "paper"]
TEXT = (
    "Generated Gaussians as in Section 8 of the paper (10 components, 16 columns, separation 2, 10 000 rows unless "
    "said otherwise), MNIST in 50 principal components, and citeseer in 200 topics. VDP and Fast-VDP are "
    "`VariationalDPMixture(prior='fixed')`, whose prior is the paper's, with `accelerate=None` and `'tree'`; the ratio "
    "is 1 + (F_fast - F_VDP) / |F_VDP|, after "
    "Fast-VDP's last exact look at all rows. Our VDP is one matrix product a sweep, the paper's was not: speedups "
    "beside it are smaller."
)
SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (2, 4, 8, 16, 32, 64, 128)
SEPARATIONS = (0.5, 1.0, 2.0, 3.0, 4.0)


def compare(name, X, paper=None, repeats=2):
    """A line of the table, and both models."""
    fast_seconds, fast = fit(X, "tree", repeats, prior="fixed")
    seconds, plain = fit(X, None, 1 if X.size > 5_000_000 else repeats, prior="fixed")
    line = [name, fast_seconds, seconds, seconds / fast_seconds, ratio(fast, plain)]
    return [*line, fast.n_components_, plain.n_components_, paper], fast, plain


def figure_1(quick, path):
    """Runtime and free energy beside scikit-learn's truncated mixture, which stands for the paper's BJ."""
    lines, sizes = [], (500, 1000) if quick else (1000, 2000, 3000, 4000, 5000)
    seconds, ratios = [], []
    for n in sizes:
        X, _ = gauss(n, D, K, SEPARATION)
        line, fast, plain = compare(f"Figure 1, {n} rows", X, "23 x BJ, 3 x VDP" if n == 5000 else None)
        theirs, model = fit_truncated(X)
        energy = free_energy_from(X, model.predict_proba(X))
        seconds.append((line[1], line[2], theirs))
        ratios.append([1 + (m.free_energy_ - energy) / abs(energy) for m in (fast, plain)] + [1.0])
        line[0] += f", {theirs / line[1]:.1f} times faster than BayesianGaussianMixture"
        lines.append(line)
    figure, (left, right) = panels(2)
    names = ("Fast-VDP", "VDP", "BayesianGaussianMixture")
    # larger marks below: free energies of the first two can hardly be told apart
    styles = zip(names, (BLUE, ORANGE, GREY), (10, 5, 5), np.transpose(seconds), np.transpose(ratios))
    for name, colour, size, times, energies in styles:
        left.plot(sizes, times, "o-", color=colour, ms=size, label=name)
        right.plot(sizes, energies, "o-", color=colour, ms=size, label=name)
    left.set(xlabel="rows", ylabel="seconds", yscale="log", xticks=sizes)
    right.set(xlabel="rows", ylabel="free energy over that of\nBayesianGaussianMixture", xticks=sizes)
    left.legend(frameon=False, fontsize=8)
    save(figure, path)
    return lines


def figure_2(quick, path):
    """Speedup and ratio over rows, columns and separation."""
    cases = {
        "rows": [(n, gauss(n, D, K, SEPARATION)[0]) for n in (500, 1000)] if quick else None,
        "columns": [(d, gauss(500, d, K, SEPARATION)[0]) for d in (2, 4)] if quick else None,
        "separation": [(c, gauss(500, D, K, c)[0]) for c in (1.0, 2.0)] if quick else None,
    }
    if not quick:
        cases["rows"] = ((n, gauss(n, D, K, SEPARATION)[0]) for n in SIZES)
        cases["columns"] = ((d, gauss(ROWS, d, K, SEPARATION)[0]) for d in COLUMNS)
        cases["separation"] = ((c, gauss(ROWS, D, K, c)[0]) for c in SEPARATIONS)
    figure, axes = plt.subplots(2, 3, figsize=(12, 6), layout="constrained")
    lines = []
    for place, (what, sets) in enumerate(cases.items()):
        points = []
        for value, X in sets:
            line, _, _ = compare(f"Figure 2, {what} {value:g}", X, "154 x" if value == 1_000_000 else None)
            lines.append(line)
            points.append((value, line[3], line[4]))
        value, speedup, excess = np.array(points).T
        for ax, y, label in ((axes[0, place], speedup, "speedup"), (axes[1, place], excess, "free energy ratio")):
            ax.plot(value, y, "o-", color=BLUE)
            ax.axhline(1.0, color=GREY, lw=0.8)
            ax.set(xlabel=what, ylabel=label, xscale="log")
            ax.set_xticks(value, [f"{v:g}" if v < 10_000 else f"{v / 1000:g}k" for v in value])
            ax.minorticks_off()
            ax.ticklabel_format(axis="y", useOffset=False)
            ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    return lines


def figure_3(quick, path):
    """Mean images of the components of MNIST, largest first."""
    rows = 1500 if quick else 60_000
    images = data.mnist_images(rows)
    pca = PCA(50, random_state=0).fit(images)
    X = np.ascontiguousarray(pca.transform(images))
    line, fast, plain = compare(f"Figure 3, MNIST {rows} x 50", X, "21 x, 1.044, 96 and 88", 1)
    figure, axes = plt.subplots(1, 2, figsize=(11, 6.2), layout="constrained")
    for ax, model, name in zip(axes, (fast, plain), ("Fast-VDP", "VDP")):
        means = pca.inverse_transform(model.means_)
        across = int(np.ceil(np.sqrt(len(means))))
        canvas = np.ones((-(-len(means) // across) * 28, across * 28))
        for t, mean in enumerate(means):
            i, j = divmod(t, across)
            canvas[28 * i : 28 * i + 28, 28 * j : 28 * j + 28] = 1 - mean.reshape(28, 28)
        ax.imshow(canvas, cmap="gray", vmin=0, vmax=1)
        ax.set_title(f"{name}: {len(means)} components")
        ax.axis("off")
    save(figure, path)
    return line


def table_1(quick):
    """The three strongest topics of each cluster of citeseer."""
    X = data.citeseer().X
    X = X[:400] if quick else X
    lda = LatentDirichletAllocation(20 if quick else 200, random_state=0, n_jobs=1, max_iter=2 if quick else 10)
    counts = lda.fit_transform(X) * np.asarray(X.sum(axis=1))
    rows = np.log1p(counts)
    line, fast, plain = compare(
        f"Table 1, citeseer {rows.shape[0]} x {rows.shape[1]}", rows, "6.7 x, 1.040, 5 and 6", 1
    )
    notes = []
    for model, name in ((fast, "Fast-VDP"), (plain, "VDP")):
        # topics that stand out in a cluster: the means of all clusters share the common ones
        strongest = np.argsort(-model.means_, axis=1, kind="stable")[:, :3]
        clusters = "; ".join(f"{chr(97 + c % 26)}: {', '.join(map(str, three))}" for c, three in enumerate(strongest))
        notes.append(f"Table 1, {name}, the three strongest topics of each cluster, largest cluster first: {clusters}.")
    return line, notes


def make(settings):
    """The page."""
    folder, quick = settings.out, settings.quick
    lines = figure_1(quick, folder / "002-figure1.png")
    lines += figure_2(quick, folder / "002-figure2.png")
    digits = figure_3(quick, folder / "002-figure3.png")
    papers, notes = table_1(quick)
    lines += [digits, papers]
    notes += [
        "Figure 1: scikit-learn's BayesianGaussianMixture (T = 20, one start, own priors) stands for the paper's BJ. "
        "Its lower bound omits constants, so its free energy is ours, from its responsibilities. "
        "![Figure 1](002-figure1.png)",
        "Figure 3: mean images, largest component first. ![Figure 3](002-figure3.png)",
        "Table 1: the paper's 30 696 abstracts are not published; these are 3312 papers (Sen et al. 2008), whose words "
        "are known by number only, so topics have numbers and no words. Topics are by scikit-learn's LDA. With 17 rows "
        "a column nodes cannot stand for rows, and Fast-VDP does what VDP does.",
    ]
    marks = [
        Mark("MNIST, speedup", digits[3], 5.0),
        Mark("MNIST, free energy above VDP's, percent (paper: 4.4)", 100 * (digits[4] - 1), 4.4, at_least=False),
        Mark("generated sets, the same, largest", 100 * (max(r[4] for r in lines[:-2]) - 1), 1.0, at_least=False),
    ]
    for line in lines:
        line[4] = f"{line[4]:.5f}"
    title = "Paper 002: accelerated variational Dirichlet process mixtures"
    return Table("002-variational", title, TEXT, HEADER, lines, notes, marks, "002-figure2.png")
