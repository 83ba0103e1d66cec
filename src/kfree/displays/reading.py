"""What displays read from estimators and tables: names, sizes, centres, labels; and numbers in words."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import cut
from kfree.families import Array

#: Letters of the name of an axis, at most.
_LETTERS = 40
#: Divergences and families whose centres are of rows of this norm.
_NORMS = {"kl": "l1", "multinomial": "l1", "cosine": "l2"}


def columns_of(estimator: Any, count: int, given: Any = None) -> list[str]:
    """Names of so many columns: those that are given or that the fit has seen, or their numbers."""
    names = getattr(estimator, "feature_names_in_", ()) if given is None else given
    if given is not None and len(names) != count:
        raise ValueError(f"{len(names)} names of columns were given for {count} columns.")
    return [str(name) for name in (names if len(names) == count else range(count))]


def centres_of(estimator: Any) -> Array:
    """Centres (K, p) of clusters or components."""
    check_is_fitted(estimator)
    for name in ("cluster_centers_", "means_"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name), dtype=np.float64)
    raise TypeError(
        f"{type(estimator).__name__} has no centres: neither cluster_centers_ nor means_. Topics have TopicsDisplay, "
        "latent features FeaturesDisplay."
    )


def in_their_units(estimator: Any, X: Any) -> Any:
    """Rows in the units of the centres: histograms for "kl", unit vectors for "cosine"."""
    X = X.to_numpy() if is_frame(X) else X
    X = X if sp.issparse(X) else np.asarray(X)
    word = getattr(estimator, "divergence", None) or getattr(estimator, "family", None)
    norm = _NORMS.get(word) if isinstance(word, str) else None
    return X if norm is None else normalize(X.astype(np.float64), norm=norm)


def axis_name(name: str) -> str:
    """The name of a column, for an axis: a number alone says nothing."""
    return f"column {name}" if name.isdigit() else cut(name, _LETTERS)


def sizes_of(estimator: Any) -> Array:
    """Weights (K,) of clusters or components."""
    sizes = getattr(estimator, "cluster_weights_", None)
    return np.asarray(estimator.weights_ if sizes is None else sizes, dtype=np.float64)


def names_of(estimator: Any, X: Any, names: Any, K: int) -> list[str]:
    """Names that were given, or made from the profile of the clusters if the columns have names, or numbers."""
    if names is None and X is not None and hasattr(estimator, "feature_names_in_"):
        names = estimator._profile(X).names
    return check_names(names, K)


def check_names(names: Any, K: int) -> list[str]:
    """K names; the numbers of the clusters if there are none."""
    if names is None:
        return [str(k) for k in range(K)]
    names = [str(name) for name in names]
    if len(names) != K:
        raise ValueError(f"{len(names)} names were given for {K} clusters. Pass one for each, in their order.")
    return names


def numbered(names: list[str]) -> list[str]:
    """Names with the numbers of their clusters."""
    return [name if name == str(k) else f"{k}: {name}" for k, name in enumerate(names)]


def in_words(count: int, noun: str) -> str:
    """``in_words(12345, "rows")`` is "12 345 rows"; one of them loses its s."""
    number = f"{count:,}".replace(",", " ") if count > 9999 else str(count)
    return f"{number} {noun.removesuffix('s') if count == 1 else noun}"


def percent(share: float) -> str:
    """A share as "12 %", which is not broken in two."""
    value = 100 * float(share)
    return f"{value:.0f}\u00a0%" if value >= 9.5 else f"{value:.2g}\u00a0%"


def is_frame(X: Any) -> bool:
    """Whether a table has columns with names."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def take_rows(X: Any, rows: Array) -> Any:
    """Some rows of a table as an array or a CSR matrix."""
    X = X.to_numpy() if is_frame(X) else X
    return (X if sp.issparse(X) else np.asarray(X))[rows]
