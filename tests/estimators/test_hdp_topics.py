"""HDPTopics as users meet it: attributes, words, scores, streams, interruptions, bad input."""

import os
import pickle
import signal
import sys
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfree import HDPTopics
from kfree.estimators._sklearn import check_table
from support.small_corpora import planted

WORDS = [f"{kind}{i}" for kind in ("river", "market", "violin") for i in range(8)]


@pytest.fixture(scope="module")
def corpus():
    return planted(D=240, V=150, K=4)


@pytest.fixture(scope="module")
def model(corpus):
    return HDPTopics().fit(corpus[0])


def texts(n=90):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[8 * (i % 3) : 8 * (i % 3) + 8], 30)) for i in range(n)]


# What a fit leaves


def test_attributes_fit_together(corpus, model):
    X, K = corpus[0], model.n_topics_
    assert K == model.n_components_ == 4
    assert model.components_.shape == model.topic_word_counts_.shape == (K, 150)
    assert_allclose(model.components_.sum(axis=1), 1.0)
    assert_allclose(model.topic_word_counts_.sum(), X.sum(), rtol=1e-5)
    assert (np.diff(model.topic_word_counts_.sum(axis=1)) <= 0).all()
    tokens = model.doc_topic_counts_
    assert tokens.shape == (240, K)
    assert_array_equal(np.asarray(tokens.sum(axis=1)).ravel(), np.asarray(X.sum(axis=1)).ravel())
    assert model.cell_labels_.shape == (X.nnz,)
    assert model.cell_labels_.max() == K - 1
    assert model.objective_ == model.objective_trace_[-1]
    assert (np.diff(model.objective_trace_) <= 1e-9 * model.objective_).all()
    assert model.lam_local_.shape == (240,)
    assert_allclose(model.lam_global_, 5 * np.sqrt(X.sum()))
    assert_allclose(model.smoothing_, 0.05 * 150)
    assert model.converged_
    assert model.structure_.found


def test_the_soft_trace_never_rises_at_one_temperature(model):
    beta, n_topics, energy = model.soft_trace_.T
    same = (np.diff(beta) == 0) & (np.diff(n_topics) == 0)
    assert same.sum() >= 3
    assert (np.diff(energy)[same] <= 2e-6 * np.abs(energy[1:][same])).all()


def test_fits_are_repeatable_and_seeds_are_seeds(corpus):
    X = corpus[0]
    assert_array_equal(HDPTopics().fit(X).components_, HDPTopics().fit(X).components_)
    one, two = HDPTopics(random_state=1).fit(X), HDPTopics(random_state=np.random.RandomState(1)).fit(X)
    assert_array_equal(one.components_, two.components_)
    assert one.n_topics_ == 4


def test_dense_frames_and_integers_are_the_same_corpus(corpus, model):
    X = corpus[0]
    for table in (X.toarray(), X.astype(np.int32), pd.DataFrame(X.toarray().astype(int)), X.tocsc(), sp.coo_array(X)):
        assert_array_equal(HDPTopics().fit(table).components_, model.components_)


def test_hard_components_come_from_the_labels(corpus):
    X = corpus[0]
    model = HDPTopics(components="hard").fit(X)
    owner = np.repeat(np.arange(240), np.diff(X.indptr))
    counts = np.zeros((model.n_topics_, 150))
    np.add.at(counts, (model.cell_labels_, X.indices), X.data)
    assert_array_equal(counts, model.topic_word_counts_)
    assert_allclose(model.components_, (counts + 0.05) / (counts.sum(axis=1, keepdims=True) + 7.5))
    tokens = np.zeros((240, model.n_topics_))
    np.add.at(tokens, (owner, model.cell_labels_), X.data)
    assert_array_equal(tokens, model.doc_topic_counts_.toarray())


@pytest.mark.parametrize("n_topics", [1, 2, 6, 30])
def test_a_given_number_of_topics_is_given(corpus, n_topics):
    assert HDPTopics(n_topics=n_topics).fit(corpus[0]).n_topics_ == n_topics


