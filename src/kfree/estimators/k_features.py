"""KFeatures: rows as sums of some of K means."""

from contextlib import closing

from kfree.estimators._endings import all_or_nothing
from kfree.estimators._features import BinaryFeatures
from kfree.estimators._spread import given_rows
from kfree.estimators._spread_features import of_features
from kfree.models.parameter_tables import K_FEATURES
from kfree.rows import set_span_threads


class KFeatures(BinaryFeatures):
    r"""K binary latent features: each row is the sum of the means of the features it has, plus noise.

    Minimises

    .. math:: J = \sum_n w_n \| x_n - z_n A \|^2, \qquad z_n \in \{0, 1\}^K

    over the allocation Z and the means A. A row may have none, one or many of the features; with exactly one each
    it would be k-means. Restarts run Algorithm 4 of [1]_; by default each is followed by a polish with the means
    solved for at every visit, and by swaps of a feature for a new one.

    Parameters
    ----------
    n_components : int, default=8
        Number of features, K.
    algorithm : {"extended", "paper"}, default="extended"
        "paper" is Algorithm 4 and nothing else: about a hundred times faster a restart, and often far from the best.
    row : {"exact", "coordinate"}, default="exact"
        How a row chooses its features: the best of all 2^K combinations (by a table up to K = 12, by a sphere decoder
        beyond), or one sweep of single bits as the paper prints it.
    base : {"auto", "intercept"} or bool, default="auto"
        Whether the first feature of a start is the mean, shared by all rows; "auto": in every other restart.
        "intercept": a mean of all rows is fitted beside the K features, as ``intercept_``.
    init : "auto", array (n, K) or tuple of arrays (Z, A), default="auto"
        "auto" draws features in the manner of k-means++; or an allocation, with means or without.
    n_init : int, default=10
        Restarts, of which the best counts.
    max_iter : int, default=300
        Most passes of a run.
    max_time : float, default=None
        Seconds after which the best so far is returned.
    random_state : int, RandomState or None, default=None
        Seeds the restarts. None always makes the same choices: fits are repeatable.
    n_jobs : int, default=None
        Restarts at a time, through joblib; the result does not depend on it.
    verbose : int, default=0
        1 prints every restart, 2 every pass.

    Attributes
    ----------
    components_ : array (K, p)
        Means of the features.
    intercept_ : array (p,)
        Zeros unless ``base="intercept"``.
    Z_ : array (n, K), uint8
        Which row has which feature; columns by decreasing weight of their rows.
    n_components_ : int
        K.
    counts_ : array (K,)
        Rows that have each feature, whatever they weigh; none if nothing was left for it, and then its mean is zero.
    inertia_, objective_ : float
        J.
    explained_ : float
        ``1 - inertia_ / sum of squares of X``.
    objective_trace_ : array
        J after each step of the best restart; never rises.
    restarts_ : list
        ``(objective, n_components, seconds)`` of each restart; on a sample where the table is long.
    n_iter_ : int
        Steps of the best restart.
    converged_ : bool
        Whether it came to rest.

    See Also
    --------
    BPMeans : K found by a price.
    StepwiseKFeatures : K found by growing.

    References
    ----------
    .. [1] Broderick, Kulis & Jordan (2013), MAD-Bayes: MAP-based asymptotic derivations from Bayes, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import KFeatures
    >>> A = np.array([[4.0, 4.0, 0.0, 0.0], [0.0, 3.0, 3.0, 0.0], [1.0, 0.0, 0.0, 5.0]])
    >>> Z = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0]])
    >>> X = np.repeat(Z, 5, axis=0) @ A
    >>> model = KFeatures(3).fit(X)
    >>> bool(model.inertia_ < 1e-9), model.transform(X[:1] + 0.1).sum()
    (True, np.uint64(1))
    """

    _parameters = K_FEATURES

    def __init__(
        self,
        n_components=8,
        *,
        algorithm="extended",
        row="exact",
        base="auto",
        init="auto",
        n_init=10,
        max_iter=300,
        max_time=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.algorithm = algorithm
        self.row = row
        self.base = base
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find K features of the rows of X.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
            A Dask array (of arrays or CSR matrices) or dataframe is fitted where its blocks lie: features are searched
            for in a sample of the rows, and closed by passes over all. ``Z_`` is then a Dask array, and what is said
            of restarts and paths is that of the sample (a path on the scale of all rows).
        y : ignored
        sample_weight : array (n,), default=None
            Weights of rows; rows of weight 0 are left out and get their best features afterwards.
            Together at most 1e16 times the smallest positive one.

        Returns
        -------
        self
        """
        self._check_parameters()
        with (
            self._running() as budget,
            all_or_nothing(self),
            set_span_threads(),
            closing(given_rows(self, X, sample_weight)) as rows,
        ):
            problem, K = rows.bind(of_features(self)), int(self.n_components)
            goal = self._goal(problem, row=self.row, K=K)
            fitted = problem.fit_fixed(K, goal, self._seed(), budget)
            self._publish(fitted, rows, budget)
        self._warn(budget, fitted)
        return self
