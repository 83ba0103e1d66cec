"""Why there are so many topics, in plain words; figures are attributes of the estimator, and what a merge costs."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.topics.randomness_test import Structure
from kfree.inference.topics.topic_numbers import TOPICS

# Topics whose documents are told one by one.
_TOLD = 6


class NextMerge(NamedTuple):
    """The two topics that would be merged next."""

    one: int
    two: int
    price: float  # of a topic, from which on the merge lowers the objective


class TopicsToTell(NamedTuple):
    """What a fit has published."""

    names: Array  # (K,)
    documents: Array  # (K,) documents whose main topic it is
    lam_global: float
    merge: NextMerge | None  # None if there is one topic
    structure: Structure | None
    n_found: int  # topics of the fit, before any merge
    asked: int | None  # how many topics the user wanted
    chosen: bool  # whether the price was chosen from the number of tokens


def explain(told: TopicsToTell) -> str:
    """Two to five sentences."""
    return " ".join(part for part in (_how_many(told), _coarser(told), _structure(told), _documents(told)) if part)


def _how_many(told: TopicsToTell) -> str:
    """A sentence on the number, and the price it belongs to."""
    K = len(told.names)
    if told.n_found != K:
        return f"{_topics(K)}, merged from the {told.n_found} of the fit."
    if told.asked is not None:
        return f"{_topics(K)}, as asked for."
    price = f"lam_global = {told.lam_global:.4g} nats"
    if told.chosen:
        price += f" ({TOPICS.global_price:g} times the root of the number of tokens)"
    return f"{_topics(K)}: each pays for itself at a price of {price}."


def _coarser(told: TopicsToTell) -> str:
    """A sentence on what would be merged next."""
    if told.merge is None:
        return ""
    one, two = (f'"{told.names[k]}"' for k in (told.merge.one, told.merge.two))
    return f"Most alike are {one} and {two}: merging them would pay from a price of {told.merge.price:.4g} on."


def _structure(told: TopicsToTell) -> str:
    """A sentence on whether there is anything to find."""
    if told.structure is None:
        return ""
    strength, chance, found = told.structure
    against = f"(strength {strength:.3g}; the same words dealt at random have {chance:.3g})"
    if found:
        return f"The documents differ more than by chance {against}."
    return f"The documents differ no more than by chance {against}: there may be nothing to find."


def _documents(told: TopicsToTell) -> str:
    """A sentence on the documents of the topics."""
    numbers = [f"{number:.6g}" for number in told.documents]
    if len(numbers) == 1:
        return ""
    if len(numbers) <= _TOLD:
        return f"They are the main topics of {', '.join(numbers[:-1])} and {numbers[-1]} documents."
    most, least = int(np.argmax(told.documents)), int(np.argmin(told.documents))
    return (
        f'"{told.names[most]}" is the main topic of most documents ({numbers[most]}), "{told.names[least]}" of fewest '
        f"({numbers[least]})."
    )


def _topics(K: int) -> str:
    return "1 topic" if K == 1 else f"{K} topics"
