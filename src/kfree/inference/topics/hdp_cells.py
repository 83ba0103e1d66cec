"""The papers' algorithm on cells: points, local clusters, centres (Kulis & Jordan 2012, Algorithm 2)."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, run
from kfree.inference.topics.hard_topics import Charges, Counts, count, objective, word_prices
from kfree.inference.topics.topic_search import Fitted
from kfree.kernels import kernels
from kfree.rows import Documents


class Paper(NamedTuple):
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
    documents: Documents, state: Paper, charges: Charges, prices: Prices, order: Array, cells: Array
) -> Paper:
    """Part 1 of a pass: cells one by one, in the given order of documents and of cells inside them."""
    labels, held, n_held = state.labels.copy(), state.held.copy(), state.n_held.copy()
    where = np.zeros(2, np.int64)
    charge = (charges.pseudo, charges.lam_local, charges.lam_global)
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


def move_clusters(documents: Documents, state: Paper, charges: Charges, prices: Prices) -> Paper:
    """Part 2 of a pass: the cells of a topic in a document together."""
    labels, where = state.labels.copy(), np.zeros(2, np.int64)
    rest = (charges.pseudo, charges.lam_global, state.held, state.n_held, state.labels, labels, where)
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


def _without_empty(documents: Documents, labels: Array, held: Array, n_held: Array, prices: Prices) -> Paper:
    """Drop empty local clusters, then empty topics; the rest keeps its order. ``words`` become those of the labels."""
    number = np.full(prices.n, -1, np.int32)
    used = np.unique(labels)
    number[used] = np.arange(used.size)
    prices.table = np.ascontiguousarray(prices.table[:, used])
    prices.n = used.size
    labels = number[labels]
    for j in range(documents.n):
        start = 2 * documents.indptr[j]
        mine = set(labels[documents.indptr[j] : documents.indptr[j + 1]].tolist())
        kept = [p for p in number[held[start : start + n_held[j]]].tolist() if p in mine]
        held[start : start + len(kept)], n_held[j] = kept, len(kept)
    words = count(documents, labels, used.size, np.zeros((documents.p, 0))).words
    return Paper(labels, held, n_held, words)


def one_pass(documents: Documents, state: Paper, charges: Charges, order: Array, cells: Array) -> Paper:
    """Cells, local clusters, centres: the whole pass."""
    prices = Prices(documents, state.words, charges.pseudo)
    return move_clusters(documents, move_cells(documents, state, charges, prices, order, cells), charges, prices)


def shuffled(documents: Documents, rng: np.random.Generator) -> tuple[Array, Array]:
    """Documents in random order, and the cells of each in random order."""
    inside = np.lexsort((rng.random(documents.data.size), documents.owner))
    return rng.permutation(documents.n), inside


def first_state(documents: Documents, seeds: Array) -> Paper:
    """Topics that are single documents, no document holding any; or one topic that holds all, without seeds."""
    cells = documents.data.size
    held, n_held = np.zeros(2 * cells, np.int32), np.zeros(documents.n, np.int64)
    labels = np.full(cells, -1, np.int32)
    if seeds.size == 0:
        labels[:], n_held[:] = 0, np.diff(documents.indptr) > 0
        return Paper(labels, held, n_held, documents.word_totals[None])
    words = np.zeros((seeds.size, documents.p))
    for p, j in enumerate(seeds):
        cells_of = slice(documents.indptr[j], documents.indptr[j + 1])
        words[p, documents.indices[cells_of]] = documents.data[cells_of]
    return Paper(labels, held, n_held, words)


def fit_paper(
    documents: Documents,
    seeds: Array,
    charges: Charges,
    rng: np.random.Generator,
    budget: Budget,
    tol: float,
    max_iter: int,
) -> Fitted:
    """Passes until nothing (at most ``tol`` of the cells) changes; topics by falling weight."""
    no_base = np.zeros((documents.p, 0))

    def step(state: Paper) -> tuple[Paper, Info]:
        new = one_pass(documents, state, charges, *shuffled(documents, rng))
        value = objective(documents, count(documents, new.labels, len(new.words), no_base), charges)
        changed = float((new.labels != state.labels).mean())
        return new, Info(value, abs(value), changed, 0, len(new.words))

    start = first_state(documents, seeds)
    budget.best = None
    trace: list[float] = []
    try:
        outcome = run(step, start, budget, phase="paper", tol=tol, max_iter=max_iter)
        state, trace, converged = outcome.state, outcome.trace, outcome.converged
    except KeyboardInterrupt:
        budget.interrupted, state, converged = True, budget.best, False
    if state is None or state.labels.min() < 0:  # stopped before the first pass was over
        state, trace = first_state(documents, np.zeros(0, int)), []
    order = np.argsort(-state.words.sum(axis=1), kind="stable")
    labels = np.argsort(order)[state.labels].astype(np.int32)
    counts: Counts = count(documents, labels, len(order), no_base)
    trace = trace or [objective(documents, counts, charges)]
    return Fitted(counts.words, labels, counts, trace, [], max(1, len(trace)), converged)
