"""What mathematics demands of every family; formulas are those of the specification, written anew."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.families import (
    FAMILIES,
    KL,
    Bernoulli,
    Binomial,
    Family,
    Geometry,
    ItakuraSaito,
    Mahalanobis,
    NegativeBinomial,
    Poisson,
    SquaredEuclidean,
    Summary,
    make_family,
)
from kfree.families.base import i_divergence
from support.family_data import (
    BREGMAN,
    NAMES,
    SEPARABLE,
    TRIALS,
    draw_rows,
    draw_weights,
    geometry_of,
    gradient,
    make,
    table_divergence,
)

seeds = st.integers(0, 2**20)
sizes = st.integers(1, 6)
LOGARITHMIC = ("kl", "poisson", "negative_binomial")
BOUNDED = ("bernoulli", "binomial")
WITH_BOUNDARY = LOGARITHMIC + BOUNDED


def sums_of(rows, weight, labels, K):
    total = np.array([(weight[labels == k, None] * rows[labels == k]).sum(axis=0) for k in range(K)])
    return total, np.array([weight[labels == k].sum() for k in range(K)])


# The divergence


@pytest.mark.parametrize("name", SEPARABLE)
@given(p=sizes, seed=seeds)
def test_divergence_is_the_formula_of_the_table(name, p, seed):
    family, x, mu = make(name), draw_rows(name, 3, p, seed), draw_rows(name, 3, p, seed + 1, boundary=False)
    expected = [table_divergence(family, a, b) for a, b in zip(x, mu)]
    assert_allclose(family.divergence(x, mu), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("family", [NegativeBinomial(3.5), ItakuraSaito(2.5), SquaredEuclidean(2.0), Binomial(20)])
def test_hyperparameters_enter_as_in_the_table(family):
    x, mu = np.array([1.0, 4.0, 2.5]), np.array([2.0, 3.0, 0.5])
    assert_allclose(family.divergence(x, mu), table_divergence(family, x, mu), rtol=1e-12)


def test_default_gaussian_divergence_is_the_squared_distance():
    x, mu = draw_rows("sqeuclidean", 5, 4, 0), draw_rows("sqeuclidean", 5, 4, 1)
    assert_allclose(make("sqeuclidean").divergence(x, mu), ((x - mu) ** 2).sum(axis=1))


def test_mahalanobis_divergence_is_half_the_squared_mahalanobis_distance():
    family, gap = make("mahalanobis"), np.array([0.3, -1.0, 2.0])
    expected = gap @ np.linalg.solve(family.covariance, gap) / 2
    assert_allclose(family.divergence(gap + 5.0, np.full(3, 5.0)), expected)


def test_cosine_divergence_is_one_minus_the_cosine():
    x, m = draw_rows("cosine", 6, 4, 0), draw_rows("cosine", 6, 4, 1)
    assert_allclose(make("cosine").divergence(x, m), 1 - (x * m).sum(axis=1), atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
@given(p=sizes, seed=seeds)
def test_divergence_is_zero_at_the_centre_and_never_negative(name, p, seed):
    family, x = make(name, p), draw_rows(name, 8, p, seed)
    assert_array_equal(family.divergence(x, x), 0.0)
    others = family.divergence(x[:, None], draw_rows(name, 8, p, seed + 1, boundary=False)[None])
    assert (others >= 0).all()
    for size in 1e-4, 1e-8, 1e-15:
        close = draw_rows(name, 8, p, seed, boundary=False)
        assert (family.divergence(close, close * (1 + size)) >= 0).all()


@pytest.mark.parametrize("name", SEPARABLE)
@pytest.mark.parametrize("size", [0.05, 1e-3, 1e-6, 1e-9])
def test_divergence_keeps_its_digits_close_to_the_centre(name, size):
    family = make(name)
    x = draw_rows(name, 20, 3, boundary=False) * (1000.0 if name in LOGARITHMIC[1:] else 1.0)
    mu = x * (1 + size * np.random.default_rng(0).uniform(-1, 1, size=x.shape))
    expected = np.array([table_divergence(family, a, b) for a, b in zip(x, mu)])
    # the plain formula is wrong by eps / size^2, which is everything at 1e-9; a negative binomial loses x / r more
    assert_allclose(family.divergence(x, mu), expected, rtol=1e-9 + 1e-15 * (2000 if "neg" in name else 4) / size)


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds)
def test_divergence_is_phi_plus_psi_minus_the_product(name, p, seed):
    family, x, mu = make(name, p), draw_rows(name, 5, p, seed), draw_rows(name, 5, p, seed + 1, boundary=False)
    theta = family.natural(mu)
    affine = family.phi(x) + family.psi(theta) - (x * theta).sum(axis=1)
    assert_allclose(affine, family.divergence(x, mu), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds)
def test_divergence_of_the_base_class_agrees_with_that_of_the_family(name, p, seed):
    family, x, mu = make(name, p), draw_rows(name, 5, p, seed), draw_rows(name, 5, p, seed + 1, boundary=False)
    assert_allclose(Family.divergence(family, x, mu), family.divergence(x, mu), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_divergence_broadcasts_over_leading_axes(name):
    family, x, mu = make(name, 4), draw_rows(name, 5, 4), draw_rows(name, 3, 4, 1, boundary=False)
    every = family.divergence(x[:, None], mu[None])
    assert every.shape == (5, 3)
    assert_allclose(every[:, 1], family.divergence(x, mu[1]), rtol=1e-14)


# Duality


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds)
def test_natural_and_mean_are_inverse(name, p, seed):
    family, mu = make(name, p), draw_rows(name, 5, p, seed, boundary=False)
    assert_allclose(family.mean(family.natural(mu)), mu, rtol=1e-10)


def test_natural_and_mean_are_inverse_near_the_boundary():
    for name in WITH_BOUNDARY:
        family, mu = make(name), np.array([[1e-200, 1e-20, 0.5]])
        if name == "kl":
            mu = mu / mu.sum()
        assert_allclose(family.mean(family.natural(mu)), mu, rtol=1e-10)
        assert np.isfinite(family.natural(np.array([[5e-324, 1e-310, 0.0]]))).all()


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds)
def test_natural_is_the_gradient_of_phi_and_mean_that_of_psi(name, p, seed):
    family, mu = make(name, p), draw_rows(name, 1, p, seed, boundary=False)
    theta = family.natural(mu)
    slope = gradient(family.phi, mu[0])
    if name == "kl":  # rows lie on the simplex, so gradients are defined up to a constant
        slope, theta_here = slope - slope.mean(), theta[0] - theta[0].mean()
    else:
        theta_here = theta[0]
    assert_allclose(slope, theta_here, rtol=1e-5, atol=1e-6)
    assert_allclose(gradient(family.psi, theta[0]), mu[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds)
def test_three_points(name, p, seed):
    family, x = make(name, p), draw_rows(name, 4, p, seed)
    c, m = (draw_rows(name, 4, p, seed + k, boundary=False) for k in (1, 2))
    cross = ((x - c) * (family.natural(m) - family.natural(c))).sum(axis=1)
    assert_allclose(family.divergence(x, m), family.divergence(x, c) + family.divergence(c, m) - cross, atol=1e-9)


# Clusters


@pytest.mark.parametrize("name", BREGMAN)
@given(n=st.integers(1, 12), p=sizes, seed=seeds)
def test_the_mean_minimises_and_the_excess_is_its_divergence(name, n, p, seed):
    family, x, w = make(name, p), draw_rows(name, n, p, seed), draw_weights(n, seed)
    m = draw_rows(name, 1, p, seed + 1, boundary=False)
    mean = family.centre((w @ x)[None], w.sum(keepdims=True))
    around_mean, around_m = w @ family.divergence(x, mean), w @ family.divergence(x, m)
    assert_allclose(around_m, around_mean + w.sum() * family.divergence(mean, m)[0], rtol=1e-9, atol=1e-12)


@given(n=st.integers(2, 12), p=st.integers(2, 6), seed=seeds)
def test_cosine_centre_is_the_best_unit_vector_and_its_cost_the_loss_of_length(n, p, seed):
    family, x, w = make("cosine"), draw_rows("cosine", n, p, seed), draw_weights(n, seed)
    centre = family.centre((w @ x)[None], w.sum(keepdims=True))
    cost = w @ family.divergence(x, centre)
    assert_allclose(np.linalg.norm(centre), 1.0)
    assert_allclose(cost, w.sum() - np.linalg.norm(w @ x), atol=1e-10)
    assert (cost <= family.divergence(x, draw_rows("cosine", 20, p, seed)[:, None]) @ w + 1e-10).all()


def test_cosine_centre_of_rows_that_cancel_is_a_unit_vector():
    assert_array_equal(make("cosine").centre(np.zeros((1, 3)), np.array([2.0])), [[1.0, 0.0, 0.0]])


@pytest.mark.parametrize("name", BREGMAN)
@pytest.mark.parametrize("eta", [0.0, 0.7])
@given(p=sizes, seed=seeds)
def test_cluster_cost_follows_from_its_sums(name, eta, p, seed):
    x, w = draw_rows(name, 9, p, seed), draw_weights(9, seed)
    geometry = geometry_of(make(name, p), x, w, eta=eta)
    family, total, mass = geometry.family, (w @ x)[None], w.sum(keepdims=True)
    centre = geometry.centre(total, mass)
    cost = w @ geometry.divergence(x, centre) + geometry.prior_cost(centre)[0]
    from_sums = w @ family.phi(x) - (w.sum() + eta) * family.phi(centre)[0]
    if eta:
        from_sums += eta * family.phi(geometry.prior_mean)
    assert_allclose(from_sums, cost, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("eta", [0.0, 0.7])
@given(p=sizes, seed=seeds)
def test_join_cost_is_the_rise_of_the_summed_cost(name, eta, p, seed):
    if eta and name not in BREGMAN:
        return
    x, w = draw_rows(name, 10, p, seed), draw_weights(10, seed)
    geometry = geometry_of(make(name, p), x, w, eta=eta)

    def cost(members):
        centre = geometry.centre((w[members] @ x[members])[None], w[members].sum(keepdims=True))
        return w[members] @ geometry.divergence(x[members], centre) + geometry.prior_cost(centre)[0]

    total, mass = sums_of(x, w, np.arange(10) % 3, 3)
    rise = geometry.join_cost(total[:1], mass[:1], total[1:2], mass[1:2])
    a, b = np.arange(0, 10, 3), np.arange(1, 10, 3)
    assert_allclose(rise, [cost(np.concatenate([a, b])) - cost(a) - cost(b)], rtol=1e-8, atol=1e-9)
    assert rise[0] >= 0 or eta


@pytest.mark.parametrize("name", BREGMAN)
@pytest.mark.parametrize("eta", [0.0, 0.7])
@given(p=sizes, seed=seeds)
def test_join_cost_is_a_difference_of_cluster_costs(name, eta, p, seed):
    x, w = draw_rows(name, 10, p, seed), draw_weights(10, seed)
    geometry = geometry_of(make(name, p), x, w, eta=eta)
    total, mass = sums_of(x, w, np.arange(10) % 2, 2)
    alone = geometry.cluster_cost(total, mass)
    joint = geometry.cluster_cost(total.sum(axis=0, keepdims=True), mass.sum(keepdims=True))
    rise = geometry.join_cost(total[:1], mass[:1], total[1:], mass[1:])
    assert_allclose(joint - alone.sum(), rise, rtol=1e-7, atol=1e-8 * (1 + np.abs(alone).max()))


@pytest.mark.parametrize("name", BREGMAN)
def test_divergences_in_pieces_are_those_of_all_at_once(name, monkeypatch):
    family, x = make(name, 4), draw_rows(name, 12, 4, 0)
    mean = family.centre(x[:6] + x[6:], np.full(6, 2.0))
    whole = [family.divergence(x, mean[0]), family.divergence(x[:, None], mean), family.divergence(x[0], mean)]
    monkeypatch.setattr("kfree.families.base._PIECE", 9)
    parts = [family.divergence(x, mean[0]), family.divergence(x[:, None], mean), family.divergence(x[0], mean)]
    for mine, theirs in zip(parts, whole):
        assert_array_equal(mine, theirs)


def test_cosine_join_cost_is_the_loss_of_resultant_length():
    a, b, one = np.array([[3.0, 0.0]]), np.array([[0.0, 4.0]]), np.array([5.0])
    assert_allclose(make("cosine").join_cost(a, one, b, one), [3 + 4 - 5])


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds, w=st.floats(0.05, 20))
def test_singleton_cost_is_formula_4(name, p, seed, w):
    x = draw_rows(name, 4, p, seed)
    geometry = geometry_of(make(name, p), x, eta=0.9)
    phi, eta, mu0 = geometry.family.phi, geometry.eta, geometry.prior_mean
    m = (w * x + eta * mu0) / (w + eta)
    expected = w * phi(x) + eta * phi(mu0) - (w + eta) * phi(m)
    weight = np.full(4, w)
    assert_allclose(geometry.singleton_centre(x, weight), m, rtol=1e-12)
    assert_allclose(geometry.singleton_cost(x, weight), expected, rtol=1e-8, atol=1e-9)
    assert_array_equal(geometry_of(geometry.family, x).singleton_cost(x, weight), 0.0)


@pytest.mark.parametrize("name", BREGMAN)
@given(p=sizes, seed=seeds)
def test_singleton_cost_is_concave_in_the_weight_and_vanishes_with_it(name, p, seed):
    x = np.repeat(draw_rows(name, 1, p, seed), 60, axis=0)
    geometry = geometry_of(make(name, p), draw_rows(name, 5, p, seed), eta=0.9)
    s = geometry.singleton_cost(x, np.linspace(1e-12, 6, 60))
    assert abs(s[0]) < 1e-9
    assert (np.diff(s, 2) <= 1e-10 * (1 + s.max())).all()
    assert (np.diff(s) >= -1e-10).all()


@pytest.mark.parametrize(("name", "power"), [("sqeuclidean", 2), ("poisson", 1), ("itakura_saito", 0)])
@given(p=sizes, seed=seeds, scale=st.floats(1e-3, 1e3))
def test_scaling_the_data_scales_the_divergence_by_a_power(name, power, p, seed, scale):
    family, x, mu = make(name, p), draw_rows(name, 5, p, seed), draw_rows(name, 5, p, seed + 1, boundary=False)
    assert_allclose(
        family.divergence(scale * x, scale * mu), scale**power * family.divergence(x, mu), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_only_families_that_say_so_are_blind_to_a_shift(name):
    family, x, mu = make(name), draw_rows(name, 5, 3), draw_rows(name, 5, 3, 1, boundary=False)
    shift = 0.01
    same = np.allclose(family.divergence(x + shift, mu + shift), family.divergence(x, mu), rtol=1e-9)
    assert same == family.translates or name == "cosine"  # |x - m|^2 / 2, but shifted rows leave the sphere


@pytest.mark.parametrize("name", NAMES)
def test_euclidean_factor_is_the_divergence_over_the_squared_distance(name):
    family, x, mu = make(name), draw_rows(name, 50, 3), draw_rows(name, 50, 3, 1, boundary=False)
    ratio = family.divergence(x, mu) / ((x - mu) ** 2).sum(axis=1)
    if family.euclidean_factor is None:
        assert np.ptp(ratio) > 1e-3
    else:
        assert_allclose(ratio, family.euclidean_factor)


# The boundary of the domain


def costs_by_products(geometry, x, mean, dtype=np.float64):
    """Divergences (n, K) as they are computed for many rows: by products, +inf where a centre excludes a row."""
    base, ends = geometry.divergence(x, geometry.anchor)[:, None], geometry.ends(mean)
    affine = geometry.affine(mean) if ends is None else ends[0]
    coef, offset = affine.cast(dtype)
    product = offset - x.astype(dtype) @ coef.T
    if ends is None:
        return geometry.family.divergence_at_infinity(base + product, dtype)
    return np.where(ends[1].offset - x @ ends[1].coef.T > 0, np.inf, base + product)


@pytest.mark.parametrize("name", WITH_BOUNDARY)
@given(n=st.integers(4, 30), p=st.integers(1, 8), seed=seeds)
def test_a_centre_excludes_exactly_the_rows_that_leave_its_face(name, n, p, seed):
    family, x, w = make(name), draw_rows(name, n, p, seed), draw_weights(n, seed)
    geometry = geometry_of(family, x, w)
    labels = np.arange(n) % 4
    mean = geometry.centre(*sums_of(x, w, labels, 4))
    excluded = np.zeros((n, 4), dtype=bool)
    for k in range(4):
        members = x[labels == k]
        excluded[:, k] |= ((members == 0).all(axis=0) & (x > 0)).any(axis=1)
        if name in BOUNDED:
            excluded[:, k] |= ((members == family.upper).all(axis=0) & (x < family.upper)).any(axis=1)
    exact = family.divergence(x[:, None], mean[None])
    assert_array_equal(np.isinf(exact), excluded)
    assert not np.isnan(exact).any()
    for dtype in (np.float64, np.float32) if family.float32 else (np.float64,):
        cost = costs_by_products(geometry, x, mean, dtype)
        assert_array_equal(np.isinf(cost), excluded)
        tolerance = 1e-4 if dtype == np.float32 else 1e-10
        assert_allclose(cost[~excluded], exact[~excluded], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("family", "x", "mean", "excluded"),
    [
        (Bernoulli(), 1 / 255, 0.0, True),  # the faintest grey of an image
        (Bernoulli(), 254 / 255, 1.0, True),
        (Bernoulli(), 1e-12, 0.0, True),
        (Bernoulli(), 1e-300, 0.0, True),
        (Bernoulli(), 1 - 1e-12, 1.0, True),
        (Bernoulli(), 1 / 255, 1e-9, False),
        (Binomial(1000), 1.0, 0.0, True),
        (Binomial(10**6), 1.0, 10**6 - 1.0, False),  # far, but not excluded
        (Binomial(10**12), 1e11, 9e11, False),
        (Binomial(10**12), 1.0, 0.0, True),
    ],
)
def test_what_excludes_and_what_is_only_far_are_told_apart(family, x, mean, excluded):
    geometry = Geometry(family, np.array([family.n / 2]))
    cost = costs_by_products(geometry, np.array([[x]]), np.array([[mean]]))[0]
    exact = family.divergence(np.array([[x]]), np.array([[mean]]))
    assert_array_equal(np.isinf(exact), excluded)
    assert_allclose(cost, exact, rtol=1e-6)


@pytest.mark.parametrize("name", LOGARITHMIC)
def test_the_base_class_reads_the_stand_in_for_infinity(name):
    family, x, mean = make(name), np.array([[0.25, 0.75]]), np.array([[0.0, 1.0]])
    assert_array_equal(Family.divergence(family, x, mean), np.inf)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("weight", [1.0, 0.1, 1 / 3])
def test_the_centre_of_rows_at_the_limit_is_the_limit(name, weight):
    family = make(name)
    total = np.cumsum(np.full(1001, weight * family.upper))[-1:]
    mass = np.cumsum(np.full(1001, weight))[-1:]
    assert_array_equal(family.centre(total[None], mass), family.upper)
    assert_array_equal(family.centre(np.zeros((1, 2)), mass), 0.0)


@pytest.mark.parametrize("name", WITH_BOUNDARY)
def test_a_centre_stays_in_the_domain_when_sums_are_rounded(name):
    family = make(name)
    mean = family.centre(np.array([[-1e-17, 3.0 * (1 + 1e-15) * min(family.upper, 1.0)]]), np.array([3.0]))
    assert (mean >= family.lower).all()
    assert (mean <= family.upper).all()


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds, p=sizes)
def test_no_row_is_excluded_by_the_centre_of_itself(name, seed, p):
    family, x = make(name, p), draw_rows(name, 6, p, seed)
    if name in BOUNDED:
        x[:, 0] = family.upper * (1 - np.array([1e-16, 2e-16, 1e-15, 1e-14, 1e-13, 1e-12]))
    w = draw_weights(6, seed)
    assert_allclose(family.divergence(x, family.centre(w[:, None] * x, w)), 0.0, atol=1e-12)


def test_itakura_saito_measures_ratios_far_below_rounding():
    x, mu = np.array([[1e-30], [1e30], [1e-12]]), np.ones((3, 1))
    expected = [table_divergence(make("itakura_saito"), a, b) for a, b in zip(x, mu)]
    assert_allclose(make("itakura_saito").divergence(x, mu), expected)


# The registry


@pytest.mark.parametrize("name", NAMES)
def test_registry_names_and_domains_hold(name):
    family, x = make(name), draw_rows(name, 50, 3)
    assert FAMILIES[name].name == name
    assert x.min() > family.lower if family.lower_open else x.min() >= family.lower
    assert x.max() <= family.upper
    assert family.advice or (family.lower, family.upper) == (-np.inf, np.inf)
    if family.normalise == "sum":
        assert_allclose(x.sum(axis=1), 1.0)
    if family.normalise == "norm":
        assert_allclose((x**2).sum(axis=1), 1.0)
    assert_array_equal(family.lattice_step(x, np.ones(3)) > 0, family.counts & (x != 0).any(axis=1))


@pytest.mark.parametrize("name", NAMES)
def test_repr_is_the_call_that_makes_the_family(name):
    family = FAMILIES[name]()
    space = {type(family).__name__: type(family)}
    assert repr(eval(repr(family), space)) == repr(family)
    assert repr(Binomial(5)) == "Binomial(n=5)"


def test_make_family_takes_names_and_instances_and_explains_the_rest():
    family = Poisson()
    assert make_family(family) is family
    assert isinstance(make_family("kl"), KL)
    with pytest.raises(ValueError, match=r"Unknown divergence 'kll'.*itakura_saito"):
        make_family("kll")
    with pytest.raises(TypeError, match=r"pass an instance, Poisson\(\)"):
        make_family(Poisson)
    with pytest.raises(TypeError, match="got int"):
        make_family(3)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "2", None])
def test_hyperparameters_must_be_positive(value):
    for call in (SquaredEuclidean, NegativeBinomial, ItakuraSaito, *((Binomial,) if value is not None else ())):
        with pytest.raises(ValueError, match=f"{call.__name__} needs a positive number"):
            call(value)


def test_open_hyperparameters_are_taken_from_the_data():
    x = draw_rows("sqeuclidean", 50, 3)
    summary = Summary(x.mean(axis=0), 9.0, lambda: np.cov(x.T))
    assert Binomial().adapt(summary).n == 9.0
    assert Binomial(TRIALS).adapt(summary).n == TRIALS
    adapted = Mahalanobis().adapt(summary)
    assert_allclose(adapted.covariance, np.cov(x.T), rtol=1e-5)
    assert np.isfinite(Mahalanobis().adapt(summary._replace(covariance=lambda: np.zeros((3, 3)))).phi(x)).all()
    for name in set(NAMES) - {"mahalanobis", "binomial"}:
        family = make(name)
        assert family.adapt(summary) is family


def test_families_that_wait_for_data_say_what_they_need():
    with pytest.raises(ValueError, match=r"pass Binomial\(n="):
        Binomial().phi(np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"pass Mahalanobis\(covariance="):
        Mahalanobis().phi(np.ones((1, 2)))
    summary = Summary(np.zeros(3), 1.0, None)
    with pytest.raises(ValueError, match=r"shape \(2, 2\), but X has 3 columns"):
        Mahalanobis(np.eye(2)).adapt(summary)
    with pytest.raises(ValueError, match="smallest eigenvalue is -1"):
        Mahalanobis(np.diag([1.0, 1.0, -1.0])).adapt(summary)


def test_geometry_without_a_prior_adds_nothing():
    geometry = Geometry(Poisson(), np.ones(2))
    assert_array_equal(geometry.prior_cost(np.ones((4, 2))), np.zeros(4))
    assert_array_equal(geometry.from_anchor(np.ones((1, 2))), [0.0])


def exact_negative_binomial(x, mu, r):
    """The divergence in 60 digits."""
    with localcontext() as digits:
        digits.prec = 60
        x, mu, r = Decimal(float(x)), Decimal(float(mu)), Decimal(float(r))
        own = x * (x / mu).ln() if x else Decimal(0)
        return float(own - (x + r) * ((x + r) / (mu + r)).ln())


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e6, 1e15, 1e45])
@pytest.mark.parametrize("r", [0.1, 1.0, 50.0])
def test_negative_binomial_divergences_keep_their_digits_for_all_counts(size, r):
    rng = np.random.default_rng(0)
    x, mu = size * rng.exponential(size=(2, 50))
    x[:5] = 0.0
    exact = [exact_negative_binomial(a, b, r) for a, b in zip(x, mu)]
    assert_allclose(NegativeBinomial(r).terms(x, mu), exact, rtol=1e-10)


def test_counts_whose_ratio_leaves_the_range_of_floats_have_a_divergence():
    x, mu = np.array([1e-299, 1e40, 0.0, 1.0]), np.array([1e30, 1e-300, 1e-300, 0.0])
    assert_allclose(i_divergence(x, mu), [1e30, 1e40 * (340 * np.log(10) - 1), 1e-300, np.inf])
