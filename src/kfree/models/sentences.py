"""Numbers and lists in sentences: what all explanations share."""

from collections.abc import Iterable

from kfree.families import Array

# Things whose sizes are told one by one.
_TOLD = 6


def count(number: int, thing: str) -> str:
    """ "1 cluster", "3 clusters"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def listed(words: Iterable[object], last: str = "and") -> str:
    """ "2, 3 and 5"."""
    told = [str(word) for word in words]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} {last} {told[-1]}"


def percent(share: float) -> str:
    """A share as a percentage of up to three digits; never 0 or 100 for what is neither."""
    value = 100 * share
    if 0 < value < 0.1 or 99.9 < value < 100:
        return "below 0.1 %" if value < 1 else "above 99.9 %"
    return f"{value:.3g} %"


def sizes(weights: Array, thing: str = "rows") -> str:
    """A sentence on the weights of clusters; empty for one."""
    told = [f"{weight:.6g}" for weight in weights]
    if len(told) == 1:
        return ""
    if len(told) <= _TOLD:
        return f"They hold {listed(told)} {thing}."
    return f"The largest holds {weights.max():.6g} {thing}, the smallest {weights.min():.6g}."


def shares(weights: Array) -> str:
    """A sentence on the weights of components; empty for one."""
    if weights.size == 1:
        return ""
    if weights.size <= _TOLD:
        return f"Their weights are {listed(percent(float(weight)) for weight in weights)}."
    return f"The largest weight is {percent(float(weights.max()))}, the smallest {percent(float(weights.min()))}."


def together(*parts: str) -> str:
    """Sentences in a row, without those that have nothing to say."""
    return " ".join(part for part in parts if part)
