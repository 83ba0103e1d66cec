"""Hard topics: one label a cell; counts, the objective and its passes."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from kfree.families import Array
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.inference.topics.soft_topics import Soft, shares_and_topics
from kfree.inference.topics.topic_goal import TopicCounts, TopicGoal
from kfree.kernels import kernels
from kfree.rows import Documents
from kfree.rows.documents import Block
from kfree.rows.threads import cut, over

# Cells times topics that are looked at together.
_TOGETHER = 2**18


class Labelled(NamedTuple):
    """Labels with the topics their counts make."""

    labels: Array  # (cells,) int32
    counts: TopicCounts
    objective: float  # J


def entropic(y: Array) -> Array:
    """y log y, 0 at 0."""
    return xlogy(y, y)


def label_cells(documents: Documents, soft: Soft, goal: TopicGoal) -> Array:
    """The likeliest topic of each cell."""
    share, topics = shares_and_topics(documents, soft, goal)
    labels = np.empty(documents.data.size, np.int32)

    def of_block(block: Block) -> None:
        kernels().likeliest(block.rows, block.indptr, block.cells, topics, share, labels)

    documents.do(of_block, documents.blocks, float(labels.size) * topics.shape[1])
    return labels


def count(documents: Documents, labels: Array, G: int, known: Array) -> TopicCounts:
    """Counts of labelled cells; ``known`` (V, K) are those of earlier documents."""
    words, shares = np.zeros((G, documents.p)), np.zeros((G, documents.n))
    words[: known.shape[1]] = known.T
    kernels().count_labels(*documents.cells, documents.weight, labels, words, shares)
    return TopicCounts(words, shares)


def labelled(documents: Documents, labels: Array, G: int, goal: TopicGoal) -> Labelled:
    """Labels with their counts and J."""
    counts = count(documents, labels, G, goal.known)
    return Labelled(labels, counts, objective(documents, counts, goal))


def topic_costs(words: Array, pseudo: Array) -> Array:
    """h_p: what the words of each topic cost, (G,)."""

    def of_topic(p: int) -> float:
        used = words[p] > 0
        return float(_rise(words[p, used], pseudo[used]).sum())

    own = np.array(list(over(list(range(len(words))), of_topic, float(words.size))))
    return _rise(words.sum(axis=1), pseudo.sum()) - own


def _rise(n: Array, more: Any) -> Array:
    """``entropic(n + more) - entropic(more)``, to the last digit where n is small beside ``more`` > 0."""
    return n * np.log(n + more) + more * np.log1p(n / more)


def objective(documents: Documents, counts: TopicCounts, goal: TopicGoal) -> float:
    """J: words, mixing, local and global prices; topics without a token are none."""
    mixing = entropic(documents.length) - entropic(counts.documents).sum(axis=0)
    held = goal.lam_local * (counts.documents > 0).sum(axis=0)
    per_document = float((documents.weights * (goal.mix * mixing + held)).sum())
    words = float(topic_costs(counts.words, goal.pseudo).sum())
    return words + per_document + goal.lam_global * int(has_tokens(counts).sum())


def has_tokens(counts: TopicCounts) -> Array:
    """Which topics have tokens, (G,) bool."""
    return counts.words.sum(axis=1) > 0


def word_prices(documents: Documents, words: Array, pseudo: Array) -> Array:
    """-log mu, (V, G) in word-major order."""
    prices, level = np.empty((words.shape[1], len(words))), np.log(words.sum(axis=1) + pseudo.sum())

    def of_words(span: slice) -> None:
        np.subtract(level, np.log(words[:, span].T + pseudo[span, None]), out=prices[span])

    documents.do(of_words, documents.word_spans, 10.0 * words.size)
    return prices


def solve(documents: Documents, labels: Array, prices: Array, mix: float, lam_local: Array) -> Array:
    """Labels of documents solved anew with the topics fixed."""
    labels, prices = labels.copy(), np.ascontiguousarray(prices)

    def of_span(span: slice) -> None:
        if mix > 0:
            kernels().mend_documents(*documents.cells, span.start, span.stop, prices, mix, lam_local, labels)
        else:
            kernels().place_documents(*documents.cells, span.start, span.stop, prices, lam_local, labels)

    work = float(labels.size) * (prices.shape[1] if mix == 0 else 10.0)
    documents.do(of_span, documents.document_spans, work)
    return labels


def likely_labels(documents: Documents, mean: Array, share: Array, mix: float, lam_local: Array) -> Array:
    """Labels by topics (V, K) and shares (D, K) alone: every cell its likeliest, then documents solved from there."""
    labels = np.empty(documents.data.size, np.int32)

    def of_cells(cells: slice) -> None:
        chance = mean[documents.indices[cells]] * share[documents.owner[cells]]
        labels[cells] = chance.argmax(axis=1)

    size = max(1, _TOGETHER // mean.shape[1])
    documents.do(of_cells, cut(labels.size, size), 10.0 * labels.size * mean.shape[1])
    return solve(documents, labels, -np.log(mean), mix, lam_local)


def _solve_live(documents: Documents, state: Labelled, goal: TopicGoal) -> Array:
    """Labels of documents solved anew, from topics that have tokens: without a mixing cost documents look at all of
    them, and one that has none would cost its global price, too."""
    used = has_tokens(state.counts)
    live, labels = np.flatnonzero(used).astype(np.int32), compact(used)[state.labels]
    prices = word_prices(documents, state.counts.words[live], goal.pseudo)
    return live[solve(documents, labels, prices, goal.mix, goal.lam_local)]


def info_of(state: Labelled, changed: float) -> Info:
    """What to say of a pass after which this share of the cells has changed topic."""
    return Info(state.objective, abs(state.objective), changed, 0, int(has_tokens(state.counts).sum()))


def harden(documents: Documents, start: Labelled, goal: TopicGoal, budget: Budget) -> Outcome:
    """Documents solved anew, then topics from their counts, until at most ``tol`` of the cells change."""

    def step(state: Labelled) -> tuple[Labelled, Info]:
        labels = _solve_live(documents, state, goal)
        changed = float((labels != state.labels).mean()) if labels.size else 0.0
        new = labelled(documents, labels, len(state.counts.words), goal)
        return new, info_of(new, changed)

    return run(step, start, budget, phase="hard", tol=goal.tol, max_iter=goal.max_iter, guard=start.objective)
