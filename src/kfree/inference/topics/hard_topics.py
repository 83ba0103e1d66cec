"""Hard topics: one label a cell; counts, the objective and its passes."""

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from kfree.families import Array
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.inference.topics.soft_topics import Prior, Soft, shares_and_topics
from kfree.kernels import kernels
from kfree.rows import Documents
from kfree.rows.documents import Block


class Charges(NamedTuple):
    """What the objective charges besides the words."""

    mix: float  # weight of the mixing cost of documents
    lam_local: Array  # (D,) price of a topic in a document
    lam_global: float  # price of a topic
    pseudo: Array  # (V,) pseudo-counts of the words in every topic


class Counts(NamedTuple):
    """Hard counts."""

    words: Array  # (G, V) weighted tokens, those of earlier documents included
    documents: Array  # (G, D) tokens


class Labelled(NamedTuple):
    """Labels with the topics their counts make."""

    labels: Array  # (cells,) int32
    counts: Counts


def entropic(y: Array) -> Array:
    """y log y, 0 at 0."""
    return xlogy(y, y)


def label_cells(documents: Documents, soft: Soft, prior: Prior) -> Array:
    """The likeliest topic of each cell."""
    share, topics = shares_and_topics(documents, soft, prior)
    labels = np.empty(documents.data.size, np.int32)

    def of_block(block: Block) -> None:
        kernels().likeliest(block.rows, block.indptr, block.cells, topics, share, labels)

    for _ in documents.each(of_block, documents.blocks, float(labels.size) * topics.shape[1]):
        pass
    return labels


def count(documents: Documents, labels: Array, G: int, base: Array) -> Counts:
    """Counts of labelled cells; ``base`` (V, K) are those of earlier documents."""
    words, shares = np.zeros((G, documents.p)), np.zeros((G, documents.n))
    words[: base.shape[1]] = base.T
    kernels().count_labels(*documents.cells, documents.weight, labels, words, shares)
    return Counts(words, shares)


def topic_costs(documents: Documents, words: Array, pseudo: Array) -> Array:
    """h_p: what the words of each topic cost, (G,)."""
    eta, alone = pseudo.sum(), entropic(pseudo)

    def of_topic(p: int) -> float:
        return float((entropic(words[p] + pseudo) - alone).sum())

    own = np.array(list(documents.each(of_topic, list(range(len(words))), 10.0 * words.size)))
    return entropic(words.sum(axis=1) + eta) - entropic(eta) - own


def objective(documents: Documents, counts: Counts, charges: Charges) -> float:
    """J: words, mixing, local and global prices; topics without a token are none."""
    weights = documents.weights
    mixing = entropic(documents.length) - entropic(counts.documents).sum(axis=0)
    held = charges.lam_local * (counts.documents > 0).sum(axis=0)
    n_topics = int((counts.words.sum(axis=1) > 0).sum())
    per_document = float((weights * (charges.mix * mixing + held)).sum())
    return (
        float(topic_costs(documents, counts.words, charges.pseudo).sum()) + per_document + charges.lam_global * n_topics
    )


def word_prices(documents: Documents, words: Array, pseudo: Array) -> Array:
    """-log mu, (V, G) in word-major order."""
    prices, level = np.empty((words.shape[1], len(words))), np.log(words.sum(axis=1) + pseudo.sum())

    def of_words(span: slice) -> None:
        np.subtract(level, np.log(words[:, span].T + pseudo[span, None]), out=prices[span])

    for _ in documents.each(of_words, documents.word_spans, 10.0 * words.size):
        pass
    return prices


def solve(documents: Documents, labels: Array, prices: Array, mix: float, lam_local: Array) -> Array:
    """Labels of documents solved anew with the topics fixed."""
    labels = labels.copy()

    def of_span(span: slice) -> None:
        if mix > 0:
            kernels().mend_documents(*documents.cells, span.start, span.stop, prices, mix, lam_local, labels)
        else:
            kernels().place_documents(*documents.cells, span.start, span.stop, prices, lam_local, labels)

    work = float(labels.size) * (prices.shape[1] if mix == 0 else 10.0)
    for _ in documents.each(of_span, documents.document_spans, work):
        pass
    return labels


def _solve_live(documents: Documents, state: Labelled, charges: Charges) -> Array:
    """Labels of documents solved anew, from topics that have tokens: without a mixing cost documents look at all of
    them, and one that has none would cost its global price, too."""
    words = state.counts.words
    live = np.flatnonzero(words.sum(axis=1) > 0)
    if live.size == len(words):
        prices = word_prices(documents, words, charges.pseudo)
        return solve(documents, state.labels, prices, charges.mix, charges.lam_local)
    place = np.zeros(len(words), np.int32)
    place[live] = np.arange(live.size)
    prices = word_prices(documents, words[live], charges.pseudo)
    return live.astype(np.int32)[solve(documents, place[state.labels], prices, charges.mix, charges.lam_local)]


def harden(
    documents: Documents, labels: Array, G: int, charges: Charges, base: Array, budget: Budget, tol: float, passes: int
) -> Outcome:
    """Documents solved anew, then topics from their counts, until at most ``tol`` of the cells change."""
    start = Labelled(labels, count(documents, labels, G, base))

    def step(state: Labelled) -> tuple[Labelled, Info]:
        new = _solve_live(documents, state, charges)
        counts = count(documents, new, G, base)
        value = objective(documents, counts, charges)
        changed = float((new != state.labels).mean()) if new.size else 0.0
        live = int((counts.words.sum(axis=1) > 0).sum())
        return Labelled(new, counts), Info(value, abs(value), changed, 0, live)

    before = objective(documents, start.counts, charges)
    outcome = run(step, start, budget, phase="hard", tol=tol, max_iter=passes, guard=before)
    return outcome._replace(trace=[before, *outcome.trace])
