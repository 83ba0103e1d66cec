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


def topic_means(soft: Soft, prior: Prior) -> Array:
    """Word probabilities of the topics, (V, G) float64."""
    counts = topic_counts(soft, prior) + prior.pseudo[:, None]
    return counts / counts.sum(axis=0)


def soft_pass(documents: Documents, soft: Soft, prior: Prior, beta: float) -> tuple[Soft, float]:
    """One pass: topics and shares from the counts, then counts from topics and shares.

    Returns the new counts, and the free energy F_beta of the old ones: over passes with the same beta it never rises.
    """
    G, width, weights = soft.G, soft.words.shape[1], documents.weights
    topics, topic_part = _topic_powers(documents, soft, prior, beta)
    share, total = np.zeros_like(soft.documents), np.zeros_like(soft.documents)
    ratios: list[Array] = [np.empty(block.data.size, np.float32) for block in documents.blocks]
    share_part = np.empty(documents.n)

    def of_block(b: int) -> float:
        block = documents.blocks[b]
        rows, ratio = block.documents, ratios[b]
        share_part[rows] = _share_powers(soft.documents[rows, :G], prior, beta, share[rows, :G])
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
    G, spans = soft.G, documents.word_spans
    mass = sum(documents.each(lambda s: soft.words[s, :G].sum(axis=0, dtype=np.float64), spans, soft.words.size))
    mass = mass + prior.pseudo.sum()
    mass[: prior.base.shape[1]] += prior.base.sum(axis=0)
    return mass


def _topic_powers(documents: Documents, soft: Soft, prior: Prior, beta: float) -> tuple[Array, float]:
    """mu^beta (V, width) float32, and sum of e log mu."""
    G, K = soft.G, prior.base.shape[1]
    spans = documents.word_spans
    scale, topics = (1.0 / word_mass(documents, soft, prior)).astype(np.float32), np.zeros_like(soft.words)

    def of_words(span: slice) -> float:
        mean = soft.words[span, :G] + prior.pseudo[span, None].astype(np.float32)
        if K:
            mean[:, :K] += prior.base[span].astype(np.float32)
        mean *= scale
        logs = np.log(mean)
        topics[span, :G] = mean if beta == 1.0 else np.exp(np.float32(beta) * logs)
        return float(prior.pseudo[span] @ logs.sum(axis=1, dtype=np.float64))

    return topics, float(sum(documents.each(of_words, spans, 10 * soft.words.size)))


def _share_powers(counts: Array, prior: Prior, beta: float, share: Array) -> Array:
    """Fill theta^(beta mix), not normalised; return the sums of log theta."""
    theta = np.float32(prior.mix) * counts + np.float32(prior.concentration / counts.shape[1])
    logs = np.log(theta)
    power = beta * prior.mix
    share[...] = theta if power == 1.0 else np.exp(np.float32(power) * logs)
    return logs.sum(axis=1, dtype=np.float64)


def shares_and_topics(documents: Documents, soft: Soft, prior: Prior) -> tuple[Array, Array]:
    """theta and mu at beta = 1 as the kernels want them, (D, width) and (V, width)."""
    topics, _ = _topic_powers(documents, soft, prior, 1.0)
    share = np.zeros_like(soft.documents)
    _share_powers(soft.documents[:, : soft.G], prior, 1.0, share[:, : soft.G])
    return share, topics


def anneal(
    documents: Documents, soft: Soft, prior: Prior, betas: Array, budget: Budget, phase: str, trace: list[Step]
) -> Soft:
    """Passes at the given temperatures; a rise of the free energy between two at the same one is an error."""
    last: Step | None = None
    for count, beta in enumerate(betas, 1):
        if budget.spent:
            break
        new, free_energy = soft_pass(documents, soft, prior, float(beta))
        step = Step(float(beta), soft.G, free_energy)
        # counts are in single precision
        if last is not None and last.beta == beta and free_energy > last.free_energy + 2e-6 * abs(last.free_energy):
            raise ObjectiveRose(
                f"The free energy rose from {last.free_energy!r} to {free_energy!r} in soft pass {count} of {phase}. "
                "This is a bug in kfree; please report it with the data."
            )
        soft, last = new, step
        budget.best = soft
        trace.append(step)
        budget.tell(phase, count, Info(free_energy, abs(free_energy), 0.0, 0, soft.G))
    return soft
