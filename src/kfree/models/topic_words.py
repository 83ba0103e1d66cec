"""The words of topics: what they are called, which name a topic, which documents have them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.topics.coherence import npmi, rank_words

# Words of a name, and among how many of the first they are looked for, since some are forms of others.
_NAME, _LOOK = 3, 30
# Forms of one word begin with the same letters, at least so many, and at most so many follow.
_STEM, _ENDING = 4, 4


def check_vocabulary(vocabulary: Any, p: int) -> Array:
    """Names of the p words, given as they are or by a fitted vectorizer."""
    names = vocabulary.get_feature_names_out() if hasattr(vocabulary, "get_feature_names_out") else vocabulary
    names = np.asarray(names, dtype=object)
    if names.shape != (p,):
        raise ValueError(
            f"vocabulary has shape {names.shape}, but the topics are over {p} words. Pass one name for each column of "
            "X."
        )
    return names


def name_topics(components: Array, background: Array, names: Array | None) -> Array:
    """(K,) A name of about three words for each topic, all different; words have numbers where they have no names.

    The words are those with the largest parts of the divergence KL(topic || corpus): frequent in the topic, and more so
    than elsewhere. Of several forms of one word the first is taken.
    """
    part = components * np.log(components / background)
    taken: list[str] = []
    for own, row in zip(part, rank_words(part, _LOOK)):
        special = row[: max(1, np.count_nonzero(own[row] > 0))]  # what is rarer than elsewhere names nothing
        taken.append(_free_name([f"word {w}" if names is None else str(names[w]) for w in special], taken))
    return np.array(taken, dtype=str)


def _free_name(words: list[str], taken: list[str]) -> str:
    """The first words, more of them if the name is taken, with a number if that is of no use."""
    kept: list[str] = []
    for word in words:
        if not any(_akin(word, other) for other in kept):
            kept.append(word)
            if len(kept) >= _NAME and ", ".join(kept) not in taken:
                return ", ".join(kept)
    name, number = ", ".join(kept[:_NAME]), 1
    while (free := name if number == 1 else f"{name} ({number})") in taken:
        number += 1
    return free


def _akin(one: str, two: str) -> bool:
    """Whether two words look like forms of one (network, networks; study, studies), or one phrase holds the other."""
    one, two = sorted((one.lower(), two.lower()), key=len)
    if not (one.isalpha() and two.isalpha()):
        return set(one.split()) <= set(two.split())
    stem = one[: max(_STEM, len(one) - 1)]
    return one == two or (len(one) >= _STEM and two.startswith(stem) and len(two) - len(stem) <= _ENDING)


class Company(NamedTuple):
    """Which of some words each document has: what is remembered of a corpus to judge topics by."""

    words: Array  # (m,) ascending
    table: sp.csc_matrix  # (D, m) bool

    @classmethod
    def of(cls, X: sp.csr_matrix, words: Array) -> "Company":
        """Of the words given, in any shape."""
        words = np.unique(words)
        return cls(words, sp.csc_matrix(X[:, words], dtype=bool))

    def coherence(self, words: Array) -> Array:
        """(K,) NPMI of the words (K, n) of topics."""
        places = np.searchsorted(self.words, words).clip(max=self.words.size - 1)
        lost = np.unique(words[self.words[places] != words]).size
        if lost:
            raise ValueError(
                f"{lost} of the first {words.shape[1]} words of merged topics were not among those of the topics of "
                "the fit, so that nothing is known of them. Pass the documents as reference, or a smaller n."
            )
        return npmi(places, self.table)
