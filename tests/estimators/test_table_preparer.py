"""TablePreparer: each column weighs as one, there is a way back, and a line says what was done."""

import pickle
import re
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.made_tables import customers
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kfree
from kfree import DPMeans, TablePreparer


@pytest.fixture(scope="module")
def pd():
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def pl():
    return pytest.importorskip("polars")


def column(values, **options):
    """What becomes of one column, beside one of numbers that is always used."""
    table = np.empty((len(values), 2), object)
    table[:, 0] = values
    table[:, 1] = np.linspace(0, 1, len(values)) ** 2
    return TablePreparer(**options).fit(table), table


def said(values, **options):
    """What is said of it."""
    return column(values, **options)[0].report_[0].removeprefix("x0: ")


def block(values, **options):
    """What it becomes, without the other column."""
    preparer, table = column(values, **options)
    return preparer.transform(table)[:, :-1]


@parametrize_with_checks([TablePreparer()])
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


# Clusters


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_customers_are_found_where_plain_one_hot_loses_them(seed, pd):
    table, truth = customers(seed)
    frame = pd.DataFrame(table)
    model = make_pipeline(TablePreparer(), DPMeans()).fit(frame)
    mine = adjusted_rand_score(truth, model[-1].labels_)
    numbers = frame[["age", "income", "visits", "spend"]]
    numbers = StandardScaler().fit_transform(numbers.fillna(numbers.median()))
    plain = np.hstack([numbers, pd.get_dummies(frame[["city", "sex", "department"]])])
    theirs = adjusted_rand_score(truth, DPMeans().fit(plain).labels_)
    assert mine > 0.95 > theirs
    assert model[-1].n_clusters_ == 4


def test_centres_come_back_in_the_units_of_the_table(pd):
    table, _ = customers(0)
    frame = pd.DataFrame(table)
    model = make_pipeline(TablePreparer(), DPMeans()).fit(frame)
    centres = model[0].inverse_transform(model[-1].cluster_centers_)
    assert list(centres.columns) == list(frame.columns)
    groups = frame.groupby(model[-1].labels_)
    np.testing.assert_allclose(centres["age"], groups["age"].median(), rtol=0.05)
    np.testing.assert_allclose(centres["income"], groups["income"].median(), rtol=0.1)
    assert list(centres["department"]) == list(groups["department"].agg(lambda some: some.mode()[0]))
    days = (centres["since"] - groups["since"].median()) / timedelta(days=1)
    assert np.abs(days).max() < 40
    assert centres["customer_id"].isna().all()


# Weights


@given(
    counts=st.lists(st.integers(2, 60), min_size=2, max_size=30),
    missing=st.integers(0, 20),
)
@settings(max_examples=60, deadline=None)
def test_a_category_weighs_at_most_a_quarter_of_a_number_whatever_its_levels(counts, missing):
    values = [f"level {k}" for k, count in enumerate(counts) for _ in range(count)] + [None] * missing
    found = block(values)
    assert found.var(axis=0).sum() <= 0.25 + 1e-9
    assert ((found[:, None] - found) ** 2).sum(axis=2).max() <= 1 + 1e-9
    if not missing and len(counts) > 2:
        assert ((found[:, None] - found) ** 2).sum(axis=2).mean() == pytest.approx(2 * found.var(axis=0).sum())


@given(
    st.lists(st.floats(-1e12, 1e12), min_size=5, max_size=60, unique=True),
    st.floats(1e-6, 1e6),
)
@settings(max_examples=60, deadline=None)
def test_units_of_a_column_change_nothing(values, unit):
    values = np.array(values)
    if np.ptp(values) * min(unit, 1) < 1e-200:
        return
    kinds = {"kinds": {0: "number"}}
    np.testing.assert_allclose(block(values, **kinds), block(values * unit, **kinds), rtol=1e-6, atol=1e-6)


def test_a_column_with_missing_values_weighs_as_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    x[rng.random(2000) < 0.3] = np.nan
    found = block(x)
    assert found.shape == (2000, 2)
    assert found.var(axis=0).sum() == pytest.approx(1, abs=0.1)
    rare = rng.normal(size=2000)
    rare[:20] = np.nan
    assert block(rare).shape == (2000, 1)
    assert (block(rare)[:20] == 0).all()


def test_a_wild_value_does_not_decide_the_scale():
    x = np.random.default_rng(0).normal(size=500)
    x[7] = 1e9
    found = block(x)
    assert found[np.arange(500) != 7].std() == pytest.approx(1, abs=0.05)
    assert found[7] == 6
    assert "1 value beyond 6 standard deviations drawn in" in said(x)


