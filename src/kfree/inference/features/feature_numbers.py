"""The constants of binary features."""

from typing import NamedTuple


class FeatureNumbers(NamedTuple):
    """Constants of features. Those marked "speed" change how long a fit takes and nothing that is found."""

    #: A change below this share of the squared lengths is rounding: the present state is kept.
    #: Set: spec/features.md, section 2.
    tie: float = 1e-12
    #: A residual, or a difference of sums, below this share of the sum of squares counts as none.
    #: Set: rounding of float64.
    rounding: float = 1e-14
    #: Objectives that differ by less than this share of the sum of squares are equal. Set: by hand.
    same: float = 1e-10
    #: A trial must be better by this share of the sum of squares. Set: by hand.
    better: float = 1e-9
    #: Inertia below this share of the sum of squares about the mean is a perfect fit. Set: by hand.
    perfect: float = 1e-12
    #: Inertia below this share of the sum of squares leaves nothing for a swap to find. Set: by hand.
    exhausted: float = 1e-13
    #: A share of the sum of squares about the mean below which rounding decides. Set: rounding of float64.
    far: float = 1e-12
    #: The sum of the weights over the smallest up to which normal equations are solved and rows taken out of their
    #: inverse: its rounding times this is what ``loop`` allows an objective. Set: rounding of float64.
    even: float = 1e7
    #: The same up to which there is a fit: rounding of the means costs its square times this, a rounding of the sum.
    #: Set: rounding of float64.
    most_uneven: float = 1e16
    #: Sums of squares below this are too near to the smallest numbers to be worked with. Set: range of float64.
    smallest: float = 1e-290
    #: Sums of squares above this are too near to the largest numbers: products with features are sums of many of them.
    #: Set: range of float64.
    largest: float = 1e296

    #: Features up to which all rows of bits are looked at. Set: spec/features.md, section 6.
    most_exhaustive: int = 12
    #: Nodes after which the sphere decoder keeps the best row that it has found. Set: spec/features.md, section 6.
    nodes: int = 100_000
    #: Nodes in all rows of a pass together. Set: by hand.
    nodes_of_pass: int = 20_000_000
    #: Nodes that a row gets in any case, and all it gets while moves are tried. Set: by hand.
    least_nodes: int = 500
    #: The mean is a first feature by itself if it has this share of the sum of squares.
    #: Set: spec/features.md, section 4.
    base_share: float = 1e-8

    #: Failures in a row after which moves end. Set: spec/features.md, section 10.
    patience: int = 15
    #: Moves at a price, in turn. Set: by hand.
    moves: tuple[str, ...] = ("swap", "swap", "grow", "swap", "shrink")
    #: A feature to take out is drawn as if it cost at least this share of the dearest. Set: by hand.
    least_cost: float = 1e-12
    #: Rows up to which a polish may give single rows features of their own. Set: benchmarks features.
    few_rows: int = 64
    #: Rows up to which an allocation is polished with the means solved for at every visit. Set: by hand.
    polish_rows: int = 8192
    #: Entries up to which sparse rows are made dense for that. Set: by hand.
    polish_entries: int = 20_000_000

    #: Rows of the sample on which moves are tried. Set: by hand.
    sample_rows: int = 1024
    #: Entries above which there is a sample, and about as many as it has. Set: by hand.
    sample_entries: int = 200_000
    #: Least rows of a sample. Set: by hand.
    least_sample: int = 512
    #: Searches of the sample that are brought to the whole table. Set: by hand.
    brought: int = 3
    #: Searches whose objectives differ by less than this share count as one there. Set: by hand.
    distinct: float = 1e-9

    #: Restarts for each number of features where a price is chosen. Set: by hand.
    survey_restarts: int = 3
    #: Most features looked at where a price is chosen. Set: by hand.
    survey_most: int = 20
    #: Rows that there must be for each of them. Set: by hand.
    rows_each: int = 3
    #: A window of prices this wide (high over low) ends the search, a bit beyond its number of features. Set: by hand.
    clear: float = 3.0
    #: How far beyond: this many times as many features, ... Set: by hand.
    beyond_times: float = 1.5
    #: ... and this many more. Set: by hand.
    beyond_more: int = 3
    #: Windows reach down to this share of their top. Set: by hand.
    deep: float = 1e-6
    #: A widest window narrower than this says little. Set: by hand.
    narrow: float = 1.5

    #: (speed) Rows whose features are proposed together in BP-means. Set: by hand.
    block: int = 1024
    #: (speed) Passes over a small table between looks at the clock. Set: by hand.
    passes_together: int = 50
    #: (speed) The same of passes with the means solved for at every visit. Set: by hand.
    visits_together: int = 8
    #: (speed) Seconds between looks at threads that are to end. Set: by hand.
    look: float = 0.01
    #: (speed) Entries of the rows read at a time, so that a second product finds them in the cache. Set: by hand.
    span_entries: int = 1 << 18
    #: (speed) Least rows read at a time. Set: by hand.
    least_span: int = 64
    #: (speed) Work of an entry of a pass, in those that threads are worth while for. Set: by hand.
    entry_work: float = 0.5
    #: (speed) Entries up to which CSR tables are made dense, as products are then faster. Set: by hand.
    dense_entries: int = 1 << 25
    #: (speed) Multiplications up to which fewer columns are looked for. Set: by hand.
    column_work: float = 2e10
    #: (speed) Columns from which that is worth it. Set: by hand.
    least_columns: int = 32
    #: (speed) Share of the columns that must not be left for the change to pay. Set: by hand.
    fewer_columns: float = 0.8
    #: (speed) Sparse rows up to which products between all of them are formed. Set: by hand.
    gram_rows: int = 1024
    #: Singular values below this share of the largest are rounding. Set: rounding of float64.
    rank: float = 1e-13


FEATURES = FeatureNumbers()
