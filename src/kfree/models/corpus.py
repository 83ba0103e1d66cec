"""Documents that lie in blocks elsewhere: what is to be known of all of them, and a sample of them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.race import sample_by_content
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_shards import WordUnits
from kfree.models.checks import check_finite
from kfree.models.topics import ALL_TOKENS, check_counts, check_document_weight
from kfree.rows import Documents
from kfree.rows.blocks import A, Beside, Blocks, Kept, Question, RowBlock
from kfree.rows.exact_sums import CostSum, WeightRange

_NONE = np.empty(0)
# Documents without words that a message names.
_NAMED = 5


def as_counts(X: Any) -> sp.csr_matrix:
    """Rows of a block, dense or CSR, as checked counts."""
    check_finite(X)
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return check_counts(X)


class CountBlocks(Blocks):
    """Blocks whose rows are asked as counts, whatever they are where they lie."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self.count = blocks, blocks.count

    def ask(self, question: Question, arguments: Sequence[Any], merge: Callable[[A, A], A]) -> A:
        """The merged answers of all blocks."""
        return self._blocks.ask(_counted, (question, arguments), merge)

    def some(self, numbers: Sequence[int]) -> "CountBlocks":
        """Only these blocks, from now on."""
        return CountBlocks(self._blocks.some(numbers))

    def keep(self, question: Question, arguments: Sequence[Any]) -> Kept:
        """Answers that stay where the blocks are."""
        return self._blocks.keep(_counted, (question, arguments))

    def close(self) -> None:
        """What was kept beside the blocks may go."""
        self._blocks.close()


def _counted(block: RowBlock, beside: Beside, question: Question, arguments: Sequence[Any]) -> Any:
    return question(block._replace(X=as_counts(block.X)), beside, *arguments)


class CorpusLook(NamedTuple):
    """What a first look at some documents says; parts are joined."""

    sizes: tuple[tuple[int, int, int], ...]  # of each block: its number, its documents, its cells with tokens
    p: int
    weighted: bool
    weights: WeightRange
    tokens: float  # about, not weighted
    longest: float  # tokens of a document
    empty: int  # documents without words
    places: tuple[tuple[int, int], ...]  # of the first of them: block and row

    def joined(self, other: "CorpusLook") -> "CorpusLook":
        """At these documents and others."""
        if self.p != other.p:
            raise ValueError(f"Blocks of X differ: some have {self.p} columns, others {other.p}. Make them alike.")
        return CorpusLook(
            self.sizes + other.sizes,
            self.p,
            self.weighted or other.weighted,
            self.weights.joined(other.weights),
            self.tokens + other.tokens,
            max(self.longest, other.longest),
            self.empty + other.empty,
            tuple(sorted(self.places + other.places)[:_NAMED]),
        )

    @property
    def documents(self) -> tuple[int, ...]:
        """How many there are in each block."""
        return tuple(size for _, size, _ in sorted(self.sizes))

    @property
    def cells(self) -> tuple[int, ...]:
        """The same of cells."""
        return tuple(size for _, _, size in sorted(self.sizes))

    @property
    def few(self) -> bool:
        """Whether all of them can be searched."""
        return sum(self.documents) <= TOPICS.search_documents and sum(self.cells) <= TOPICS.search_cells

    @property
    def most(self) -> int:
        """How many can, of documents that have as many cells as these on average."""
        of_cells = TOPICS.search_cells * sum(self.documents) // max(sum(self.cells), 1)
        return max(1, min(TOPICS.search_documents, of_cells))


def look_at_documents(block: RowBlock, beside: Beside) -> CorpusLook:
    """Check the documents of a block."""
    X, weight, n = block.X, block.weight, block.X.shape[0]
    users = WeightRange(0.0, np.inf)  # of no document that has weight
    if n and not weight.size:
        users = WeightRange()
    elif weight.any():
        users = WeightRange.of(check_document_weight(weight, n))
    length = np.asarray(X.sum(axis=1)).ravel()
    empty = np.flatnonzero(length == 0)
    return CorpusLook(
        ((block.number, n, X.nnz),),
        X.shape[1],
        bool(weight.size),
        users,
        float(length.sum()),
        float(length.max(initial=0.0)),
        empty.size,
        tuple((block.number, int(i)) for i in empty[:_NAMED]),
    )


