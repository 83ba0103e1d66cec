"""Topics: coherence and prediction on held-out documents, beside rivals that are told the number of topics."""

import json
import warnings

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from benchmarks import data
from benchmarks.corpora import CORPORA, planted, split
from benchmarks.report import Mark, Table
from benchmarks.topic_rivals import gensim_hdp, installed, sklearn_lda, tomotopy_hdp, tomotopy_lda
from kfree import HDPTopics
from kfree.inference.topics.coherence import npmi, rank_words
from kfree.models.topics import LocalPrice, Penalties, TopicModel
from kfree.rows import set_span_threads

#: The first split; those below it were looked at when the defaults were chosen.
FIRST = 100
#: Splits of a corpus; more where few documents judge.
SPLITS, SPLITS_IF_SMALL, SMALL = 3, 10, 100_000
LDA_SWEEPS, HDP_SWEEPS = 300, 150
#: Figures of rivals that an interrupted run has finished.
NOTEBOOK = data.ROOT / "build" / "topics_quality.json"
FIGURES = ("K", "NPMI held out", "NPMI train", "diversity", "completion", "NMI classes", "NMI seeds")
HEADER = ["corpus", "model", *FIGURES]
TEXT = (
    "80 % of the documents to learn from, 20 % to judge by; mean of 3 splits (10 for corpora below 100 000 tokens), "
    "another seed for each; none of them was looked at when the defaults were chosen. NPMI: top 10 words, document "
    "co-occurrence. Diversity: share of different words among all top 10. Completion: mean log-probability of a token "
    "in the second half of a held-out document given the first half, by kfree's fold-in for every model's topics "
    "alike. NMI: dominant topics of the training documents against classes, and against those of another seed. LDA is "
    f"told kfree's number of topics; tomotopy's LDA runs {LDA_SWEEPS} sweeps, its HDP {HDP_SWEEPS}, gensim's HDP one "
    "pass, scikit-learn's LDA 30 batch or (above 500 000 tokens) 5 online passes. Smoothing is 0.05 for LDA as for "
    "kfree where nothing else is said, 0.01 for the HDP samplers, which find their own number."
)
FEW = (
    f"{HDP_SWEEPS} sweeps are few for tomotopy's HDP: its number of topics still grows. More of them are a matter of "
    "minutes for each split."
)
LDA = "tomotopy LDA"


def judged(mean, dominant, train, test, classes):
    """Figures of one model on one split."""
    words = rank_words(mean, 10)
    with set_span_threads():
        penalties = Penalties(1.0, LocalPrice(0.0, 0.0), 0.0, 0.0)  # completion has none
        score = TopicModel(np.ascontiguousarray(mean.T), penalties).completion(test, None)
    agreement = np.nan if classes is None or dominant is None else normalized_mutual_info_score(classes, dominant)
    coherence = [float(npmi(words, table.tocsc()).mean()) for table in (test, train)]
    return [len(mean), *coherence, np.unique(words).size / words.size, float(score), float(agreement), np.nan]


def rivals_of(train, K, seed, settings):
    """Names and calls of the rivals on one split; a call returns topics and dominant topics."""
    small = train.sum() < 500_000
    name, passes = ("scikit-learn LDA, batch", ("batch", 30)) if small else ("scikit-learn LDA, online", ("online", 5))
    yield name, lambda: sklearn_lda(train, K, seed, *passes)
    if settings.rivals and installed("tomotopy"):
        yield LDA, lambda: tomotopy_lda(train, K, seed, LDA_SWEEPS)
        if small:
            yield "tomotopy LDA, smoothing 0.01", lambda: tomotopy_lda(train, K, seed, LDA_SWEEPS, eta=0.01)
        yield "tomotopy HDP", lambda: tomotopy_hdp(train, seed, HDP_SWEEPS)
    if settings.rivals and installed("gensim"):
        yield "gensim HDP", lambda: (gensim_hdp(train), None)


