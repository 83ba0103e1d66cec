"""Gaussians with full covariance in few columns, compiled: there a call costs more than what it computes."""

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import Conjugate, Sums, Whitened
from kfree.families.conjugate.full import FullGaussian, NormalWishart
from kfree.kernels import kernels

# Columns beyond which LAPACK is faster.
_COLUMNS = 64


def is_quick(family: Conjugate, params: NormalWishart) -> bool:
    """Whether what follows is for such components."""
    return isinstance(family, FullGaussian) and params.mean.shape[1] <= _COLUMNS


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


def posterior(prior: NormalWishart, sums: Sums) -> NormalWishart | None:
    """As the family's; None if rounding has made a scale matrix indefinite."""
    found = blank(*sums.first.shape)
    if not kernels().wishart_posterior(*sums, prior.mean[0], prior.scale[0], float(prior.beta[0]), *found):
        return None
    return record(prior, sums.mass, found)


def form(*records: NormalWishart) -> Whitened:
    """As the family's, of the components of all records."""
    sizes, D = [record.nu.size for record in records], records[0].mean.shape[1]
    mean = np.concatenate([record.mean for record in records])
    scaled, offset, start = np.empty((len(mean), D, D)), np.empty(len(mean)), 0
    for params, size in zip(records, sizes):
        own = slice(start, start + size)
        kernels().wishart_form(params.beta, params.nu, params.root, params.log_det, scaled[own], offset[own])
        start += size
    return Whitened(scaled, mean, offset)


def divergence(params: NormalWishart, prior: NormalWishart) -> Array:
    """As the family's."""
    value = np.empty_like(params.log_det)
    mean, beta, nu, _, root, log_det = params
    own = (prior.mean[0], prior.scale[0], constants(prior))
    kernels().wishart_divergence(mean, beta, nu, root, log_det, *own, value)
    return value
