"""Every compiled kernel equals its reference twin.

Small integers make all sums exact, so that results must agree to the last bit, ties included; real numbers must
agree up to rounding.
"""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.families import Affine
from kfree.kernels import kernels, native, reference
from kfree.rows import DenseRows
from kfree.rows.exact_sums import ExactSums

NONE = np.empty(0)


@st.composite
def problems(draw):
    """Arguments of the kernels: a table in both forms, a choice of its rows, centres, labels and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, p, K = draw(st.integers(1, 40)), draw(st.sampled_from([1, 2, 3, 4, 5, 8, 11])), draw(st.integers(1, 15))
    exact = draw(st.booleans())
    dtype, product = draw(st.sampled_from([("f4", "f4"), ("f4", "f8"), ("f8", "f8")]))

    def numbers(*shape):
        return rng.integers(-3, 4, size=shape).astype(float) if exact else rng.normal(size=shape)

    table = numbers(n, p) * (rng.random((n, p)) < 0.6)
    table[rng.random(n) < 0.2] = 0.0  # rows without entries
    table = table.astype(dtype)
    csr = sp.csr_matrix(table)
    if csr.nnz:
        zeros = rng.random(csr.nnz) < 0.1
        csr.data[zeros] = 0.0  # stored zeros
        table = csr.toarray()
    m = draw(st.one_of(st.integers(1, 40), st.sampled_from([256, 257, 700])))  # kernels work in runs of up to 512 rows
    return {
        "X": table,
        "csr": (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64)),
        "rows": rng.integers(0, n, size=m),
        "shift": numbers(p) if draw(st.booleans()) else np.zeros(p),
        "scale": 2.0 ** rng.integers(-1, 2, size=n) if draw(st.booleans()) else NONE,
        "weight": rng.integers(1, 5, size=n) / 2.0 if draw(st.booleans()) else NONE,
        "labels": rng.integers(0, K, size=m).astype(np.int32),
        "coef": numbers(K, p),
        "offset": numbers(K),
        "product": np.dtype(product),
        "tolerance": 0.0 if exact else 1e-12 if product == "f8" else 1e-5,
    }


def outputs_of_both(name, *inputs, outputs):
    """Run both twins on the same inputs with outputs of their own."""
    both = []
    for module in (native, reference):
        out = [array.copy() for array in outputs]
        getattr(module, name)(*inputs, *out)
        both.append(out)
    return zip(*both)


def assert_equal(mine, theirs, tolerance):
    assert mine.dtype == theirs.dtype
    if tolerance == 0 or mine.dtype.kind in "iu":
        assert_array_equal(mine, theirs)
    else:
        assert_allclose(mine, theirs, rtol=tolerance, atol=10 * tolerance)


def found(m):
    return [np.full(m, -1, np.int32), np.full(m, np.nan), np.full(m, np.nan), np.full(m, np.nan)]


@given(problems())
def test_nearest_dense_equals_its_twin(a):
    coef, offset = a["coef"].astype(a["product"]), a["offset"].astype(a["product"])
    reach = np.array([np.sqrt((coef**2).sum(axis=1).max()), np.abs(coef).max()], float)
    inputs = (a["X"], a["rows"], a["shift"], a["scale"], coef, offset, reach)
    both = list(outputs_of_both("nearest_dense", *inputs, outputs=found(len(a["rows"]))))
    for t, (mine, theirs) in enumerate(both):
        assert_equal(mine, theirs, a["tolerance"] if t < 3 else 1e-6)


@given(problems())
def test_nearest_csr_equals_its_twin_and_nearest_dense(a):
    coef, offset = a["coef"].astype(a["product"]), a["offset"].astype(a["product"])
    reach, m = np.array([np.sqrt((coef**2).sum(axis=1).max()), np.abs(coef).max()], float), len(a["rows"])
    inputs = (
        *a["csr"],
        a["rows"],
        a["scale"],
        *Affine(coef, offset, 0.0).transposed(coef.dtype, 256 // coef.itemsize),
        reach,
    )
    both = list(outputs_of_both("nearest_csr", *inputs, outputs=found(m)))
    dense = found(m)
    reference.nearest_dense(a["X"], a["rows"], np.zeros(coef.shape[1]), a["scale"], coef, offset, reach, *dense)
    for t, (mine, theirs) in enumerate(both):
        assert_equal(mine, theirs, a["tolerance"] if t < 3 else 1e-6)
        assert_equal(mine, dense[t], a["tolerance"] if t < 3 else 1e-6)


@pytest.mark.parametrize("module", [native, reference])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("K", [1, 2, 3, 4, 5, 7, 8, 9, 20])
def test_ties_go_to_the_lowest_index(module, dtype, K):
    X = np.ones((19, 2), dtype)
    for first in range(K):
        coef, offset = np.full((K, 2), 3.0, dtype), np.full(K, 1.0, dtype)
        offset[:first] = 2.0
        dense, sparse, indptr = found(19), found(19), np.arange(0, 39, 2)
        module.nearest_dense(X, np.arange(19), np.zeros(2), NONE, coef, offset, np.ones(2), *dense)
        csr = (X.ravel(), np.tile(np.array([0, 1], np.int32), 19), indptr)
        module.nearest_csr(
            *csr,
            np.arange(19),
            NONE,
            *Affine(coef, offset, 0.0).transposed(dtype, 256 // X.itemsize),
            np.ones(2),
            *sparse,
        )
        for labels, least, second, _ in (dense, sparse):
            assert_array_equal(labels, first)
            assert_array_equal(least, -5.0)
            assert_array_equal(second, np.inf if K == 1 else -4.0 if first == K - 1 else -5.0)


@given(problems())
def test_nearest_does_not_depend_on_the_position_of_a_row(a):
    coef, offset = a["coef"].astype(a["product"]), a["offset"].astype(a["product"])
    together, m = found(len(a["rows"])), len(a["rows"])
    native.nearest_dense(a["X"], a["rows"], a["shift"], a["scale"], coef, offset, np.ones(2), *together)
    for t in range(0, m, 5):
        alone = found(1)
        native.nearest_dense(a["X"], a["rows"][t : t + 1], a["shift"], a["scale"], coef, offset, np.ones(2), *alone)
        assert_array_equal(np.array(alone).ravel(), np.array(together)[:, t])


@given(problems())
def test_own_equals_its_twin_and_itself_on_sparse_rows(a):
    m, tail, dense = len(a["rows"]), (a["labels"], a["coef"], a["offset"]), [np.empty(len(a["rows"]))]
    for mine, theirs in outputs_of_both("own_dense", a["X"], a["rows"], a["shift"], a["scale"], *tail, outputs=dense):
        assert_equal(mine, theirs, a["tolerance"] and 1e-12)
    native.own_dense(a["X"], a["rows"], np.zeros_like(a["shift"]), a["scale"], *tail, *dense)
    for mine, theirs in outputs_of_both("own_csr", *a["csr"], a["rows"], a["scale"], *tail, outputs=[np.empty(m)]):
        assert_equal(mine, theirs, a["tolerance"] and 1e-12)
        assert_equal(mine, dense[0], a["tolerance"] and 1e-12)


@given(problems())
def test_distance_equals_its_twin_and_itself_on_sparse_rows(a):
    m, tail, norm = len(a["rows"]), (a["labels"], a["coef"]), (a["coef"] ** 2).sum(axis=1)
    dense = [np.empty(m)]
    inputs = (a["X"], a["rows"], a["shift"], a["scale"], *tail)
    for mine, theirs in outputs_of_both("distance_dense", *inputs, outputs=dense):
        assert_equal(mine, theirs, a["tolerance"] and 1e-12)
    native.distance_dense(a["X"], a["rows"], np.zeros_like(a["shift"]), a["scale"], *tail, *dense)
    inputs = (*a["csr"], a["rows"], a["scale"], *tail, norm)
    for mine, theirs in outputs_of_both("distance_csr", *inputs, outputs=[np.empty(m)]):
        assert_equal(mine, theirs, a["tolerance"] and 1e-12)
        assert_equal(mine, dense[0], a["tolerance"] and 1e-12)


@given(problems(), st.booleans())
def test_add_equals_its_twin_and_itself_on_sparse_rows(a, skip):
    labels = np.where(np.arange(len(a["rows"])) % 3 == 0, np.int32(-1), a["labels"]) if skip else a["labels"]
    start = [np.ones(a["coef"].shape), np.ones(len(a["offset"]))]  # adds to what is there
    inputs = (a["X"], a["rows"], a["shift"], a["scale"], a["weight"], labels)
    for mine, theirs in outputs_of_both("add_dense", *inputs, outputs=start):
        assert_equal(mine, theirs, a["tolerance"] and 1e-12)
    dense = [array.copy() for array in start]
    native.add_dense(a["X"], a["rows"], np.zeros_like(a["shift"]), a["scale"], a["weight"], labels, *dense)
    inputs = (*a["csr"], a["rows"], a["scale"], a["weight"], labels)
    for (mine, theirs), other in zip(outputs_of_both("add_csr", *inputs, outputs=start), dense):
        assert_equal(mine, theirs, a["tolerance"] and 1e-12)
        assert_equal(mine, other, a["tolerance"] and 1e-12)


# Hashes


def hash_by_hand(row):
    """The hash in Python integers: SplitMix64's finaliser of every entry and column, added up and mixed again."""

    def mix(v):
        v = ((v ^ v >> 30) * 0xBF58476D1CE4E5B9) % 2**64
        v = ((v ^ v >> 27) * 0x94D049BB133111EB) % 2**64
        return v ^ v >> 31

    total = 0
    for j, value in enumerate(row):
        if value != 0:
            (bits,) = struct.unpack("<Q", struct.pack("<d", float(value)))
            total += mix((bits + mix((j + 1) * 0x9E3779B97F4A7C15 % 2**64)) % 2**64)
    return mix(total % 2**64)


