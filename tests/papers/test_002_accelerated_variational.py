"""Kurihara, Welling & Vlassis (2006), Accelerated variational Dirichlet process mixtures; data are drawn as there."""

import pytest
from benchmarks.workloads import gauss

from kfree import VariationalDPMixture

pytestmark = pytest.mark.papers


@pytest.mark.parametrize(("rows", "columns", "separation"), [(5000, 16, 2.0), (10_000, 16, 3.0), (10_000, 8, 2.0)])
def test_figures_1_to_3_nodes_of_a_tree_end_at_the_free_energy_of_all_rows(rows, columns, separation):
    X, _ = gauss(rows, columns, 10, separation)
    plain = VariationalDPMixture(accelerate=None, prior="fixed").fit(X)
    fast = VariationalDPMixture(accelerate="tree", prior="fixed").fit(X)
    assert plain.n_components_ == fast.n_components_ == 10
    assert 1 + (fast.free_energy_ - plain.free_energy_) / abs(plain.free_energy_) <= 1.0001  # the paper: 1.00 to 1.02
    assert fast.n_nodes_ < rows / 2
