"""The hard HDP as its paper writes it, compiled, one row and one local cluster at a time; squared distances."""

import numpy as np

from benchmarks.compiled import njit

#: Most clusters there is room for.
ROOM = 1024


@njit(cache=True)
def _nearest(x, mean, K, mine, penalty):
    best, arg = np.inf, -1
    for k in range(K):
        cost = 0.0 if mine[k] else penalty
        for j in range(x.shape[0]):
            gap = x[j] - mean[k, j]
            cost += gap * gap
        if cost < best:
            best, arg = cost, k
    return best, arg


@njit(cache=True)
def _points(X, rows, start, mean, K, member, count, lam_local, lam_global, labels):
    mine = np.zeros(mean.shape[0], np.bool_)
    for g in range(start.shape[0] - 1):
        for t in range(count[g]):
            mine[member[g, t]] = True
        for q in range(start[g], start[g + 1]):
            i = rows[q]
            best, arg = _nearest(X[i], mean, K, mine, lam_local)
            if best > lam_local + lam_global:
                mean[K] = X[i]
                arg = K
                K += 1
            labels[i] = arg
            if not mine[arg]:
                mine[arg] = True
                member[g, count[g]] = arg
                count[g] += 1
        for t in range(count[g]):
            mine[member[g, t]] = False
    return K


@njit(cache=True)
def _keep_used(rows, start, member, count, labels):
    for g in range(start.shape[0] - 1):
        kept = 0
        for t in range(count[g]):
            used = False
            for q in range(start[g], start[g + 1]):
                used |= labels[rows[q]] == member[g, t]
            if used:
                member[g, kept] = member[g, t]
                kept += 1
        count[g] = kept


@njit(cache=True)
def _locals(X, rows, start, mean, K, member, count, lam_global, labels):
    every = np.ones(mean.shape[0], np.bool_)
    middle = np.empty(X.shape[1])
    for g in range(start.shape[0] - 1):
        before = member[g, : count[g]].copy()
        fresh = np.empty(before.shape[0], np.int64)
        for t in range(before.shape[0]):
            middle[:] = 0.0
            size = 0
            for q in range(start[g], start[g + 1]):
                if labels[rows[q]] == before[t]:
                    middle += X[rows[q]]
                    size += 1
            middle /= size
            best, fresh[t] = _nearest(middle, mean, K, every, 0.0)
            if size * best > lam_global:
                mean[K] = middle
                fresh[t] = K
                K += 1
        for q in range(start[g], start[g + 1]):
            for t in range(before.shape[0]):
                if labels[rows[q]] == before[t]:
                    labels[rows[q]] = fresh[t]
                    break
        count[g] = 0
        for t in range(before.shape[0]):
            seen = False
            for s in range(count[g]):
                seen |= member[g, s] == fresh[t]
            if not seen:
                member[g, count[g]] = fresh[t]
                count[g] += 1
    return K


def _drop(labels, mean, K, member, count):
    """Renumber the clusters in use."""
    used = np.bincount(labels, minlength=K) > 0
    name = np.cumsum(used) - 1
    labels[:] = name[labels]
    mean[: used.sum()] = mean[:K][used]
    inside = np.arange(member.shape[1]) < count[:, None]
    member[inside] = name[member[inside]]
    return int(used.sum())


def hdp_loop(X, groups, lam_local, lam_global, max_iter):
    """Labels and number of passes; groups are 0 .. J-1 and rows are visited in their order."""
    X = np.ascontiguousarray(X, np.float64)
    rows = np.argsort(groups, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    mean = np.empty((ROOM, X.shape[1]))
    mean[0], K = X.mean(axis=0), 1
    member, count = (
        np.zeros((start.size - 1, 64 if start.size > 1000 else ROOM), np.int64),
        np.ones(start.size - 1, np.int64),
    )
    labels = np.zeros(X.shape[0], np.int64)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        before, old = labels.copy(), mean[:K].copy()
        K = _points(X, rows, start, mean, K, member, count, lam_local, lam_global, labels)
        _keep_used(rows, start, member, count, labels)
        K = _drop(labels, mean, K, member, count)
        K = _locals(X, rows, start, mean, K, member, count, lam_global, labels)
        K = _drop(labels, mean, K, member, count)
        size = np.bincount(labels, minlength=K)
        for j in range(X.shape[1]):
            mean[:K, j] = np.bincount(labels, X[:, j], K) / size
        if np.array_equal(before, labels) and len(old) == K:
            break
    return labels, n_iter