@pytest.mark.parametrize("module", [native, reference])
@given(a=problems())
def test_hashes_are_the_formula_for_dense_and_sparse_rows_alike(module, a):
    dense, sparse = np.empty((2, len(a["rows"])), np.uint64)
    module.hash_dense(a["X"], a["rows"], dense)
    module.hash_csr(*a["csr"], a["rows"], sparse)
    assert_array_equal(dense, sparse)
    assert dense.tolist() == [hash_by_hand(a["X"][i]) for i in a["rows"]]


@pytest.mark.parametrize("module", [native, reference])
def test_hashes_see_values_and_columns_but_not_the_sign_of_zero(module):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [1.0, -0.0], [0.0, -1.0], [0.0, 0.0]])
    hashes = np.empty(6, np.uint64)
    module.hash_dense(X, np.arange(6), hashes)
    assert hashes[0] == hashes[1]
    assert hashes[2] == hashes[3]
    assert len(set(hashes.tolist())) == 4


# The farthest row


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40),
    st.booleans(),
    st.booleans(),
)
def test_farthest_is_the_row_of_largest_excess_then_smallest_hash_then_lowest_index(rows, weighted, smoothed):
    cost, label, tag = (np.array(column) for column in zip(*rows))
    cost, labels, hashes = cost.astype(float), label.astype(np.int32), tag.astype(np.uint64) << np.uint64(61)
    cost[cost == 6] = np.inf
    unit = np.linspace(0.25, 1.0, cost.size) if weighted else NONE
    alone = np.arange(cost.size) % 2 / 2.0 if smoothed else NONE
    inputs = (cost, unit, alone, 1.5, labels, hashes)
    for mine, theirs in outputs_of_both("farthest", *inputs, outputs=[np.full(4, -1, np.intp), np.zeros(4)]):
        assert_array_equal(mine, theirs)
    chosen, excess = np.full(4, -1, np.intp), np.zeros(4)
    native.farthest(*inputs, chosen, excess)
    by_hand = (unit if weighted else 1.0) * cost - 1.5 - (alone if smoothed else 0.0)
    for k in range(4):
        beyond = [(-by_hand[i], hashes[i], i) for i in range(cost.size) if labels[i] == k and by_hand[i] > 0]
        assert (chosen[k], excess[k]) == ((min(beyond)[2], -min(beyond)[0]) if beyond else (-1, 0.0))