def test_prices_do_what_they_say(corpus):
    X = corpus[0]
    numbers = [HDPTopics(lam_global=price).fit(X).n_topics_ for price in (0.0, 5_000.0, 20_000.0)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 4 > numbers[2]
    dear, cheap = HDPTopics(lam_local=50.0, n_topics=4).fit(X), HDPTopics(lam_local=0.0, n_topics=4).fit(X)
    assert dear.doc_topic_counts_.nnz < cheap.doc_topic_counts_.nnz


def test_annealing_beats_the_paper_at_its_own_objective(corpus):
    X = corpus[0]
    annealed = HDPTopics(mix=0).fit(X)
    for start in ("auto", 1, 4, 8):
        paper = HDPTopics(mix=0, search="paper", n_topics_init=start).fit(X)
        assert annealed.objective_ < 0.99 * paper.objective_
        assert (np.diff(paper.objective_trace_) <= 1e-9 * paper.objective_).all()
        assert paper.components_.shape[0] == paper.n_topics_
        assert paper.soft_trace_.shape == (0, 3)


# Questions to a fitted model


def test_transform_gives_shares_of_seen_unseen_and_empty_documents(corpus, model):
    X, topics, _ = corpus
    K = model.n_topics_
    other = np.stack([np.random.default_rng(5).multinomial(100, topic) for topic in topics] + [np.zeros(150, int)])
    for hard in (False, True):
        shares = model.transform(other, hard=hard)
        assert_allclose(shares.sum(axis=1), 1.0)
        assert sorted(shares[:K].argmax(axis=1)) == list(range(K))
        assert (shares[:K].max(axis=1) > 0.9).all()
        assert_allclose(shares[K], 1 / K)
    assert_array_equal(HDPTopics().fit_transform(X), model.transform(X))
    assert (model.transform(X, hard=True) == 0).mean() > 0.3
    assert (model.transform(X) > 0).all()


def test_shares_do_not_depend_on_the_other_documents(corpus, model):
    X = corpus[0]
    for hard in (False, True):
        assert_allclose(model.transform(X[7:9], hard=hard), model.transform(X, hard=hard)[7:9], atol=1e-12)


def test_score_is_document_completion_and_perplexity_its_exponential(corpus, model):
    X, topics, shares = corpus
    fresh, _, _ = planted(D=100, V=150, K=4, seed=9)
    assert model.score(X) > model.score(fresh)
    assert_allclose(model.perplexity(X), np.exp(-model.score(X)))
    truth = (X.toarray() * np.log(shares @ topics + 1e-300)).sum() / X.sum()
    assert truth - 0.15 < model.score(X) < truth + 0.15
    assert_allclose(model.score(X[::-1]), model.score(X))
    one = HDPTopics(n_topics=1).fit(X)
    counts = np.asarray(X.sum(axis=0)).ravel() + 0.05
    per_token = X @ np.log(counts / counts.sum())
    assert_allclose(one.score(X), per_token.sum() / X.sum(), rtol=0.02)
    weight = np.zeros(240)
    weight[:5] = 2.0
    assert_allclose(model.score(X, sample_weight=weight), model.score(X[:5]))


def test_top_words_are_those_of_the_components(corpus, model):
    words = model.top_words(5)
    assert_array_equal(words, np.argsort(-model.components_, axis=1, kind="stable")[:, :5])
    names = np.array([f"w{i}" for i in range(150)])
    assert_array_equal(model.top_words(5, vocabulary=names), names[words])
    counts = np.asarray(corpus[0].sum(axis=0)).ravel() + 0.5
    lift = model.components_ / (counts / counts.sum())
    assert_array_equal(model.top_words(3, by="lift"), np.argsort(-lift, axis=1, kind="stable")[:, :3])
    named = HDPTopics().fit(pd.DataFrame(corpus[0].toarray(), columns=names))
    assert_array_equal(named.top_words(5), names[words])
    assert model.top_words(1000).shape == (4, 150)


def test_coherence_is_npmi(corpus, model):
    X = corpus[0]
    present, values = X.toarray() > 0, []
    for row in model.top_words(4):
        pairs = []
        for a in range(4):
            for b in range(a + 1, 4):
                both, alone = (present[:, row[a]] & present[:, row[b]]).mean(), present[:, row].mean(axis=0)
                pairs.append(np.log(both / (alone[a] * alone[b])) / -np.log(both) if both else -1.0)
        values.append(np.mean(pairs))
    assert_allclose(model.coherence(4, per_topic=True), values)
    assert_allclose(model.coherence(4), np.mean(values))
    assert_allclose(model.coherence(4, X), np.mean(values))
    assert model.coherence(10, np.ones((3, 150), int)) == 1.0
    assert model.coherence(10, np.eye(150, dtype=int)) == -1.0


def test_a_pipeline_from_texts_to_words():
    vectorizer, topics = CountVectorizer(), HDPTopics()
    pipeline = make_pipeline(vectorizer, topics)
    shares = pipeline.fit_transform(texts())
    assert shares.shape == (90, 3)
    assert_array_equal(pipeline.get_feature_names_out(), ["hdptopics0", "hdptopics1", "hdptopics2"])
    kinds = {"".join(sorted({word[:5] for word in row})) for row in topics.top_words(5, vocabulary=vectorizer)}
    assert kinds == {"river", "marke", "violi"}
    assert pipeline.score(texts(9)) < 0
    frame = HDPTopics().set_output(transform="pandas").fit_transform(vectorizer.transform(texts()))
    assert list(frame.columns) == ["hdptopics0", "hdptopics1", "hdptopics2"]


def test_pyldavis_shows_topics_as_they_are():
    prepare = pytest.importorskip("pyLDAvis.lda_model").prepare
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts())
    assert len(prepare(HDPTopics().fit(X), X, vectorizer).topic_coordinates) == 3


