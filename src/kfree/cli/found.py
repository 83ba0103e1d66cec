"""What a fitted model has found, as tables: a label for each row, a line for each cluster, topic or feature."""

from collections.abc import Sequence
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


def parts_of(model: Any, X: Any, beside: dict[str, Any], columns: Sequence[str], preparer: Any = None) -> Part:
    """What a model of rows X, with groups and weights beside them, consists of; centres in the units that the columns
    had before they were prepared."""
    noun = noun_of(model)
    if noun == "topic":
        return _topics(model)
    if noun == "feature":
        told = Columns(list(columns), model.components_.T.tolist())
        return _part(noun, model.counts_, model.counts_ / len(model.Z_), _largest(told), told)
    seen = model.profile(X, **beside)
    told = Columns(list(columns), seen.centre.T.tolist()) if preparer is None else _in_units(preparer, seen.centre)
    return _part(noun, seen.size, seen.share, list(seen.names), told)


def _in_units(preparer: Any, centres: Any) -> Columns:
    """Centres as rows of the table that was prepared, without columns of which nothing is known."""
    frame = preparer.inverse_transform(centres)
    known = [name for name in frame.column_names if frame.column(name).null_count < len(centres)]
    return Columns(known, [frame.column(name).to_pylist() for name in known])


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
