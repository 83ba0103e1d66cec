"""The same rows in another form give the same numbers, and error bounds and spans keep their word."""

from time import sleep

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import kfree.rows.base
from kfree.families import MINUS_INF, Geometry, Poisson
from kfree.inference.clusters.assign import nearest
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.table import make_table
from kfree.rows import CsrRows, DenseRows, n_threads, set_span_threads
from kfree.rows.threads import in_order
from support.family_data import NAMES, SEPARABLE, draw_rows, draw_weights, geometry_of, make, table_divergence

NONE = np.empty(0)
FORMS = ("F order", "float32", "int64", "int32", "big endian", "every other column", "read only", "memmap", "csr")


@pytest.fixture(params=[0, 4_000_000], ids=["span by span", "once"], autouse=True)
def converted(request, monkeypatch):
    """Tables in another order or type are converted span by span, or small ones once: both must be right."""
    monkeypatch.setattr("kfree.rows.dense._SMALL", request.param)


def dense_rows(X, *, weight=NONE, scale=NONE, shift=None, dtype=None):
    return DenseRows(X, weight=weight, scale=scale, shift=np.zeros(X.shape[1]) if shift is None else shift, dtype=dtype)


def csr_rows(X, *, weight=NONE, scale=NONE, dtype=None):
    return CsrRows(sp.csr_matrix(X), weight=weight, scale=scale, dtype=dtype)


def in_form(form, X, path, **settings):
    """Rows of the whole numbers X held in another way; products in float64."""
    match form:
        case "csr":
            return csr_rows(X, dtype=np.float64, **settings)
        case "F order":
            X = np.asfortranarray(X)
        case "float32" | "int32" | "int64":
            X = X.astype(form)
        case "big endian":
            X = X.astype(">f8")
        case "every other column":
            X = np.repeat(X, 2, axis=1)[:, ::2]
        case "read only":
            X = X.copy()
            X.flags.writeable = False
        case "memmap":
            np.save(path / "rows.npy", X)
            X = np.load(path / "rows.npy", mmap_mode="r")
    return dense_rows(X, dtype=np.float64, **settings)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_any_form_give_the_same_numbers(form, scaled, weighted, tmp_path):
    n, p, K = 70, 5, 8
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, size=(n, p)).astype(float)
    X[3] = 0.0
    settings = {
        "weight": draw_weights(n) if weighted else NONE,
        "scale": rng.uniform(0.5, 2.0, size=n) if scaled else NONE,
    }
    first, other = dense_rows(X, **settings), in_form(form, X, tmp_path, **settings)
    everything, some = slice(0, n), rng.integers(0, n, size=33)
    geometry = geometry_of(Poisson(), first.dense(everything))
    mean = rng.gamma(2.0, size=(K, p)) + 0.1
    affine, labels = geometry.affine(mean), rng.integers(0, K, size=n).astype(np.int32)

    assert_array_equal(other.hash(everything), first.hash(everything))
    assert_allclose(other.base(everything, geometry), first.base(everything, geometry), rtol=1e-12, atol=1e-13)
    for rows in (everything, slice(7, 23), some):
        mine, theirs = labels[: len(np.arange(n)[rows])], first.dense(rows)
        assert_allclose(other.dense(rows), theirs, rtol=1e-15)
        assert_allclose(other.weights(rows), first.weights(rows))
        assert_allclose(other.own(rows, mine, affine), affine.offset[mine] - (theirs * affine.coef[mine]).sum(axis=1))
        assert_allclose(other.distance(rows, mine, mean), ((theirs - mean[mine]) ** 2).sum(axis=1))
        base = geometry.divergence(theirs, geometry.anchor)
        found, expected = (r.nearest(rows, base, affine)[0] for r in (other, first))
        assert_array_equal(found.labels, expected.labels)
        for a, b in zip(found[1:3], expected[1:3]):
            assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        sums = []
        for r in (other, first):
            sums.append((np.zeros((K, p)), np.zeros(K)))
            r.add(rows, mine, *sums[-1])
        for a, b in zip(*sums):
            assert_allclose(a, b, rtol=1e-13)
    for a, b in zip(other.sums(labels, K), first.sums(labels, K)):
        assert_allclose(a, b, rtol=1e-13)
    assert_allclose(other.total_weight(), first.weights(everything).sum())


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_sample_holds_the_statistics_of_its_rows(form):
    X, w = draw_rows("poisson", 30, 4), draw_weights(30)
    scale = draw_weights(30, 1)
    whole = (dense_rows if form == "dense" else csr_rows)(X, weight=w, scale=scale)
    a, b = np.array([4, 2, 2]), np.array([9, 0])
    both = whole.take(a, w[a]).joined(whole.take(b, NONE))
    assert_allclose(both.dense(slice(0, 5)), (X * scale[:, None])[np.concatenate([a, b])])
    assert_allclose(both.weights(slice(0, 5)), np.concatenate([w[a], np.ones(2)]))


