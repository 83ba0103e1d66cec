"""The constants of DP-means and its search, each with what it is and where it was set."""

from typing import NamedTuple


class ClusterNumbers(NamedTuple):
    """Constants of DP-means. Those marked "speed" change how long a fit takes and nothing that is found."""

    # assignment
    #: (speed) Entries of centres from which it is worth while to see which of them have moved. Set: benchmarks sparse.
    large_centres: int = 20_000
    #: (speed) Entries of a temporary (rows x centres x columns) where the formula decides. Set: by hand, the cache.
    exact_entries: int = 250_000
    #: (speed) Share of rows that single precision may leave open before it is given up. Set: benchmarks passes.
    doubts: float = 0.2
    #: (speed) Rows of a list that a thread takes at a time: at least, at most. Set: by hand.
    list_share: tuple[int, int] = (2048, 16384)
    #: (speed) Entries times centres up to which all products take less time than bounds. Set: benchmarks overlap.
    quick: int = 6_000_000

    # all
    #: Rounds of moves, of extremes, of a search, of openings in a stream: they end by themselves. Set: benchmarks
    #: constants, hardly ever reached.
    rounds: int = 30

    # growth
    #: Plain passes between two openings. Set: spec/batch.md, sections 2 and 6 (L).
    pause: int = 2
    #: Times the threshold within which of a new centre no other row opens one. Set: spec/batch.md, sections 2 and 6.
    exclusion: float = 2.0
    #: (speed) Passes made in one call, between looks at the clock. Set: by hand.
    passes_at_once: int = 32
    #: (speed) Openers that are compared with each other in one piece: at first, and at most. Set: benchmarks serial.
    opener_pieces: tuple[int, int] = (32, 32_768)

    # samples
    #: Distinct rows of the first sample. Set: spec/batch.md, sections 2 and 6 (m0).
    first_sample: int = 2000
    #: Distinct rows of the last sample, at most. Set: spec/batch.md, section 2.
    last_sample: int = 50_000
    #: How many times larger each sample is than the one before. Set: spec/batch.md, section 2 (g).
    sample_growth: int = 5
    #: Times the rows of a sample that a table must have. Set: spec/batch.md, section 2 (stop).
    sample_margin: int = 2
    #: The largest sample a table allows is looked at if it is so many times the one before. Set: benchmarks overlap.
    sample_worth_while: int = 3
    #: Share of the weight that may still change label on a sample. Set: benchmarks overlap.
    sample_tol: float = 0.003
    #: The same on a sample with extremes. Set: spec/batch.md, section 2 (tol_a).
    extreme_tol: float = 0.0005
    #: Passes over a sample, at most. Set: by hand, never reached.
    sample_passes: int = 300
    #: Distinct rows of a sample that there must be for each cluster. Set: spec/batch.md, section 2.
    rows_per_cluster: int = 10
    #: Distinct rows of a sample up to which gaps inside clusters are looked for. Set: benchmarks overlap.
    gaps_up_to: int = 10_000
    #: Share of lam that rows may lie short of it to join the last sample as extremes. Set: spec/batch.md, section 2.
    extremes_from: float = 0.1
    #: Extremes may be one in so many of the rows of the last sample. Set: spec/batch.md, section 2.
    extremes_share: int = 4

    # merges
    #: Share of the smaller of two clusters that may lie beyond lam of their joint centre. Set: spec/batch.md, 3.
    strays: float = 0.02
    #: Others that a cluster may merge with: its closest ones. Set: benchmarks convergence.
    neighbours: int = 8
    #: Times lam beyond which another cluster is out of reach. Set: by hand.
    out_of_reach: float = 10.0
    #: Times lam below which a rise that is only roughly known is looked at again. Set: by hand, rounding of entropies.
    rough_rise: float = 1.5
    #: Closest clusters that may be the other half of one. Set: benchmarks overlap.
    closest: int = 3
    #: Distinct rows of each of two clusters that tell whether they are halves of one: first a few, then many. Set: by
    #: hand, time.
    halves_rows: tuple[int, int] = (64, 512)
    #: (speed) Entries of a temporary when pairs of clusters are compared. Set: by hand, the cache.
    pair_entries: int = 100_000

    # cuts in two
    #: Share of variance between two sides from which they are two clusters: 0.64 for a halved Gaussian, 0.75 for a
    #: uniform, 0.8 for two Gaussians 4 sd apart. Set: spec/batch.md, sections 3 and 6 (r*), benchmarks constants.
    clarity: float = 0.8
    #: How often the judges of a cloud without a valley may see one. Set: benchmarks overlap.
    valley: float = 0.01
    #: Judges from which a cluster may be whole: so many, and so many a column. Set: benchmarks convergence.
    many_judges: tuple[int, int] = (64, 4)
    #: Standard error of a share of variance, times the root of the rows it is from: 0.34 for a halved Gaussian. Set:
    #: benchmarks constants.
    share_error: float = 0.35
    #: Pairs of seeds tried in each cluster. Set: spec/batch.md, section 2.
    trials: int = 4
    #: Steps of two-means after seeding. Set: spec/batch.md, section 2.
    steps: int = 4
    #: Share of the whole that is mixed into centres which else exclude rows. Set: by hand.
    soft: float = 0.1
    #: Entries of a table up to which its rounding is dithered away, so that valleys can be told. Set: by hand, memory.
    dither_entries: int = 4_000_000
    #: Rounding that matters, as a share of the range of a column. Set: by hand.
    coarse: float = 1e-5
    #: (speed) Entries of a table up to which all trials are made in one go. Set: benchmarks overlap.
    trial_entries: int = 200_000

    # gaps inside clusters
    #: Parts whose valleys are looked for at a time; halvings go on until there could be as many. Set: by hand, time.
    gap_parts: int = 256
    #: Times lam that a halving must gain for its halves to be halved: each rarely gains half of it. Set: by hand.
    gap_gain: float = 2.0
    #: Pairs of seeds tried in each halving. Set: by hand, time.
    gap_trials: int = 1
    #: Passes of k-means over the parts. Set: by hand.
    gap_passes: int = 3

    # rows that move one at a time
    #: A row leaves its cluster, and a cluster is split, only for a gain above this share of what is at stake.
    #: Set: rounding of float64.
    least_gain: float = 1e-10
    #: Share of a part that may be left of a sum without it by rounding. Set: rounding of float64.
    nothing_left: float = 1e-12
    #: Times the lightest weight beyond which a row stays where it is: sums would lose what it leaves behind.
    #: Set: rounding of float64.
    too_heavy: float = 1e12
    #: Rounding of entropies, as a share of lam, with which they still tell where a row belongs. Set: by hand.
    entropy_rounding: float = 1e-4
    #: (speed) Rows evaluated together, and visited in one call. Set: by hand.
    row_block: int = 128
    #: (speed) Entries of a temporary (rows x clusters x columns). Set: by hand, the cache.
    row_entries: int = 500_000
    #: (speed) Entropies formed in one call, between looks at the clock. Set: by hand.
    entropies: int = 2_000_000
    #: (speed) Squared distances by column formed in one call, between looks at the clock. Set: by hand.
    distances: int = 20_000_000

    # stronger search
    #: Entries (rows x clusters x columns) up to which every row is tried one at a time. Set: by hand, time.
    every_row: float = 2e8
    #: Times those entries from which none is: one row weighs next to nothing among so many. Set: by hand, time.
    no_row: float = 100.0
    #: Times its own cost within which another centre contests a row. Set: by hand.
    contested: float = 2.0
    #: Rows above which a search for a price is made on a sample. Set: by hand, time.
    search_up_to: int = 100_000

    # the end, streams and seeds
    #: Times that clusters are put in canonical order, which decides ties, which decide their weights. Set: by hand.
    orderings: int = 5
    #: Quartiles of how far rows are from their centres. Set: Tukey's fences.
    quartiles: tuple[float, float] = (0.25, 0.75)
    #: Times their distance beyond the upper one from which rows are novel. Set: Tukey's outer fence.
    fence: float = 3.0
    #: Share of the weight of a batch's novel rows that may still change label. Set: benchmarks stream.
    stream_tol: float = 1e-3
    #: Passes over the novel rows of a batch. Set: by hand.
    stream_passes: int = 100
    #: Share of its excess by which a row may lie short of the farthest one to count as equally far. Set: rounding.
    equally_far: float = 1e-10
    #: Rows that are asked whether they exclude all others. Set: by hand.
    probes: int = 16


CLUSTERS = ClusterNumbers()
