"""Collapsed BP-means: every visit chooses a row with the means solved for, by rank-one updates of their inverse."""

import numpy as np

from kfree.kernels.compiled.cache import njit

_MOST = 12  # features up to which all rows are looked at
_ESSENTIAL, _STEEP = 1e-9, 1e-4  # 1 - leverage of a row that cannot be taken out, and of one that must be with care
_SUPPORT = 1e-9  # share of the largest entry below which an entry of a null vector is rounding
_REFRESH = 256  # row changes after which rounding is cleared away

DONE, BIRTH, REPLACED, REFRESH = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def rebuild(S, T, M, A, G):
    """M = S^-1, A = M T, G = A A'; returns whether S was positive definite."""
    C = S.shape[0]
    L = np.zeros((C, C))
    for i in range(C):
        for j in range(i + 1):
            inner = S[i, j]
            for m in range(j):
                inner -= L[i, m] * L[j, m]
            if i == j:
                if inner <= 1e-13 * S[i, i]:
                    return False
                L[i, i] = np.sqrt(inner)
            else:
                L[i, j] = inner / L[j, j]
    column = np.zeros(C)
    for k in range(C):
        for i in range(C):
            inner = 1.0 if i == k else 0.0
            for m in range(i):
                inner -= L[i, m] * column[m]
            column[i] = inner / L[i, i]
        for i in range(C - 1, -1, -1):
            inner = column[i]
            for m in range(i + 1, C):
                inner -= L[m, i] * column[m]
            column[i] = inner / L[i, i]
        M[:, k] = column
    for i in range(C):
        A[i] = 0.0
        for k in range(C):
            A[i] += M[i, k] * T[k]
    for i in range(C):
        for k in range(i + 1):
            inner = 0.0
            for d in range(T.shape[1]):
                inner += A[i, d] * A[k, d]
            G[i, k] = inner
            G[k, i] = inner
    return True


@njit(nogil=True, cache=True)
def _forms(B, fixed, linear, value):
    """``y B y' + linear.y`` of all rows y that have the fixed columns."""
    C = B.shape[0]
    value[0] = 0.0
    if fixed:
        value[0] = B[0, 0] + linear[0]
    cross = np.empty(value.shape[0])
    half = 1
    for b in range(fixed, C):
        cross[0] = B[b, b] + linear[b] + (2.0 * B[b, 0] if fixed else 0.0)
        size = 1
        for j in range(fixed, b):
            step = 2.0 * B[b, j]
            for y in range(size):
                cross[size + y] = cross[y] + step
            size *= 2
        for y in range(half):
            value[half + y] = value[y] + cross[y]
        half *= 2


@njit(nogil=True, cache=True)
def _choose(w, square, p, M, G, fixed, exact, slack, tops, bottoms, y):
    """Improve y in place; returns its cost."""
    C = y.shape[0]
    if exact and C - fixed <= _MOST:
        size = 1 << (C - fixed)
        _forms(G, fixed, -2.0 * p, tops[:size])
        _forms(M, fixed, np.zeros(C), bottoms[:size])
        now = 0
        for k in range(fixed, C):
            now |= np.int64(y[k]) << (k - fixed)
        best, row = np.inf, 0
        for i in range(size):
            value = w * (square + tops[i]) / (1.0 + w * bottoms[i])
            if value < best:
                best, row = value, i
        present = w * (square + tops[now]) / (1.0 + w * bottoms[now])
        if best < present - slack:
            for k in range(fixed, C):
                y[k] = (row >> (k - fixed)) & 1
            return best
        return present
    return _flip(w, square, p, M, G, fixed, slack, y)


@njit(nogil=True, cache=True)
def _flip(w, square, p, M, G, fixed, slack, y):
    """One cyclic sweep of single bits of y in place; returns its cost."""
    C = y.shape[0]
    g, m = np.zeros(C), np.zeros(C)  # G y and M y
    top, bottom = square, 1.0
    for k in range(C):
        for j in range(C):
            if y[j]:
                g[k] += G[k, j]
                m[k] += M[k, j]
    for k in range(C):
        if y[k]:
            top += g[k] - 2.0 * p[k]
            bottom += w * m[k]
    present = w * top / bottom
    for k in range(fixed, C):
        sign = -1.0 if y[k] else 1.0
        new_top = top + sign * (2.0 * g[k] - 2.0 * p[k]) + G[k, k]
        new_bottom = bottom + w * (2.0 * sign * m[k] + M[k, k])
        value = w * new_top / new_bottom
        if value < present - slack:
            y[k] = 1 - y[k]
            present, top, bottom = value, new_top, new_bottom
            for j in range(C):
                g[j] += sign * G[j, k]
                m[j] += sign * M[j, k]
    return present


@njit(nogil=True, cache=True)
def _without_row(x, w, z, square, S, T, M, A, G, M_, G_, p_, A_):
    """Take a row out; returns 1 - leverage. A_ is filled only where it had to be solved for (see ``_insert``)."""
    C = z.shape[0]
    v, p = np.zeros(C), np.zeros(C)
    for k in range(C):
        for j in range(C):
            if z[j]:
                v[k] += M[k, j]
        for d in range(x.shape[0]):
            p[k] += A[k, d] * x[d]
    h, zp, zGz = 0.0, 0.0, 0.0
    g = p.copy()
    for k in range(C):
        for j in range(C):
            if z[j]:
                g[k] -= G[k, j]
        if z[k]:
            h += w * v[k]
            zp += p[k]
    for k in range(C):
        if z[k]:
            zGz += p[k] - g[k]
    rest = 1.0 - h
    if rest < _ESSENTIAL:
        M_[:, 0] = v
        return rest
    if rest < _STEEP:
        S_, T_ = S.copy(), T.copy()
        take_out(x, w, z, S_, T_)
        if not rebuild(S_, T_, M_, A_, G_):
            M_[:, 0] = v
            return 0.0
        for k in range(C):
            p_[k] = 0.0
            for d in range(x.shape[0]):
                p_[k] += A_[k, d] * x[d]
        return rest
    rr, rx = square - 2.0 * zp + zGz, square - zp
    for k in range(C):
        u = w * v[k] / rest
        p_[k] = p[k] - u * rx
        for j in range(C):
            uj = w * v[j] / rest
            M_[k, j] = M[k, j] + w * v[k] * v[j] / rest
            G_[k, j] = G[k, j] - u * g[j] - g[k] * uj + rr * u * uj
    return rest


