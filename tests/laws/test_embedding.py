"""Kernel means in closed form, random features, the programme over the simplex, gradients, truncation."""

from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad

from kfree import truncation_level
from kfree.families.components import take
from kfree.families.points import POINTS, Kernel, Spread
from kfree.families.points.discrete_points import Chances
from kfree.families.points.gaussian_points import Gaussians
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import (
    ExactTarget,
    FeatureTarget,
    SeenRows,
    squared_length,
    sum_features,
)
from kfree.inference.embedding.moving import Moved, move
from kfree.inference.embedding.simplex import Part, choose_ridge, follow, gap_of, objective, solve
from kfree.inference.embedding.two_sample import permutation_test
from kfree.inference.loop import Budget

SHAPES = ("full", "diag", "spherical")
KERNEL = Kernel(np.array([0.7]))
SEVERAL = Kernel(np.array([0.2, 0.7, 3.0]))


def gaussian(shape):
    return POINTS["gaussian"][shape]()


def random_gaussians(shape, K=4, D=2, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(K, D, D)) * 0.5
    covariance = half @ half.transpose(0, 2, 1) + 0.2 * np.eye(D)
    return Gaussians(rng.normal(size=(K, D)), gaussian(shape).shaped(covariance))


def as_full(params):
    D = params.mean.shape[1]
    C = params.covariance
    C = C if C.ndim == 3 else C.reshape(len(C), -1)[:, :, None] * np.eye(D)
    return Gaussians(params.mean, C)


def density(params, k, x):
    C, gap = as_full(params).covariance[k], x - params.mean[k]
    D = gap.shape[-1]
    squares = np.einsum("...d,de,...e->...", gap, np.linalg.inv(C), gap)
    return np.exp(-0.5 * squares) / np.sqrt((2 * np.pi) ** D * np.linalg.det(C))


def documents(p, length):
    """All rows of counts of so many columns and such a sum, with the log of the multinomial coefficient."""
    return np.array([c for c in product(range(length + 1), repeat=p) if sum(c) == length], float)


