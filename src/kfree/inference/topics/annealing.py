"""The search by annealing: seeds, soft passes, merges, melting, closing, hardening."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, attempt, repeat
from kfree.inference.topics.cell_moves import refine
from kfree.inference.topics.hard_topics import Labelled, harden, label_cells, labelled
from kfree.inference.topics.leave_one_out import close
from kfree.inference.topics.soft_topics import Annealed, Soft, anneal, soft_pass, topic_counts
from kfree.inference.topics.topic_goal import FoundTopics, TopicGoal
from kfree.inference.topics.topic_merges import merge_topics
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_seeds import first_topics
from kfree.rows import Documents


def warm_up(documents: Documents, start: Annealed, goal: TopicGoal, budget: Budget) -> Annealed:
    """The first soft passes."""
    return anneal(documents, start, goal, _cooling(TOPICS.soft_passes), budget, "soft")


def melt(documents: Documents, start: Annealed, goal: TopicGoal, budget: Budget) -> Annealed:
    """Soft passes that let go of what merges have fixed."""
    return anneal(documents, start, goal, _cooling(TOPICS.melt_passes), budget, "melt")


def _cooling(passes: int) -> Array:
    """Inverse temperatures that rise to 1."""
    return np.geomspace(TOPICS.warm, 1.0, passes)


def soft_topics(documents: Documents, start: Soft, goal: TopicGoal, budget: Budget) -> Annealed:
    """Soft passes, merges, melting; what there is so far if the user interrupts."""
    stages = (warm_up, merge_topics, melt)

    def next_stage(state: tuple[Annealed, int]) -> tuple[tuple[Annealed, int], bool]:
        annealed, number = state
        return (stages[number](documents, annealed, goal, budget), number + 1), False

    (annealed, _), _ = repeat(next_stage, (Annealed(start, []), 0), budget, most=len(stages))

    def complete() -> Annealed:  # seeds do not hold all tokens: one pass is made in any case
        soft = annealed.soft if annealed.trace else soft_pass(documents, annealed.soft, goal, 1.0)[0]
        return annealed._replace(soft=soft)

    return attempt(complete, complete, budget)


def first_labels(documents: Documents, soft: Soft, closed: Soft, goal: TopicGoal) -> tuple[Array, Labelled]:
    """Counts of words (G, V) after closing, and labels from before it, new topics by falling weight."""
    counts, K = topic_counts(closed, goal), goal.n_known
    order = np.concatenate([np.arange(K), K + np.argsort(-counts[:, K:].sum(axis=0), kind="stable")])
    labels = np.argsort(order)[label_cells(documents, soft, goal)].astype(np.int32)
    return np.ascontiguousarray(counts[:, order].T), labelled(documents, labels, soft.G, goal)


def anneal_topics(documents: Documents, goal: TopicGoal, budget: Budget, rng: np.random.Generator) -> FoundTopics:
    """The whole search."""
    annealed = soft_topics(documents, first_topics(documents, goal, budget, rng), goal, budget)
    closed, closing = close(documents, annealed.soft, goal, budget)

    def label() -> tuple[Array, Labelled]:
        return first_labels(documents, annealed.soft, closed, goal)

    words, start = attempt(label, label, budget)
    outcome = harden(documents, start, goal, budget)
    trace = [start.objective, *outcome.trace]
    if goal.refine:
        outcome = refine(documents, outcome.state, goal, budget)
        trace += outcome.trace
    labels, counts, _ = outcome.state
    n_iter = len(annealed.trace) + closing + len(trace) - 1
    return FoundTopics(words, labels, counts, trace, annealed.trace, n_iter, outcome.converged)
