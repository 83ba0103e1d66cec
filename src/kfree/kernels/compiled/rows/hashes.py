"""Hashes of row content."""

import numpy as np

from kfree.kernels import splitmix
from kfree.kernels.compiled.cache import njit
from kfree.kernels.splitmix import GOLDEN

mix = njit(nogil=True, cache=True, inline="always")(splitmix.mix)


@njit(nogil=True, cache=True)
def hash_dense(X, rows, hashes):  # noqa: D103
    p = X.shape[1]
    column = np.empty(p, np.uint64)
    for j in range(p):
        column[j] = mix(np.uint64(j + 1) * GOLDEN)
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for t in range(rows.shape[0]):
        i = rows[t]
        total = np.uint64(0)
        for j in range(p):
            if X[i, j] != 0:
                value[0] = X[i, j]
                total += mix(bits[0] + column[j])
        hashes[t] = mix(total)


@njit(nogil=True, cache=True)
def hash_csr(data, indices, indptr, rows, hashes):  # noqa: D103
    value = np.empty(1, np.float64)
    bits = value.view(np.uint64)
    for t in range(rows.shape[0]):
        i = rows[t]
        total = np.uint64(0)
        for q in range(indptr[i], indptr[i + 1]):
            if data[q] != 0:
                value[0] = data[q]
                total += mix(bits[0] + mix(np.uint64(indices[q] + 1) * GOLDEN))
        hashes[t] = mix(total)


@njit(nogil=True, cache=True)
def find_content(hashes, wanted, rows):  # noqa: D103
    # nearly all rows are none of them: twelve bits of the hash tell
    likely = np.zeros(4096, np.bool_)
    for h in wanted:
        likely[h & np.uint64(4095)] = True
    count = 0
    for i in range(hashes.shape[0]):
        if likely[hashes[i] & np.uint64(4095)]:
            place = np.searchsorted(wanted, hashes[i])
            if place < wanted.shape[0] and wanted[place] == hashes[i]:
                rows[count] = i
                count += 1
    return count
