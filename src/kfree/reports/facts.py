"""What was asked, of what, by what: the end of a page."""

import datetime
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.reports.asked import Asked
from kfree.reports.svg import Table
from kfree.reports.wording import clean, count, number
from kfree.versions import versions

#: Columns whose figures are told.
_COLUMNS = 100
#: What a fit has published, and what to call it.
_PUBLISHED = {
    "lam_": "price of one more (lam_)",
    "lam_local_": "price of one more in a group (lam_local_)",
    "lam_global_": "price of one more in all (lam_global_)",
    "radius_": "a row is novel beyond (radius_)",
    "concentration_": "concentration (concentration_)",
    "objective_": "objective, with the price (objective_)",
    "inertia_": "the same without it (inertia_)",
    "free_energy_": "free energy (free_energy_)",
    "explained_": "share explained (explained_)",
    "n_iter_": "passes (n_iter_)",
    "converged_": "converged (converged_)",
}


class Facts(NamedTuple):
    """Figures of the data and of the fit."""

    call: str
    data: tuple[tuple[str, str], ...]
    fit: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str], ...]
    columns: Table
    versions: tuple[tuple[str, str], ...]
    date: str


def facts_of(asked: Asked) -> Facts:
    """The facts of a model and its rows."""
    model = asked.model
    parameters = tuple((name, clean(repr(value), 120)) for name, value in model.get_params(deep=False).items())
    today = datetime.date.today()
    return Facts(
        clean(repr(model), 1500),
        _data(asked),
        _fit(model),
        parameters,
        _columns(asked),
        tuple(versions().items()),
        f"{today.day} {today:%B %Y}",
    )


def _fit(model: Any) -> tuple[tuple[str, str], ...]:
    """What a fit has published, and how long its restarts took, if that is known."""
    found = [(word, _value(getattr(model, name))) for name, word in _PUBLISHED.items() if _has(model, name)]
    restarts = getattr(model, "restarts_", None)
    if restarts:
        seconds = sum(some.seconds for some in restarts)
        found.append(("restarts (restarts_)", f"{number(len(restarts))}, {number(seconds)} seconds in all"))
    return tuple(found)


def _data(asked: Asked) -> tuple[tuple[str, str], ...]:
    X = asked.X
    n, p = X.shape
    kind = f"{type(asked.given).__module__.split('.')[0]} {type(asked.given).__name__}, {X.dtype}"
    found = [("rows", number(n)), ("columns", number(p)), ("kind", clean(kind)), ("missing values", "none")]
    if sp.issparse(X):
        found.append(("entries that are not zero", f"{number(X.nnz)} ({X.nnz / max(n * p, 1):.2%})"))
    weights = getattr(asked.model, "cluster_weights_", None)
    if weights is not None and not np.isclose(weights.sum(), n):
        found.append(("weight of the rows of the fit", number(weights.sum())))
    return tuple(found)


def _columns(asked: Asked) -> Table:
    """Least, mean and largest value of each column."""
    X = asked.X[:, :_COLUMNS]
    if sp.issparse(X):
        low, high = (np.asarray(some.todense()).ravel() for some in (X.min(axis=0), X.max(axis=0)))
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    rows = [(clean(name), number(a), number(b), number(c)) for name, a, b, c in zip(asked.columns, low, mean, high)]
    if asked.X.shape[1] > _COLUMNS:
        rows.append((f"and {count(asked.X.shape[1] - _COLUMNS, 'column')} more", "", "", ""))
    return Table(("column", "least", "mean", "largest"), tuple(rows))


def _has(model: Any, name: str) -> bool:
    return getattr(model, name, None) is not None and np.ndim(getattr(model, name)) == 0


def _value(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return number(value)
