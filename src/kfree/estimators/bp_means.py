"""BPMeans: binary latent features at a price; their number is found."""

from contextlib import closing

from kfree.estimators._endings import all_or_nothing
from kfree.estimators._features import BinaryFeatures
from kfree.estimators._sklearn import check_plain_table, weight_of
from kfree.estimators._spread import given_rows
from kfree.estimators._spread_features import of_features
from kfree.models.checks import check_number
from kfree.models.parameter_tables import BP_MEANS
from kfree.rows import set_span_threads


class BPMeans(BinaryFeatures):
    r"""Binary latent features; their number is found: every feature costs ``lam``.

    Minimises

    .. math:: F = \sum_n w_n \| x_n - z_n A \|^2 + \mathrm{lam} \cdot K, \qquad z_n \in \{0, 1\}^K

    over the number of features K, the allocation Z and the means A. A row may have none, one or many features.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        Price of a feature: what it must save, over all rows together. Larger gives fewer features. "auto" grows the
        number of features and takes the middle of the widest window of prices over which one number stays best.
    algorithm : {"extended", "paper", "collapsed"}, default="extended"
        "paper" is Algorithm 1 of [1]_: rows in order, a new feature where a single residual exceeds lam. "collapsed"
        is Algorithm 3: the means are solved for at every visit. "extended" starts with both, drops features that do
        not pay, and tries features that several rows share, and swaps.
    row : {"auto", "exact", "coordinate"}, default="auto"
        How a row chooses its features: the best of all 2^K combinations (by a table up to K = 12, by a sphere decoder
        beyond), or one sweep of single bits. "auto" is "coordinate" for ``algorithm="paper"``, as it is printed, and
        "exact" for the others.
    base : {"auto", "intercept"} or bool, default="auto"
        Whether the first feature of a start is the mean, shared by all rows; "auto": in every other restart.
        "intercept": a mean of all rows is fitted beside the features, as ``intercept_``; it costs nothing.
    init : {"auto", "empty"}, array (n, K) or tuple of arrays (Z, A), default="auto"
        "auto" draws features in the manner of k-means++ as long as they pay; "empty" starts without features; or
        an allocation, with means or without.
    n_init : int, default=10
        Restarts, of which the best counts.
    shuffle : bool, default=False
        Visit the rows in a random order, drawn once for each restart ("paper" and "collapsed").
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
        Which row has which feature; columns by decreasing weight of their rows, linearly independent.
    n_components_ : int
        K, which may be 0.
    counts_ : array (K,)
        Rows that have each feature, whatever they weigh.
    lam_, lam_share_ : float
        The price, and the price as a share of the sum of squares of X, which does not depend on units.
    lam_window_ : tuple of float or None
        With ``lam="auto"`` the prices between which that number of features is best.
    inertia_, objective_ : float
        Sum of squared residuals, and F.
    explained_ : float
        ``1 - inertia_ / sum of squares of X``.
    objective_trace_ : array
        F after each step of the best restart; never rises.
    path_ : FeaturePath or None
        With ``lam="auto"`` the path the price was chosen from.
    restarts_ : list
        ``(objective, n_components, seconds)`` of each restart; on a sample where the table is long.
    n_iter_ : int
        Steps of the best restart.
    converged_ : bool
        Whether it came to rest.

    See Also
    --------
    KFeatures : K given.
    StepwiseKFeatures : K found by growing.
    lam_for_n_components : A price that gives K features.

    References
    ----------
    .. [1] Broderick, Kulis & Jordan (2013), MAD-Bayes: MAP-based asymptotic derivations from Bayes, Sections 3 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import BPMeans
    >>> A = np.array([[4.0, 4.0, 0.0, 0.0], [0.0, 3.0, 3.0, 0.0], [1.0, 0.0, 0.0, 5.0]])
    >>> Z = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0]])
    >>> X = np.repeat(Z, 5, axis=0) @ A + np.random.default_rng(0).normal(size=(40, 4)) / 10
    >>> model = BPMeans(10.0).fit(X)
    >>> model.n_components_, model.Z_.shape
    (3, (40, 3))
    >>> bool(np.allclose(model.inverse_transform(model.Z_), X, atol=0.5))
    True
    """

    _parameters = BP_MEANS

    def __init__(
        self,
        lam="auto",
        *,
        algorithm="extended",
        row="auto",
        base="auto",
        init="auto",
        n_init=10,
        shuffle=False,
        max_iter=300,
        max_time=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.lam = lam
        self.algorithm = algorithm
        self.row = row
        self.base = base
        self.init = init
        self.n_init = n_init
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find the features of the rows of X, and how many there are.

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
        lam = None if isinstance(self.lam, str) else float(self.lam)
        row = self.row if self.row != "auto" else "coordinate" if self.algorithm == "paper" else "exact"
        with (
            self._running() as budget,
            all_or_nothing(self),
            set_span_threads(),
            closing(given_rows(self, X, sample_weight)) as rows,
        ):
            problem, seed = rows.bind(of_features(self)), self._seed()
            goal = self._goal(problem, row=row, shuffle=bool(self.shuffle), lam=lam)
            fitted = (problem.fit_auto if lam is None else problem.fit_priced)(goal, seed, budget)
            self._publish(fitted, rows, budget)
        self._warn(budget, fitted)
        return self


def lam_for_n_components(X, n_components, *, sample_weight=None, base="auto", n_init=3, random_state=None, n_jobs=None):
    """The price lam for which K features are best: the counterpart of :func:`lam_for_k` for features.

    Grows the number of features to a few more than asked and returns the geometric middle of the window of prices
    in which K gives the least objective. It is a *price* on the scale of the objective, which a feature's rows pay
    together; the birth test of ``BPMeans(algorithm="paper")`` compares it with a single row's residual, for which it
    is large.

    Parameters
    ----------
    X : array or CSR matrix (n, p)
    n_components : int
        K, at least 1.
    sample_weight : array (n,), default=None
        As in :meth:`BPMeans.fit`.
    base, n_init, random_state, n_jobs
        As in :class:`StepwiseKFeatures`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import BPMeans, lam_for_n_components
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(60, 3)) @ (5 * np.eye(3, 6)) + rng.normal(size=(60, 6)) / 5
    >>> lam = lam_for_n_components(X, 3)
    >>> BPMeans(lam).fit(X).n_components_
    3
    """
    check_number("n_components", n_components, least=1, integer=True)
    X, sample_weight = check_plain_table(X), weight_of(X, sample_weight)
    if n_components >= X.shape[0]:
        raise ValueError(f"n_components={n_components} features need more than {X.shape[0]} rows to have a price.")
    model = BPMeans(base=base, n_init=n_init, random_state=random_state, n_jobs=n_jobs)
    model._check_parameters()
    K = int(n_components)
    with model._running() as budget, set_span_threads():
        problem = model._problem(X, sample_weight)
        lam, inertia = problem.price_of(K, model._goal(problem, row="exact"), model._seed(), budget)
    if budget.interrupted:  # there is no price, and no model that could do without
        raise KeyboardInterrupt
    if lam is None:
        J = ", ".join(f"{value:.4g}" for value in inertia)
        raise ValueError(
            f"No lam makes {K} features best: the inertia for 0, 1, 2, ... features is {J}, and another number is "
            "always better. Ask for another n_components, or use KFeatures."
        )
    return lam
