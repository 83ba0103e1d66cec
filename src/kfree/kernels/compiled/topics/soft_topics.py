"""The soft pass over the cells of a document-term table; see the reference for the formulas."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.lanes import add_four_rows, add_to_four_rows, first_of_largest, four_products


@njit(nogil=True, cache=True, inline="always")
def _four(rows, k, stop):
    """Four rows from position k on; past the end the last one again, which then counts nothing."""
    last = stop - 1
    return (
        np.int64(rows[k]),
        np.int64(rows[min(k + 1, last)]),
        np.int64(rows[min(k + 2, last)]),
        np.int64(rows[min(k + 3, last)]),
    )


@njit(nogil=True, cache=True)
def soft_documents(data, rows, indptr, topics, share, ratio, total):  # noqa: D103
    part = np.empty(4, np.float32)
    for w in range(topics.shape[0]):
        stop = indptr[w + 1]
        for k in range(indptr[w], stop, 4):
            some = _four(rows, k, stop)
            four_products(share, some, topics, w, part)  # type: ignore[call-arg]
            for c in range(4):
                if k + c < stop:
                    part[c] = data[k + c] / part[c]
                    ratio[k + c] = part[c]
                else:
                    part[c] = np.float32(0.0)
            add_to_four_rows(topics, w, part, total, some)


@njit(nogil=True, cache=True)
def soft_words(ratio, rows, indptr, first, last, share, total):  # noqa: D103
    part, sums = np.empty(4, np.float32), np.empty(share.shape[1], np.float32)
    for w in range(first, last):
        stop = indptr[w + 1]
        if indptr[w] == stop:
            continue
        sums[:] = np.float32(0.0)
        for k in range(indptr[w], stop, 4):
            for c in range(4):
                part[c] = ratio[k + c] if k + c < stop else np.float32(0.0)
            add_four_rows(share, _four(rows, k, stop), part, sums)  # type: ignore[call-arg]
        row = total[w]
        for p in range(sums.shape[0]):
            row[p] += sums[p]


@njit(nogil=True, cache=True)
def likeliest(rows, indptr, cells, topics, share, labels):  # noqa: D103
    for w in range(topics.shape[0]):
        for k in range(indptr[w], indptr[w + 1]):
            labels[cells[k]] = first_of_largest(topics, w, share, np.int64(rows[k]))  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def add_columns(table, first, last, total):  # noqa: D103
    for i in range(first, last):
        row = table[i]
        for p in range(total.shape[0]):
            total[p] += row[p]
