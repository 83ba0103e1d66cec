"""Topics without a mixing cost: the default search beside the papers' algorithm with its best seeding."""

import warnings

import numpy as np

from benchmarks import data
from benchmarks.corpora import planted, split
from benchmarks.report import Mark, Table
from kfree import HDPTopics

CORPORA = ("reuters395", "citeseer", "kos", "nyt8k", "nips12", "tdt2")
SEEDS = 2
#: Splits of a corpus below this many tokens, from the first on that did not help to choose defaults; larger ones: one.
SPLITS, SMALL, FIRST = 5, 500_000, 100
HEADER = ["corpus", "search", "topics", "objective", "over the default search", "NPMI held out", "completion"]
TEXT = (
    "Both searches minimise the papers' objective (`mix=0`) with the same prices, on 80 % of the documents; the others "
    'judge (mean of 5 splits, one for corpora above 500 000 tokens). `search="paper"` starts from one topic, as the '
    "papers do, and from seeds chosen as for the default search: as many as that finds, twice as many, and as many as "
    "it starts from; with two random states each, of which the lower objective is shown. The lowest of them all is the "
    "best seeding."
)


def best_of_seeds(train, **options):
    """The fit with the lowest objective."""
    fits = [HDPTopics(mix=0, random_state=seed, **options).fit(train) for seed in range(SEEDS)]
    return min(fits, key=lambda model: model.objective_)


def searches(train):
    """Names and models: the default search first."""
    mine = HDPTopics(mix=0).fit(train)
    yield "default", mine
    yield "paper, from one topic", HDPTopics(mix=0, search="paper", n_topics_init=1).fit(train)
    K = mine.n_topics_
    for label, size in (("as many", K), ("twice as many", 2 * K), ("auto", "auto")):
        yield f"paper, {label} seeds", best_of_seeds(train, search="paper", n_topics_init=size)


def figures(train, test):
    """Names of the searches, and topics, objective over that of the default search, coherence and completion."""
    found = {}
    for label, model in searches(train):
        first = found.get("default", [0, model.objective_])[1]
        ratio = float(model.objective_ / first)
        found[label] = [model.n_topics_, float(model.objective_), ratio, model.coherence(10, test), model.score(test)]
    return found


def corpus(name):
    """Lines of one corpus, and what was promised."""
    if name == "planted":
        X = planted(300, 200, 4, 80)
        splits = [(X[:240], X[240:])]
    else:
        few = split(name, FIRST)[0].sum() >= SMALL
        splits = [split(name, FIRST + seed)[:2] for seed in range(1 if few else SPLITS)]
    found = [figures(*parts) for parts in splits]
    mean = {label: np.mean([one[label] for one in found], axis=0).tolist() for label in found[0]}
    best = min((values for label, values in mean.items() if label != "default"), key=lambda values: values[2])
    rows = [[name, label, *v[:2], *(f"{value:.3f}" for value in v[2:])] for label, v in mean.items()]
    return rows, [
        Mark(f"{name}: objective of the best seeding over that of the default search", best[2], 1.01),
        Mark(f"{name}: NPMI minus that of the best seeding", mean["default"][3] - best[3], 0.0),
    ]


def make(settings):
    """The table."""
    names = ["planted"] if settings.quick or not data.has(*CORPORA) else CORPORA
    rows, marks = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            more, promised = corpus(name)
            rows, marks = rows + more, marks + promised
    return Table("topics_paper", "Topics: the papers' objective", TEXT, HEADER, rows, [], marks)