def test_tiny_numbers_are_scaled_as_others_are():
    x = np.array([1.0, 2.0, 4.0, 5.0, 7.0] * 4)
    np.testing.assert_allclose(block(x * 1e-310), block(x), rtol=1e-9)


# The way back


@given(
    st.lists(st.tuples(st.integers(-(10**6), 10**6), st.sampled_from("abc"), st.booleans()), min_size=6, max_size=50),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_what_is_prepared_comes_back(rows, seed):
    rng = np.random.default_rng(seed)
    table = np.array([(number, level, flag, rng.lognormal()) for number, level, flag in rows], dtype=object)
    kinds = {0: "number", 1: "category", 2: "category", 3: "number"}
    preparer = TablePreparer(kinds=kinds).fit(table)
    back = preparer.inverse_transform(preparer.transform(table))
    for j, given_one in enumerate(table.T):
        reached = [abs(z) < 6 for z in preparer.transform(table)[:, 0]] if j == 0 else [True] * len(rows)
        for mine, theirs, inside in zip(back[:, j], given_one, reached):
            if isinstance(theirs, str | bool):
                levels = [str(one) for one in given_one]
                assert mine == theirs or "(rare)" in str(mine) or levels.count(str(theirs)) < 2
            elif inside and mine is not None:
                assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-3) or j == 3


def test_tails_are_shortened_by_what_leaves_least_skewness_and_come_back():
    rng = np.random.default_rng(0)
    tails = {"log(1 + x /": rng.lognormal(3, 1, 500), "square root": rng.normal(1.5, 1, 500) ** 2}
    for words, x in tails.items():
        preparer, table = column(x)
        assert words in preparer.report_[0]
        back = preparer.inverse_transform(preparer.transform(table))[:, 0].astype(float)
        np.testing.assert_allclose(back, x, rtol=1e-9)
    for x in (rng.normal(size=500), -rng.lognormal(3, 1, 500), rng.normal(size=500) ** 3, rng.random(500)):
        assert "taken" not in said(x)


def test_values_below_zero_that_the_fit_had_none_of_are_numbers():
    preparer, table = column(np.random.default_rng(0).lognormal(3, 1, 500))
    table[0, 0] = -5.0
    found = preparer.transform(table[:1])
    assert np.isfinite(found).all()
    assert preparer.inverse_transform(found)[0, 0] == pytest.approx(-5)


# What a column is


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([3.5] * 30, "left out; every value is 3.5"),
        (["a"] * 30, "left out; every value is 'a'"),
        (["a"] * 29 + [None], "left out; every value is 'a' (1 value missing)"),
        ([None] * 30, "left out; every value is missing"),
        ([f"name {i}" for i in range(30)], "left out; text that is different in every row"),
        ([f"name {i // 2}" for i in range(1000)], "left out; 500 different values, most of them in few rows"),
        (range(100, 130), "left out; whole numbers from 100 to 129, each once"),
        (np.random.default_rng(0).permutation(30), "left out; whole numbers from 0 to 29, each once"),
        ([10 * i + 5 for i in range(30)], "left out; whole numbers, all different, that rise evenly"),
        ([True, False] * 15, "category; False or True"),
        ([0, 1] * 15, "category; 0 or 1"),
        (["a", "b", "c"] * 10, "category; 3 levels"),
        (["a"] * 15 + [None] * 15, "category; 'a' or '(missing)'; 15 values missing (50 %), a level of their own"),
        (["a", "b", "c"] * 99 + ["d", "e", None], "category; 4 levels; 2 rare levels"),
        ([None] * 20 + [f"cabin {i}" for i in range(10)], "category; missing (67 %) or not, as its 10 values are rare"),
        (["2024-01-31", "2024-02-29", "2023-05-05"] * 5, "date; 2023-05-05 to 2024-02-29"),
        (["31.01.2024", "29.2.2024", "05.05.2023 12:30", None] * 5, "date; 2023-05-05 to 2024-02-29"),
        (["31.02.2024", "29.02.2024", "05.05.2023"] * 5, "category; 3 levels"),
        (
            [f"{i % 12 + 1}/{i % 28 + 1}/2024" for i in range(60)],
            "left out; text that is different in every row; if they are dates, write them as 2024-01-31 or 31.01.2024",
        ),
        (["2024-02-31", "2024-02-29", "2023-05-05"] * 5, "category; 3 levels"),
        ([date(2024, 1, 1), datetime(2023, 5, 5, 12), None] * 5, "date; 2023-05-05 to 2024-01-01"),
        ([datetime(2024, 1, i + 1, tzinfo=UTC) for i in range(9)], "date; 2024-01-01 to 2024-01-09"),
        (["1.5", "2", "-3e2", ""] * 5, "number; scaled; 5 values missing (25 %)"),
        (["015", "020", "300"] * 5, "category; 3 levels"),
        ([Decimal("1.5"), Decimal("2.5"), Decimal("9")] * 5, "number; scaled"),
    ],
)
def test_columns_are_taken_for_what_they_are(values, words):
    assert said(list(values)).startswith(words)


