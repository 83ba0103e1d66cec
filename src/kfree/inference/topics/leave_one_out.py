"""Closing passes: soft counts in which no cell speaks for itself."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, attempt, repeat
from kfree.inference.topics.soft_topics import Soft, shares_and_topics, word_mass
from kfree.inference.topics.topic_goal import TopicGoal
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.rows import Documents
from kfree.rows.documents import Block


class Closing(NamedTuple):
    """Between closing passes."""

    closed: Soft  # what the last pass gave, or what the first starts from
    ahead: Soft  # where the next one starts
    passes: int


def burstiness(documents: Documents, soft: Soft, goal: TopicGoal) -> float:
    """How far the tokens of a cell come together, from 0 (one by one, as topics would have it) to 1.

    Tokens beyond the first of each cell, over what is expected of them if the cells were Poisson with the means of
    the model: about 1 for documents drawn from topics, 1.4 to 2.9 for texts, in which a word that was used once is
    used again.
    """
    share, topics = shares_and_topics(documents, soft, goal._replace(mix=1.0))
    total = np.zeros_like(share)  # not wanted
    rate = (documents.length / np.maximum(share.sum(axis=1, dtype=np.float64), 1e-30)).astype(np.float32)

    def of_block(block: Block) -> float:
        ratio = np.empty(block.data.size, np.float32)
        kernels().soft_documents(block.data, block.rows, block.indptr, topics, share, ratio, total)
        mean = (rate[block.rows] * block.data / ratio).astype(np.float64)
        weights = documents.weights[block.rows]
        return float((weights * (mean / -np.expm1(-mean) - 1.0)).sum())

    more = float(((documents.data - 1.0) * documents.weights[documents.owner]).sum())
    expected = sum(documents.each(of_block, documents.blocks, 2.0 * documents.data.size * share.shape[1]))
    return float(np.clip(TOPICS.burst_slope * (more / expected - 1.0), 0.0, 1.0)) if expected > 0 else 0.0


def closing_pass(documents: Documents, soft: Soft, goal: TopicGoal, burst: float) -> Soft:
    """New counts: every cell by topics and shares from the counts of the others.

    The zeroth-order collapsed update (Asuncion et al. 2009): a rare word no longer holds the topic that its own
    document gave it. All cells see the same counts.
    """
    tail = all_counts(documents, soft, goal, burst, word_mass(documents, soft, goal))
    weights, total = documents.weights, np.zeros_like(soft.documents)
    work = 4.0 * documents.data.size * soft.words.shape[1]

    def of_block(b: int) -> tuple[Array, Array]:
        block = documents.blocks[b]
        own, ratio = (np.empty(block.data.size, np.float32) for _ in range(2))
        kernels().close_documents(block.data, block.rows, block.indptr, *tail, own, ratio, total)
        if documents.weight.size:
            ratio *= weights[block.rows].astype(np.float32)
        return own, ratio

    found = list(documents.each(of_block, list(range(len(documents.blocks))), work))
    words = np.zeros_like(soft.words)

    def of_words(span: slice) -> None:
        for block, (own, ratio) in zip(documents.blocks, found):
            kernels().close_words(own, ratio, block.rows, block.indptr, span.start, span.stop, *tail, words)

    documents.do(of_words, documents.word_spans, work)
    return Soft(total, words, soft.G)


def all_counts(documents: Documents, soft: Soft, goal: TopicGoal, burst: float, mass: Array) -> tuple[Any, ...]:
    """What kernels take the counts of a cell out of: topics and shares from all counts, and how that is done. ``mass``
    (G,) are tokens and pseudo-tokens of the topics."""
    G, K = soft.G, goal.n_known
    scale, topics = np.zeros(soft.words.shape[1], np.float32), np.zeros_like(soft.words)
    scale[:G] = 1.0 / mass
    pseudo, least = goal.pseudo.astype(np.float32), np.float32(TOPICS.concentration / G)
    mix, share = np.float32(goal.soft_mix), np.zeros_like(soft.documents)
    share[:, :G] = mix * soft.documents[:, :G] + least
    part = np.minimum(documents.weights, 1.0).astype(np.float32)

    def of_counts(span: slice) -> None:
        topics[span, :G] = soft.words[span, :G] + pseudo[span, None]
        topics[span, :K] += goal.known[span].astype(np.float32)
        topics[span] *= scale

    documents.do(of_counts, documents.word_spans, 4.0 * documents.data.size * soft.words.shape[1])
    return topics, share, part, pseudo, scale, least, mix, np.float32(burst)


def settle(documents: Documents, soft: Soft, goal: TopicGoal, burst: float, mass: Array) -> Soft:
    """Counts of documents that agree with each other while those of words stay: closing passes without words."""
    tail = all_counts(documents, soft, goal, burst, mass)
    share, least, mix = tail[1], tail[5], tail[6]
    found = soft.documents

    def of_block(block: Block) -> None:
        own, ratio = (np.empty(block.data.size, np.float32) for _ in range(2))
        kernels().close_documents(block.data, block.rows, block.indptr, *tail, own, ratio, found)

    for _ in range(TOPICS.settling_steps):
        found = np.zeros_like(share)
        documents.do(of_block, documents.blocks, 4.0 * documents.data.size * share.shape[1])
        share[:, : soft.G] = mix * found[:, : soft.G] + least
    return soft._replace(documents=found)


def close(documents: Documents, soft: Soft, goal: TopicGoal, budget: Budget) -> tuple[Soft, int]:
    """Closing passes, and how many there were; one topic needs none. What there is so far if the user interrupts."""
    if soft.G == 1 or budget.spent:
        return soft, 0

    def look() -> tuple[float, int]:
        passes = TOPICS.close_passes if documents.total < TOPICS.long_corpus else TOPICS.close_passes_long
        return burstiness(documents, soft, goal), passes

    def step(state: Closing) -> tuple[Closing, bool]:
        closed, count = closing_pass(documents, state.ahead, goal, burst), state.passes + 1
        budget.tell("close", count, Info(np.nan, 0.0, 0.0, 0, soft.G, of=passes))
        return Closing(closed, _beyond(state.ahead, closed), count), False

    burst, passes = attempt(look, lambda: (0.0, 0), budget)
    end, _ = repeat(step, Closing(soft, soft, 0), budget, most=passes)
    return end.closed, end.passes


def _beyond(old: Soft, new: Soft) -> Soft:
    """Counts on the line from the old ones through the new ones, none below zero."""

    def step(before: Array, after: Array) -> Array:
        moved = np.float32(1.0 + TOPICS.beyond) * after - np.float32(TOPICS.beyond) * before
        return np.maximum(moved, np.float32(0.0), out=moved)

    return Soft(step(old.documents, new.documents), step(old.words, new.words), new.G)
