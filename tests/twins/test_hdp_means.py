"""Hard HDP in blocks equals one row, and one local cluster, at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.inference.clusters.table import make_memory
from kfree.inference.goal import Goal
from kfree.inference.loop import Budget
from kfree.inference.shared.groups import make_groups
from kfree.inference.shared.hdp_pass import start_state, three_part_pass
from kfree.models.clusters import LocalProblem
from support.family_data import NAMES, draw_rows, make
from support.numbers import set_numbers
from support.slow_clusters import SlowHDP


def problem_of(family, x, weight=None, eta=0.0, mu0=None):
    return LocalProblem.of(x, weight, family, "none", eta, mu0)


def reach(slow):
    """How far the farthest row is from the global centre."""
    middle = slow.centre(np.arange(len(slow.x)))
    far = [slow.d(i, middle) for i in range(len(slow.x))]
    return max(value for value in far if np.isfinite(value))


def compare(slow, orders, start=None, weight=None):
    """Run both for some passes; returns how many clusters were opened."""
    problem = problem_of(slow.family, slow.x, weight, slow.eta, slow.mu0)
    table, shift = problem.table, problem.shift
    groups = make_groups(slow.groups.astype(np.int32), table.rows, slow.n_groups)
    given = start is not None
    mean = slow.centre(np.arange(len(slow.x)))[None] if not given else np.array(start)
    state = start_state(mean - shift, table, groups, given=given, rng=np.random.default_rng(0))
    memory, opened = make_memory(table.n), 0
    for order, (labels, means, readings) in zip(orders, slow.passes(orders, start)):
        goal = Goal(slow.top, slow.local, tol=0.0, max_iter=1, order=order)
        state, info, values = three_part_pass(table, groups, state, memory, goal, Budget())
        opened += info.opened
        assert_array_equal(state.labels, labels)
        assert_allclose(state.centres.mean + shift, means, rtol=1e-9, atol=1e-12)
        assert_allclose(values, readings, rtol=1e-7)
        assert (np.diff(values) <= 1e-9 * values[0]).all()
    return opened


def group_orders(groups, passes, seed=0):
    """Random orders that visit group after group."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(passes):
        rank = rng.permutation(groups.max() + 1)
        order = rng.permutation(groups.size)
        out.append(order[np.argsort(rank[groups[order]], kind="stable")])
    return out


@pytest.mark.parametrize("few", [0, 4])
@pytest.mark.parametrize("eta", [0.0, 0.4])
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_in_blocks_equals_one_row_at_a_time(name, eta, few, monkeypatch):
    family = make(name)
    # few 0: all groups are tried without a visit first
    set_numbers(monkeypatch, "HDP", few_held=few, blocks=(3, 65_536), block_openers=2, part_entries=12)
    if eta and not family.smoothable:
        pytest.skip("cosine has no prior")
    opened = 0
    for seed, (local, top) in enumerate([(0.1, 0.1), (0.02, 0.3), (0.3, 0.02), (0.0, 0.2), (0.2, 0.0)]):
        x = draw_rows(name, 36, 3, seed=seed)
        rng = np.random.default_rng(seed)
        groups, weight = rng.integers(4, size=36), rng.uniform(0.3, 2.5, size=36)
        slow = SlowHDP(family, x, groups, 0.0, 0.0, weight, eta, x.mean(axis=0) if eta else None)
        slow.local, slow.top = local * reach(slow), top * reach(slow)
        opened += compare(slow, group_orders(groups, 4, seed), weight=weight)
    assert opened > 0


@given(
    seed=st.integers(0, 10_000), name=st.sampled_from(NAMES), block=st.sampled_from([1, 4, 256]), seeded=st.booleans()
)
def test_any_block_and_any_start_give_the_same(seed, name, block, seeded):
    rng = np.random.default_rng(seed)
    family, x = make(name), draw_rows(name, 30, 3, seed=seed)
    groups = rng.integers(1, 7, size=30) - 1
    slow = SlowHDP(family, x, groups, 0.0, 0.0)
    slow.local, slow.top = rng.uniform(0.01, 0.4, size=2) * reach(slow)
    start = [slow.single(i) for i in rng.choice(30, 3, replace=False)] if seeded else None
    with pytest.MonkeyPatch.context() as patch:
        set_numbers(patch, "HDP", blocks=(block, 65_536))
        compare(slow, group_orders(groups, 4, seed), start)


def test_ties_between_whole_numbers_are_decided_alike():
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    groups = np.arange(49) % 3
    for local, top in ((1.0, 1.0), (2.0, 3.0), (0.0, 4.0), (4.0, 0.0), (1.0, 8.0)):
        slow = SlowHDP(make("sqeuclidean"), grid, groups, local, top)
        compare(slow, group_orders(groups, 5))
