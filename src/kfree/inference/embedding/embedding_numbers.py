"""Constants of mixtures that are fitted by matching kernel means."""

from typing import NamedTuple


class EmbeddingNumbers(NamedTuple):
    """Constants of KernelDPMixture."""

    # the programme

    #: Optimality gap, in units of the mean squared length of candidates, above which a solution is no solution. Set:
    #: spec/embedding.md, section 5.
    most_gap: float = 1e-8
    #: Gap at which a solution is not looked at again. Set: rounding of float64.
    small_gap: float = 1e-14
    #: Gap with which a solution that was followed from another one will do. Set: by hand.
    path_gap: float = 1e-12
    #: Ridge, in the same units, that is taken if candidates repeat and the user's is too small. Set:
    #: spec/embedding.md, section 5.
    least_ridge: float = 1e-12
    #: Ridges that "auto" chooses from. Set: spec/embedding.md, section 8.
    ridges: tuple[float, ...] = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    #: Parts of the rows of which each is held out in turn. Set: by hand.
    folds: int = 5
    #: Candidates with less weight are none. Set: spec/embedding.md, section 10.
    support: float = 1e-8

    # units of columns: samples are drawn by the content of rows, of which the last digits of sums must be no part

    #: Steps of the means that are subtracted, in units of deviations. Set: rounding of float64.
    shift_step: float = 2.0**-10
    #: Steps of the deviations that are units of columns, as shares of a power of two. Set: rounding of float64.
    scale_step: float = 2.0**-20

    # the kernel

    #: Neighbour whose distance is the bandwidth, "local". Set: spec/embedding.md, section 8.
    neighbour: int = 20
    #: Rows whose neighbours are looked for, and pairs of rows of which the median is taken. Set: spec/embedding.md,
    #: section 8.
    pairs: int = 2000

    # candidates

    #: Numbers of clusters that are tried. Set: by hand.
    grains: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    #: Grains in a row that may predict rows worse before finer ones are given up. Set: by hand.
    patience: int = 2
    #: Rows that there must be for each cluster of a grain. Set: by hand.
    rows_each: int = 15
    #: Soft passes that follow upon a hard clustering. Set: by hand.
    soft_passes: int = 10
    #: Multiplications up to which soft passes are made on all rows that were drawn; beyond, on fewer. Set: by hand,
    #: time.
    soft_work: float = 2e10
    #: Rows at least that soft passes are made on. Set: by hand.
    soft_rows: int = 1000
    #: Cosine of the angle between the kernel means of two candidates above which they are one. Set: by hand.
    same: float = 0.99
    #: Candidates that are drawn, "local" and "prior". Set: spec/embedding.md, section 7.
    drawn: int = 200
    #: Candidates that are drawn without being asked for, at most. Set: by hand, time.
    most_drawn: int = 5000
    #: Neighbours of a row from which a "local" candidate is made. Set: spec/embedding.md, section 7.
    near_rows: int = 20
    #: Squared norm of what is cut off that decides how many are drawn at least, "prior". Set: by hand.
    truncation: float = 1e-6
    #: Largest concentration: more candidates than anybody can have. Set: as VariationalDPMixture.
    most_concentration: float = 1e8
    #: Least variance of a component, as a share of that of each column. Set: by hand.
    floor: float = 1e-6
    #: The same as a share of the variance of all columns, for columns that do not vary. Set: by hand.
    flat: float = 1e-12
    #: Standard deviation of a component where rows do not differ. Set: as VariationalDPMixture.
    bare: float = 0.1

    # rows

    #: Kernel evaluations up to which all are made; beyond, random features stand for the kernel. Set:
    #: spec/embedding.md, section 4.
    evaluations: float = 5e7
    #: Random features for each candidate, and at least. Set: spec/embedding.md, section 4; by hand.
    features_each: int = 4
    #: Random features at least. Set: by hand.
    least_features: int = 2000
    #: (speed) Entries of a temporary over rows. Set: by hand, a million rows by features: four times as many leave the
    #: cache, and memory is asked for anew for each block.
    entries: int = 250_000

    # moving

    #: Rounds in which weights and components are fitted in turn. Set: by hand.
    rounds: int = 20
    #: Steps of L-BFGS in a round. Set: by hand.
    steps: int = 50
    #: Share of the objective that a round must gain, or it is the last. Set: by hand.
    gain: float = 1e-5

    # the test

    #: Rows of the fit that are kept to compare others with. Set: by hand, memory.
    kept_rows: int = 2000
    #: Permutations of rows for which statistics are found together. Set: by hand, memory.
    permuted: int = 1000
    #: Share of the mean of the kernel by which statistics of equal tables may differ. Set: rounding of float64.
    rounding: float = 1e-12


EMBEDDING = EmbeddingNumbers()
