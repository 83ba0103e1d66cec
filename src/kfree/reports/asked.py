"""What a report is asked for: a model, its rows, and what is known of each row."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.estimators._base import HardClusters
from kfree.estimators._features import BinaryFeatures
from kfree.estimators._mixture import MixtureEstimator
from kfree.estimators._sklearn import check_table
from kfree.estimators.gibbs_ibp import GibbsIBP
from kfree.estimators.hdp_topics import HDPTopics
from kfree.estimators.table_preparer import TablePreparer
from kfree.families import Array
from kfree.reports.pictures import Pictures, check_pictures
from kfree.reports.units import told_in_units
from kfree.reports.wording import clean, number

# Letters of a row's text in the name of a cluster.
_SHORT = 30
KINDS: tuple[type[Any], ...] = (HardClusters, MixtureEstimator, HDPTopics, BinaryFeatures, GibbsIBP)


class Asked(NamedTuple):
    """A model and its rows, checked."""

    model: Any
    X: Any  # (n, p) array or CSR matrix
    given: Any  # X as the user gave it
    columns: tuple[str, ...]  # p names
    names: tuple[Any, ...] | None  # n names of rows; their numbers if None
    texts: Any  # n texts, or None
    pictures: Pictures | None
    preparer: Any = None  # what made X of the users' table; None if X is that

    @property
    def spoken(self) -> Any:
        """How names of clusters speak of the columns; nothing if these are the users' own."""
        return () if self.preparer is None else self.preparer._spoken()

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def of_pixels(self) -> bool:
        """Whether the columns are pixels, of which nobody wants to hear."""
        return self.pictures is not None and self.pictures.shape is not None

    def picture_of(self, centre: Array) -> str:
        """The picture of a centre: in the shades of the rows, unless it is a share of them ("kl", "cosine")."""
        if self.pictures is None:
            return ""
        normed = getattr(getattr(self.model, "family_", None), "normalise", None) is not None
        normed |= getattr(self.model, "family", None) == "multinomial"
        return self.pictures.of_part(centre) if normed else self.pictures.of_mean(centre)

    def told(self, values: Array, columns: list[int]) -> list[tuple[str, ...]]:
        """What is told of m rows or centres, in some columns."""
        if self.preparer is not None:
            return [tuple(row[columns]) for row in told_in_units(self.preparer, values)]
        return [tuple(map(number, row)) for row in values[:, columns]]

    def dense(self, rows: Array) -> Array:
        """Some rows as an array."""
        some = self.X[rows]
        return np.asarray(some.toarray() if sp.issparse(some) else some, dtype=np.float64)

    def name(self, row: int) -> str:
        """What a row is called."""
        return f"row {row}" if self.names is None else clean(self.names[row], 40)

    def in_short(self, row: int) -> str:
        """What tells a row from others, in a few words."""
        called = getattr(self.texts, "called", None)  # rows of a file may have ids
        words = "" if self.texts is None else clean(self.texts[row] if called is None else called(row), _SHORT)
        return words or self.name(row)


def check_asked(model: Any, X: Any, texts: Any, images: Any, preparer: Any = None) -> Asked:
    """The arguments of a report, or an error that says what is wrong with them."""
    if not isinstance(model, KINDS):
        raise TypeError(f"A report is about a fitted estimator of kfree, got {type(model).__name__}.")
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"This {type(model).__name__} has not been fitted. Call fit(X) first, then report.")
    table = check_table(model, X, reset=False)
    n, p = table.shape
    if n == 0:
        raise ValueError("X has no rows. Pass those of the fit.")
    names = getattr(model, "feature_names_in_", None)
    columns = tuple(f"column {j}" for j in range(p)) if names is None else tuple(map(str, names))
    _check_preparer(preparer, p)
    pictures = check_pictures(images, table, _shown(model))
    return Asked(model, table, X, columns, _names(X), _check_texts(texts, n), pictures, preparer)


def _check_preparer(preparer: Any, p: int) -> None:
    """A fitted preparer that gives as many columns as X has."""
    if preparer is None:
        return
    if not isinstance(preparer, TablePreparer):
        raise TypeError(f"preparer must be a fitted TablePreparer, got {type(preparer).__name__}.")
    width = len(preparer.get_feature_names_out())
    if width != p:
        raise ValueError(f"preparer gives {width} columns, but X has {p}. Pass the one that X was made by.")


def _shown(model: Any) -> int:
    """Clusters, topics or features whose rows may be shown."""
    return int(getattr(model, "n_clusters_", getattr(model, "n_components_", 1)))


def _names(X: Any) -> tuple[Any, ...] | None:
    """The index of a pandas frame, unless it only counts."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or (index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index)))):
        return None
    return tuple(index)


def _check_texts(texts: Any, n: int) -> Any:
    """A text for each row."""
    if texts is None:
        return None
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__"):
        raise TypeError(f"texts must be a sequence with one text for each row, got {type(texts).__name__}.")
    if len(texts) != n:
        raise ValueError(f"There are {len(texts)} texts for {n} rows. Pass one for each row of X.")
    return np.asarray(texts, dtype=object) if hasattr(texts, "to_numpy") else texts
