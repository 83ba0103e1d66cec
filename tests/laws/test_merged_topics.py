"""What mathematics demands of topics that are merged after a fit."""

from copy import deepcopy
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage

from kfree import HDPTopics
from kfree.inference.topics.hard_topics import count, labelled, topic_costs
from kfree.inference.topics.topic_goal import no_topics
from kfree.inference.topics.topic_tree import cut_tree, merge_tree
from kfree.models.topics import TopicModel
from kfree.rows import Documents
from support.small_corpora import planted, random_documents, random_goal

SEEDS = st.integers(0, 2**20)
#: All that is counted by topic.
BY_TOPIC = ("components_", "topic_word_counts_", "topic_sizes_", "doc_topic_", "documents_per_topic_", "objective_")
LABELS = ("cell_labels_", "doc_labels_", "topic_names_")


@pytest.fixture(scope="module")
def corpus():
    return planted(D=240, V=150, K=6, spread=0.2)[0]


@pytest.fixture(scope="module", params=["soft", "hard", "weighted", "paper"])
def model(request, corpus):
    weight = np.random.default_rng(0).integers(0, 3, 240) if request.param == "weighted" else None
    paper = {"mix": 0, "search": "paper", "n_topics_init": 6} if request.param == "paper" else {}
    components = "hard" if request.param == "hard" else "soft"
    return HDPTopics(components=components, **paper).fit(corpus, sample_weight=weight)


def same(one, two, **tolerance):
    for name in BY_TOPIC:
        assert_allclose(getattr(one, name), getattr(two, name), **tolerance, err_msg=name)
    for name in LABELS:
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.doc_topic_counts_.toarray(), two.doc_topic_counts_.toarray())


def copy_of(model):
    return deepcopy(model)


# The tree


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_the_tree_merges_the_pair_whose_words_then_cost_least_more(seed, mix, weighted):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng, weighted=weighted), int(rng.integers(1, 7))
    goal = random_goal(rng, documents, mix)
    labels = rng.integers(0, G, documents.data.size).astype(np.int32)
    tree = merge_tree(documents, count(documents, labels, G, no_topics(documents.p)), goal)
    assert tree.shape == (G - 1, 4)
    highest = 0.0
    for left in range(G, 1, -1):
        now = cut_tree(tree, left)[labels].astype(np.int32)
        counts = count(documents, now, left, no_topics(documents.p))
        pairs = np.array(list(combinations(range(left), 2)))
        words = topic_costs(counts.words, goal.pseudo)
        added = [counts.words[list(pair)].sum(axis=0, keepdims=True) for pair in pairs]
        costs = np.array([topic_costs(both, goal.pseudo)[0] for both in added]) - words[pairs].sum(axis=1)
        highest = max(highest, costs.min())
        assert_allclose(tree[G - left, 2], highest, rtol=1e-9, atol=1e-7)
        fewer = count(documents, cut_tree(tree, left - 1)[labels].astype(np.int32), left - 1, no_topics(documents.p))
        change = topic_costs(fewer.words, goal.pseudo).sum() - words.sum()
        assert_allclose(change, costs.min(), rtol=1e-9, atol=1e-7)


def test_trees_are_those_of_scipy(model):
    tree = model.topic_tree()
    assert is_valid_linkage(tree)
    assert is_monotonic(tree)
    assert tree[-1, 3] == model.n_topics_


def test_a_tree_is_cut_into_as_many_groups_as_wanted(model):
    tree, K = model.topic_tree(), model.n_topics_
    for n in range(1, K + 1):
        group = cut_tree(tree, n)
        assert_array_equal(np.unique(group), np.arange(n))
        if n < K:  # what was together stays together
            finer = cut_tree(tree, n + 1)
            assert all(np.unique(group[finer == k]).size == 1 for k in range(n + 1))


# Merges


def test_merged_topics_are_those_of_the_summed_counts(corpus, model):
    merged = copy_of(model).merge_topics([[0, 3], [4, 1]])
    assert merged.n_topics_ == merged.n_components_ == model.n_topics_ - 2
    groups = [[0, 3], [1, 4], *([k] for k in range(model.n_topics_) if k not in (0, 1, 3, 4))]
    words = np.stack([model.topic_word_counts_[group].sum(axis=0) for group in groups])
    shares = np.stack([model.doc_topic_[:, group].sum(axis=1) for group in groups], axis=1)
    order = np.argsort(-words.sum(axis=1), kind="stable")
    assert_allclose(merged.topic_word_counts_, words[order])
    assert_allclose(merged.topic_sizes_, words[order].sum(axis=1))
    assert_allclose(merged.doc_topic_, shares[:, order])
    assert_array_equal(merged.doc_labels_, shares[:, order].argmax(axis=1))
    made = TopicModel.of(words[order], model._topics.penalties)
    assert_allclose(merged.components_, made.mean.T)
    assert_allclose(merged.score(corpus), made.completion(corpus, None))
    assert_allclose(merged.transform(corpus), made.shares(corpus))
    assert_allclose(merged.transform(corpus, hard=True), made.hard_shares(corpus))
    assert_array_equal(merged.predict(corpus), made.shares(corpus).argmax(axis=1))


