"""Soft assignments of cells to topics at an inverse temperature: the state, one pass, and its free energy."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, ObjectiveRose
from kfree.kernels import kernels
from kfree.rows import Documents

#: Columns of the states are padded with zeros to a multiple of this, as the kernels want them.
LANES = 16


class Soft(NamedTuple):
    """Soft counts; columns from G on are zero."""

    documents: Array  # (D, width) float32
    words: Array  # (V, width) float32, of these documents
    G: int  # topics


class Prior(NamedTuple):
    """What the soft stage adds to counts."""

    pseudo: Array  # (V,) pseudo-counts of the words in every topic, eta * mu0
    concentration: float  # a: pseudo-tokens of a document, spread evenly over the topics
    mix: float  # weight of the mixing cost
    base: Array  # (V, K) counts of documents seen before, of the first K topics; (V, 0) for none


class Step(NamedTuple):
    """What a reader wants to know of one soft pass."""

    beta: float
    n_topics: int
    free_energy: float  # at the topics and shares the pass started from


def width_of(G: int) -> int:
    """Columns of a state of G topics."""
    return -(-G // LANES) * LANES


def topic_counts(soft: Soft, prior: Prior) -> Array:
    """Counts of words in topics, those seen before included, (V, G) float64."""
    counts = soft.words[:, : soft.G].astype(np.float64)
    counts[:, : prior.base.shape[1]] += prior.base
    return counts


def soft_pass(documents: Documents, soft: Soft, prior: Prior, beta: float) -> tuple[Soft, float]:
    """One pass: topics and shares from the counts, then counts from topics and shares.

    Returns the new counts, and the free energy F_beta of the old ones: over passes with the same beta it never rises.
    """
    G, width, weights = soft.G, soft.words.shape[1], documents.weights
    topics, topic_part = topic_powers(documents, soft, prior, beta)
    share, total = np.empty_like(soft.documents), np.zeros_like(soft.documents)
    ratios: list[Array] = [np.empty(block.data.size, np.float32) for block in documents.blocks]
    share_part = np.empty(documents.n)

    def of_block(b: int) -> float:
        block = documents.blocks[b]
        rows, ratio = block.documents, ratios[b]
        _share_powers(soft, rows, prior, beta, share, share_part)
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

    for _ in documents.each(of_words, documents.word_spans, work):
        pass
    # shares are normalised here: their kernel does without
    size = np.log(prior.mix * documents.length + prior.concentration)
    mixing = prior.mix * documents.length * size
    shares = (prior.concentration / G) * (share_part - G * size)
    free_energy = float((weights * (mixing - shares)).sum()) - likelihood / beta - topic_part
    return Soft(total, words, G), free_energy


def word_mass(documents: Documents, soft: Soft, prior: Prior) -> Array:
    """Tokens and pseudo-tokens of each topic, (G,)."""

    def of_words(span: slice) -> Array:
        total = np.zeros(soft.G)
        kernels().add_columns(soft.words, span.start, span.stop, total)
        return total

    mass = sum(documents.each(of_words, documents.word_spans, soft.words.size)) + prior.pseudo.sum()
    mass[: prior.base.shape[1]] += prior.base.sum(axis=0)
    return mass


def topic_powers(documents: Documents, soft: Soft, prior: Prior, beta: float) -> tuple[Array, float]:
    """mu^beta (V, width) float32, and sum of e log mu."""
    K, counts, topics = prior.base.shape[1], soft.words, np.empty_like(soft.words)
    if K:
        counts = counts.copy()
        counts[:, :K] += prior.base
    scale, logs = _padded(1.0 / word_mass(documents, soft, prior), counts), np.empty(documents.p)
    own, power = prior.pseudo.astype(np.float32), None if beta == 1.0 else np.float32(beta)

    def of_words(span: slice) -> None:
        kernels().raise_rows(counts, span.start, span.stop, scale, own, scale, power, topics, logs)

    for _ in documents.each(of_words, documents.word_spans, 10 * counts.size):
        pass
    return topics, float(prior.pseudo @ logs)


def _share_powers(soft: Soft, rows: slice, prior: Prior, beta: float, share: Array, logs: Array) -> None:
    """Fill theta^(beta mix), not normalised, and the sums of log theta, of some documents."""
    factor, column = (np.full(soft.G, value) for value in (prior.mix, prior.concentration / soft.G))
    own, power = np.ones(share.shape[0], np.float32), beta * prior.mix
    factor, column = _padded(factor, share), _padded(column, share)
    exponent = None if power == 1.0 else np.float32(power)
    kernels().raise_rows(soft.documents, rows.start, rows.stop, factor, own, column, exponent, share, logs)


def _padded(values: Array, table: Array) -> Array:
    """Values of the topics as single precision, zeros for the columns that pad a table."""
    row = np.zeros(table.shape[1], np.float32)
    row[: values.size] = values
    return row


def shares_and_topics(documents: Documents, soft: Soft, prior: Prior) -> tuple[Array, Array]:
    """theta and mu at beta = 1 as the kernels want them, (D, width) and (V, width)."""
    topics, _ = topic_powers(documents, soft, prior, 1.0)
    share = np.empty_like(soft.documents)
    _share_powers(soft, slice(0, documents.n), prior, 1.0, share, np.empty(documents.n))
    return share, topics


def anneal(
    documents: Documents, soft: Soft, prior: Prior, betas: Array, budget: Budget, phase: str, trace: list[Step]
) -> Soft:
    """Passes at the given temperatures; a rise of the free energy between two at the same one is an error."""
    last: Step | None = None
    # counts are in single precision, and the free energy is a difference of terms of about this size
    tokens = documents.total + soft.G * prior.pseudo.sum()
    rounding = 2e-6 * tokens * np.log(tokens + 2.0)
    for count, beta in enumerate(betas, 1):
        if budget.spent:
            break
        new, free_energy = soft_pass(documents, soft, prior, float(beta))
        step = Step(float(beta), soft.G, free_energy)
        if last is not None and last.beta == beta and free_energy > last.free_energy + rounding:
            raise ObjectiveRose(
                f"The free energy rose from {last.free_energy!r} to {free_energy!r} in soft pass {count} of {phase}. "
                "This is a bug in kfree; please report it with the data."
            )
        soft, last = new, step
        budget.best = soft
        trace.append(step)
        budget.tell(phase, count, Info(free_energy, abs(free_energy), 0.0, 0, soft.G))
    return soft