def test_models_can_be_pickled_and_cloned(corpus, model):
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.transform(corpus[0]), model.transform(corpus[0]))
    assert again.coherence() == model.coherence()
    assert not hasattr(clone(model), "components_")


# Streams


def test_batches_keep_the_numbers_of_topics_and_add_those_that_are_new():
    X, _, _ = planted(D=300, V=150, K=4)
    first = HDPTopics().fit(X[:150])
    model = HDPTopics().partial_fit(X[:150])
    assert_array_equal(first.components_, model.components_)
    model.partial_fit(X[150:])
    assert model.n_topics_ == 4
    distance = 0.5 * np.abs(first.components_[:, None] - model.components_[None]).sum(axis=2)
    assert_array_equal(distance.argmin(axis=1), np.arange(4))
    assert_allclose(model.topic_word_counts_.sum(), X.sum(), rtol=1e-5)
    assert model.cell_labels_.size == X[150:].nnz
    other, _, _ = planted(D=150, V=150, K=2, seed=77)
    model.partial_fit(other)
    assert model.n_topics_ == 6
    assert_array_equal(distance.argmin(axis=1), np.arange(4))
    assert_allclose(model.lam_global_, 5 * np.sqrt(X.sum() + other.sum()))


def test_the_free_energy_of_later_batches_has_the_counts_of_earlier_ones():
    X, _, _ = planted(D=700, V=1000, K=15, spread=0.3)
    model = HDPTopics(lam_global=300.0, n_topics_init=40, random_state=2).partial_fit(X[:500])
    model.set_params(lam_global="auto").partial_fit(X[500:])
    beta, n_topics, energy = model.soft_trace_.T
    same = (np.diff(beta) == 0) & (np.diff(n_topics) == 0)
    assert same.sum() >= 3
    assert (np.diff(energy)[same] <= 2e-6 * np.abs(energy[1:][same])).all()


def test_a_given_number_of_topics_holds_for_batches(corpus):
    X = corpus[0]
    model = HDPTopics(n_topics=4).partial_fit(X[:120])
    assert model.partial_fit(X[120:]).n_topics_ == 4


# Limits of the user


def test_time_runs_out_gracefully():
    X, _, _ = planted(D=2000, V=2000, K=10)
    for limit in (0.0, 0.2):
        with pytest.warns(ConvergenceWarning, match="max_time"):
            model = HDPTopics(max_time=limit).fit(X)
        assert_allclose(model.transform(X[:5]).sum(axis=1), 1.0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("options", [{}, {"mix": 0, "search": "paper", "tol": 0}])
def test_ctrl_c_keeps_the_best_so_far(options):
    X, _, _ = planted(D=4000, V=3000, K=30, length=200)
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = HDPTopics(n_topics_init=400, lam_global=1.0, **options).fit(X)
    assert model.n_topics_ >= 1
    assert model.cell_labels_.size == X.nnz
    assert_allclose(model.transform(X[:5]).sum(axis=1), 1.0)


def test_verbose_reports_every_pass_and_silence_is_silent(corpus, capsys):
    HDPTopics().fit(corpus[0])
    assert capsys.readouterr().out == ""
    HDPTopics(verbose=1).fit(corpus[0])
    said = capsys.readouterr().out
    assert "soft, pass 25" in said
    assert "hard, pass 1" in said


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X * 0.5, r"needs whole numbers, but X\[\d+, \d+\] = .*not tf-idf"),
        (lambda X: -X, r"Negative values in data: HDPTopics needs counts >= 0, but X\[0, \d+\] = -"),
        (lambda X: 0 * X, "The corpus is empty: none of the 240 documents"),
        (lambda X: sp.vstack([X[:3], 0 * X[3:5], X[5:]]), r"2 of 240 documents have no words \(rows 3, 4\). Drop them"),
        (lambda X: X[:, :0], "0 feature"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: X.toarray() * np.nan, "contains NaN"),
    ],
)
def test_bad_counts_are_named(corpus, change, message):
    with pytest.raises(ValueError, match=message):
        HDPTopics().fit(sp.csr_matrix(change(corpus[0])))


