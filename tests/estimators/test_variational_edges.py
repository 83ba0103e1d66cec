"""VariationalDPMixture at the ends of what floats hold: fits are finite and fall, or the door says what is too much."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import poisson

from kfree import VariationalDPMixture

FAMILIES = ("gaussian", "diag", "spherical", "multinomial", "poisson", "bernoulli")
GAUSSIANS, COUNTS = FAMILIES[:3], FAMILIES[3:5]
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


def check(model, X):
    """All that is published is finite, and labels are those of predict."""
    for name in ("means_", "covariances_", "weights_", "free_energy_", "tied_free_energy_", "free_energy_trace_"):
        assert np.isfinite(getattr(model, name, 0.0)).all(), name
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.isfinite(model.sample(5)[0]).all()


@pytest.mark.parametrize("family", COUNTS)
@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_counts_of_any_size_are_fitted_and_the_free_energy_falls(family, size, n):
    rng = np.random.default_rng(n)
    for X in (size + rng.normal(size=(n, 3)), rng.poisson(size, (n, 3)).astype(float), rng.random((n, 2)) * size):
        for rows in (X, sp.csr_matrix(X)):
            for weight in (None, rng.choice([0.5, 1, 1e6], n)):
                check(VariationalDPMixture(family=family).fit(rows, sample_weight=weight), rows)


@pytest.mark.parametrize("family", COUNTS)
def test_groups_of_large_counts_that_differ_by_more_than_chance_are_found(family):
    for size in (1e4, 1e8, 1e12):
        rng, far = np.random.default_rng(0), 20 / np.sqrt(size)
        rates = size * np.array([[1, 1 + far, 1], [1 + far, 1, 1], [1, 1, 1 + far]])
        X = rng.poisson(np.repeat(rates, 50, axis=0)).astype(float)
        model = VariationalDPMixture(family=family).fit(X)
        assert model.n_components_ == 3
        assert all(len(set(model.labels_[i : i + 50])) == 1 for i in (0, 50, 100))


@pytest.mark.parametrize("family", COUNTS)
def test_the_free_energy_of_large_counts_grows_with_the_log_of_their_spread_alone(family):
    """A Poisson count of a hundred times the rate has ten times the spread: log 10 nats a free entry more."""
    rng = np.random.default_rng(0)
    each = []
    for size in (1e7, 1e9, 1e11, 1e13):
        model = VariationalDPMixture(family=family, max_components=1).fit(rng.poisson(size, (400, 4)).astype(float))
        each.append(model.free_energy_ / 400 / (4 if family == "poisson" else 3))
    assert np.allclose(np.diff(each), np.log(10), atol=0.05)


@pytest.mark.parametrize("family", COUNTS)
def test_counts_that_are_not_exact_are_refused_at_the_fit_and_after(family):
    X = np.ones((4, 2))
    model = VariationalDPMixture(family=family).fit(X)
    for large in (1e17, 1e308):
        wrong = X.copy()
        wrong[2, 1] = large
        for rows in (wrong, sp.csr_matrix(wrong)):
            for ask in (VariationalDPMixture(family=family).fit, model.predict, model.score_samples):
                with pytest.raises(ValueError, match=r"2\*\*53 = 9.0072e\+15.*Row 2 has.*Divide"):
                    ask(rows)


def test_rates_beyond_what_can_be_drawn_are_drawn():
    X = np.full((3, 2), 2.0**53)
    for prior in ({}, {"rate": 1e-20}, {"shape": 1e-20}):
        draws, _ = (
            VariationalDPMixture(family="poisson", prior=prior, concentration=1e8, random_state=0).fit(X).sample(50)
        )
        assert np.isfinite(draws).all()
        assert (draws >= 0).all()


def test_rows_of_a_multinomial_with_hardly_any_prior_counts_can_be_drawn():
    model = VariationalDPMixture(family="multinomial", prior={"counts": 1e-20}, concentration=1e8, random_state=0)
    draws, _ = model.fit(np.full((2, 3), 4.0)).sample(50)
    assert (draws.sum(axis=1) == 12).all()


@pytest.mark.parametrize("family", GAUSSIANS)
def test_draws_of_few_degrees_of_freedom_are_finite(family):
    X = np.random.default_rng(0).normal(size=(5, 1)) * 1e140
    model = VariationalDPMixture(
        family=family, prior={"degrees_of_freedom": 1e-10}, concentration=1e8, random_state=0
    ).fit(X)
    assert np.isfinite(model.sample(200)[0]).all()


def test_variances_are_positive_where_rounding_of_sums_is_larger_than_the_prior():
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(2, 1 + seed % 3))
        for total in (1e13, 1e15):
            model = VariationalDPMixture(random_state=0).fit(X, sample_weight=np.full(2, total / 2))
            check(model, X)
            assert (np.linalg.eigvalsh(model.covariances_) > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("accelerate", [None, "tree", "kdtree"])
def test_weights_from_nothing_to_the_largest_are_fitted(family, accelerate):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    for weight in (
        np.full(60, 5e-324), np.full(60, 1e-150), np.full(60, 1e15 / 60), rng.choice([1e-300, 1e13], 60),
        10.0 ** rng.uniform(-30, 13, 60),
    ):  # fmt: skip
        check(VariationalDPMixture(family=family, accelerate=accelerate).fit(X, sample_weight=weight), X)


@pytest.mark.parametrize("family", FAMILIES)
def test_concentrations_at_their_ends_are_fitted_and_beyond_refused(family):
    X = np.random.default_rng(0).integers(0, 2, (20, 2)).astype(float)
    for pair in (1e-100, 1e8, (1e8, 1e8), (1e-100, 1e-100), (1e-8, 1.0), (1e8, 1e-100)):
        check(VariationalDPMixture(family=family, concentration=pair).fit(X), X)
    for pair, message in ((1e-101, "at least 1e-100"), ((1e-9, 1.0), "1e\\+08 times the first")):
        with pytest.raises(ValueError, match=message):
            VariationalDPMixture(family=family, concentration=pair).fit(X)


@pytest.mark.parametrize(
    ("family", "name", "ends"),
    [
        ("gaussian", "mean_precision", (1e-20, 1e8)), ("gaussian", "degrees_of_freedom", (1 + 1e-12, 1e8)),
        ("diag", "covariance", (1e-19, 1e19)), ("diag", "degrees_of_freedom", (1e-20, 1e8)),
        ("spherical", "mean_precision", (1e-20, 1e8)), ("spherical", "mean", (-1e90, 1e90)),
        ("multinomial", "counts", (1e-20, 1e8)), ("poisson", "shape", (1e-20, 1e16)), ("poisson", "rate", (1e-20, 1e8)),
        ("bernoulli", "ones", (1e-20, 1e8)), ("bernoulli", "zeros", (1e-20, 1e8)),
    ],
)  # fmt: skip
def test_hyperparameters_at_their_ends_are_fitted_and_beyond_refused(family, name, ends):
    X = np.random.default_rng(0).integers(0, 2, (20, 2)).astype(float)
    unit = 1.0 if name != "covariance" else X.var()
    for end in ends:
        check(VariationalDPMixture(family=family, prior={name: end * unit}, random_state=0).fit(X), X)
    beyond = (5e-324, 1e300) if name != "mean" else (-1e300, 1e300)
    for value in beyond if name != "degrees_of_freedom" else beyond[1:]:
        with pytest.raises(ValueError, match=rf"prior\['{name}'\]"):
            VariationalDPMixture(family=family, prior={name: value}).fit(X)


def test_a_prior_that_outweighs_the_rows_is_compared_with_them_to_the_last_digit():
    """Rows that are what the prior expects: the free energy is hardly more than what they cost under its mean."""
    X = np.random.default_rng(0).poisson(1e5, (30, 2)).astype(float)
    strong = {"shape": 1e13, "rate": 1e8}
    model = VariationalDPMixture(family="poisson", concentration=1e-100, prior=strong).fit(X)
    assert abs(model.free_energy_ + poisson.logpmf(X, 1e5).sum()) < 1e-3


def test_a_prior_that_is_lost_in_rounding_is_refused():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match=r"lost in the rounding.*prior\['covariance'\], by at least"):
        VariationalDPMixture(prior={"covariance": 1e-18}).fit(X)
    with pytest.raises(ValueError, match=r"prior\['mean'\] far from the rows"):
        VariationalDPMixture(prior={"mean": 1e12}).fit(X)
    with pytest.raises(ValueError, match="Divide sample_weight"):
        VariationalDPMixture(prior={"covariance": 1e-5}).fit(X, sample_weight=np.full(50, 1e13))
    check(VariationalDPMixture(prior={"covariance": 1e-12}, random_state=0).fit(X), X)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_rows_of_any_size_can_be_asked_about(family):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = VariationalDPMixture(family=family, prior={"mean_precision": 1e-20, "covariance": 1e-10}).fit(X)
    for size in (5e-324, 1e100, 1e200, 1.7e308):
        rows = np.array([[size, -size], [0.0, size]])
        assert np.isfinite(model.score_samples(rows)).all()
        assert np.isfinite(model.predict_proba(rows, tail=True)).all()
        assert model.predict(rows).shape == (2,)


@pytest.mark.parametrize("family", GAUSSIANS)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-10, 1e10, 1e148])
def test_units_change_nothing(family, scale):
    X = np.concatenate([np.random.default_rng(0).normal(m, 1, size=(60, 2)) for m in (-9, 0, 9)])
    model = VariationalDPMixture(family=family, random_state=0).fit(X * scale)
    check(model, X * scale)
    assert np.array_equal(model.labels_, VariationalDPMixture(family=family).fit(X).labels_)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_rows_that_differ_by_the_least_number_are_refused(family):
    X = np.array([[0.0], [0.0], [0.0], [0.0], [5e-324]])
    with pytest.raises(ValueError, match=r"differ by about .* too few digits. Divide X by its largest entry"):
        VariationalDPMixture(family=family).fit(X)


def test_infinities_of_both_signs_are_named():
    for X in ([[np.inf, -np.inf]], [[np.inf], [-np.inf]]):
        with pytest.raises(ValueError, match="infinity"):
            VariationalDPMixture().fit(X)
