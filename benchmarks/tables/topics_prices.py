"""Topics: what the two prices do, on a grid over both."""

import warnings

import numpy as np

from benchmarks import data
from benchmarks.corpora import planted, split
from benchmarks.report import Table
from kfree import HDPTopics

CORPORA = ("reuters395", "kos", "nyt8k", "nips12", "tdt2")
#: Multiples of the prices that "auto" would give.
LOCAL, TOP = (0.25, 1.0, 4.0), (0.5, 1.0, 2.0)
#: Splits of a corpus below this many tokens; larger ones are split once.
SPLITS, SMALL = 3, 500_000
HEADER = ["corpus", "lam_local", "lam_global", "topics", "topics per document", "NPMI held out", "completion"]
TEXT = (
    'Both prices of `HDPTopics` at multiples of "auto": `lam_local` of a topic in a document (0.5 log(n_j + 1); other '
    "multiples are taken of its mean), `lam_global` of a topic (5 times the root of the number of tokens). 80 % of "
    "the documents to learn from, 20 % to judge by, mean of 3 splits (`reuters395`, `kos`) or one; words in at least 5 "
    "of the documents and at most 40 % of them. Topics per document by hard labels; NPMI of the top 10 words and "
    "completion on held-out documents."
)


def figures(parts, local, top):
    """K, topics per document, coherence and completion of one fit."""
    train, test = parts[:2]
    length = np.asarray(train.sum(axis=1)).ravel()
    model = HDPTopics(
        "auto" if local == 1 else local * float((0.5 * np.log(length + 1)).mean()),
        "auto" if top == 1 else top * 5 * float(np.sqrt(train.sum())),
    ).fit(train)
    held = model.doc_topic_counts_.nnz / train.shape[0]
    return model.n_topics_, held, model.coherence(10, test), model.score(test)


def grid(name, quick):
    """Lines of one corpus."""
    if name == "planted":
        X = planted(300, 200, 4, 80)
        splits = [(X[:240], X[240:])]
    else:
        few = quick or split(name, 0)[0].sum() >= SMALL
        splits = [split(name, seed) for seed in range(1 if few else SPLITS)]
    for local in LOCAL:
        for top in TOP:
            K, held, coherence, score = np.mean([figures(parts, local, top) for parts in splits], axis=0)
            row = [f"{K:.0f}", f"{held:.1f}", f"{coherence:.3f}", f"{score:.3f}"]
            yield [name, f"{local:g} x", f"{top:g} x", *row]


def make(settings):
    """The table."""
    names = ["planted"] if settings.quick or not data.has(*CORPORA) else CORPORA
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row for name in names for row in grid(name, settings.quick)]
    return Table("topics_prices", "Topics: what the two prices do", TEXT, HEADER, rows)