def test_another_vocabulary_is_an_error(corpus, model):
    for method in (model.transform, model.score, lambda X: model.coherence(5, X), model.partial_fit):
        with pytest.raises(ValueError, match=r"149 features.*150"):
            method(corpus[0][:, 1:])
    with pytest.raises(ValueError, match="vocabulary has shape"):
        model.top_words(3, vocabulary=["one", "two"])
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(0 * corpus[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lam_local": -1.0}, ValueError, "lam_local must be >= 0"),
        ({"lam_global": "big"}, ValueError, "Unknown lam_global"),
        ({"mix": 1.5}, ValueError, "mix must be at most 1"),
        ({"mix": None}, TypeError, "mix must be a number"),
        ({"search": "gibbs"}, ValueError, "Unknown search"),
        ({"search": "paper"}, ValueError, "needs mix=0 and n_topics=None"),
        ({"n_topics": 0}, ValueError, "n_topics must be >= 1"),
        ({"n_topics": 241}, ValueError, "241 topics cannot be started from 240 documents"),
        ({"n_topics_init": 0}, ValueError, "n_topics_init must be >= 1"),
        ({"components": "both"}, ValueError, "Unknown components"),
        ({"smoothing": 0.0}, ValueError, "smoothing must be >= 1e-06"),
        ({"max_iter": 2.5}, TypeError, "max_iter must be an integer"),
        ({"tol": -1.0}, ValueError, "tol must be >= 0"),
        ({"max_time": -1.0}, ValueError, "max_time must be >= 0"),
    ],
)
def test_bad_parameters_are_named(corpus, options, error, message):
    with pytest.raises(error, match=message):
        HDPTopics(**options).fit(corpus[0])


def test_questions_need_a_fit_and_sensible_numbers(corpus, model):
    with pytest.raises(NotFittedError):
        HDPTopics().transform(corpus[0])
    with pytest.raises(ValueError, match="needs a reference"):
        model.coherence(60)
    with pytest.raises(ValueError, match="n must be >= 2"):
        model.coherence(1)
    with pytest.raises(ValueError, match="Unknown by"):
        model.top_words(3, by="weight")
    paper = HDPTopics(mix=0, search="paper").fit(corpus[0])
    with pytest.raises(ValueError, match="partial_fit is there for search='anneal' only"):
        paper.partial_fit(corpus[0])
    with pytest.warns(ConvergenceWarning, match="Labels still change after max_iter=1"):
        HDPTopics(max_iter=1, tol=0.0).fit(corpus[0])


# scikit-learn's own checks

WHOLE = "the check's data are not whole numbers, which is an error that says so"
EMPTY = "the check's data have documents without words, which is an error that says so"
_EMPTY_CHECKS = (
    "estimators_dtypes sample_weights_pandas_series sample_weights_not_an_array estimator_sparse_tag "
    "estimator_sparse_array estimator_sparse_matrix fit2d_1feature"
)
_WHOLE_CHECKS = (
    "fit_score_takes_y estimators_overwrite_params dont_overwrite_parameters estimators_fit_returns_self "
    "readonly_memmap_input n_features_in_after_fitting sample_weights_list all_zero_sample_weights_error "
    "sample_weight_equivalence_on_dense_data sample_weight_equivalence_on_sparse_data dtype_object "
    "pipeline_consistency estimators_nan_inf estimators_pickle f_contiguous_array_estimator "
    "transformer_data_not_an_array transformer_general transformer_preserve_dtypes transformer_n_iter "
    "methods_sample_order_invariance methods_subset_invariance fit2d_1sample dict_unchanged fit_idempotent "
    "fit_check_is_fitted n_features_in fit2d_predict1d"
)


class OnCounts(HDPTopics):
    """The same on the checks' data rounded up: shows that nothing else is in their way."""

    def _counts(self, X, *, reset):
        X = check_table(self, X, reset=reset)
        X = sp.csr_matrix(X, dtype=float)
        X.data = np.ceil(X.data)
        if (X.data < 0).any():
            raise ValueError("Negative values in data: HDPTopics needs counts >= 0")
        X.eliminate_zeros()
        return X


def expected(estimator):
    checks = {f"check_{check}": EMPTY for check in _EMPTY_CHECKS.split()}
    if not isinstance(estimator, OnCounts):
        checks |= {f"check_{check}": WHOLE for check in _WHOLE_CHECKS.split()}
    return checks


@parametrize_with_checks([OnCounts(), HDPTopics()], expected_failed_checks=expected)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)