def test_names_alone_prove_nothing_and_with_different_whole_numbers_they_do(pd):
    rng = np.random.default_rng(0)
    odd = rng.choice(10**6, 200, replace=False)
    frame = pd.DataFrame(
        {"customer_id": odd, "balance": odd, "shop_id": rng.integers(0, 9, 200), "paid": rng.normal(size=200)}
    )
    report = TablePreparer().fit(frame).report_
    assert "name of an id" in report[0]
    assert [line.split(";")[0] for line in report[1:]] == ["balance: number", "shop_id: number", "paid: number"]


def test_users_may_say_what_a_column_is(pd):
    frame = pd.DataFrame({"region": [1, 2, 3] * 20, "year": range(1960, 2020), "x": np.linspace(0, 1, 60)})
    kinds = {"region": "category", "year": "number", "x": "leave out"}
    preparer = TablePreparer(kinds=kinds).fit(frame)
    assert list(preparer.get_feature_names_out()) == ["region_1", "region_2", "region_3", "year"]
    back = preparer.inverse_transform(preparer.transform(frame))
    assert list(back["region"]) == list(frame["region"])
    np.testing.assert_allclose(back["year"], frame["year"])


def test_levels_that_the_fit_has_not_seen_are_rare_or_at_the_mean():
    preparer, table = column(["a", "b", "c"] * 10)
    table[0, 0] = "new"
    assert (preparer.transform(table)[0, :3] == 0).all()
    preparer, table = column(["a", "b", "c"] * 99 + ["d", "e", "f"])
    at_rare = preparer.transform(table)[-1, :4]
    table[0, 0] = "new"
    assert np.array_equal(preparer.transform(table)[0, :4], at_rare)
    assert preparer.inverse_transform(preparer.transform(table))[0, 0] == "(rare)"


# Frames


def test_frames_of_all_libraries_are_one_table(pd, pl):
    table, _ = customers(3)
    frame = pd.DataFrame(table)
    others = [pl.DataFrame(table), pl.LazyFrame(table)]
    pa = pytest.importorskip("pyarrow")
    others.append(pa.table(table))
    preparer = TablePreparer().fit(frame)
    prepared = preparer.transform(frame)
    for other in others:
        same = TablePreparer().fit(other)
        assert same.explain() == preparer.explain()
        np.testing.assert_allclose(same.transform(other), prepared)
        back = same.inverse_transform(prepared[:5])
        assert type(back).__module__.startswith(("polars", "pyarrow"))


def test_types_of_pandas_own_are_read(pd):
    frame = pd.DataFrame(
        {
            "code": pd.Categorical([3, 1, 2] * 10),
            "whole": pd.array([1, None, 7] * 10, dtype="Int64"),
            "flag": pd.array([True, None, False] * 10, dtype="boolean"),
            "text": pd.array(["a", None, "b"] * 10, dtype="string"),
            "when": pd.date_range("2024-01-01", periods=30, tz="Europe/Rome"),
            "took": pd.to_timedelta(np.arange(30) % 7, unit="h"),
        }
    )
    preparer = TablePreparer().fit(frame)
    kinds = [re.match(r"\w+: (\w+)", line)[1] for line in preparer.report_]
    assert kinds == ["category", "category", "category", "category", "date", "date"]
    back = preparer.inverse_transform(preparer.transform(frame))
    assert list(back["code"]) == list(frame["code"])
    assert list(back["took"]) == list(frame["took"])
    assert list(back["when"]) == list(frame["when"].dt.tz_localize(None))


def test_set_output_gives_frames_with_names_that_occur_once(pd, pl):
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 10, "a_x": np.linspace(0, 1, 30)})
    for library in ("pandas", "polars"):
        preparer = TablePreparer().set_output(transform=library)
        assert list(preparer.fit_transform(frame).columns) == ["a_x", "a_y", "a_z", "a_x_2"]


