"""How many clusters, as users ask for it: by a price, a number, a radius, or not at all."""

import contextlib
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from kfree import BPMeans, DPMeans, HDPMeans, HDPTopics, StepwiseKFeatures, lam_for_k, lam_path, radius_for_k
from kfree.families import FAMILIES
from kfree.inference.clusters import labelling
from kfree.inference.clusters.fit import ALGORITHMS
from kfree.models import how_many as models_how_many
from support.family_data import NAMES, draw_rows, make
from support.interrupts import sigint_after
from support.slow_clusters import Slow, orders, same_partition

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def blobs(n=400, p=4, K=5, seed=0, spread=6.0):
    rng = np.random.default_rng([seed, 5])
    truth = rng.integers(K, size=n)
    return rng.normal(size=(K, p))[truth] * spread + rng.normal(size=(n, p)), truth


def clumps(name, n=150, p=4, seed=0):
    """Three clumps of valid rows."""
    rows = draw_rows(name, n, p, seed=seed, boundary=False)
    pull = draw_rows(name, 3, p, seed=seed + 100, boundary=False)
    mixed = 0.3 * rows + 0.7 * pull[np.arange(n) % 3]
    return mixed / np.sqrt((mixed**2).sum(axis=1, keepdims=True)) if name == "cosine" else mixed


ASKS = [{}, {"lam": "share"}, {"n_clusters": 2}, {"n_clusters": 3}, {"n_clusters": 7}]


def asked(X, ask, settings):
    """A model by what is asked for; a price is a share of all inertia."""
    if "lam" in ask:
        ask = {"lam": DPMeans(n_clusters=1, **settings).fit(X).inertia_ / 12}
    return DPMeans(**ask, **settings).fit(X)


def check_again(model, X, settings, weight=None):
    """The price of a model finds its clusters again."""
    if model.lam_ is None:
        assert model.n_clusters is not None
        assert model.lam_window_ is None
        return False
    again = DPMeans(lam=model.lam_, **settings).fit(X, sample_weight=weight)
    assert_array_equal(again.labels_, model.labels_)
    assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert (again.lam_, again.objective_) == (model.lam_, model.objective_)
    assert again.lam_window_ == model.lam_window_
    assert model.lam_window_[0] <= model.lam_ <= model.lam_window_[1]
    return True


# -- one number, one meaning -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ASKS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_price_of_a_model_finds_its_clusters_again(name, ask):
    X, settings = clumps(name), {"divergence": make(name, 4)}
    model = asked(X, ask, settings)
    assert check_again(model, X, settings) or "n_clusters" in ask
    assert model.n_clusters_ == ask.get("n_clusters", model.n_clusters_)


