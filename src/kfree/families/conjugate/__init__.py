"""Families with conjugate priors, by the name users give as ``family=``."""

from kfree.families.components import Form, Linear, Weighted, Whitened, join, take
from kfree.families.conjugate.anchored import AnchoredMultinomial, AnchoredPoisson
from kfree.families.conjugate.conjugate_family import Conjugate, Facts, Moments
from kfree.families.conjugate.diagonal import DiagonalGaussian, SphericalGaussian
from kfree.families.conjugate.discrete import BernoulliBits, Multinomial, PoissonCounts
from kfree.families.conjugate.full import FullGaussian
from kfree.families.conjugate.known import KnownGaussian, PositiveRows

CONJUGATE: dict[str, type[Conjugate]] = {
    family.name: family
    for family in (FullGaussian, DiagonalGaussian, SphericalGaussian, Multinomial, PoissonCounts, BernoulliBits)
}

#: Families of samplers: these, and two more.
SAMPLED: dict[str, type[Conjugate]] = {**CONJUGATE, KnownGaussian.name: KnownGaussian, PositiveRows.name: PositiveRows}

#: Families of counts for rows of large ones, by the same names; each is made of the mean of the rows.
ANCHORED: dict[str, type[AnchoredPoisson] | type[AnchoredMultinomial]] = {
    family.name: family for family in (AnchoredPoisson, AnchoredMultinomial)
}

__all__ = [
    "ANCHORED",
    "CONJUGATE",
    "SAMPLED",
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
