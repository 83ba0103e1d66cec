"""Merging topics by the exact change of the objective."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, repeat
from kfree.inference.merges import disjoint
from kfree.inference.topics.hard_topics import count, entropic, label_cells
from kfree.inference.topics.soft_topics import Annealed, Soft, anneal, topic_powers, width_of
from kfree.inference.topics.topic_goal import TopicCounts, TopicGoal
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.rows import Documents
from kfree.rows.threads import cut


def near_pairs(documents: Documents, soft: Soft, goal: TopicGoal) -> Array:
    """Pairs (p < q) of topics one of which is among the nearest of the other by sum_w sqrt(mu_pw mu_qw)."""
    G, root = soft.G, topic_powers(documents, soft, goal, 0.5)[0]

    def of_words(span: slice) -> Array:
        part = root[span, :G]
        return (part.T @ part).astype(np.float64)

    likeness = np.zeros((G, G))
    for part in documents.each(of_words, documents.word_spans, float(root.size) * G / 8):
        likeness += part
    np.fill_diagonal(likeness, -np.inf)
    near = np.argsort(-likeness, axis=1, kind="stable")[:, : min(TOPICS.merge_nearest, G - 1)]
    pairs = np.stack([np.repeat(np.arange(G), near.shape[1]), near.ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def merge_changes(documents: Documents, counts: TopicCounts, pairs: Array, goal: TopicGoal) -> Array:
    """J after merging each pair, less J before."""
    changes = np.empty(len(pairs))
    tail = (counts.documents, documents.weight, goal.lam_local, goal.mix)

    def of_part(part: slice) -> None:
        kernels().merge_changes(pairs[part], counts.words, goal.pseudo, *tail, changes[part])

    documents.do(of_part, cut(len(pairs), TOPICS.merge_span), float(len(pairs)) * (documents.p + documents.n))
    eta, size = goal.pseudo.sum(), counts.words.sum(axis=1)
    one, two = size[pairs[:, 0]], size[pairs[:, 1]]
    sizes = entropic(one + two + eta) - entropic(one + eta) - entropic(two + eta) + entropic(eta)
    return changes + sizes - goal.lam_global


def accept(pairs: Array, changes: Array, G: int, target: int | None) -> list[tuple[int, int]]:
    """The pairs to merge: best first, each topic once, a share of the topics a round, until ``target`` is reached."""
    most = max(1, int(TOPICS.merge_share * G))
    if target is not None:
        most = min(most, G - target)
    wanted = slice(None) if target is not None else changes < 0
    return disjoint(pairs[wanted], changes[wanted], most=most)


def joined(soft: Soft, merged: list[tuple[int, int]]) -> Soft:
    """The state with pairs of topics added up; the lower number stays."""
    keep = np.setdiff1d(np.arange(soft.G), [q for _, q in merged])

    def join(table: Array) -> Array:
        table = table[:, : soft.G].copy()
        for p, q in merged:
            table[:, p] += table[:, q]
        new = np.zeros((table.shape[0], width_of(keep.size)), np.float32)
        new[:, : keep.size] = table[:, keep]
        return new

    return Soft(join(soft.documents), join(soft.words), keep.size)


def merge_topics(documents: Documents, start: Annealed, goal: TopicGoal, budget: Budget) -> Annealed:
    """Merge while that lowers the objective, or until ``n_topics`` are left; soft passes in between.

    Topics of earlier documents (the first ones) are never merged with each other: their numbers are promised.
    """
    least, betas = max(1, goal.n_known, goal.n_topics or 1), np.ones(TOPICS.merge_passes)

    def one_round(state: Annealed) -> tuple[Annealed, bool]:
        merged = _merges(documents, state.soft, goal) if least < state.soft.G else []
        if not merged:
            return state, True
        merging = state._replace(soft=joined(state.soft, merged))
        rounds = 1 + (len(state.trace) - len(start.trace)) // betas.size
        budget.tell("merge", rounds, Info(np.nan, 0.0, np.nan, 0, merging.soft.G))
        return anneal(documents, merging, goal, betas, budget, "settle"), False

    return repeat(one_round, start, budget)[0]


def _merges(documents: Documents, soft: Soft, goal: TopicGoal) -> list[tuple[int, int]]:
    """The pairs of topics to merge now."""
    counts = count(documents, label_cells(documents, soft, goal), soft.G, goal.known)
    pairs = near_pairs(documents, soft, goal)
    pairs = pairs[pairs[:, 1] >= goal.n_known]
    return accept(pairs, merge_changes(documents, counts, pairs, goal), soft.G, goal.n_topics)