@pytest.mark.parametrize("ask", ASKS[:3], ids=str)
@pytest.mark.parametrize("init", ["auto", "mean", "farthest_first", "k-means++"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_price_finds_the_clusters_by_every_algorithm_and_start(algorithm, init, ask):
    X, _ = blobs(n=200, spread=3.0)
    settings = {"algorithm": algorithm, "init": init, "random_state": 0}
    model = asked(X, ask, settings)
    assert check_again(model, X, settings) or ("n_clusters" in ask and init != "auto")


@pytest.mark.parametrize("search", ["points", "polish", "full"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_price_finds_the_clusters_in_every_search(search, smoothing):
    X = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(1.0, 6.0, size=(4, 6))[np.arange(200) % 4])
    for ask in ASKS[:3]:
        settings = {"divergence": "poisson", "search": search, "smoothing": smoothing, "tol": 0.0}
        assert check_again(asked(X.astype(float), ask, settings), X.astype(float), settings)


def test_the_price_finds_the_clusters_of_weighted_and_of_sampled_rows():
    X, _ = blobs(n=300)
    weight = np.random.default_rng(0).uniform(0.1, 4.0, size=300)
    for ask in ({}, {"n_clusters": 4}):
        assert check_again(DPMeans(**ask).fit(X, sample_weight=weight), X, {}, weight)
    many, _ = blobs(n=25_000, p=3, K=7)  # more than are looked at
    for ask in ({}, {"n_clusters": 9}):
        model = DPMeans(**ask).fit(many)
        assert check_again(model, many, {}) or ask


def test_a_price_within_the_window_finds_the_same_number():
    X, _ = blobs()
    for model in (DPMeans().fit(X), DPMeans(n_clusters=3).fit(X)):
        lo, hi = model.lam_window_
        for price in np.geomspace(1.001 * lo, hi / 1.001, 5):
            assert DPMeans(lam=price).fit(X).n_clusters_ == model.n_clusters_
        assert DPMeans(lam=1.01 * hi).fit(X).n_clusters_ < model.n_clusters_
        assert DPMeans(lam=lo / 1.01).fit(X).n_clusters_ > model.n_clusters_


def test_a_higher_price_never_gives_more_clusters():
    X, _ = blobs(spread=2.0)
    whole = DPMeans(n_clusters=1).fit(X).inertia_
    found = [DPMeans(lam=share * whole).fit(X).n_clusters_ for share in np.geomspace(1e-4, 2.0, 30)]
    assert (np.diff(found) <= 0).all()
    assert found[-1] == 1
    assert found[0] > 20


@pytest.mark.parametrize("ask", [{}, {"lam": 300.0}, {"n_clusters": 6}, {"radius": 30.0}], ids=str)
def test_the_objective_is_inertia_and_what_clusters_cost(ask):
    X, _ = blobs(spread=3.0)
    weight = np.random.default_rng(1).integers(1, 4, size=len(X)).astype(float)
    model = DPMeans(**ask).fit(X, sample_weight=weight)
    centres = np.array(
        [
            np.average(X[model.labels_ == k], axis=0, weights=weight[model.labels_ == k])
            for k in range(model.n_clusters_)
        ]
    )
    inertia = weight @ ((X - centres[model.labels_]) ** 2).sum(axis=1)
    each = model.radius_ if "radius" in ask else model.lam_ or 0.0
    assert_allclose(model.inertia_, inertia)
    assert_allclose(model.objective_, inertia + each * model.n_clusters_)
    assert_allclose(model.objective_trace_[-1], model.objective_)


# -- a number ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_so_many_clusters_as_were_asked_for(name, algorithm):
    X = clumps(name, n=60)
    for K in (1, 2, 5, 17, 59, 60):
        model = DPMeans(n_clusters=K, divergence=make(name, 4), algorithm=algorithm, random_state=0).fit(X)
        assert model.n_clusters_ == np.unique(model.labels_).size == K
        assert_array_equal(model.predict(X), model.labels_)
    assert model.inertia_ == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("init", ["mean", "farthest_first", "k-means++", "array"])
@pytest.mark.parametrize("search", ["points", "full"])
def test_so_many_clusters_from_every_start(init, search):
    X, _ = blobs(n=100)
    for K in (1, 2, 8, 40):
        start = X[:K] if init == "array" else init
        model = DPMeans(n_clusters=K, init=start, search=search, random_state=0).fit(X)
        assert model.n_clusters_ == K
        assert model.lam_ is None or init == "auto"


@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "poisson", "bernoulli"])
def test_copies_are_one_cluster_and_more_than_there_are_different_rows_is_an_error(name):
    X = np.repeat(draw_rows(name, 9, 4, seed=3, boundary=False), [1, 5, 2, 1, 9, 1, 1, 3, 4], axis=0)
    settings = {"divergence": make(name, 4)}
    for K in range(1, 10):
        assert DPMeans(n_clusters=K, **settings).fit(X).n_clusters_ == K
    model = DPMeans(n_clusters=10, **settings)
    with pytest.raises(ValueError, match=r"n_clusters=10, but X has only 9 different rows.*Pass n_clusters <= 9"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_rows_without_weight_are_no_clusters():
    X, weight = np.arange(12.0)[:, None] ** 2, np.r_[np.ones(8), np.zeros(4)]
    assert DPMeans(n_clusters=8).fit(X, sample_weight=weight).n_clusters_ == 8
    with pytest.raises(ValueError, match="X has only 8 different rows"):
        DPMeans(n_clusters=9).fit(X, sample_weight=weight)


def test_histograms_that_are_multiples_of_each_other_are_one():
    X = np.array([[1.0, 3.0], [2.0, 6.0], [3.0, 1.0], [5.0, 5.0]])
    assert DPMeans(n_clusters=3, divergence="kl").fit(X).n_clusters_ == 3
    with pytest.raises(ValueError, match="only 3 different rows"):
        DPMeans(n_clusters=4, divergence="kl").fit(X)


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "kl", "itakura_saito"])
@pytest.mark.parametrize("smoothing", [0.1, 0.5, 2.0])
def test_a_number_is_exact_with_a_prior_or_the_error_holds_what_it_says(name, smoothing):
    X, settings = clumps(name, n=42), {"divergence": make(name, 4), "smoothing": smoothing}
    found, told = [], []
    for K in (*range(1, 13), 20, 42):
        try:
            found.append((K, DPMeans(n_clusters=K, **settings).fit(X).n_clusters_))
        except ValueError as error:  # a smoothed centre may be farther from its row than that of another
            told.append(str(error))
    assert all(held == K for K, held in found)
    for error in told:
        most = int(error.rstrip(".").split("<= ")[-1])
        assert DPMeans(n_clusters=most, **settings).fit(X).n_clusters_ == most
        assert "different row" not in error, "42 rows are different"


