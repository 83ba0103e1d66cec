"""Topics of documents that lie in blocks elsewhere: passes over all of them, which follow from the topics alone.

A pass finds the shares of every document anew, so that nothing needs to be kept of it. What a cell adds to the counts
of its word is cut to a whole multiple of a unit before it is added up: neither the order of documents nor their
blocks, machines or threads change a bit.
"""

from collections.abc import Callable
from itertools import count as numbers
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.loop import Budget, Info, Outcome, attempt, run
from kfree.inference.topics.fold_in import fold_in
from kfree.inference.topics.hard_topics import entropic, likely_labels, topic_costs
from kfree.inference.topics.leave_one_out import all_counts, settle
from kfree.inference.topics.soft_topics import Soft, width_of
from kfree.inference.topics.topic_goal import TopicGoal, topic_means
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.rows import Documents
from kfree.rows.blocks import Beside, RowBlock
from kfree.rows.documents import Block
from kfree.rows.exact_sums import CostSum, WeightRange

# Bits of the largest count that there may be.
_BITS = 60
# Cells times topics that are counted together.
_TOGETHER = 2**20
# Under which name a block keeps the main topics of its documents.
_MAIN = "main topics"


class WordUnits(NamedTuple):
    """What tokens are counted in: a power of two for each word, so that sums fit."""

    exponent: Array  # (V,) int: counts are multiples of 2 ** -exponent

    @classmethod
    def of(cls, cells: Array, most: Array) -> "WordUnits":
        """Of words that are in so many cells (V,), each of which has at most so many weighted tokens (V,)."""
        return cls(_BITS - np.frexp(cells * most)[1])

    def wholes(self, words: Array) -> Array:
        """How many units a token of each of some words has."""
        return np.ldexp(1.0, self.exponent[words])

    def tokens(self, units: Array) -> Array:
        """Tokens (K, V) of so many units."""
        return units * np.ldexp(1.0, -self.exponent)


class TopicPass(NamedTuple):
    """All that the answers of documents follow from."""

    number: int  # what blocks keep belongs to the pass of this number
    words: Array  # (K, V) counts that the topics are made of
    goal: TopicGoal  # but for the prices of topics in documents
    price: Callable[[Documents], Array]  # these
    burst: float
    units: WordUnits
    weights: WeightRange  # of the documents
    dearest: float  # no document costs more

    @property
    def mean(self) -> Array:
        """Word probabilities of the topics, (V, K)."""
        return topic_means(self.words, self.goal.pseudo)


class Passed(NamedTuple):
    """What documents say in a pass; parts are added."""

    soft: Array  # (V, K) int64 units, by the counts of the others
    hard: sp.csr_matrix  # (K, V) int64 units, by labels
    cost: Array  # (3,) limbs of what documents add to J

    def joined(self, other: "Passed") -> "Passed":
        """Of these documents and others."""
        return Passed(self.soft + other.soft, self.hard + other.hard, self.cost + other.cost)


# -- on the side of a block --------------------------------------------------------------------------------------------


def pass_documents(block: RowBlock, beside: Beside, asked: TopicPass) -> Passed:
    """Shares of the documents by the topics; then soft counts by the counts of the others, and hard ones by labels."""
    K, V = asked.words.shape
    if not block.X.shape[0]:
        return Passed(np.zeros((V, K), np.int64), sp.csr_matrix((K, V), dtype=np.int64), np.zeros(3, np.int64))
    documents = Documents(block.X, block.weight)
    goal, mean = asked.goal._replace(lam_local=asked.price(documents)), asked.mean
    share = fold_in(documents, mean)
    beside[_MAIN] = asked.number, share.argmax(axis=1)
    labels = likely_labels(documents, mean, share, goal.mix, goal.lam_local)
    mass = asked.words.sum(axis=1) + goal.pseudo.sum()
    soft = settle(documents, soft_counts(documents, share, asked.words), goal, asked.burst, mass)
    return Passed(
        _closed(documents, soft, goal, asked, mass),
        _labelled(documents, labels, asked),
        _cost(documents, labels, goal, asked),
    )


def soft_counts(documents: Documents, share: Array, words: Array) -> Soft:
    """Soft counts of documents that have these shares (D, K), with topics of these counts (K, V)."""
    K, c = len(words), TOPICS.concentration
    in_documents, of_words = (np.zeros((n, width_of(K)), np.float32) for n in (documents.n, documents.p))
    # shares are those of the tokens and of a few pseudo-tokens
    in_documents[:, :K] = np.maximum(share * (documents.length + c)[:, None] - c / K, 0.0)
    of_words[:, :K] = words.T
    return Soft(in_documents, of_words, K)


