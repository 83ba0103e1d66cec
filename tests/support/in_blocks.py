"""Tables cut in blocks in this process, as they lie on the workers of a cluster."""

import warnings

import numpy as np

from kfree.estimators import _spread
from kfree.rows.blocks import NearBlocks, RowBlock


class CutTable:
    """What ``DaskTable`` is to an estimator, without Dask: what is made lazily there is made at once."""

    def __init__(self, X, weight, cuts):
        self.array, self.header = X, np.empty((0, X.shape[1]))
        self.weight = None if weight is None else np.asarray(weight, dtype=float)
        self._edges = [0, *sorted(cuts), X.shape[0]]

    def blocks(self):
        def fetch(number):
            part = slice(self._edges[number], self._edges[number + 1])
            return RowBlock(self.array[part], self.weight[part] if self.weight is not None else np.empty(0), number)

        return NearBlocks(fetch, len(self._edges) - 1)

    def gathered(self):
        return self.array, self.weight

    def like(self, kept, sizes, dtype):
        assert [len(part) for part in kept.parts] == list(sizes)
        return np.concatenate(kept.parts).astype(dtype)

    def spread(self, values):
        return values

    def lazily(self, function, sizes, like):
        parts = [function(self.array[a:b]) for a, b in zip(self._edges, self._edges[1:])]
        assert [part.shape[0] for part in parts] == list(sizes)
        assert all(part.shape[1:] == like.shape[1:] and part.dtype == like.dtype for part in parts)
        return np.concatenate([part if isinstance(part, np.ndarray) else part.toarray() for part in parts])


def fit_in_blocks(model, X, weight, cuts, monkeypatch):
    """Fit a model as if the rows were a Dask collection with these cuts."""
    monkeypatch.setattr(_spread, "DaskTable", lambda X, weight: CutTable(X, weight, cuts))
    monkeypatch.setattr(_spread, "is_dask", lambda X: True)
    monkeypatch.setattr(_spread, "map_rows", lambda X, function, dtype: function(X))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, sample_weight=weight)
    finally:
        monkeypatch.undo()
