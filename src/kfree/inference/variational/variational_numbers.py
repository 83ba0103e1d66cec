"""The constants of variational mixtures, in one place."""

from typing import NamedTuple


class VariationalNumbers(NamedTuple):
    """Constants of variational mixtures. Those marked "speed" change how long a fit takes and nothing that is found."""

    # growth
    #: Components that weigh no more are not split. Set: spec/variational.md, section 7.
    least_mass: float = 2.0
    #: Components with less weight are dropped: F changes by rounding. Set: spec/variational.md, section 7.
    empty: float = 1e-10
    #: Fall of F that counts as a share of its size, if the user wants that. Set: spec/variational.md, section 7.
    relative_tol: float = 1e-5
    #: Share of F below which a fall is none. Set: rounding of float64.
    rounding: float = 1e-13
    #: Share of a fall that counts that an update of single rows must gain, or it is the last. Set: spec/variational.md,
    #: section 7; not for nodes since commit "nodes settle as far as a fall counts".
    fine: float = 0.1
    #: Share of what tied rows leave in doubt that an update must gain, or it is the last. Set: commit "a split finds
    #: the rows it was tried on".
    rough: float = 0.05
    #: A split that has further to fall than this many times its last step is given up. Set: commit
    #: "VariationalDPMixture: the estimator".
    hopeless: float = 50
    #: A proposal stands while the weight of its component has changed by no more than this share. Set: commit "greedy
    #: growth".
    stale: float = 0.01
    #: Share of what the best split gains that others must gain to be made along with it. Set: commit "clear splits are
    #: made together".
    as_good: float = 0.25
    #: Share of what splits promise one by one that they must gain together. Set: commit "clear splits are made
    #: together".
    kept: float = 0.5
    #: Updates after splits, where single rows are as many as a tree wants and the prior is learned: it is growth that
    #: brings most, and everything settles at its end. Set: by hand on shuttle, where F' is 18.60 nats a row with two of
    #: them and 18.54 with three; 18.55 when updates went on for as long as they gained a twentieth of what splits had.
    passing: int = 3
    #: Updates on finer rows until components are looked at that these may not need. Set: commit "components that finer
    #: rows do not need".
    soon: int = 3
    #: Exact updates of all rows that a polish makes. Set: by hand; spec/variational.md, section 11, says k.
    polish: int = 10

    # a prior that is learned
    #: The prior is moved when there are so many times the components of when it was moved last. Set:
    #: spec/mixture-priors.md, section 3.
    learn_again: float = 1.25
    #: Times that it is moved then. Set: spec/mixture-priors.md, section 3.
    learn_in_passing: int = 2
    #: Times that it is moved, at most, when growth has ended. Set: spec/mixture-priors.md, section 3.
    learn_at_end: int = 10
    #: Times that growth may end and begin again with another prior. Set: spec/mixture-priors.md, section 3.
    learn_rounds: int = 3
    #: Falls of F that count, that the penalised F must have fallen by for that. Set: spec/mixture-priors.md, section 3.
    learn_worth: float = 10.0
    #: Least variance of a component that a prior may expect, as a share of that of the column. Set:
    #: spec/mixture-priors.md, section 4.
    least_variance: float = 1e-6

    # the guard that F does not rise
    #: Rounding of the divergence of a component over that of sums over rows of the same size. Set: commit "rounding of
    #: divergences".
    divergence_rounding: float = 1e-4
    #: Sums of this size may be wrong by one nat for all the guard cares. Set: the rounding that ``loop`` allows.
    nat: float = 1e9

    # splits
    #: Shares of a component below this take no part when its split is tried. Set: spec/variational.md, section 7.
    least_share: float = 1e-3
    #: Updates of the children before a split is judged. Set: spec/variational.md, section 7.
    child_updates: int = 10
    #: Children are updated while they gain more than a fall that counts over this. Set: spec/variational.md, section 7.
    child_fine: float = 10
    #: Share of what a component costs that a split must bring back on coarse rows, or it will not pay on finer ones,
    #: either. Set: commit "half of what a component costs".
    clear: float = 0.5
    #: Times that rows are refined for a split in doubt. Set: commit "nearly Gaussian".
    closer: int = 4
    #: The same for a component that is not what it should be. Set: commit "nearly Gaussian".
    closest: int = 12
    #: Columns up to which a covariance is formed to find its leading direction. Set: commit "samples of nodes chosen by
    #: place".
    explicit_columns: int = 64
    #: Products with rows, beyond that, after which a direction is taken as found. Set: commit "greedy growth".
    products: int = 30
    #: One less the cosine of two directions that are the same. Set: commit "greedy growth".
    same_direction: float = 1e-6
    #: Share of the squares of rows that may be left of their variance by rounding. Set: rounding of float64.
    no_variance: float = 1e-12

    # removals
    #: Updates of the others before a removal is judged. Set: commit "that do not pay on finer nodes".
    removal_updates: int = 5
    #: Times its own divergence that the rows of a component may lose at first if it is to be tried without it. Set:
    #: commit "slight components are tried without".
    removal_hope: float = 3.0
    #: Or nats per row and column. Set: commit "slight components are tried without".
    removal_slight: float = 0.1
    #: Shares of a component below this are not looked at when it is asked what would be lost. Set: commit "in one group
    #: neither is missed".
    removal_share: float = 1e-6

    # nodes of a tree
    #: Rows from which on accelerate="auto" takes the tree. Set: benchmarks variational.
    auto_rows: int = 20_000
    #: Rows a column that it also wants, or nodes stay too wide to save anything. Set: benchmarks variational.
    auto_rows_per_column: int = 100
    #: Columns beyond which nodes of few rows save nothing from the start. Set: commit "with few rows a column".
    wide_columns: int = 64
    #: Rows a column, beyond that, below which they are few. Set: commit "with few rows a column".
    rows_per_column: int = 20
    #: Levels a tree is expanded by at first. Set: commit "starts at depth five"; spec/variational.md, section 11, says
    #: four.
    depth: int = 5
    #: Levels that nodes are expanded by at a time. Set: commit "expanded by a few levels".
    levels: int = 4
    #: Times that nodes are looked at for each number of components while these are too few. Set: commit "that do not
    #: pay on finer nodes".
    looks: int = 1
    #: Share of the weight in nodes of one row, or its copies, from which on nodes save nothing. Set: commit "Rows take
    #: over".
    single_rows: float = 0.2
    #: The same of nodes as a share of the rows, where the prior is learned: an update costs as much for one node as for
    #: four (9 columns) to six rows (50). Set: by hand on shuttle and MNIST.
    most_nodes: float = 0.15
    #: Nats per row that the split of a node must gain. Set: spec/variational.md, section 10.
    gain: float = 0.01
    #: The same per column and row of all rows. Set: commit "the same for copies and weights".
    least_gain: float = 1e-4
    #: Total variation of q between a node and its children, for the paper's rule. Set: spec/variational.md, section 10.
    change: float = 0.1
    #: Standard errors by which the mean distance of a node's rows may exceed its expectation. Set: spec/variational.md,
    #: section 10.
    misfit: float = 3.0
    #: Nats per row and column by which it may do so in any case. Set: commit "hopeless splits are given up".
    slack: float = 0.03
    #: Part of the gain of a node that siblings may lose if they are joined. Set: spec/variational.md, section 11.
    join_loss: float = 0.1
    #: Standard errors of misfit that their parent may have. Set: spec/variational.md, section 11.
    join_misfit: float = 2.0
    #: Share of the tolerances that is left when nodes are refined at the end. Set: commit "refine refines".
    finer: float = 0.1
    #: Part of the slack below which gains are not trusted while growing. Set: commit "row by row once growth has
    #: ended".
    doubt: float = 0.1
    #: Times the weight of its component that stands for the weight of all rows when a node is looked at closely. Set:
    #: commit "row by row once growth has ended".
    lighter: float = 4.0
    #: Rows of a node that are looked at closely. Set: commit "of large nodes a sample".
    sample: int = 1024
    #: The same while growing. Set: commit "while growing nodes are asked".
    glance: int = 64
    #: (speed) Rows that are looked at in one go. Set: commit "while growing nodes are asked".
    together: int = 16_384
    #: Rows a column from which on a component that is not Gaussian is worth a closer look. Set: commit "nearly
    #: Gaussian".
    ample: int = 50
    #: Share of what a component costs that others in its place must promise to be looked for. Set: commit "nearly
    #: Gaussian".
    pays: float = 0.1
    #: Standard errors by which a moment must differ from a Gaussian's. Set: commit "nearly Gaussian".
    moment_errors: float = 5.0
    #: Standard deviations, and one, by which a squared length may exceed its expectation: farther rows are of other
    #: components. Set: commit "nearly Gaussian".
    far_rows: float = 10.0

    # sweeps
    #: (speed) Columns up to which compiled loops beat products and LAPACK. Set: commit "over nodes compiled".
    few_columns: int = 64
    #: (speed) Entries of whitened rows held at a time: they should stay in the cache until they are squared. Set: the
    #: cache; commit "greedy growth".
    held: int = 65_536
    #: (speed) Columns of a product that whitens rows for several components. Set: commit "greedy growth".
    product_columns: int = 1024
    #: Relative rounding of whitened rows above which rows are centred for each component. Set: commit "greedy growth".
    far: float = 1e-10
    #: (speed) Nodes a column from which on directions that tell components apart are worth making. Set: commit
    #: "directions that tell them apart".
    nodes_per_column: int = 4
    #: (speed) Entries these may have. Set: commit "directions that tell them apart".
    direction_entries: int = 1_000_000
    #: (speed) Nodes x components x columns from which on threads share the nodes. Set: commit "shared among threads".
    worth_threads: int = 1_000_000
    #: (speed) Parts they are shared in. Set: commit "shared among threads".
    thread_parts: int = 8

    # what is accepted
    #: Largest concentration: beyond it differences of digamma functions have too few digits. Set: rounding of float64.
    most_concentration: float = 1e8
    #: Smallest concentration: below it digamma functions overflow beside weights. Set: range of float64.
    least_concentration: float = 1e-100
    #: Most that the second of a pair of concentrations may be times the first: beyond it differences of digamma
    #: functions have too few digits. Set: rounding of float64.
    most_ratio: float = 1e8
    #: Counts from which on likelihoods are measured beside those under a reference: below it logs of factorials lose
    #: less than 1e-8 nats. Set: rounding of float64.
    large_count: float = 2.0**20
    #: Most that rounding of sums of squares may be beside what the prior adds to them; with the default prior weights
    #: of 1e15 are below it. Set: rises of F were at most 0.3 of what is allowed.
    most_blur: float = 20.0
    #: Largest sum of weights: beyond it too few digits are left for the prior, which keeps covariances from being
    #: singular. Set: rounding of float64.
    most_weight: float = 1e15


VARIATIONAL = VariationalNumbers()
