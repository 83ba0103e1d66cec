"""Families: what a cluster is. Add a class, name it here, and every law of the test suite tests it."""

from kfree.families.base import LARGEST, MINUS_INF, Affine, Array, Family, Separable, Summary
from kfree.families.bounded import Bernoulli, Binomial
from kfree.families.counts import KL, NegativeBinomial, Poisson
from kfree.families.gamma import ItakuraSaito
from kfree.families.gaussian import Cosine, Mahalanobis, SquaredEuclidean
from kfree.families.geometry import Geometry

#: Families by the name users give as ``divergence=``.
FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (
        SquaredEuclidean,
        Mahalanobis,
        KL,
        Poisson,
        Bernoulli,
        Binomial,
        ItakuraSaito,
        NegativeBinomial,
        Cosine,
    )
}

__all__ = [
    "FAMILIES",
    "KL",
    "LARGEST",
    "MINUS_INF",
    "Affine",
    "Array",
    "Bernoulli",
    "Binomial",
    "Cosine",
    "Family",
    "Geometry",
    "ItakuraSaito",
    "Mahalanobis",
    "NegativeBinomial",
    "Poisson",
    "Separable",
    "SquaredEuclidean",
    "Summary",
    "make_family",
]


def make_family(divergence: "str | Family") -> Family:
    """The family of a name, or the instance itself."""
    if isinstance(divergence, Family):
        return divergence
    if isinstance(divergence, type) and issubclass(divergence, Family):
        raise TypeError(f"divergence got the class {divergence.__name__}; pass an instance, {divergence.__name__}().")
    if not isinstance(divergence, str):
        raise TypeError(
            f"divergence must be a name or a Family instance, got {type(divergence).__name__}. "
            f"Names: {', '.join(sorted(FAMILIES))}."
        )
    if divergence not in FAMILIES:
        raise ValueError(f"Unknown divergence {divergence!r}. Choose one of {', '.join(sorted(FAMILIES))}.")
    return FAMILIES[divergence]()
