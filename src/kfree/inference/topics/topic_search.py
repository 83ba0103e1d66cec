"""The search for topics: seed, soft passes, merges, melting, closing, hardening."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Outcome
from kfree.inference.topics.cell_moves import refine
from kfree.inference.topics.hard_topics import Charges, Counts, harden, label_cells
from kfree.inference.topics.leave_one_out import close
from kfree.inference.topics.soft_topics import Prior, Soft, Step, anneal, topic_counts, width_of
from kfree.inference.topics.topic_merges import merge_topics
from kfree.inference.topics.topic_seeds import choose_seeds, seeded
from kfree.rows import Documents

#: Inverse temperatures: from here up to 1, geometrically.
COLD, WARM = 1.0, 0.8
SOFT_PASSES, MELT_PASSES = 25, 20


class Fitted(NamedTuple):
    """A finished search, topics by falling weight (those of earlier documents first, as they were)."""

    soft_counts: Array  # (G, V) soft counts of words, those of earlier documents included
    labels: Array  # (cells,) int32
    counts: Counts  # hard
    trace: list[float]  # J of the first labels, then after each hard pass
    soft_trace: list[Step]
    n_iter: int
    converged: bool


def initial_topics(documents: Documents) -> int:
    """How many topics to start from: more than there will be."""
    most = max(5, int(documents.weights.sum()) // 4)
    wanted = int(np.clip(round(0.15 * np.sqrt(documents.total)), 5, most))
    return min(wanted, int((documents.weights > 0).sum()))


def one_topic(documents: Documents) -> Soft:
    """All tokens in one topic."""
    shares, words = (np.zeros((n, width_of(1)), np.float32) for n in (documents.n, documents.p))
    shares[:, 0], words[:, 0] = documents.length, documents.word_totals
    return Soft(shares, words, 1)


def soft_topics(
    documents: Documents,
    start: Soft,
    prior: Prior,
    charges: Charges,
    target: int | None,
    budget: Budget,
    trace: list[Step],
) -> Soft:
    """Soft passes, merges, melting; what there is so far if the user interrupts."""
    budget.best = start
    try:
        soft = anneal(documents, start, prior, np.geomspace(WARM, COLD, SOFT_PASSES), budget, "soft", trace)
        soft = merge_topics(documents, soft, prior, charges, target, budget, trace)
        return anneal(documents, soft, prior, np.geomspace(WARM, COLD, MELT_PASSES), budget, "melt", trace)
    except KeyboardInterrupt:
        budget.interrupted = True
        return budget.best


def seed_documents(documents: Documents, G: int, rng: np.random.Generator, budget: Budget) -> Array:
    """Documents to start from; none for one topic, and if the user interrupts."""
    if G > 1 and not budget.interrupted:
        try:
            return choose_seeds(documents, G, rng)
        except KeyboardInterrupt:
            budget.interrupted = True
    return np.zeros(0, int)


def seeds(documents: Documents, G: int, eta: float, rng: np.random.Generator, budget: Budget) -> Soft:
    """Topics to start from; one if the user interrupts."""
    chosen = seed_documents(documents, G, rng, budget)
    return seeded(documents, chosen, eta) if chosen.size else one_topic(documents)


def extended(
    documents: Documents, known: Array, fresh: int, eta: float, rng: np.random.Generator, budget: Budget
) -> Soft:
    """Known topics, whose means are ``known`` (V, K), and fresh seeds after them."""
    K = known.shape[1]
    try:
        seeds = choose_seeds(documents, fresh, rng, known) if fresh > 0 else np.zeros(0, int)
    except KeyboardInterrupt:
        budget.interrupted, seeds = True, np.zeros(0, int)
    return seeded(documents, seeds, eta, K)


def search(
    documents: Documents,
    start: Soft,
    prior: Prior,
    charges: Charges,
    target: int | None,
    budget: Budget,
    tol: float,
    max_iter: int,
    collapsed: bool = False,
) -> Fitted:
    """The whole search from soft counts ``start``; the topics of ``prior.base`` stay first and in their order.

    ``collapsed``: labels are refined by collapsed moves at the end.
    """
    soft_trace: list[Step] = []
    soft = soft_topics(documents, start, prior, charges, target, budget, soft_trace)
    closed, closing = close(documents, soft, prior, budget)
    counts = topic_counts(closed, prior)
    fixed = prior.base.shape[1]
    order = np.concatenate([np.arange(fixed), fixed + np.argsort(-counts[:, fixed:].sum(axis=0), kind="stable")])
    place = np.argsort(order)
    labels = place[label_cells(documents, soft, prior)].astype(np.int32)
    outcome = _hard_labels(documents, labels, soft.G, charges, prior.base, budget, tol, max_iter, collapsed)
    state = outcome.state
    words = np.ascontiguousarray(counts[:, order].T)
    n_iter = len(soft_trace) + closing + len(outcome.trace) - 1
    return Fitted(words, state.labels, state.counts, outcome.trace, soft_trace, n_iter, outcome.converged)


def _hard_labels(
    documents: Documents,
    labels: Array,
    G: int,
    charges: Charges,
    base: Array,
    budget: Budget,
    tol: float,
    max_iter: int,
    collapsed: bool,
) -> Outcome:
    """Labels hardened and, if wished, refined; what there is so far if the user interrupts."""
    try:
        outcome = harden(documents, labels, G, charges, base, budget, tol, max_iter)
    except KeyboardInterrupt:
        budget.interrupted = True
        outcome = harden(documents, labels, G, charges, base, budget, tol, max_iter)
    if not collapsed:
        return outcome
    try:
        refined = refine(documents, outcome.state, charges, base, budget, tol, max_iter)
    except KeyboardInterrupt:
        budget.interrupted = True
        return outcome._replace(converged=False)
    return refined._replace(trace=[*outcome.trace, *refined.trace])
