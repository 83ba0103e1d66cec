"""Gaussians with full covariance in few columns, compiled: there a call costs more than what it computes."""

from typing import Any

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import Conjugate, Moments, Whitened
from kfree.families.conjugate.full import NormalWishart, least_pivots
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.kernels import kernels


def is_compiled(family: Conjugate, prior: Any) -> bool:
    """Whether what follows is for such components; beyond some columns LAPACK is faster."""
    return family.second_moments == "full" and prior.mean.shape[1] <= VARIATIONAL.few_columns


def constants(prior: NormalWishart) -> Array:
    """beta, nu and log |B| of a prior."""
    return np.array([prior.beta[0], prior.nu[0], prior.log_det[0]])


def blank(K: int, D: int) -> tuple[Array, Array, Array, Array]:
    """Room for means, scale matrices, roots and logs of determinants."""
    return np.empty((K, D)), np.empty((K, D, D)), np.empty((K, D, D)), np.empty(K)


def record(prior: NormalWishart, mass: Array, found: tuple[Array, Array, Array, Array]) -> NormalWishart:
    """The posteriors of components of these sizes."""
    mean, scale, root, log_det = found
    return NormalWishart(mean, prior.beta + mass, prior.nu + mass, scale, root, log_det)


def with_grain(second: Array, grain: Array | None) -> Array:
    """Packed covariances of nodes with what recording the entries of each column left open."""
    if grain is None:
        return second
    D = grain.size
    own = np.zeros(second.shape[1])
    own[np.cumsum([0, *range(D, 1, -1)])] = grain
    return second + own


def posterior(prior: NormalWishart, sums: Moments) -> NormalWishart | None:
    """As the family's; None if rounding has made a scale matrix indefinite, or nearly so."""
    found = blank(*sums.first.shape)
    if not kernels().wishart_posterior(*sums, prior.mean[0], prior.scale[0], float(prior.beta[0]), *found):
        return None
    _, _, root, _ = found
    if (np.diagonal(root, axis1=1, axis2=2) ** 2 * least_pivots(prior) > 1).any():
        return None
    return record(prior, sums.mass, found)


def form(params: NormalWishart) -> Whitened:
    """As the family's."""
    scaled, offset = np.empty_like(params.root), np.empty_like(params.log_det)
    kernels().wishart_form(params.beta, params.nu, params.root, params.log_det, scaled, offset)
    return Whitened(scaled, params.mean, offset)


def view(params: NormalWishart, prior: NormalWishart, sticks: Array, weights: Array) -> tuple[Whitened, Array, float]:
    """Forms of components and, last, of the prior; expected log-weights; the divergence of all from their priors."""
    T, D = params.mean.shape
    scaled, offset, expected = np.empty((T + 1, D, D)), np.empty(T + 1), np.empty(T + 1)
    mean, beta, nu, _, root, log_det = params
    own = (prior.mean[0], prior.scale[0], prior.root, constants(prior))
    value = kernels().wishart_view(mean, beta, nu, root, log_det, *own, sticks, weights, scaled, offset, expected)
    return Whitened(scaled, np.concatenate([mean, prior.mean]), offset), expected, value


def divergence(params: NormalWishart, prior: NormalWishart) -> Array:
    """As the family's."""
    value = np.empty_like(params.log_det)
    mean, beta, nu, _, root, log_det = params
    own = (prior.mean[0], prior.scale[0], constants(prior))
    kernels().wishart_divergence(mean, beta, nu, root, log_det, *own, value)
    return value
