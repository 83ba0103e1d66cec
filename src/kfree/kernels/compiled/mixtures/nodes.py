"""Nodes that stand for many rows under Gaussians with full covariance; covariances are packed upper triangles."""

import math

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.mixtures.whitened import point_to
from kfree.kernels.compiled.mixtures.wishart import (
    best_sticks,
    stick_terms,
    wishart_divergence,
    wishart_form,
    wishart_posterior,
)

# exp of this is below 1e-16: nothing next to 1.
_NEGLIGIBLE = -37.0
# Whitened coordinates by which the likeliest component is guessed.
_FEW = 4


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _product(a, b):
    total = 0.0
    for q in range(a.shape[0]):
        total += a[q] * b[q]
    return total


@njit(nogil=True, cache=True)
def half_precisions(root, lower, packed):  # noqa: D103
    D = root.shape[1]
    for k in range(root.shape[0]):
        place = 0
        for d in range(D):
            for e in range(d, D):
                value = _product(root[k, d, e:], root[k, e, e:])  # rows of an upper triangle
                packed[k, place] = 0.5 * value if d == e else value
                place += 1
            for e in range(D):
                lower[k, e, d] = root[k, d, e]


@njit(nogil=True, cache=True)
def tell_apart(lower, centre, directions, shift):  # noqa: D103
    for j in range(centre.shape[0]):
        point_to(j, centre, lower, directions[j], shift[j])


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _lowered(value, row, centre, lower, few, least, gap):
    """A score less half the squares of the first few coordinates of lower (row - centre); -inf once it is too low."""
    for e in range(few):
        gap[e] = row[e] - centre[e]
        along = 0.0
        for d in range(e + 1):
            along += lower[e, d] * gap[d]
        value -= 0.5 * along * along
        if value <= least:
            return -np.inf
    return value


@njit(nogil=True, cache=True)
def node_scores(mean, second, lower, packed, centre, offset, scores):  # noqa: D103
    D, gap = mean.shape[1], np.empty(mean.shape[1])
    for i in range(mean.shape[0]):
        for k in range(offset.shape[0]):
            value = _lowered(-offset[k], mean[i], centre[k], lower[k], D, -np.inf, gap)
            scores[i, k] = value - _product(second[i], packed[k])


@njit(nogil=True, cache=True)
def _likeliest(row, lower, centre, height, gap):
    """A guess at the component with the highest score, from a few coordinates."""
    likeliest, top, few = 0, -np.inf, min(row.shape[0], _FEW)
    for k in range(height.shape[0]):
        value = _lowered(height[k], row, centre[k], lower[k], few, top, gap)
        if value > top:
            likeliest, top = k, value
    return likeliest


@njit(nogil=True, cache=True)
def _scores_of_few(row, own, lower, packed, centre, height, gap, scores):
    """Scores of a node under the components that are not negligible, -inf for the others: the likeliest first."""
    k, top = _likeliest(row, lower, centre, height, gap), -np.inf
    likeliest = k
    for step in range(height.shape[0]):
        value = _lowered(height[k], row, centre[k], lower[k], row.shape[0], top + _NEGLIGIBLE, gap)
        scores[k] = value - _product(own, packed[k]) if value > -np.inf else value
        top = max(top, scores[k])
        k = step + 1 if step >= likeliest else step
    return top


@njit(nogil=True, cache=True)
def _scores_of_many(row, own, lower, packed, centre, height, directions, shift, first, gap, away, open_, scores):
    """The same for many components: most are ruled out along the direction from the best one so far to theirs."""
    K, D = centre.shape
    top, best, k, left = -np.inf, -1, first, K
    for c in range(K):
        open_[c], scores[c] = c, height[c]
    while True:
        value = _lowered(height[k], row, centre[k], lower[k], D, top + _NEGLIGIBLE, gap)
        scores[k] = value - _product(own, packed[k]) if value > -np.inf else value
        moved = scores[k] > top
        if moved:
            top, best = scores[k], k
            for d in range(D):
                away[d] = row[d] - centre[k, d]
        # what is left: not k, and not what cannot matter beside the best; scores of these are bounds
        kept, highest, following = 0, -np.inf, -1
        for place in range(left):
            c = open_[place]
            if c == k:
                continue
            if moved:
                along = _product(directions[best, c], away) + shift[best, c]
                scores[c] = min(scores[c], height[c] - 0.5 * along * along)
            if scores[c] <= top + _NEGLIGIBLE:
                scores[c] = -np.inf
                continue
            open_[kept] = c
            kept += 1
            if scores[c] > highest:
                highest, following = scores[c], c
        if kept == 0:
            return top, max(best, 0)
        k, left = following, kept


@njit(nogil=True, cache=True)
def node_shares(mean, second, lower, packed, centre, offset, log_weight, directions, shift, resp, lse):  # noqa: D103
    D, K = mean.shape[1], offset.shape[0]
    row, gap, away, open_, best = np.empty(K), np.empty(D), np.empty(D), np.empty(K, np.int64), 0
    height = log_weight - offset
    for i in range(mean.shape[0]):
        if directions.shape[0]:
            top, best = _scores_of_many(
                mean[i], second[i], lower, packed, centre, height, directions, shift, best, gap, away, open_, row
            )
        else:
            top = _scores_of_few(mean[i], second[i], lower, packed, centre, height, gap, row)
        total = 0.0
        for k in range(K):
            row[k] = math.exp(row[k] - top) if row[k] - top > _NEGLIGIBLE else 0.0
            total += row[k]
        lse[i] = top + math.log(total)
        for k in range(K):
            resp[k, i] = row[k] / total


