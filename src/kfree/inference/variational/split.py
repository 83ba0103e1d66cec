"""Splitting a component in two: its rows are shared between the children, all other responsibilities are held."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.conjugate import Sums, Whitened, join, take
from kfree.inference.variational.mixture import EMPTY, Mixture, Setting, arranged
from kfree.inference.variational.partition import Partition, Ray
from kfree.inference.variational.sweep import Swept, evidence, members, sums_of, sweep
from kfree.rows import Tied
from kfree.structures import by_size

# Shares of a component below this take no part when its split is tried.
_PART = 1e-3
# Updates of the children before a split is judged.
_UPDATES = 10
# Products until the leading direction is taken as found.
_PRODUCTS = 30


class Proposal(NamedTuple):
    """A component split in two."""

    gain: float  # fall of the free energy, other responsibilities held; -inf if it cannot be split
    mass: float  # of the component when this was tried
    params: Any = None  # record of the two children
    sizes: Any = None  # (2,) weights of the children
    token: Any = None  # what the partition was refined by


def propose(
    setting: Setting, partition: Partition, mixture: Mixture, swept: Swept, wanted: Array, enough: float
) -> list[Proposal]:
    """Try to split each of the wanted components. Updates stop when they gain less than ``enough``."""
    view = mixture.view(setting)
    found = members(partition.tied, view.form, view.log_weight, wanted, _PART)
    proposals = []
    for c, (index, share) in zip(wanted, found):
        sizes = np.append(swept.sums.mass, swept.tail)
        proposals.append(_try(setting, partition, take(mixture.params, [c]), int(c), sizes, index, share, enough))
    return proposals


def _try(setting, partition, params, c, sizes, index, share, enough) -> Proposal:
    mass = float(sizes[c])
    part = partition.tied.take(index)
    if index.size == 0:
        return Proposal(-np.inf, mass)
    ray = find_ray(setting, params, part, share)
    part, share, token = partition.refined(index, part, share, ray)
    part = part._replace(n=part.n * share)
    side = project(setting, params, part, ray) > 0
    if not side.any() or side.all() or part.total <= EMPTY:
        return Proposal(-np.inf, mass)
    pair = setting.family.form(take(params, [0, 0]))
    sums = sums_of(part, pair, np.stack([side, ~side]).astype(np.float64))
    whole = whole_cost(setting, part, params, np.delete(sizes, c))
    children = _update(setting, part, sums, np.delete(sizes, c), enough, whole)
    return Proposal(whole - children.cost, mass, children.params, children.sizes, token)


class _Children(NamedTuple):
    params: Any
    sizes: Array
    cost: float


def whole_cost(setting: Setting, part: Tied, params: Any, others: Array) -> float:
    """Free energy of the part as one component beside the others (sizes, the tail's last), up to what is held."""
    form = setting.family.form(params)
    sums = sums_of(part, form, np.ones((1, part.size)))
    best = setting.family.posterior(setting.prior, sums)
    own = float(setting.family.divergence(best, setting.prior)[0])
    fit = evidence(part, setting.family.form(best), np.zeros(1))
    sizes = np.append(others[:-1], part.total)
    return own - fit + setting.weights.cost(np.append(sizes[by_size(sizes)], others[-1]))


def _update(setting: Setting, part: Tied, sums: Sums, others: Array, enough: float, whole: float) -> _Children:
    """Coordinate updates of two components that share the part; cost is as in ``whole_cost``."""
    family, last, best = setting.family, np.inf, None
    for left in range(_UPDATES - 1, -1, -1):
        params = family.posterior(setting.prior, sums)
        sizes = np.concatenate([others[:-1], sums.mass])
        order = by_size(sizes)
        arranged_sizes = np.append(sizes[order], others[-1])
        sticks = setting.weights.posterior(arranged_sizes)
        expected = setting.weights.expected_log(sticks)
        place = np.argsort(order)[-2:]
        swept = sweep(part, family.form(params), expected[place], 2)
        held = arranged_sizes @ expected - sums.mass @ expected[place]
        cost = setting.weights.divergence(sticks) + float(family.divergence(params, setting.prior).sum())
        cost -= swept.evidence + float(held)
        if best is None or cost < best.cost:
            best = _Children(params, sums.mass, cost)
        # at this pace the updates that are left would not make it pay
        hopeless = cost - whole > left * (last - cost)
        if not last - cost > enough or hopeless or swept.sums.mass.min() <= EMPTY:
            break
        last, sums = cost, swept.sums
    assert best is not None
    return best


def split_mixture(
    setting: Setting, mixture: Mixture, swept: Swept, c: int, proposal: Proposal
) -> tuple[Mixture, Array]:
    """The mixture with component c replaced by its children, largest first; where components came from (new: -1)."""
    keep = np.delete(np.arange(mixture.size), c)
    params = join([take(mixture.params, keep), proposal.params])
    sizes = np.concatenate([swept.sums.mass[keep], proposal.sizes])
    split, order = arranged(setting, params, sizes, swept.tail)
    return split, np.concatenate([keep, [-1, -1]])[order]


def find_ray(setting: Setting, params: Any, part: Tied, share: Array) -> Ray:
    """The leading direction of a component's rows and their centre."""
    form = setting.family.form(params)
    if isinstance(form, Whitened):
        vectors = np.linalg.eigh(params.scale[0])[1]
        return Ray(vectors[:, -1], form.mean[0])
    weight = part.n * share
    rows = setting.family.standardised(part.mean, setting.family.means(params)[0])
    centre = np.asarray(rows.T @ weight).ravel() / weight.sum()
    return Ray(_leading(rows, weight, centre, part.second), centre)


def project(setting: Setting, params: Any, part: Tied, ray: Ray) -> Array:
    """Coordinates of rows along a ray, (R,)."""
    rows = setting.family.standardised(part.mean, setting.family.means(params)[0])
    if sp.issparse(rows):
        return np.asarray(rows @ ray.direction) - ray.centre @ ray.direction
    return (rows - ray.centre) @ ray.direction


def _leading(rows: Any, weight: Array, centre: Array, second: Array | None) -> Array:
    """Leading eigenvector of the weighted covariance of rows, by products."""
    p = centre.shape[0]
    own = np.zeros(p)
    if second is not None:
        own = np.broadcast_to((weight @ second) / (p if second.ndim == 1 else 1), (p,))
    square = rows.multiply(rows) if sp.issparse(rows) else rows * rows
    spread = np.maximum(np.asarray(square.T @ weight).ravel() - weight.sum() * centre**2, 0.0) + own
    # a fixed start that no symmetry of the columns is likely to make orthogonal to the answer
    vector = np.sqrt(spread) * np.random.default_rng(0).uniform(0.5, 1.0, p) * np.where(np.arange(p) % 2, 1.0, -1.0)
    for _ in range(_PRODUCTS):
        length = np.sqrt(vector @ vector)
        if not length > 0:
            return np.eye(1, p, int(spread.argmax()))[0]
        vector = vector / length
        along = weight * (np.asarray(rows @ vector).ravel() - centre @ vector)
        after = np.asarray(rows.T @ along).ravel() - centre * along.sum() + own * vector
        if after @ vector >= (1 - 1e-6) * np.sqrt(after @ after):
            return after / np.sqrt(after @ after)
        vector = after
    return vector / max(np.sqrt(vector @ vector), np.finfo(float).tiny)
