"""A document-term table: the cells document by document, and word by word in blocks of documents."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.cached import cached_property
from kfree.kernels import kernels
from kfree.rows.csr import cells_of
from kfree.rows.threads import over

T = TypeVar("T")
# Cells of a span of documents or words: what a thread takes at a time.
_SPAN = 131072
# Operations that take as long as one look at an entry of a table.
_AN_ENTRY = 10.0
# Least documents of a block, and least cells for each word of the vocabulary: the shares of a block's documents then
# stay in the cache while its words are gone through.
_BLOCK, _CELLS_A_WORD = 512, 8


class Block(NamedTuple):
    """The cells of some documents, word by word."""

    documents: slice
    data: Array  # (m,) float32, tokens
    rows: Array  # (m,) int32, documents, ascending within a word
    indptr: Array  # (V + 1,)
    cells: Array  # (m,) where each lies in the whole table


class Documents:
    """Tokens per document and word, with document weights; documents may be empty."""

    def __init__(self, X: sp.csr_matrix, weight: Array):
        self.data, self.indices, self.indptr = cells_of(X.astype(np.float64, copy=False))
        self.n, self.p = X.shape
        self.weight = weight  # (n,), or (0,) for ones
        self.owner = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))
        # of no documents numpy counts in whole numbers
        self.length = np.bincount(self.owner, weights=self.data, minlength=self.n).astype(np.float64, copy=False)

    @property
    def cells(self) -> tuple[Array, Array, Array]:
        """Tokens, words and starts of the documents: what kernels take."""
        return self.data, self.indices, self.indptr

    @property
    def table(self) -> sp.csr_matrix:
        """Tokens of each document and word."""
        return sp.csr_matrix(self.cells, shape=(self.n, self.p))

    @property
    def weights(self) -> Array:
        """Weight of each document."""
        return self.weight if self.weight.size else np.ones(self.n)

    @cached_property
    def word_totals(self) -> Array:
        """Weighted tokens of each word."""
        return np.bincount(self.indices, weights=self.data * self.weights[self.owner], minlength=self.p)

    @property
    def total(self) -> float:
        """Weighted tokens."""
        return float((self.length * self.weights).sum())

    def hash(self) -> Array:
        """Hashes of the documents' content, uint64."""
        hashes = np.empty(self.n, np.uint64)
        kernels().hash_csr(*self.cells, np.arange(self.n), hashes)
        return hashes

    @cached_property
    def blocks(self) -> list[Block]:
        """Cells word by word; the partition depends on the table alone, so sums are added in a fixed order."""
        mean = max(1.0, self.data.size / max(self.n, 1))
        size = max(_BLOCK, int(_CELLS_A_WORD * self.p / mean))
        count = -(-self.n // size)
        count += count % 2 if count > 2 else 0  # of about as many cells each, for two threads, four, ...
        edges = np.searchsorted(self.indptr, np.linspace(0, self.indptr[-1], count + 1)[1:-1])
        parts = [slice(a, b) for a, b in pairwise([0, *edges.tolist(), self.n]) if b > a]
        return [self._block(part) for part in parts]

    def _block(self, part: slice) -> Block:
        first, last = self.indptr[part.start], self.indptr[part.stop]
        starts, cells = self.indptr[part.start : part.stop + 1] - first, np.arange(first, last)
        by_word = sp.csr_matrix(
            (cells, self.indices[first:last], starts), shape=(part.stop - part.start, self.p)
        ).tocsc()
        rows, tokens = (by_word.indices + part.start).astype(np.int32), self.data[by_word.data].astype(np.float32)
        return Block(part, tokens, rows, by_word.indptr.astype(np.int64), by_word.data)

    @cached_property
    def document_spans(self) -> list[slice]:
        """Documents in spans of about as many cells."""
        return _spans(self.indptr)

    @cached_property
    def word_spans(self) -> list[slice]:
        """Words in spans of about as many cells."""
        return _spans(np.concatenate([[0], np.cumsum(np.bincount(self.indices, minlength=self.p))]))

    def each(self, function: Callable[[Any], T], items: list[Any], work: float) -> Iterator[T]:
        """Apply a function to blocks or spans, in parallel if the work (operations in all) is worth it."""
        return over(items, function, work / _AN_ENTRY)

    def do(self, function: Callable[[Any], None], items: list[Any], work: float) -> None:
        """The same for a function that only writes."""
        for _ in self.each(function, items, work):
            pass


def _spans(indptr: Array) -> list[slice]:
    """Rows cut where about _SPAN more cells, or as many rows, have gone by."""
    passed = indptr[:-1] + np.arange(len(indptr) - 1)
    starts = np.unique(np.searchsorted(passed, np.arange(0, passed[-1] + 1, _SPAN))) if passed.size else np.zeros(0)
    edges = [*starts.astype(int).tolist(), len(indptr) - 1]
    return [slice(a, b) for a, b in pairwise(edges) if b > a]