class TestGaussian:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_kernel_means_are_integrals(self, shape):
        family, params = gaussian(shape), random_gaussians(shape, K=2)
        x = np.array([0.3, -0.4])

        def integrand(v, u):
            y = np.array([u, v])
            return density(params, 0, y) * np.exp(-((x - y) ** 2).sum() / (2 * 0.7))

        value, _ = dblquad(integrand, -9, 9, -9, 9, epsabs=1e-9)
        assert_allclose(family.embed(KERNEL, params, x[None])[0, 0], value, rtol=1e-6)

    def test_in_one_column_inner_products_are_integrals_of_kernel_means(self):
        family = gaussian("full")
        params = Gaussians(np.array([[0.3], [-1.0]]), np.array([[[0.5]], [[0.1]]]))

        def integrand(x):
            mean = family.embed(KERNEL, take(params, [1]), np.array([[x]]))[0, 0]
            return density(params, 0, np.array([x])) * mean

        value, _ = quad(integrand, -12, 12, epsabs=1e-12)
        assert_allclose(family.inner(KERNEL, params, params)[0, 1], value, rtol=1e-9)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_inner_products_are_means_over_draws(self, shape):
        family, params = gaussian(shape), random_gaussians(shape, K=2, D=3, seed=1)
        rng, n = np.random.default_rng(0), 200_000
        x, y = (family.sample(params, np.full(n, k), rng, np.zeros(n)) for k in (0, 1))
        values = np.exp(-((x - y) ** 2).sum(axis=1) / (2 * 0.7))
        error = 4 * values.std() / np.sqrt(n)
        assert abs(family.inner(KERNEL, params, params)[0, 1] - values.mean()) < error
        assert abs(family.embed(KERNEL, take(params, [1]), x).mean() - values.mean()) < 2 * error

    @pytest.mark.parametrize("kernel", [KERNEL, SEVERAL])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_all_shapes_of_covariance_agree(self, shape, kernel):
        family, full, params = gaussian(shape), gaussian("full"), random_gaussians(shape, D=3)
        whole, X = as_full(params), np.random.default_rng(1).normal(size=(50, 3))
        assert_allclose(family.inner(kernel, params, params), full.inner(kernel, whole, whole), rtol=1e-12)
        assert_allclose(family.embed(kernel, params, X), full.embed(kernel, whole, X), rtol=1e-9)
        assert_allclose(family.log_norms(kernel, params), np.log(np.diag(full.inner(kernel, whole, whole))))
        assert_allclose(family.log_predictive(params, X), full.log_predictive(whole, X), rtol=1e-9)
        W = full.frequencies(kernel, 3, 20, np.random.default_rng(0))
        assert_allclose(family.component_features(kernel, W, params), full.component_features(kernel, W, whole))

    @pytest.mark.parametrize("shape", SHAPES)
    def test_without_width_a_component_is_a_row(self, shape):
        family, X = gaussian(shape), np.random.default_rng(0).normal(size=(6, 3))
        points = Gaussians(X, np.zeros(family.covariance_shape(6, 3)))
        assert_allclose(family.embed(SEVERAL, points, X), family.between(SEVERAL, X, X), rtol=1e-9)
        assert_allclose(family.inner(SEVERAL, points, points), family.between(SEVERAL, X, X), rtol=1e-9)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_inner_products_are_those_of_vectors_no_longer_than_one(self, shape):
        family, params = gaussian(shape), random_gaussians(shape, K=12, D=3)
        S = family.inner(SEVERAL, params, params)
        assert_allclose(S, S.T, rtol=1e-12)
        assert np.linalg.eigvalsh(S).min() > -1e-14
        assert (np.diag(S) < 1).all()
        assert (S > 0).all()

    def test_several_bandwidths_are_the_mean_of_their_kernels(self):
        family, params = gaussian("full"), random_gaussians("full")
        single = [family.inner(Kernel(np.array([w])), params, params) for w in SEVERAL.widths]
        assert_allclose(family.inner(SEVERAL, params, params), np.mean(single, axis=0), rtol=1e-12)

    def test_many_columns_stay_within_range_in_units(self):
        D = 4000
        family, params = gaussian("spherical"), Gaussians(np.zeros((2, D)), np.array([1.0, 1.1]))
        target = ExactTarget(family, KERNEL, rows_of(np.zeros((3, D)))).in_units_of(params)
        assert np.exp(family.log_norms(KERNEL, params)).max() == 0
        assert_allclose(np.diag(target.inner(params)).mean(), 1.0, rtol=1e-9)

    def test_rows_far_from_zero_keep_their_digits(self):
        family = gaussian("diag")
        X = 1e7 + np.array([[0.0, 0.0], [0.5, 0.25]])
        points = Gaussians(X, np.zeros((2, 2)))
        expected = np.exp(-(0.5**2 + 0.25**2) / (2 * 0.7))
        assert_allclose(family.embed(KERNEL, points, X)[0, 1], expected, rtol=1e-12)

    def test_draws_from_the_prior_are_nested(self):
        spread = Spread(np.zeros(3), np.diag([1.0, 4.0, 0.2]), np.full(3, 1e-6))
        for shape in SHAPES:
            few, many = (gaussian(shape).draw(spread, T, np.random.default_rng(5)) for T in (7, 60))
            assert_array_equal(few.mean, many.mean[:7])
            assert_array_equal(few.covariance, many.covariance[:7])
        for family in (POINTS["multinomial"][""](), POINTS["bernoulli"][""]()):
            few, many = (
                family.draw(spread._replace(mean=np.full(3, 0.3)), T, np.random.default_rng(5)) for T in (7, 60)
            )
            assert_array_equal(few.chance, many.chance[:7])