def test_clones_pickles_and_files_are_alike(pd, tmp_path):
    table, _ = customers(1)
    frame = pd.DataFrame(table)
    preparer = TablePreparer(kinds={"visits": "number"}).fit(frame)
    preparer.save(tmp_path / "table.kfree")
    expected = preparer.transform(frame)
    for other in (
        clone(preparer).fit(frame),
        pickle.loads(pickle.dumps(preparer)),
        kfree.load(tmp_path / "table.kfree"),
    ):
        assert np.array_equal(other.transform(frame), expected)
        assert other.explain() == preparer.explain()
        pd.testing.assert_frame_equal(other.inverse_transform(expected), preparer.inverse_transform(expected))


def test_the_table_is_not_changed_and_rows_do_not_lean_on_each_other(pd):
    table, _ = customers(2)
    frame = pd.DataFrame(table)
    before = frame.copy()
    preparer = TablePreparer().fit(frame)
    whole = preparer.transform(frame)
    pd.testing.assert_frame_equal(frame, before)
    np.testing.assert_array_equal(preparer.transform(frame[40:60]), whole[40:60])


# Bad input


def test_bad_input_is_an_error_that_says_what_to_do(pd):
    frame = pd.DataFrame({"age": [30.0, 40.0, 55.0] * 5, "town": ["a", "b", "c"] * 5})
    preparer = TablePreparer().fit(frame)
    for bad, error, words in [
        (frame.assign(age=["old"] * 15), ValueError, "Column 'age' must hold numbers, but row 0 holds 'old'"),
        (frame.assign(age=[np.inf] * 15), ValueError, "'age' has 15 infinite values, the first in row 0"),
        (frame.assign(age=-1e200), ValueError, "'age' has 15 values beyond 1e\\+150, the first in row 0"),
        (frame.assign(age=pd.date_range("2024", periods=15)), ValueError, "Column 'age' must hold numbers"),
        (frame.drop(columns="town"), ValueError, "town"),
        (frame[:0], ValueError, "0 rows"),
    ]:
        with pytest.raises(error, match=words):
            preparer.transform(bad)
    with pytest.raises(ValueError, match="X has 1 columns, but the prepared table has 4"):
        preparer.inverse_transform([[1.0]])
    with pytest.raises(ValueError, match="2 columns called 'age'"):
        TablePreparer().fit(pd.concat([frame, frame], axis=1))
    with pytest.raises(ValueError, match="No column of X tells rows apart, among 15 rows") as told:
        TablePreparer().fit(frame[["town"]].assign(town="a"))
    assert "town: left out; every value is 'a'" in str(told.value)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        TablePreparer().fit(sp.eye(3))
    with pytest.raises(NotFittedError):
        TablePreparer().transform(frame)


@pytest.mark.parametrize(
    ("kinds", "error", "words"),
    [
        ({"wrong": "number"}, ValueError, "kinds names a column 'wrong', which X does not have. Its columns are 'x0'"),
        ({0: "numeric"}, ValueError, r"Unknown kinds\[0\] 'numeric'. Choose one of 'number', 'category'"),
        ("number", TypeError, "kinds must be a dict"),
        ({0: "date"}, ValueError, "Column 'x0' must hold dates, but row 0 holds"),
    ],
)
def test_kinds_that_do_not_suit_are_errors(kinds, error, words):
    with pytest.raises(error, match=words):
        TablePreparer(kinds=kinds).fit(np.linspace(0, 1, 20).reshape(10, 2))


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_infinity=False),
    st.text(max_size=5),
    st.dates(),
    st.datetimes(),
    st.binary(max_size=3),
    st.sampled_from(["2024-01-01", "1e999", "nan", "</script>", "0x1", "٣", "a", "b", 0.0, -0.0, 1e308, 5e-324]),
    st.lists(st.integers(), max_size=2),
)


@given(st.integers(1, 4).flatmap(lambda p: st.lists(st.tuples(*[cells] * p), min_size=1, max_size=30)))
@settings(max_examples=200, deadline=None)
def test_hostile_tables_are_prepared_or_refused_and_never_give_nan(rows):
    table = np.empty((len(rows), len(rows[0])), object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            table[i, j] = cell
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            preparer = TablePreparer().fit(table)
        except ValueError as error:
            if re.search("No column of X|infinite|beyond 1e\\+150", str(error)):
                return
            raise
        found = preparer.transform(table)
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 6
        assert preparer.inverse_transform(found).shape == table.shape
        assert len(preparer.report_) == table.shape[1]
