"""What a notebook shows of a fitted model, above scikit-learn's diagram: what was found, and how large each part is."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from kfree.families import Array

# Parts that have a bar of their own, and sentences that are shown of an explanation.
_BARS, _SENTENCES = 12, 2
_STYLE = "font-family:sans-serif;font-size:0.9em;line-height:1.5;max-width:45em;margin:0.5em 0"
_BAR = "height:0.7em;background:currentColor;opacity:0.55;border-radius:2px;min-width:1px"
_CELL = "border:0;padding:0 0.6em 0 0;text-align:{}"


class Parts(NamedTuple):
    """What a model consists of."""

    noun: str  # what the parts are called
    size: Array  # (K,) weight or count of each
    whole: float  # what a size of 100 % would be
    names: Sequence[str] = ()  # K names; numbers if there are none


def card(title: str, parts: Parts, explanation: str = "") -> str:
    """A small piece of HTML without scripts or links; whatever comes from data is escaped."""
    noun = parts.noun[:-1] if len(parts.size) == 1 else parts.noun
    words = escape(_first_sentences(explanation or f"{len(parts.size)} {noun}."))
    more = len(parts.size) - _BARS
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    bars = f'<table style="border-collapse:collapse;font-size:inherit;margin:0.4em 0">{_rows(parts)}</table>'
    return f'<div class="kfree-card" style="{_STYLE}"><b>{escape(title)}</b>: {words}{bars}{rest}</div>'


def _rows(parts: Parts) -> str:
    """A bar for each part, the first few of them; the longest is that of the largest."""
    shares = np.asarray(parts.size, dtype=np.float64)[:_BARS] / (parts.whole or 1.0)
    longest = float(shares.max(initial=0.0)) or 1.0
    return "".join(
        f'<tr style="background:none"><th scope="row" style="{_CELL.format("left")};font-weight:normal">'
        f"{escape(str(parts.names[k]) if len(parts.names) else str(k))}</th>"
        f'<td style="{_CELL.format("left")};width:14em">'
        f'<div style="width:{100 * share / longest:.1f}%;{_BAR}"></div></td>'
        f'<td style="{_CELL.format("right")}">{100 * share:.1f} %</td></tr>'
        for k, share in enumerate(shares)
    )


def _first_sentences(text: str) -> str:
    """The beginning of a text, up to the full stop that ends its last sentence."""
    sentences = text.split(". ")
    head = ". ".join(sentences[:_SENTENCES])
    return head if head.endswith(".") or not head else head + "."
