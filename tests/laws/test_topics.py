"""What mathematics demands of topics: descent, exact changes, equality with algorithms written out."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from kfree import HDPTopics
from kfree.inference.loop import Budget
from kfree.inference.topics.fold_in import fold_in, split_tokens
from kfree.inference.topics.hard_topics import count, harden, labelled, objective, solve, word_prices
from kfree.inference.topics.hdp_cells import first_state, one_pass, shuffled
from kfree.inference.topics.randomness_test import look_for_structure
from kfree.inference.topics.soft_topics import Soft, soft_pass, topic_counts
from kfree.inference.topics.topic_goal import no_topics
from kfree.inference.topics.topic_merges import joined, merge_changes
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_seeds import first_topics, one_topic
from kfree.rows import Documents, set_span_threads
from kfree.rows import documents as documents_module
from kfree.rows import threads as threads_module
from support.small_corpora import (
    NONE,
    SlowHDP,
    goal_of,
    planted,
    random_documents,
    random_goal,
    random_soft,
    structureless,
    table_of,
    tiny,
    x_log_x,
)

SEEDS = st.integers(0, 2**20)


# Soft passes


def slow_soft_pass(table, weight, soft, goal, beta):
    """T2 in float64: the free energy of the parameters that belong to the counts, and the next counts."""
    G, a, e = soft.G, TOPICS.concentration, goal.pseudo
    theta = goal.mix * soft.documents[:, :G].astype(float) + a / G
    theta /= theta.sum(axis=1, keepdims=True)
    counts = np.zeros((len(e), G)) + e[:, None]
    counts[:, : goal.n_known] += goal.known
    mu = soft.words[:, :G].astype(float) + counts
    mu /= mu.sum(axis=0)
    q = (mu[None] * theta[:, None] ** goal.mix) ** beta
    q /= q.sum(axis=2, keepdims=True)
    inner = -np.log(mu)[None] - goal.mix * np.log(theta)[:, None] + np.log(q) / beta
    energy = (weight[:, None, None] * table[:, :, None] * q * inner).sum()
    energy -= (weight[:, None] * a / G * np.log(theta)).sum() + (counts * np.log(mu)).sum()
    tokens = table[:, :, None] * q
    return energy, tokens.sum(axis=1), (weight[:, None, None] * tokens).sum(axis=0)


@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.6, 1.0]), st.booleans())
def test_a_soft_pass_is_the_formula_and_the_free_energy_never_rises(seed, beta, mix, weighted):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, weighted=weighted)
    soft = random_soft(rng, documents, int(rng.integers(1, 20)))
    known = rng.gamma(1.0, 5.0, (documents.p, rng.integers(0, soft.G + 1)))
    goal = goal_of(documents, pseudo=rng.random(documents.p) + 0.05, mix=mix, known=known)
    last = np.inf
    for _ in range(6):
        new, energy = soft_pass(documents, soft, goal, beta)
        by_hand = slow_soft_pass(table_of(documents), documents.weights, soft, goal, beta)
        for mine, theirs in zip((energy, new.documents[:, : soft.G], new.words[:, : soft.G]), by_hand):
            assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)
        assert energy <= last + 1e-5 * (1 + abs(energy))
        assert not new.documents[:, soft.G :].any()
        assert not new.words[:, soft.G :].any()
        soft, last = new, energy


def test_counts_of_earlier_documents_are_counts():
    X, _, _ = planted(D=60, V=50, K=3)
    first, second, together = (Documents(part, NONE) for part in (X[:30], X[30:], X))
    soft, goal = random_soft(np.random.default_rng(0), together, 3), goal_of(together)
    early = Soft(soft.documents[:30], soft.words, 3)
    known = soft_pass(first, early, goal, 1.0)[0].words[:, :3].astype(float)
    late = Soft(soft.documents[30:], soft.words - (known @ np.eye(3, 16)).astype(np.float32), 3)
    mine = soft_pass(second, late, goal._replace(known=known), 1.0)[0]
    both = soft_pass(together, soft, goal, 1.0)[0]
    assert_allclose(mine.documents, both.documents[30:], rtol=1e-3, atol=1e-3)
    assert_allclose(topic_counts(mine, goal._replace(known=known)), topic_counts(both, goal), rtol=1e-3, atol=1e-3)


# The objective


def slow_objective(documents, labels, goal):
    """T1 from its parts: the words at the smoothed means, the pseudo-tokens' share, mixing and prices."""
    e, eta = goal.pseudo, goal.pseudo.sum()
    total = 0.0
    for p in np.unique(labels):
        mine = labels == p
        weight = documents.weights[documents.owner[mine]]
        counts = np.bincount(documents.indices[mine], weight * documents.data[mine], documents.p)
        mu, mu0 = (counts + e) / (counts.sum() + eta), e / eta
        total += -(counts * np.log(mu)).sum() + eta * (mu0 * np.log(mu0 / mu)).sum() + goal.lam_global
    for j in range(documents.n):
        mine = documents.owner == j
        held = [documents.data[mine & (labels == p)].sum() for p in np.unique(labels[mine])]
        mixing = x_log_x(documents.length[j]) - sum(map(x_log_x, held))
        total += documents.weights[j] * (goal.mix * mixing + goal.lam_local[j] * len(held))
    return total


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_the_objective_is_the_formula_and_merges_change_it_as_they_say(seed, mix, weighted):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng, weighted=weighted), 4
    labels = np.concatenate([np.arange(G), rng.integers(0, G, 99)])[: documents.data.size].astype(np.int32)
    goal = random_goal(rng, documents, mix)
    counts = count(documents, labels, G, no_topics(documents.p))
    value = objective(documents, counts, goal)
    assert_allclose(value, slow_objective(documents, labels, goal), rtol=1e-10, atol=1e-9)
    used = np.unique(labels)
    pairs = np.array(list(combinations(used, 2)), dtype=int).reshape(-1, 2)
    changes = merge_changes(documents, counts, pairs, goal)
    for (p, q), change in zip(pairs, changes):
        after = slow_objective(documents, np.where(labels == q, p, labels), goal)
        assert_allclose(change, after - value, rtol=1e-9, atol=1e-8)


