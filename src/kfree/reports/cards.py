"""Cards: what one cluster, topic or feature is, in a few lines."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.reports.asked import Asked
from kfree.reports.pictures import BORDER, EXAMPLES
from kfree.reports.svg import shade
from kfree.reports.wording import NAME, NOTHING, clean, count, number, percent

#: Columns that are told of a cluster; of these, those that its rows are shown with; its rows.
_COLUMNS, _FIRST, _ROWS = 6, 3, 4
#: Words and documents of a topic, and characters of a text.
_WORDS, _DOCUMENTS, _TEXT = 12, 3, 180
#: A number is rounding beside one that is larger by so much.
_ROUNDING = 1e-12
#: Cards of a page.
MOST = 200


class Mark(NamedTuple):
    """A column or a word, and how much it says."""

    name: str
    bar: int  # percent of the longest, below 0 to the left
    cells: tuple[str, ...]


class Example(NamedTuple):
    """A row."""

    name: str
    cells: tuple[str, ...] = ()  # its entries in the columns of the card
    text: str = ""
    picture: str = ""
    beside: str = ""  # the cluster on the other side of the border


class Card(NamedTuple):
    """One cluster, topic or feature."""

    number: int
    name: str
    shade: str  # class of its colour
    size: str
    share: int  # percent of the largest
    picture: str  # its centre, if rows are pictures
    head: tuple[str, ...]  # what the cells of marks are
    marks: tuple[Mark, ...]
    columns: tuple[str, ...]  # what the cells of examples are
    examples: tuple[Example, ...]
    border: tuple[Example, ...] = ()


def cluster_cards(asked: Asked, profile: Any, thing: str) -> tuple[Card, ...]:
    """Cards of the largest clusters or components, by their profile."""
    biggest = np.argsort(-np.asarray(profile.size), kind="stable")[:MOST]
    return tuple(_cluster_card(asked, profile, int(k), thing) for k in np.sort(biggest))


def _cluster_card(asked: Asked, profile: Any, k: int, thing: str) -> Card:
    size, parts = float(profile.size[k]), np.abs(profile.contribution[k])
    told = [int(j) for j in np.argsort(-parts, kind="stable")[:_COLUMNS] if parts[j] > 0]
    names = [own.words for own in asked.spoken] or profile.columns
    pair = asked.told(_without_rounding(np.vstack([profile.centre[k], profile.overall])), told)
    marks = tuple(
        Mark(clean(names[j], 40), _percent(profile.contribution[k, j] / parts.max()), cells)
        for j, cells in zip(told, zip(*pair))
    )
    columns = told[:_FIRST] or list(range(min(_FIRST, len(profile.columns))))
    return Card(
        k,
        "" if asked.of_pixels else clean(profile.names[k], NAME),
        shade(k),
        f"{_weight(size)}, {percent(profile.share[k])}",
        _percent(profile.share[k] / max(np.max(profile.share), 1e-300)),
        asked.picture_of(np.asarray(profile.centre[k])),
        ("here", "all rows"),
        () if asked.of_pixels else marks,
        tuple(clean(names[j], 24) for j in columns),
        examples(asked, profile.typical[k], columns, EXAMPLES if asked.pictures else _ROWS),
        tuple(
            example._replace(
                beside=f"{thing} {rival}" if asked.of_pixels else clean(f"{rival} · {profile.names[rival]}", NAME)
            )
            for example, rival in zip(examples(asked, profile.border[k], columns, BORDER), profile.rival[k].tolist())
        ),
    )


def _without_rounding(pair: Array) -> Array:
    """(2, p) two values of each column; what is only rounding beside the other is none."""
    return np.where(np.abs(pair) > _ROUNDING * np.abs(pair).max(axis=0), pair, 0.0)


def examples(asked: Asked, rows: Iterable[Any], columns: list[int], most: int) -> tuple[Example, ...]:
    """Rows by their places, -1 left out, with their texts, their pictures or their entries."""
    kept = [int(row) for row in rows if row >= 0][:most]
    words = [asked.name(row) if asked.texts is None else clean(asked.texts[row], _TEXT) or NOTHING for row in kept]
    if asked.pictures is not None:
        return tuple(Example(text, picture=asked.pictures.of_row(row)) for text, row in zip(words, kept))
    if asked.texts is not None:
        return tuple(Example(asked.name(row), text=text) for text, row in zip(words, kept))
    entries = asked.dense(np.array(kept, dtype=np.intp)) if kept else np.empty((0, 0))
    return tuple(map(Example, words, asked.told(entries, columns) if kept else ()))


def topic_cards(asked: Asked) -> tuple[Card, ...]:
    """Cards of the largest topics: first words and documents that show them best."""
    model = asked.model
    words = model.top_words(_WORDS)
    chance = np.sort(model.components_, axis=1)[:, ::-1][:, : words.shape[1]]
    documents = model.representative_documents(asked.X, n=_DOCUMENTS)
    share = model.topic_sizes_ / model.topic_sizes_.sum()
    numbered = words.dtype.kind in "iu"
    cards = []
    for k in range(min(MOST, model.n_topics_)):
        marks = tuple(
            Mark(f"word {word}" if numbered else clean(word, 30), _percent(c / chance[k, 0]), (percent(c),))
            for word, c in zip(words[k], chance[k])
        )
        heavy = np.argsort(-model.components_[k], kind="stable")[:_FIRST]
        shown = [int(j) for j in heavy] if asked.texts is None else []
        named = tuple(mark.name for mark in marks[:_FIRST]) if shown else ()
        size = f"{percent(share[k])} of all words, main topic of "
        cards.append(
            Card(
                k,
                clean(model.topic_names_[k], NAME),
                shade(k),
                size + count(round(float(model.documents_per_topic_[k])), "document"),
                _percent(share[k] / share.max()),
                "",
                ("share of the topic",),
                marks,
                named,
                examples(asked._replace(pictures=None), documents[k], shown, _DOCUMENTS),
            )
        )
    return tuple(cards)


def feature_cards(asked: Asked, Z: Array) -> tuple[Card, ...]:
    """Cards of the features: what each adds to the rows that have it; ``Z`` (n, K) says which these are."""
    model, cards = asked.model, []
    for k in range(min(MOST, Z.shape[1])):
        part = np.asarray(model.components_[k], dtype=np.float64)
        columns = [int(j) for j in np.argsort(-np.abs(part), kind="stable")[:_COLUMNS] if part[j]]
        having = np.flatnonzero(Z[:, k])
        cards.append(
            Card(
                k,
                _feature_name(asked, part, columns),
                shade(k),
                f"{count(having.size, 'row')}, {percent(having.size / asked.n)}",
                _percent(having.size / asked.n),
                "" if asked.pictures is None else asked.pictures.of_part(part),
                ("adds",),
                () if asked.of_pixels else _parts(asked, part, columns),
                tuple(clean(asked.columns[j], 24) for j in columns[:_FIRST]),
                examples(asked, _plainest(Z, having), columns[:_FIRST], EXAMPLES if asked.pictures else _ROWS),
            )
        )
    return tuple(cards)


def _parts(asked: Asked, part: Array, columns: list[int]) -> tuple[Mark, ...]:
    longest = float(np.abs(part).max()) or 1.0
    return tuple(Mark(clean(asked.columns[j], 40), _percent(part[j] / longest), (number(part[j]),)) for j in columns)


def _feature_name(asked: Asked, part: Array, columns: list[int]) -> str:
    """The columns in which a feature is strongest."""
    strong = [j for j in columns[:3] if 3 * abs(part[j]) > abs(part[columns[0]])]
    words = [f"{'more' if part[j] > 0 else 'less'} {clean(asked.columns[j], 30)}" for j in strong]
    return "" if asked.of_pixels else ", ".join(words)


def _plainest(Z: Array, having: Array) -> Array:
    """Rows that have few other features first."""
    return having[np.argsort(Z[having].sum(axis=1), kind="stable")[:EXAMPLES]]


def _weight(size: float) -> str:
    return count(int(size), "row") if size == round(size) else f"weight {number(size)}"


def _percent(share: Any) -> int:
    """A share in whole percent, as far as bars show it."""
    return round(100 * float(share))
