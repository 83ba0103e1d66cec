"""Nodes that stand for many rows under Gaussians with full covariance; covariances are packed upper triangles."""

import numpy as np


def half_precisions(root, packed):
    """What a packed covariance is multiplied with to give half its trace with root root'; fills ``packed`` (K, ...)."""
    i, j = np.triu_indices(root.shape[1])
    precision = root @ root.transpose(0, 2, 1)
    packed[:] = precision[:, i, j] * np.where(i == j, 0.5, 1.0)


def node_scores(mean, second, root, packed, centre, offset, scores):
    """``-1/2 |(mean_i - centre_k)' root_k|^2 - <second_i, packed_k> - offset_k``; roots are upper triangles."""
    for k in range(offset.shape[0]):
        gap = (mean - centre[k]) @ root[k]
        scores[:, k] = -0.5 * (gap * gap).sum(axis=1) - second @ packed[k] - offset[k]


def node_sums(mean, second, n, resp, centre, mass, first, packed):
    """Add the sums of w, w (x - centre_k) and w (x - centre_k)(x - centre_k)', packed, over what nodes stand for."""
    i, j = np.triu_indices(mean.shape[1])
    for k in range(centre.shape[0]):
        w, gap = n * resp[k], mean - centre[k]
        mass[k] += w.sum()
        first[k] += w @ gap
        packed[k] += w @ second + ((gap * w[:, None]).T @ gap)[i, j]
