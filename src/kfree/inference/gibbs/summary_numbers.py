"""The constants of what is said of samples."""

from typing import NamedTuple


class SummaryNumbers(NamedTuple):
    """Constants of summaries of samples."""

    #: Rows up to which the matrix of all pairs is made: 8 bytes a pair, 200 MB. Set: memory of small machines.
    dense_rows: int = 5000
    #: Rows x samples up to which point estimates look at all samples: 4 bytes each. Beyond, at as many as that, evenly
    #: spread over the chains. Set: memory of small machines.
    entries: float = 1e8
    #: Rows x samples x candidates up to which the expected loss of every partition that was visited is measured: less
    #: than a second. Beyond, of as many as that, evenly spread over the chains. Set: by hand.
    comparisons: float = 5e8
    #: Entries of the counts that the search of one row after the other keeps: 4 bytes each. Beyond, it looks at as many
    #: samples as that, and what it finds is measured on all. Set: memory of small machines.
    counts: float = 5e7
    #: Clusters that this search may open beyond those of where it starts, and as a share of those. Set: by hand.
    more_clusters: int = 4
    #: See above. Set: by hand.
    more_share: float = 0.25
    #: Most passes of this search. It ends by itself, mostly after three. Set: by hand.
    passes: int = 100
    #: (speed) Rows whose pairs with others are counted at a time. Set: by hand.
    rows: int = 64
    #: (speed) Partitions whose loss is measured at a time. Set: by hand.
    candidates: int = 16
    #: Split R-hat above which chains have not reached the same distribution.
    #: Set: Gelman et al., Bayesian Data Analysis (2013), section 11.4.
    most_rhat: float = 1.1
    #: Effective samples of each chain below which means are too uncertain, and R-hat too.
    #: Set: ten a chain, Gelman et al., Bayesian Data Analysis (2013), section 11.5; here for those not split.
    least_ess: float = 10.0


SUMMARIES = SummaryNumbers()