@njit(nogil=True, cache=True, fastmath={"contract"})
def node_sums(mean, second, n, resp, centre, mass, first, packed):  # noqa: D103
    D = mean.shape[1]
    gap = np.empty(D)
    for k in range(centre.shape[0]):
        for i in range(mean.shape[0]):
            w = n[i] * resp[k, i]
            if not w > 0.0:
                continue
            mass[k] += w
            for d in range(D):
                gap[d] = mean[i, d] - centre[k, d]
                first[k, d] += w * gap[d]
            start = 0
            for d in range(D):
                scaled = w * gap[d]
                for e in range(D - d):
                    packed[k, start + e] += w * second[i, start + e] + scaled * gap[d + e]
                start += D - d


@njit(nogil=True, cache=True)
def sweep_nodes(  # noqa: D103
    n, mean, second, lower, packed, centre, offset, log_weight, directions, shift, mass, first, sums
):
    K, free = offset.shape[0], mass.shape[0]
    resp, lse, tail = np.empty((K, n.shape[0])), np.empty(n.shape[0]), 0.0
    node_shares(mean, second, lower, packed, centre, offset, log_weight, directions, shift, resp, lse)
    node_sums(mean, second, n, resp, centre[:free], mass, first, sums)
    for k in range(free, K):
        tail += (resp[k] * n).sum()
    return tail, (n * lse).sum()


@njit(nogil=True, cache=True)
def unpack(packed, full):  # noqa: D103
    D = full.shape[1]
    for k in range(full.shape[0]):
        place = 0
        for d in range(D):
            for e in range(d, D):
                full[k, d, e] = full[k, e, d] = packed[k, place]
                place += 1


@njit(nogil=True, cache=True)
def _log_weights(mass, others, sticks, log_weight):
    """Log-weights of components beside others, the tail the last of these; and what the sizes of all cost in F, but for
    the expected log-weights of these components."""
    K, T = mass.shape[0], mass.shape[0] + others.shape[0] - 1
    sizes = np.concatenate((others[:-1], mass))
    order = np.argsort(-sizes, kind="mergesort")
    arranged, expected = np.empty(T + 1), np.empty(T + 1)
    for i in range(T):
        arranged[i] = sizes[order[i]]
    arranged[T] = others[-1]
    broken = np.empty((T, 2))
    best_sticks(arranged, sticks[0], sticks[1], broken)
    cost = stick_terms(broken, sticks[0], sticks[1], expected)
    cost -= arranged[T] * expected[T]
    for i in range(T):
        if order[i] >= T - K:
            log_weight[order[i] - T + K] = expected[i]
        else:
            cost -= arranged[i] * expected[i]
    return cost


@njit(nogil=True, cache=True)
def share_nodes(  # noqa: D103
    n, mean, second, resp, centre, others, prior_mean, prior_scale, prior, sticks, enough, whole, empty, updates,
    best_mean, best_scale, best_root, best_log_det, best_mass, best_weight,
):  # fmt: skip
    K, D = centre.shape
    mass, first, packed = np.zeros(K), np.zeros((K, D)), np.zeros((K, second.shape[1]))
    full, scale, root, log_det = np.empty((K, D, D)), np.empty((K, D, D)), np.empty((K, D, D)), np.empty(K)
    scaled, lower, half, offset = np.empty((K, D, D)), np.empty((K, D, D)), np.empty(packed.shape), np.empty(K)
    log_weight, own, lse = np.empty(K), np.empty(K), np.empty(n.shape[0])
    about, location = centre.copy(), np.empty((K, D))
    nowhere, unshifted = np.empty((0, 0, 0)), np.empty((0, 0))
    best, last, fall = np.inf, np.inf, np.inf
    node_sums(mean, second, n, resp, about, mass, first, packed)
    for left in range(updates - 1, -1, -1):
        unpack(packed, full)
        if not wishart_posterior(
            mass, first, full, about, prior_mean, prior_scale, prior[0], location, scale, root, log_det
        ):
            return np.nan
        cost = _log_weights(mass, others, sticks, log_weight)
        beta, nu = prior[0] + mass, prior[1] + mass
        wishart_form(beta, nu, root, log_det, scaled, offset)
        half_precisions(scaled, lower, half)
        node_shares(mean, second, lower, half, location, offset, log_weight, nowhere, unshifted, resp, lse)
        wishart_divergence(location, beta, nu, root, log_det, prior_mean, prior_scale, prior, own)
        cost += own.sum() - (n * lse).sum()
        if cost < best:
            best, best_mean[:], best_scale[:], best_root[:] = cost, location, scale, root
            best_log_det[:], best_mass[:], best_weight[:] = log_det, mass, log_weight
        before, fall = fall, last - cost
        slowing = min(1.0, fall / before) if before < np.inf else 1.0
        if left == 0 or not fall > enough / 10 or cost - whole > left * fall * slowing:
            break
        about[:], last = location, cost
        mass[:], first[:], packed[:] = 0.0, 0.0, 0.0
        node_sums(mean, second, n, resp, about, mass, first, packed)
        if mass.min() <= empty:
            break
    return best