def test_a_number_is_no_worse_than_k_means():
    from sklearn.cluster import KMeans

    for seed in range(4):
        X, _ = blobs(n=500, K=12, seed=seed, spread=2.0)
        for K in (4, 12, 25):
            theirs = KMeans(K, n_init=1, random_state=0).fit(X).inertia_
            assert DPMeans(n_clusters=K).fit(X).inertia_ < 1.02 * theirs


def test_a_stream_with_a_number_never_opens_more():
    X, truth = blobs(n=1200, K=8)
    model = DPMeans(n_clusters=5).partial_fit(X[truth < 5])
    model.partial_fit(X[truth >= 5])
    assert model.n_clusters_ == 5


# -- a radius ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_serial_with_a_radius_is_the_algorithm_of_the_papers(name, seed):
    family, x = make(name), draw_rows(name, 40, 3, seed=seed, boundary=False)
    slow = Slow(family, x, 1.0)
    slow.lam = 0.3 * max(slow.d(i, slow.centre(np.arange(40))) for i in range(40))
    order = orders(40, 1, seed)[0]
    model = DPMeans(radius=slow.lam, divergence=family, algorithm="serial", order=order, tol=0.0).fit(x)
    labels = None
    for found, _ in slow.serial([order] * 100):
        if labels is not None and same_partition(labels, found):
            break
        labels = found
    assert same_partition(model.labels_, labels)
    assert_allclose(model.objective_, slow.objective(labels), rtol=1e-7)
    assert (model.lam_, model.lam_window_, model.radius_) == (None, None, slow.lam)


def test_delayed_with_a_radius_is_the_algorithm_of_the_papers():
    x = draw_rows("sqeuclidean", 40, 3, seed=4)
    slow = Slow(make("sqeuclidean"), x, 5.0)
    *_, (labels, _) = slow.delayed(60)
    model = DPMeans(radius=5.0, algorithm="delayed", tol=0.0).fit(x)
    assert same_partition(model.labels_, labels)


@pytest.mark.parametrize("algorithm", ["batch", "serial", "delayed"])
def test_no_row_is_farther_than_the_radius(algorithm):
    X, _ = blobs(n=500, spread=3.0)
    for radius in (3.0, 10.0, 50.0):
        model = DPMeans(radius=radius, algorithm=algorithm, search="points", tol=0.0, random_state=0).fit(X)
        assert (model.decision_function(X) >= -1e-9).all()


def test_radius_for_k_is_the_farthest_first_rule():
    X, _ = blobs(n=200)
    far = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    for k in range(1, 8):
        assert_allclose(radius_for_k(X, k), far.max())
        far = np.minimum(far, ((X - X[far.argmax()]) ** 2).sum(axis=1))


