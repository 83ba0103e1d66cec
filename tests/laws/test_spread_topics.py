"""Topics of documents in blocks: the same bits however they are cut, ordered and lost, and about those of memory."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import kfree
from kfree import HDPTopics
from kfree.inference.topics.fold_in import fold_in
from kfree.inference.topics.hard_topics import count, likely_labels, objective
from kfree.inference.topics.leave_one_out import closing_pass
from kfree.inference.topics.topic_goal import no_topics, topic_means
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_shards import TopicPass, WordUnits, pass_documents, soft_counts
from kfree.models.topics import LocalPrice
from kfree.rows import Documents
from kfree.rows.blocks import NearBlocks, RowBlock
from kfree.rows.exact_sums import CostSum, WeightRange
from support.documents_in_blocks import fit_documents_in_blocks
from support.numbers import set_numbers
from support.small_corpora import NONE, goal_of, planted, random_documents

#: What a fit leaves that is plain numbers.
NUMBERS = (
    "components_",
    "topic_word_counts_",
    "topic_names_",
    "topic_sizes_",
    "documents_per_topic_",
    "objective_",
    "objective_trace_",
    "soft_trace_",
    "lam_global_",
    "smoothing_",
    "n_iter_",
    "converged_",
)
#: What it leaves of each document.
OF_DOCUMENTS = ("doc_topic_", "doc_labels_", "doc_topic_counts_")


@pytest.fixture
def short(monkeypatch):
    """Corpora of a few hundred documents are long ones, with samples."""
    set_numbers(monkeypatch, "TOPICS", search_documents=200)


@pytest.fixture(scope="module")
def corpus():
    return planted(D=600, V=150, K=4)


def in_blocks(model, X, weight=None, cuts=(100, 100, 333)):
    with pytest.MonkeyPatch.context() as patch:
        return fit_documents_in_blocks(model, X, weight, cuts, patch)


def in_memory(model, X, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, sample_weight=weight)


def assert_same(one, two, order=slice(None)):
    for name in NUMBERS:
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in OF_DOCUMENTS:
        assert_array_equal(plain(getattr(one, name)), plain(getattr(two, name))[order], err_msg=name)
    assert one.explain() == two.explain()
    assert one.coherence() == two.coherence()


def plain(values):
    return values.toarray() if sp.issparse(values) else values


def alike(one, two):
    """Cosine of each topic of one model to the nearest of another."""
    a, b = (m.components_ / np.linalg.norm(m.components_, axis=1, keepdims=True) for m in (one, two))
    return (a @ b.T).max(axis=1)


# The same bits


@pytest.mark.usefixtures("short")
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    weights=st.sampled_from(["none", "whole", "real", "small"]),
    asked=st.sampled_from([{}, {"n_topics": 6}, {"components": "hard"}, {"mix": 0.0}, {"mix": 0.6, "lam_local": 2.0}]),
    kind=st.sampled_from(["csr", "dense", "float32", "int", "copies"]),
)
def test_neither_blocks_nor_the_order_of_documents_change_a_bit(seed, cuts, weights, asked, kind):
    rng = np.random.default_rng(seed)
    X = planted(D=400, V=60, K=3, length=40, seed=seed)[0]
    X = X[rng.integers(250, size=400)] if kind == "copies" else X
    weight = {
        "none": None,
        "whole": rng.integers(0, 4, 400).astype(float),
        "real": rng.gamma(1.0, size=400),
        "small": 1e-3 * rng.gamma(1.0, size=400),
    }[weights]
    shown = {"dense": X.toarray(), "float32": X.toarray().astype("f4"), "int": X.toarray().astype(int)}.get(kind, X)
    one = in_blocks(HDPTopics(**asked), X, weight, [200])
    order = rng.permutation(400)
    other = in_blocks(HDPTopics(**asked), shown[order], None if weight is None else weight[order], cuts)
    assert_same(other, one, order)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("asked", [{}, {"components": "hard"}])
def test_what_was_kept_beside_blocks_may_be_lost_at_any_time(corpus, asked, monkeypatch):
    whole = in_blocks(HDPTopics(**asked), corpus[0])
    rng, honest, keep, lost = np.random.default_rng(0), NearBlocks.ask, NearBlocks.keep, []

    def forget(blocks):
        for beside in blocks._beside:
            if rng.random() < 0.5:
                lost.append(bool(beside))
                beside.clear()

    def forgetful(self, question, arguments, merge):
        forget(self)
        if rng.random() < 0.3:  # a task that is run twice
            honest(self, question, arguments, merge)
        return honest(self, question, arguments, merge)

    def forgetful_keep(self, question, arguments):
        forget(self)
        return keep(self, question, arguments)

    monkeypatch.setattr(NearBlocks, "ask", forgetful)
    monkeypatch.setattr(NearBlocks, "keep", forgetful_keep)
    assert_same(in_blocks(HDPTopics(**asked), corpus[0]), whole)
    assert sum(lost) > 5


def test_few_documents_are_those_of_memory(corpus):
    model, whole = in_blocks(HDPTopics(), corpus[0]), in_memory(HDPTopics(), corpus[0])
    assert_same(model, whole)
    assert_array_equal(model.cell_labels_, whole.cell_labels_)
    model.merge_topics([[0, 2]])
    whole.merge_topics([[0, 2]])
    assert_array_equal(model.components_, whole.components_)
    assert_allclose(model.objective_, whole.objective_)
    assert_array_equal(model.doc_topic_, whole.doc_topic_)
    in_blocks(HDPTopics(search="paper", mix=0), corpus[0])  # which long corpora cannot have


# A pass


@given(seed=st.integers(0, 2**20), mix=st.sampled_from([0.6, 1.0]), weighted=st.booleans())
def test_a_pass_is_a_closing_pass_from_shares_by_the_topics(seed, mix, weighted):
    rng = np.random.default_rng(seed)
    documents, K = random_documents(rng, weighted=weighted, empty=False), int(rng.integers(1, 6))
    price, words = LocalPrice(1.3, 0.2), 5 * rng.random((K, documents.p))
    goal = goal_of(documents, mix=mix, lam_local=price.of(documents), pseudo=np.full(documents.p, 0.05))
    tokens = documents.data * documents.weights[documents.owner]
    most = np.zeros(documents.p)
    np.maximum.at(most, documents.indices, tokens)
    units = WordUnits.of(np.bincount(documents.indices, minlength=documents.p), most)
    weights = WeightRange.of(documents.weight)
    asked = TopicPass(0, words, goal._replace(lam_local=NONE), price.of, 0.4, units, weights, 1e6)
    passed = pass_documents(RowBlock(documents.table, documents.weight, 0), {}, asked)
    share = fold_in(documents, topic_means(words, goal.pseudo))
    soft = soft_counts(documents, share, words)
    for _ in range(TOPICS.settling_steps):  # documents come to agree with themselves while words stay
        soft = soft._replace(documents=closing_pass(documents, soft, goal, 0.4).documents)
    closed = closing_pass(documents, soft, goal, 0.4)
    assert_allclose(units.tokens(passed.soft.T), closed.words[:, :K].T, rtol=1e-5, atol=1e-5)
    # and J is that of the labels
    hard = units.tokens(passed.hard.toarray())
    assert_allclose(hard.sum(axis=0), np.bincount(documents.indices, tokens, documents.p))
    cost = CostSum(1e6, weights)
    cost.add(passed.cost)
    labels = asked_labels(documents, words, goal)
    counts = count(documents, labels, K, no_topics(documents.p))
    assert_allclose(hard, counts.words)
    alone = objective(documents, counts._replace(words=np.zeros_like(counts.words)), goal)
    assert_allclose(cost.value, alone, rtol=1e-9, atol=1e-9)


def asked_labels(documents, words, goal):
    mean = topic_means(words, goal.pseudo)
    return likely_labels(documents, mean, fold_in(documents, mean), goal.mix, goal.lam_local)


# About the topics of memory


@pytest.mark.usefixtures("short")
def test_planted_topics_are_those_of_memory(corpus):
    X = corpus[0]
    model, whole = in_blocks(HDPTopics(), X), in_memory(HDPTopics(), X)
    assert model.n_topics_ == whole.n_topics_ == 4
    assert model.lam_global_ == pytest.approx(whole.lam_global_)
    assert alike(model, whole).min() > 0.98
    assert alike(whole, model).min() > 0.98
    assert model.objective_ < 1.01 * whole.objective_
    test = planted(D=900, V=150, K=4)[0][600:]
    assert model.perplexity(test) < 1.01 * whole.perplexity(test)
    assert (model.doc_labels_ == whole.doc_labels_).mean() > 0.98


def test_passes_over_all_documents_do_not_fit_topics_to_their_noise():
    """Short documents, and more topics than there are."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(100, 0.3), 5)

    def drawn(n):
        shares = rng.dirichlet(np.full(5, 0.2), n) @ topics
        return sp.csr_matrix(np.array([rng.multinomial(25, row) for row in shares], float))

    X, new = drawn(6000), drawn(2000)
    whole = in_memory(HDPTopics(n_topics=15), X).perplexity(new)

    def found(**numbers):
        with pytest.MonkeyPatch.context() as patch:
            set_numbers(patch, "TOPICS", search_documents=3000, **numbers)
            return in_blocks(HDPTopics(n_topics=15), X, cuts=(2500,))

    model, one_pass, unsettled = found(), found(passes_everywhere=1), found(settling_steps=0)
    assert model.perplexity(new) < 1.02 * whole
    assert model.perplexity(new) < 1.002 * one_pass.perplexity(new)
    assert model.perplexity(new) < unsettled.perplexity(new)
    assert (np.diff(model.objective_trace_) < 0).all()