def test_shifted_rows_are_the_rows_less_the_shift():
    X, shift = draw_rows("sqeuclidean", 20, 3), np.array([1e6, -3.0, 0.5])
    rows, centred = dense_rows(X + shift, shift=shift), (X + shift) - shift
    geometry, mean, labels = geometry_of(make("sqeuclidean"), centred), centred[:4], np.arange(20, dtype=np.int32) % 4
    everything = slice(0, 20)
    assert_array_equal(rows.dense(everything), centred)
    assert_allclose(rows.base(everything, geometry), geometry.from_anchor(centred))
    assert_allclose(rows.distance(everything, labels, mean), ((centred - mean[labels]) ** 2).sum(axis=1))
    assert_allclose(rows.sums(labels, 4)[0], [centred[k::4].sum(axis=0) for k in range(4)], atol=1e-12)


@pytest.mark.parametrize("name", SEPARABLE)
@given(seed=st.integers(0, 2**20), p=st.integers(1, 7))
def test_base_is_the_divergence_from_the_anchor_for_dense_and_sparse_rows(name, seed, p):
    family, X = make(name), draw_rows(name, 15, p, seed)
    if name not in ("cosine", "kl"):
        X[:, 0] = min(family.upper, 2.0)  # a column without zeros
    geometry = geometry_of(family, X)
    expected = family.divergence(X, geometry.anchor)
    for rows in (dense_rows(X), csr_rows(X)):
        assert_allclose(rows.base(slice(0, 15), geometry), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["poisson", "bernoulli"])
def test_base_of_a_row_that_the_anchor_excludes_is_infinite(name):
    limit = 1.0
    geometry = Geometry(make(name), np.array([0.0, 0.5, limit]))
    X = np.array([[0.0, 0.5, limit], [1.0, 0.5, limit], [0.0, 0.5, 0.0]])
    expected = geometry.divergence(X, geometry.anchor)
    assert np.isinf(expected).tolist() == [False, True, name == "bernoulli"]
    explicit = csr_rows(np.ones((3, 3)))
    explicit.X.data[:] = X.ravel()  # zeros are stored
    for rows in (dense_rows(X), csr_rows(X), explicit):
        assert_allclose(rows.base(slice(0, 3), geometry), expected, rtol=1e-12, atol=1e-15)


def test_sparse_rows_refuse_a_family_that_is_no_sum_over_columns():
    with pytest.raises(TypeError, match=r"divergence='mahalanobis' does not work on sparse rows.*X.toarray\(\)"):
        csr_rows(np.eye(3)).base(slice(0, 3), geometry_of(make("mahalanobis"), np.eye(3)))


# Spans and threads


