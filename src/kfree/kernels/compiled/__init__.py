"""Compiled kernels (numba). See ``kfree.kernels.reference`` for what each computes.

Their modules are imported when a kernel is first asked for: all of them together take a tenth of a second.
"""

from importlib import import_module
from typing import Any

_KERNELS = {
    "assign": "assign_dense descend_dense",
    "between": "lower_medians rows_of_pairs sort_segments three_least",
    "closing": "close_documents close_words",
    "collapsed": "collapse_cells",
    "content": "farthest find_content hash_csr hash_dense",
    "counts": "move_counts",
    "decide": "least_changes lower_bounds near_threshold open_decisions relabel unsettled",
    "dips": "dip",
    "feature_collapsed": "collapsed_rows rebuild",
    "feature_runs": "run_features seed_features",
    "features": "best_rows solve_means sweep_rows walk_rows",
    "groups": "arrange find_slots may_open share_gains visit_rows",
    "location": "place_documents",
    "mixture": "add_squares collect soften subtract_squares weighted_scores",
    "nearest": "nearest_csr nearest_dense",
    "nodes": "half_precisions node_scores node_shares node_sums share_nodes sweep_nodes tell_apart unpack",
    "paper": "paper_cells paper_clusters",
    "points": "move_points",
    "powers": "raise_rows",
    "sample": "key_rows sample_rows",
    "seeds": "gain_of_seeds",
    "soft": "add_columns likeliest soft_documents soft_words",
    "sums": (
        "add_csr add_dense distance_csr distance_dense measure_dense own_csr own_dense tally tally_dense "
        "two_means_dense"
    ),
    "topics": "count_labels fold_in mend_documents merge_changes",
    "tree": (
        "alike_dense halve_dense leading_dense leading_packed mean_dense part_nodes place_rows "
        "second_diag second_full sum_rows"
    ),
    "tree_csr": "alike_csr halve_csr leading_csr mean_csr",
    "whitened": "assign_rows gains_apart",
    "wishart": "best_sticks stick_terms wishart_divergence wishart_form wishart_posterior wishart_view",
}
_HOME = {name: module for module, names in _KERNELS.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = kernel  # found at once from now on
    return kernel
