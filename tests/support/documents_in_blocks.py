"""Documents cut in blocks in this process, as they lie on the workers of a cluster."""

import warnings

import numpy as np

from kfree.estimators import _spread_documents
from support.in_blocks import CutTable


class CutDocuments(CutTable):
    """What ``DaskTable`` is to topics, without Dask: what is made lazily there is made at once."""

    def pieces(self, values, sizes):
        assert sum(sizes) == values.shape[0]
        return values

    def lazily(self, function, sizes, like):
        parts = [function(self.array[a:b]) for a, b in zip(self._edges, self._edges[1:])]
        assert [part.shape[0] for part in parts] == list(sizes)
        assert all(part.shape[1:] == like.shape[1:] and part.dtype == like.dtype for part in parts)
        return np.concatenate([part if isinstance(part, np.ndarray) else part.toarray() for part in parts])


def fit_documents_in_blocks(model, X, weight, cuts, monkeypatch, **numbers):
    """Fit topics as if the rows were a Dask collection with these cuts."""
    monkeypatch.setattr(_spread_documents, "DaskTable", lambda X, weight: CutDocuments(X, weight, cuts))
    monkeypatch.setattr(_spread_documents, "is_dask", lambda X: True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, sample_weight=weight)
    finally:
        monkeypatch.undo()
