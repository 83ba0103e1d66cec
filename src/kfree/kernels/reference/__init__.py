"""Reference kernels: numpy only, written to be read. The compiled twins must agree with them."""

from kfree.kernels.reference.between import lower_medians, rows_of_pairs, sort_segments, three_least
from kfree.kernels.reference.content import farthest, hash_csr, hash_dense
from kfree.kernels.reference.decide import near_threshold, open_decisions, unsettled
from kfree.kernels.reference.dip import dip
from kfree.kernels.reference.location import place_documents
from kfree.kernels.reference.nearest import nearest_csr, nearest_dense
from kfree.kernels.reference.paper import paper_cells, paper_clusters
from kfree.kernels.reference.soft import likeliest, soft_documents, soft_words
from kfree.kernels.reference.sums import add_csr, add_dense, distance_csr, distance_dense, own_csr, own_dense
from kfree.kernels.reference.topics import count_labels, fold_in, gain_of_seeds, mend_documents, merge_changes

__all__ = [
    "add_csr",
    "add_dense",
    "count_labels",
    "dip",
    "distance_csr",
    "distance_dense",
    "farthest",
    "fold_in",
    "gain_of_seeds",
    "hash_csr",
    "hash_dense",
    "likeliest",
    "lower_medians",
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
    "rows_of_pairs",
    "soft_documents",
    "soft_words",
    "sort_segments",
    "three_least",
    "unsettled",
]
