"""Merging topics by the exact change of the objective."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget
from kfree.inference.topics.hard_topics import Charges, Counts, count, entropic, label_cells
from kfree.inference.topics.soft_topics import Prior, Soft, Step, anneal, topic_powers, width_of
from kfree.kernels import kernels
from kfree.rows import Documents

#: Topics that may be merged with a topic: the nearest ones.
NEAREST = 6
#: Share of the topics that may be merged in one round.
A_ROUND = 0.15
#: Soft passes after a round.
PASSES = 4


def near_pairs(documents: Documents, soft: Soft, prior: Prior) -> Array:
    """Pairs (p < q) of topics one of which is among the nearest of the other by sum_w sqrt(mu_pw mu_qw)."""
    G, root = soft.G, topic_powers(documents, soft, prior, 0.5)[0]

    def of_words(span: slice) -> Array:
        part = root[span, :G]
        return (part.T @ part).astype(np.float64)

    likeness = np.zeros((G, G))
    for part in documents.each(of_words, documents.word_spans, float(root.size) * G / 8):
        likeness += part
    np.fill_diagonal(likeness, -np.inf)
    near = np.argsort(-likeness, axis=1, kind="stable")[:, : min(NEAREST, G - 1)]
    pairs = np.stack([np.repeat(np.arange(G), near.shape[1]), near.ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def merge_changes(documents: Documents, counts: Counts, pairs: Array, charges: Charges) -> Array:
    """J after merging each pair, less J before."""
    changes = np.empty(len(pairs))
    tail = (counts.documents, documents.weight, charges.lam_local, charges.mix)

    def of_part(part: slice) -> None:
        kernels().merge_changes(pairs[part], counts.words, charges.pseudo, *tail, changes[part])

    parts = [slice(start, start + 16) for start in range(0, len(pairs), 16)]
    for _ in documents.each(of_part, parts, float(len(pairs)) * (documents.p + documents.n)):
        pass
    eta, size = charges.pseudo.sum(), counts.words.sum(axis=1)
    one, two = size[pairs[:, 0]], size[pairs[:, 1]]
    sizes = entropic(one + two + eta) - entropic(one + eta) - entropic(two + eta) + entropic(eta)
    return changes + sizes - charges.lam_global


def accept(pairs: Array, changes: Array, G: int, target: int | None) -> list[tuple[int, int]]:
    """The pairs to merge: best first, each topic once, a share of the topics a round, until ``target`` is reached."""
    most = max(1, int(A_ROUND * G))
    if target is not None:
        most = min(most, G - target)
    taken: set[int] = set()
    merged: list[tuple[int, int]] = []
    for t in np.argsort(changes, kind="stable"):
        p, q = int(pairs[t, 0]), int(pairs[t, 1])
        if len(merged) >= most or not (changes[t] < 0 or target is not None):
            break
        if p not in taken and q not in taken:
            taken |= {p, q}
            merged.append((p, q))
    return merged


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


def merge_topics(
    documents: Documents,
    soft: Soft,
    prior: Prior,
    charges: Charges,
    target: int | None,
    budget: Budget,
    trace: list[Step],
) -> Soft:
    """Merge while that lowers the objective, or until ``target`` topics are left; soft passes in between.

    Topics of earlier documents (the first ones) are never merged with each other: their numbers are promised.
    """
    fixed = prior.base.shape[1]
    least = max(1, fixed, target or 1)
    while least < soft.G and not budget.spent:
        labels = label_cells(documents, soft, prior)
        counts = count(documents, labels, soft.G, prior.base)
        pairs = near_pairs(documents, soft, prior)
        pairs = pairs[pairs[:, 1] >= fixed]
        merged = accept(pairs, merge_changes(documents, counts, pairs, charges), soft.G, target)
        if not merged:
            break
        soft = joined(soft, merged)
        budget.best = soft
        soft = anneal(documents, soft, prior, np.ones(PASSES), budget, "merge", trace)
    return soft