@njit(nogil=True, cache=True)
def take_out(x, w, z, S, T):
    """Subtract a row from the sums; a negative weight adds it."""
    for k in range(z.shape[0]):
        if z[k]:
            T[k] -= w * x
            for j in range(z.shape[0]):
                if z[j]:
                    S[k, j] -= w


@njit(nogil=True, cache=True)
def _move(x, w, z, y, rest, S, T, M, A, G, M_, G_, A_):
    """Replace row z by y in the state: the means change by two rank-one steps."""
    C = z.shape[0]
    if rest >= _STEEP:
        r = x.copy()
        for k in range(C):
            if z[k]:
                r -= A[k]
        for k in range(C):
            u = 0.0
            for j in range(C):
                if z[j]:
                    u += M[k, j]
            A_[k] = A[k] - (w * u / rest) * r
    e, v, q = x.copy(), np.zeros(C), 0.0
    for k in range(C):
        if y[k]:
            e -= A_[k]
        for j in range(C):
            if y[j]:
                v[k] += M_[k, j]
    for k in range(C):
        if y[k]:
            q += w * v[k]
    for k in range(C):
        A[k] = A_[k] + (w * v[k] / (1.0 + q)) * e
        for j in range(C):
            M[k, j] = M_[k, j] - w * v[k] * v[j] / (1.0 + q)
    for k in range(C):
        for j in range(k + 1):
            inner = 0.0
            for d in range(x.shape[0]):
                inner += A[k, d] * A[j, d]
            G[k, j] = inner
            G[j, k] = inner
    take_out(x, w, z, S, T)
    take_out(x, -w, y, S, T)


@njit(nogil=True, cache=True)
def _replace_essential(x, w, z, square, lam, slack, fixed, exact, v, S, T, tops, bottoms, y):
    """The column to drop (the last that the other rows do not need) if row y then costs less than it, else -1."""
    C = z.shape[0]
    largest, drop = np.abs(v).max(), -1
    for k in range(C):
        if abs(v[k]) > _SUPPORT * largest:
            drop = k
    if drop < fixed:
        return -1
    S_, T_ = S.copy(), T.copy()
    take_out(x, w, z, S_, T_)
    kept = np.array([k for k in range(C) if k != drop])
    S_, T_ = S_[kept][:, kept].copy(), T_[kept]
    M_, A_, G_, p_ = np.zeros((C - 1, C - 1)), np.zeros_like(T_), np.zeros((C - 1, C - 1)), np.zeros(C - 1)
    if C > 1 and not rebuild(S_, T_, M_, A_, G_):
        return -1
    trial = np.zeros(C - 1, np.uint8)
    for i in range(C - 1):
        trial[i] = z[kept[i]]
        for d in range(x.shape[0]):
            p_[i] += A_[i, d] * x[d]
    if not _choose(w, square, p_, M_, G_, fixed, exact, slack, tops, bottoms, trial) < lam - slack:
        return -1
    y[drop] = 0
    for i in range(C - 1):
        y[kept[i]] = trial[i]
    return drop


@njit(nogil=True, cache=True)
def collapsed_rows(X, weight, square, lam, fixed, exact, stop, first, Z, S, T, M, A, G):  # noqa: D103
    C = Z.shape[1]
    size = 1 << min(C - fixed, _MOST)
    tops, bottoms = np.zeros(size), np.zeros(size)
    M_, G_, p_, A_ = np.zeros((C, C)), np.zeros((C, C)), np.zeros(C), np.zeros_like(A)
    y = np.zeros(C, np.uint8)
    finite = lam if lam < np.inf else 0.0
    changed = 0
    for n in range(first, X.shape[0]):
        if stop[0]:
            break
        x, w, z = X[n], weight[n], Z[n]
        largest = 0.0
        for k in range(C):
            largest = max(largest, G[k, k])
        slack = 1e-12 * (finite + w * (square[n] + largest))
        y[:] = z
        rest = _without_row(x, w, z, square[n], S, T, M, A, G, M_, G_, p_, A_)
        if rest < _ESSENTIAL:
            drop = -1
            if lam < np.inf:
                v = M_[:, 0].copy()
                drop = _replace_essential(x, w, z, square[n], lam, slack, fixed, exact, v, S, T, tops, bottoms, y)
            if drop >= 0:
                z[:] = y
                return n, REPLACED, changed + 1, drop
            continue
        cost = _choose(w, square[n], p_, M_, G_, fixed, exact, slack, tops, bottoms, y)
        other = False
        for k in range(C):
            other = other or y[k] != z[k]
        if other:
            changed += 1
            _move(x, w, z, y, rest, S, T, M, A, G, M_, G_, A_)
            z[:] = y
        if cost > lam + slack:
            return n, BIRTH, changed, -1
        if changed >= _REFRESH:
            return n, REFRESH, changed, -1
    return X.shape[0], DONE, changed, -1
