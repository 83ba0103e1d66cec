"""Topics: coherence and prediction on held-out documents, beside rivals that are told the number of topics."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from benchmarks import data
from benchmarks.corpora import CORPORA, planted, split
from benchmarks.report import Mark, Table
from benchmarks.topic_rivals import gensim_hdp, installed, sklearn_lda, tomotopy_hdp, tomotopy_lda
from kfree import HDPTopics
from kfree.estimators._topics import Rules, Topics
from kfree.inference.topics.coherence import npmi, rank_words
from kfree.rows import set_span_threads

SPLITS = 3
SWEEPS = 300
HEADER = ["corpus", "model", "K", "NPMI held out", "NPMI train", "diversity", "completion", "NMI", "seconds"]
TEXT = (
    "80 % of the documents to learn from, 20 % to judge by; mean of 3 splits, another seed for each. NPMI: top 10 "
    "words, document co-occurrence. Diversity: share of different words among all top 10. Completion: mean "
    "log-probability of a token in the second half of a held-out document given the first half, by kfree's fold-in "
    "for every model's topics alike. NMI: dominant topics of the training documents against classes. LDA is told "
    "kfree's number of topics and smoothing (0.05); the HDP samplers find their own."
)


def judged(mean, dominant, seconds, train, test, classes):
    """Figures of one model on one split."""
    words = rank_words(mean, 10)
    with set_span_threads():
        score = Topics(np.ascontiguousarray(mean.T), Rules(1.0, None, 0.0, 0.0)).completion(test, None)
    agreement = np.nan if classes is None else normalized_mutual_info_score(classes, dominant)
    coherence = [npmi(words, table.tocsc()).mean() for table in (test, train)]
    return [len(mean), *coherence, np.unique(words).size / words.size, score, agreement, seconds]


def models(train, seed, settings):
    """Name, topics, dominant topics and seconds of every model on one split."""
    start = perf_counter()
    mine = HDPTopics(random_state=seed).fit(train)
    yield "kfree", mine.components_, mine.transform(train).argmax(axis=1), perf_counter() - start
    K, small = mine.n_topics_, train.sum() < 500_000
    rivals = [("scikit-learn LDA, batch" if small else "scikit-learn LDA, online", _sklearn(train, K, seed, small))]
    if settings.rivals and installed("tomotopy"):
        rivals += [("tomotopy LDA", lambda: tomotopy_lda(train, K, seed, SWEEPS))]
        if small:
            rivals += [("tomotopy HDP", lambda: tomotopy_hdp(train, seed, SWEEPS))]
    if settings.rivals and installed("gensim") and small:
        rivals += [("gensim HDP", lambda: (gensim_hdp(train), np.zeros(train.shape[0])))]
    for name, call in rivals:
        start = perf_counter()
        mean, dominant = call()
        yield name, mean / mean.sum(axis=1, keepdims=True), dominant, perf_counter() - start


def _sklearn(train, K, seed, small):
    return lambda: sklearn_lda(train, K, seed, *(("batch", 30) if small else ("online", 5)))


def corpus(name, settings):
    """Lines of one corpus."""
    figures = {}
    for seed in range(1 if settings.quick else SPLITS):
        if name == "planted":
            X = planted(300, 200, 4, 80)
            train, test, classes = X[:240], X[240:], None
        else:
            train, test, classes = split(name, seed)
        for model, mean, dominant, seconds in models(train, seed, settings):
            row = judged(mean, dominant, seconds, train, test, classes)
            figures.setdefault(model, []).append(row)
    for model, rows in figures.items():
        numbers = ", ".join(str(row[0]) for row in rows)
        mean = [float(value) for value in np.mean(np.array(rows, float)[:, 1:], axis=0)]
        yield [name, model, numbers, *(None if np.isnan(value) else value for value in mean)]


def make(settings):
    """The table."""
    names = ["planted"] if settings.quick or not data.has(*CORPORA) else CORPORA
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row for name in names for row in corpus(name, settings)]
    marks = []
    for name in names:
        mine, theirs = ({row[1]: row for row in rows if row[0] == name}.get(who) for who in ("kfree", "tomotopy LDA"))
        if theirs is not None:
            marks.append(Mark(f"{name}: NPMI minus that of tomotopy LDA", mine[3] - theirs[3], 0.0))
            marks.append(
                Mark(f"{name}: completion over that of tomotopy LDA", mine[6] / theirs[6], 1.01, at_least=False)
            )
    return Table("topics_quality", "Topics: quality", TEXT, HEADER, rows, [], marks)