@pytest.mark.usefixtures("short")
def test_attributes_fit_together(corpus):
    X = corpus[0]
    weight = np.random.default_rng(0).integers(0, 3, 600).astype(float)
    for components in ("soft", "hard"):
        model = in_blocks(HDPTopics(components=components), X, weight)
        K = model.n_topics_
        assert_allclose(model.topic_sizes_.sum(), weight @ np.ravel(X.sum(axis=1)), rtol=1e-5)
        assert_array_equal(model.doc_topic_, model.transform(X))
        assert_array_equal(model.doc_labels_, model.predict(X))
        assert_array_equal(model.documents_per_topic_, np.bincount(model.doc_labels_, weight, K))
        assert_array_equal(model.doc_topic_counts_.sum(axis=1), np.ravel(X.sum(axis=1)))
        assert model.cell_labels_.shape == (X.nnz,)
        assert_allclose(model.lam_local_, 0.5 * np.log(np.ravel(X.sum(axis=1)) + 1))
        assert model.objective_ == model.objective_trace_[-1]
        assert (np.diff(model.objective_trace_) <= 0).all()
        hard = np.zeros((K, X.shape[1]))
        owner = np.repeat(np.arange(600), np.diff(X.indptr))
        np.add.at(hard, (model.cell_labels_, X.indices), X.data * weight[owner])
        assert_array_equal(model._hard_words.toarray(), hard)
        if components == "hard":
            assert_array_equal(model.topic_word_counts_, hard)


