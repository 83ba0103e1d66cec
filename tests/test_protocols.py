"""Every algorithm goes through its one signature: what is registered can be called, stopped and trusted alike."""

from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kfree.families import Geometry
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.fit import ALGORITHMS
from kfree.inference.clusters.labelling import Clustering, LocalLabelling
from kfree.inference.clusters.table import make_memory, make_table
from kfree.inference.features.allocation import explicit_inertia, settle
from kfree.inference.features.feature_algorithms import FIXED, PRICED
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.goal import Goal, Order
from kfree.inference.loop import Budget, Outcome
from kfree.inference.topics.hard_topics import count, objective
from kfree.inference.topics.topic_search import SEARCHES
from kfree.rows import DenseRows, Documents
from support.family_data import make
from support.small_corpora import NONE, goal_of, planted

ROWS = np.concatenate([np.random.default_rng(0).normal(place, size=(60, 2)) for place in ((0, 0), (40, 0), (0, 40))])
TRUTH = np.repeat(np.arange(3), 60)


def never_rises(trace):
    return (np.diff(trace) <= 1e-9 * np.abs(np.asarray(trace[:-1]))).all()


def table_and_centres():
    x = ROWS - ROWS.mean(axis=0)
    rows = DenseRows(x, weight=NONE, scale=NONE, shift=np.zeros(2))
    table = make_table(rows, Geometry(make("sqeuclidean"), np.zeros(2)))
    return table, Centres(table.geometry, np.zeros((1, 2)))


@pytest.mark.parametrize("name", ALGORITHMS)
class TestAlgorithmsOfClusters:
    def test_signature(self, name):
        assert list(signature(ALGORITHMS[name]).parameters) == ["labelling", "centres", "goal", "budget", "rng"]

    @pytest.mark.parametrize("order", [Order.RANDOM, Order.INDEX, Order.CONTENT, np.arange(180)[::-1]])
    @pytest.mark.parametrize("samples", [False, True])
    def test_a_fit_is_a_clustering_whose_objective_fell(self, name, order, samples):
        table, centres = table_and_centres()
        goal = Goal(20.0, tol=0.0, algorithm=name, order=order, samples=samples)
        outcome = ALGORITHMS[name](LocalLabelling(table), centres, goal, Budget(), np.random.default_rng(0))
        assert isinstance(outcome, Outcome)
        assert isinstance(outcome.state, Clustering)
        assert outcome.converged
        assert never_rises(outcome.trace)
        pairs = np.unique(np.stack([outcome.state.labelling.labels, TRUTH]), axis=1)
        assert pairs.shape[1] == outcome.state.centres.mean.shape[0] >= 3  # no cluster has rows of two groups
        memory = make_memory(table.n)
        assign(table, outcome.state.centres, memory)
        assert_array_equal(memory.labels, outcome.state.labelling.labels)

    def test_limits_are_kept(self, name):
        table, centres = table_and_centres()
        rng = np.random.default_rng(0)
        most = ALGORITHMS[name](LocalLabelling(table), centres, Goal(0.5, max_clusters=4), Budget(), rng)
        assert most.state.centres.mean.shape[0] <= 4
        once = ALGORITHMS[name](LocalLabelling(table), centres, Goal(0.5, max_iter=1), Budget(), rng)
        assert len(once.trace) == 1

    def test_what_has_no_time_leaves_where_it_started(self, name):
        table, centres = table_and_centres()
        spent = ALGORITHMS[name](
            LocalLabelling(table), centres, Goal(0.5), Budget(max_time=0.0), np.random.default_rng(0)
        )
        assert spent.trace == []
        assert not spent.converged
        assert_array_equal(spent.state.centres.mean, centres.mean)


@pytest.mark.parametrize("registry", [FIXED, PRICED])
def test_algorithms_of_features(registry):
    rng = np.random.default_rng(0)
    X = (rng.random((80, 3)) < 0.5) @ rng.normal(size=(3, 5)) * 3 + 0.1 * rng.normal(size=(80, 5))
    table = FeatureTable(X, NONE)
    for name, algorithm in registry.items():
        assert list(signature(algorithm).parameters) == ["table", "start", "goal", "budget", "rng"], name
        goal = FeatureGoal(name, price=None if registry is FIXED else 5.0)
        start = settle(table, (rng.random((80, 3)) < 0.5).astype(np.uint8))
        outcome = algorithm(table, start, goal, Budget(), np.random.default_rng(0))
        state = outcome.state
        assert never_rises(outcome.trace), name
        assert_allclose(goal.objective(state), outcome.trace[-1], rtol=1e-9)
        assert_allclose(explicit_inertia(table, state.Z, state.means), state.inertia, rtol=1e-9)
        assert goal.objective(state) <= goal.objective(start) * (1 + 1e-9)


def test_searches_for_topics():
    X, _, _ = planted(D=30, V=40, K=2, length=40)
    documents = Documents(X, NONE)
    goal = goal_of(documents, mix=0.0, lam_local=np.full(30, 5.0), lam_global=30.0, n_seeds=3)
    for name, search in SEARCHES.items():
        assert list(signature(search).parameters) == ["documents", "goal", "budget", "rng"], name
        found = search(documents, goal, Budget(), np.random.default_rng(0))
        G = len(found.counts.words)
        assert_array_equal(found.counts.words, count(documents, found.labels, G, goal.known).words)
        assert found.soft_counts.shape == (G, 40)
        assert never_rises(found.trace), name
        assert_allclose(found.trace[-1], objective(documents, found.counts, goal))
