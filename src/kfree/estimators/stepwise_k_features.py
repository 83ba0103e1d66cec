"""StepwiseKFeatures: binary latent features, one more at a time."""

from contextlib import closing

from kfree.estimators._endings import all_or_nothing
from kfree.estimators._features import BinaryFeatures
from kfree.estimators._spread import given_rows
from kfree.estimators._spread_features import of_features
from kfree.models.parameter_tables import STEPWISE_K_FEATURES
from kfree.rows import set_span_threads


class StepwiseKFeatures(BinaryFeatures):
    r"""Binary latent features, their number found by growing: one more feature as long as it pays.

    Minimises the objective of :class:`BPMeans`, :math:`F_K = J_K + \mathrm{lam} \cdot K`, where :math:`J_K` is the
    least inertia of K features. The path of J_K does not depend on lam except for where it stops: it is kept as
    ``path_`` and serves every lam.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        Price of a feature; larger gives fewer features. "auto" takes the middle of the widest window of prices over
        which one number of features stays best.
    max_components : int, default=None
        Most features to look at; None: until it no longer pays, with "auto" at most 20 and a third of the rows.
    patience : int, default=1
        Rises of F_K in a row after which growing stops (1 as in [1]_, which holds if J_K is convex).
    algorithm : {"extended", "paper"}, default="extended"
        As in :class:`KFeatures`. With both, one extra start for each K grows the solution of K - 1, so that J_K never
        rises.
    row, base, max_iter, max_time, random_state, n_jobs, verbose
        As in :class:`KFeatures`.
    n_init : int, default=3
        Restarts for each K, besides the one that grows.

    Attributes
    ----------
    path_ : FeaturePath
        ``n_components``, ``inertia`` (J_K), ``objective`` (F_K), ``window`` (prices between which K is best),
        ``components``; ``best(lam)`` and ``plot()``.
    components_, intercept_, Z_, n_components_, counts_, lam_, lam_share_, lam_window_, inertia_, objective_,
    explained_, objective_trace_, n_iter_, converged_
        As in :class:`BPMeans`.
    restarts_ : list
        ``(objective, n_components, seconds)`` of each restart of each K; the objective is J.

    References
    ----------
    .. [1] Broderick, Kulis & Jordan (2013), MAD-Bayes: MAP-based asymptotic derivations from Bayes, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import StepwiseKFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(60, 3)) @ (5 * np.eye(3, 6)) + rng.normal(size=(60, 6)) / 5
    >>> model = StepwiseKFeatures().fit(X)
    >>> model.n_components_
    3
    >>> bool((np.diff(model.path_.inertia) <= 0).all()), model.path_.best(model.lam_)
    (True, 3)
    """

    _parameters = STEPWISE_K_FEATURES

    #: Growing starts from nothing; there is no parameter for it.
    init = "auto"

    def __init__(
        self,
        lam="auto",
        *,
        max_components=None,
        patience=1,
        algorithm="extended",
        row="exact",
        base="auto",
        n_init=3,
        max_iter=300,
        max_time=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.lam = lam
        self.max_components = max_components
        self.patience = patience
        self.algorithm = algorithm
        self.row = row
        self.base = base
        self.n_init = n_init
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Grow the number of features of the rows of X.

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
        most = self.max_components
        with (
            self._running() as budget,
            all_or_nothing(self),
            set_span_threads(),
            closing(given_rows(self, X, sample_weight)) as rows,
        ):
            problem, seed = rows.bind(of_features(self)), self._seed()
            goal = self._goal(problem, row=self.row)
            if isinstance(self.lam, str):
                fitted = problem.fit_stepwise_auto(most, goal, seed, budget)
            else:
                fitted = problem.fit_stepwise(float(self.lam), int(self.patience), most, goal, seed, budget)
            self._publish(fitted, rows, budget)
        self._warn(budget, fitted)
        return self
