"""Why a mixture has so many components, in plain words; every figure is an attribute of the estimator."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.models.sentences import count, listed, percent, shares, sizes, together

# Numbers of clusters whose probabilities are told, and the least probability that is.
_NUMBERS, _LEAST = 3, 0.01


class Grown(NamedTuple):
    """What a variational fit has published."""

    weights: Array  # (T,)
    tail: float
    free_energy: float
    converged: bool
    full: bool  # there were to be no more components


def explain_grown(found: Grown) -> str:
    """A mixture that grew by splits."""
    T = found.weights.size
    if found.full:
        why = "as many as max_components allows."
    elif found.converged:
        which = "it" if T == 1 else "any of them"
        why = f"splitting {which} further does not lower the free energy enough to pay."
    else:
        why = "the best so far; the fit stopped before it was done."
    return together(
        f"{count(T, 'component')}: {why}",
        f"The free energy, which is least for the best mixture, is {found.free_energy:.6g}.",
        shares(found.weights),
        f"{percent(found.tail)} of the weight is left for components that were not seen.",
    )


class Weighed(NamedTuple):
    """What a fit by kernel means has published."""

    weights: Array  # (K,)
    n_candidates: int
    mmd2: float
    gap: float


def explain_weighed(found: Weighed) -> str:
    """A mixture of candidates."""
    K, distance = found.weights.size, np.sqrt(max(found.mmd2, 0.0))
    return together(
        f"{count(K, 'component')}: of {count(found.n_candidates, 'candidate')} these have weight in the mixture that "
        "is closest to the rows.",
        f"Its squared distance from them (mmd2_) is {found.mmd2:.3g}, a distance of {distance:.3g}; 0 would be a "
        "perfect match.",
        f"No other weights of these candidates lower the objective by more than {max(found.gap, 0.0):.1g}.",
        shares(found.weights),
        "Components may overlap: they describe the density, and need not be groups." if K > 1 else "",
    )


class Sampled(NamedTuple):
    """What samples say of a number."""

    number: int  # of the answer
    numbers: Array  # that occur
    probability: Array  # of these
    n_samples: int
    n_chains: int
    converged: bool


def how_sure(found: Sampled, thing: str) -> list[str]:
    """Sentences on how sure a number is."""
    chains = f"{count(found.n_samples, 'sample')} from {count(found.n_chains, 'chain')}"
    own = float(found.probability[found.numbers == found.number].sum())
    others = np.argsort(-found.probability, kind="stable")
    told = [
        f"{percent(float(found.probability[i]))} have {found.numbers[i]}"
        for i in others[: _NUMBERS + 1]
        if found.numbers[i] != found.number and found.probability[i] >= _LEAST
    ][:_NUMBERS]
    sure = f"{percent(own)} of {chains} have this number"
    parts = [f"{count(found.number, thing)}: {sure}{', ' + listed(told) if told else ''}."]
    if not found.converged:
        parts.append("The chains do not agree well yet (see diagnostics_), so take these shares with care.")
    return parts


def explain_sampled(found: Sampled, together_with: Array, mass: Array) -> str:
    """A posterior of partitions: ``together_with`` (n,) tells how surely rows are with their clusters."""
    return together(
        *how_sure(found, "cluster"),
        f"A row is with the others of its cluster with probability {together_with.mean():.2f} on average, the least "
        f"sure row with {together_with.min():.2f}.",
        sizes(mass),
    )
