"""Kernels of topics equal their reference twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.kernels import native, reference
from support.small_corpora import random_documents

SEEDS = st.integers(0, 2**20)


def padded(rng, n, G):
    """Positive float32 in G columns, zero in the rest."""
    table = np.zeros((n, -(-G // 16) * 16), np.float32)
    table[:, :G] = rng.gamma(0.5, size=(n, G)) + 1e-4
    return table


def both(name, inputs, outputs):
    """Outputs and results of both twins on copies of the same outputs."""
    found = []
    for module in (native, reference):
        out = [array.copy() for array in outputs]
        result = getattr(module, name)(*inputs, *out)
        found.append((out, result))
    return found


@given(SEEDS, st.sampled_from([1, 3, 16, 17, 40]))
def test_soft_passes_equal_their_twins(seed, G):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, D=rng.integers(1, 30))
    topics, share = padded(rng, documents.p, G), padded(rng, documents.n, G)
    for block in documents.blocks:
        cells = (block.data, block.rows, block.indptr)
        out = [np.empty(block.data.size, np.float32), np.ones_like(share)]
        (mine, _), (theirs, _) = both("soft_documents", (*cells, topics, share), out)
        for a, b in zip(mine, theirs):
            assert_allclose(a, b, rtol=2e-5)
        inputs = (mine[0], block.rows, block.indptr, 0, documents.p, share)
        (mine, _), (theirs, _) = both("soft_words", inputs, [np.ones_like(topics)])
        assert_allclose(mine[0], theirs[0], rtol=2e-5)


@given(SEEDS, st.sampled_from([1, 3, 16, 17, 40]), st.sampled_from([1.0, 0.6]))
def test_closing_passes_equal_their_twins(seed, G, mix):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng, D=rng.integers(1, 30))
    pseudo, scale = np.full(documents.p, 0.05, np.float32), np.zeros(padded(rng, 1, G).shape[1], np.float32)
    scale[:G] = 1 / (5 + rng.random(G))
    topics, share = (padded(rng, documents.p, G) + pseudo[:, None]) * scale, padded(rng, documents.n, G)
    least = np.float32(1e-4)
    weight, burst = rng.random(documents.n).astype(np.float32), np.float32(rng.choice([0.0, 0.4, 1.0]))
    tail = (topics, share, weight, pseudo, scale, least, np.float32(mix), burst)
    for block in documents.blocks:
        out = [*(np.empty(block.data.size, np.float32) for _ in range(2)), np.ones_like(share)]
        (mine, _), (theirs, _) = both("close_documents", (block.data, block.rows, block.indptr, *tail), out)
        for a, b in zip(mine, theirs):
            assert_allclose(a, b, rtol=5e-4)
        inputs = (*mine[:2], block.rows, block.indptr, 0, documents.p, *tail)
        (mine, _), (theirs, _) = both("close_words", inputs, [np.ones_like(topics)])
        assert_allclose(mine[0], theirs[0], rtol=5e-4)


@given(SEEDS, st.sampled_from([1, 3, 16, 17, 40]), st.booleans())
def test_the_likeliest_topic_equals_its_twin_ties_included(seed, G, ties):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng)
    topics, share = padded(rng, documents.p, G), padded(rng, documents.n, G)
    if ties:
        topics, share = np.ceil(topics), np.ceil(2 * share)
    for block in documents.blocks:
        inputs = (block.rows, block.indptr, block.cells, topics, share)
        (mine, _), (theirs, _) = both("likeliest", inputs, [np.full(documents.data.size, -1, np.int32)])
        assert_array_equal(mine[0], theirs[0])
        found = mine[0][documents.indptr[block.documents.start] : documents.indptr[block.documents.stop]]
        assert ((found >= 0) & (found < G)).all()


@given(SEEDS, st.booleans(), st.sampled_from([0.0, 0.4, 1.0]))
def test_counts_and_changes_by_merges_equal_their_twins(seed, weighted, mix):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng, weighted=weighted), 4
    labels = rng.integers(0, G, documents.data.size).astype(np.int32)
    out = [np.ones((G, documents.p)), np.zeros((G, documents.n))]
    (mine, _), (theirs, _) = both("count_labels", (*documents.cells, documents.weight, labels), out)
    for a, b in zip(mine, theirs):
        assert_allclose(a, b)
    pairs = np.array([[0, 1], [1, 3], [2, 3]])
    inputs = (pairs, mine[0], rng.random(documents.p) + 0.1, mine[1], documents.weight, rng.random(documents.n), mix)
    (mine, _), (theirs, _) = both("merge_changes", inputs, [np.empty(3)])
    assert_allclose(mine[0], theirs[0], rtol=1e-10, atol=1e-10)


@given(SEEDS)
def test_gains_of_seeds_equal_their_twin(seed):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng)
    inputs = (*documents.cells, 0, documents.n, rng.random((documents.p, 8)).astype(np.float32))
    (mine, _), (theirs, _) = both("gain_of_seeds", inputs, [np.zeros((documents.n, 8), np.float32)])
    assert_allclose(mine[0], theirs[0], rtol=1e-5)


@given(SEEDS, st.sampled_from([1, 3, 16, 17, 40]), st.sampled_from([1.0, 0.0, 0.37, 1.6]))
def test_powers_of_rows_equal_their_twin(seed, G, power):
    rng = np.random.default_rng(seed)
    counts, factor, column = padded(rng, 9, G), padded(rng, 1, G)[0], padded(rng, 1, G)[0]
    counts[rng.random(counts.shape) < 0.2] = 0.0
    own = (rng.random(9) * 10.0 ** rng.integers(-12, 4, size=9)).astype(np.float32)
    inputs = (counts * np.float32(1e3), 1, 9, factor, own, column, np.float32(power))
    (mine, _), (theirs, _) = both("raise_rows", inputs, [np.zeros_like(counts), np.zeros(9)])
    assert_allclose(mine[0], theirs[0], rtol=1e-5)
    assert_allclose(mine[1], theirs[1], rtol=1e-5, atol=1e-4)
    assert not mine[0][:, G:].any()


@given(SEEDS)
def test_sums_of_columns_equal_their_twin(seed):
    table = padded(np.random.default_rng(seed), 9, 5)
    (mine, _), (theirs, _) = both("add_columns", (table, 2, 9), [np.ones(5)])
    assert_allclose(mine[0], theirs[0], rtol=1e-12)


@given(SEEDS, st.sampled_from([0.3, 1.0]), st.sampled_from([0.0, 0.5, 3.0]))
def test_mended_documents_equal_their_twin(seed, mix, price):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng), 5
    cost = -np.log(rng.dirichlet(np.full(documents.p, 0.4), G).T * 0.99 + 1e-3)
    labels = rng.integers(0, G, documents.data.size).astype(np.int32)
    inputs = (*documents.cells, 0, documents.n, np.ascontiguousarray(cost), mix, np.full(documents.n, price))
    (mine, _), (theirs, _) = both("mend_documents", inputs, [labels])
    assert_array_equal(mine[0], theirs[0])


@given(SEEDS, st.sampled_from([0.0, 0.5, 3.0]))
def test_placed_documents_equal_their_twin(seed, price):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng), 5
    cost = -np.log(rng.dirichlet(np.full(documents.p, 0.4), G).T * 0.99 + 1e-3)
    labels = rng.integers(0, G, documents.data.size).astype(np.int32)
    inputs = (*documents.cells, 0, documents.n, np.ascontiguousarray(cost), np.full(documents.n, price))
    (mine, _), (theirs, _) = both("place_documents", inputs, [labels])
    assert_array_equal(mine[0], theirs[0])


@given(SEEDS, st.integers(1, 9))
def test_fold_in_equals_its_twin(seed, G):
    rng = np.random.default_rng(seed)
    documents = random_documents(rng)
    topics = np.ascontiguousarray(rng.dirichlet(np.ones(documents.p), G).T + 1e-3)
    inputs = (*documents.cells, 0, documents.n, topics, 1.0, 30, 1e-4)
    (mine, _), (theirs, _) = both("fold_in", inputs, [np.empty((documents.n, G))])
    assert_allclose(mine[0], theirs[0], rtol=1e-8)


@given(SEEDS, st.sampled_from([0.1, 2.0, 30.0]))
def test_steps_of_the_papers_algorithm_equal_their_twins(seed, lam):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng, empty=False), 4
    pseudo = rng.random(documents.p) + 0.1
    prices = -np.log(np.ascontiguousarray(rng.dirichlet(np.ones(documents.p), G).T) * 0.99 + 1e-3)
    held = np.zeros(2 * documents.data.size, np.int32)
    out = [held, np.zeros(documents.n, np.int64), np.full(documents.data.size, -1, np.int32), np.zeros(2, np.int64)]
    order, cells = rng.permutation(documents.n), np.lexsort((rng.random(documents.data.size), documents.owner))
    charges = (pseudo, np.full(documents.n, 0.3 * lam), lam)
    inputs = (*documents.cells, order, cells, prices, *charges, prices.min(axis=1), prices.argmin(axis=1))
    (mine, opens), (theirs, theirs_opens) = both("paper_cells", inputs, out)
    assert opens == theirs_opens
    for a, b in zip(mine, theirs):
        assert_array_equal(a, b)
    if opens:
        return
    inputs = (*documents.cells, prices, G, pseudo, lam, *mine[:3])
    (mine, opens), (theirs, theirs_opens) = both("paper_clusters", inputs, [mine[2], np.zeros(2, np.int64)])
    assert opens == theirs_opens
    for a, b in zip(mine, theirs):
        assert_array_equal(a, b)


@pytest.mark.parametrize("module", [native, reference])
def test_kernels_do_nothing_to_documents_without_words(module):
    documents = random_documents(np.random.default_rng(0), D=3, V=2)
    documents.indptr[:] = 0
    share = np.full((3, 2), np.nan)
    empty = (np.empty(0), np.empty(0, np.int32), documents.indptr)
    module.fold_in(*empty, 0, 3, np.full((2, 2), 0.5), 1.0, 10, 1e-4, share)
    assert_array_equal(share, 0.5)
    labels = np.empty(0, np.int32)
    module.mend_documents(*empty, 0, 3, np.ones((2, 2)), 1.0, np.ones(3), labels)
    module.place_documents(*empty, 0, 3, np.ones((2, 2)), np.ones(3), labels)
    assert labels.size == 0
