"""Single rows under Gaussians with full covariance, without looking closely at components that cannot matter."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.products import LANES, above_along, lower_scores

# exp of this is below 1e-16: nothing next to 1.
_NEGLIGIBLE = -37.0


@njit(nogil=True, cache=True)
def _padded(lower, centre, height):
    """With an even number of columns, and of components; those that are added change nothing."""
    K, D = centre.shape
    even = D + D % 2
    matrices, means, heights = np.zeros((K, even, even)), np.zeros((K, even)), np.full(K + K % 2, -np.inf)
    matrices[:, :D, :D], means[:, :D], heights[:K] = lower, centre, height
    return matrices, means, heights


@njit(nogil=True, cache=True)
def _room(K, D):
    """Arrays of a block: rows, gaps, scores, what is least, largest and the sum; which are wanted and alive."""
    lanes = (np.empty(LANES), np.empty(LANES), np.empty(LANES))
    return np.zeros((D, LANES)), np.empty((D, LANES)), np.empty((K, LANES)), *lanes, np.zeros(K, np.bool_)


@njit(nogil=True, cache=True)
def _load(rows, start, stop, block):
    """A row into each lane; copies of the last one where there are no more."""
    for i in range(LANES):
        row = rows[min(start + i, stop - 1)]
        for d in range(rows.shape[1]):
            block[d, i] = row[d]


@njit(nogil=True, cache=True, fastmath={"contract"})
def point_to(j, centre, lower, directions, shift):
    """The direction in which rows of component j are far from component k, in whitened coordinates of k: along it alone
    the distance from k of a row is ``<directions[k], row - centre[j]> + shift[k]``, and never more than it is."""
    K, D = centre.shape
    gap = np.empty(D)
    for k in range(K):
        total = 0.0
        for e in range(D):
            gap[e] = 0.0
            for d in range(e + 1):
                gap[e] += lower[k, e, d] * (centre[j, d] - centre[k, d])
            total += gap[e] * gap[e]
        shift[k], directions[k] = np.sqrt(total), 0.0
        if total > 0.0:
            for e in range(D):
                along = gap[e] / shift[k]
                for d in range(e + 1):
                    directions[k, d] += lower[k, e, d] * along


@njit(nogil=True, cache=True)
def _score(block, centre, lower, height, least, gap, scores):
    """Scores of the rows of a block under one component; False, with scores that are too high, if none is above
    ``least``."""
    for i in range(LANES):
        scores[i] = height
    for e in range(0, block.shape[0], 2):
        for i in range(LANES):
            gap[e, i], gap[e + 1, i] = block[e, i] - centre[e], block[e + 1, i] - centre[e + 1]
        if not lower_scores(gap, lower, e, scores, least):  # type: ignore[call-arg]
            return False
    return True


@njit(nogil=True, cache=True)
def _score_all(block, centre, lower, height, first, wanted, directions, shift, gap, least, top, scores, alive):
    """Scores under all components that are wanted, or not negligible for all rows of the block; and the largest.
    Component ``first`` is the first to be tried, the last one the last. Directions, if there are any, point away from
    the first."""
    K = centre.shape[0]
    least[:] = -np.inf
    finite = _score(block, centre[first], lower[first], height[first], least, gap, scores[first])
    for i in range(LANES):
        top[i], least[i] = scores[first, i], scores[first, i] + _NEGLIGIBLE
    if finite and directions.shape[0]:
        for k in range(0, K, 2):
            above: int = above_along(gap, directions, k, shift, height, least)  # type: ignore[call-arg]
            alive[k] = above & 1
            if k + 1 < K:
                alive[k + 1] = above & 2
    else:
        alive[:] = True
    alive[first] = True
    for k in range(K):
        if k == first or not (alive[k] or wanted[k]):
            continue
        for i in range(LANES):
            least[i] = -np.inf if wanted[k] else top[i] + _NEGLIGIBLE
        alive[k] = _score(block, centre[k], lower[k], height[k], least, gap, scores[k])
        if alive[k]:
            for i in range(LANES):
                top[i] = max(top[i], scores[k, i])


@njit(nogil=True, cache=True)
def _add_up(scores, alive, top, total):
    """Sums of exponentials beside the largest."""
    total[:] = 0.0
    for k in range(scores.shape[0]):
        if alive[k]:
            for i in range(LANES):
                beside = scores[k, i] - top[i]
                if beside == 0.0:
                    total[i] += 1.0
                elif beside > _NEGLIGIBLE:
                    total[i] += np.exp(beside)


@njit(nogil=True, cache=True)
def assign_rows(rows, lower, centre, height, labels, lse):  # noqa: D103
    n, K = rows.shape[0], height.shape[0]
    matrices, means, heights = _padded(lower, centre, height)
    block, gap, scores, least, top, total, alive = _room(K, means.shape[1])
    directions, shift, known = np.zeros((heights.shape[0], means.shape[1])), np.zeros(heights.shape[0]), -1
    best, likeliest, wanted, before = np.empty(LANES), np.zeros(LANES, np.int64), np.zeros(K, np.bool_), -1
    for start in range(0, n, LANES):
        m = min(LANES, n - start)
        _load(rows, start, n, block)
        first = likeliest[m - 1]  # neighbours may be alike
        if first == before and first != known:
            point_to(first, means, matrices, directions[:K], shift[:K])
            known = first
        pointed = directions if first == known else directions[:0]
        before = first
        _score_all(block, means, matrices, heights, first, wanted, pointed, shift, gap, least, top, scores, alive)
        best[:], likeliest[:] = -np.inf, 0
        for k in range(K - 1):
            if alive[k]:
                for i in range(LANES):
                    if scores[k, i] > best[i]:
                        best[i], likeliest[i] = scores[k, i], k
        _add_up(scores, alive, top, total)
        for i in range(m):
            labels[start + i] = likeliest[i]
            lse[start + i] = top[i] + (np.log(total[i]) if total[i] != 1.0 else 0.0)


@njit(nogil=True, cache=True)
def gains_apart(rows, n, first, lower, centre, height, share, gains):  # noqa: D103
    K = height.shape[0]
    matrices, means, heights = _padded(lower, centre, height)
    block, gap, scores, least, top, total, alive = _room(K, means.shape[1])
    directions, shift, known = np.zeros((heights.shape[0], means.shape[1])), np.zeros(heights.shape[0]), -1
    wanted, likeliest = np.empty(K, np.bool_), np.zeros(gains.shape[0], np.int64)
    for t in range(gains.shape[0]):
        for k in range(1, K - 1):
            if share[k, t] > share[likeliest[t], t]:
                likeliest[t] = k
    # one component after the other, as directions point away from it
    for t in np.argsort(likeliest, kind="mergesort"):
        constant, value, weight = 0.0, 0.0, 0.0
        for k in range(K):
            wanted[k] = share[k, t] > 0.0
            if wanted[k]:
                constant += share[k, t] * np.log(share[k, t])
        if likeliest[t] != known:
            known = likeliest[t]
            point_to(known, means, matrices, directions[:K], shift[:K])
        for start in range(first[t], first[t + 1], LANES):
            m = min(LANES, first[t + 1] - start)
            _load(rows, start, first[t + 1], block)
            _score_all(
                block, means, matrices, heights, known, wanted, directions, shift, gap, least, top, scores, alive
            )
            _add_up(scores, alive, top, total)
            for i in range(m):
                gain = top[i] + np.log(total[i]) + constant
                for k in range(K):
                    if wanted[k]:
                        gain -= share[k, t] * scores[k, i]
                value += n[start + i] * gain
                weight += n[start + i]
        gains[t] = value / weight
