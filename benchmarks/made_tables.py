"""Tables as shops and ships might have them, with groups that are known."""

import numpy as np

_AGE, _INCOME, _VISITS, _SPEND = [25, 45, 65, 40], [10, 10.8, 10.2, 11.8], [3, 12, 30, 8], [3, 4.5, 5, 7]
#: Columns that name rows.
IDS = ("customer_id", "name", "passenger", "cabin")
_DAYS, _NEWS = [200, 900, 2000, 1200], [0.2, 0.5, 0.8, 0.5]
_DEPARTMENTS = np.array(["food", "toys", "garden", "books"])


def customers(seed, n=400):
    """Columns by name, and the group of each row: numbers with tails, categories that tell or do not, dates, gaps."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])

    def of(values, spread):
        return np.array(values)[group] + rng.normal(0, spread, n)

    age = of(_AGE, 4)
    age[rng.random(n) < 0.08] = np.nan
    usual = np.where(rng.random(n) < 0.6, group, rng.integers(0, 4, n))
    city = rng.choice([f"city {i}" for i in range(12)], n, p=np.arange(12, 0, -1) / 78).astype(object)
    city[rng.random(n) < 0.02] = None
    since = np.datetime64("2024-01-01", "us") - of(_DAYS, 120).astype("timedelta64[D]")
    return {
        "customer_id": rng.permutation(n) + 10_000,
        "name": [f"customer {i}" for i in rng.permutation(n)],
        "age": age,
        "income": np.exp(of(_INCOME, 0.25)),
        "visits": rng.poisson(np.array(_VISITS)[group]),
        "spend": np.exp(of(_SPEND, 0.5)),
        "since": since,
        "city": city.tolist(),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "department": _DEPARTMENTS[usual].tolist(),
        "newsletter": rng.random(n) < np.array(_NEWS)[group],
    }, group


def passengers(seed, n=800):
    """Of three classes that differ in fare and, less, in age: a table in which categories make most lumps."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.25, 0.2, 0.55])
    age = np.array([42, 32, 24])[group] + rng.normal(0, 9, n)
    age[rng.random(n) < 0.2] = np.nan
    ports = np.array(["S", "C", "Q"])[
        (rng.random((n, 1)) > np.array([[0.6, 1], [0.9, 1], [0.7, 0.8]])[group]).sum(axis=1)
    ]
    return {
        "passenger": np.arange(1, n + 1),
        "fare": np.exp(np.array([4.3, 3.0, 2.2])[group] + rng.normal(0, 0.3, n)),
        "age": age,
        "sex": rng.choice(["female", "male"], n, p=[0.35, 0.65]).tolist(),
        "embarked": ports.tolist(),
        "siblings": rng.poisson(0.5, n),
        "cabin": [f"B{i}" if k == 0 else None for i, k in enumerate(group)],
    }, group
