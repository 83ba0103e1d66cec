"""A sample by content is the same for any order and any blocks of the rows, and stands for all of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kfree.inference import race
from kfree.inference.content import hash_rows
from kfree.inference.race import arrivals, sample_by_content
from support.in_blocks import CutTable


def plainly(X, weight, most):
    """The first contents of the race, by sorting them all."""
    rows = X.toarray() if sp.issparse(X) else X
    different, place = np.unique(rows[weight > 0], axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=weight[weight > 0])
    hashes = hash_rows(np.ascontiguousarray(different))
    arrival = arrivals(hashes, total)
    order = np.argsort(arrival)
    stands_for = total.copy()
    if len(order) > most:
        stands_for = total / -np.expm1(-total * arrival[order[most]])
        order = order[:most]
    order = order[np.argsort(hashes[order])]
    return different[order], stands_for[order]


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 60),
    most=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    weights=st.sampled_from([None, "whole", "any"]),
    sparse=st.booleans(),
)
def test_any_blocks_and_order_give_the_sample_of_a_plain_race(seed, n, most, cuts, weights, sparse):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, 2)).astype(float)
    weight = {None: None, "whole": rng.integers(0, 4, n).astype(float), "any": 3 * rng.random(n)}[weights]
    known = np.ones(n) if weight is None else weight
    if not known.any():
        return
    expected, stands_for = plainly(X, known, most)
    order = rng.permutation(n)
    table = sp.csr_matrix(X[order]) if sparse else X[order]
    given_weight = None if weight is None else weight[order]
    sample = sample_by_content(CutTable(table, given_weight, [min(cut, n) for cut in cuts]).blocks(), most)
    found = sample.X.toarray() if sparse else sample.X
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(sample.weight, stands_for, rtol=1e-12)
    assert sample.complete == (len(np.unique(X[known > 0], axis=0)) <= most)


def test_whole_weights_are_copies():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(500, 3)), rng.integers(0, 5, 500)
    one = sample_by_content(CutTable(X, weight, [100]).blocks(), 50)
    two = sample_by_content(CutTable(np.repeat(X, weight, axis=0), None, [7, 300]).blocks(), 50)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.weight, two.weight)


def test_sums_over_samples_are_those_over_the_table_on_average():
    values = np.random.default_rng(1).gamma(1.0, size=400)
    sums, weights = [], []
    for draw in range(200):
        X = np.column_stack([values, np.full(400, float(draw))])  # another draw for another content
        sample = sample_by_content(CutTable(X, None, [200]).blocks(), 50)
        sums.append(sample.weight @ sample.X[:, 0])
        weights.append(sample.weight.sum())
    assert abs(np.mean(sums) - values.sum()) < 4 * np.std(sums) / np.sqrt(200)
    assert abs(np.mean(weights) - 400) < 4 * np.std(weights) / np.sqrt(200) + 1e-9


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 80),
    kinds=st.integers(1, 60),
    enough=st.integers(1, 20),
    together=st.integers(1, 30),
    weights=st.sampled_from([None, "whole", "any"]),
    merged=st.booleans(),
)
def test_the_first_contents_are_those_of_all_that_arrive_first(seed, n, kinds, enough, together, weights, merged):
    rng = np.random.default_rng(seed)
    hashes = rng.integers(2**64, size=kinds, dtype=np.uint64)[rng.integers(kinds, size=n)]
    weight = {None: np.empty(0), "whole": rng.integers(0, 4, n).astype(float), "any": 3 * rng.random(n)}[weights]
    copies = np.rint(weight) if merged and weights else np.empty(0)
    rows = race.Entrants(hashes, weight, copies)
    every, _ = race.Contents.of(*rows)
    if not every.hashes.size:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "_TOGETHER", together)
        found, place = race.first_contents(rows, enough)
    first, total = every.totals()
    arrival = arrivals(every.hashes[first], total)
    in_time = every.hashes[first][np.argsort(arrival)][: enough + 1] if n > together else every.hashes
    kept = np.isin(every.hashes, in_time)
    for one, other in zip(found, every):
        np.testing.assert_array_equal(one, other[kept])
    np.testing.assert_array_equal(hashes[place], found.hashes)
    if weight.size:
        np.testing.assert_array_equal(weight[place], found.weight)


def test_no_weight_at_all_is_an_error():
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        sample_by_content(CutTable(np.ones((3, 1)), np.zeros(3), []).blocks(), 5)
