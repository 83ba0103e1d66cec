"""Wide rows, seen on the axes of centres: a linear image in which surrogates can be made."""

import numpy as np

from kfree.families import Geometry, SquaredEuclidean
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.price_path import PricePath
from kfree.inference.clusters.how_many.subsample import Pilot, part_of, pilot_of
from kfree.inference.content import uniform
from kfree.inference.loop import Budget

_HALVES = 4_000_000  # a stream of random numbers


def on_axes(pilot: Pilot, half: bool, budget: Budget) -> Pilot | None:
    """Rows of a half on the principal axes of the centres of the other half, with squared distances.

    For centres mu_k with natural parameters theta_k, relative to those of all rows, G = <mu_k, theta_l> = V L V' and
    z(x) = <x, theta_l> V L^(-1/2): for Gaussian rows the projection on the span of the centres, for every family a
    linear map. Halves, as rows are near to centres that were fitted on them. None if there is only one centre.
    """
    first = (uniform(pilot.ticket, _HALVES) < 0.5) == half
    family, anchor = pilot.table.geometry.family, pilot.table.geometry.anchor
    if not family.translates and family.smoothable:  # a heavy prior would hide the axes
        light = Geometry(family, anchor, HOW_MANY.smoothing, anchor)
        pilot = pilot._replace(table=pilot.table._replace(geometry=light), charge=0.0)
    path = PricePath(part_of(pilot, np.flatnonzero(first)), budget, HOW_MANY.axes).trace()
    geometry, mean = pilot.table.geometry, path[max(path.solutions)].mean
    theta = geometry.affine(mean).coef
    gram = (mean - geometry.anchor) @ theta.T
    value, vector = np.linalg.eigh((gram + gram.T) / 2)
    held = value > 1e-6 * value.max(initial=0.0)
    rest = np.flatnonzero(~first)
    if not held.any() or not rest.size:
        return None
    z = np.asarray(pilot.stats[rest] @ theta.T) - geometry.anchor @ theta.T
    z = z @ (vector[:, held] / np.sqrt(value[held]))
    flat = Geometry(SquaredEuclidean(), np.zeros(z.shape[1]))
    return pilot_of(z, pilot.table.rows.weight[rest], pilot.ticket[rest], flat)
