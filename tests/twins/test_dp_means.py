"""Fast algorithms equal the slow ones of the papers, row for row."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.families import Geometry
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.bounds import loosen
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.collapsed import move_rows
from kfree.inference.clusters.cuts import clarities
from kfree.inference.clusters.grow import Phase, grow, update
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.inference.clusters.moves import _halves_of_one, merge_halves
from kfree.inference.clusters.serial import SerialState, serial_pass
from kfree.inference.clusters.table import make_memory, make_table
from kfree.inference.goal import Goal
from kfree.inference.loop import Budget
from kfree.kernels import native, reference
from kfree.rows import CsrRows, DenseRows, set_span_threads
from kfree.rows.csr import cells_of
from support.family_data import BREGMAN, NAMES, draw_rows, make
from support.numbers import set_numbers
from support.slow_clusters import Slow, orders, same_partition

NONE = np.empty(0)


def table_of(family, x, weight=None, eta=0.0, sparse=False):
    """A table of statistics with the anchor at the global centre (rows of translating families are centred)."""
    weight = NONE if weight is None else weight
    w = weight if weight.size else np.ones(len(x))
    mean = family.centre((w[:, None] * x).sum(axis=0)[None], w.sum()[None])[0]
    shift = mean if family.translates else np.zeros(x.shape[1])
    rows = DenseRows(x, weight=weight, scale=NONE, shift=shift)
    if sparse:
        rows = CsrRows(sp.csr_matrix(x), weight=weight, scale=NONE)
    geometry = Geometry(family, mean - shift, eta, mean - shift if eta else None)
    return make_table(rows, geometry), shift, mean


def lam_of(slow, share):
    """A lam that opens some clusters: a share of the largest divergence from the global centre."""
    everything = np.arange(len(slow.x))
    reach = max(slow.d(i, slow.centre(everything)) for i in everything)
    return max(share * reach, 1e-6)


@pytest.mark.parametrize("eta", [0.0, 0.3])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("piece", [1, 5, 32])
def test_serial_evaluated_together_equals_one_row_at_a_time(name, piece, eta, monkeypatch):
    family = make(name)
    if eta and not family.smoothable:
        pytest.skip("cosine has no prior")
    set_numbers(monkeypatch, "CLUSTERS", opener_pieces=(piece, 32_768))
    x = draw_rows(name, 40, 3, seed=1)
    weight = np.random.default_rng(0).integers(1, 4, size=40).astype(float)
    table, shift, mean = table_of(family, x, weight, eta)
    slow = Slow(family, x, 1.0, weight, eta, mean)
    slow.lam = lam_of(slow, 0.2)
    memory = make_memory(40)
    state = SerialState(Centres(table.geometry, (mean - shift)[None]), np.random.default_rng(0))
    opened = 0
    for order, (labels, means) in zip(orders(40, 4), slow.serial(orders(40, 4))):
        state, info = serial_pass(LocalLabelling(table, memory), state, Goal(slow.lam, tol=0.0, order=order), Budget())
        opened += info.opened
        assert_array_equal(memory.labels, labels)
        assert_allclose(state.centres.mean + shift, means, rtol=1e-10, atol=1e-12)
    assert opened > 0


def test_serial_gives_bitwise_equal_centres_for_any_piece_and_span(monkeypatch):
    x = np.random.default_rng(0).normal(size=(3000, 5))
    results = []
    for piece, largest in ((32, 32768), (1, 1), (7, 64), (500, 500)):
        set_numbers(monkeypatch, "CLUSTERS", opener_pieces=(piece, largest))
        table, _, _ = table_of(make("sqeuclidean"), x)
        memory, order = make_memory(3000), orders(3000, 1)[0]
        state = SerialState(Centres(table.geometry, np.zeros((1, 5))), np.random.default_rng(0))
        for _ in range(3):
            state, _ = serial_pass(LocalLabelling(table, memory), state, Goal(9.0, tol=0.0, order=order), Budget())
        results.append((memory.labels.copy(), state.centres.mean))
    for labels, mean in results[1:]:
        assert_array_equal(labels, results[0][0])
        assert_array_equal(mean, results[0][1])


@pytest.mark.parametrize("name", NAMES)
def test_delayed_creation_equals_the_plain_algorithm(name):
    family, x = make(name), draw_rows(name, 30, 3, seed=2)
    table, shift, mean = table_of(family, x)
    slow = Slow(family, x, 1.0)
    slow.lam = lam_of(slow, 0.25)
    labelling, centres = LocalLabelling(table), Centres(table.geometry, (mean - shift)[None])
    goal = Goal(slow.lam, tol=0.0, max_iter=1)
    for labels, means in slow.delayed(8):
        centres = grow(labelling, centres, goal, Budget(), Phase(""), delayed=True).state.centres
        assert same_partition(labelling.labels, labels)
        assert_allclose(np.sort(centres.mean + shift, axis=0), np.sort(means, axis=0), rtol=1e-9, atol=1e-12)


@given(
    seed=st.integers(0, 2**20),
    tol=st.sampled_from([0.0, 0.01]),
    weighted=st.booleans(),
    whole=st.booleans(),
    most=st.sampled_from([3, np.inf]),
    max_iter=st.sampled_from([2, 5, 300]),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_passes_made_in_one_call_equal_passes_one_by_one(seed, tol, weighted, whole, most, max_iter, dtype):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 3)) + 3 * rng.normal(size=(6, 3))[rng.integers(6, size=80)]
    x = np.round(x) if whole else x.astype(dtype)  # whole numbers have ties and copies
    weight = rng.integers(0, 4, size=80).astype(float) if weighted else NONE
    results = []
    for at_once in (True, False):
        table, _, _ = table_of(make("sqeuclidean"), x.astype(float), weight)
        table.rows.dtype = np.dtype(dtype)
        start, labelling, told = Centres(table.geometry, np.zeros((1, 3))), LocalLabelling(table), []
        budget = Budget(report=lambda phase, count, info, told=told: told.append((count, info)))
        with pytest.MonkeyPatch.context() as patch:
            set_numbers(patch, "CLUSTERS", quick=10**9 if at_once else 0)
            goal = Goal(4.0, tol=tol, max_clusters=most, max_iter=max_iter)
            outcome = grow(labelling, start, goal, budget, Phase(""))
        assert [count for count, _ in told] == list(range(1, len(told) + 1))
        assert [info.objective for _, info in told] == outcome.trace
        results.append((outcome, labelling.labels, [info[2:5] for _, info in told]))
    (mine, labels, told), (theirs, their_labels, their_told) = results
    assert told == their_told
    assert mine.converged == theirs.converged
    assert_allclose(mine.trace, theirs.trace, rtol=1e-12)
    assert_array_equal(labels, their_labels)
    assert_allclose(mine.state.centres.mean, theirs.state.centres.mean, rtol=1e-12, atol=1e-13)
    assert mine.state.moved == theirs.state.moved


@given(seed=st.integers(0, 2**20), passes=st.integers(1, 5), whole=st.booleans(), dtype=st.sampled_from(["f4", "f8"]))
def test_spans_assigned_in_one_call_equal_spans_taken_apart(seed, passes, whole, dtype):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 4)).astype(dtype)
    x = np.round(x) if whole else x
    weight = rng.choice([0.0, 0.5, 2.0], size=60) if seed % 2 else NONE
    results = []
    for at_once in (True, False):
        table, _, _ = table_of(make("sqeuclidean"), x, weight)
        centres, memory = Centres(table.geometry, table.rows.dense(np.arange(7))), make_memory(60)
        with pytest.MonkeyPatch.context() as patch:
            set_numbers(patch, "CLUSTERS", quick=0)  # bounds from the first pass on
            if not at_once:
                patch.setattr(DenseRows, "assign", lambda self, *rest: None)
            for _ in range(passes):
                sums = assign(table, centres, memory, 2.0)
                centres = update(LocalLabelling(table, memory), centres, sums.total, sums.mass, sums.reach)
        results.append((memory.labels, memory.cost, *sums[:4], sums.reach))
    assert_array_equal(results[0][0], results[1][0])
    for mine, theirs in zip(*results):
        assert_allclose(mine, theirs, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("eta", [0.0, 0.4])
@pytest.mark.parametrize(("name", "sparse"), [*((name, False) for name in NAMES), ("kl", True), ("poisson", True)])
def test_collapsed_in_blocks_equals_one_row_at_a_time(name, sparse, eta, monkeypatch):
    family = make(name)
    if eta and not family.smoothable:
        pytest.skip("cosine has no prior")
    set_numbers(monkeypatch, "CLUSTERS", row_block=7, distances=7 * 3 * 3)
    x = draw_rows(name, 24, 3, seed=3, boundary=False)
    weight = np.random.default_rng(1).integers(1, 4, size=24).astype(float)
    table, _, mean = table_of(family, x, weight, eta, sparse)
    slow = Slow(family, x, 1.0, weight, eta, mean)
    slow.lam = lam_of(slow, 0.3)
    memory = make_memory(24)
    memory.labels[:] = np.arange(24) % 3
    for order, labels in zip(orders(24, 3), slow.collapsed(np.arange(24) % 3, orders(24, 3))):
        move_rows(table, memory, Goal(slow.lam), order, Budget())
        assert same_partition(memory.labels, labels)


@given(
    seed=st.integers(0, 10_000),
    eta=st.sampled_from([0.0, 0.1, 3.0]),
    share=st.floats(0.01, 2.0),
    most=st.sampled_from([1, 4, np.inf]),
    name=st.sampled_from(["kl", "poisson"]),
)
def test_counts_move_as_rows_of_any_family_do(seed, eta, share, most, name):
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.3, 5.0, size=(4, 12))
    x = rng.poisson(rate[rng.integers(4, size=40)]).astype(float) + np.eye(12)[rng.integers(12, size=40)]
    x = x / x.sum(axis=1, keepdims=True) if name == "kl" else x
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=40) + np.eye(40)[0]
    start, found = rng.integers(3, size=40).astype(np.int32), []
    for sparse, blocks in ((False, True), (False, False), (True, False)):
        table, _, mean = table_of(make(name), x, weight, eta, sparse)
        lam = share * float(make(name).divergence(x, mean).mean())
        memory = make_memory(40)
        memory.labels[:] = start
        with pytest.MonkeyPatch.context() as patch:
            if blocks:
                patch.setattr(table.geometry.family, "entropic", False)
            goal = Goal(lam, max_clusters=most)
            moved = [move_rows(table, memory, goal, order, Budget()) for order in orders(40, 3)]
        found.append((moved, memory.labels))
    for moved, labels in found[1:]:
        assert_allclose(moved, found[0][0])
        assert same_partition(labels[weight > 0], found[0][1][weight > 0])


@given(seed=st.integers(0, 10_000), eta=st.sampled_from([0.0, 0.5]), scaled=st.booleans())
def test_counts_move_as_in_the_reference(seed, eta, scaled):
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.poisson(0.7, size=(30, 8)).astype(float) + np.eye(30, 8))
    X.data[rng.integers(X.nnz)] = 0.0  # a stored zero
    scale, weight = rng.uniform(0.5, 2.0, size=30 if scaled else 0), rng.integers(1, 4, size=30).astype(float)
    labels, pseudo = rng.integers(3, size=30).astype(np.int32), eta * rng.dirichlet(np.ones(8))
    factor = weight * (scale if scaled else 1.0)
    start = np.zeros((8, 5)) + pseudo[:, None]
    for k in range(3):
        start[:, k] += np.asarray(X.T @ (factor * (labels == k))).ravel()
    mass, count = eta + np.bincount(labels, weight, 5), np.bincount(labels, minlength=5)
    rule, results = (pseudo, eta, rng.uniform(0.1, 5.0), 1e-10, 1e-12, rng.choice([3.0, np.inf])), []
    for module in (native, reference):
        state = [array.copy() for array in (start, start.sum(axis=0), mass, count, labels)]
        entries = (*cells_of(X), scale, weight, np.arange(30))
        results.append((module.move_counts(*entries, *rule, *state), state))
    assert results[0][0] == results[1][0]
    for fast, plain in zip(results[0][1], results[1][1]):
        assert_allclose(fast, plain, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 10_000), eta=st.sampled_from([0.0, 0.5]), lam=st.sampled_from([0.3, 2.0, 20.0, np.inf]))
def test_points_move_as_in_the_reference(seed, eta, lam):
    rng = np.random.default_rng(seed)
    x, weight = rng.normal(size=(40, 3)), rng.integers(1, 4, size=40).astype(float)
    labels, rows = rng.integers(3, size=40).astype(np.int32), rng.permutation(40)
    pseudo = eta * rng.normal(size=3)
    sums, mass = np.zeros((3, 5)) + pseudo[:, None], eta + np.bincount(labels, weight, 5)
    for k in range(3):
        sums[:, k] += (weight * (labels == k)) @ x
    mean = sums / np.where(mass > 0, mass, 1.0)
    count = np.bincount(labels, minlength=5)
    rule, results = (0.5, pseudo, eta, lam, 1e-10, 1e-12, rng.choice([3.0, np.inf])), []
    for module in (native, reference):
        state = [array.copy() for array in (sums, mean, mass, count, labels)]
        results.append((module.move_points(x[rows], weight[rows], rows, *rule, *state), state))
    assert results[0][0] == results[1][0]
    for fast, plain in zip(results[0][1], results[1][1]):
        assert_allclose(fast, plain, rtol=1e-9, atol=1e-12)


@given(
    seed=st.integers(0, 10_000),
    eta=st.sampled_from([0.0, 0.1, 3.0]),
    share=st.floats(0.01, 2.0),
    most=st.sampled_from([1, 4, np.inf]),
    far=st.sampled_from([0.0, 1e6]),
)
def test_points_move_as_rows_of_any_family_do(seed, eta, share, most, far):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 3)) + 3 * rng.normal(size=(5, 3))[rng.integers(5, size=60)] + far
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=60) + np.eye(60)[0]
    start, found = rng.integers(3, size=60).astype(np.int32), []
    for blocks in (False, True):
        table, _, mean = table_of(make("sqeuclidean"), x, weight, eta)
        lam = share * float(make("sqeuclidean").divergence(x, mean).mean())
        memory = make_memory(60)
        memory.labels[:] = start
        with pytest.MonkeyPatch.context() as patch:
            if blocks:
                patch.setattr(table.geometry.family, "euclidean_factor", None)
            goal = Goal(lam, max_clusters=most)
            moved = [move_rows(table, memory, goal, order, Budget()) for order in orders(60, 3)]
        found.append((moved, memory.labels))
    assert_allclose(found[0][0], found[1][0])
    assert same_partition(found[0][1][weight > 0], found[1][1][weight > 0])


def test_collapsed_joins_the_cluster_whose_cost_rises_least_not_the_nearest():
    # a row at 2.0: the heavy cluster at 0 is nearer (4 against 4.84) but rises more (4 * 50/51 against 4.84 / 2)
    x = np.concatenate([np.zeros((50, 1)), [[4.2]], [[2.0]]])
    table, _, _ = table_of(make("sqeuclidean"), x)
    memory = make_memory(52)
    memory.labels[:] = [0] * 50 + [1, 0]
    move_rows(table, memory, Goal(100.0), np.array([51]), Budget())
    assert memory.labels[51] == 1


@given(seed=st.integers(0, 10_000), name=st.sampled_from(BREGMAN), size=st.integers(1, 60))
def test_bounds_never_hide_a_nearer_centre(seed, name, size):
    family = make(name)
    x = draw_rows(name, 80, 3, seed=seed)
    table, _, _ = table_of(family, x)
    rng = np.random.default_rng(seed)
    memory = make_memory(80)
    stats = table.rows.dense(slice(0, 80))
    total = stats[rng.integers(80, size=(6, 5))].sum(axis=1)
    centres = Centres(table.geometry, family.centre(total, np.full(6, 5.0)))
    for _ in range(4):
        sums = assign(table, centres, memory, 1.0)
        fresh = make_memory(80)
        assign(table, centres, fresh, 1.0)
        assert_array_equal(memory.labels, fresh.labels)
        centres = update(LocalLabelling(table, memory), centres, sums.total, sums.mass, sums.reach)
        extra = Centres(table.geometry, np.concatenate([centres.mean, stats[rng.integers(80, size=1)]]))
        loosen(table, centres, extra, np.arange(len(centres.mean)), memory)
        centres = extra


@given(seed=st.integers(0, 2**20), name=st.sampled_from(BREGMAN))
def test_centres_that_moved_are_the_same_as_new_ones(seed, name):
    rng, p = np.random.default_rng(seed), 3
    x = draw_rows(name, 40, p, seed=seed)
    table, _, _ = table_of(make(name), x)
    stats, geometry = table.rows.dense(slice(0, 40)), table.geometry
    before = Centres(geometry, geometry.centre(stats[:30].reshape(10, 3, p).sum(axis=1), np.full(10, 3.0)))
    kept = np.sort(rng.choice(10, size=8, replace=False))
    mean = np.concatenate([before.mean[kept], geometry.centre(stats[30:32], np.ones(2))])
    mean[rng.integers(8)] = mean[-1]
    with pytest.MonkeyPatch.context() as patch:
        set_numbers(patch, "CLUSTERS", large_centres=0)
        assert "affine" not in before.moved(mean, kept).__dict__  # nothing is known of centres that nobody asked for
        size = before.affine.size
        after = before.moved(mean, kept)
    assert "affine" in after.__dict__
    expected = geometry.affine(mean)
    assert_array_equal(after.affine.coef, expected.coef)
    assert_array_equal(after.affine.offset, expected.offset)
    assert after.affine.size == pytest.approx(max(size, expected.size))


def test_threads_do_not_matter():
    x = np.random.default_rng(0).normal(size=(40_000, 3))
    results = []
    for count in (1, 2, 5):
        with set_span_threads(count):
            table, _, _ = table_of(make("sqeuclidean"), x)
            labelling, start = LocalLabelling(table), Centres(table.geometry, np.zeros((1, 3)))
            out = grow(labelling, start, Goal(4.0, max_iter=12), Budget(), Phase(""))
            results.append((labelling.labels.copy(), out.state.centres.mean, out.trace))
    for labels, mean, trace in results[1:]:
        assert_array_equal(labels, results[0][0])
        assert_array_equal(mean, results[0][1])
        assert trace == results[0][2]


def labelled(x, labels):
    """A table of rows with its memory, and the centres of the labels."""
    table, _, _ = table_of(make("sqeuclidean"), x)
    memory = make_memory(len(x))
    memory.labels[:] = labels
    total, mass = table.rows.sums(memory.labels, int(labels.max()) + 1)
    return table, memory, Centres(table.geometry, table.geometry.centre(total, mass))


@pytest.mark.parametrize(("gap", "joined"), [(0.0, 1), (1.0, 1), (6.0, 0)])
def test_halves_of_one_cluster_are_joined_and_two_clusters_are_not(gap, joined):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))
    x[:1000, 0] += gap
    far = rng.normal(size=(500, 3)) + 40.0
    table, memory, centres = labelled(np.concatenate([x, far]), np.r_[(x[:, 0] > gap / 2), np.full(500, 2)])
    after, count = merge_halves(table, centres, memory, 100.0)
    assert count == joined
    assert len(after.mean) == 3 - joined
    assert len(np.unique(memory.labels)) == 3 - joined
    assert len(np.unique(memory.labels[2000:])) == 1


def test_halves_whose_union_would_leave_rows_beyond_lam_are_not_joined():
    x = np.random.default_rng(0).normal(size=(2000, 2))
    table, memory, centres = labelled(x, (x[:, 0] > 0).astype(int))
    assert merge_halves(table, centres, memory, 1.0)[1] == 0


@given(seed=st.integers(0, 2**20))
def test_clarity_is_the_share_of_the_variance_between_the_sides(seed):
    rng = np.random.default_rng(seed)
    cluster, value = rng.integers(3, size=60), rng.normal(size=60) + rng.normal()
    for k, share in enumerate(clarities(cluster, value, 3)):
        mine = value[cluster == k]
        sides = [side for side in (mine[mine > 0], mine[mine <= 0]) if side.size]
        between = sum(side.size * (side.mean() - mine.mean()) ** 2 for side in sides)
        assert share == pytest.approx(between / max(((mine - mine.mean()) ** 2).sum(), 1e-300), rel=1e-9, abs=1e-12)


def test_copies_and_order_do_not_matter_to_who_is_half_of_whom():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(400, 2)), rng.normal((8, 0), size=(400, 2))])
    labels = np.where(x[:, 0] > 4, 2, np.where(x[:, 0] > 0, 1, 0))
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    copies = rng.permutation(np.repeat(np.arange(800), rng.integers(1, 4, size=800)))
    for rows in (np.arange(800), copies):
        table, memory, centres = labelled(x[rows], labels[rows])
        assert _halves_of_one(table, centres, memory.labels, pairs).tolist() == [[0, 1]]


@given(n=st.integers(1, 8000))
def test_samples_grow_and_leave_out_half_of_a_table(n):
    table, _, _ = table_of(make("sqeuclidean"), np.random.default_rng(n).normal(size=(n, 1)))
    with pytest.MonkeyPatch.context() as patch:
        set_numbers(patch, "CLUSTERS", first_sample=50, last_sample=1250)
        sizes = [level.n_distinct for level in LocalLabelling(table).levels()]
    assert bool(sizes) == (n >= 100)
    assert all(2 * size <= n for size in sizes)
    assert all(3 * small <= large <= 5 * small for small, large in pairwise(sizes))
    if sizes and sizes[-1] < 1250:  # a larger one would be too large, or hardly larger
        assert n // 2 < 3 * sizes[-1]