# -- what is novel -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [{}, {"lam": 2000.0}, {"n_clusters": 5}], ids=str)
def test_the_radius_of_a_model_tells_noise_from_its_rows(ask):
    X, _ = blobs(n=1000, spread=12.0)
    model = DPMeans(**ask).fit(X)
    noise = np.random.default_rng(1).uniform(-60, 60, size=(1000, 4))
    far = model.transform(noise).min(axis=1) > 2 * model.transform(X).min(axis=1).max()
    assert (model.decision_function(X) > 0).mean() > 0.99
    assert far.mean() > 0.9
    assert (model.decision_function(noise[far]) < 0).mean() > 0.9
    assert_allclose(model.decision_function(noise), model.radius_ - model.transform(noise).min(axis=1))


# -- choice ------------------------------------------------------------------------------------------------------------


def check_same_choice(one, other, rtol=1e-9):
    assert_allclose(one.lam_, other.lam_, rtol=rtol)
    assert (one.choice_.best, one.n_groups_) == (other.choice_.best, other.n_groups_)
    assert_array_equal(one.choice_.n_clusters, other.choice_.n_clusters)
    for name in ("score", "score_without_groups", "spread_without_groups", "gain", "inertia", "window"):
        assert_allclose(getattr(one.choice_, name), getattr(other.choice_, name), rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "cosine"])
def test_the_choice_is_free_of_order_layout_and_copies(name):
    X, settings = clumps(name, n=300), {"divergence": make(name, 4), "tol": 0.0}
    model = DPMeans(**settings).fit(X)
    order = np.random.default_rng(0).permutation(300)
    shuffled = DPMeans(**settings).fit(X[order])
    check_same_choice(model, shuffled)
    assert_array_equal(shuffled.labels_, model.labels_[order])
    sparse = DPMeans(**settings).fit(sp.csr_matrix(X))
    check_same_choice(model, sparse, rtol=1e-6)
    assert_array_equal(sparse.labels_, model.labels_)
    weight = np.random.default_rng(1).integers(0, 3, size=300)
    weighted = DPMeans(**settings).fit(X, sample_weight=weight)
    repeated = DPMeans(**settings).fit(np.repeat(X, weight, axis=0))
    check_same_choice(weighted, repeated)
    assert_array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)


THREADS = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from kfree import DPMeans
rng = np.random.default_rng(0)
X = 4 * rng.normal(size=(6, 3))[rng.integers(6, size=6000)] + rng.normal(size=(6000, 3))
for model in (DPMeans(), DPMeans(lam=3000.0), DPMeans(n_clusters=9)):
    model.fit(X)
    choice = [] if model.choice_ is None else [np.asarray(part).tolist() for part in model.choice_]
    print(hash(model.labels_.tobytes()), repr(model.lam_), repr(model.lam_window_), repr(model.objective_), choice)
