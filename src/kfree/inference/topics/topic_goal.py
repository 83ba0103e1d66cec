"""What is wanted of topics, from the estimator to the innermost loop, and what a search gives back."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.topics.randomness_test import Structure


class TopicGoal(NamedTuple):
    """The objective, the topics there are already, and how long to search."""

    mix: float  # weight of the mixing cost of documents
    lam_local: Array  # (D,) price of a topic in each document
    lam_global: float  # price of a topic
    smoothing: float  # eta: pseudo-tokens of every topic
    pseudo: Array  # (V,) the same word by word, eta * mu0
    known: Array  # (V, K) counts of earlier documents, of the first K topics; (V, 0) for none
    n_topics: int | None  # topics to give, known ones included; None: as many as pay for themselves
    n_seeds: int  # topics to start from, besides the known ones
    tol: float  # share of the cells that may still change topic at the end
    max_iter: int  # most hard passes
    refine: bool  # whether single cells are moved at the end

    @property
    def soft_mix(self) -> float:
        """Of the soft stage. Without any mixing cost soft topics are poor: mix=0 is for the hard stage only."""
        return self.mix or 1.0

    @property
    def n_known(self) -> int:
        """K, the topics of earlier documents: they stay the first, in their order."""
        return self.known.shape[1]


class SoftPass(NamedTuple):
    """What a reader wants to know of one soft pass."""

    beta: float
    n_topics: int
    free_energy: float  # at the topics and shares the pass started from


class TopicCounts(NamedTuple):
    """Hard counts."""

    words: Array  # (G, V) weighted tokens, those of earlier documents included
    documents: Array  # (G, D) tokens


class FoundTopics(NamedTuple):
    """A finished search, topics by falling weight (those of earlier documents first, as they were)."""

    soft_counts: Array  # (G, V) soft counts of words, those of earlier documents included; of "paper" the hard ones
    labels: Array  # (cells,) int32
    counts: TopicCounts
    trace: list[float]  # J of the first labels, then after each hard pass
    soft_trace: list[SoftPass]
    n_iter: int
    converged: bool
    structure: Structure | None = None  # how far the corpus is from one without topics; None if it was not asked


def no_topics(p: int) -> Array:
    """Counts of p words in no topic, (p, 0): what is known before the first documents."""
    return np.zeros((p, 0))


def word_shares(counts: Array, pseudo: Array) -> Array:
    """Word probabilities of topics (K, V) from their counts, smoothed; rows sum to 1."""
    smoothed = counts + pseudo
    return smoothed / smoothed.sum(axis=1, keepdims=True)


def topic_means(counts: Array, pseudo: Array) -> Array:
    """The same word by word, (V, K)."""
    return np.ascontiguousarray(word_shares(counts, pseudo).T)
