"""A sweep of the sampler of binary features: one row after the other, given all others, solved from their rows."""

from functools import partial

import numpy as np
from scipy.special import expit, gammaln

DONE, NO_ROOM = 0, 1


def gibbs_ibp(X, keys, coins, deals, dims, noise, scale, rate, most, first, K, Z, S, T, M, A, G):
    """Draw the features of each row from ``first`` on, those of all others given and the means integrated out.

    The first K columns of Z are used; each has a member. With the j features that no other row has, a row with the
    shared features y is ``N(y A, v)`` in each of ``dims`` columns, where A are the means of the others and
    ``v = noise (1 + y M y') + j scale``. Bits of shared features are drawn with the j that there is, by ``coins``, in
    the order of ``keys``: that of the columns tells of births and deaths, and so of the bits. Then a new j is drawn
    from Poisson(rate / n) times that density, by ``deals``. S = Z'Z, T = Z'X, M = (S + noise / scale I)^-1, A = M T
    and G = A A' are kept. Returns (row, event, K, rows changed): 0 at the end; 1 if the row, which has not been
    changed then, needs more columns than there are.
    """
    n = len(X)
    changed, event, row = 0, DONE, n
    for i in range(first, n):
        z = Z[i, :K].copy()
        others = Z[:, :K].sum(axis=0, dtype=np.int64) - z
        shared, alone = np.flatnonzero(others), np.flatnonzero(others == 0)
        density = _density(X, Z[:, shared], i, dims, noise, scale)
        odds = np.log(others[shared] / (n - others[shared]))
        order = np.argsort(keys[i, : shared.size], kind="stable")
        y = _bits(z[shared].astype(float), odds, order, coins[i], partial(density, j=np.array([alone.size])))
        j = np.arange(most + 1)
        weight = density(y, j) + j * np.log(rate / n) - gammaln(j + 1)
        total = np.cumsum(np.exp(weight - weight.max()))
        drawn = min(int(np.searchsorted(total, deals[i] * total[-1], side="right")), most)
        if np.array_equal(y, z[shared]) and drawn == alone.size:
            continue
        if shared.size + drawn > Z.shape[1]:
            event, row = NO_ROOM, i
            break
        changed, K = changed + 1, _write(Z, K, i, shared, y, alone, drawn)
    S[:K, :K], T[:K] = Z[:, :K].T.astype(float) @ Z[:, :K], Z[:, :K].T @ X
    M[:K, :K] = np.linalg.inv(S[:K, :K] + noise / scale * np.eye(K))
    A[:K] = M[:K, :K] @ T[:K]
    G[:K, :K] = A[:K] @ A[:K].T
    return row, event, K, changed


def _density(X, Z, i, dims, noise, scale):
    """Log density of row i but for a constant, given shared features y and for numbers j of private ones."""
    rest = np.delete(Z, i, axis=0).astype(float)
    M = np.linalg.inv(rest.T @ rest + noise / scale * np.eye(Z.shape[1]))
    A = M @ rest.T @ np.delete(X, i, axis=0)

    def density(y, j):
        spread = noise * (1 + y @ M @ y) + j * scale
        return -0.5 * (dims * np.log(spread) + ((X[i] - y @ A) ** 2).sum() / spread)

    return density


def _bits(y, prior, order, coins, density):
    """One bit after the other; ``prior`` are their log odds before the row is seen."""
    for k in order:
        y[k] = 1
        on = density(y)[0]
        y[k] = 0
        odds = prior[k] + on - density(y)[0]
        y[k] = coins[k] < expit(odds)
    return y


def _write(Z, K, i, shared, y, alone, drawn):
    """Row i with shared features y and so many private ones; returns the number of features.

    The first private columns stay, those that are too many go, new ones are added at the end.
    """
    Z[i, shared] = y
    kept = np.delete(np.arange(K), alone[drawn:])
    Z[:, : kept.size] = Z[:, kept]
    more = max(drawn - alone.size, 0)
    Z[:, kept.size :] = 0
    Z[i, kept.size : kept.size + more] = 1
    return kept.size + more
