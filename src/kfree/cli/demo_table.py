"""Customers of a shop that was made up: a table as it comes from a database."""

import datetime
from typing import Any, NamedTuple

import numpy as np

from kfree.cli.outputs import Columns

_TODAY = datetime.date(2026, 6, 1)
_WAYS = ("shop", "web", "app")
_CITIES = ("Lyon", "Graz", "Porto", "Gent", "Turku", "Brno")
#: How much customers of a kind differ: the standard deviation of logs.
_SPREAD = 0.3
#: Share of the cells of two columns that are empty.
_GAPS = 0.03


class _Kind(NamedTuple):
    """What is typical of some customers."""

    share: float
    typical: tuple[float, ...]  # orders a year, basket, discount share, days since the last order
    years: float  # that they have been customers
    ways: tuple[float, ...]  # how often they buy in each way


_KINDS = (
    _Kind(0.37, (26.0, 38.0, 0.05, 9.0), 6.3, (0.15, 0.7, 0.15)),  # regulars
    _Kind(0.25, (11.0, 17.0, 0.6, 30.0), 2.8, (0.05, 0.15, 0.8)),  # hunters of bargains
    _Kind(0.15, (5.0, 160.0, 0.08, 60.0), 4.8, (0.85, 0.1, 0.05)),  # few orders, large baskets
    _Kind(0.23, (1.6, 33.0, 0.15, 270.0), 2.0, (0.1, 0.6, 0.3)),  # nearly gone
)


def customers(n: int, rng: Any) -> Columns:
    """So many customers in random order."""
    own = [_KINDS[k] for k in rng.choice(len(_KINDS), n, p=[kind.share for kind in _KINDS])]
    figures = np.array([kind.typical for kind in own]) * np.exp(rng.normal(0, _SPREAD, (n, 4)))
    days = np.array([365 * kind.years for kind in own]) * np.exp(rng.normal(0, _SPREAD, n))
    ways = [str(rng.choice(_WAYS, p=kind.ways)) for kind in own]
    columns = {
        "customer": [f"C{i:04d}" for i in range(n)],
        "orders a year": np.rint(figures[:, 0]).clip(1).astype(int).tolist(),
        "basket": figures[:, 1].round(2).tolist(),
        "discount share": figures[:, 2].clip(0, 1).round(2).tolist(),
        "days since last order": np.rint(figures[:, 3]).astype(int).tolist(),
        "buys by": ways,
        "city": rng.choice(_CITIES, n).tolist(),
        "customer since": [(_TODAY - datetime.timedelta(days=int(far))).isoformat() for far in days],
    }
    for name in ("discount share", "buys by"):
        for i in np.flatnonzero(rng.random(n) < _GAPS):
            columns[name][i] = ""
    return Columns(list(columns), list(columns.values()))