# The switch


_USE = """
import sys
import numpy as np
from kfree.families import Geometry, Poisson
from kfree.rows import DenseRows
X = np.random.default_rng(0).poisson(2.0, size=(50, 3)).astype(float)
rows = DenseRows(X, weight=np.empty(0), scale=np.empty(0), shift=np.zeros(3))
geometry = Geometry(Poisson(), X.mean(axis=0))
base = rows.base(slice(0, 50), geometry)
print(rows.nearest(slice(0, 50), base, geometry.affine(X[:4] + 0.5))[0].labels.tolist())
print("kfree.kernels.native" in sys.modules)
"""


def _run(choice):
    environment = {**os.environ, "KFREE_KERNELS": choice}
    return subprocess.run([sys.executable, "-c", _USE], env=environment, capture_output=True, text=True, check=False)


def test_the_switch_runs_everything_without_compiled_code():
    chosen, default = _run("reference"), _run("native")
    labels, loaded = chosen.stdout.split("\n")[:2]
    assert loaded == "False", chosen.stderr
    assert default.stdout.split("\n")[:2] == [labels, "True"], default.stderr


def test_the_switch_rejects_other_values(monkeypatch):
    monkeypatch.setenv("KFREE_KERNELS", "fast")
    kernels.cache_clear()
    try:
        with pytest.raises(ValueError, match="KFREE_KERNELS='fast' is not known"):
            kernels()
    finally:
        kernels.cache_clear()