class TestDiscrete:
    def test_documents_match_the_sum_over_all_of_them(self):
        family, n = POINTS["multinomial"][""](), 3
        chance = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
        params, kernel = Chances(chance), Kernel(np.ones(1), brevity=1 / n)
        every = documents(3, n)
        probability = np.exp(family.log_predictive(params, every))
        assert_allclose(probability.sum(axis=0), 1.0, rtol=1e-12)
        shares = family.seen(every)
        k = family.between(kernel, shares, shares)
        assert_allclose(family.inner(kernel, params, params), probability.T @ k @ probability, rtol=1e-12)
        assert_allclose(family.embed(kernel, params, shares), k @ probability, rtol=1e-12)
        assert_allclose(np.exp(family.log_norms(kernel, params)), np.diag(probability.T @ k @ probability))
        assert_allclose(family.own(shares), np.diag(k), rtol=1e-12)

    @pytest.mark.parametrize("kernel", [KERNEL, SEVERAL])
    def test_bits_match_the_sum_over_all_of_them(self, kernel):
        family = POINTS["bernoulli"][""]()
        params = Chances(np.random.default_rng(0).uniform(0.05, 0.95, size=(3, 4)))
        every = np.array(list(product((0.0, 1.0), repeat=4)))
        probability = np.exp(family.log_predictive(params, every))
        assert_allclose(probability.sum(axis=0), 1.0, rtol=1e-12)
        k = family.between(kernel, every, every)
        apart = (every[:, None] != every).sum(axis=2)
        rho = np.exp(-0.5 / kernel.widths)
        assert_allclose(k, np.mean([r**apart for r in rho], axis=0), rtol=1e-12)
        assert_allclose(family.inner(kernel, params, params), probability.T @ k @ probability, rtol=1e-12)
        assert_allclose(family.embed(kernel, params, every), k @ probability, rtol=1e-12)
        assert_allclose(np.exp(family.log_norms(kernel, params)), np.diag(family.inner(kernel, params, params)))
        W = family.frequencies(kernel, 4, 30, np.random.default_rng(0))
        characteristic = probability.T @ np.exp(1j * every @ W)
        found = family.component_features(kernel, W, params) * np.sqrt(30)
        assert_allclose(found[:, :30] + 1j * found[:, 30:], characteristic, atol=1e-12)

    def test_features_of_documents_are_expected_features(self):
        family = POINTS["multinomial"][""]()
        params, kernel = Chances(np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])), Kernel(np.ones(1), brevity=0.25)
        every = documents(3, 4)
        signs = family.frequencies(kernel, 3, 10, np.random.default_rng(0))
        probability = np.exp(family.log_predictive(params, every))
        expected = probability.T @ family.row_features(signs, family.seen(every))
        assert_allclose(family.component_features(kernel, signs, params), expected, atol=1e-12)

    @pytest.mark.parametrize("name", ["multinomial", "bernoulli"])
    def test_sparse_rows_are_as_dense_ones(self, name):
        family, rng = POINTS[name][""](), np.random.default_rng(0)
        X = (rng.random((20, 6)) < 0.4).astype(float) + (name == "multinomial") * (np.arange(6) == 2)
        params = family.estimate(X, rng.random((20, 3)), Spread(X.mean(axis=0), np.zeros((0, 0)), np.zeros(6)))
        kernel = Kernel(np.array([0.7]), brevity=0.2)
        dense, sparse = family.seen(X), family.seen(sp.csr_matrix(X))
        assert_allclose(family.embed(kernel, params, sparse), family.embed(kernel, params, dense), rtol=1e-12)
        assert_allclose(family.between(kernel, sparse, sparse), family.between(kernel, dense, dense), rtol=1e-12)
        assert_allclose(family.apart(sparse, sparse), family.apart(dense, dense), atol=1e-12)
        assert_allclose(family.paired(sparse[:5], sparse[5:10]), family.paired(dense[:5], dense[5:10]), atol=1e-12)
        assert_allclose(family.log_predictive(params, sp.csr_matrix(X)), family.log_predictive(params, X), rtol=1e-12)
        W = family.frequencies(kernel, 6, 8, rng)
        assert_allclose(family.row_features(W, sparse), family.row_features(W, dense), atol=1e-6)


