"""Documents cut in blocks in this process, as they lie on the workers of a cluster."""

import warnings

from kfree.estimators import _spread_documents
from support.in_blocks import CutTable


class CutDocuments(CutTable):
    """What ``DaskTable`` is to topics, without Dask."""

    def pieces(self, values, sizes):
        assert sum(sizes) == values.shape[0]
        return values


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
