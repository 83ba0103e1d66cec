"""Soft assignments of cells to topics at an inverse temperature: the state, one pass, and its free energy."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, run
from kfree.inference.topics.topic_goal import SoftPass, TopicGoal
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.rows import Documents


class Soft(NamedTuple):
    """Soft counts; columns from G on are zero."""

    documents: Array  # (D, width) float32
    words: Array  # (V, width) float32, of these documents
    G: int  # topics


class Annealed(NamedTuple):
    """Soft counts, and the passes that made them."""

    soft: Soft
    trace: list[SoftPass]


def width_of(G: int) -> int:
    """Columns of a state of G topics."""
    return -(-G // TOPICS.lanes) * TOPICS.lanes


def topic_counts(soft: Soft, goal: TopicGoal) -> Array:
    """Counts of words in topics, those seen before included, (V, G) float64."""
    counts = soft.words[:, : soft.G].astype(np.float64)
    counts[:, : goal.n_known] += goal.known
    return counts


def soft_pass(documents: Documents, soft: Soft, goal: TopicGoal, beta: float) -> tuple[Soft, float]:
    """One pass: topics and shares from the counts, then counts from topics and shares.

    Returns the new counts, and the free energy F_beta of the old ones: over passes with the same beta it never rises.
    """
    G, width, weights = soft.G, soft.words.shape[1], documents.weights
    topics, topic_part = topic_powers(documents, soft, goal, beta)
    share, total = np.empty_like(soft.documents), np.zeros_like(soft.documents)
    ratios: list[Array] = [np.empty(block.data.size, np.float32) for block in documents.blocks]
    share_part = np.empty(documents.n)

    def of_block(b: int) -> float:
        block = documents.blocks[b]
        rows, ratio = block.documents, ratios[b]
        _share_powers(soft, rows, goal, beta, share, share_part)
        kernels().soft_documents(block.data, block.rows, block.indptr, topics, share, ratio, total)
        total[rows] *= share[rows]
        tokens = block.data * weights[block.rows] if documents.weight.size else block.data
        # sum over cells of n log(sum over topics); the ratio is n over that sum
        part = float(np.dot(tokens, np.log(block.data / ratio)))
        if documents.weight.size:
            ratio *= weights[block.rows].astype(np.float32)
        return part

    work = float(documents.data.size) * width
    likelihood = sum(documents.each(of_block, list(range(len(documents.blocks))), work))
    words = np.zeros_like(soft.words)

    def of_words(span: slice) -> None:
        for block, ratio in zip(documents.blocks, ratios):
            kernels().soft_words(ratio, block.rows, block.indptr, span.start, span.stop, share, words)
        words[span] *= topics[span]

    documents.do(of_words, documents.word_spans, work)
    # shares are normalised here: their kernel does without
    size = np.log(goal.soft_mix * documents.length + TOPICS.concentration)
    mixing = goal.soft_mix * documents.length * size
    shares = (TOPICS.concentration / G) * (share_part - G * size)
    topic_part += _known_part(documents, topics, goal, beta)
    free_energy = float((weights * (mixing - shares)).sum()) - likelihood / beta - topic_part
    return Soft(total, words, G), free_energy


def word_mass(documents: Documents, soft: Soft, goal: TopicGoal) -> Array:
    """Tokens and pseudo-tokens of each topic, (G,)."""

    def of_words(span: slice) -> Array:
        total = np.zeros(soft.G)
        kernels().add_columns(soft.words, span.start, span.stop, total)
        return total

    mass = sum(documents.each(of_words, documents.word_spans, soft.words.size)) + goal.pseudo.sum()
    mass[: goal.n_known] += goal.known.sum(axis=0)
    return mass


def topic_powers(documents: Documents, soft: Soft, goal: TopicGoal, beta: float) -> tuple[Array, float]:
    """mu^beta (V, width) float32, and sum of e log mu."""
    K, counts, topics = goal.n_known, soft.words, np.empty_like(soft.words)
    if K:
        counts = counts.copy()
        counts[:, :K] += goal.known
    scale, logs = _padded(1.0 / word_mass(documents, soft, goal), counts), np.empty(documents.p)
    own, power = goal.pseudo.astype(np.float32), np.float32(beta)

    def of_words(span: slice) -> None:
        kernels().raise_rows(counts, span.start, span.stop, scale, own, scale, power, topics, logs)

    documents.do(of_words, documents.word_spans, 10 * counts.size)
    return topics, float(goal.pseudo @ logs)


def _known_part(documents: Documents, topics: Array, goal: TopicGoal, beta: float) -> float:
    """Sum of the known counts times log mu; ``topics`` are mu^beta."""
    K = goal.n_known

    def of_words(span: slice) -> float:
        return float((goal.known[span] * np.log(topics[span, :K])).sum())

    return sum(documents.each(of_words, documents.word_spans, 10.0 * goal.known.size)) / beta if K else 0.0


def _share_powers(soft: Soft, rows: slice, goal: TopicGoal, beta: float, share: Array, logs: Array) -> None:
    """Fill theta^(beta mix), not normalised, and the sums of log theta, of some documents."""
    factor, column = (np.full(soft.G, value) for value in (goal.soft_mix, TOPICS.concentration / soft.G))
    own, power = np.ones(share.shape[0], np.float32), np.float32(beta * goal.soft_mix)
    factor, column = _padded(factor, share), _padded(column, share)
    kernels().raise_rows(soft.documents, rows.start, rows.stop, factor, own, column, power, share, logs)


def _padded(values: Array, table: Array) -> Array:
    """Values of the topics as single precision, zeros for the columns that pad a table."""
    row = np.zeros(table.shape[1], np.float32)
    row[: values.size] = values
    return row


def shares_and_topics(documents: Documents, soft: Soft, goal: TopicGoal) -> tuple[Array, Array]:
    """theta and mu at beta = 1 as the kernels want them, (D, width) and (V, width)."""
    topics, _ = topic_powers(documents, soft, goal, 1.0)
    share = np.empty_like(soft.documents)
    _share_powers(soft, slice(0, documents.n), goal, 1.0, share, np.empty(documents.n))
    return share, topics


def anneal(
    documents: Documents, start: Annealed, goal: TopicGoal, betas: Array, budget: Budget, phase: str
) -> Annealed:
    """Passes at the given inverse temperatures; between two at the same one the free energy must not rise."""
    # counts are in single precision, and the free energy is a difference of terms of about this size
    tokens = documents.total + start.soft.G * goal.pseudo.sum() + goal.known.sum()
    scale, before = TOPICS.single * tokens * np.log(tokens + 2.0), len(start.trace)

    def step(state: Annealed) -> tuple[Annealed, Info]:
        beta, made = float(betas[len(state.trace) - before]), state.trace[before:]
        soft, free_energy = soft_pass(documents, state.soft, goal, beta)
        anew = bool(made) and made[-1].beta != beta
        trace = [*state.trace, SoftPass(beta, soft.G, free_energy)]
        # all passes are wanted: none says that nothing changes any more
        return Annealed(soft, trace), Info(free_energy, scale, 1.0, 0, soft.G, anew=anew)

    return run(step, start, budget, phase=phase, tol=0.0, max_iter=len(betas), whole=True).state
