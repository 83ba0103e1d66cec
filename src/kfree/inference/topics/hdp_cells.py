"""The papers' algorithm on cells: points, local clusters, centres (Kulis & Jordan 2012, Algorithm 2)."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Info, attempt, run
from kfree.inference.topics.hard_topics import Labelled, count, labelled, word_prices
from kfree.inference.topics.topic_goal import FoundTopics, TopicGoal, no_topics
from kfree.inference.topics.topic_seeds import seed_documents
from kfree.kernels import kernels
from kfree.rows import Documents


class PaperState(NamedTuple):
    """State between passes."""

    labels: Array  # (cells,) int32; -1 before the first pass
    held: Array  # (2 cells,) topics of each document, oldest first, from twice the document's first cell on
    n_held: Array  # (D,)
    words: Array  # (G, V) counts of the topics, or what stands for them before the first pass


class Prices:
    """-log mu of the topics, with room for new ones; fixed in a pass but for openings."""

    def __init__(self, documents: Documents, words: Array, pseudo: Array):
        table = word_prices(documents, words, pseudo)
        self.pseudo, self.n = pseudo, table.shape[1]
        self.table = np.full((table.shape[0], 2 * self.n + 8), np.inf)
        self.table[:, : self.n] = table
        self.best, self.arg = table.min(axis=1), table.argmin(axis=1)

    def open(self, counts: Array) -> int:
        """Append the topic that holds ``counts`` (V,) alone; its number."""
        if self.n == self.table.shape[1]:
            table = np.full((self.table.shape[0], 2 * self.n), np.inf)
            table[:, : self.n] = self.table
            self.table = table
        column = np.log(counts.sum() + self.pseudo.sum()) - np.log(counts + self.pseudo)
        self.table[:, self.n] = column
        better = column < self.best  # strict: a tie stays with the older topic
        self.best[better], self.arg[better] = column[better], self.n
        self.n += 1
        return self.n - 1


def move_cells(
    documents: Documents, state: PaperState, goal: TopicGoal, prices: Prices, order: Array, cells: Array
) -> PaperState:
    """Part 1 of a pass: cells one by one, in the given order of documents and of cells inside them."""
    labels, held, n_held = state.labels.copy(), state.held.copy(), state.n_held.copy()
    where = np.zeros(2, np.int64)
    charge = (goal.pseudo, goal.lam_local, goal.lam_global)
    settled = (held, n_held, labels, where)
    while kernels().paper_cells(
        *documents.cells, order, cells, prices.table, *charge, prices.best, prices.arg, *settled
    ):
        j = order[where[0]]
        k = cells[documents.indptr[j] + where[1]]
        counts = np.zeros(documents.p)
        counts[documents.indices[k]] = documents.data[k]
        labels[k] = held[2 * documents.indptr[j] + n_held[j]] = prices.open(counts)
        n_held[j] += 1
        where[1] += 1
    return _without_empty(documents, labels, held, n_held, prices)


def move_clusters(documents: Documents, state: PaperState, goal: TopicGoal, prices: Prices) -> PaperState:
    """Part 2 of a pass: the cells of a topic in a document together."""
    labels, where = state.labels.copy(), np.zeros(2, np.int64)
    rest = (goal.pseudo, goal.lam_global, state.held, state.n_held, state.labels, labels, where)
    while kernels().paper_clusters(*documents.cells, prices.table, prices.n, *rest):
        j, slot = int(where[0]), int(where[1])
        mine = np.arange(documents.indptr[j], documents.indptr[j + 1])
        mine = mine[state.labels[mine] == state.held[2 * documents.indptr[j] + slot]]
        counts = np.zeros(documents.p)
        counts[documents.indices[mine]] = documents.data[mine]
        labels[mine] = prices.open(counts)
        where[1] += 1
    held, n_held = state.held.copy(), state.n_held.copy()
    for j in range(documents.n):  # a topic taken by two local clusters is one, as old as the older
        start = 2 * documents.indptr[j]
        cells = slice(documents.indptr[j], documents.indptr[j + 1])
        old = held[start : start + n_held[j]]
        to = dict(zip(state.labels[cells].tolist(), labels[cells].tolist()))
        new = list(dict.fromkeys(to[p] for p in old.tolist()))
        held[start : start + len(new)], n_held[j] = new, len(new)
    return _without_empty(documents, labels, held, n_held, prices)


def _without_empty(documents: Documents, labels: Array, held: Array, n_held: Array, prices: Prices) -> PaperState:
    """Drop empty local clusters, then empty topics; the rest keeps its order. ``words`` become those of the labels."""
    used = np.bincount(labels, minlength=prices.n) > 0
    number = compact(used)
    prices.table = np.ascontiguousarray(prices.table[:, : prices.n][:, used])
    prices.n = prices.table.shape[1]
    for j in range(documents.n):
        start = 2 * documents.indptr[j]
        mine = set(labels[documents.indptr[j] : documents.indptr[j + 1]].tolist())
        kept = [p for p in held[start : start + n_held[j]].tolist() if p in mine]
        held[start : start + len(kept)], n_held[j] = number[kept], len(kept)
    labels = number[labels]
    words = count(documents, labels, prices.n, no_topics(documents.p)).words
    return PaperState(labels, held, n_held, words)


def one_pass(documents: Documents, state: PaperState, goal: TopicGoal, order: Array, cells: Array) -> PaperState:
    """Cells, local clusters, centres: the whole pass."""
    prices = Prices(documents, state.words, goal.pseudo)
    return move_clusters(documents, move_cells(documents, state, goal, prices, order, cells), goal, prices)


def shuffled(documents: Documents, rng: np.random.Generator) -> tuple[Array, Array]:
    """Documents in random order, and the cells of each in random order."""
    inside = np.lexsort((rng.random(documents.data.size), documents.owner))
    return rng.permutation(documents.n), inside


def first_state(documents: Documents, seeds: Array) -> PaperState:
    """Topics that are single documents, no document holding any; or one topic that holds all, without seeds."""
    if seeds.size == 0:
        return one_topic_state(documents)
    cells, words = documents.data.size, np.zeros((seeds.size, documents.p))
    for p, j in enumerate(seeds):
        cells_of = slice(documents.indptr[j], documents.indptr[j + 1])
        words[p, documents.indices[cells_of]] = documents.data[cells_of]
    labels, held = np.full(cells, -1, np.int32), np.zeros(2 * cells, np.int32)
    return PaperState(labels, held, np.zeros(documents.n, np.int64), words)


def one_topic_state(documents: Documents) -> PaperState:
    """One topic that every document holds."""
    cells, n_held = documents.data.size, (np.diff(documents.indptr) > 0).astype(np.int64)
    labels, held = np.zeros(cells, np.int32), np.zeros(2 * cells, np.int32)
    return PaperState(labels, held, n_held, documents.word_totals[None])


def paper_topics(documents: Documents, goal: TopicGoal, budget: Budget, rng: np.random.Generator) -> FoundTopics:
    """Passes until nothing (at most ``tol`` of the cells) changes; topics by falling weight."""
    seeds = seed_documents(documents, goal, budget, rng)

    def step(state: PaperState) -> tuple[PaperState, Info]:
        new = one_pass(documents, state, goal, *shuffled(documents, rng))
        value = labelled(documents, new.labels, len(new.words), goal).objective
        changed = float((new.labels != state.labels).mean())
        return new, Info(value, abs(value), changed, 0, len(new.words))

    start = attempt(lambda: first_state(documents, seeds), lambda: one_topic_state(documents), budget)
    outcome = run(step, start, budget, phase="paper", tol=goal.tol, max_iter=goal.max_iter)

    def finish() -> Labelled:
        # stopped before the first pass was over: no cell has a topic yet
        state = outcome.state if outcome.trace else one_topic_state(documents)
        order = np.argsort(-state.words.sum(axis=1), kind="stable")
        return labelled(documents, np.argsort(order)[state.labels].astype(np.int32), len(order), goal)

    labels, counts, value = attempt(finish, finish, budget)
    trace = outcome.trace or [value]
    return FoundTopics(counts.words, labels, counts, trace, [], len(trace), outcome.converged)
