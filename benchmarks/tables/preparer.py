"""``TablePreparer``: clusters of ``DPMeans()`` after it, beside those after what analysts write by hand."""

import warnings

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from benchmarks import data, made_tables
from benchmarks.measure import ari
from benchmarks.report import Table
from kfree import DPMeans, TablePreparer

HEADER = ["table (groups)", "rows, columns", "TablePreparer", "careful analyst", "plain"]
TEXT = (
    "Number of clusters that `DPMeans()` finds, and adjusted Rand index against the groups (cells: median K, "
    "mean ARI of five draws of nine tenths of the rows). "
    "`TablePreparer()` sees each table as it is, with ids and names, and is told nothing. The careful analyst knows "
    "the table: she leaves out ids and names, takes logarithms of amounts, fills gaps by medians, scales numbers to "
    "variance 1 and one-hot encodes categories without rare levels. Plain is the same without logarithms."
)
NOTES = [
    "Amounts, which the analyst takes logarithms of: all columns of wholesale and of breast cancer; income and spend "
    "of the customers; fare of the passengers. Customers and passengers are made up, with groups that are known.",
    "What a category weighs was decided on 40 other made tables, with drafts of these customers and passengers in "
    "view. When a tail is long was a first guess; it was kept after it was compared with seven others on wholesale, "
    "breast cancer, segment and shuttle.",
    "On segment, shuttle and the passengers several numbers of clusters are nearly equally clear. Other rows, or "
    "rounding, may give another: segment gave 11, 12 or 17 clusters after changes of a ten millionth and less.",
]
#: Rows of long tables that are looked at.
MOST = 5000
#: Draws of rows, of which the mean is shown: on some tables several numbers of clusters are equally clear.
DRAWS = 5
#: Agreement that differs by less is level.
LEVEL = 0.1


def real():
    """Tables of the shared folder and of scikit-learn: name, columns, groups, amounts."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("breast cancer", load_breast_cancer)):
        found = load()
        columns = dict(zip(map(str, found.feature_names), found.data.T))
        yield name, columns, found.target, list(columns) if name == "breast cancer" else []
    if data.has("wholesale", "segment", "shuttle"):
        found = data.arrays("wholesale")
        columns = {str(name): values for name, values in zip(found["columns"], found["X"].T)}
        region = {"region": [f"region {r}" for r in found["region"]]}
        yield "wholesale, region", {**columns, **region}, found["channel"], list(columns)
        for case in (data.segment(), data.shuttle()):
            rows = np.random.default_rng(0).permutation(len(case.truth))[:MOST]
            columns = {f"column {j}": values for j, values in enumerate(case.X[rows].T)}
            yield case.name, columns, case.truth[rows], []


def made():
    """Made tables: the same."""
    for seed in range(3):
        yield f"customers {seed}", *made_tables.customers(seed), ["income", "spend"]
    for seed in range(2):
        yield f"passengers {seed}", *made_tables.passengers(seed), ["fare"]


def by_hand(frame, amounts):
    """What an analyst writes who knows the table."""
    left = [name for name in frame if name not in made_tables.IDS]
    dates = list(frame[left].select_dtypes("datetime"))
    levels = list(frame[left].select_dtypes(["object", "string", "bool"]))
    numbers = [name for name in left if name not in {*dates, *levels, *amounts}]
    fill = SimpleImputer(strategy="median")
    return make_column_transformer(
        (make_pipeline(fill, FunctionTransformer(np.log1p), StandardScaler()), amounts),
        (make_pipeline(fill, StandardScaler()), numbers),
        (make_pipeline(FunctionTransformer(_days), StandardScaler()), dates),
        (OneHotEncoder(min_frequency=0.01, handle_unknown="ignore", sparse_output=False), levels),
    )


def _days(frame):
    return frame.to_numpy().astype("datetime64[s]").astype(float)


def cell(preparer, frame, truth, draws):
    """Median number of clusters and mean agreement over draws of nine tenths of the rows."""
    found = []
    for seed in range(draws):
        rows = np.random.default_rng(seed).permutation(len(truth))[: 9 * len(truth) // 10]
        some = frame.iloc[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # one cluster: the table shows it
            model = DPMeans().fit(preparer.fit_transform(some))
        found.append((model.n_clusters_, ari(truth[rows], model.labels_)))
    number, agreement = np.array(found).T
    return int(np.median(number)), float(agreement.mean())


def make(settings):
    """The table."""
    import pandas as pd

    sets = [*real(), *made()]
    if settings.quick:
        sets = [one for one in sets if len(one[2]) <= 200]
    rows, agreement = [], []
    for name, columns, truth, amounts in sets:
        frame = pd.DataFrame(columns)
        preparers = (TablePreparer(), by_hand(frame, amounts), by_hand(frame, []))
        cells = [cell(preparer, frame, truth, 1 if settings.quick else DRAWS) for preparer in preparers]
        shape = f"{frame.shape[0]}, {frame.shape[1]}"
        rows.append([f"{name} ({np.unique(truth).size})", shape, *(f"{k}, {value:.2f}" for k, value in cells)])
        agreement.append([value for _, value in cells])
    rows.append(["mean", "", *(f"{value:.3f}" for value in np.mean(agreement, axis=0))])
    return Table("preparer", "Tables as they are", f"{verdict(sets, agreement)} {TEXT}", HEADER, rows, NOTES)


def verdict(sets, agreement):
    """What the table says, in a sentence."""
    behind = [name for (name, *_), (ours, hers, _) in zip(sets, agreement) if ours < hers - LEVEL]
    where = f"; behind on {', '.join(behind)}" if behind else ""
    number = f"{len(sets) - len(behind)} of {len(sets)} tables"
    return f"`TablePreparer()` is ahead of a careful analyst, or level (within {LEVEL}), on {number}{where}."
