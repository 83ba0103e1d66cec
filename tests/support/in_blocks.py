"""Tables cut in blocks in this process, as they lie on the workers of a cluster."""

import warnings

import numpy as np

from kfree.estimators import _spread
from kfree.rows.blocks import NearBlocks, RowBlock


class CutTable:
    """What ``DaskTable`` is to an estimator, without Dask."""

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
