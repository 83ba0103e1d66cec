"""The constants of the choice of how many clusters, in one place."""

from typing import NamedTuple


class HowManyNumbers(NamedTuple):
    """Constants of the choice. Those marked "speed" change how long it takes and nothing that is found."""

    # rows that are looked at
    #: Rows at most. Set: spec/how-many.md, section 1.
    rows: int = 10_000
    #: Different rows that they are drawn from: of longer tables, those that come first in a race. Set: by hand, twice
    #: the rows.
    contents: int = 20_000
    #: Entries of them at most, but not fewer rows for that than the second. Set: by hand, time.
    entries: tuple[int, int] = (4_000_000, 2000)
    #: Pseudo-observations at the centre of all rows in every cluster, where clusters could exclude rows else. Set:
    #: spec/auto-lam.md.
    smoothing: float = 0.05

    # the path of solutions
    #: Clusters at most that are chosen among. Set: spec/how-many.md, section 1.
    clusters: int = 256
    #: Different rows that there must be for each of them. Set: spec/how-many.md, section 1.
    rows_each: int = 15
    #: Clusters up to which there are settled solutions even of tables with fewer rows for each. Set: by hand, on wine
    #: and iris.
    settled: int = 64
    #: Entries of their centres, but not fewer clusters for that than the second. Set: by hand, time.
    centre_entries: tuple[int, int] = (400_000, 32)
    #: Ratio of the numbers of clusters that are always looked at. Set: spec/how-many.md, section 1.
    ratio: float = 2**0.5
    #: Passes of k-means after centres were added, for more clusters than the last number, and after merges. Set:
    #: spec/auto-lam.md.
    passes: tuple[int, int, int, int] = (3, 2, 4, 64)
    #: Candidates for each new centre, for K up to 16, 64 and above. Set: spec/auto-lam.md.
    candidates: tuple[int, int, int] = (8, 4, 2)
    #: Pairs whose merge is evaluated exactly before the cheapest is made. Set: by hand.
    contenders: int = 4
    #: Numbers of clusters between two known ones that are looked at in one go. Set: spec/how-many.md, section 1.
    between: int = 8
    #: One in so many of the rows may be a cluster on the path that a price or n_clusters asks for, and one in so many
    #: of the entries is for settled solutions. Set: by hand, time.
    share: int = 4

    # the choice
    #: Rows of a cluster that counts. Set: spec/how-many.md, section 2 (one outlier scores near 1).
    fewest: int = 8
    #: Tables without groups that are made up of each of two kinds. Set: spec/how-many.md, section 1 (ten in all).
    draws: int = 8
    #: Rows of those that give the standard deviation, where there are more than twice as many. Set: spec/how-many.md,
    #: section 2.
    small: int = 1000
    #: Tables of as many rows as are looked at that are made up of each kind then. Set: spec/how-many.md, section 2.
    full_draws: int = 1
    #: Standard deviations between the table and those made up. Set: spec/how-many.md, section 1, on controls.
    clear: float = 3.5
    #: What the score must gain where there are twice as many clusters. Set: spec/how-many.md, section 5.
    doubling: float = 0.01
    #: Times the best number up to which clusters may show groups with a gap, of which there are then no fewer clusters.
    #: Set: benchmarks auto, half A; finer groups are structure inside of clusters.
    coarse: float = 4.0
    #: Columns above which rows are looked at on the axes of centres. Set: spec/how-many.md, section 3.
    wide: int = 100
    #: How many centres give the axes. Set: spec/how-many.md, section 3.
    axes: int = 32
    #: Numbers of clusters that are shown at most where one is the answer. Set: by hand, what fits into a warning.
    shown: int = 6

    # speed
    #: (speed) Rows a thread takes at a time. Set: by hand.
    share_rows: int = 2500


HOW_MANY = HowManyNumbers()
