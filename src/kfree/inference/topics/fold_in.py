"""What is asked of topics: shares of documents, document completion."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.kernels.splitmix import GOLDEN, mix
from kfree.rows import Documents
from kfree.rows.threads import cut


def fold_in(documents: Documents, mean: Array) -> Array:
    """Topic shares of documents with topics ``mean`` (V, G) fixed, (D, G); equal shares for empty documents."""
    share = np.empty((documents.n, mean.shape[1]))
    fill_shares(documents, mean, Budget(), share)
    return share / share.sum(axis=1, keepdims=True)


def fill_shares(documents: Documents, mean: Array, budget: Budget, share: Array) -> bool:
    """Fill ``share`` (D, G), not normalised, as long as there is time; whether there was for all documents."""
    # topics, too, may have come over a network
    mean, work = np.require(mean, np.float64, ("C", "A")), float(documents.data.size * mean.shape[1])
    how = (TOPICS.concentration, TOPICS.fold_in_steps, TOPICS.fold_in_tol)
    size = int(TOPICS.fold_in_work * documents.n / max(work, 1.0)) + 1

    def of_span(span: slice) -> bool:
        if budget.spent:
            return False
        kernels().fold_in(*documents.cells, span.start, span.stop, mean, *how, share)
        return True

    return all(list(documents.each(of_span, cut(documents.n, size), 20.0 * work)))


def split_tokens(documents: Documents) -> tuple[Array, Array]:
    """Tokens of each cell in the first half of its document and in the second, at random but by content alone.

    Every token has a number that depends on the document's content, its word and its place among the word's tokens;
    the half (rounded down) of the document's tokens with the lowest numbers is the first half. Of a word that a
    document has very often, most tokens are halved without a draw: chance would do about the same.
    """
    whole = np.floor(documents.data).astype(np.int64)
    pairs = np.maximum(whole - TOPICS.tokens_drawn, 0) // 2
    hashes, given = documents.hash(), pairs.astype(np.float64)

    def of_span(span: slice) -> None:
        cells = slice(documents.indptr[span.start], documents.indptr[span.stop])
        owner = documents.owner[cells] - span.start
        key = hashes[documents.owner[cells]] ^ _mixed(documents.indices[cells].astype(np.uint64))
        given[cells] += _earlier_half((whole - 2 * pairs)[cells], owner, key, span.stop - span.start)

    documents.do(of_span, documents.document_spans, 50.0 * documents.data.size)
    return given, documents.data - given


def _earlier_half(tokens: Array, owner: Array, key: Array, n: int) -> Array:
    """How many of the tokens of each cell, which has a key and belongs to one of n documents, are in the first half."""
    cell = np.repeat(np.arange(tokens.size), tokens)
    first = np.concatenate([[0], np.cumsum(tokens)])[:-1]
    place, document = np.arange(cell.size) - first[cell], owner[cell]
    number = _mixed(_mixed(key)[cell] ^ _mixed(place.astype(np.uint64) + np.uint64(1 << 40)))
    order = np.lexsort((number, document))
    size = np.bincount(document, minlength=n)
    rank = np.arange(cell.size) - np.concatenate([[0], np.cumsum(size)])[:-1][document]  # sorted by document
    early = np.zeros(cell.size, bool)
    early[order] = rank < (size // 2)[document]
    return np.bincount(cell[early], minlength=tokens.size)


def _mixed(value: Array) -> Array:
    """The next number of the sequence that starts from a value."""
    return mix(value + GOLDEN)


def completion(given: Documents, held: Array, mean: Array, weight: Array) -> float:
    """Mean log-probability of the held tokens (as many as ``held`` in each cell) by shares of the given ones."""
    share = fold_in(given, mean)
    mean = np.ascontiguousarray(mean, dtype=np.float64)
    parts = []
    for span in given.document_spans:
        cells = slice(given.indptr[span.start], given.indptr[span.stop])
        chance = np.einsum("ij,ij->i", mean[given.indices[cells]], share[given.owner[cells]])
        tokens = held[cells] * weight[given.owner[cells]]
        parts.append((float((tokens * np.log(chance)).sum()), float(tokens.sum())))
    value, tokens = np.sum(parts, axis=0)
    return float(value / tokens)
