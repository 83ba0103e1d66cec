"""VariationalDPMixture on real tables: density of rows not seen beside scikit-learn's, agreement with the classes."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from benchmarks import data
from benchmarks.measure import ari, best_of
from benchmarks.mixtures import by_bic
from benchmarks.report import Mark, Table
from kfree import VariationalDPMixture

HEADER = ["data", "who", "seconds", "K", "held-out log-density", "kfree less it", "two standard errors", "ARI"]
TEXT = (
    "At most 4500 rows, two thirds of them for the fit, the rest held out. Columns are as they are recorded, in units "
    "of all kinds; to those of whole numbers (marked J) uniform noise of one step was added, as densities of rounded "
    "rows measure the floor of a variance, not the model. kfree is `VariationalDPMixture()`; `fixed` has the prior "
    "that is not learned. BayesianGaussianMixture has up to 30 components; GaussianMixture is fitted with 1 to 30, of "
    "which BIC chooses, and all these fits count in its time; KernelDensity has a width chosen by cross-validation. "
    "Rivals are fitted to the columns as they are and (std) to standardised ones, densities being those of the columns "
    "as they are. Nats a row, higher is better; differences are paired by row."
)
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 20, 25, 30)
MOST_ROWS = 4500


class Rows(NamedTuple):
    """A table cut in two."""

    seen: np.ndarray
    held_out: np.ndarray
    truth: np.ndarray  # classes of the rows held out


def _jittered(X, rng):
    """Rows with uniform noise of one step of recording."""
    step = [np.diff(np.unique(column)).min(initial=np.inf) for column in X.T]
    return X + np.where(np.isfinite(step), step, 0.0) * rng.uniform(-0.5, 0.5, X.shape)


def _bundled(load, columns=None):
    """A table that comes with scikit-learn, or its first principal components."""

    def read():
        X, truth = load(return_X_y=True)
        return (X if columns is None else PCA(columns, random_state=0).fit_transform(X)), truth

    return read


def _shared(name, *, truth="y", change=None):
    """A table of the shared folder."""

    def read():
        arrays = data.arrays(name)
        X = np.asarray(arrays["X"], dtype=float)
        X = X.reshape(X.shape[0], -1)
        return (X if change is None else change(X)), arrays[truth]

    read.file = name
    return read


def _photo():
    """Colours and places of the pixels of a photograph, and its first segmentation."""
    arrays = data.arrays("bsds_photos")
    image, truth = arrays["images"][0].astype(float), arrays["segmentations"][0, 0]
    i, j = np.indices(truth.shape)
    return np.concatenate([image, i[..., None], j[..., None]], axis=2).reshape(-1, 5), truth.ravel()


_photo.file = "bsds_photos"


def _scores(columns):
    return lambda X: PCA(columns, random_state=0, svd_solver="full").fit_transform(X)


SETS = {
    "wine": _bundled(load_wine),
    "iris": _bundled(load_iris),
    "breast cancer": _bundled(load_breast_cancer),
    "digits, PCA 20": _bundled(load_digits, 20),
    "wholesale, log": _shared("wholesale", truth="channel", change=np.log),
    "hipc_flow, arcsinh": _shared("hipc_flow", change=lambda X: np.arcsinh(X / 150.0)),
    "segment J": _shared("segment"),
    "shuttle J": _shared("shuttle"),
    "pendigits J": _shared("pendigits"),
    "letter J": _shared("letter"),
    "skin J": _shared("skin"),
    "photograph J": _photo,
    "mnist, PCA 20": _shared("mnist_test", change=_scores(20)),
    "mnist, PCA 50": _shared("mnist_test", change=_scores(50)),
}


def parts(name, quick):
    """Rows for the fit, and held-out rows with their classes."""
    X, truth = SETS[name]()
    rng = np.random.default_rng(0)
    order = rng.permutation(X.shape[0])[: 240 if quick else MOST_ROWS]
    X, truth = np.asarray(X[order], dtype=float), np.asarray(truth)[order]
    X = _jittered(X, rng) if name.endswith(" J") else X
    seen = 2 * len(X) // 3
    return Rows(X[:seen], X[seen:], truth[seen:])


def _truncated(X):
    return BayesianGaussianMixture(n_components=min(30, len(X) // 2), max_iter=1000, random_state=0).fit(X)


def _bic(X):
    return by_bic(X, SIZES)


def _kernels(X):
    """The kernel density whose width is best in five folds; a width suits standardised columns only."""
    widths = {"bandwidth": np.geomspace(0.03, 3.0, 25)}
    return GridSearchCV(KernelDensity(), widths, cv=5).fit(X).best_estimator_


#: Name, how it is fitted, and whether to standardised columns.
RIVALS = (
    ("BayesianGaussianMixture", _truncated, False),
    ("BayesianGaussianMixture, std", _truncated, True),
    ("GaussianMixture by BIC", _bic, False),
    ("GaussianMixture by BIC, std", _bic, True),
    ("KernelDensity, std", _kernels, True),
)


class Found(NamedTuple):
    """What a model says of rows that it has not seen."""

    seconds: float
    K: int | None
    density: np.ndarray
    labels: np.ndarray | None


def ours(rows, prior):
    """Our mixture."""
    seconds, model = best_of(1, lambda: VariationalDPMixture(prior=prior).fit(rows.seen))
    return Found(seconds, model.n_components_, model.score_samples(rows.held_out), model.predict(rows.held_out))


def theirs(rows, fit, standardised):
    """A rival's."""
    shift, scale = np.zeros(rows.seen.shape[1]), np.ones(rows.seen.shape[1])
    if standardised:
        shift, scale = rows.seen.mean(axis=0), rows.seen.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        seconds, model = best_of(1, lambda: fit((rows.seen - shift) / scale))
    held_out = (rows.held_out - shift) / scale
    density = model.score_samples(held_out) - np.log(scale).sum()
    if not hasattr(model, "predict"):
        return Found(seconds, None, density, None)
    used = int(np.unique(model.predict((rows.seen - shift) / scale)).size)
    return Found(seconds, used, density, model.predict(held_out))


