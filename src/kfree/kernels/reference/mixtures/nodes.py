"""Nodes that stand for many rows under Gaussians with full covariance; covariances are packed upper triangles."""

import numpy as np

from kfree.kernels.reference.mixtures.soft_assignment import soften
from kfree.kernels.reference.mixtures.wishart import (
    best_sticks,
    stick_terms,
    wishart_divergence,
    wishart_form,
    wishart_posterior,
)


def half_precisions(root, lower, packed):
    """What a packed covariance is multiplied with to give half its trace with root root', and the transposed roots;
    fills ``lower`` (K, D, D) and ``packed`` (K, ...)."""
    i, j = np.triu_indices(root.shape[1])
    lower[:] = root.transpose(0, 2, 1)
    packed[:] = (root @ lower)[:, i, j] * np.where(i == j, 0.5, 1.0)


def tell_apart(lower, centre, directions, shift):
    """The direction, in whitened coordinates of component k, in which rows of component j are far from it: along it
    the distance of a row from k is ``<directions[j, k], row - centre[j]> + shift[j, k]``, and never more than it is."""
    gap = np.einsum("ked,jkd->jke", lower, centre[:, None] - centre)
    shift[:] = np.sqrt((gap * gap).sum(axis=2))
    gap /= np.where(shift > 0, shift, 1.0)[:, :, None]
    directions[:] = np.einsum("jke,ked->jkd", gap, lower)


def node_scores(mean, second, lower, packed, centre, offset, scores):
    """``-1/2 |lower_k (mean_i - centre_k)|^2 - <second_i, packed_k> - offset_k``; lower triangles."""
    for k in range(offset.shape[0]):
        gap = (mean - centre[k]) @ lower[k].T
        scores[:, k] = -0.5 * (gap * gap).sum(axis=1) - second @ packed[k] - offset[k]


def node_shares(mean, second, lower, packed, centre, offset, log_weight, directions, shift, resp, lse):
    """The scores of nodes, softened. To save time directions may be given: the distance of a row from component k, in
    whitened coordinates, is at least ``<directions[j, k], row - centre[j]> + shift[j, k]``, for any j."""
    scores = np.empty((mean.shape[0], offset.shape[0]))
    node_scores(mean, second, lower, packed, centre, offset, scores)
    soften(scores, log_weight, resp, lse)


def node_sums(mean, second, n, resp, centre, mass, first, packed):
    """Add the sums of w, w (x - centre_k) and w (x - centre_k)(x - centre_k)', packed, over what nodes stand for."""
    i, j = np.triu_indices(mean.shape[1])
    for k in range(centre.shape[0]):
        w, gap = n * resp[k], mean - centre[k]
        mass[k] += w.sum()
        first[k] += w @ gap
        packed[k] += w @ second + ((gap * w[:, None]).T @ gap)[i, j]


def sweep_nodes(n, mean, second, lower, packed, centre, offset, log_weight, directions, shift, mass, first, sums):
    """Add the sums of the first components (as many as ``mass`` has) under the shares of all; returns the weight of the
    others, and the sum of n lse."""
    K, free = offset.shape[0], mass.shape[0]
    resp, lse = np.empty((K, n.shape[0])), np.empty(n.shape[0])
    node_shares(mean, second, lower, packed, centre, offset, log_weight, directions, shift, resp, lse)
    node_sums(mean, second, n, resp, centre[:free], mass, first, sums)
    return float((resp[free:] @ n).sum()), float(n @ lse)


def unpack(packed, full):
    """Symmetric matrices from their upper triangles."""
    i, j = np.triu_indices(full.shape[1])
    full[:, i, j] = full[:, j, i] = packed


def share_nodes(
    n, mean, second, resp, centre, others, prior_mean, prior_scale, prior, sticks, enough, whole, empty, updates,
    best_mean, best_scale, best_root, best_log_det, best_mass, best_weight,
):  # fmt: skip
    """Coordinate updates of K components that share nodes, beside others (K', the tail the last) whose sizes are held.

    From responsibilities (K, R), which are overwritten, and centres near the means, until the free energy (up to what
    is held and log h) falls by no more than a tenth of ``enough``, or is not on the way below ``whole``. ``prior`` is
    beta, nu, log |B|; ``sticks`` a1, a2. Fills the best posterior; returns its free energy, or NaN if rounding has made
    a scale matrix indefinite.
    """
    K, D = centre.shape
    mean_k, scale, root, log_det = np.empty((K, D)), np.empty((K, D, D)), np.empty((K, D, D)), np.empty(K)
    scaled, lower, half, offset = np.empty((K, D, D)), np.empty((K, D, D)), np.empty((K, second.shape[1])), np.empty(K)
    own, lse, full, about = np.empty(K), np.empty(n.shape[0]), np.empty((K, D, D)), centre
    best, last, fall = np.inf, np.inf, np.inf
    for left in range(updates - 1, -1, -1):
        mass, first, packed = np.zeros(K), np.zeros((K, D)), np.zeros((K, second.shape[1]))
        node_sums(mean, second, n, resp, about, mass, first, packed)
        if last < np.inf and mass.min() <= empty:
            break
        unpack(packed, full)
        if not wishart_posterior(
            mass, first, full, about, prior_mean, prior_scale, prior[0], mean_k, scale, root, log_det
        ):
            return np.nan
        sizes = np.concatenate([others[:-1], mass])
        order, expected = np.argsort(-sizes, kind="stable"), np.empty(sizes.size + 1)
        arranged = np.append(sizes[order], others[-1])
        broken = np.empty((arranged.size - 1, 2))
        best_sticks(arranged, sticks[0], sticks[1], broken)
        cost = stick_terms(broken, sticks[0], sticks[1], expected)
        log_weight = expected[np.argsort(order)[-K:]]
        beta, nu = prior[0] + mass, prior[1] + mass
        wishart_form(beta, nu, root, log_det, scaled, offset)
        half_precisions(scaled, lower, half)
        node_shares(mean, second, lower, half, mean_k, offset, log_weight, None, None, resp, lse)
        wishart_divergence(mean_k, beta, nu, root, log_det, prior_mean, prior_scale, prior, own)
        cost += own.sum() - n @ lse - (arranged @ expected - mass @ log_weight)
        if cost < best:
            best, best_mean[:], best_scale[:], best_root[:] = cost, mean_k, scale, root
            best_log_det[:], best_mass[:], best_weight[:] = log_det, mass, log_weight
        before, fall = fall, last - cost
        slowing = min(1.0, fall / before) if before < np.inf else 1.0
        if left == 0 or not fall > enough / 10 or cost - whole > left * fall * slowing:
            break
        about, last = mean_k.copy(), cost
    return best
