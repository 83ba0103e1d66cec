"""Hashes of row content."""

import numpy as np
import scipy.sparse as sp

from kfree.kernels.splitmix import GOLDEN, mix


def hash_dense(X, rows, hashes):
    """64-bit hash of the content of each row: a sum over its non-zero entries, so that dense equals sparse."""
    x = np.ascontiguousarray(X[rows], dtype=np.float64)
    column = mix(np.arange(1, x.shape[1] + 1, dtype=np.uint64) * GOLDEN)
    entries = np.where(x != 0, mix(x.view(np.uint64) + column), np.uint64(0))
    hashes[:] = mix(entries.sum(axis=1, dtype=np.uint64))


def hash_csr(data, indices, indptr, rows, hashes):
    """The same for compressed sparse rows."""
    width = int(indices.max(initial=0)) + 1
    x = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, width))[rows]
    hash_dense(x.astype(float).toarray(), np.arange(rows.size), hashes)


def find_content(hashes, wanted, rows):
    """List the rows whose hash is one of ``wanted`` (ascending); returns how many."""
    found = np.flatnonzero(np.isin(hashes, wanted))
    rows[: found.size] = found
    return found.size