@pytest.mark.parametrize("make_rows", [dense_rows, csr_rows])
def test_sums_are_the_same_bits_for_any_number_of_threads(make_rows, monkeypatch):
    monkeypatch.setattr(kfree.rows.base, "SPAN", 64)
    X, labels = np.random.default_rng(0).gamma(1.0, size=(1000, 3)), np.arange(1000, dtype=np.int32) % 7
    rows, results = make_rows(X, weight=draw_weights(1000)), []
    assert [len(range(*span.indices(1000))) for span in rows.spans()] == [64] * 15 + [40]
    for count in (1, 2, 3):
        with set_span_threads(count):
            results.append(rows.sums(labels, 7))
    for total, mass in results[1:]:
        assert_array_equal(total, results[0][0])
        assert_array_equal(mass, results[0][1])
    assert_allclose(results[0][0], [rows.weight[k::7] @ X[k::7] for k in range(7)], rtol=1e-13)


@pytest.mark.parametrize(("n", "p"), [(5000, 8), (30_000, 8), (70_000, 3)])
def test_sums_of_sparse_rows_are_the_same_bits_as_those_of_dense_ones(n, p):
    rng = np.random.default_rng(0)
    X, labels = rng.poisson(0.5, size=(n, p)) * rng.random((n, 1)), rng.integers(7, size=n).astype(np.int32)
    weight = draw_weights(n)
    for mine, theirs in zip(dense_rows(X, weight=weight).sums(labels, 7), csr_rows(X, weight=weight).sums(labels, 7)):
        assert_array_equal(mine, theirs)


def test_the_span_changes_sums_only_by_rounding(monkeypatch):
    X, labels = np.random.default_rng(0).normal(size=(500, 3)) + 1e3, np.arange(500, dtype=np.int32) % 3
    whole = dense_rows(X).sums(labels, 3)
    monkeypatch.setattr(kfree.rows.base, "SPAN", 17)
    for mine, theirs in zip(dense_rows(X).sums(labels, 3), whole):
        assert_allclose(mine, theirs, rtol=1e-14)


@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_order_and_errors_come_through(count):
    def halve(i):
        if i == 50:
            raise ZeroDivisionError
        return i / 2

    with set_span_threads(count):
        assert list(in_order(halve, range(50))) == [i / 2 for i in range(50)]
        with pytest.raises(ZeroDivisionError):
            list(in_order(halve, range(100)))


def test_nothing_runs_after_the_caller_has_stopped_listening():
    done = []

    def work(i):
        sleep(0.005)
        done.append(i)

    with set_span_threads(2):
        results = in_order(work, range(1000))
        next(results)
        results.close()
    stopped = len(done)
    sleep(0.1)
    assert len(done) == stopped < 20


