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
#: Columns of a centre that are shown.
_COLUMNS = 4
#: Words that stand for a topic.
_TOP = 10


def noun_of(model: Any) -> str:
    """What a model finds."""
    return _NOUNS[type(model).__name__]


class Part(NamedTuple):
    """The clusters, topics, features or components of a model, a line each."""

    noun: str
    size: Any  # (K,) rows, or weight
    share: Any  # (K,)
    words: list[str]  # (K,) what each is
    table: Columns  # all of it, to be written

    @property
    def number(self) -> str:
        """How many there are, in words."""
        return f"{len(self.words)} {self.noun}{'s' * (len(self.words) != 1)}"


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


def parts_of(model: Any, columns: Sequence[str], preparer: Any = None) -> Part:
    """What a model consists of; centres in the units that the columns had before they were prepared."""
    noun = noun_of(model)
    if noun == "topic":
        return _topics(model, columns)
    centres = {"cluster": "cluster_centers_", "feature": "components_", "component": "means_"}[noun]
    sizes = {"cluster": "cluster_weights_", "feature": "counts_", "component": "weights_"}[noun]
    size = np.asarray(getattr(model, sizes), dtype=np.float64)
    total = len(model.Z_) if noun == "feature" else size.sum()
    told = Columns(list(columns), np.asarray(getattr(model, centres)).T.tolist())
    if preparer is not None and noun != "feature":  # features are added up, and have no units of their own
        told = _in_units(preparer, getattr(model, centres))
    return _part(noun, size, size / total, told)


def _in_units(preparer: Any, centres: Any) -> Columns:
    """Centres as rows of the table that was prepared, without columns of which nothing is known."""
    frame = preparer.inverse_transform(centres)
    known = [name for name in frame.column_names if frame.column(name).null_count < len(centres)]
    return Columns(known, [frame.column(name).to_pylist() for name in known])


def _part(noun: str, size: Any, share: Any, centres: Columns) -> Part:
    own = [noun, "size", "share"]
    names = [f"{name} (centre)" if name in own else name for name in centres.names]
    values = [list(range(len(size))), size.tolist(), _rounded(share), *centres.values]
    few = list(zip(centres.names, centres.values))[:_COLUMNS]
    words = [", ".join(f"{name} {figure(column[k])}" for name, column in few) for k in range(len(size))]
    return Part(noun, size, share, words, Columns([*own, *names], values))


def _topics(model: Any, vocabulary: Sequence[str]) -> Part:
    words = [list(row) for row in model.top_words(_TOP, vocabulary=np.asarray(vocabulary))]
    size = np.asarray(model.doc_topic_.sum(axis=0)).ravel()
    share = size / size.sum()
    told = [" ".join(map(str, row)) for row in words]
    values = [list(range(len(size))), size.tolist(), _rounded(share), told]
    return Part("topic", size, share, told, Columns(["topic", "tokens", "share", "words"], values))


def _rounded(values: Any) -> list[float]:
    return np.round(np.asarray(values, dtype=np.float64), 6).tolist()
