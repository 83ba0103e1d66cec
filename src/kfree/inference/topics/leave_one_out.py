"""Closing passes: soft counts in which no cell speaks for itself."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info
from kfree.inference.topics.soft_topics import Prior, Soft, shares_and_topics, word_mass
from kfree.kernels import kernels
from kfree.rows import Documents
from kfree.rows.documents import Block

#: Closing passes, and of corpora of so many tokens, in which the last ones change little and take long.
PASSES, PASSES_IF_LONG, LONG = 20, 14, 1_000_000
#: How far beyond its result a pass goes on: about halves the passes that are needed.
BEYOND = 1.0
#: Growth of the burstiness from 0 to 1 with the ratio of tokens that come after the first to those expected.
STEEPNESS = 2.0


def burstiness(documents: Documents, soft: Soft, prior: Prior) -> float:
    """How far the tokens of a cell come together, from 0 (one by one, as topics would have it) to 1.

    Tokens beyond the first of each cell, over what is expected of them if the cells were Poisson with the means of
    the model: about 1 for documents drawn from topics, 1.4 to 2.9 for texts, in which a word that was used once is
    used again.
    """
    share, topics = shares_and_topics(documents, soft, prior._replace(mix=1.0))
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
    return float(np.clip(STEEPNESS * (more / expected - 1.0), 0.0, 1.0)) if expected > 0 else 0.0


def closing_pass(documents: Documents, soft: Soft, prior: Prior, burst: float) -> Soft:
    """New counts: every cell by topics and shares from the counts of the others.

    The zeroth-order collapsed update (Asuncion et al. 2009): a rare word no longer holds the topic that its own
    document gave it. All cells see the same counts.
    """
    G, K = soft.G, prior.base.shape[1]
    scale, topics = np.zeros(soft.words.shape[1], np.float32), np.zeros_like(soft.words)
    scale[:G] = 1.0 / word_mass(documents, soft, prior)
    pseudo, least = prior.pseudo.astype(np.float32), np.float32(prior.concentration / G)
    mix, weights = np.float32(prior.mix), documents.weights
    share, total = np.zeros_like(soft.documents), np.zeros_like(soft.documents)
    share[:, :G] = mix * soft.documents[:, :G] + least
    part = np.minimum(weights, 1.0).astype(np.float32)

    def of_counts(span: slice) -> None:
        topics[span, :G] = soft.words[span, :G] + pseudo[span, None]
        topics[span, :K] += prior.base[span].astype(np.float32)
        topics[span] *= scale

    work = 4.0 * documents.data.size * soft.words.shape[1]
    for _ in documents.each(of_counts, documents.word_spans, work):
        pass
    tail = (topics, share, part, pseudo, scale, least, None if prior.mix == 1 else mix, np.float32(burst))

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

    for _ in documents.each(of_words, documents.word_spans, work):
        pass
    return Soft(total, words, G)


def close(documents: Documents, soft: Soft, prior: Prior, budget: Budget) -> tuple[Soft, int]:
    """Closing passes, and how many there were; one topic needs none. What there is so far if the user interrupts."""
    if soft.G == 1:
        return soft, 0
    done, burst = soft, burstiness(documents, soft, prior)
    passes = PASSES if documents.total < LONG else PASSES_IF_LONG
    for count in range(1, passes + 1):
        if budget.spent:
            return done, count - 1
        try:
            done = closing_pass(documents, soft, prior, burst)
            budget.tell("close", count, Info(np.nan, 0.0, 0.0, 0, soft.G))
        except KeyboardInterrupt:
            budget.interrupted = True
            return done, count - 1
        soft = _beyond(soft, done)
    return done, passes


def _beyond(old: Soft, new: Soft) -> Soft:
    """Counts on the line from the old ones through the new ones, none below zero."""

    def step(before: Array, after: Array) -> Array:
        moved = np.float32(1.0 + BEYOND) * after - np.float32(BEYOND) * before
        return np.maximum(moved, np.float32(0.0), out=moved)

    return Soft(step(old.documents, new.documents), step(old.words, new.words), new.G)