class CorpusSums(NamedTuple):
    """Sums over some documents, free of their order; parts are joined."""

    tokens: Array  # (3,) limbs of the weighted sum of lengths
    cells: Array  # (V,) int64, of each word
    most: Array  # (V,) weighted tokens of a cell

    def joined(self, other: "CorpusSums") -> "CorpusSums":
        """Over these documents and others."""
        most = np.maximum(self.most, other.most)
        return CorpusSums(self.tokens + other.tokens, self.cells + other.cells, most)


def sum_documents(block: RowBlock, beside: Beside, longest: float, weights: WeightRange) -> CorpusSums:
    """Sums over a block."""
    documents, V = Documents(block.X, block.weight), block.X.shape[1]
    most, weight = np.zeros(V), documents.weights
    np.maximum.at(most, documents.indices, documents.data * weight[documents.owner])
    return CorpusSums(
        CostSum(longest, weights).limbs(documents.length, block.weight),
        np.bincount(documents.indices, minlength=V),
        most,
    )


class Corpus:
    """Documents in blocks, and what is known of all of them."""

    def __init__(self, blocks: CountBlocks) -> None:
        self.blocks, self.seen = blocks, blocks.ask(look_at_documents, (), CorpusLook.joined)
        _check_documents(self.seen)

    def measure(self) -> "Measured":
        """Look at them once more, for sums."""
        longest, weights = self.seen.longest, self.seen.weights
        sums = self.blocks.ask(sum_documents, (longest, weights), CorpusSums.joined)
        tokens = CostSum(longest, weights)
        tokens.add(sums.tokens)
        return Measured(tokens.value, WordUnits.of(sums.cells, sums.most))

    def sample(self) -> "SampledDocuments":
        """Some of them, drawn by content."""
        drawn = sample_by_content(self.blocks, self.seen.most)
        own = drawn.weight * (drawn.own.sum() / drawn.weight.sum())
        return SampledDocuments(Documents(drawn.X, _NONE if np.allclose(own, 1.0, 1e-12, 0.0) else own), drawn.weight)


class Measured(NamedTuple):
    """Sums over all documents."""

    tokens: float  # weighted
    units: WordUnits


class SampledDocuments(NamedTuple):
    """Different documents of a corpus, in the order of their hashes."""

    documents: Documents  # together they weigh what they do in the corpus: there is no more evidence in them
    stands_for: Array  # (S,) weight of the documents that each stands for


def _check_documents(seen: CorpusLook) -> None:
    """Whether there is something to fit."""
    n = sum(seen.documents)
    if not n:
        raise ValueError("X has no rows. Pass some.")
    if seen.empty == n:
        raise ValueError(
            f"The corpus is empty: none of the {n} documents has a word of the {seen.p} in the vocabulary. Check the "
            "vectorizer's vocabulary and its min_df and max_df."
        )
    if seen.empty:
        some = ", ".join(f"{i} of block {block}" for block, i in seen.places)
        more = ", ..." if seen.empty > len(seen.places) else ""
        raise ValueError(
            f"{seen.empty} of {n} documents have no words (rows {some}{more}). Drop them before the fit, block by "
            "block: rows[np.ravel(rows.sum(axis=1)) > 0]; transform gives them equal shares of all topics."
        )
    if seen.weighted and not seen.weights.heaviest:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit. Give some row a weight.")
    if not seen.tokens <= ALL_TOKENS:
        raise ValueError(
            f"HDPTopics can count up to {ALL_TOKENS:g} tokens in all, but the documents have {seen.tokens:g}. Divide "
            "the counts, and round them."
        )