@given(seed=st.integers(0, 2**20), m=st.integers(1, 60), known=st.booleans(), each=st.booleans())
def test_lists_of_open_decisions_equal_their_twins(seed, m, known, each):
    rng = np.random.default_rng(seed)
    base, least = rng.gamma(1.0, size=m), rng.normal(size=m)
    second = least + rng.choice([0.0, 1e-9, 1e-3, np.inf], size=m)
    least[rng.random(m) < 0.1] = np.inf
    slack = rng.choice([0.0, 1.0, 1e30], size=m)
    terms = rng.integers(1, 9, size=m) if each else np.array([3])
    norms, limits = (2.0, 0.5, 1.5 if known else 0.0), (1e-7, 1e-38, 1e29)
    both = []
    for module in (native, reference):
        out = [least.copy(), second.copy(), slack.copy(), np.full(m, -1)]
        count = module.open_decisions(base, terms, norms, 2.0, limits, *out)
        both.append((count, *out))
    assert both[0][0] == both[1][0]
    for mine, theirs in zip(both[0][1:], both[1][1:]):
        assert_allclose(mine, theirs, rtol=1e-12)


@given(seed=st.integers(0, 2**20), m=st.integers(1, 60), weighted=st.booleans(), smoothed=st.booleans())
def test_lists_of_rows_near_a_bound_equal_their_twins(seed, m, weighted, smoothed):
    rng = np.random.default_rng(seed)
    cost, base = rng.choice([0.5, 1.0, 1.0 + 1e-14, 2.0, np.inf], size=m), rng.gamma(1.0, size=m)
    low = rng.choice([-np.inf, 0.5, 1.0, 3.0], size=m)
    unit = rng.choice([0.0, 0.5, 1.0], size=m) if weighted else NONE
    alone = rng.choice([0.0, 0.25], size=m) if smoothed else NONE
    for name, inputs in (
        ("unsettled", (cost, base, 1.0, low)),
        ("near_threshold", (cost, unit, alone, base, 1.0, 1.0)),
    ):
        rows = [np.full(m, -1), np.full(m, -1)]
        counts = [getattr(module, name)(*inputs, out) for module, out in zip((native, reference), rows)]
        assert counts[0] == counts[1]
        assert_array_equal(*rows)


