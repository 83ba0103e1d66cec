"""Families with known parameters, by the names users give as ``family=`` and ``covariance=``."""

from kfree.families.points.discrete_points import BitPoints, DocumentPoints
from kfree.families.points.gaussian_points import DiagonalPoints, FullPoints, GaussianPoints, SphericalPoints
from kfree.families.points.point_family import Kernel, MovableFamily, PointFamily, Slopes, Spread

#: Families by name and shape of the covariance; "" where there is none.
POINTS: dict[str, dict[str, type[PointFamily]]] = {
    "gaussian": {"full": FullPoints, "diag": DiagonalPoints, "spherical": SphericalPoints},
    "multinomial": {"": DocumentPoints},
    "bernoulli": {"": BitPoints},
}

__all__ = ["POINTS", "GaussianPoints", "Kernel", "MovableFamily", "PointFamily", "Slopes", "Spread"]
