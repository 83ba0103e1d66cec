"""Topics that are merged after the fit: everything that is counted by topic adds up."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.topics.topic_goal import TopicCounts
from kfree.rows import Documents


class TopicTables(NamedTuple):
    """What a model counts by topic."""

    words: Array  # (K, V) tokens of each word, soft or hard: the components are made of them
    hard_words: sp.csr_matrix  # (K, V) the same by hard labels: merges are priced by them
    cell_labels: Array  # (cells,) int32
    doc_counts: sp.csr_matrix  # (D, K) tokens of each document by hard labels
    doc_shares: Array  # (D, K) rows sum to 1

    def merged(self, group: Array) -> "TopicTables":
        """The same of groups of topics: ``group`` (K,) has a number for each topic. The heaviest group comes first."""
        new = self.numbers(group)
        add = _adding(new)
        return TopicTables(
            np.asarray(add.T @ self.words),
            sp.csr_matrix(add.T @ self.hard_words),
            renumbered(new, self.cell_labels),
            added_up(new, self.doc_counts),
            added_up(new, self.doc_shares),
        )

    def numbers(self, group: Array) -> Array:
        """(K,) The number that each topic then has."""
        weight = np.bincount(group, weights=self.words.sum(axis=1))
        return np.argsort(np.argsort(-weight, kind="stable"))[group]

    def hard_counts(self) -> TopicCounts:
        """Hard counts as the search has them."""
        return TopicCounts(self.hard_words.toarray(), np.ascontiguousarray(self.doc_counts.toarray().T))

    def bags(self, weight: Array) -> Documents:
        """Documents as bags of topics, with their weights: their lengths are all that merges need of their words."""
        return Documents(self.doc_counts, weight)


def renumbered(new: Array, labels: Array) -> Array:
    """Labels after every topic has become its new number."""
    return new[labels].astype(labels.dtype)


def added_up(new: Array, table: Any) -> Any:
    """Columns of a table (n, K), an array or CSR matrix, that have become one."""
    made = table @ _adding(new)
    return sp.csr_matrix(made) if sp.issparse(made) else np.asarray(made)


def _adding(new: Array) -> sp.csr_matrix:
    """(K, fewer) What adds up the topics of one number."""
    return sp.csr_matrix((np.ones(new.size), (np.arange(new.size), new)))


def check_groups(groups: Any, K: int) -> Array:
    """(K,) A number for each topic, the same for those that are to be merged."""
    number = np.arange(K)
    seen: set[int] = set()
    for group in _items(groups, groups):
        members = np.asarray(_items(group, groups))
        if members.size == 0 or members.ndim != 1 or members.dtype.kind not in "iu":
            raise ValueError(f"A group of topics must hold their numbers, such as [0, 3], but one is {group!r}.")
        for k in members.tolist():
            if not 0 <= k < K:
                raise ValueError(f"merge_topics was given topic {k}, but there are {K} topics: 0 to {K - 1}.")
            if k in seen:
                raise ValueError(f"merge_topics was given topic {k} twice. Pass each topic once, in one of the groups.")
            seen.add(k)
        number[members] = members.min()
    return np.unique(number, return_inverse=True)[1].ravel()


def _items(thing: Any, groups: Any) -> list[Any]:
    """What is in a list of groups, or in a group."""
    if not isinstance(thing, Iterable) or isinstance(thing, str):
        raise TypeError(f"merge_topics takes groups of topics, such as [[0, 3], [1, 2]], but was given {groups!r}.")
    return list(thing)
