"""The constants of the sampler of partitions."""

from typing import NamedTuple


class GibbsNumbers(NamedTuple):
    """Constants of GibbsDPMixture."""

    #: Splits and merges proposed after each sweep. Set: by hand, effective samples a second on small tables.
    proposals: int = 5
    #: Samples that new rows are asked about, evenly spread over all. Set: by hand, the error of a mean.
    asked: int = 200
    #: Entries of the parameters of the clusters of these samples together: 160 MB. Set: memory of small machines.
    entries: float = 2e7
    #: Columns of scores kept for clusters that a sweep opens, as a share of those there are. Set: by hand.
    room: float = 0.5


GIBBS = GibbsNumbers()
