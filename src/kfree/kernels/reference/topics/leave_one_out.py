"""The closing pass over the cells of a document-term table: every cell is judged by the counts of the others.

Cells lie word by word as in the soft pass. ``topics`` (V, G) are the words' probabilities (count + pseudo) * scale and
``share`` (D, G) the documents' counts * mix + least, both padded with zero columns. ``weight`` (D,) is how much of a
token of the document is in the topics' counts, at most 1.
"""

import numpy as np


def _without_own(topic, share, tokens, part, scale, floor, mix, least, burst):
    """What a cell would find in the topics without itself: the word's probability times the document's share ** mix.

    Its own tokens leave both counts: one of n if tokens come one by one (``burst`` 0), all n if they come together
    (1), shared out by its responsibilities. Then 2 burst times as many again, but at most half of what is left.
    """
    own = tokens * topic * share**mix
    word = np.maximum(topic - part * own * scale, floor * scale)
    word = np.maximum(word - 2 * burst * part * own * scale, word / 2)
    document = np.maximum(share - mix * own, least)
    document = np.maximum(document - 2 * burst * mix * own, document / 2)
    return word * document**mix


def close_documents(data, rows, indptr, topics, share, weight, pseudo, scale, least, mix, burst, own, ratio, total):
    """Add the soft counts of the topics in the documents to ``total[j]``: n times responsibilities without own counts.

    Fills ``own``, the tokens to take out over the cell's probability with its own counts, and ``ratio``, all its
    tokens over that without them.
    """
    for w in range(topics.shape[0]):
        for k in range(indptr[w], indptr[w + 1]):
            j = rows[k]
            own[k] = (1 + burst * (data[k] - 1)) / np.dot(topics[w], share[j] ** mix)
            found = _without_own(topics[w], share[j], own[k], weight[j], scale, pseudo[w], mix, least, burst)
            ratio[k] = data[k] / found.sum()
            total[j] += ratio[k] * found


def close_words(own, ratio, rows, indptr, first, last, topics, share, weight, pseudo, scale, least, mix, burst, total):
    """Add the soft counts of words ``first`` to ``last`` in the topics to ``total[w]``."""
    for w in range(first, last):
        for k in range(indptr[w], indptr[w + 1]):
            j = rows[k]
            found = _without_own(topics[w], share[j], own[k], weight[j], scale, pseudo[w], mix, least, burst)
            total[w] += ratio[k] * found