def test_merging_a_state_adds_counts():
    documents = random_documents(np.random.default_rng(3), D=8, V=6)
    soft = random_soft(np.random.default_rng(4), documents, 20)
    merged = joined(soft, [(2, 5), (0, 19)])
    assert merged.G == 18
    assert merged.words.shape == (6, 32)
    assert_allclose(merged.documents[:, 2], soft.documents[:, 2] + soft.documents[:, 5])
    assert_allclose(merged.words.sum(), soft.words.sum(), rtol=1e-6)


# Hard passes


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_documents_solved_anew_never_cost_more(seed, mix, weighted):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng, weighted=weighted), 4
    goal = random_goal(rng, documents, mix, max_iter=50)
    start = labelled(documents, rng.integers(0, G, documents.data.size).astype(np.int32), G, goal)
    outcome = harden(documents, start, goal, Budget())
    trace = [start.objective, *outcome.trace]
    assert (np.diff(trace) <= 1e-9 * (1 + np.abs(trace[1:]))).all()
    assert outcome.state.objective == trace[-1]
    assert_allclose(trace[-1], slow_objective(documents, outcome.state.labels, goal), rtol=1e-9, atol=1e-9)


def test_documents_as_facility_location_are_nearly_always_solved_exactly():
    rng, exact, runs = np.random.default_rng(0), 0, 150
    for _ in range(runs):
        documents, G = random_documents(rng, D=1, V=7, empty=False), 6
        prices = -np.log(rng.dirichlet(np.full(7, 0.4), G).T * 0.99 + 1e-3)
        lam = np.full(1, rng.choice([0.5, 2.0, 5.0]))
        labels = solve(documents, np.zeros(documents.data.size, np.int32), prices, 0.0, lam)
        cost = documents.data[:, None] * prices[documents.indices]

        def value(held, cost=cost, lam=lam):
            return cost[:, held].min(axis=1).sum() + lam[0] * len(held)

        subsets = [list(s) for size in range(1, G + 1) for s in combinations(range(G), size)]
        mine = cost[np.arange(labels.size), labels].sum() + lam[0] * np.unique(labels).size
        best = min(map(value, subsets))
        assert mine >= best - 1e-9
        exact += mine <= best + 1e-9
    assert exact >= 0.9 * runs


