"""Topics: time of a pass and of a whole fit, beside samplers and variational inference."""

import numpy as np

from benchmarks import data
from benchmarks.corpora import load, planted
from benchmarks.measure import best_of
from benchmarks.report import Mark, Table, ratio
from benchmarks.topic_rivals import gensim_hdp, installed, sklearn_lda, sweep, tomotopy_model
from kfree import HDPTopics
from kfree.inference.loop import Budget
from kfree.inference.topics.soft_topics import soft_pass
from kfree.inference.topics.topic_seeds import first_topics
from kfree.models.topics import Penalties, first_goal
from kfree.rows import Documents, set_span_threads

HEADER = ["what", "data", "kfree s", "rival", "rival s", "times"]
TEXT = (
    "One soft pass of kfree over planted documents (20 000 of 150 tokens, 100 topics) beside one sweep of tomotopy's "
    "HDP sampler after 20 sweeps; and whole fits of `nips12` (2.3 million tokens) beside 500 sweeps of that sampler "
    "from two topics, gensim's HdpModel (one pass) and scikit-learn's online LDA told the number of topics (10 passes)."
)


def one_pass(X, G, repeats):
    """Seconds of a soft pass with G topics."""
    documents, model = Documents(X, np.empty(0)), HDPTopics(n_topics_init=G)
    goal = first_goal(model, documents, Penalties.of(model, documents, model.smoothing))
    with set_span_threads():
        start = first_topics(documents, goal, Budget(), np.random.default_rng(0))
        soft, _ = soft_pass(documents, start, goal, 1.0)
        return best_of(repeats, lambda: soft_pass(documents, soft, goal, 1.0))[0]


def hdp_sweep(X, G, before, sweeps):
    """Seconds of a sweep of tomotopy's HDP sampler started from G topics."""
    model = tomotopy_model("HDPModel", X, initial_k=G, eta=0.05)
    sweep(model, before)
    return best_of(1, lambda: sweep(model, sweeps))[0] / sweeps


def fits(X, repeats, rivals):
    """Lines of the whole fits."""
    mine, model = best_of(repeats, lambda: HDPTopics().fit(X))
    what, where = f"whole fit, {model.n_topics_} topics found", f"{X.shape[0]} documents"
    if rivals and installed("tomotopy"):
        yield [what, where, mine, "tomotopy HDP, 500 sweeps", 500 * hdp_sweep(X, 2, 0, 500)]
    if rivals and installed("gensim"):
        yield [what, where, mine, "gensim HdpModel", best_of(1, lambda: gensim_hdp(X))[0]]
    online = best_of(1, lambda: sklearn_lda(X, model.n_topics_, 0, passes=1 if not rivals else 10))[0]
    yield [what, where, mine, "scikit-learn LDA, online, 10 passes", online]


def make(settings):
    """The table."""
    size = (500, 400, 10) if settings.quick else (20_000, 10_000, 100)
    X = planted(*size, 150)
    mine = one_pass(X, size[2], settings.repeats)
    theirs = hdp_sweep(X, size[2], 20, 3) if settings.rivals and installed("tomotopy") else None
    rows = [["one pass", f"{X.shape[0]} documents", mine, "tomotopy HDP, one sweep", theirs]]
    if data.has("nips12"):
        real = load("reuters395" if settings.quick else "nips12")[0]
        rows += list(fits(real, settings.repeats, settings.rivals and not settings.quick))
    rows = [[*row, ratio(row[4], row[2])] for row in rows]
    marks = []
    for row, least in zip(rows, (10.0, 10.0, 1.0, 1.0)):
        if row[5] is not None:
            marks.append(Mark(f"times faster than {row[3]}, {row[0].split(',')[0]}", row[5], least))
    return Table("topics_speed", "Topics: time", TEXT, HEADER, rows, [], marks)
