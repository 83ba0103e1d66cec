"""What a fitted model has found, as tables: a label for each row, a line for each cluster, topic or feature."""

from collections.abc import Sequence
from datetime import datetime, time
from typing import Any, NamedTuple

import numpy as np

from kfree.cli.outputs import Columns
from kfree.cli.talk import figure

#: What each class finds.
_NOUNS = {
    "DPMeans": "cluster",
    "HDPMeans": "cluster",
    "HDPTopics": "topic",
    "BPMeans": "feature",
    "KFeatures": "feature",
    "StepwiseKFeatures": "feature",
    "GibbsIBP": "feature",
    "VariationalDPMixture": "component",
    "KernelDPMixture": "component",
    "GibbsDPMixture": "component",
}
#: Columns that a feature is told by.
_COLUMNS = 4
#: A feature is all over a picture if it is strong in more than this share of it.
_EVERYWHERE = 0.5
#: Words that a topic is told by.
_TOP = 10


def noun_of(model: Any) -> str:
    """What a model finds."""
    return _NOUNS[type(model).__name__]


class Part(NamedTuple):
    """The clusters, topics, features or components of a model, a line each."""

    noun: str
    size: list[float]  # (K,) rows, or weight
    share: Any  # (K,)
    words: list[str]  # (K,) what each is called
    table: Columns  # all of it, to be written


def labels_of(model: Any, X: Any, groups: Any = None) -> Columns:
    """What each row belongs to."""
    noun = noun_of(model)
    if noun == "topic":
        shares = model.transform(X)
        return Columns([noun, "share"], [shares.argmax(axis=1).tolist(), _rounded(shares.max(axis=1))])
    if noun == "feature":
        Z = np.asarray(model.transform(X))
        return Columns([f"feature_{k}" for k in range(Z.shape[1])], [column.astype(int).tolist() for column in Z.T])
    if noun == "component":
        shares = model.predict_proba(X)
        return Columns([noun, "probability"], [shares.argmax(axis=1).tolist(), _rounded(shares.max(axis=1))])
    known = {} if groups is None else {"groups": groups}
    return Columns([noun], [model.predict(X, **known).tolist()])


def with_ids(ids: Sequence[Any], name: str, labels: Columns) -> Columns:
    """Labels beside the ids of their rows; a name that the id has gets a mark."""
    return Columns([name, *(f"{own}_" if own == name else own for own in labels.names)], [ids, *labels.values])


def parts_of(
    model: Any, X: Any, beside: dict[str, Any], columns: Sequence[str], preparer: Any = None, texts: Any = None
) -> Part:
    """What a model of rows X, with groups and weights beside them, consists of; centres in the units that the columns
    had before they were prepared."""
    noun = noun_of(model)
    if noun == "topic":
        return _topics(model)
    if noun == "feature":
        told = Columns(list(columns), model.components_.T.tolist())
        return _part(noun, model.counts_, model.counts_ / len(model.Z_), _largest(told), told)
    called = getattr(texts, "called", None)
    seen = model._profile(X, **beside, spoken=() if preparer is None else preparer._spoken(), called=called)
    told = Columns(list(columns), seen.centre.T.tolist()) if preparer is None else _in_units(preparer, seen.centre)
    return _part(noun, seen.size, seen.share, list(seen.names), told)


def _in_units(preparer: Any, centres: Any) -> Columns:
    """Centres as rows of the table that was prepared, without columns of which nothing is known."""
    frame = preparer.inverse_transform(centres)
    known = [name for name in frame.column_names if frame.column(name).null_count < len(centres)]
    return Columns(known, [list(map(_readable, frame.column(name).to_pylist())) for name in known])


def _readable(value: Any) -> Any:
    """Six digits of a number, which is a mean and no sharper; of a time at midnight the day."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value.date() if isinstance(value, datetime) and value.time() == time() else value


def _part(noun: str, size: Any, share: Any, words: list[str], centres: Columns) -> Part:
    own = [noun, "name", "size", "share"]
    names = [f"{name} (centre)" if name in own else name for name in centres.names]
    values: list[Sequence[Any]] = [list(range(len(size))), words, _whole(size), _rounded(share), *centres.values]
    return Part(noun, _whole(size), share, words, Columns([*own, *names], values))


def _largest(components: Columns) -> list[str]:
    """The columns in which each feature is largest."""
    values, names = np.array(components.values).T, [f"column {n}" if n.isdigit() else n for n in components.names]
    order = [np.argsort(-np.abs(row), kind="stable")[:_COLUMNS] for row in values]
    return [", ".join(f"{names[j]} {figure(row[j])}" for j in first) for row, first in zip(values, order)]


def named(part: Part, words: list[str]) -> Part:
    """The same under other names."""
    names, values = part.table
    values = [words if name == "name" else own for name, own in zip(names, values)]
    return part._replace(words=words, table=Columns(names, values))


def place_in_picture(component: Any, shape: tuple[int, ...]) -> str:
    """Where in a picture a feature is."""
    light = np.abs(np.asarray(component, dtype=np.float64)).reshape(*shape[:2], -1).sum(axis=2)
    strong = light >= light.max() / 2
    share = strong.mean()
    if not light.any() or share > _EVERYWHERE:
        return "all over the picture"
    y, x = ((np.argwhere(strong) + 0.5).mean(axis=0) / shape[:2] * 3).astype(int)
    words = [("top", "", "bottom")[y], ("left", "", "right")[x]]
    where = " ".join(word for word in words if word) or "middle"
    return f"{where}, {max(share, 0.01):.0%} of the picture"


def _topics(model: Any) -> Part:
    size, share = _whole(model.documents_per_topic_), model.topic_sizes_ / model.topic_sizes_.sum()
    names, words = list(map(str, model.topic_names_)), [" ".join(map(str, row)) for row in model.top_words(_TOP)]
    values: list[list[Any]] = [list(range(len(size))), names, size, _rounded(share), words]
    return Part("topic", size, share, names, Columns(["topic", "name", "documents", "share", "words"], values))


def _whole(values: Any) -> list[float]:
    """Numbers of rows without a decimal point; weights as they are."""
    values = np.asarray(values, dtype=np.float64)
    return (values.astype(np.int64) if np.array_equal(values, np.rint(values)) else values).tolist()


def _rounded(values: Any) -> list[float]:
    return np.round(np.asarray(values, dtype=np.float64), 6).tolist()