def one_split(name, seed, parts, settings, notebook):
    """Names and figures of all models on one split."""
    train, test, classes = parts
    mine, other = (HDPTopics(random_state=s).fit(train) for s in (seed, seed + 1))
    dominant, again = (model.transform(train).argmax(axis=1) for model in (mine, other))
    figures = judged(mine.components_, dominant, train, test, classes)
    yield "kfree", [*figures[:-1], normalized_mutual_info_score(dominant, again)]
    for rival, call in rivals_of(train, mine.n_topics_, seed, settings):
        key = f"{name}, split {seed}, {mine.n_topics_} topics: {rival}"
        if key not in notebook:
            mean, dominant = call()
            notebook[key] = judged(mean / mean.sum(axis=1, keepdims=True), dominant, train, test, classes)
            if not settings.quick:
                NOTEBOOK.parent.mkdir(exist_ok=True)
                NOTEBOOK.write_text(json.dumps(notebook))
        yield rival, notebook[key]


def corpus(name, settings, notebook):
    """Figures of one corpus: for each model a line for each split."""
    if name == "planted":
        X = planted(300, 200, 4, 80)
        return _by_model([one_split(name, 0, (X[:240], X[240:], None), settings, notebook)])
    small = split(name, FIRST)[0].sum() < SMALL
    seeds = range(FIRST, FIRST + (1 if settings.quick else SPLITS_IF_SMALL if small else SPLITS))
    return _by_model(one_split(name, seed, split(name, seed), settings, notebook) for seed in seeds)


def _by_model(splits):
    figures = {}
    for models in splits:
        for model, row in models:
            figures.setdefault(model, []).append(row)
    return {model: np.array(rows, float) for model, rows in figures.items()}


def lines(name, figures):
    """Lines of the table for one corpus."""
    for model, rows in figures.items():
        K = rows[:, 0].astype(int)
        numbers = f"{K.min()} to {K.max()}" if K.size > 3 else ", ".join(map(str, K))
        numbers = str(K[0]) if K.min() == K.max() else numbers
        yield [name, model, numbers, *(None if np.isnan(v) else f"{v:.3f}" for v in rows[:, 1:].mean(axis=0))]


def marks_of(name, figures):
    """What was promised of one corpus, and notes on how sure the differences are."""
    mine, marks, notes = figures["kfree"], [], []
    rest = [rows for model, rows in figures.items() if model != "kfree" and not model.startswith(LDA)]
    if LDA in figures:
        gap = mine[:, 1] - figures[LDA][:, 1]
        marks.append(Mark(f"{name}: NPMI minus that of tomotopy LDA", float(gap.mean()), 0.0))
        error = gap.std(ddof=1) / np.sqrt(gap.size) if gap.size > 1 else np.nan
        notes.append(f"{name}: NPMI minus that of tomotopy LDA {gap.mean():.3f}, standard error {error:.3f}.")
    best = max(float(rows[:, 1].mean()) for rows in rest)
    marks.append(Mark(f"{name}: NPMI minus the best of the others", float(mine[:, 1].mean()) - best, 0.0))
    best = max(float(rows[:, 4].mean()) for model, rows in figures.items() if model != "kfree")
    ratio = float(mine[:, 4].mean()) / best
    marks.append(Mark(f"{name}: completion over the best of all", ratio, 1.01, at_least=False))
    return marks, notes


def make(settings):
    """The table."""
    names = ["planted"] if settings.quick or not data.has(*CORPORA) else CORPORA
    notebook = json.loads(NOTEBOOK.read_text()) if NOTEBOOK.exists() and not settings.quick else {}
    rows, marks, notes = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            figures = corpus(name, settings, notebook)
            rows += lines(name, figures)
            more, said = marks_of(name, figures)
            marks, notes = marks + more, notes + said
    notes.append(FEW)
    if not settings.quick:
        NOTEBOOK.unlink(missing_ok=True)
    return Table("topics_quality", "Topics: quality", TEXT, HEADER, rows, notes, marks)
