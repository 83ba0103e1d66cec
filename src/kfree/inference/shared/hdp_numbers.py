"""The constants of the hard HDP, each with what it is and where it was set."""

from typing import NamedTuple


class HDPNumbers(NamedTuple):
    """Constants of HDP-means. Those marked "speed" change how long a fit takes and nothing that is found."""

    # passes
    #: (speed) Rows visited together: at first, and at most. Set: benchmarks hdp.
    blocks: tuple[int, int] = (256, 65_536)
    #: (speed) Entries of the costs of rows that are visited together. Set: by hand, the cache.
    cost_entries: int = 2_000_000
    #: (speed) Rows of a block that may open a cluster. Set: by hand.
    block_openers: int = 64
    #: (speed) Rows a thread compares with new centres at a time. Set: by hand.
    list_share: int = 16_384
    #: (speed) Groups that hold at most one in so many clusters are first looked at with those. Set: benchmarks hdp.
    few_held: int = 4
    #: (speed) Rows whose costs a thread computes at a time. Set: by hand.
    cost_rows: int = 1024
    #: (speed) Entries of the local clusters held at a time. Set: by hand, memory.
    part_entries: int = 4_000_000
    #: Share of its rows' divergence from the anchor that a local cluster must gain to open a global one: with
    #: lam_global = 0 the rounding of its mean would open one in every pass. Set: rounding of float64.
    part_gain: float = 1e-12
    #: Rounds of the closing assignment: hardly any fit needs more than two. Set: by hand, never reached.
    closing_rounds: int = 100

    # stronger search
    #: Rounds of moves and passes. Set: by hand, never reached.
    search_rounds: int = 30
    #: Entries (rows x clusters x columns) up to which rows and local clusters move one at a time. Set: by hand, time.
    one_by_one: float = 2e8
    #: Entries of all local clusters up to which splits between them are looked for. Set: by hand, time.
    split_entries: float = 5e7
    #: Clusters up to which every pair is tried for a merge; above, the closest of each. Set: by hand, time.
    all_pairs: int = 100
    #: Shares that a group too large for one block may change in a round. Set: by hand, time.
    share_changes: int = 4
    #: What a move must gain, as a share of what is at stake. Set: rounding of float64.
    least_gain: float = 1e-9
    #: (speed) Rows that move one at a time, evaluated together. Set: benchmarks hdp.
    row_block: int = 512
    #: (speed) Pairs of clusters whose union is evaluated together. Set: by hand, the cache.
    pair_block: int = 4096

    # prices from the data
    #: Least share of the price of a cluster that is paid once: below it groups would rather not share.
    #: Set: benchmarks hdp_quality.
    least_share: float = 0.5
    #: Rounds in which lam_local and the number of local clusters are fitted to each other. Set: by hand, never reached.
    price_rounds: int = 8
    #: Ratio of two values of lam_local that fit. Set: by hand.
    price_fits: float = 1.02
    #: Rows of whole groups on which local clusters are counted. Set: by hand, time.
    price_rows: int = 200_000
    #: Times the clusters that came with prices from the data that a search may end with, or it has run away. Set: by
    #: hand.
    runaway: float = 1.25


HDP = HDPNumbers()