def partitions(n):
    """All labellings of n things up to names."""

    def grow(labels, used):
        if len(labels) == n:
            yield np.array(labels, np.int32)
            return
        for p in range(used + 1):
            yield from grow([*labels, p], max(used, p + 1))

    return grow([], 0)


def least(documents, goal):
    return min(slow_objective(documents, labels, goal) for labels in partitions(documents.data.size))


def test_special_cases_of_the_two_prices():
    documents, pseudo = tiny([[3, 1, 0], [0, 2, 2], [1, 0, 4]]), np.full(3, 1e-7)
    local, top = 0.7, 1.1
    flat = [tiny([row]) for row in table_of(documents)]

    def charge(docs, lam_local, lam_global):
        return goal_of(docs, mix=0.0, lam_local=np.full(docs.n, lam_local), lam_global=lam_global, pseudo=pseudo)

    # topics for nothing, hardly any smoothing: every document for itself
    apart = sum(least(one, charge(one, local, 0.0)) for one in flat)
    assert_allclose(least(documents, charge(documents, local, 0.0)), apart, rtol=1e-4)
    # no local price: it does not matter which document a cell is in (here: each in one of its own)
    rows = np.zeros((documents.data.size, 3))
    rows[np.arange(documents.data.size), documents.indices] = documents.data
    pooled = tiny(rows)
    assert_allclose(least(documents, charge(documents, 0.0, top)), least(pooled, charge(pooled, 0.0, top)))
    # one document: the prices add up
    assert_allclose(least(flat[0], charge(flat[0], local, top)), least(flat[0], charge(flat[0], 0.0, local + top)))


@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_fits_of_tiny_corpora_come_near_the_best_of_all_labellings(mix):
    documents = tiny([[6, 5, 0, 0], [5, 6, 0, 0], [0, 0, 6, 5], [0, 0, 4, 6]])
    model = HDPTopics(10.0, 0.5, mix=mix, smoothing=0.4, n_topics_init=4, n_topics=2).fit(table_of(documents))
    goal = goal_of(documents, mix=mix, lam_local=np.full(4, 10.0), lam_global=0.5, pseudo=np.full(4, 0.1))
    assert_allclose(model.objective_, slow_objective(documents, model.cell_labels_, goal))
    assert_allclose(model.objective_, least(documents, goal), rtol=1e-9)
    paper = HDPTopics(10.0, 0.5, mix=0, search="paper", smoothing=0.4, n_topics_init=2, tol=0).fit(table_of(documents))
    goal = goal._replace(mix=0.0)
    assert paper.objective_ >= least(documents, goal) - 1e-9
    assert_allclose(paper.objective_, slow_objective(documents, paper.cell_labels_, goal))


# The papers' algorithm


@given(SEEDS, st.sampled_from([0.1, 1.0, 4.0]), st.sampled_from([0.1, 1.0, 6.0]), st.booleans())
def test_the_papers_algorithm_equals_one_cell_at_a_time(seed, lam_local, lam_global, seeded):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, empty=False)
    prices = {"lam_local": np.full(documents.n, lam_local), "lam_global": lam_global}
    goal = goal_of(documents, mix=0.0, **prices, pseudo=rng.random(documents.p) * 0.5 + 0.05)
    slow = SlowHDP(table_of(documents), goal.pseudo, goal.lam_local, lam_global)
    chosen = rng.permutation(documents.n)[:2] if seeded else np.zeros(0, int)
    state = first_state(documents, chosen)
    held = [[] if seeded else [0] for _ in range(documents.n)]
    last = np.inf
    for _ in range(4):
        order, cells = shuffled(documents, rng)
        inside = [
            cells[documents.indptr[j] : documents.indptr[j + 1]] - documents.indptr[j] for j in range(documents.n)
        ]
        labels, held = slow.one_pass([slow.centre(counts) for counts in state.words], held, order, inside)
        state = one_pass(documents, state, goal, order, cells)
        pairs = zip(documents.owner.tolist(), documents.indices.tolist())
        assert state.labels.tolist() == [labels[cell] for cell in pairs]
        for j in range(documents.n):
            start = 2 * documents.indptr[j]
            assert state.held[start : start + state.n_held[j]].tolist() == held[j]
        value = slow_objective(documents, state.labels, goal)
        assert value <= last + 1e-9
        last = value


