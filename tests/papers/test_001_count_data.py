"""Nguyen, Phung, Le & Venkatesh, Large sample asymptotic for nonparametric mixture model with count data."""

import pytest
from benchmarks import data
from benchmarks.measure import n_used, nmi, pair_f
from benchmarks.papers.table1 import dp_means

pytestmark = [
    pytest.mark.papers,
    pytest.mark.skipif(not data.has("scene15_bow"), reason="scene15_bow.npz is not there (see KFREE_DATA)"),
]


def test_table_1_counts_by_their_own_divergence_beat_squared_distances():
    # other images than the paper's: the order of the lines is compared, not the numbers
    case = data.scenes()
    plain = dp_means(case.X, case.k)
    for smoothing in (0.1, 1.0):
        counts = dp_means(case.X, case.k, divergence="kl", smoothing=smoothing)
        assert nmi(case.truth, counts) > nmi(case.truth, plain) + 0.1
        assert pair_f(case.truth, counts) > pair_f(case.truth, plain) + 0.05
        assert 10 <= n_used(counts) <= 25  # the paper: 19, for lam of the true number of classes
