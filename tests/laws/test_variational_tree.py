"""Fast-VDP: nodes of a tree in place of rows change how long it takes, and the free energy in one direction only."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from kfree import VariationalDPMixture
from kfree.families.conjugate import CONJUGATE
from kfree.inference.loop import Budget
from kfree.inference.variational import expected_likelihood
from kfree.inference.variational import nodes as tree_partition
from kfree.inference.variational.greedy import GreedyGoal, search
from kfree.inference.variational.nodes import ExpansionRule, TreeNodes
from kfree.inference.variational.partition import SingleRows
from kfree.inference.variational.prune import least_loss, loss_without, prune
from kfree.inference.variational.sweep import sweep
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.kernels import native, reference
from kfree.rows import set_span_threads
from kfree.rows.tree import LEAF, Tree
from support.small_mixtures import FAMILIES, GAUSSIANS, draw, free_energy, measured, mixture_of, problem

GOAL = GreedyGoal(10, 1, np.inf, 300, 1e-5)
DISCRETE = tuple(name for name in FAMILIES if name not in GAUSSIANS)


def blobs(n, p=3, k=4, gap=8.0, seed=0):
    rng = np.random.default_rng([seed, n, p])
    mean = gap * rng.normal(size=(k, p))
    truth = rng.integers(k, size=n)
    return mean[truth] + rng.normal(size=(n, p)), truth


def tree_nodes(name, tied):
    return TreeNodes(Tree(tied, CONJUGATE[name].second_moments), ExpansionRule())


def mixture_on(setting, tied, T, seed=0):
    resp = np.random.default_rng(seed).dirichlet(np.ones(T + 1), size=tied.size)
    return mixture_of(setting, tied, resp)[0]


def expanded(tree, levels):
    nodes = np.zeros(1, np.intp)
    for _ in range(levels):
        apart = tree.split(nodes)
        left = tree.left[nodes[apart]]
        nodes = np.concatenate([nodes[~apart], left, left + 1])
    return nodes


@pytest.mark.parametrize("name", FAMILIES)
def test_a_node_scores_as_its_rows_do_on_average_and_refinement_never_raises_the_free_energy(name):
    X = draw(name, 60, 3, seed=1)
    weight = np.random.default_rng(0).integers(1, 4, size=60)
    setting, tied = problem(name, X, weight=weight)
    mixture = mixture_on(setting, tied, 3)
    view = mixture.view(setting)
    of_rows = view.scores(tied) + tied.log_h[:, None]
    tree, energies = Tree(tied, CONJUGATE[name].second_moments), []
    for levels in range(9):
        nodes = expanded(tree, levels)
        table = tree.tied(nodes)
        of_nodes = view.scores(table) + table.log_h[:, None]
        for score, start, stop in zip(of_nodes, *tree.bounds(nodes)):
            rows = tree.order[start:stop]
            assert_allclose(score, tied.n[rows] @ of_rows[rows] / tied.n[rows].sum(), rtol=1e-9, atol=1e-9)
        energies.append(free_energy(mixture, setting, table))
    assert (np.diff(energies) <= 1e-9 * np.abs(energies[0])).all()
    exact = free_energy(mixture, setting, tied)
    assert (np.array(energies) >= exact - 1e-9 * abs(exact)).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_search_over_a_fully_expanded_tree_is_vdp(name):
    X = blobs(80)[0] if name in GAUSSIANS else draw(name, 80, 4)
    setting, tied = problem(name, X, spread=30.0)
    nodes = tree_nodes(name, tied)
    nodes.nodes = expanded(nodes.tree, 80)
    assert (nodes.tree.left[nodes.nodes] == LEAF).all()
    nodes.tied = nodes.tree.tied(nodes.nodes)
    nodes.coarsen = lambda view: None
    mine, plain = (search(setting, part, GOAL, Budget()) for part in (nodes, SingleRows(tied)))
    assert mine.mixture.size == plain.mixture.size
    assert mine.energy == pytest.approx(plain.energy, rel=1e-9)
    assert_allclose(mine.mixture.sticks, plain.mixture.sticks, rtol=1e-3)  # they stop by the free energy


@pytest.mark.parametrize("expand", ["gain", "q"])
@pytest.mark.parametrize("accelerate", ["tree", "kdtree"])
@pytest.mark.parametrize("name", GAUSSIANS)
def test_clear_clusters_are_found_on_few_nodes(name, accelerate, expand):
    X, truth = blobs(3000, seed=2)
    plain = VariationalDPMixture(family=name, accelerate=None).fit(X)
    fast = VariationalDPMixture(family=name, accelerate=accelerate, expand=expand).fit(X)
    assert fast.n_nodes_ < 1000
    if expand == "gain":
        assert fast.n_components_ == plain.n_components_ == 4
        assert len(np.unique(np.stack([fast.labels_, truth]), axis=1).T) == 4
    assert fast.free_energy_ <= fast.tied_free_energy_ + 1e-9 * abs(fast.free_energy_)
    assert fast.free_energy_ <= plain.free_energy_ + 0.02 * abs(plain.free_energy_)
    assert_array_equal(fast.predict(X), fast.labels_)


def test_each_way_to_end_is_at_least_as_good_as_the_one_before():
    X, _ = blobs(4000, p=5, k=6, gap=1.6, seed=3)
    energy = {
        final: VariationalDPMixture(accelerate="tree", final=final).fit(X).free_energy_
        for final in ("labels", "refine", "polish")
    }
    plain = VariationalDPMixture(accelerate=None).fit(X).free_energy_
    tolerance = 1e-3 * abs(plain)
    assert energy["refine"] <= energy["labels"] + tolerance
    assert energy["polish"] <= energy["labels"] + 1e-9 * abs(plain)
    assert abs(energy["polish"] - plain) <= 10 * tolerance


@pytest.mark.parametrize("name", ["gaussian", "diag", "poisson"])
def test_to_refine_is_to_use_more_nodes(name):
    X = blobs(2000, p=3, k=5, gap=1.2, seed=1)[0] if name != "poisson" else draw(name, 4000, 4)
    models = [VariationalDPMixture(family=name, accelerate="tree", final=f).fit(X) for f in ("labels", "refine")]
    assert models[1].n_nodes_ > models[0].n_nodes_
    assert models[1].free_energy_ <= models[0].free_energy_ + 1e-3 * abs(models[0].free_energy_)


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_components_that_are_not_gaussian_are_looked_at_closely(seed):
    # along a line everything overlaps: two halves of coarse nodes do not pay, though more components do
    rng = np.random.default_rng(seed)
    k = rng.integers(3, 6)
    parts = [rng.normal(rng.normal() * 3, rng.uniform(0.4, 1.3), size=(rng.integers(1000, 5000), 1)) for _ in range(k)]
    X = np.concatenate(parts)
    fast, exact = (VariationalDPMixture(accelerate=how).fit(X) for how in ("tree", None))
    assert min(fast.n_components_, exact.n_components_) > 2
    assert fast.free_energy_ <= exact.free_energy_ + 5e-4 * abs(exact.free_energy_)


def test_a_tolerance_of_zero_ends():
    X = np.random.default_rng(0).normal(size=(17, 2))
    for how in (None, "tree"):
        model = VariationalDPMixture(family="spherical", tol=0.0, accelerate=how, max_time=20).fit(X)
        assert model.n_iter_ < 1000


def test_a_tree_that_is_full_says_so():
    X, _ = blobs(2000, k=6)
    with pytest.warns(UserWarning, match="has the 7 nodes it may have.*Raise max_nodes"):
        VariationalDPMixture(accelerate="tree", max_nodes=7).fit(X)


def test_a_split_is_judged_on_one_partition():
    # one Gaussian: refinement alone lowers the free energy and must not pass for a second component
    X = np.random.default_rng(4).normal(size=(20_000, 4))
    fitted = VariationalDPMixture(accelerate="tree").fit(X)
    assert fitted.n_components_ == 1


def test_nodes_in_question_are_expanded_and_others_joined():
    X, _ = blobs(2000, k=8, gap=2.5, seed=5)
    setting, tied = problem("gaussian", X, spread=10.0)
    found = search(setting, SingleRows(tied), GOAL, Budget())
    view = found.mixture.view(setting)
    nodes = tree_nodes("gaussian", tied)
    nodes.growing = False
    energies = [free_energy(found.mixture, setting, nodes.tied)]
    while nodes.expand(view):
        energies.append(free_energy(found.mixture, setting, nodes.tied))
    assert len(energies) > 1
    assert (np.diff(energies) <= 0).all()
    assert energies[-1] - found.energy < 0.5 * (energies[0] - found.energy)
    before = nodes.nodes.size
    nodes.coarsen(view)
    joined = free_energy(found.mixture, setting, nodes.tied)
    assert nodes.nodes.size <= before
    assert joined <= energies[-1] + 0.01 * 2000
    start, stop = nodes.tree.bounds(nodes.nodes)
    assert (stop - start).sum() == 2000


def test_rows_take_over_where_nodes_save_nothing():
    X = np.random.default_rng(6).normal(size=(800, 40))
    X[:400] += 1.0
    setting, tied = problem("gaussian", X, spread=2.0)
    nodes = tree_nodes("gaussian", tied)
    nodes.nodes = expanded(nodes.tree, 60)
    nodes._gather()
    assert nodes.fixed
    assert nodes.tied is nodes.rows
    assert nodes.expand(mixture_on(setting, tied, 2).view(setting)) == 0


@pytest.mark.parametrize("rows", [300, 3000])
@pytest.mark.parametrize("seed", range(3))
def test_no_group_that_is_clearly_one_has_two_components(seed, rows):
    angle = 2 * np.pi * np.arange(5) / 5
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    grid = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
    for centres, width in ((ring, 0.05), (grid, 0.1)):
        X = np.repeat(centres, rows, axis=0) + width * np.random.default_rng(seed).normal(size=(rows * len(centres), 2))
        assert VariationalDPMixture(accelerate="tree").fit(X).n_components_ == len(centres)


@pytest.mark.parametrize("seed", range(5))
def test_a_component_is_doubted_by_what_the_others_would_do_with_its_rows(seed):
    X, truth = blobs(600, k=3, gap=6.0, seed=seed)
    rng = np.random.default_rng(seed)
    setting, tied = problem("gaussian", X)
    half = (truth == 0) & (rng.random(600) < 0.4)  # two components for one group
    mixture = mixture_of(setting, tied, np.eye(5)[np.where(half, 3, truth)])[0]
    scores = mixture.view(setting).scores(tied)
    share, lse = expected_likelihood.soften(scores)
    mass = share @ tied.n
    least = least_loss(tied.n, share, mass)
    loss = [loss_without(tied.n, scores, share, lse, mass, c) for c in range(4)]
    assert (least <= np.array(loss) + 1e-9).all()
    pair = np.argsort(loss)[:2]
    assert max(loss[c] for c in pair) < 0.1 * min(loss[c] for c in range(4) if c not in pair)
    assert prune(setting, measured(mixture, setting, tied), Budget()).mixture.size == 3


def test_no_more_nodes_than_allowed():
    X, _ = blobs(3000, k=12, gap=3.0, seed=7)
    with pytest.warns(UserWarning, match="max_nodes"):
        fitted = VariationalDPMixture(accelerate="tree", max_nodes=41).fit(X)
    assert fitted.n_nodes_ <= 21


@pytest.mark.parametrize("how", ["tree", "kdtree"])
@pytest.mark.parametrize("name", GAUSSIANS)
def test_weights_are_copies_and_threads_do_not_matter(name, how):
    X, _ = blobs(400, seed=8)
    weight = np.random.default_rng(9).integers(0, 4, size=400)
    options = {"family": name, "accelerate": how}
    one = VariationalDPMixture(**options).fit(X, sample_weight=weight)
    two = VariationalDPMixture(**options).fit(np.repeat(X, weight, axis=0))
    assert one.n_components_ == two.n_components_
    assert one.free_energy_ == pytest.approx(two.free_energy_, rel=1e-8)
    order = np.random.default_rng(10).permutation(400)
    three = VariationalDPMixture(**options).fit(X[order], sample_weight=weight[order])
    assert one.free_energy_ == pytest.approx(three.free_energy_, rel=1e-8)
    with set_span_threads(1):
        four = VariationalDPMixture(**options).fit(X, sample_weight=weight)
    assert_array_equal(one.means_, four.means_)


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("gap", [1.5, 4.0])
def test_nodes_of_many_rows_do_not_depend_on_order_copies_or_frame(name, gap, monkeypatch):
    # of nodes of some 280 rows at first
    monkeypatch.setattr(tree_partition, "VARIATIONAL", VARIATIONAL._replace(sample=100))
    X, _ = blobs(6000, k=3, gap=gap, seed=12)
    rng = np.random.default_rng(13)
    weight, order = rng.integers(0, 4, size=6000), rng.permutation(6000)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0] if name != "diag" else np.eye(3)
    # a learned prior of full covariances keeps to the columns, which a rotation changes
    options = {"family": name, "accelerate": "tree", "prior": "fixed" if name == "gaussian" else "learn"}
    one, copies, permuted, turned = (
        VariationalDPMixture(**options).fit(*given)
        for given in (
            (X, None, weight),
            (np.repeat(X, weight, axis=0),),
            (X[order], None, weight[order]),
            (4 * X @ turn - 7, None, weight),
        )
    )
    for other, scale in ((copies, 1.0), (permuted, 1.0), (turned, 4.0)):
        assert other.n_nodes_ == one.n_nodes_
        assert other.n_components_ == one.n_components_
        shifted = other.free_energy_ - weight.sum() * 3 * np.log(scale)
        assert shifted == pytest.approx(one.free_energy_, rel=1e-8)
    assert_array_equal(copies.labels_, np.repeat(one.labels_, weight))
    assert_array_equal(permuted.labels_, one.labels_[order])
    assert_allclose(turned.means_, 4 * one.means_ @ turn - 7, atol=1e-4)


@pytest.mark.parametrize("name", DISCRETE)
def test_sparse_counts_give_the_model_of_dense_ones(name):
    rng = np.random.default_rng(11)
    rate = rng.gamma(0.5, 2.0, size=(3, 20))[rng.integers(3, size=300)]
    X = rng.poisson(rate).astype(float)
    X = (X > 1).astype(float) if name == "bernoulli" else X
    one, two = (VariationalDPMixture(family=name, accelerate="tree").fit(x) for x in (X, sp.csr_matrix(X)))
    assert one.n_components_ == two.n_components_
    assert one.free_energy_ == pytest.approx(two.free_energy_, rel=1e-8)
    assert_allclose(one.means_, two.means_, rtol=1e-6)
    plain = VariationalDPMixture(family=name, accelerate=None).fit(X)
    assert one.free_energy_ <= plain.free_energy_ + 0.05 * abs(plain.free_energy_)


def test_bad_choices_are_named():
    X, _ = blobs(30)
    with pytest.raises(ValueError, match="Unknown accelerate 'ball'"):
        VariationalDPMixture(accelerate="ball").fit(X)
    with pytest.raises(ValueError, match="Unknown final"):
        VariationalDPMixture(final="best").fit(X)
    with pytest.raises(ValueError, match="Unknown expand"):
        VariationalDPMixture(expand="all").fit(X)
    with pytest.raises(ValueError, match="max_nodes"):
        VariationalDPMixture(max_nodes=0).fit(X)
    counts = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(30, 4)).astype(float))
    with pytest.raises(ValueError, match="needs dense rows"):
        VariationalDPMixture(family="poisson", accelerate="kdtree").fit(counts)


@pytest.mark.parametrize("p", [1, 2, 5, 16])
def test_kernels_of_nodes_equal_their_twins(p):
    rng = np.random.default_rng(p)
    R, K, packed = 40, 3, p * (p + 1) // 2
    root = np.triu(rng.normal(size=(K, p, p)))
    spread = rng.normal(size=(R, p, p))
    second = np.ascontiguousarray((spread @ spread.transpose(0, 2, 1))[:, *np.triu_indices(p)])
    mean, centre, offset = rng.normal(size=(R, p)), rng.normal(size=(K, p)), rng.normal(size=K)
    n, resp = rng.random(R), rng.random((K + 1, R)) * (rng.random((K + 1, R)) < 0.7)
    results = []
    for module in (native, reference):
        lower, half, scores = np.empty((K, p, p)), np.empty((K, packed)), np.empty((R, K))
        module.half_precisions(root, lower, half)
        module.node_scores(mean, second, lower, half, centre, offset, scores)
        sums = np.zeros(K), np.zeros((K, p)), np.zeros((K, packed))
        module.node_sums(mean, second, n, resp, centre, *sums)
        results.append((half, scores, *sums))
    for mine, theirs in zip(*results):
        assert_allclose(mine, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("limits", [{"few_columns": 0}, {"worth_threads": 1}])
def test_products_loops_and_threads_over_nodes_agree(limits, monkeypatch):
    X, _ = blobs(1500, p=5, k=5, gap=3.0, seed=8)
    setting, tied = problem("gaussian", X, spread=12.0)
    table = tree_nodes("gaussian", tied).tied
    mixture = mixture_on(setting, tied, 4)

    def asked():
        view = mixture.view(setting)
        swept = sweep(table, view.runner(table), view.log_weight)
        return [*swept.sums, swept.tail, swept.evidence, view.scores(table), *view.shares(table)]

    usual = asked()
    monkeypatch.setattr(expected_likelihood, "VARIATIONAL", VARIATIONAL._replace(**limits))
    for threads in (1, 4):
        with set_span_threads(threads):
            for one, two in zip(usual, asked()):
                assert_allclose(one, two, rtol=1e-9, atol=1e-9)


def test_threads_over_nodes_do_not_matter(monkeypatch):
    X, _ = blobs(4000, p=5, k=6, gap=2.5, seed=9)
    monkeypatch.setattr(expected_likelihood, "VARIATIONAL", VARIATIONAL._replace(worth_threads=1))
    fits = []
    for threads in (1, 4):
        with threadpool_limits(threads):
            monkeypatch.setattr("kfree.rows.threads.n_threads", lambda count=threads: count)
            fits.append(VariationalDPMixture(accelerate="tree").fit(X))
    one, two = fits
    assert one.n_nodes_ < 4000
    assert one.free_energy_trace_.tolist() == two.free_energy_trace_.tolist()
    assert_array_equal(one.labels_, two.labels_)
    assert_array_equal(one.means_, two.means_)


def test_a_split_finds_the_rows_it_was_tried_on_also_after_nodes_were_joined():
    X, _ = blobs(2000, p=3, k=6, gap=4.0, seed=10)
    _, tied = problem("gaussian", X, spread=20.0)
    nodes = tree_nodes("gaussian", tied)
    fine = expanded(nodes.tree, 6)
    token = fine[nodes.tree.split(fine)][::3]
    children = np.sort(np.concatenate([nodes.tree.left[token], nodes.tree.left[token] + 1]))
    for depth in (0, 3, 6):
        nodes.nodes = np.sort(expanded(nodes.tree, depth))
        nodes.keep(token)
        assert np.isin(children, nodes.nodes).all()
        assert nodes.tied.total == pytest.approx(2000)
        nodes.keep(token)  # again changes nothing
        assert np.isin(children, nodes.nodes).all()
        assert nodes.tied.n.sum() == pytest.approx(2000)


@pytest.mark.parametrize("seed", [5, 8, 9])
def test_what_coarse_nodes_leave_in_doubt_is_tried_on_finer_ones(seed):
    X, _ = blobs(3000, p=8, k=12, gap=2.5, seed=seed)
    fast, exact = (VariationalDPMixture(accelerate=how).fit(X) for how in ("tree", None))
    assert fast.n_components_ == exact.n_components_ == 12
    assert fast.free_energy_ <= exact.free_energy_ + 1e-4 * abs(exact.free_energy_)


def test_rows_are_used_from_the_start_where_nodes_would_hold_fewer_rows_than_columns():
    rng = np.random.default_rng(12)
    X, weight = rng.normal(size=(400, 70)), rng.integers(1, 3, size=400)
    for rows in (problem("gaussian", X, spread=2.0, weight=weight), problem("gaussian", np.repeat(X, weight, axis=0))):
        assert tree_nodes("gaussian", rows[1]).fixed
    assert not tree_nodes("gaussian", problem("gaussian", X[:, :8])[1]).fixed


@pytest.mark.parametrize("name", FAMILIES)
def test_what_the_user_passed_stays_as_it_was(name):
    X = blobs(600)[0] if name in GAUSSIANS else np.ascontiguousarray(draw(name, 600, 4), dtype=float)
    weight = np.random.default_rng(13).integers(1, 3, size=600).astype(float)
    before, weights = X.copy(), weight.copy()
    fitted = VariationalDPMixture(family=name, accelerate="tree").fit(X, sample_weight=weight)
    assert_array_equal(X, before)
    assert_array_equal(weight, weights)
    assert_array_equal(fitted.labels_, fitted.predict(X))
