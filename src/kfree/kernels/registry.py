"""The names of all kernels and the files they live in, the same for the compiled ones and their twins.

A new kernel is a line here and two functions: ``native/<file>.cpp`` at the top of the checkout, and
``reference/<file>.py`` here.
"""

FILES = {
    "clusters.assign": "assign_dense descend_dense",
    "clusters.borders": "lower_medians rows_of_pairs sort_segments three_least",
    "clusters.bounds": "least_changes lower_bounds near_threshold open_decisions relabel unsettled",
    "clusters.dip": "dip",
    "clusters.move_counts": "move_counts",
    "clusters.move_points": "move_points",
    "clusters.nearest": "nearest_csr nearest_dense",
    "clusters.openers": "farthest",
    "clusters.shared": "arrange find_slots may_open share_gains visit_rows",
    "features.best_rows": "best_rows solve_means sweep_rows walk_rows",
    "features.collapsed_bp": "collapsed_rows rebuild run_collapsed",
    "features.gibbs_ibp": "gibbs_ibp",
    "features.k_features": "run_features seed_features",
    "mixtures.gibbs": "gibbs_given",
    "mixtures.gibbs_counts": "gibbs_bernoulli gibbs_multinomial gibbs_poisson gibbs_positive",
    "mixtures.gibbs_gaussian": "gibbs_diagonal gibbs_full gibbs_known gibbs_spherical",
    "mixtures.nodes": "half_precisions node_scores node_shares node_sums share_nodes sweep_nodes tell_apart unpack",
    "mixtures.partitions": "improve_partition overlaps together",
    "mixtures.soft_assignment": "add_squares collect soften subtract_squares weighted_scores",
    "mixtures.whitened": "assign_rows gains_apart",
    "mixtures.wishart": "best_sticks stick_terms wishart_divergence wishart_form wishart_posterior wishart_view",
    "rows.exact_sums": "carry_sums extent_csr extent_dense move_csr move_dense read_sums sum_costs",
    "rows.hashes": "find_content hash_csr hash_dense",
    "rows.sums": (
        "add_csr add_dense distance_csr distance_dense measure_dense own_csr own_dense tally two_means_dense"
    ),
    "rows.tree": (
        "alike_dense halve_dense leading_dense leading_packed mean_dense part_nodes place_rows "
        "second_diag second_full sum_rows"
    ),
    "rows.tree_csr": "alike_csr halve_csr leading_csr mean_csr",
    "rows.tree_sample": "key_rows sample_rows",
    "topics.cell_moves": "collapse_cells",
    "topics.facility_location": "place_documents",
    "topics.hard_topics": "count_labels fold_in mend_documents merge_changes",
    "topics.hdp_cells": "paper_cells paper_clusters",
    "topics.leave_one_out": "close_documents close_words",
    "topics.powers": "raise_rows",
    "topics.soft_topics": "add_columns likeliest soft_documents soft_words",
    "topics.topic_seeds": "gain_of_seeds",
}
HOME = {name: file for file, names in FILES.items() for name in names.split()}
NAMES = sorted(HOME)
