"""The soft pass over the cells of a document-term table, one cell at a time.

Cells of a block of documents lie word by word: entries ``indptr[w]`` to ``indptr[w + 1]`` of ``rows`` and ``data`` are
the documents of the block that hold word w and how often. ``topics`` (V, G) and ``share`` (D, G) are powers of the
topics' word probabilities and of the documents' topic shares, padded with zero columns to a multiple of 16, float32.
"""

import numpy as np


def soft_documents(data, rows, indptr, topics, share, ratio, total):
    """Fill ``ratio = n / sum_p topics[w, p] share[j, p]`` and add ``ratio * topics[w]`` to ``total[j]``.

    ``share[j] * total[j]`` then are the soft counts of the topics in document j.
    """
    for w in range(topics.shape[0]):
        for k in range(indptr[w], indptr[w + 1]):
            ratio[k] = data[k] / np.dot(topics[w], share[rows[k]])
            total[rows[k]] += ratio[k] * topics[w]


def soft_words(ratio, rows, indptr, first, last, share, total):
    """Add ``ratio * share[j]`` to ``total[w]`` for words ``first`` to ``last``.

    ``topics[w] * total[w]`` then are the soft counts of word w in the topics.
    """
    for w in range(first, last):
        cells = slice(indptr[w], indptr[w + 1])
        total[w] += ratio[cells] @ share[rows[cells]]


def likeliest(rows, indptr, cells, topics, share, labels):
    """The topic with the largest ``topics[w, p] * share[j, p]`` for every cell, to ``labels[cells]``."""
    for w in range(topics.shape[0]):
        part = slice(indptr[w], indptr[w + 1])
        labels[cells[part]] = (topics[w] * share[rows[part]]).argmax(axis=1)


def add_columns(table, first, last, total):
    """Add rows ``first`` to ``last`` to ``total``, float64, which may have fewer columns."""
    total += table[first:last, : total.size].sum(axis=0, dtype=np.float64)