def rows_of(X, weight=None, seed=0):
    n = X.shape[0]
    fold = np.random.default_rng(seed).integers(EMBEDDING.folds, size=n)
    return SeenRows(X, np.ones(n) if weight is None else weight, fold)


class TestFeatures:
    def test_a_gaussians_feature_is_its_characteristic_function(self):
        family, params = gaussian("full"), random_gaussians("full", K=1, D=1)
        w = np.array([[1.3]])

        def part(x, wave):
            return density(params, 0, np.array([x])) * wave(1.3 * x)

        found = family.component_features(KERNEL, w, params)[0]
        for value, wave in zip(found, (np.cos, np.sin)):
            assert_allclose(value, quad(part, -15, 15, args=(wave,))[0], atol=1e-8)

    @pytest.mark.parametrize("kernel", [KERNEL, SEVERAL])
    def test_features_converge_to_the_kernel(self, kernel):
        family, params = gaussian("full"), random_gaussians("full", D=3)
        X = np.random.default_rng(1).normal(size=(300, 3))
        exact = ExactTarget(family, kernel, rows_of(X))
        errors = []
        for M in (300, 30_000):
            W = family.frequencies(kernel, 3, M, np.random.default_rng(2))
            target = FeatureTarget(family, kernel, W, sum_features(family, W, rows_of(X)))
            apart = [target.inner(params) - exact.inner(params), target.match(params) - exact.match(params)]
            errors.append(max(np.abs(some).max() for some in apart))
            assert np.linalg.eigvalsh(target.inner(params)).min() > -1e-12
        assert errors[0] < 5 / np.sqrt(300)
        assert errors[1] < 5 / np.sqrt(30_000)

    @pytest.mark.parametrize("name", ["multinomial", "bernoulli"])
    def test_features_of_discrete_rows_converge_too(self, name):
        family, rng = POINTS[name][""](), np.random.default_rng(0)
        X = (rng.random((40, 5)) < 0.5).astype(float) + (name == "multinomial") * (np.arange(5) == 0)
        kernel, rows = Kernel(np.array([0.7]), brevity=0.3), rows_of(family.seen(X))
        params = family.estimate(X, rng.random((40, 3)), Spread(X.mean(axis=0), np.zeros((0, 0)), np.zeros(5)))
        W = family.frequencies(kernel, 5, 40_000, rng)
        exact, target = (
            ExactTarget(family, kernel, rows),
            FeatureTarget(family, kernel, W, sum_features(family, W, rows)),
        )
        assert_allclose(target.inner(params), exact.inner(params), atol=0.03)
        assert_allclose(target.match(params), exact.match(params), atol=0.03)

    def test_sums_over_batches_add(self):
        family, X = gaussian("full"), np.random.default_rng(1).normal(size=(300, 3))
        W = family.frequencies(KERNEL, 3, 50, np.random.default_rng(2))
        rows = rows_of(X, np.random.default_rng(3).random(300))
        whole = sum_features(family, W, rows)
        first, second = (SeenRows(*(field[part] for field in rows)) for part in (slice(0, 120), slice(120, None)))
        both = sum_features(family, W, first).plus(sum_features(family, W, second))
        assert_allclose(both.total, whole.total, rtol=1e-5, atol=1e-5)
        assert_allclose(both.mass, whole.mass)

    @pytest.mark.parametrize("name", ["gaussian", "multinomial", "bernoulli"])
    @pytest.mark.parametrize("columns", [1, 5, 70])
    def test_rows_have_the_same_features_whatever_stands_beside_them(self, name, columns):
        family, rng = next(iter(POINTS[name].values()))(), np.random.default_rng(0)
        X = rng.normal(size=(300, columns)) * np.exp(rng.normal(0, 4, size=(300, 1)))
        X = X if name == "gaussian" else family.seen((X > 0) + (name == "multinomial") * rng.random(X.shape))
        W = family.frequencies(KERNEL, columns, 333, rng)
        whole = family.row_features(W, X)
        assert np.abs(whole).max() <= (1 + 1e-6) / np.sqrt(333)
        for some in (slice(0, 1), slice(7, 9), slice(50, 183), slice(299, 300)):
            assert_array_equal(family.row_features(W, X[some]), whole[some])
        if name == "gaussian":
            near = np.abs(X).max(axis=1) < 10
            phase = X[near] @ W
            assert_allclose(whole[near, :333] * np.sqrt(333), np.cos(phase), atol=2e-6)

    @pytest.mark.parametrize("weight", [np.ones(200), np.arange(200) % 3 + 1.0, np.arange(200) / 7 + 0.1])
    def test_sums_of_features_do_not_depend_on_what_is_summed_first(self, weight):
        family, rng = POINTS["gaussian"]["full"](), np.random.default_rng(1)
        X, fold, order = rng.normal(size=(200, 3)), rng.integers(5, size=200), rng.permutation(200)
        W = family.frequencies(KERNEL, 3, 50, rng)
        one = sum_features(family, W, SeenRows(X, weight, fold))
        two = sum_features(family, W, SeenRows(X[order], weight[order], fold[order]))
        assert_array_equal(one.total, two.total)
        expected = [(weight * (fold == k)) @ family.row_features(W, X).astype(float) for k in range(5)]
        assert_allclose(one.total, expected, atol=1e-12 * weight.sum())
        assert_allclose(one.mass, np.bincount(fold, weight), rtol=1e-14)

    def test_very_far_rows_have_features_that_are_numbers(self):
        family = gaussian("full")
        W = family.frequencies(KERNEL, 2, 20, np.random.default_rng(0))
        found = family.row_features(W, np.array([[1e100, -1e100], [1e20, 1.0]]))
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 1 / np.sqrt(20) * (1 + 1e-6)


