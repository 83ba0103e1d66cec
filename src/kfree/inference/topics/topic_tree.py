"""The order in which topics are merged after a fit, the pair with the most alike words first, down to one."""

import numpy as np

from kfree.families import Array
from kfree.inference.topics.topic_goal import TopicCounts, TopicGoal
from kfree.inference.topics.topic_merges import merge_changes
from kfree.rows import Documents


def merge_tree(documents: Documents, counts: TopicCounts, goal: TopicGoal) -> Array:
    """(G - 1, 4) Merges, one a row, as scipy writes trees: two numbers, a height, the topics in it.

    Numbers below G are topics, G + i is the result of merge i. Of all pairs there are, the one is merged whose words
    then cost least more: that part of J alone. By the whole of J one topic would soon take in all others, since with
    the labels fixed every document that holds both saves their mixing. The height is that cost in nats, or that of an
    earlier merge, if higher.
    """
    G = len(counts.words)
    counts = TopicCounts(*(table.copy() for table in counts))
    of_words = goal._replace(mix=0.0, lam_local=np.zeros_like(goal.lam_local), lam_global=0.0)
    costs, number, size = np.full((G, G), np.inf), np.arange(G), np.ones(G)
    price_pairs(documents, counts, np.stack(np.triu_indices(G, 1), axis=1), of_words, costs)
    tree = np.empty((G - 1, 4))
    for i in range(G - 1):
        p, q = divmod(int(costs.argmin()), G)
        tree[i] = *sorted((number[p], number[q])), costs[p, q], size[p] + size[q]
        for table in counts:
            table[p] += table[q]
        costs[q] = costs[:, q] = np.inf
        number[p], size[p], size[q] = G + i, size[p] + size[q], 0
        others = np.setdiff1d(np.flatnonzero(size), [p])
        price_pairs(documents, counts, np.sort(np.stack([np.full_like(others, p), others], axis=1)), of_words, costs)
    tree[:, 2] = np.maximum.accumulate(np.maximum(tree[:, 2], 0.0))
    return tree


def price_pairs(documents: Documents, counts: TopicCounts, pairs: Array, goal: TopicGoal, costs: Array) -> None:
    """Fill ``costs`` (G, G) with what merging each of the pairs (m, 2) adds to J."""
    costs[pairs[:, 0], pairs[:, 1]] = merge_changes(documents, counts, pairs, goal)


def cut_tree(tree: Array, n: int) -> Array:
    """For each topic the number of its group (those of one group are equal) when n are left, (G,)."""
    G = len(tree) + 1
    group = np.arange(G)
    for i, (one, two) in enumerate(tree[: G - n, :2]):
        group[(group == one) | (group == two)] = G + i
    return np.unique(group, return_inverse=True)[1].ravel()
