"""Tables that somebody will pass one day: what the values are, and what holds them."""

import tempfile

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

#: Values that most code has never seen.
ENDS = (
    0.0,
    -0.0,
    -1.0,
    1.0,
    5e-324,
    1e-308,
    1e-160,
    1e-30,
    1e16,
    1e150,
    1e154,
    1e200,
    1.7e308,
    np.nan,
    np.inf,
    -np.inf,
)


def _groups(rng, n, p):
    """A few groups, well apart or not."""
    centres = rng.normal(size=(int(rng.integers(1, 6)), p)) * rng.choice([1.0, 5.0, 50.0])
    return centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, p))


def _sums_of_features(rng, n, p):
    K = int(rng.integers(1, 5))
    return rng.integers(2, size=(n, K)) @ (3 * rng.normal(size=(K, p))) + 0.2 * rng.normal(size=(n, p))


def _topics(rng, n, p):
    """Documents of a few topics, one word at the least."""
    rates = rng.gamma(0.3, size=(3, p))[rng.integers(3, size=n)] * rng.uniform(1, 20, (n, 1))
    X = rng.poisson(rates).astype(float)
    X[np.arange(n), rng.integers(p, size=n)] += 1
    return X


def _few_distinct(rng, n, p):
    return rng.normal(size=(3, p))[rng.integers(3, size=n)]


def _columns_of_all_sizes(rng, n, p):
    return rng.normal(size=(n, p)) * 10.0 ** rng.integers(-12, 12, p)


def _flat(rng, n, p):
    """Columns of which some are constant, some copies of others."""
    X = rng.normal(size=(n, p))
    X[:, rng.random(p) < 0.4] = rng.normal()
    return X[:, rng.integers(p, size=p)]


#: Tables on which rounding decides nothing: what holds in exact arithmetic must hold on them.
TAME = {
    "groups": _groups,
    "features": _sums_of_features,
    "uniform": lambda rng, n, p: rng.uniform(size=(n, p)),
    "gamma": lambda rng, n, p: rng.gamma(2.0, size=(n, p)) + 0.01,
    "noise": lambda rng, n, p: rng.normal(size=(n, p)),
}
#: Tables in which many numbers are equal.
TIED = {
    "topics": _topics,
    "counts": lambda rng, n, p: rng.poisson(3, (n, p)).astype(float),
    "bits": lambda rng, n, p: rng.integers(0, 2, (n, p)).astype(float),
    "grid": lambda rng, n, p: rng.integers(0, 3, (n, p)).astype(float),
    "few distinct": _few_distinct,
    "equal rows": lambda rng, n, p: np.repeat(rng.normal(size=(1, p)), n, 0),
    "zeros": lambda rng, n, p: np.zeros((n, p)),
    "flat columns": _flat,
}
#: Tables near the ends of what floats can say.
WILD = {
    "any size": lambda rng, n, p: rng.normal(size=(n, p)) * 10.0 ** rng.integers(-300, 300),
    "sizes by column": _columns_of_all_sizes,
    "sizes by entry": lambda rng, n, p: rng.normal(size=(n, p)) * 10.0 ** rng.integers(-20, 20, (n, p)),
    "far away": lambda rng, n, p: rng.normal(size=(n, p)) + 10.0 ** rng.integers(3, 18),
    "far and small": lambda rng, n, p: 1.0 + rng.normal(size=(n, p)) * 10.0 ** rng.integers(-18, -3),
    "heavy tails": lambda rng, n, p: rng.standard_cauchy((n, p)) * 10.0 ** rng.integers(0, 12),
    "lognormal": lambda rng, n, p: np.exp(rng.choice([2, 5, 20]) * rng.normal(size=(n, p))),
    "large counts": lambda rng, n, p: np.floor(10.0 ** rng.uniform(0, 17, (n, p))),
    "nearly bits": lambda rng, n, p: np.clip(rng.integers(0, 2, (n, p)) + rng.choice([-1, 1]) * 1e-16, 0, 1),
    "subnormal": lambda rng, n, p: rng.integers(0, 9, (n, p)) * 5e-324,
}
KINDS = {**TAME, **TIED, **WILD}
#: Rows of a table, small ones most often.
LENGTHS = (1, 2, 3, 5, 10, 20, 40, 100, 300)
WIDTHS = (1, 2, 3, 5, 8, 30)


def draw_values(rng, kinds, most_rows=300, most_columns=30):
    """A kind of table and its values; with a foreign entry among them now and then."""
    kind = str(rng.choice(list(kinds)))
    n = int(rng.choice([n for n in LENGTHS if n <= most_rows]))
    p = int(rng.choice([p for p in WIDTHS if p <= most_columns]))
    X = KINDS[kind](rng, n, p)
    if rng.random() < 0.08:
        X[rng.integers(n), rng.integers(p)] = rng.choice(ENDS)
        kind = f"{kind} with an end"
    return kind, X


def draw_weight(rng, n):
    """Weights, or None; and whether they are ordinary."""
    pick = rng.integers(8)
    if pick < 4:
        return None, True
    if pick == 4:
        return rng.integers(0, 4, n).astype(float), True
    if pick == 5:
        return rng.uniform(0.1, 3.0, n), True
    if pick == 6:
        return rng.choice([0.0, 1.0, 2.0, 0.5, 1e-8, 1e6], n), False
    return 10.0 ** rng.uniform(*sorted(rng.integers(-320, 308, 2)), n), False


def _as_memmap(X):
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, X)
        return np.load(file.name, mmap_mode="r")


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _strided(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan if X.dtype.kind == "f" else 0).astype(X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _with_duplicates(X):
    """Every entry in two parts that add up to it: whole numbers as x and 0, others as two halves."""
    once = sp.coo_matrix(X)
    row, col = np.tile(once.row, 2), np.tile(once.col, 2)
    indptr = np.searchsorted(np.sort(row), np.arange(X.shape[0] + 1))
    order = np.argsort(row, kind="stable")
    data = np.concatenate([once.data, np.zeros_like(once.data)])
    return sp.csr_matrix((data[order], col[order], indptr), shape=X.shape)


def _unsorted(X):
    found = sp.csr_matrix(X)
    for a, b in zip(found.indptr, found.indptr[1:]):
        found.indices[a:b], found.data[a:b] = found.indices[a:b][::-1].copy(), found.data[a:b][::-1].copy()
    found.has_sorted_indices = False
    return found


def _with_zeros(X):
    every = np.indices(X.shape).reshape(2, -1)
    return sp.csr_matrix(sp.coo_matrix((X.ravel(), every), shape=X.shape))


def _long_indices(X):
    found = sp.csr_matrix(X)
    found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


def _names(X):
    return [f"c{j}" for j in range(X.shape[1])]


#: What may hold a table.
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": _strided,
    "read-only": _read_only,
    "memmap": _as_memmap,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=_names(X)),
    "polars": lambda X: pl.DataFrame(X, schema=_names(X), orient="row"),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "csr array": sp.csr_array,
    "csr with duplicates": _with_duplicates,
    "csr unsorted": _unsorted,
    "csr with zeros": _with_zeros,
    "csr long indices": _long_indices,
}
DTYPES = ("float64", "float32", "int64", "bool", "uint8", "float16")


def lay_out(values, dtype, layout):
    """The table as it is passed; values that the type cannot hold are as it makes them."""
    if dtype == "float16" and "cs" in layout:  # of which there are no sparse tables
        dtype = "float32"
    with np.errstate(all="ignore"):
        return LAYOUTS[layout](values.astype(dtype))