def random_programme(T, seed, rank=None):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rank or T, T))
    return A.T @ A / T, rng.normal(size=T) * 0.5


def by_enumeration(S, R, ridge):
    """The best of the solutions on all supports that are non-negative."""
    T, best = R.size, (np.inf, None)
    for size in range(1, T + 1):
        for support in map(list, combinations(range(T), size)):
            H = S[np.ix_(support, support)] + ridge * np.eye(size)
            system = np.block([[H, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            p = np.zeros(T)
            p[support] = np.linalg.solve(system, np.append(R[support], 1.0))[:size]
            if (p >= 0).all() and objective(S, R, ridge, p) < best[0]:
                best = objective(S, R, ridge, p), p
    return best


class TestProgramme:
    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize("ridge", [1e-6, 1e-2])
    def test_the_solution_is_the_best_over_all_supports(self, seed, ridge):
        T = 2 + seed % 8
        S, R = random_programme(T, seed, rank=1 + seed % 5)
        level, p = by_enumeration(S, R, ridge)
        found = solve(S, R, ridge)
        assert_allclose(objective(S, R, ridge, found.p), level, atol=1e-12)
        assert_allclose(found.p, p, atol=1e-5)

    @pytest.mark.parametrize("T", [1, 5, 60, 300])
    def test_conditions_of_optimality_hold(self, T):
        S, R = random_programme(T, T, rank=min(T, 40))
        found = solve(S, R, 1e-6)
        assert_allclose(found.p.sum(), 1.0, rtol=1e-12)
        assert (found.p >= 0).all()
        gradient = S @ found.p + 1e-6 * found.p - R
        level = gradient[found.p > 0]
        assert np.ptp(level) < 1e-10
        assert gradient.min() > level.max() - 1e-10
        assert found.gap <= 1e-12

    def test_the_gap_bounds_what_is_lost(self):
        S, R = random_programme(8, 3)
        best = objective(S, R, 1e-3, solve(S, R, 1e-3).p)
        rng = np.random.default_rng(0)
        for _ in range(50):
            p = rng.dirichlet(np.full(8, 0.5))
            assert gap_of(S, R, 1e-3, p) >= objective(S, R, 1e-3, p) - best >= -1e-12

    @pytest.mark.parametrize("T", [500, 2000])
    def test_the_gap_is_rounding_for_many_candidates(self, T):
        family, rng = gaussian("spherical"), np.random.default_rng(0)
        X = 2 * rng.normal(size=(T + 500, 2))
        params = Gaussians(X[:T], np.full(T, 0.3))
        target = ExactTarget(family, Kernel(np.array([4.0])), rows_of(X)).in_units_of(params)
        assert solve(target.inner(params), target.match(params), 1e-6).gap <= 1e-12

    def test_the_order_of_candidates_does_not_matter(self):
        S, R = random_programme(30, 1, rank=12)
        mixed = np.random.default_rng(0).permutation(30)
        assert_allclose(solve(S, R, 1e-4).p[mixed], solve(S[np.ix_(mixed, mixed)], R[mixed], 1e-4).p, atol=1e-10)

    def test_a_large_ridge_makes_weights_equal_and_a_larger_one_no_more_unequal(self):
        S, R = random_programme(20, 2, rank=9)
        assert_allclose(solve(S, R, 1e9).p, 0.05, rtol=1e-6)
        squares = [float((solve(S, R, ridge).p ** 2).sum()) for ridge in 10.0 ** np.arange(-8, 4)]
        assert (np.diff(squares) <= 1e-9).all()

    def test_weights_of_a_mixture_of_the_candidates_are_recovered(self):
        family, params = gaussian("full"), random_gaussians("full", K=8, D=3)
        S = family.inner(KERNEL, params, params)
        p = np.array([0.3, 0, 0.25, 0, 0.2, 0.15, 0.1, 0])
        assert_allclose(solve(S, S @ p, 1e-14).p, p, atol=1e-6)

    def test_weights_of_a_sample_come_close_to_those_it_was_drawn_with(self):
        family, rng = gaussian("full"), np.random.default_rng(0)
        params = Gaussians(np.array([[-3.0, 0], [0, 2], [3, 0]]), np.tile(np.eye(2) * 0.5, (3, 1, 1)))
        p = np.array([0.5, 0.3, 0.2])
        X = family.sample(params, rng.choice(3, size=20_000, p=p), rng, np.zeros(20_000))
        target = ExactTarget(family, KERNEL, rows_of(X)).in_units_of(params)
        assert_allclose(solve(target.inner(params), target.match(params), 1e-9).p, p, atol=0.02)

    def test_repeated_candidates_share_their_weight_and_a_vanishing_ridge_is_raised(self):
        family, params = gaussian("full"), take(random_gaussians("full", K=3), [0, 1, 2, 0, 0])
        S = family.inner(KERNEL, params, params)
        R = S @ np.array([0.6, 0.3, 0.1, 0, 0])
        found = solve(S, R, 0.0)
        assert found.ridge > 0
        assert_allclose(found.p[[0, 3, 4]], 0.2, atol=1e-3)
        assert found.gap <= 1e-8

    def test_one_candidate_has_all_weight(self):
        assert_array_equal(solve(np.array([[0.5]]), np.array([0.1]), 1e-6).p, [1.0])

    def test_nested_candidates_come_no_farther(self):
        family, rng = gaussian("full"), np.random.default_rng(0)
        X = rng.normal(size=(400, 2)) * [2, 1]
        every = family.draw(Spread(X.mean(axis=0), np.cov(X.T), np.full(2, 1e-6)), 60, np.random.default_rng(1))
        target, levels = ExactTarget(family, KERNEL, rows_of(X)), []
        for T in (1, 2, 5, 10, 20, 40, 60):
            params = take(every, slice(T))
            S, R = target.inner(params), target.match(params)
            p = solve(S, R, 1e-12).p
            levels.append(float(p @ S @ p - 2 * R @ p))
        assert (np.diff(levels) <= 1e-9).all()
        assert min(levels) + squared_length(family, KERNEL, target.rows) > 0

    def test_following_a_path_ends_where_solving_anew_does(self):
        S, R = random_programme(40, 4, rank=15)
        p = solve(S, R, 1e-2).p
        for ridge in (1e-3, 1e-4, 1e-5):
            p = follow(S, R, ridge, p)
            assert gap_of(S, R, ridge, p) <= 1e-12
            assert_allclose(p, solve(S, R, ridge).p, atol=1e-7)

    def test_the_ridge_that_is_chosen_is_best_for_held_out_parts(self):
        family, rng = gaussian("full"), np.random.default_rng(0)
        params = random_gaussians("full", K=30)
        target = ExactTarget(family, KERNEL, rows_of(rng.normal(size=(100, 2)))).in_units_of(params)
        S, parts = target.inner(params), target.parts(params)
        loss = []
        for ridge in EMBEDDING.ridges:
            total = 0.0
            for part in parts:
                others = [other for other in parts if other is not part]
                rest = sum(o.R * o.mass for o in others) / sum(o.mass for o in others)
                p = solve(S, rest, ridge).p
                total += part.mass * (p @ S @ p - 2 * part.R @ p)
            loss.append(total)
        assert choose_ridge(S, parts) == EMBEDDING.ridges[int(np.argmin(loss))]
        assert choose_ridge(S, [Part(parts[0].R, 3.0)]) in EMBEDDING.ridges


class TestMoving:
    @pytest.mark.parametrize("by", ["kernel", "features"])
    @pytest.mark.parametrize("kernel", [KERNEL, SEVERAL])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_slopes_are_differences(self, shape, kernel, by):
        family, params = gaussian(shape), random_gaussians(shape, K=3, D=3)
        rng = np.random.default_rng(0)
        rows = rows_of(rng.normal(size=(40, 3)), rng.random(40))
        target = ExactTarget(family, kernel, rows)
        if by == "features":
            W = family.frequencies(kernel, 3, 30, rng)
            target = FeatureTarget(family, kernel, W, sum_features(family, W, rows))
        target, p = target.in_units_of(params), np.array([0.5, 0.3, 0.2])

        def level(moved):
            return 0.5 * p @ target.inner(moved) @ p - target.match(moved) @ p

        found, step = target.slopes(family, params, p), 1e-5
        for field, slope in (("mean", found.mean), ("covariance", found.covariance)):
            for place in np.ndindex(slope.shape):
                ends = []
                for sign in (1, -1):
                    value = getattr(params, field).copy()
                    value[place] += sign * step
                    if value.ndim == 3:  # matrices stay symmetric: both of a pair move
                        value[place[0], place[2], place[1]] = value[place]
                    ends.append(level(params._replace(**{field: value})))
                pair = slope.ndim == 3 and field == "covariance" and place[1] != place[2]
                expected = slope[place] * (2 if pair else 1)
                assert_allclose((ends[0] - ends[1]) / (2 * step), expected, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_moving_only_ever_lowers_the_objective(self, shape):
        family, params = gaussian(shape), random_gaussians(shape, K=4)
        X = np.random.default_rng(3).normal(size=(200, 2)) * [1.0, 0.4]
        target = ExactTarget(family, KERNEL, rows_of(X)).in_units_of(params)
        S, R = target.inner(params), target.match(params)
        weights = solve(S, R, 1e-6)
        start = Moved(params, weights, objective(S, R, 1e-6, weights.p))
        outcome = move(target, family, start, np.full(2, 1e-6), Budget())
        trace = [start.objective, *outcome.trace]
        assert (np.diff(trace) <= 1e-12).all()
        assert trace[-1] < trace[0]
        assert (np.linalg.eigvalsh(as_full(outcome.state.params).covariance) >= 1e-6 * (1 - 1e-9)).all()


class TestTruncation:
    @pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
    def test_what_is_left_has_the_moments_that_are_used(self, alpha):
        rng, T, n = np.random.default_rng(0), 4, 400_000
        left = np.prod(1 - rng.beta(1, alpha, size=(n, T)), axis=1)
        for power in (1, 2):
            values = left**power
            expected = (alpha / (alpha + power)) ** T
            assert abs(values.mean() - expected) < 5 * values.std() / np.sqrt(n)
        assert_allclose(np.log(left).mean(), -T / alpha, rtol=0.01)

    @pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
    def test_levels_do_what_they_say(self, alpha):
        rng, delta, n = np.random.default_rng(1), 1e-3, 200_000

        def squares(T):
            return np.exp(-2 * rng.gamma(T, size=n) / alpha)

        T = truncation_level(alpha, delta)
        assert (alpha / (alpha + 2)) ** T <= delta
        assert T == 1 or (alpha / (alpha + 2)) ** (T - 1) > delta
        T = truncation_level(alpha, delta, "probability", chance=0.1)
        assert (squares(T) > delta).mean() < 0.1 + 0.004
        assert T == 1 or (squares(T - 1) > delta).mean() > 0.1 - 0.004
        T = truncation_level(alpha, delta, "typical")
        assert np.exp(-2 * T / alpha) <= delta < np.exp(-2 * (T - 1) / alpha)
        assert truncation_level(alpha, delta, bound=2.0) >= truncation_level(alpha, delta)
        assert truncation_level(alpha, 5.0) == 1

    def test_the_printed_bound_is_exceeded_with_ordinary_probability(self):
        left = np.exp(-np.random.default_rng(0).gamma(3, size=100_000))  # alpha = 1, T = 3
        assert (left > np.exp(-3)).mean() > 0.5

    @pytest.mark.parametrize("alpha", [1.0, 4.0])
    def test_what_is_cut_off_is_no_longer_than_its_bound(self, alpha):
        rng, family, T = np.random.default_rng(2), gaussian("spherical"), 3
        for _ in range(20):
            v = rng.beta(1, alpha, size=60)
            weight = v * np.concatenate([[1.0], np.cumprod(1 - v)[:-1]])
            params = Gaussians(rng.normal(size=(60, 2)), np.full(60, 0.2))
            S, left = family.inner(KERNEL, params, params), np.prod(1 - v[:T])
            rest = weight.copy()
            rest[:T] = 0
            assert rest @ S @ rest <= left**2
            closed = np.append(weight[:T], 0.0)
            closed[T - 1] += left  # the last piece takes what is left
            full = weight.copy()
            full[:T] -= closed[:T]
            assert full @ S @ full <= 2 * left**2 * (1 + 1e-9)


class TestTwoSamples:
    def test_the_level_holds_and_changes_are_seen(self):
        family, rng = gaussian("full"), np.random.default_rng(0)
        pvalues = []
        for _ in range(200):
            rows = rng.normal(size=(50, 2))
            pvalues.append(permutation_test(family, KERNEL, rows, 30, 39, rng).pvalue)
        pvalues = np.array(pvalues)
        for level in (0.05, 0.1, 0.25, 0.5):
            assert (pvalues <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 200)
        moved = np.concatenate([rng.normal(size=(40, 2)), rng.normal(1.5, 1, size=(40, 2))])
        assert permutation_test(family, KERNEL, moved, 40, 199, rng).pvalue == 0.005

    def test_the_statistic_is_the_squared_distance_of_kernel_means(self):
        family, rng = gaussian("full"), np.random.default_rng(0)
        rows = rng.normal(size=(15, 2))
        k = family.between(KERNEL, rows, rows)
        expected = k[:6, :6].mean() + k[6:, 6:].mean() - 2 * k[:6, 6:].mean()
        assert_allclose(permutation_test(family, KERNEL, rows, 6, 9, rng).statistic, expected, rtol=1e-9)

    def test_equal_rows_are_never_told_apart(self):
        assert permutation_test(gaussian("full"), KERNEL, np.ones((9, 2)), 4, 19, np.random.default_rng(0)).pvalue == 1
