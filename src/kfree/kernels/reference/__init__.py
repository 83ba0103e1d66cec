"""Reference kernels: numpy only, written to be read. The compiled twins must agree with them."""

from kfree.kernels.reference.between import lower_medians, rows_of_pairs, sort_segments, three_least
from kfree.kernels.reference.content import farthest, hash_csr, hash_dense
from kfree.kernels.reference.decide import lower_bounds, near_threshold, open_decisions, relabel, unsettled
from kfree.kernels.reference.dip import dip
from kfree.kernels.reference.feature_collapsed import collapsed_rows, rebuild
from kfree.kernels.reference.feature_runs import run_features, seed_features
from kfree.kernels.reference.features import best_rows, solve_means, sweep_rows, walk_rows
from kfree.kernels.reference.groups import arrange, find_slots, may_open, share_gains, visit_rows
from kfree.kernels.reference.location import place_documents
from kfree.kernels.reference.nearest import nearest_csr, nearest_dense
from kfree.kernels.reference.paper import paper_cells, paper_clusters
from kfree.kernels.reference.soft import likeliest, soft_documents, soft_words
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
)
from kfree.kernels.reference.topics import count_labels, fold_in, gain_of_seeds, mend_documents, merge_changes

__all__ = [
    "add_csr",
    "add_dense",
    "arrange",
    "best_rows",
    "collapsed_rows",
    "count_labels",
    "dip",
    "distance_csr",
    "distance_dense",
    "farthest",
    "find_slots",
    "fold_in",
    "gain_of_seeds",
    "hash_csr",
    "hash_dense",
    "likeliest",
    "lower_bounds",
    "lower_medians",
    "may_open",
    "measure_dense",
    "mend_documents",
    "merge_changes",
    "near_threshold",
    "nearest_csr",
    "nearest_dense",
    "open_decisions",
    "own_csr",
    "own_dense",
    "paper_cells",
    "paper_clusters",
    "place_documents",
    "rebuild",
    "relabel",
    "rows_of_pairs",
    "run_features",
    "seed_features",
    "share_gains",
    "soft_documents",
    "soft_words",
    "solve_means",
    "sort_segments",
    "sweep_rows",
    "tally",
    "tally_dense",
    "three_least",
    "unsettled",
    "visit_rows",
    "walk_rows",
]