# Fold-in, halves


@given(SEEDS)
def test_fold_in_raises_the_posterior_and_sums_to_one(seed):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng), 4
    mean = rng.dirichlet(np.ones(documents.p), G).T + 1e-4
    share = fold_in(documents, mean)
    assert_allclose(share.sum(axis=1), 1.0)
    assert_allclose(share[documents.length == 0], 1 / G)

    def posterior(theta):
        chance = (mean[documents.indices] * theta[documents.owner]).sum(axis=1)
        return (documents.data * np.log(chance)).sum() + (0.25 * np.log(theta)).sum()

    assert posterior(share) >= posterior(np.full_like(share, 1 / G)) - 1e-9


@given(SEEDS)
def test_halves_hold_every_token_once_and_do_not_depend_on_the_order_of_documents(seed):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng)
    given_half, held = split_tokens(documents)
    assert_array_equal(given_half + held, documents.data)
    assert (given_half >= 0).all()
    assert (held >= 0).all()
    half = np.bincount(documents.owner, given_half, documents.n)
    assert_array_equal(half, documents.length // 2)
    order = rng.permutation(documents.n)
    table = sp.csr_matrix((given_half, documents.indices, documents.indptr), shape=(documents.n, documents.p)).toarray()
    other = Documents(sp.csr_matrix(table_of(documents)[order]), NONE)
    again = split_tokens(other)[0]
    assert_array_equal(sp.csr_matrix((again, other.indices, other.indptr), shape=table.shape).toarray(), table[order])


def test_halves_of_words_that_a_document_has_very_often_take_little_memory():
    documents = tiny([[1e15, 3, 5e12], [0, 7, 2]])
    given_half, held = split_tokens(documents)
    assert_array_equal(given_half + held, documents.data)
    assert_array_equal(np.bincount(documents.owner, given_half), documents.length // 2)
    assert abs(given_half[0] - held[0]) < 1000


# Promises


def test_planted_topics_are_found_with_their_number():
    for K, spread in ((3, 0.1), (6, 0.1), (5, 0.5)):
        X, topics, _ = planted(D=600, V=500, K=K, length=200, spread=spread, seed=K)
        model = HDPTopics().fit(X)
        assert model.n_topics_ == K
        distance = 0.5 * np.abs(model.components_[:, None] - topics[None]).sum(axis=2)
        assert distance[linear_sum_assignment(distance)].max() < 0.1


@pytest.mark.parametrize("seed", range(6))
def test_no_structure_is_seen_where_there_is_none_and_seen_where_there_is(seed):
    rng = np.random.default_rng(seed)
    V, D = (60, 500, 2000)[seed % 3], (100, 400)[seed % 2]
    shares = rng.dirichlet(np.full(V, 0.3)) if seed < 3 else 1 / np.arange(1, V + 1)
    lengths = rng.poisson(rng.gamma(2.0, 30.0, D)) + 1
    X = np.stack([rng.multinomial(n, shares / shares.sum()) for n in lengths]).astype(float)
    assert not look_for_structure(Documents(sp.csr_matrix(X), NONE), rng, Budget()).found
    X, _, _ = planted(D=D, K=4, seed=seed)
    assert look_for_structure(Documents(X, NONE), rng, Budget()).found


def test_structureless_documents_are_one_topic_and_the_user_is_told():
    with pytest.warns(UserWarning, match="No structure was found"):
        model = HDPTopics().fit(structureless())
    assert model.n_topics_ == 1
    assert not model.structure_.found


def test_equal_documents_are_one_topic():
    X = np.tile(np.random.default_rng(0).poisson(2.0, 40), (25, 1))
    with pytest.warns(UserWarning, match="No structure"):
        assert HDPTopics().fit(X).n_topics_ == 1


def test_topics_do_not_depend_on_threads_or_blocks(monkeypatch):
    X, _, _ = planted(D=500, V=300, K=8)
    monkeypatch.setattr(threads_module, "WORTH_THREADS", 0)
    results = []
    for threads, block in ((1, 256), (2, 256), (3, 50)):
        monkeypatch.setattr(documents_module, "_BLOCK", block)
        monkeypatch.setattr(documents_module, "_SPAN", 8 * block)
        with set_span_threads(threads):
            documents = Documents(X, NONE)
            goal = goal_of(documents, n_seeds=12)
            soft = first_topics(documents, goal, Budget(), np.random.default_rng(0))
            for beta in (0.8, 1.0, 1.0):
                soft, energy = soft_pass(documents, soft, goal, beta)
        results.append((soft, energy))
    assert_array_equal(results[0][0].documents, results[1][0].documents)
    assert_array_equal(results[0][0].words, results[1][0].words)
    assert results[0][1] == results[1][1]
    assert_allclose(results[0][0].documents, results[2][0].documents, rtol=1e-3, atol=1e-3)


def test_documents_in_another_order_and_weights_instead_of_copies_give_the_same_topics():
    X, _, _ = planted(D=200, V=120, K=4)
    model = HDPTopics().fit(X)
    order = np.random.default_rng(0).permutation(200)
    other = HDPTopics().fit(X[order])
    assert_allclose(other.components_, model.components_, atol=1e-4)
    weight = np.random.default_rng(1).integers(0, 4, 200)
    copied = HDPTopics().fit(X[np.repeat(np.arange(200), weight)])
    weighted = HDPTopics().fit(X, sample_weight=weight)
    assert copied.n_topics_ == weighted.n_topics_
    assert_allclose(weighted.components_, copied.components_, atol=1e-4)
    assert_allclose(weighted.objective_, copied.objective_, rtol=1e-5)


def test_one_topic_is_the_corpus():
    X, _, _ = planted(D=40, V=30, K=2)
    documents = Documents(X, NONE)
    new, _ = soft_pass(documents, one_topic(documents), goal_of(documents), 1.0)
    assert_allclose(new.words[:, 0], documents.word_totals, rtol=1e-5)
    model = HDPTopics(n_topics=1).fit(X)
    assert_allclose(model.topic_word_counts_[0], documents.word_totals, rtol=1e-5)


def test_prices_of_words_are_minus_log_means():
    words, pseudo = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]]), np.array([0.1, 0.2, 0.3])
    mean = (words + pseudo) / (words.sum(axis=1, keepdims=True) + 0.6)
    documents = Documents(sp.csr_matrix(words), NONE)
    assert_allclose(word_prices(documents, words, pseudo), -np.log(mean).T)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([0.0, 0.4, 1.0]), st.integers(1, 4))
def test_given_numbers_of_topics_never_raise_the_objective(seed, mix, G):
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.integers(0, 60, size=(rng.integers(G, 8), rng.integers(1, 5))) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = HDPTopics(mix=mix, n_topics=G, smoothing=float(rng.choice([0.1, 1e4]))).fit(X)
    assert (np.diff(model.objective_trace_) <= 1e-9 * np.abs(model.objective_trace_[0])).all()


def test_very_long_documents_are_fitted():
    rng = np.random.default_rng(0)
    flat = HDPTopics(n_topics=2).fit(rng.integers(1, 10**6, size=(50, 1)))
    assert flat.components_.shape == (2, 1)
    X = np.vstack([rng.multinomial(10**8, p) for p in rng.dirichlet(np.ones(6), 12)])
    model = HDPTopics().fit(X)
    assert model.structure_.found
    assert model.n_topics_ > 1
    with pytest.warns(UserWarning, match="No structure"):
        assert HDPTopics().fit(np.full((20, 5), 10**7)).n_topics_ == 1