@given(
    seed=st.integers(0, 2**20),
    m=st.integers(1, 60),
    p=st.integers(1, 27),
    weighted=st.booleans(),
    scaled=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_one_call_for_a_span_equals_its_parts_and_its_twin(seed, m, p, weighted, scaled, dtype):
    rng = np.random.default_rng(seed)
    X, mean, shift = rng.normal(size=(m, p)).astype(dtype), rng.normal(size=(4, p)), rng.normal(size=p)
    scale = rng.gamma(1.0, size=m) if scaled else NONE
    weight = rng.choice([0.0, 0.5, 2.0], size=m) if weighted else NONE
    labels, before = rng.integers(4, size=m).astype(np.int32), rng.integers(-1, 4, size=m).astype(np.int32)
    base, low = rng.gamma(1.0, size=m), rng.choice([-np.inf, 0.5, 3.0, 50.0], size=m)
    both = []
    for module in (native, reference):
        cost, left, close = np.empty(m), np.full(m, -1), np.full(m, -1)
        decisions = (base, NONE, NONE, 1.0, 2.0, low, cost, left, close)
        counts = module.measure_dense(X, np.arange(m), shift, scale, labels, mean, 0.5, *decisions)
        reach, now = np.zeros(4), before.copy()
        sums = module.tally(weight, labels, cost, now, reach)
        both.append((cost, reach, now, np.array(counts), np.array(sums), left))
    for mine, theirs in zip(*both):
        assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    square = np.empty(m)
    native.distance_dense(X, np.arange(m), shift, scale, labels, mean, square)
    assert_allclose(both[0][0], 0.5 * square, rtol=1e-15)  # where it is inlined a product may be fused otherwise


@st.composite
def spans(draw):
    """Arguments of ``assign_dense``: small integers, or rows so near the border that single precision is in doubt."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    m = draw(
        st.one_of(st.integers(1, 60), st.sampled_from([255, 1000, 2500]))
    )  # more than one run, more than one block
    p, K = draw(st.integers(1, 20)), draw(st.integers(1, 9))
    near = draw(st.sampled_from([0.0, 1e-8, 1e-6, 1e-4]))
    dtype, product = draw(st.sampled_from([("f4", "f4"), ("f8", "f4"), ("f8", "f8")]))
    mean = rng.normal(size=(K, p)) if near else rng.integers(-2, 3, size=(K, p)).astype(float)
    X = (mean[rng.integers(K, size=m)] + mean[rng.integers(K, size=m)]) / 2 + near * rng.normal(size=(m, p))
    X, anchor = X.astype(dtype), mean.mean(axis=0)
    coef, offset = 2 * (mean - anchor), (mean**2).sum(axis=1) - (anchor**2).sum()
    limits = [
        (float(np.finfo(kind).eps), float(np.finfo(kind).tiny), float(np.finfo(kind).max) / 4)
        for kind in (product, "f8")
    ]
    return {
        "X": X,
        "mean": mean,
        "anchor": anchor,
        "first": np.empty(0, product),
        "limits": tuple(limits),
        "looks": ((coef.astype(product), offset.astype(product), limits[0]), (coef, offset, limits[1])),
        "norms": (1.0, float(np.sqrt((anchor**2).sum())), float(np.sqrt((coef**2).sum(axis=1).max()))),
        "size": float((mean**2).sum(axis=1).max() + (anchor**2).sum()),
        "base": ((X - anchor) ** 2).sum(axis=1),
        "weight": rng.integers(0, 3, size=m) / 2.0 if draw(st.booleans()) else NONE,
        "lam": draw(st.sampled_from([0.5, 3.0, np.nan])),
        "before": rng.integers(K, size=m).astype(np.int32),
        "low": rng.choice([-np.inf, 0.0, 0.5, 3.0, 50.0], size=m),
    }


@settings(max_examples=100)
@given(spans(), st.booleans())
def test_an_assignment_in_one_call_equals_its_twin_and_the_definition(a, known):
    m, (K, p) = len(a["X"]), a["mean"].shape
    exact = ((a["X"].astype(float)[:, None] - a["mean"]) ** 2).sum(axis=2)
    before, low = a["before"], a["low"]
    if known:  # bounds that hold: no other centre is nearer
        others = exact.copy()
        others[np.arange(m), before] = np.inf
        low = np.minimum(low, others.min(axis=1) * (1 - 1e-9) - 1e-9)
    both = []
    for module in (native, reference):
        memory = before.copy(), low.copy(), np.full(m, np.nan)
        sums, reach = (
            DenseRows(a["X"], weight=a["weight"], scale=NONE, shift=np.zeros(p)).exact_sums(before, K),
            np.zeros(K),
        )
        earlier = sums.limbs.copy()
        done = module.assign_dense(
            a["X"],
            np.arange(m),
            np.zeros(p),
            NONE,
            a["weight"],
            a["mean"],
            1.0,
            a["looks"],
            a["base"],
            NONE,
            NONE,
            a["norms"],
            a["size"],
            a["lam"],
            known,
            *memory,
            sums.ledger,
            reach,
        )
        both.append((done, memory, (*sums.values(), reach), sums.limbs))
    (mine, memory, sums, limbs), (theirs, their_memory, their_sums, their_limbs) = both
    assert_array_equal(limbs, their_limbs)
    assert mine[0] == theirs[0]
    if mine[0]:  # a decision is left open: labels are as before, bounds still hold or say nothing
        assert mine == theirs
        assert_array_equal(memory[0], before)
        assert_array_equal(limbs, earlier)
        second = np.partition(exact, 1, axis=1)[:, 1] if K > 1 else np.full(m, np.inf)
        assert not (known and (memory[1] > second * (1 + 1e-12) + 1e-12).any())
        return
    assert mine[1] == theirs[1] >= mine[2]  # how many the first look leaves open is a matter of rounding
    assert mine[3] == theirs[3]
    for one, other in zip((*memory, *sums), (*their_memory, *their_sums)):
        assert_allclose(one, other, rtol=1e-4, atol=1e-4 * a["size"] if other is their_memory[1] else 1e-12)
    labels, w = memory[0], a["weight"] if a["weight"].size else np.ones(m)
    assert_array_equal(labels, exact.argmin(axis=1))
    assert_allclose(memory[2], exact.min(axis=1), rtol=1e-12, atol=1e-14)
    others = exact.copy()
    others[np.arange(m), labels] = np.inf
    assert (memory[1] <= others.min(axis=1) * (1 + 1e-12) + 1e-12).all()
    assert_allclose(sums[1], np.bincount(labels, w, K))
    assert mine[3] == w[labels != before].sum()


@given(spans(), st.integers(1, 6), st.integers(0, 3), st.sampled_from([0.0, 0.1]), st.booleans())
def test_passes_in_one_call_equal_their_twin_and_assignments_one_by_one(a, room, pause, tol, may_open):
    m, (K, p) = len(a["X"]), a["mean"].shape
    w = a["weight"] if a["weight"].size else np.ones(m)
    lam = np.inf if np.isnan(a["lam"]) else a["lam"]
    rule, table = (pause, 2, tol, max(w.sum(), 1.0), may_open), (a["X"], np.arange(m), np.zeros(p), NONE, a["weight"])
    both = []
    for module in (native, reference):
        mean, memory = a["mean"].copy(), (a["before"].copy(), a["low"].copy(), np.empty(m))
        grid = DenseRows(a["X"], weight=a["weight"], scale=NONE, shift=np.zeros(p)).grid
        sums, reach, trace = ExactSums(K, grid), np.empty(K), np.zeros((room, 3))
        metric = (a["base"], a["anchor"], 1.0, lam)
        done = module.descend_dense(
            *table, *metric, rule, a["first"], a["limits"], mean, *memory, sums.ledger, reach, trace
        )
        both.append((*done[:2], trace[: done[0]], mean, memory[0], *sums.values(), reach))
    for mine, theirs in zip(*both):
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
    count, complete, trace, mean = both[0][:4]
    x, labels, centres = a["X"].astype(float), a["before"], a["mean"].copy()
    for t in range(count):
        nearest = ((x[:, None] - centres) ** 2).sum(axis=2)
        now = nearest.argmin(axis=1)
        changed, mass = w[now != labels].sum(), np.bincount(now, w, K)
        assert_allclose(trace[t, :2], [(w * nearest.min(axis=1)).sum(), changed], rtol=1e-9, atol=1e-11)
        labels, still = now, changed <= tol * max(w.sum(), 1.0)
        far = np.zeros(K)
        np.maximum.at(far, labels, nearest.min(axis=1))
        due = still or mass.min() == 0 or (may_open and far.max() > lam and pause + t >= 2)
        assert due == (complete and t + 1 == count) or t + 1 == room
        if not due and t + 1 < room:
            centres = np.stack([(w[labels == k] @ x[labels == k]) / mass[k] for k in range(K)])
    assert_allclose(mean, centres, rtol=1e-9, atol=1e-11)


@given(
    seed=st.integers(0, 2**20),
    m=st.integers(1, 80),
    p=st.integers(1, 20),
    weighted=st.booleans(),
    scaled=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_two_means_of_many_clusters_equal_their_twin_and_never_cost_more(seed, m, p, weighted, scaled, dtype):
    rng = np.random.default_rng(seed)
    C, X, rows = int(rng.integers(1, 5)), rng.normal(size=(m, p)).astype(dtype), rng.integers(m, size=2 * m)
    weight = rng.integers(0, 3, size=m) * 0.7 if weighted else NONE
    scale, shift = rng.uniform(0.5, 2, size=m) if scaled else NONE, rng.normal(size=p)
    labels, start = rng.integers(C, size=2 * m).astype(np.int32), rng.normal(size=(2 * C, p))
    x = (X[rows].astype(float) - shift) * (scale[rows, None] if scaled else 1.0)
    costs = []
    for steps in range(4):
        both = []
        for module in (native, reference):
            both.append((start.copy(), np.ones(C, bool)))
            module.two_means_dense(X, rows, shift, scale, weight, labels, steps, *both[-1])
        assert_allclose(both[0][0], both[1][0], rtol=1e-9, atol=1e-11)
        assert_array_equal(both[0][1], both[1][1])
        sides = ((x[:, None] - both[0][0].reshape(C, 2, p)[labels]) ** 2).sum(axis=2)
        costs.append(sides.min(axis=1) @ (weight[rows] if weighted else np.ones(2 * m)))
    assert (np.diff(costs) <= 1e-9 * (1 + costs[0])).all()


@given(seed=st.integers(0, 2**20), m=st.integers(1, 60))
def test_labels_and_bounds_follow_as_in_their_twins(seed, m):
    rng = np.random.default_rng(seed)
    labels, low = rng.integers(5, size=m).astype(np.int32), rng.normal(size=m)
    rank, fall = rng.permutation(5).astype(np.int32), rng.normal(size=3)
    both = []
    for module in (native, reference):
        mine, bounds = labels.copy(), low.copy()
        module.lower_bounds(mine, fall, bounds)
        module.relabel(rank, mine)
        both.append((mine, bounds))
    for mine, theirs in zip(*both):
        assert_array_equal(mine, theirs)
    assert (both[0][1][labels >= 3] == -np.inf).all()


@given(st.lists(st.integers(0, 2**13), max_size=30), st.lists(st.integers(0, 2**13), min_size=1, max_size=6))
def test_rows_of_wanted_content_are_found(hashes, wanted):
    hashes, wanted = np.array(hashes + wanted, np.uint64), np.sort(np.array(wanted, np.uint64))
    found = []
    for module in (native, reference):
        rows = np.empty(hashes.size, np.intp)
        found.append(rows[: module.find_content(hashes, wanted, rows)])
    assert_array_equal(*found)
    assert set(hashes[found[0]]) == set(wanted)


@given(seed=st.integers(0, 2**20), K=st.integers(2, 9), hole=st.sampled_from([0.0, np.nan, np.inf, -np.inf]))
def test_least_changes_are_those_of_their_twin(seed, K, hole):
    rng = np.random.default_rng(seed)
    lift, length, radius = rng.normal(size=K), rng.random(K), rng.random(K)
    lift[rng.integers(K)] += hole
    start, both = int(rng.integers(K)), []
    drop = rng.normal(size=(K - start, K))
    for module in (native, reference):
        both.append(np.zeros(K))
        module.least_changes(drop, lift, length, radius, start, both[-1])
    assert_allclose(*both, rtol=1e-12)
    assert not both[0][:start].any()


@st.composite
def shared_blocks(draw):
    """Costs of rows of a few groups, whole numbers so that there are ties; and who holds what."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    m, K, J, openers = (draw(st.integers(*ends)) for ends in ((1, 12), (1, 6), (1, 4), (0, 3)))
    cost = rng.integers(0, 9, size=(m, K + openers)).astype(float)
    cost[rng.random(cost.shape) < 0.1] = np.inf
    column = np.full(m, -1)
    chosen = np.sort(rng.choice(m, min(openers, m), replace=False))
    column[chosen] = K + np.arange(chosen.size)
    return {
        "cost": cost,
        "slack": rng.choice([0.0, 0.25, 1.0], size=m),
        "unit": rng.choice([0.5, 1.0], size=m),
        "alone": rng.choice([0.0, 1.0], size=m),
        "group": np.sort(rng.integers(J, size=m)),
        "column": column,
        "lam": (float(rng.integers(0, 4)), float(rng.integers(0, 9))),
        "held": rng.random((J, K + openers)) < 0.4,
        "known": np.arange(K + openers) < K,
        "room": chosen.size,
    }


@given(block=shared_blocks())
def test_visits_in_turn_equal_their_twin(block):
    results = []
    for module in (native, reference):
        labels, grew = np.full(len(block["cost"]), -1, np.int32), np.zeros(len(block["cost"]), bool)
        known, held, slack = block["known"].copy(), block["held"].copy(), block["slack"].copy()
        room, stops, at = np.array([block["room"]]), [], 0
        while at < len(labels):
            at = module.visit_rows(
                at, block["cost"], slack, block["unit"], block["alone"], block["group"], block["column"], block["lam"],
                room, known, held, labels, grew,
            )  # fmt: skip
            stops.append(at)
            slack[at : at + 1] = 0.0
        rows = np.full(len(labels), -1)
        given_all = [block[name] for name in ("cost", "slack", "unit", "alone", "group", "held", "lam")]
        count = module.may_open(*given_all, rows)
        results.append((labels, grew, known, held, room, stops, rows[:count]))
    for fast, plain in zip(*results):
        assert_array_equal(fast, plain)


@given(block=shared_blocks(), seed=st.integers(0, 1000))
def test_gains_of_shares_equal_their_twin(block, seed):
    weight = np.random.default_rng(seed).integers(1, 4, size=len(block["cost"])).astype(float)
    results = []
    for module in (native, reference):
        add, drop = np.zeros(block["held"].shape), np.zeros(block["held"].shape)
        labels = np.full(len(weight), -9, np.int32)
        module.share_gains(block["cost"], weight, block["group"], block["held"], add, drop, labels)
        results.append((add, drop, labels))
    for fast, plain in zip(*results):
        assert_array_equal(fast, plain)


@given(seed=st.integers(0, 10_000))
def test_slots_and_arrangements_equal_their_twins(seed):
    rng = np.random.default_rng(seed)
    n, J, K = rng.integers(1, 40), rng.integers(1, 6), rng.integers(1, 7)
    code = rng.integers(J, size=n)
    start = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=J))])
    held = [np.sort(rng.choice(K, rng.integers(0, K + 1), replace=False)) for _ in range(J)]
    member = np.concatenate(held).astype(np.int32)
    begin = np.concatenate([[0], np.cumsum([len(V) for V in held])])
    labels, order = rng.integers(-1, K, size=n).astype(np.int32), rng.permutation(n)
    results = []
    for module in (native, reference):
        rows, slot, place = np.empty_like(order), np.empty(n, np.intp), np.full(K, -1, np.intp)
        module.arrange(order, code, start, rows)
        module.find_slots(rows, start, labels, begin, member, place, slot)
        results.append((rows, slot, place))
    for fast, plain in zip(*results):
        assert_array_equal(fast, plain)
    rows, slot, _ = results[0]
    inside = slot >= 0
    assert_array_equal(member[slot[inside]], labels[rows[inside]])
