"""Muandet (2012): Hilbert space embedding of DP mixtures; Figure 1 as numbers, Theorem 2 beside a simulation."""

import numpy as np

from benchmarks.kernel_data import six_gaussians
from benchmarks.plots import BLUE, GREY, ORANGE, log_ticks, panels, save
from benchmarks.report import Mark, Table
from kfree import KernelDPMixture, truncation_level

HEADER = ["experiment", "T", "squared distance (MMD)", "nats below the truth", "weights above 0"]
TEXT = (
    "The paper has no experiment. Its Figure 1 says that the mixtures of T components are among those of more, so that "
    "the distance to the data falls as T grows: here in numbers, with candidates drawn one after the other from a wide "
    "prior, as in the paper, or around single rows, and beside them those of `KernelDPMixture` by default. Data: six "
    "round Gaussians, 1500 rows, 2 columns; held-out rows: 5000; means over five data sets. Theorem 2 says how much is "
    "lost by cutting the stick after T pieces; below it is compared with what sticks that are drawn leave."
)
LEVELS = (5, 10, 20, 50, 100, 200, 400)
SOURCES = {"prior": "drawn from the prior", "local": "rows and their neighbours"}
ALPHAS, PIECES, DRAWS = (1.0, 5.0), (1, 2, 4, 8, 16, 32), 200_000


def fit(case, T, source):
    """Distance, what is lost beside the true density, and the number of components, of one fit."""
    X, held_out, log_density = case
    given = {} if source == "clusters" else {"n_candidates": T, "ridge": 1e-8}
    model = KernelDPMixture(covariance="spherical", candidates=source, random_state=0, **given).fit(X)
    lost = float(log_density(held_out).mean() - model.score(held_out))
    return model.mmd2_, lost, float(model.n_components_), model.n_candidates_


def figure_1(quick, path):
    """Distances and densities as T grows."""
    cases = [six_gaussians(2, seed, 300 if quick else 1500) for seed in range(2 if quick else 5)]
    levels = LEVELS[:3] if quick else LEVELS
    lines, curves = [], {}
    for source, words in SOURCES.items():
        found = np.array([[fit(case, T, source)[:3] for case in cases] for T in levels])
        curves[source] = found
        means = found.mean(axis=1)
        lines += [[f"Figure 1, {words}", T, *map(float, mean)] for T, mean in zip(levels, means)]
    plain = np.array([fit(case, None, "clusters") for case in cases])
    mean = plain.mean(axis=0)
    lines.append(["by default: clusters of the rows", round(mean[3]), *map(float, mean[:3])])
    figure, axes = panels(2)
    for ax, column, label in zip(axes, (0, 1), ("squared distance (MMD)", "nats below the truth")):
        for (source, found), colour in zip(curves.items(), (GREY, BLUE)):
            value = found[:, :, column]
            ax.plot(levels, value.mean(axis=1), "o-", color=colour, label=SOURCES[source])
            ax.fill_between(levels, value.min(axis=1), value.max(axis=1), color=colour, alpha=0.15, lw=0)
        ax.axhline(mean[column], color=ORANGE, ls="--", label="by default: clusters")
        log_ticks(ax, levels)
        ax.set(xlabel="candidates T, the first of more are those of fewer", ylabel=label, yscale="log")
    axes[0].legend(frameon=False, fontsize=8)
    save(figure, path)
    rises = [float(np.diff(curves[source][:, :, 0], axis=0).max()) for source in SOURCES]
    return lines, max(rises), float(mean[1])


def theorem_2(quick, path):
    """What is left of a stick after T pieces, squared: draws, their mean and quantile, and what the paper prints."""
    rng, draws = np.random.default_rng(0), 5000 if quick else DRAWS
    figure, axes = panels(len(ALPHAS))
    notes, worst = [], 0.0
    for ax, alpha in zip(axes, ALPHAS):
        left = np.exp(-2 * np.array([rng.gamma(T, size=draws) for T in PIECES]) / alpha)
        law = (alpha / (alpha + 2)) ** np.array(PIECES)
        printed = np.exp(-2 * np.array(PIECES) / alpha)
        error = np.abs(left.mean(axis=1) - law) / (left.std(axis=1) / np.sqrt(draws))
        worst = max(worst, float(error.max()))
        quantiles = np.quantile(left, (0.05, 0.95), axis=1)
        ax.fill_between(PIECES, *quantiles, color=BLUE, alpha=0.15, lw=0, label="90 % of the draws")
        ax.plot(PIECES, left.mean(axis=1), "o", color=BLUE, label="mean of the draws")
        ax.plot(PIECES, law, "-", color=BLUE, label="its law")
        ax.plot(PIECES, printed, "--", color=ORANGE, label="typical size, as in the paper")
        log_ticks(ax, PIECES)
        ax.set(xlabel="pieces T", ylabel="squared rest of the stick", yscale="log", title=f"concentration {alpha:g}")
        ax.set_ylim(max(1e-8, printed.min() / 10), 2)
        above = ", ".join(f"{100 * share:.0f} %" for share in (left > printed[:, None]).mean(axis=1))
        kinds = ("mean", "probability", "typical")
        needed = ", ".join(f"{truncation_level(alpha, 1e-4, kind)} ({kind})" for kind in kinds)
        notes.append(
            f"Theorem 2, concentration {alpha:g}: the rest exceeds exp(-T / alpha), the paper's almost-sure bound, in "
            f"{above} of the draws for T = {', '.join(map(str, PIECES))}. T for a squared norm of 1e-4: {needed}."
        )
    axes[0].legend(frameon=False, fontsize=8)
    save(figure, path)
    return notes, worst


def make(settings):
    """The page."""
    lines, rise, lost = figure_1(settings.quick, settings.out / "003-figure1.png")
    notes, error = theorem_2(settings.quick, settings.out / "003-theorem2.png")
    notes += [
        "Theorem 2: points are means over draws, lines what is known of them. The printed theorem has the sign of the "
        "logarithm reversed, and replaces the rest by its typical size. ![Theorem 2](003-theorem2.png)",
        "Figure 1: a small distance is no large likelihood. Many candidates around rows come closer to the sample than "
        "the few clusters of the default, and are farther from the truth: their weights follow the noise.",
    ]
    marks = [
        Mark("largest rise of a distance as T grows", rise, 1e-6, at_least=False),
        Mark("nats below the truth by default", lost, 0.15, at_least=False),
        Mark("largest standard error by which a simulated mean differs from its law", error, 4.0, at_least=False),
    ]
    title = "Paper 003: Hilbert space embedding of Dirichlet process mixtures"
    return Table("003-embedding", title, TEXT, HEADER, lines, notes, marks, "003-figure1.png")