def line(name, who, rows, found, mine):
    """A line of the table, with how far ahead we are of it."""
    gap = mine.density - found.density
    error = 2 * float(gap.std(ddof=1)) / np.sqrt(gap.size)
    agreement = None if found.labels is None else ari(rows.truth, found.labels)
    both = (None, None) if found is mine else (float(gap.mean()), error)
    return [name, who, found.seconds, found.K, float(found.density.mean()), *both, agreement]


def make(settings):
    """The table."""
    lines, behind, ahead, least = [], [], 0, 0
    for name, read in SETS.items():
        if not data.has(*filter(None, [getattr(read, "file", None)])):
            continue
        rows = parts(name, settings.quick)
        mine = ours(rows, "learn")
        group = [line(name, "kfree", rows, mine, mine), line(name, "kfree, fixed", rows, ours(rows, "fixed"), mine)]
        if settings.rivals:
            group += [line(name, who, rows, theirs(rows, fit, std), mine) for who, fit, std in RIVALS]
            best = max(group[2:], key=lambda one: one[4])
            least += 1
            ahead += best[5] + best[6] >= 0
            if best[5] < 0:
                sure = "" if best[5] + best[6] >= 0 else ", beyond two standard errors"
                behind.append(f"{name}: {best[1]} by {-best[5]:.2f}{sure}")
        lines += group
    marks = [Mark("Tables on which no rival is ahead by more than two standard errors", ahead, least)] if least else []
    notes = ["Ahead of us: " + ("; ".join(behind) if behind else "nobody") + "."] if settings.rivals else []
    return Table("variational_quality", "Variational mixtures on real data", TEXT, HEADER, lines, notes, marks)
