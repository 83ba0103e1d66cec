"""Dask collections as documents: they stay where they are while topics are found, but for a sample."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfree.estimators._sklearn import check_header
from kfree.inference.loop import Budget
from kfree.models.corpus import Corpus, CountBlocks, as_counts
from kfree.models.spread_topics import PerDocument, SpreadTopics, find_spread_topics
from kfree.rows.dask import DaskTable, is_dask

#: Attributes with an entry for each document, or for each cell.
BY_DOCUMENT = ("doc_topic_", "doc_labels_", "doc_topic_counts_", "lam_local_")
BY_CELL = "cell_labels_"


class SpreadDocuments:
    """Documents of a Dask collection. Few of them are fitted in memory."""

    def __init__(self, estimator: Any, X: Any, sample_weight: Any) -> None:
        self._table = DaskTable(X, sample_weight)
        check_header(estimator, self._table.header, reset=True)
        self._estimator, self._blocks = estimator, CountBlocks(self._table.blocks())
        self._corpus = Corpus(self._blocks)

    @property
    def few(self) -> bool:
        """Whether all of them are searched, in memory."""
        return self._corpus.seen.few

    def gathered(self) -> tuple[sp.csr_matrix, Any]:
        """All of them, with their weights."""
        X, weight = self._table.gathered()
        return as_counts(X), weight

    def find(self, budget: Budget, rng: np.random.Generator) -> SpreadTopics:
        """Topics of more of them."""
        refuse_what_moves_cells(self._estimator)
        return find_spread_topics(self._estimator, self._corpus, budget, rng)

    def pieces(self, name: str, values: Any) -> Any:
        """An attribute of all documents as a Dask array with their blocks."""
        sizes = self._corpus.seen.cells if name == BY_CELL else self._corpus.seen.documents
        return self._table.pieces(values, sizes)

    def attributes(self, found: SpreadTopics) -> dict[str, Any]:
        """The attributes with an entry for each document or cell: all but main topics are made when asked for."""
        seen, K = self._corpus.seen, found.model.mean.shape[1]
        say, documents = PerDocument(found.model, found.labelled_by), seen.documents
        local = found.penalties.lam_local
        asked: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], Any]] = {
            "doc_topic_": (say.shares, documents, np.empty((0, K))),
            "doc_topic_counts_": (say.counts, documents, sp.csr_matrix((0, K))),
            "lam_local_": (say.prices, documents, np.empty(0)),
            BY_CELL: (say.labels, seen.cells, np.empty(0, np.int32)),
        }
        made = {name: self._table.lazily(*how) for name, how in asked.items()}
        return {
            **made,
            "lam_local_": made["lam_local_"] if local.per_log else local.flat,
            "doc_labels_": self._table.like(found.main, documents, np.intp),
        }

    def close(self) -> None:
        """What workers keep of the documents may go."""
        self._blocks.close()


def spread_documents(estimator: Any, X: Any, sample_weight: Any) -> SpreadDocuments | None:
    """The documents of a fit, if they are a Dask collection."""
    return SpreadDocuments(estimator, X, sample_weight) if is_dask(X) else None


def refuse_what_moves_cells(estimator: Any) -> None:
    """Parameters with which a fit would visit cells one by one."""
    way_out = "If there is room, pass X.compute(), which is fitted with every parameter."
    if estimator.search == "paper":
        raise ValueError(
            f"search='paper' visits cells one by one, which blocks of Dask do not allow. Use search='anneal'. {way_out}"
        )
    if estimator.refine is not None:
        raise ValueError(
            f"refine={estimator.refine!r} moves cells one by one, which blocks of Dask do not allow. Leave it out. "
            f"{way_out}"
        )
