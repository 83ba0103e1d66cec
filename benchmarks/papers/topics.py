"""Jiang, Kulis & Jordan (2012), Section 5: topics of NIPS and New York Times, and time per iteration (Figure 1)."""

import warnings
from time import perf_counter

import numpy as np

from benchmarks import data
from benchmarks.corpora import load
from benchmarks.plots import BLUE, ORANGE, panels, save
from benchmarks.report import Mark, Table
from kfree import HDPTopics
from kfree.inference.loop import Budget
from kfree.inference.topics.hdp_cells import first_state, one_pass, shuffled
from kfree.inference.topics.soft_topics import soft_pass
from kfree.inference.topics.topic_seeds import first_topics, seed_documents
from kfree.models.topics import Penalties, first_goal
from kfree.rows import Documents, set_span_threads

CORPORA = ("nips12", "nyt8k")
TOPICS, WORDS = 6, 15
#: Numbers of topics at which a pass is timed.
SIZES = (10, 25, 50, 100, 200)
HEADER = ["corpus", "search", "topic", "first 15 words"]
TEXT = (
    "Six topics of each corpus with their first 15 words, as in Table 1 of the paper: by the paper's algorithm "
    '(`mix=0, search="paper"`, from seeded topics) and by the default search. Words in at least 5 documents and at '
    "most 40 % of them. Shown are the six most coherent of the topics (NPMI of the first 10 words). The picture is "
    "Figure 1, right: seconds of a pass over the number of topics."
)


def corpus(name, quick):
    """Counts and words of the filtered corpus."""
    X, words, _ = load(name)
    X = X[:300] if quick else X
    df = np.asarray((X > 0).sum(axis=0)).ravel()
    keep = np.flatnonzero((df >= 5) & (df <= 0.4 * X.shape[0]))
    X = X[:, keep]
    return X[np.asarray(X.sum(axis=1)).ravel() > 0], words[keep]


def lines(name, X, words):
    """Topics of one corpus by both searches, and what to note of the fits."""
    rows, notes, passes = [], [], []
    for label, options in (("paper", {"mix": 0, "search": "paper"}), ("default", {})):
        start = perf_counter()
        model = HDPTopics(**options).fit(X)
        seconds = perf_counter() - start
        coherent = np.argsort(-model.coherence(10, per_topic=True), kind="stable")[:TOPICS]
        for rank, row in enumerate(model.top_words(WORDS, vocabulary=words)[coherent], 1):
            rows.append([name, label, rank, " ".join(row)])
        notes.append(
            f"{name}, {label}: {model.n_topics_} topics, {model.n_iter_} passes, {seconds:.1f} s in all, mean NPMI of "
            f"all topics {model.coherence(10):.3f}."
        )
        if label == "paper":
            passes.append(model.n_iter_)
    return rows, notes, passes


def seconds_of_passes(X, sizes):
    """Seconds of a pass of the paper's algorithm and of a soft pass, for each number of topics."""
    documents, rng = Documents(X, np.empty(0)), np.random.default_rng(0)
    times = []
    with set_span_threads():
        for G in sizes:
            model = HDPTopics(mix=0, n_topics_init=G)
            goal = first_goal(model, documents, Penalties.of(model, documents, model.smoothing))
            state = first_state(documents, seed_documents(documents, goal, Budget(), rng))
            state = one_pass(documents, state, goal, *shuffled(documents, rng))
            order = shuffled(documents, rng)
            start = perf_counter()
            one_pass(documents, state, goal, *order)
            paper = perf_counter() - start
            soft, _ = soft_pass(documents, first_topics(documents, goal, Budget(), rng), goal, 1.0)
            start = perf_counter()
            soft_pass(documents, soft, goal, 1.0)
            times.append((paper, perf_counter() - start))
    return np.array(times)


def draw(times, sizes, path):
    """Seconds of a pass over topics, for both corpora."""
    figure, axes = panels(len(times))
    for ax, (name, seconds) in zip(axes, times.items()):
        ax.plot(sizes, seconds[:, 0], "o-", color=ORANGE, label="paper's algorithm")
        ax.plot(sizes, seconds[:, 1], "o-", color=BLUE, label="soft pass")
        ax.set(title=name, xlabel="topics", ylabel="seconds of a pass", ylim=(0, None))
        ax.legend(frameon=False, fontsize=8)
    save(figure, path)


def make(settings):
    """The page."""
    rows, notes, passes, times = [], [], [], {}
    sizes = SIZES[:2] if settings.quick else SIZES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CORPORA if data.has(*CORPORA) else ():
            X, words = corpus(name, settings.quick)
            more, said, count = lines(name, X, words)
            rows, notes, passes = rows + more, notes + said, passes + count
            times[name] = seconds_of_passes(X, sizes)
    draw(times, sizes, settings.out / "000-topics.png")
    notes.append(
        "The paper reports 13 to 25 iterations of less than a minute each. `nips12` is the paper's own corpus; the "
        "2971 New York Times articles it used are not published, `nyt8k` are others."
    )
    slowest = max(float(seconds[:, 0].max()) for seconds in times.values())
    marks = [
        Mark("seconds of a pass of the paper's algorithm, most", slowest, 60.0, at_least=False),
        Mark("passes of the paper's algorithm, most", float(max(passes)), 25.0, at_least=False),
    ]
    title = "Paper 000, Table 1 and Figure 1: topics"
    return Table("000-topics", title, TEXT, HEADER, rows, notes, marks, "000-topics.png")
