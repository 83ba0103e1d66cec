"""Families with conjugate priors, by the name users give as ``family=``."""

from kfree.families.conjugate.conjugate_family import (
    Conjugate,
    Facts,
    Form,
    Linear,
    Moments,
    Weighted,
    Whitened,
    join,
    take,
)
from kfree.families.conjugate.diagonal import DiagonalGaussian, SphericalGaussian
from kfree.families.conjugate.discrete import BernoulliBits, Multinomial, PoissonCounts
from kfree.families.conjugate.full import FullGaussian

CONJUGATE: dict[str, type[Conjugate]] = {
    family.name: family
    for family in (FullGaussian, DiagonalGaussian, SphericalGaussian, Multinomial, PoissonCounts, BernoulliBits)
}

__all__ = [
    "CONJUGATE",
    "Conjugate",
    "Facts",
    "Form",
    "Linear",
    "Moments",
    "Weighted",
    "Whitened",
    "join",
    "take",
]
