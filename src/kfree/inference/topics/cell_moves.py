"""Hard labels refined cell by cell: topics and shares follow every move."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.inference.topics.hard_topics import Labelled, info_of, labelled
from kfree.inference.topics.topic_goal import TopicGoal
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.rows import Documents


def refine(documents: Documents, start: Labelled, goal: TopicGoal, budget: Budget) -> Outcome:
    """Passes over all cells, each to the topic that lowers J most, until at most ``tol`` of them move."""
    data, indices, indptr = documents.cells

    def one_span(span: slice, words: Array, size: Array, shares: Array, labels: Array) -> int:
        starts, weight = indptr[span.start : span.stop + 1], documents.weight[span]
        prices = (goal.pseudo, goal.mix, goal.lam_local[span], goal.lam_global, TOPICS.tiny_gain)
        return kernels().collapse_cells(data, indices, starts, weight, *prices, words, size, shares, labels)

    def step(state: Labelled) -> tuple[Labelled, Info]:
        words, shares = (np.ascontiguousarray(table.T) for table in state.counts)
        labels, moved = state.labels.copy(), 0
        size = words.sum(axis=0)
        for span in documents.document_spans:
            if not budget.spent:
                moved += one_span(span, words, size, shares[span], labels)
        new = labelled(documents, labels, len(state.counts.words), goal)
        return new, info_of(new, moved / max(labels.size, 1))

    return run(step, start, budget, phase="collapsed", tol=goal.tol, max_iter=goal.max_iter, guard=start.objective)