"""


def test_the_number_of_threads_changes_no_bit():
    env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", THREADS],
            env={**env, **dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "KFREE_NUM_THREADS"), count)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for count in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 1000


def test_the_record_of_a_choice_fits_together():
    X, _ = blobs()
    model = DPMeans().fit(X)
    choice = model.choice_
    assert choice.best == model.n_clusters_ == 5
    assert choice.complete
    assert choice.n_rows == len(X)
    at = choice.n_clusters.tolist().index(5)
    assert choice.gain[at] == np.nanmax(choice.gain[choice.n_clusters >= choice.n_groups])
    assert_allclose(choice.gain, choice.score - choice.score_without_groups - 0.01 * np.log2(choice.n_clusters))
    held = choice.window[np.isfinite(choice.window[:, 0])]
    assert_array_equal(held[:-1, 0], held[1:, 1])
    assert set(choice.suggestions) <= set(choice.n_clusters.tolist()) - {1, 5}
    assert DPMeans(n_clusters=5).fit(X).choice_ is None
    assert DPMeans(n_clusters=5).fit(X).n_groups_ is None


def test_one_cluster_shows_code_that_runs():
    X = np.random.default_rng(0).normal(size=(400, 3))
    with pytest.warns(UserWarning, match="one cluster") as told:
        model = DPMeans().fit(X)
    assert model.n_clusters_ == 1
    codes = str(told[0].message).split("all the same: ")[1].rstrip(".").split(", ")
    numbers = [eval(code, {"DPMeans": DPMeans}).fit(X).n_clusters_ for code in codes]
    assert 2 <= len(numbers) <= 6
    assert numbers == sorted(numbers)
    assert numbers == sorted(model.choice_.suggestions[: len(numbers)])


@pytest.mark.filterwarnings("default::UserWarning")
def test_more_clusters_than_were_meant_are_told_of():
    X = np.random.default_rng(0).normal(size=(440, 8))
    with pytest.warns(UserWarning, match=r"clusters for 440 rows: lam=4.* pass n_clusters=4\."):
        assert DPMeans(lam=4).fit(X).n_clusters_ > 44
    with pytest.warns(UserWarning, match=r"clusters for 440 rows: radius=0\.1 is small"):
        assert DPMeans(radius=0.1).fit(X).n_clusters_ > 44
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPMeans(n_clusters=100).fit(X)
        DPMeans(lam=200.0).fit(X)
        DPMeans(radius=60.0).fit(X)


# -- time and interrupts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["choose_lam", "draw_pilot"])
def test_an_interrupt_before_there_is_anything_leaves_the_estimator_as_it_was(place, monkeypatch):
    X, _ = blobs()

    def interrupted(*args):
        raise KeyboardInterrupt

    fitted = DPMeans(n_clusters=2).fit(X)
    before = dict(vars(fitted))
    monkeypatch.setattr(models_how_many if place == "choose_lam" else labelling, place, interrupted)
    for model in (DPMeans(), fitted) if place == "choose_lam" else (DPMeans(n_clusters=3), fitted):
        if place == "choose_lam":
            model.set_params(n_clusters=None)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    with pytest.raises(NotFittedError):
        DPMeans().predict(X)
    assert all(vars(fitted)[name] is value for name, value in before.items() if name.endswith("_"))


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_ctrl_c_while_the_number_is_chosen_publishes_nothing():
    X, _ = blobs(n=10_000, p=12, K=30, spread=1.0)
    DPMeans().fit(X[:200])  # compiled by now
    model = DPMeans()
    with pytest.raises(KeyboardInterrupt), sigint_after(0.15):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_time_that_is_up_chooses_among_what_was_looked_at():
    X, _ = blobs(n=5000, p=8, K=20)
    for seconds in (0.0, 0.05, 0.2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = DPMeans(max_time=seconds).fit(X)
        assert_array_equal(model.predict(X), model.labels_)
        if not model.choice_.complete:
            assert any("Raise max_time, or pass n_clusters" in str(warning.message) for warning in told)
        assert any(issubclass(warning.category, ConvergenceWarning | UserWarning) for warning in told) or seconds > 0.1


# -- functions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_price_for_k_the_number_k_and_the_path_say_the_same(name):
    X, settings = clumps(name), {"divergence": make(name, 4)}
    path = lam_path(X, max_clusters=8, **settings)
    assert_array_equal(path.n_clusters[:8], np.arange(1, 9))
    for k in range(1, 9):
        number, price = DPMeans(n_clusters=k, **settings).fit(X), lam_for_k(X, k, **settings)
        assert_array_equal(path.labels(k), number.labels_)
        if number.lam_ is not None:
            assert price == number.lam_
            assert_array_equal(DPMeans(lam=price, **settings).fit(X).labels_, number.labels_)
        if np.isfinite(path.window[k - 1, 0]):
            assert path.window[k - 1, 0] < path.window[k - 1, 1]
    assert path.best == DPMeans(**settings).fit(X).choice_.best


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_every_number_on_a_path_can_be_had(smoothing):
    X = np.sort(np.random.default_rng(0).normal(size=(42, 1)) * 4, axis=0)
    path = lam_path(X, smoothing=smoothing, max_clusters=42)
    assert_array_equal(path.n_clusters, np.arange(1, len(path.n_clusters) + 1))
    had = 0
    for K in path.n_clusters.tolist():
        with contextlib.suppress(ValueError):  # on the path clusters are settled for a few passes only
            assert np.unique(path.labels(K)).size == K
            had = K
    assert had >= 5


# -- other models, words, streams --------------------------------------------------------------------------------------


def test_prices_of_the_other_models_find_what_was_found():
    X, truth = blobs(n=900, K=6)
    groups = (truth + np.arange(900) % 3) % 5
    one = HDPMeans().fit(X, groups=groups)
    other = HDPMeans(one.lam_local_, one.lam_global_).fit(X, groups=groups)
    assert_array_equal(one.labels_, other.labels_)
    assert one.n_clusters_ > 1
    rng = np.random.default_rng(0)
    F = rng.integers(2, size=(120, 4)) @ (3 * rng.normal(size=(4, 8))) + 0.3 * rng.normal(size=(120, 8))
    for estimator in (BPMeans, StepwiseKFeatures):
        one = estimator(random_state=0).fit(F)
        assert_array_equal(one.Z_, estimator(lam=one.lam_, random_state=0).fit(F).Z_)
    W = rng.multinomial(60, rng.dirichlet(np.full(50, 0.1)), size=80).astype(float)
    W[:40] = W[:40, ::-1]
    one = HDPTopics().fit(W)
    assert_array_equal(one.cell_labels_, HDPTopics(lam_global=one.lam_global_).fit(W).cell_labels_)


def test_explain_names_figures_that_are_attributes():
    X, _ = blobs(n=600, K=5)
    for ask in ({}, {"n_clusters": 4}, {"lam": 300.0}, {"radius": 40.0}):
        model = DPMeans(**ask).fit(X)
        text = model.explain()
        assert text.startswith(f"{model.n_clusters_} clusters")
        if model.lam_window_ is not None:
            assert f"between {model.lam_window_[0]:.4g} and {model.lam_window_[1]:.4g}" in text
        if model.choice_ is not None:
            assert f"({model.choice_.clearness:.1f} standard deviations)" in text
        if model.n_clusters_ <= 6:
            assert all(f"{weight:.6g}" in text for weight in model.cluster_weights_)
    with pytest.warns(UserWarning, match=r"DPMeans\(n_clusters=2\)"):
        model = DPMeans().fit(np.random.default_rng(0).normal(size=(200, 3)))
    assert model.explain().startswith("One cluster: ")


def test_a_stream_parts_clusters_that_its_first_batch_did_not_tell_apart():
    rng = np.random.default_rng(0)
    centres = 12 * rng.normal(size=(20, 3))
    model, sizes, radii = DPMeans(), [], []
    for n in (60, 1000, 1000, 1000, 1000, 1000):
        truth = rng.integers(20, size=n)
        batch = centres[truth] + rng.normal(size=(n, 3))
        model.partial_fit(batch)
        sizes.append(model.n_clusters_)
        radii.append(model.radius_)
    assert sizes[0] < 20
    assert 18 <= sizes[-1] <= 22
    assert (np.diff(radii) <= 0).all()
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    given = DPMeans(radius=model.radius_).partial_fit(batch)
    assert given.partial_fit(batch).radius_ == model.radius_


def test_a_batch_of_novel_rows_opens_clusters():
    X = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.warns(UserWarning, match="stands out"):
        model = DPMeans().partial_fit(X)
    assert model.partial_fit(X + 1000).n_clusters_ == 2
    assert (model.decision_function(X + 1000) > 0).all()
    assert (model.decision_function(X - 1000) < 0).all()


def test_noise_in_the_table_is_novel_and_the_rest_is_not():
    X, _ = blobs(n=3000, K=6, spread=1.0)
    rng = np.random.default_rng(1)
    noise = rng.uniform(X.min() - 60, X.max() + 60, size=(150, X.shape[1]))
    model = DPMeans(n_clusters=6).fit(np.concatenate([X, noise]))
    novel = model.decision_function(np.concatenate([X, noise])) < 0
    assert novel[:3000].mean() < 0.01
    assert novel[3000:].mean() > 0.5