def test_the_number_of_threads_follows_the_environment_and_the_innermost_setting(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert n_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert n_threads() >= 1


# Error bounds and the recheck


def hard_rows(name, dtype, p=4, n=24, K=6):
    """Rows and centres with little between them: duplicates, near-duplicates, large offsets."""
    family, X = make(name, p), draw_rows(name, n, p, 5, boundary=False)
    if name in ("sqeuclidean", "mahalanobis", "poisson", "negative_binomial"):
        X = X + 1e4
    elif name == "itakura_saito":
        X = X * np.array([1e-3, 1.0, 1e3, 1e6])
    X = X.astype(dtype)
    shift = X.mean(axis=0, dtype=float) if family.translates else np.zeros(p)
    rows = dense_rows(X, shift=shift, dtype=dtype if family.float32 else np.float64)
    stats = rows.dense(slice(0, n))
    mean = stats[:K].copy()
    mean[1] = mean[0] + (mean[1] - mean[0]) * 1e-7
    mean[2] = mean[0]
    return family, rows, stats, geometry_of(family, stats), mean


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slack_bounds_the_error_of_the_costs(name, dtype):
    family, rows, stats, geometry, mean = hard_rows(name, dtype)
    if name == "mahalanobis":
        exact = family.divergence(stats[:, None].astype(np.longdouble), mean[None])
    else:
        exact = np.array([[table_divergence(family, x, m) for m in mean] for x in stats])
    everything = slice(0, len(stats))
    base = rows.base(everything, geometry)
    ranked = np.sort(exact, axis=1)
    forms = [rows]
    if name in SEPARABLE and not family.translates:
        forms.append(csr_rows(rows.X, dtype=rows.dtype))
    for form in forms:
        found, _ = form.nearest(everything, base, geometry.affine(mean))
        assert (np.abs(base + found.least - ranked[:, 0]) <= found.slack).all()
        assert (np.abs(base + found.second - ranked[:, 1]) <= found.slack).all()
        own = exact[np.arange(len(stats)), found.labels]
        assert (own <= ranked[:, 0] + 2 * found.slack).all()


def decisive(family, stats, mean):
    return family.divergence(stats[:, None], mean[None]).argmin(axis=1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_are_those_of_the_formula_in_double_precision(name, dtype):
    family, rows, stats, geometry, mean = hard_rows(name, dtype, n=200, K=13)
    forms = [rows]
    if name in SEPARABLE and not family.translates:
        forms.append(csr_rows(rows.X, dtype=rows.dtype))
    for form in forms:
        table = make_table(form, geometry)
        found, ties = nearest(table, np.arange(200), Centres(geometry, mean))
        assert_array_equal(found.labels, decisive(family, stats, mean))
        assert ties >= 1  # the first row coincides with two centres


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("make_rows", [dense_rows, csr_rows])
def test_exact_ties_far_from_the_origin_go_to_the_lowest_index(offset, make_rows):
    grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0)), axis=-1).reshape(-1, 2) + offset
    mean = grid[[80, 8, 0, 72, 40]]  # rows on the axes between them are as far from one as from the other
    geometry = geometry_of(make("sqeuclidean"), grid)
    for dtype in (np.float32, np.float64):
        table = make_table(make_rows(grid.astype(dtype)), geometry)
        found, ties = nearest(table, np.arange(81), Centres(geometry, mean))
        assert_array_equal(found.labels, decisive(geometry.family, grid, mean))
        assert (
            ties == (np.diff(np.sort(geometry.divergence(grid[:, None], mean[None]), axis=1)[:, :2])[:, 0] == 0).sum()
        )
        assert ties > 10


@pytest.mark.parametrize("size", [1e-25, 3e-23, 3e-22, 3e-21, 1e-19, 1e10, 1e19, 1e25])
def test_float32_labels_hold_at_any_size_of_the_data(size):
    X = (draw_rows("sqeuclidean", 200, 3) * size).astype(np.float32)
    geometry, mean = geometry_of(make("sqeuclidean"), X.astype(float)), X[:9].astype(float)
    found, _ = nearest(make_table(dense_rows(X), geometry), np.arange(200), Centres(geometry, mean))
    assert_array_equal(found.labels, decisive(geometry.family, X.astype(float), mean))


@pytest.mark.parametrize("make_rows", [dense_rows, csr_rows])
def test_nothing_is_known_of_a_row_whose_costs_overflow(make_rows):
    X = np.array([[1e10, 1.0], [1.0, 1.0]], dtype=np.float32)
    geometry = Geometry(Poisson(), np.array([1.0, 1.0]))
    rows = make_rows(X)
    found, unsure = rows.nearest(
        slice(0, 2), rows.base(slice(0, 2), geometry), geometry.affine(np.array([[0.0, 1.0], [0.0, 2.0]]))
    )
    assert 0 in unsure
    assert found.slack[0] == np.inf
    assert 0 < found.slack[1] < 1e-3
    assert np.isfinite(found.least).all()
    assert np.isfinite(found.second).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make_rows", [dense_rows, csr_rows])
@given(seed=st.integers(0, 2**20))
def test_a_row_is_never_given_to_a_centre_that_excludes_it_while_another_does_not(make_rows, dtype, seed):
    X = draw_rows("poisson", 40, 6, seed)
    mean = np.concatenate([X[:6], X.mean(axis=0, keepdims=True) + 1e-3])
    geometry = geometry_of(Poisson(), X)
    table = make_table(make_rows(X.astype(dtype)), geometry)
    found, _ = nearest(table, np.arange(40), Centres(geometry, mean))
    exact = geometry.divergence(X[:, None], mean[None])
    assert (geometry.affine(mean).coef < MINUS_INF / 2).any()
    assert_array_equal(found.labels, exact.argmin(axis=1))