def test_labels_counts_and_objective_of_merged_topics_fit_together(corpus, model):
    merged = copy_of(model).merge_topics([[2, 0, 5]])
    documents = Documents(corpus, model._weight)
    lam_local = np.broadcast_to(model.lam_local_, 240)
    pseudo = np.full(150, model.smoothing_ / 150)
    goal = random_goal(np.random.default_rng(0), documents, model.mix)
    goal = goal._replace(lam_local=lam_local, lam_global=model.lam_global_, pseudo=pseudo, smoothing=model.smoothing_)
    by_hand = labelled(documents, merged.cell_labels_, merged.n_topics_, goal)
    assert_array_equal(merged.doc_topic_counts_.toarray(), by_hand.counts.documents.T)
    assert_allclose(merged.objective_, by_hand.objective)
    assert_allclose(model.objective_, labelled(documents, model.cell_labels_, model.n_topics_, goal).objective)


def test_merges_in_another_order_give_the_same(model):
    at_once = copy_of(model).merge_topics([[0, 3], [1, 2, 5]])
    same(copy_of(model).merge_topics([(5, 1, 2), np.array([3, 0])]), at_once)
    one = copy_of(model)
    for names in (model.topic_names_[[1, 2]], model.topic_names_[[0, 3]]):
        one.merge_topics([np.flatnonzero(np.isin(one.topic_names_, names))])
    # the result of the first merge is the only topic whose words are not those of an old one
    new = [k for k, name in enumerate(one.topic_names_) if name not in model.topic_names_]
    last = np.flatnonzero(one.topic_names_ == model.topic_names_[5])
    words = model.topic_word_counts_[[1, 2]].sum(axis=0)
    two = next(k for k in new if np.allclose(one.topic_word_counts_[k], words))
    same(one.merge_topics([[two, *last]]), at_once, rtol=1e-12)


def test_as_many_topics_as_there_are_change_nothing(model):
    before = vars(model).copy()
    again = copy_of(model).reduce_topics(model.n_topics_)
    same(again, model, rtol=0)
    assert vars(model.merge_topics([])) == before
    assert vars(model.merge_topics([[1]])) == before


def test_one_topic_is_the_corpus(corpus, model):
    one = copy_of(model).reduce_topics(1)
    counts = one._weight @ corpus if one._weight.size else np.asarray(corpus.sum(axis=0)).ravel()
    assert_allclose(one.topic_word_counts_[0], counts, rtol=1e-5, atol=1e-3)
    assert_allclose(one.doc_topic_, 1.0)
    assert_array_equal(one.predict(corpus), 0)
    assert one.documents_per_topic_.sum() == (one._weight.sum() if one._weight.size else 240)
    assert one.topic_tree().shape == (0, 4)


def test_fewer_topics_one_by_one_or_at_once_are_the_same(model):
    step = copy_of(model)
    for n in range(model.n_topics_ - 1, 1, -1):
        same(step.reduce_topics(n), copy_of(model).reduce_topics(n), rtol=1e-9)


def test_copies_and_weights_merge_alike(corpus):
    weight = np.random.default_rng(1).integers(0, 4, 240)
    rows = np.repeat(np.arange(240), weight)
    weighted = HDPTopics().fit(corpus, sample_weight=weight)
    copied = HDPTopics().fit(corpus[rows])
    assert weighted.n_topics_ == copied.n_topics_ == 6
    assert_allclose(weighted.topic_tree()[:, 2:], copied.topic_tree()[:, 2:], rtol=1e-5)
    for model in (weighted, copied):
        model.reduce_topics(3)
    assert_allclose(weighted.components_, copied.components_, atol=1e-4)
    assert_allclose(weighted.objective_, copied.objective_, rtol=1e-5)
    assert_allclose(weighted.doc_topic_[rows], copied.doc_topic_, atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_topics_without_tokens_can_be_merged(seed):
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.integers(0, 5, size=(rng.integers(4, 9), rng.integers(1, 5))) + 1)
    model = HDPTopics(n_topics=4).fit(X)
    fewer = copy_of(model).reduce_topics(2)
    assert fewer.n_topics_ == 2
    assert_allclose(fewer.topic_word_counts_.sum(), model.topic_word_counts_.sum())
    assert_allclose(fewer.doc_topic_.sum(axis=1), 1.0)
    assert len(set(fewer.topic_names_)) == 2
    assert np.isfinite(fewer.objective_)


# After merges


def test_batches_go_on_from_merged_topics(corpus):
    model = HDPTopics().partial_fit(corpus[:120]).reduce_topics(3)
    before = model.topic_word_counts_.sum()
    model.partial_fit(corpus[120:])
    assert model.n_topics_ >= 3
    assert_allclose(model.topic_word_counts_.sum(), before + corpus[120:].sum(), rtol=1e-5)
    assert_array_equal(model.doc_labels_, model.predict(corpus[120:]))


def test_coherence_knows_the_words_of_merged_topics_or_asks_for_documents(corpus):
    model = HDPTopics().fit(corpus).reduce_topics(2)
    assert_allclose(model.coherence(5), model.coherence(5, corpus))
    model._company = type(model._company)(model._company.words[:3], model._company.table[:, :3])
    with pytest.raises(ValueError, match="Pass the documents as reference"):
        model.coherence(5)
