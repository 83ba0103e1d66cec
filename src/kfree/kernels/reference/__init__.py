"""Reference kernels: numpy only, written to be read. The compiled twins must agree with them."""

from kfree.kernels.reference.assign import assign_dense, descend_dense
from kfree.kernels.reference.between import lower_medians, rows_of_pairs, sort_segments, three_least
from kfree.kernels.reference.closing import close_documents, close_words
from kfree.kernels.reference.collapsed import collapse_cells
from kfree.kernels.reference.content import farthest, find_content, hash_csr, hash_dense
from kfree.kernels.reference.counts import move_counts
from kfree.kernels.reference.decide import (
    least_changes,
    lower_bounds,
    near_threshold,
    open_decisions,
    relabel,
    unsettled,
)
from kfree.kernels.reference.dips import dip
from kfree.kernels.reference.feature_collapsed import collapsed_rows, rebuild
from kfree.kernels.reference.feature_runs import run_features, seed_features
from kfree.kernels.reference.features import best_rows, solve_means, sweep_rows, walk_rows
from kfree.kernels.reference.groups import arrange, find_slots, may_open, share_gains, visit_rows
from kfree.kernels.reference.location import place_documents
from kfree.kernels.reference.mixture import add_squares, collect, soften, subtract_squares, weighted_scores
from kfree.kernels.reference.nearest import nearest_csr, nearest_dense
from kfree.kernels.reference.nodes import (
    half_precisions,
    node_scores,
    node_shares,
    node_sums,
    share_nodes,
    sweep_nodes,
    tell_apart,
    unpack,
)
from kfree.kernels.reference.paper import paper_cells, paper_clusters
from kfree.kernels.reference.points import move_points
from kfree.kernels.reference.sample import key_rows, sample_rows
from kfree.kernels.reference.soft import add_columns, likeliest, raise_rows, soft_documents, soft_words
from kfree.kernels.reference.sums import (
    add_csr,
    add_dense,
    distance_csr,
    distance_dense,
    measure_dense,
    own_csr,
    own_dense,
    tally,
    tally_dense,
    two_means_dense,
)
from kfree.kernels.reference.topics import count_labels, fold_in, gain_of_seeds, mend_documents, merge_changes
from kfree.kernels.reference.tree import (
    alike_dense,
    halve_dense,
    leading_dense,
    leading_packed,
    mean_dense,
    part_nodes,
    place_rows,
    second_diag,
    second_full,
    sum_rows,
)
from kfree.kernels.reference.tree_csr import alike_csr, halve_csr, leading_csr, mean_csr
from kfree.kernels.reference.whitened import assign_rows, gains_apart
from kfree.kernels.reference.wishart import (
    best_sticks,
    stick_terms,
    wishart_divergence,
    wishart_form,
    wishart_posterior,
    wishart_view,
)

__all__ = [
    "add_columns",
    "add_csr",
    "add_dense",
    "add_squares",
    "alike_csr",
    "alike_dense",
    "arrange",
    "assign_dense",
    "assign_rows",
    "best_rows",
    "best_sticks",
    "close_documents",
    "close_words",
    "collapse_cells",
    "collapsed_rows",
    "collect",
    "count_labels",
    "descend_dense",
    "dip",
    "distance_csr",
    "distance_dense",
    "farthest",
    "find_content",
    "find_slots",
    "fold_in",
    "gain_of_seeds",
    "gains_apart",
    "half_precisions",
    "halve_csr",
    "halve_dense",
    "hash_csr",
    "hash_dense",
    "key_rows",
    "leading_csr",
    "leading_dense",
    "leading_packed",
    "least_changes",
    "likeliest",
    "lower_bounds",
    "lower_medians",
    "may_open",
    "mean_csr",
    "mean_dense",
    "measure_dense",
    "mend_documents",
    "merge_changes",
    "move_counts",
    "move_points",
    "near_threshold",
    "nearest_csr",
    "nearest_dense",
    "node_scores",
    "node_shares",
    "node_sums",
    "open_decisions",
    "own_csr",
    "own_dense",
    "paper_cells",
    "paper_clusters",
    "part_nodes",
    "place_documents",
    "place_rows",
    "raise_rows",
    "rebuild",
    "relabel",
    "rows_of_pairs",
    "run_features",
    "sample_rows",
    "second_diag",
    "second_full",
    "seed_features",
    "share_gains",
    "share_nodes",
    "soft_documents",
    "soft_words",
    "soften",
    "solve_means",
    "sort_segments",
    "stick_terms",
    "subtract_squares",
    "sum_rows",
    "sweep_nodes",
    "sweep_rows",
    "tally",
    "tally_dense",
    "tell_apart",
    "three_least",
    "two_means_dense",
    "unpack",
    "unsettled",
    "visit_rows",
    "walk_rows",
    "weighted_scores",
    "wishart_divergence",
    "wishart_form",
    "wishart_posterior",
    "wishart_view",
]