@pytest.mark.usefixtures("short")
def test_a_price_is_one_for_all_documents_and_a_number_is_given(corpus):
    X = corpus[0]
    model = in_blocks(HDPTopics(), X)
    again = in_blocks(HDPTopics(lam_global=model.lam_global_), X)
    assert again.n_topics_ == model.n_topics_
    assert in_blocks(HDPTopics(lam_global=100 * model.lam_global_), X).n_topics_ < model.n_topics_
    assert in_blocks(HDPTopics(n_topics=9), X).n_topics_ == 9


@pytest.mark.usefixtures("short")
def test_whole_weights_are_copies(corpus):
    X, weight = corpus[0], np.random.default_rng(1).integers(0, 3, 600)
    one = in_blocks(HDPTopics(), X, weight.astype(float))
    two = in_blocks(HDPTopics(), X[np.repeat(np.arange(600), weight)])
    assert_allclose(one.components_, two.components_, rtol=1e-4, atol=1e-9)
    assert_array_equal(one.documents_per_topic_, two.documents_per_topic_)
    assert one.objective_ == pytest.approx(two.objective_)


@pytest.mark.parametrize(("name", "K", "J", "perplexity"), [("kos", 0.2, 0.03, 0.03)])
def test_a_real_corpus_has_about_the_topics_of_memory(name, K, J, perplexity, monkeypatch):
    """From half of the documents: number of topics, J and perplexity of others, within these shares."""
    if not data.has(name):
        pytest.skip(f"{name}.npz is not there (see KFREE_DATA)")
    X = sp.load_npz(data.FOLDER / f"{name}.npz").astype(float).tocsr()
    often = X.getnnz(axis=0)
    X = X[:, (often >= 5) & (often <= 0.4 * X.shape[0])]
    X = X[X.getnnz(axis=1) > 0]
    chosen = np.random.default_rng(0).permutation(X.shape[0]) < 0.8 * X.shape[0]
    set_numbers(monkeypatch, "TOPICS", search_documents=int(chosen.sum() // 2))
    model, whole = in_blocks(HDPTopics(), X[chosen], cuts=(700, 1500)), in_memory(HDPTopics(), X[chosen])
    assert abs(model.n_topics_ - whole.n_topics_) <= K * whole.n_topics_
    assert model.objective_ <= (1 + J) * whole.objective_
    assert model.perplexity(X[~chosen]) <= (1 + perplexity) * whole.perplexity(X[~chosen])


@pytest.mark.usefixtures("short")
def test_documents_without_structure_are_one_topic(monkeypatch):
    X = np.random.default_rng(0).multinomial(40, np.full(50, 0.02), size=500)
    assert in_blocks(HDPTopics(), X).n_topics_ == 1


# What a model can be asked


@pytest.mark.usefixtures("short")
def test_a_model_can_be_merged_saved_and_asked_wherever_its_documents_are(corpus, tmp_path):
    X, model = corpus[0], in_blocks(HDPTopics(), corpus[0])
    lost = pickle.loads(pickle.dumps(model))
    for name in (*OF_DOCUMENTS, "cell_labels_", "lam_local_"):  # as they are for Dask arrays
        delattr(lost, name)
    lost.save(tmp_path / "model.kfree")
    lost = kfree.load(tmp_path / "model.kfree")
    labels, shares = model.doc_labels_, model.doc_topic_
    for one in (model, lost):
        one.merge_topics([[0, 2]])
    assert model.n_topics_ == lost.n_topics_ == 3
    for name in ("components_", "topic_sizes_", "documents_per_topic_", "objective_"):
        assert_array_equal(getattr(model, name), getattr(lost, name), err_msg=name)
    assert_array_equal(model.documents_per_topic_, np.bincount(model.doc_labels_))
    assert_allclose(model.doc_topic_.sum(axis=1), 1.0)
    assert_array_equal(model.doc_labels_ == model.doc_labels_[0], np.isin(labels, partners(labels[0])))
    assert_allclose(np.sort(model.doc_topic_[0])[-1], shares[0, partners(labels[0])].sum())
    assert lost.explain() == model.explain()
    assert lost.topic_tree().shape == (2, 4)
    assert_array_equal(lost.predict(X[:9]), model.predict(X[:9]))
    assert kfree.TopicsDisplay.from_estimator(lost) is not None
    lost.name_topics([f"w{i}" for i in range(150)]).reduce_topics(2).partial_fit(X[:100])
    assert lost.doc_labels_.shape == (100,)
    assert lost.merge_topics([[0, 1]]).doc_topic_.shape[0] == 100


def partners(topic):
    return [0, 2] if topic in (0, 2) else [topic]


@pytest.mark.usefixtures("short")
def test_what_a_merge_does_to_the_objective_is_about_what_it_does_to_that_of_all(corpus):
    X, model = corpus[0], in_blocks(HDPTopics(), corpus[0])
    before = model.objective_
    model.merge_topics([[0, 1]])
    documents = Documents(X, NONE)
    goal = goal_of(
        documents, lam_local=model.lam_local_, lam_global=model.lam_global_, pseudo=np.full(150, model.smoothing_ / 150)
    )
    counts = count(documents, model.cell_labels_, 3, no_topics(150))
    assert_allclose(model.objective_ - before, objective(documents, counts, goal) - before, rtol=0.1)


# Ends


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("place", [2, 5, 8, 9, 12, 18])
def test_an_interrupt_leaves_the_best_so_far_or_nothing(corpus, place, monkeypatch):
    calls, honest = [], NearBlocks.ask

    def interrupted(self, question, arguments, merge):
        calls.append(question)
        if len(calls) == place:
            honest(self, question, arguments, merge)
            raise KeyboardInterrupt
        return honest(self, question, arguments, merge)

    monkeypatch.setattr(NearBlocks, "ask", interrupted)
    model = HDPTopics()
    try:
        in_blocks(model, corpus[0])
    except KeyboardInterrupt:
        assert not hasattr(model, "components_")
        return
    assert_array_equal(model.doc_labels_, model.predict(corpus[0]))
    assert_allclose(model.topic_sizes_.sum(), corpus[0].sum(), rtol=0.05)


@pytest.mark.usefixtures("short")
def test_no_time_gives_the_best_so_far(corpus, monkeypatch):
    monkeypatch.setattr("support.documents_in_blocks.warnings.simplefilter", lambda kind: None)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = in_blocks(HDPTopics(max_time=1e-9), corpus[0])
    assert_array_equal(model.doc_labels_, model.predict(corpus[0]))
    assert_allclose(model.topic_sizes_.sum(), corpus[0].sum(), rtol=1e-4)


@pytest.mark.usefixtures("short")
def test_passes_over_all_documents_are_told(corpus, capsys):
    in_blocks(HDPTopics(verbose=1), corpus[0])
    assert "all documents, pass 1: 4 topics, objective" in capsys.readouterr().out


class TestErrors:
    @pytest.mark.usefixtures("short")
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"search": "paper", "mix": 0}, "search='paper' visits cells one by one.*X\\.compute"),
            ({"refine": "collapsed"}, "refine='collapsed' moves cells one by one.*X\\.compute"),
            ({"n_topics": 300}, "cannot be started from 200 documents"),
        ],
    )
    def test_what_cannot_be_done_in_blocks_is_refused_with_a_way_out(self, corpus, settings, words):
        with pytest.raises(ValueError, match=words):
            in_blocks(HDPTopics(**settings), corpus[0])

    @pytest.mark.parametrize(
        ("value", "words"),
        [(-1.0, "needs counts >= 0, but X.20, 3. = -1"), (0.5, "whole numbers, but X.20, 3. = 0.5"), (np.nan, "20, 3")],
    )
    @pytest.mark.parametrize("sparse", [False, True])
    def test_bad_counts_are_found_in_their_block(self, corpus, value, words, sparse):
        X = corpus[0].toarray()
        X[120, 3] = value
        with pytest.raises(ValueError, match=f"Block 2 of X .*{words}"):
            in_blocks(HDPTopics(), sp.csr_matrix(X) if sparse else X)

    def test_documents_without_words_are_named(self, corpus):
        X = corpus[0].toarray()
        X[[3, 101, 599]] = 0
        with pytest.raises(
            ValueError, match=r"3 of 600 .* no words \(rows 3 of block 0, 1 of block 2, 266 of block 3\)"
        ):
            in_blocks(HDPTopics(), X)
        with pytest.raises(ValueError, match="The corpus is empty"):
            in_blocks(HDPTopics(), np.zeros((600, 3)))

    def test_weights_are_looked_at(self, corpus):
        with pytest.raises(ValueError, match="zero for every row"):
            in_blocks(HDPTopics(), corpus[0], np.zeros(600))
        with pytest.raises(ValueError, match=r"Block 0 of X .*sample_weight"):
            in_blocks(HDPTopics(), corpus[0], np.full(600, -1.0))
        with pytest.raises(ValueError, match=r"Block 0 of X .*weights that are 0 or between"):
            in_blocks(HDPTopics(), corpus[0], np.full(600, 1e-20))
