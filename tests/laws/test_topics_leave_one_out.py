"""Closing passes: every cell is judged by the counts of the others."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kfree.inference.loop import Budget
from kfree.inference.topics.leave_one_out import burstiness, close, closing_pass
from kfree.inference.topics.soft_topics import Soft, soft_pass
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.rows import Documents
from support.small_corpora import NONE, goal_of, planted, random_documents, random_soft, table_of, tiny

SEEDS = st.integers(0, 2**20)


def slow_closing_pass(table, weight, soft, goal, burst):
    """Every cell by the counts of the others, as the formulas say; float64."""
    G, e, mix = soft.G, goal.pseudo, goal.mix
    W, S = soft.words[:, :G].astype(float), soft.documents[:, :G].astype(float)
    mass, alpha = W.sum(axis=0) + e.sum(), TOPICS.concentration / G
    words, shares = np.zeros_like(W), np.zeros_like(S)
    for j, w in zip(*np.nonzero(table)):
        n = table[j, w]
        q = (W[w] + e[w]) / mass * (mix * S[j] + alpha) ** mix
        own = (1 + burst * (n - 1)) * q / q.sum()
        of_word = np.maximum(W[w] - min(weight[j], 1) * own, 0) + e[w]
        of_word = np.maximum(of_word - 2 * burst * min(weight[j], 1) * own, of_word / 2)
        of_document = mix * np.maximum(S[j] - own, 0) + alpha
        of_document = np.maximum(of_document - 2 * burst * mix * own, of_document / 2)
        q = of_word / mass * of_document**mix
        shares[j] += n * q / q.sum()
        words[w] += weight[j] * n * q / q.sum()
    return shares, words


@given(SEEDS, st.sampled_from([0.6, 1.0]), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_a_closing_pass_is_the_formula(seed, mix, burst, weighted):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, weighted=weighted)
    soft = random_soft(rng, documents, int(rng.integers(2, 20)))
    goal = goal_of(documents, pseudo=rng.random(documents.p) + 0.05, mix=mix)
    for _ in range(3):
        new = closing_pass(documents, soft, goal, burst)
        by_hand = slow_closing_pass(table_of(documents), documents.weights, soft, goal, burst)
        assert_allclose(new.documents[:, : soft.G], by_hand[0], rtol=2e-3, atol=1e-4)
        assert_allclose(new.words[:, : soft.G], by_hand[1], rtol=2e-3, atol=1e-4)
        assert not new.documents[:, soft.G :].any()
        assert not new.words[:, soft.G :].any()
        soft = new


def test_a_word_of_one_document_says_nothing_of_its_topic():
    table = np.array([[4.0, 5, 0, 0, 9], [5, 4, 0, 0, 0], [0, 0, 5, 4, 0], [0, 0, 4, 5, 0]])
    documents = tiny(table)
    goal = goal_of(documents)
    shares, words = np.zeros((4, 16), np.float32), np.zeros((5, 16), np.float32)
    shares[[0, 1, 2, 3], [0, 0, 1, 1]] = [9, 9, 9, 9]
    shares[0, 1], words[4, 1] = 9, 9  # the lonely word sits in the topic that is wrong for its document
    words[[0, 1, 2, 3], [0, 0, 1, 1]] = 9
    soft = Soft(shares, words, 2)
    assert soft_pass(documents, soft, goal, 1.0)[0].words[4, 1] > 8.5
    assert closing_pass(documents, soft, goal, 1.0).words[4, 1] < 2


def state_of(topics, shares, documents):
    """Counts that have these topics (K, V) and shares (D, K)."""
    K = len(topics)
    words, counts = np.zeros((documents.p, 16), np.float32), np.zeros((documents.n, 16), np.float32)
    counts[:, :K] = shares * documents.length[:, None]
    words[:, :K] = topics.T * counts[:, :K].sum(axis=0)
    return Soft(counts, words, K)


def test_tokens_from_topics_come_one_by_one_and_repeated_ones_together():
    X, topics, shares = planted(D=400, V=2000, K=4, length=150, width=0.5, seed=5)
    documents = Documents(X, NONE)
    soft, goal = state_of(topics, shares, documents), goal_of(documents)
    assert burstiness(documents, soft, goal) < 0.05
    twice = Documents(X * 2, NONE)
    assert burstiness(twice, state_of(topics, shares, twice), goal) > 0.9
    once = Documents((X > 0).astype(float), NONE)
    assert burstiness(once, state_of(topics, shares, once), goal) == 0


@given(SEEDS)
def test_closing_keeps_every_token_and_whole_weights_are_copies(seed):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, D=8, empty=False)
    goal = goal_of(documents)
    weight = rng.integers(1, 4, documents.n)
    copies = np.repeat(np.arange(documents.n), weight)
    weighted = Documents(sp.csr_matrix(table_of(documents)), weight.astype(float))
    repeated = Documents(sp.csr_matrix(table_of(documents)[copies]), NONE)
    soft = random_soft(rng, weighted, 3)
    one, other = (
        closing_pass(table, start, goal, 0.7)
        for table, start in ((weighted, soft), (repeated, Soft(soft.documents[copies], soft.words, 3)))
    )
    assert_allclose(one.words, other.words, rtol=1e-4, atol=1e-5)
    assert_allclose(one.documents[copies], other.documents, rtol=1e-4, atol=1e-5)
    closed, passes = close(weighted, soft, goal, Budget())
    assert passes == TOPICS.close_passes
    assert_allclose(closed.documents.sum(axis=1), documents.length, rtol=1e-4)
    assert_allclose(closed.words.sum(axis=1), weighted.word_totals, rtol=1e-4)