def _closed(documents: Documents, soft: Soft, goal: TopicGoal, asked: TopicPass, mass: Array) -> Array:
    """A closing pass as in memory, its words in units."""
    tail = all_counts(documents, soft, goal, asked.burst, mass)
    topics, share, part, pseudo, *rest = tail
    units, scratch, door = np.zeros((documents.p, soft.G), np.int64), np.zeros_like(share), Lock()
    size = max(1, _TOGETHER // topics.shape[1])

    def of_cells(block: Block, cells: slice, words: Array, own: Array, ratio: Array) -> None:
        w = words[cells]
        found, alone = np.zeros((w.size, topics.shape[1]), np.float32), np.arange(w.size + 1)
        what = (own[cells], ratio[cells], block.rows[cells], alone, 0, w.size)
        kernels().close_words(*what, topics[w], share, part, pseudo[w], *rest, found)
        first = np.flatnonzero(np.diff(w, prepend=-1))
        sums = np.add.reduceat(_rounded(found[:, : soft.G] * asked.units.wholes(w)[:, None]), first, axis=0)
        with door:
            units[w[first]] += sums

    def of_block(block: Block) -> None:
        own, ratio = (np.empty(block.data.size, np.float32) for _ in range(2))
        kernels().close_documents(block.data, block.rows, block.indptr, *tail, own, ratio, scratch)
        if documents.weight.size:
            ratio *= documents.weight[block.rows].astype(np.float32)
        words = np.repeat(np.arange(documents.p), np.diff(block.indptr))
        for start in range(0, words.size, size):
            of_cells(block, slice(start, start + size), words, own, ratio)

    documents.do(of_block, documents.blocks, 40.0 * documents.data.size * soft.G)
    return units


def _rounded(counts: Array) -> Array:
    return np.rint(counts, out=counts).astype(np.int64)


def _labelled(documents: Documents, labels: Array, asked: TopicPass) -> sp.csr_matrix:
    """Units of the words in the topics by labels."""
    tokens = documents.data * documents.weight[documents.owner] if documents.weight.size else documents.data
    units = _rounded(tokens * asked.units.wholes(documents.indices))
    return sp.csr_matrix((units, (labels, documents.indices)), shape=asked.words.shape)


def _cost(documents: Documents, labels: Array, goal: TopicGoal, asked: TopicPass) -> Array:
    """Limbs of the cost of mixing, and of the topics that documents hold."""
    held = label_counts(documents, labels, len(asked.words))
    owner = np.repeat(np.arange(documents.n), np.diff(held.indptr))
    mixing = entropic(documents.length) - np.bincount(owner, entropic(held.data), minlength=documents.n)
    cost = goal.mix * np.maximum(mixing, 0.0) + goal.lam_local * np.diff(held.indptr)
    return CostSum(asked.dearest, asked.weights).limbs(cost, documents.weight)


def label_counts(documents: Documents, labels: Array, K: int) -> sp.csr_matrix:
    """(D, K) tokens of the topics in the documents."""
    return sp.csr_matrix((documents.data, (documents.owner, labels)), shape=(documents.n, K))


def main_topics(block: RowBlock, beside: Beside, number: int, mean: Array) -> Array:
    """The topic with the largest share of each document."""
    if not block.X.shape[0]:
        return np.zeros(0, np.intp)
    if beside.get(_MAIN, (None,))[0] != number:
        beside[_MAIN] = number, fold_in(Documents(block.X, block.weight), mean).argmax(axis=1)
    return beside[_MAIN][1]


def count_main_topics(block: RowBlock, beside: Beside, number: int, mean: Array, exponent: int) -> Array:
    """(K,) int64 How many documents there are of each main topic, in units of 2 ** -exponent."""
    found = np.zeros(mean.shape[1], np.int64)
    weight = block.weight if block.weight.size else np.ones(block.X.shape[0])
    np.add.at(found, main_topics(block, beside, number, mean), _rounded(weight * np.ldexp(1.0, exponent)))
    return found


# -- on the side of whoever asks ---------------------------------------------------------------------------------------


class Everywhere(NamedTuple):
    """What a pass over all documents has shown of topics."""

    asked: TopicPass
    closed: Array  # (K, V) the counts that documents make of them
    hard: Array  # (K, V) counts by labels
    objective: float  # J of the labels
    origin: Array  # (K,) which of the topics before it each is
    passes: int  # made before


def close_everywhere(ask: Callable[[TopicPass], Passed], first: TopicPass, budget: Budget) -> Outcome:
    """Passes over all documents that start from given topics, as long as J of the labels falls.

    The first is made in any case, and the second is taken whatever its J: from then on topics are those that all
    documents make.
    """
    number = numbers(first.number)

    def look(words: Array, passes: int) -> Everywhere:
        """Topics in the order of their weight; those that no cell wants are none."""
        origin = np.argsort(-words.sum(axis=1), kind="stable")
        while True:
            asked = first._replace(number=next(number), words=np.ascontiguousarray(words[origin]))
            passed = ask(asked)
            hard = asked.units.tokens(passed.hard.toarray())
            used = hard.sum(axis=1) > 0
            if used.all() or first.goal.n_topics is not None:
                break
            origin = origin[used]
        closed = asked.units.tokens(np.ascontiguousarray(passed.soft.T))
        return Everywhere(asked, closed, hard, _objective(asked, passed, hard), origin, passes)

    def step(state: Everywhere) -> tuple[Everywhere, Info]:
        new = look(state.closed, state.passes + 1)
        if state.passes and not new.objective < state.objective:
            return state, Info(state.objective, 0.0, 0.0, 0, len(state.hard), idle=True)
        done = new.passes >= TOPICS.passes_everywhere  # all passes that are wanted are made
        changed = 0.0 if done else _changed(state.hard, new)
        return new, Info(new.objective, abs(new.objective), changed, 0, len(new.hard))

    def begin() -> Everywhere:
        return look(first.words, 0)

    start, goal = attempt(begin, begin, budget), first.goal
    how = {"phase": "all documents", "tol": goal.tol, "max_iter": goal.max_iter}
    outcome = run(step, start, budget, guard=None, **how)  # type: ignore[arg-type]
    return outcome._replace(trace=outcome.trace or [start.objective])


def _objective(asked: TopicPass, passed: Passed, hard: Array) -> float:
    cost = CostSum(asked.dearest, asked.weights)
    cost.add(passed.cost)
    words = float(topic_costs(hard, asked.goal.pseudo).sum())
    return words + cost.value + asked.goal.lam_global * int((hard.sum(axis=1) > 0).sum())


def _changed(before: Array, new: Everywhere) -> float:
    """Share of the tokens that are in another topic than before, as far as the counts of words tell."""
    kept = before[new.origin]
    moved: Any = np.abs(new.hard - kept).sum() + before.sum() - kept.sum()
    return float(moved / (2.0 * before.sum()))
