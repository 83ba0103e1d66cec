"""Collapsed moves: every one lowers the objective by what it says, and none is left that would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree import HDPTopics
from kfree.inference.loop import Budget
from kfree.inference.topics.cell_moves import refine
from kfree.inference.topics.hard_topics import count, labelled
from kfree.inference.topics.topic_goal import no_topics
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import native, reference
from support.small_corpora import planted, random_documents, random_goal

SEEDS = st.integers(0, 2**20)


def problem(seed, mix, weighted):
    rng = np.random.default_rng(seed)
    documents, G = random_documents(rng, weighted=weighted), 4
    goal = random_goal(rng, documents, mix)
    labels = rng.integers(0, G, documents.data.size).astype(np.int32)
    return documents, labels, G, goal


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_no_single_move_lowers_the_objective_any_more(seed, mix, weighted):
    documents, labels, G, goal = problem(seed, mix, weighted)

    def value(labels):
        return labelled(documents, labels, G, goal).objective

    outcome = refine(documents, labelled(documents, labels, G, goal), goal, Budget())
    assert outcome.converged
    assert (np.diff([value(labels), *outcome.trace]) <= 1e-9).all()
    end = outcome.state.labels
    assert_allclose(value(end), outcome.trace[-1])
    used = np.unique(end[documents.weights[documents.owner] > 0])
    for k in range(end.size):
        for q in used:
            other = end.copy()
            other[k] = q
            assert value(other) >= value(end) - 1e-7


@given(SEEDS, st.sampled_from([0.0, 1.0]), st.booleans())
def test_collapsed_moves_equal_their_twin(seed, mix, weighted):
    documents, labels, G, goal = problem(seed, mix, weighted)
    counts = count(documents, labels, G, no_topics(documents.p))
    tables = [np.ascontiguousarray(table.T) for table in counts]
    fixed = (goal.pseudo, goal.mix, goal.lam_local, goal.lam_global, TOPICS.tiny_gain)
    found = []
    for module in (native, reference):
        out = [tables[0].copy(), tables[0].sum(axis=0), tables[1].copy(), labels.copy()]
        found.append((module.collapse_cells(*documents.cells, documents.weight, *fixed, *out), *out))
    for mine, theirs in zip(*found):
        assert_allclose(mine, theirs, atol=1e-9)


@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_refined_fits_cost_less_and_leave_soft_topics_alone(mix):
    X, _, _ = planted(D=120, V=150, K=4, length=60, spread=0.5)
    plain, refined = HDPTopics(mix=mix).fit(X), HDPTopics(mix=mix, refine="collapsed").fit(X)
    assert refined.objective_ < plain.objective_
    assert (np.diff(refined.objective_trace_) <= 0).all()
    assert_array_equal(refined.components_, plain.components_)
    assert_allclose(refined.doc_topic_counts_.sum(axis=1), X.sum(axis=1))


def test_what_cannot_be_refined_is_said():
    X, _, _ = planted(D=20, V=30, K=2)
    with pytest.raises(ValueError, match="refine"):
        HDPTopics(refine="gibbs").fit(X)
    with pytest.raises(ValueError, match="search='anneal'"):
        HDPTopics(mix=0, search="paper", refine="collapsed").fit(X)
