"""Hard topics: counts by label, changes of the objective by merges, documents solved anew, fold-in.

Cells are the entries of a document-term table in row order (``data``, ``indices``, ``indptr``), each with one label.
"""

import numpy as np
from scipy.special import xlogy


def count_labels(data, indices, indptr, weight, labels, words, documents):
    """Add the cells to ``words`` (G, V), weighted, and to ``documents`` (G, D), unweighted."""
    owner = np.repeat(np.arange(indptr.shape[0] - 1), np.diff(indptr))
    factor = weight[owner] if weight.shape[0] else 1.0
    np.add.at(words, (labels, indices), factor * data)
    np.add.at(documents, (labels, owner), data)


def merge_changes(pairs, words, pseudo, documents, weight, price, mix, change):
    """What merging two topics adds to the objective, but for their sizes and the price of a topic.

    Words: minus X(a + b + e) - X(a + e) - X(b + e) + X(e) with X(y) = y log y, for counts a, b and pseudo-counts e.
    Documents that hold both save their ``price`` and mix (X(a + b) - X(a) - X(b)).
    """

    def joined(a, b, e):
        return xlogy(a + b + e, a + b + e) - xlogy(a + e, a + e) - xlogy(b + e, b + e) + xlogy(e, e)

    factor = weight if weight.shape[0] else np.ones(documents.shape[1])
    for t, (p, q) in enumerate(pairs):
        both = (documents[p] > 0) & (documents[q] > 0)
        held = factor * (mix * joined(documents[p], documents[q], 0.0) + price)
        change[t] = -joined(words[p], words[q], pseudo).sum() - held[both].sum()


def _counts(data, labels, G):
    return np.bincount(labels, weights=data, minlength=G)


def _mend(data, cost, mix, price, labels):
    """One document; ``cost`` (cells, G)."""
    length, G = data.sum(), cost.shape[1]

    def value(labels):
        return (data * cost[np.arange(data.size), labels]).sum() - mix * xlogy(
            _counts(data, labels, G), _counts(data, labels, G)
        ).sum()

    first = labels[np.sort(np.unique(labels, return_index=True)[1])]  # ties go to the topic that came first

    def in_order(labels):
        return first[np.isin(first, labels)]

    for _ in range(5):
        with np.errstate(divide="ignore"):
            full = cost - mix * np.log(_counts(data, labels, G) / length) if mix else cost
        held = in_order(labels)
        best = held[full[:, held].argmin(axis=1)]
        keep = full[np.arange(data.size), labels] <= full[np.arange(data.size), best]
        new = np.where(keep, labels, best)
        moved, labels = (new != labels).any(), new
        if not moved:
            break
    while True:
        held = in_order(labels)
        if held.size == 1:
            return labels
        options = []
        for p in held:
            rest = held[held != p]
            full = cost - mix * np.log(np.maximum(_counts(data, labels, G), 1e-300) / length)
            to = np.where(labels == p, rest[full[:, rest].argmin(axis=1)], labels)
            options.append((value(to) - value(labels) - price, to))
        changes = np.array([change for change, _ in options])
        if not changes.min() < -1e-10 * (1.0 + price):
            return labels
        labels = options[int(changes.argmin())][1]


def mend_documents(data, indices, indptr, first, last, cost, mix, price, labels):
    """Solve documents anew with the topics they hold, ``cost`` (V, G) = -log mu fixed.

    At most five times: every cell to argmin over held p of cost[w, p] - mix log(n_jp / n_j), then shares anew. Then
    drop the topic whose removal (its cells to their best others) lowers the objective of the document most,
    sum n cost - mix sum_p X(n_jp) + price |held|, until none does.
    """
    for j in range(first, last):
        cells = slice(indptr[j], indptr[j + 1])
        if cells.start < cells.stop:
            labels[cells] = _mend(data[cells], cost[indices[cells]], mix, price[j], labels[cells].copy())


def fold_in(data, indices, indptr, first, last, topics, prior, max_iter, tol, share):
    """Topic shares of documents with the topics (V, G) fixed, by expectation-maximisation from equal shares.

    theta_p <- (S_p + prior / G) / (n + prior), S = soft counts, until the shares move less than ``tol`` in all.
    """
    G = topics.shape[1]
    for j in range(first, last):
        cells = slice(indptr[j], indptr[j + 1])
        rows, n, theta = topics[indices[cells]], data[cells], np.full(G, 1.0 / G)
        for _ in range(max_iter):
            new = (theta * ((n / (rows @ theta)) @ rows) + prior / G) / (n.sum() + prior)
            moved, theta = np.abs(new - theta).sum(), new
            if moved < tol:
                break
        share[j] = theta
