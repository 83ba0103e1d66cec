"""What a fit is to reach and what it may do for it: one record from the estimator to the innermost loop."""

from enum import Enum
from typing import NamedTuple

import numpy as np

from kfree.families import Array


class Order(Enum):
    """In which order rows are visited one at a time."""

    RANDOM = "random"  # a fresh permutation for every pass
    INDEX = "index"
    CONTENT = "content"  # by hashes of their content, so that neither copies nor the order of the table matter


class Search(Enum):
    """Which moves are made besides those of single rows to their nearest centres."""

    POINTS = "points"  # none, as in the papers
    CLEAR = "clear"  # clear splits and paying merges where "batch" looks for a start: on samples, or all of a few rows
    POLISH = "polish"  # after the fit: rows one at a time with the centres following, and merges
    FULL = "full"  # and splits


class Start(Enum):
    """First centres that are not given."""

    MEAN = "mean"  # one: the centre of all rows
    FARTHEST_FIRST = "farthest_first"  # rows farthest from those chosen before, until all are within lam of one
    KMEANS_PLUS_PLUS = "k-means++"  # rows drawn by their divergence from those chosen before, until the same


class Goal(NamedTuple):
    """What the user wants, resolved."""

    lam: float  # what one more cluster adds to the objective
    lam_local: float = 0.0  # what it adds for each group of rows that holds it (hard HDP)
    tol: float = 1e-4  # share of the weight that may still change label
    max_iter: int = 300  # passes over all rows
    max_clusters: float = np.inf
    algorithm: str = "batch"  # a name of ALGORITHMS
    search: Search = Search.POINTS
    order: Order | Array = Order.CONTENT  # or a permutation of the rows
    start: Start | Array = Start.MEAN  # or centres (K, p) in the geometry of the table
    samples: bool = False  # "batch" looks for a better start on samples
    paired: bool = False  # the start comes with the number of clusters: a search keeps it
