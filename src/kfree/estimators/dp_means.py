"""DPMeans: clusters without K, for every Bregman divergence."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._base import HardClusters, finite_part
from kfree.estimators._endings import all_or_nothing
from kfree.estimators._sklearn import check_table
from kfree.inference.clusters.fit import ALGORITHMS, FREE_OF_ORDER, Fitted
from kfree.inference.goal import Order, Search
from kfree.inference.loop import Budget, attempt
from kfree.models.checks import check_choice, check_number
from kfree.models.clusters import Aim, Model, Problem
from kfree.rows import set_span_threads

_SEARCHES = ("auto", "points", "polish", "full")


class DPMeans(HardClusters):
    r"""Clusters without K: hard clustering that opens a cluster wherever one pays for itself.

    Minimises over labels z and centres mu

    .. math:: J = \sum_i w_i D(x_i, \mu_{z_i}) + \mathrm{lam} \cdot K

    where K is the number of clusters in use and D any Bregman divergence. ``lam`` is what one more cluster
    costs; it takes the place of K.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        Price of a cluster, in units of the divergence; larger gives fewer clusters. "auto" counts the groups that
        have a real gap between them and takes the lam for which about that many clusters stay best over the widest
        range. See :func:`lam_for_k` for a value that gives about k clusters and :func:`lam_path` for all values.
    divergence : str or Family, default="sqeuclidean"
        "sqeuclidean", "mahalanobis", "kl" (rows become histograms), "poisson", "bernoulli", "binomial",
        "itakura_saito", "negative_binomial", "cosine" (not a Bregman divergence), or an instance of a
        :class:`kfree.Family`, also of your own.
    algorithm : {"batch", "serial", "delayed", "collapsed"}, default="batch"
        "batch" grows on samples chosen by row content and descends on all rows: deterministic, free of row order,
        fast. "serial" is the papers' sweep over rows in ``order``; "delayed" opens one cluster a pass; "collapsed"
        moves rows one at a time with the centres following: slow, but it leaves minima where the others stay.
    order : {"random", "index"} or permutation, default="random"
        Order in which "serial" and "collapsed" visit the rows.
    search : {"auto", "points", "polish", "full"}, default="auto"
        "points": only moves of rows, as in the papers. "polish": also collapsed moves and merges. "full": also
        splits. "auto": "full" with ``lam="auto"``; with a given lam the clear splits and paying merges that
        "batch" makes on its samples, and "points" for the other algorithms.
    init : {"auto", "mean", "farthest_first", "k-means++"} or array (K, p), default="auto"
        First centres. "mean": the global centre. "farthest_first" and "k-means++" add rows until all are within lam
        of one. "auto": the solution that came with ``lam="auto"``, else "mean". From given or seeded centres "batch"
        descends at once: it takes no samples, so ``search="auto"`` neither splits nor merges.
    n_init : int, default=1
        Fits from different seeds; the one with the lowest penalised objective is kept. Deterministic settings
        are run once.
    weighting : {"none", "length", "relative"}, default="none"
        For "kl": rows count alike ("none", as in the papers), by their total ("length", the multinomial
        likelihood), or by their total over its mean ("relative"). Only for "kl".
    smoothing : float, default=0.0
        Weight of a pseudo-observation at ``smoothing_mean`` in every cluster. Wanted for sparse histograms, where
        a cluster's zero would exclude a row for good.
    smoothing_mean : array (p,), default=None
        Where it lies; the mean of the data by default.
    max_clusters : int, default=None
        Never open more than this many.
    max_iter : int, default=300
        Most passes over all rows.
    tol : float, default=1e-4
        Share of the weight that may still change label when a fit stops; 0 runs to the fixed point.
    max_time : float, default=None
        Seconds after which the best so far is returned.
    warm_start : bool, default=False
        Start from the centres of the last fit, whatever ``init`` says. Clusters open, but do not merge unless
        ``search`` is "polish" or "full".
    random_state : int, RandomState or None, default=None
        Seeds ``order="random"`` and ``init="k-means++"``; nothing else is random.
    verbose : int, default=0
        1 prints every pass over all rows, 2 also those over samples.

    Attributes
    ----------
    labels_ : array (n,)
        Cluster of each training row, 0 to K-1, heaviest cluster first; equals ``predict(X)``.
    cluster_centers_ : array (K, p)
        Centres, in the units of the rows (unit histograms for "kl", unit vectors for "cosine").
    cluster_weights_ : array (K,)
        Weight of the rows of each cluster.
    n_clusters_ : int
        K.
    lam_ : float
        The lam used.
    lam_window_ : tuple of float or None
        With ``lam="auto"``: the range of lam over which this number of clusters is best.
    n_groups_ : int or None
        With ``lam="auto"``: how many groups with a gap between them were seen.
    inertia_, objective_ : float
        Weighted sum of divergences; the same with the penalty (and the prior's share, if smoothing).
    objective_trace_ : array
        Objective after each pass over all rows; never rises. The last value is ``objective_``. First passes whose
        centres exclude rows, so that it is infinite, are left out.
    n_iter_ : int
        Passes over all rows.
    converged_ : bool
        Whether ``tol`` was reached.
    family_ : Family
        The divergence, with what it took from the data.

    See Also
    --------
    lam_for_k : The lam that gives about k clusters.
    lam_path : Clusters over a range of lam.

    References
    ----------
    .. [1] Jiang, Kulis & Jordan (2012), Small-variance asymptotics for exponential family Dirichlet process
       mixture models, Section 3 (the objective is their eq. 3).
    .. [2] Kulis & Jordan (2012), Revisiting k-means: new algorithms via Bayesian nonparametrics, Algorithm 1.
    .. [3] Broderick, Kulis & Jordan (2013), MAD-Bayes, Algorithm 2 (``algorithm="collapsed"``).
    .. [4] Nguyen, Phung, Le & Venkatesh, Large sample asymptotic for nonparametric mixture model with count data
       (``divergence="kl"``).

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import DPMeans
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9], [9.0, 0.0]])
    >>> model = DPMeans(lam=2.0).fit(X)
    >>> model.n_clusters_
    3
    >>> model.labels_
    array([0, 0, 1, 1, 2], dtype=int32)
    >>> model.decision_function([[20.0, 20.0]]) < 0  # farther than lam from every centre: novel
    array([ True])
    """

    _model: Model
    lam_: float
    _price: bool  # lam_ was chosen from the data, as a price
    n_iter_: int

    def __init__(
        self,
        lam="auto",
        *,
        divergence="sqeuclidean",
        algorithm="batch",
        order="random",
        search="auto",
        init="auto",
        n_init=1,
        weighting="none",
        smoothing=0.0,
        smoothing_mean=None,
        max_clusters=None,
        max_iter=300,
        tol=1e-4,
        max_time=None,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        self.lam = lam
        self.divergence = divergence
        self.algorithm = algorithm
        self.order = order
        self.search = search
        self.init = init
        self.n_init = n_init
        self.weighting = weighting
        self.smoothing = smoothing
        self.smoothing_mean = smoothing_mean
        self.max_clusters = max_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find the clusters of the rows of X.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
            Rows; pandas and polars frames, float32, integers and memory maps are taken as they are.
        y : ignored
        sample_weight : array (n,), default=None
            Weights; an integer weight equals repeating the row, 0 leaves it out. Others must be at least 1e-150, and
            at most 1e150 in sum; what values and weights may be is in docs/families.md, "How large, how small".

        Returns
        -------
        self
        """
        self._check_parameters()
        budget = Budget(self.max_time, self._reporter())
        with all_or_nothing(self), set_span_threads():
            problem = self._problem(check_table(self, X, reset=True), sample_weight)
            aim = self._aim(problem, budget)
            best = problem.fit(aim.goal, budget, self._seeds(aim.goal))
            publish = partial(self._publish, problem, aim, best)
            attempt(publish, publish, budget)  # what was found is not given up for an interrupt in between
        self._warn(aim.message(budget), budget)
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit and return ``labels_``."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit and return the divergences of the rows from the centres."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def partial_fit(self, X, y=None, sample_weight=None):
        """Learn from one more batch: open the clusters it needs, and move the centres.

        Clusters keep their numbers and new ones are appended; ``labels_`` are those of this batch. The first batch
        is fitted as by ``fit``. With ``lam="auto"`` it also fixes ``lam_``: for a stream a radius, not a price, between
        the largest divergence of its rows from their centres and the smallest between two centres (``lam_window_``).
        The same after ``fit``.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        self
        """
        if not hasattr(self, "_model"):
            with all_or_nothing(self):  # a batch that gives no radius has taught nothing
                self.fit(X, y, sample_weight=sample_weight)
                self._use_radius()
            return self
        self._check_parameters()
        budget = Budget(self.max_time, self._reporter())
        with all_or_nothing(self), set_span_threads():
            X = check_table(self, X, reset=False)
            self._use_radius()
            most = np.inf if self.max_clusters is None else self.max_clusters
            lam = self.lam_ if isinstance(self.lam, str) else float(self.lam)
            self._model, labels, costs, complete = self._model.absorb(
                X, sample_weight, self.weighting, lam, most, budget
            )
            self.labels_, self.lam_ = labels, lam
            self.inertia_, self.objective_ = costs
            self.objective_trace_ = np.array([self.objective_])
            self.n_iter_ += 1
            self.converged_ = complete
            self._publish_model()
        self._warn("", budget)
        return self

    def predict(self, X):
        """Nearest centre of each row; never opens a cluster.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n,) of int32
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.nearest(X)[0]

    def decision_function(self, X):
        """``lam_`` less the divergence from the nearest centre: negative for rows that would open a cluster.

        After ``lam="auto"`` lam is a price, far above any single divergence; for novelty pass a radius
        (:func:`lam_for_k`, or the largest divergence you accept). With ``smoothing`` a cluster of one row costs more
        than lam, so rows open one only somewhat below 0.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            cost = self._model.nearest(X)[1]
        return np.where(np.isinf(cost), -np.inf, self.lam_ - np.where(np.isinf(cost), 0.0, cost))

    def score(self, X, y=None, sample_weight=None):
        """Minus the (weighted) mean divergence of the rows from their nearest centres; larger is better.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.score(X, sample_weight, self.weighting)

    def _check_parameters(self) -> None:
        if isinstance(self.lam, str):
            check_choice("lam", self.lam, ("auto",), "or a positive number")
        else:
            check_number("lam", self.lam, above=0.0, hint="Pass a positive number, or lam='auto'.")
        check_choice("algorithm", self.algorithm, tuple(ALGORITHMS))
        check_choice("search", self.search, _SEARCHES)
        self._check_common()

    def _aim(self, problem: Problem, budget: Budget) -> Aim:
        """What to fit, and from where."""
        wish, given = self._wish(problem), self.init
        if self.warm_start and hasattr(self, "_model"):
            given = self.cluster_centers_[: int(min(wish["max_clusters"], self.n_clusters_))]
            try:
                problem.check_centres(given)
            except ValueError as error:
                raise ValueError(
                    f"warm_start=True cannot go on from the centres of the last fit: {error} Set warm_start=False."
                ) from None
        return problem.aim(wish, self.lam, given, budget)

    def _wish(self, problem: Problem) -> dict[str, Any]:
        """Fields of the goal: what the parameters say, lam and the start apart."""
        if self.search != "auto":
            search = Search(self.search)
        elif isinstance(self.lam, str):  # a price, which only a search with splits can follow
            search = Search.FULL
        else:
            search = Search.CLEAR
        order = problem.check_order(self.order)
        if self.algorithm in FREE_OF_ORDER:
            order = Order.CONTENT  # the row moves of a stronger search must not bring back the order of the rows
        return {**self._limits(), "algorithm": self.algorithm, "search": search, "order": order}

    def _publish(self, problem: Problem, aim: Aim, fitted: Fitted) -> None:
        """Write every fitted attribute, once."""
        self._model = Model.of(problem, fitted, fitted.reach)
        self.labels_ = fitted.labels
        self.lam_, self._price = float(aim.goal.lam), isinstance(self.lam, str)
        self.lam_window_ = aim.window
        self.n_groups_ = aim.n_groups
        self.inertia_, self.objective_ = float(fitted.inertia), float(fitted.objective)
        self.objective_trace_ = finite_part(fitted.trace)
        self.n_iter_ = max(1, fitted.n_iter)
        self.converged_ = fitted.converged
        self.family_ = problem.family
        self._publish_model()

    def _use_radius(self) -> None:
        """Turn a price that was chosen from the data into a radius, as rows to come are judged one by one."""
        if not (self._price and isinstance(self.lam, str)):
            return
        price = self.lam_
        self.lam_, self.lam_window_ = self._model.radius()
        self._price = False
        self.objective_ += (self.lam_ - price) * self.n_clusters_
        self.objective_trace_ = np.array([self.objective_])

    def _publish_model(self) -> None:
        self.cluster_centers_ = self._model.centres
        self.cluster_weights_ = self._model.mass
        self.n_clusters_ = self.cluster_centers_.shape[0]
