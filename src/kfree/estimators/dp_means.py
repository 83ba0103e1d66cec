"""DPMeans: clusters without K, for every Bregman divergence."""

from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._base import HardClusters, finite_part
from kfree.estimators._endings import all_or_nothing
from kfree.estimators._sklearn import check_table, check_weighted_table
from kfree.estimators._spread import (
    Rows,
    blocks_of,
    by_block,
    given_rows,
    labels_within,
    of_clusters,
    refuse_batch,
)
from kfree.inference.clusters.fit import FREE_OF_ORDER
from kfree.inference.clusters.how_many.choose import Choice
from kfree.inference.goal import Order, Search
from kfree.inference.loop import attempt
from kfree.models.clusters import Learned, Model, Problem, StreamRule
from kfree.models.explain_clusters import Found, explain
from kfree.models.how_many import Answer, Ask, choice_message, find_clusters
from kfree.models.parameter_tables import DP_MEANS
from kfree.models.sharded_scores import score_blocks
from kfree.models.sights import HardSight, Seen
from kfree.rows import set_span_threads
from kfree.rows.dask import is_dask

# More clusters than a tenth of the rows are hardly meant, unless there are few anyway.
_FEW, _ROWS_EACH = 4, 10


class DPMeans(HardClusters):
    r"""Clusters without K: hard clustering that opens a cluster wherever one pays for itself.

    Minimises over labels z and centres mu

    .. math:: J = \sum_i w_i D(x_i, \mu_{z_i}) + \mathrm{lam} \cdot K

    where K is the number of clusters in use and D any Bregman divergence. ``lam`` is what one more cluster
    costs; it takes the place of K. ``DPMeans()`` chooses it; pass ``n_clusters`` if you know the number, ``lam`` if you
    know what a cluster is worth, or ``radius`` if you know how far from its centre a row may be.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        Price of a cluster in J; larger gives fewer clusters. "auto" takes the number of clusters for which rows belong
        to their cluster most clearly, compared with made-up tables that have columns like yours but no groups, and a
        price for which that number is best. ``DPMeans(lam=model.lam_)`` finds the clusters of ``model`` again.
    n_clusters : int, default=None
        Exactly so many clusters, from the same path of solutions as a price.
    radius : float, default=None
        The papers' reading of their parameter: a row farther than this from every centre opens a cluster. J then has
        ``radius`` for lam, and only moves of single rows lower it. See :func:`radius_for_k`.
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
        splits; where the number of clusters comes from the path, one is split where two others are merged. "auto":
        "full"; with a radius the clear splits and paying merges that "batch" makes on its samples, and "points" for
        the other algorithms.
    init : {"auto", "mean", "farthest_first", "k-means++"} or array (K, p), default="auto"
        First centres. "auto": the solution of the path; with a radius "mean", the global centre. "farthest_first" and
        "k-means++" add rows until all are within lam, or the radius, of one, or there are ``n_clusters``.
    n_init : int, default=1
        Fits from different seeds; the one with the lowest penalised objective is kept. Deterministic settings
        are run once.
    outliers : bool, default=False
        Whether rows that no cluster is near, farther than ``radius_`` from every centre, get the label -1. Everything
        else stays as it is.
    match_to : fitted model or array (K, p), default=None
        Earlier clusters, or their centres in the units of the rows: clusters of this fit that are the same keep their
        numbers, so that next month's have last month's. The same are those whose earlier centre is no farther away
        than twice the mean divergence of rows from their centres, if it is nearest to it, or it to them. Numbers are
        always 0 to K-1: clusters that are new, or had a number beyond that, fill those that are free. ``matched_``
        tells which is which.
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
        Cluster of each training row, 0 to K-1, heaviest cluster first unless ``match_to`` says otherwise; equals
        ``predict(X)``.
    probabilities_ : array (n,)
        How strongly each training row belongs to its cluster: 1 at the centre, falling with the divergence to 0 at
        ``radius_`` and beyond. A strength, not strictly a probability.
    matched_ : array (K,) or None
        With ``match_to``: the number of the same cluster there, -1 for clusters that are new.
    cluster_centers_ : array (K, p)
        Centres, in the units of the rows (unit histograms for "kl", unit vectors for "cosine").
    cluster_weights_ : array (K,)
        Weight of the rows of each cluster.
    n_clusters_ : int
        K.
    lam_ : float or None
        The price used. With ``n_clusters`` one that finds the same clusters, or None if that number is best for no
        price; None with ``radius``.
    lam_window_ : tuple of float or None
        Prices between which this number of clusters is best, as far as the path tells.
    radius_ : float
        How far from every centre a row is novel. The given radius; else beyond the outer fence of the training rows
        (roots of their divergences, three times the distance of their quartiles beyond the upper one) and, where
        the next centre is farther than that, half-way to it on a scale of ratios; twice the fence with one cluster.
    choice_ : Choice or None
        With ``lam="auto"``: why so many. Numbers of clusters looked at, how clearly rows belong to their clusters there
        and in tables without groups, windows of prices, and ``suggestions``.
    n_groups_ : int or None
        With ``lam="auto"``: groups that certainly have a gap between them; often fewer than there are clusters.
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
    lam_path : Clusters for every number of them, and the prices for which it is best.
    lam_for_k : A price that gives k clusters.
    radius_for_k : The papers' radius for about k clusters.

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
    >>> model = DPMeans(n_clusters=3).fit(X)
    >>> model.labels_
    array([0, 0, 1, 1, 2], dtype=int32)
    >>> DPMeans(lam=model.lam_).fit(X).labels_
    array([0, 0, 1, 1, 2], dtype=int32)
    >>> model.decision_function([[20.0, 20.0]]) < 0  # farther than radius_ from every centre: novel
    array([ True])
    """

    _parameters = DP_MEANS
    _model: Model
    lam_: float | None
    radius_: float
    n_iter_: int
    matched_: Any

    def __init__(
        self,
        *,
        lam="auto",
        n_clusters=None,
        radius=None,
        divergence="sqeuclidean",
        algorithm="batch",
        order="random",
        search="auto",
        init="auto",
        n_init=1,
        outliers=False,
        match_to=None,
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
        self.n_clusters = n_clusters
        self.radius = radius
        self.divergence = divergence
        self.algorithm = algorithm
        self.order = order
        self.search = search
        self.init = init
        self.n_init = n_init
        self.outliers = outliers
        self.match_to = match_to
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
            Rows; pandas and polars frames, float32, integers and memory maps are taken as they are. Files that are
            larger than memory: :func:`kfree.read`. Dask collections are fitted where they are.
        y : ignored
        sample_weight : array (n,), default=None
            Weights; an integer weight equals repeating the row, 0 leaves it out. Others must be at least 1e-150, and
            at most 1e150 in sum; what values and weights may be is in docs/theory/families.md, "How large, how small".

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
            settings = self.divergence, self.weighting, self.smoothing, self.smoothing_mean
            problem = rows.bind(of_clusters(self, *settings))
            answer = find_clusters(problem, self._ask(problem), self._wish(problem), budget, self._seeds)
            publish = partial(self._publish, problem, answer, rows)
            attempt(publish, publish, budget)  # what was found is not given up for an interrupt in between
        self._warn(self._message(answer.choice, problem.n_active), budget)
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
        is fitted as by ``fit``, which also gives ``radius_``: rows of later batches that are farther than it from every
        centre open clusters. Where the radius was not given it is a guess: if a batch shows a clear gap inside of a
        cluster, the cluster is parted and ``radius_`` estimated anew; if a batch opens more clusters than a tenth of
        its rows, a warning says so. With ``n_clusters`` their number stays.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
            In memory; the blocks of a Dask collection one after the other.
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        self
        """
        refuse_batch(X)
        if not hasattr(self, "_model"):
            with all_or_nothing(self):  # a batch that gives no radius has taught nothing
                self.fit(X, y, sample_weight=sample_weight)
                self._check_radius()
            return self
        self._check_parameters()
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            X, sample_weight = check_weighted_table(self, X, sample_weight, reset=False)
            if self.radius is not None:
                self.radius_ = float(self.radius)
            self._check_radius()
            most = min(np.inf if limit is None else limit for limit in (self.max_clusters, self.n_clusters))
            stream = StreamRule(self.radius_, most, estimated=self.radius is None and self.n_clusters is None)
            before = self.n_clusters_
            learned = self._model.absorb(X, sample_weight, self.weighting, stream, budget)
            publish = partial(self._publish_batch, learned, X)
            attempt(publish, publish, budget)  # as in fit
            if self.matched_ is not None:
                self.matched_ = np.append(self.matched_, np.full(self.n_clusters_ - before, -1))
            self.n_iter_ += 1
        self._warn(self._stream_message(self.n_clusters_ - before, X.shape[0]), budget)
        return self

    @by_block(np.int32)
    def predict(self, X):
        """Nearest centre of each row; never opens a cluster.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n,) of int32
            With ``outliers=True``, -1 for rows farther than ``radius_`` from every centre.
        """
        check_is_fitted(self)
        with set_span_threads():
            return self._labels(check_table(self, X, reset=False))

    @by_block(np.float64)
    def decision_function(self, X):
        """``radius_`` less the divergence from the nearest centre: negative for novel rows, which no cluster is near.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        with set_span_threads():
            cost = self._model.nearest(check_table(self, X, reset=False))[1]
        return np.where(np.isinf(cost), -np.inf, self.radius_ - np.where(np.isinf(cost), 0.0, cost))

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
        if is_dask(X):
            with blocks_of(self, X, sample_weight) as blocks:
                return score_blocks(blocks, self._model, self.weighting)
        X, sample_weight = check_weighted_table(self, X, sample_weight, reset=False)
        with set_span_threads():
            return self._model.score(X, sample_weight, self.weighting)

    def explain(self):
        """Why there are so many clusters, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        found = Found(self.n_clusters_, self.lam_, self.lam_window_, self.radius_, self.cluster_weights_)
        return explain(Ask(self.lam, self.n_clusters, self.radius), found, self.choice_)

    def _labels(self, X: Any) -> Any:
        """Clusters of checked rows, -1 for outliers if they are wanted."""
        return labels_within(self._model, self.radius_ if self.outliers else np.inf, X)

    def _seen(self, X: Any, **asked: Any) -> Seen:
        return Seen(HardSight(self._model), self._labels(X), self.weighting)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        chosen = isinstance(self.lam, str)
        given = {"lam": None if chosen else self.lam, "n_clusters": self.n_clusters, "radius": self.radius}
        words = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        if len(words) > 1:
            raise ValueError(f"Each of {' and '.join(words)} says how many clusters there are. Pass one of them.")

    def _ask(self, problem: Problem) -> Ask:
        """How many clusters are wanted, and from where the fit starts."""
        return Ask(self.lam, self.n_clusters, self.radius, self._first(problem))

    def _first(self, problem: Problem) -> Any:
        """The user's ``init``, or the centres of the last fit."""
        if not (self.warm_start and hasattr(self, "_model")):
            return self.init
        most = np.inf if self.max_clusters is None else self.max_clusters
        given = self.cluster_centers_[: int(min(most, self.n_clusters_))]
        if self.n_clusters is not None and len(given) != self.n_clusters:
            return self.init
        try:
            problem.check_centres(given)
        except ValueError as error:
            raise ValueError(
                f"warm_start=True cannot go on from the centres of the last fit: {error} Set warm_start=False."
            ) from None
        return given

    def _wish(self, problem: Problem) -> dict[str, Any]:
        """Fields of the goal: what the parameters say, the number of clusters and the start apart."""
        search = Search.CLEAR if self.radius is not None else Search.FULL
        if self.search != "auto":
            search = Search(self.search)
        order = problem.check_order(self.order)
        if self.algorithm in FREE_OF_ORDER:
            order = Order.CONTENT  # the row moves of a stronger search must not bring back the order of the rows
        return {**self._limits(), "algorithm": self.algorithm, "search": search, "order": order}

    def _publish(self, problem: Problem, answer: Answer, rows: Rows) -> None:
        """Write every fitted attribute, once."""
        fitted = answer.fitted
        self._model, self.labels_ = Model.of(problem, fitted, fitted.fence), rows.labels(fitted.labels)
        matched = self._match(self._model, float(fitted.inertia))
        self.matched_ = None if matched is None else matched.earlier
        if matched is not None:
            self._model = self._model.reordered(matched.order)
            # ties go to the lower number, which may be another one now
            self.labels_ = rows.ask(partial(labels_within, self._model, np.inf), np.int32)
        self.lam_, self.lam_window_ = answer.lam, answer.window
        self.radius_ = self._model.radius() if self.radius is None else float(self.radius)
        self.choice_ = answer.choice
        self.n_groups_ = None if answer.choice is None else answer.choice.n_groups
        self.inertia_, self.objective_ = float(fitted.inertia), float(fitted.objective)
        self.objective_trace_ = finite_part(fitted.trace)
        self.n_iter_ = max(1, fitted.n_iter)
        self.converged_ = fitted.converged
        self.family_ = problem.family
        self._publish_model()
        self.probabilities_ = rows.strengths(problem, self._model, self.labels_, self.radius_)
        if self.outliers:
            self.labels_ = rows.ask(partial(labels_within, self._model, self.radius_), np.int32)

    def _publish_batch(self, learned: Learned, X: Any) -> None:
        """Write what one more batch has changed."""
        self._model, self.radius_, self.labels_ = learned.model, learned.radius, learned.labels
        self._publish_model()
        self.probabilities_ = learned.strengths
        if self.outliers:
            self.labels_ = self._labels(X)
        self.inertia_ = learned.inertia
        self.objective_ = learned.inertia + learned.prior + self._price() * self.n_clusters_
        self.objective_trace_ = np.array([self.objective_])
        self.converged_ = learned.complete

    def _price(self) -> float:
        """What a cluster adds to the objective."""
        if self.radius is not None:
            return self.radius_
        return 0.0 if self.lam_ is None else self.lam_

    def _check_radius(self) -> None:
        if not self.radius_ > 0:
            raise ValueError(
                "partial_fit needs a first batch whose rows differ, to see how far apart rows of a cluster are. "
                "Pass a larger first batch, or radius."
            )

    def _message(self, choice: Choice | None, n: int) -> str:
        """What the user should know of the number of clusters."""
        if choice is not None:
            return choice_message(choice, lambda K, _: f"DPMeans(n_clusters={K})")
        if self.n_clusters is not None or self.n_clusters_ <= max(_FEW, n / _ROWS_EACH):
            return ""
        value = self.radius if self.radius is not None else self.lam
        text = f"{self.n_clusters_} clusters for {n} rows: {self._ask_word()} is small for these rows."
        if float(value).is_integer() and 1 < value < n:
            text += f" If {value:g} was meant as the number of clusters, pass n_clusters={int(value)}."
        return text + " DPMeans() chooses the number, and lam_path(X) shows what prices lead to."

    def _stream_message(self, opened: int, n: int) -> str:
        """What the user should know of the clusters that a batch has opened."""
        if self.radius is not None or opened <= max(_FEW, n / _ROWS_EACH):
            return ""
        return (
            f"This batch of {n} rows opened {opened} clusters: radius_={self.radius_:.4g}, which the first batch gave, "
            "is small for it. Fit a first batch that is more like what follows, or pass radius."
        )

    def _ask_word(self) -> str:
        return Ask(self.lam, self.n_clusters, self.radius).word

    def _publish_model(self) -> None:
        self.cluster_centers_ = self._model.centres
        self.cluster_weights_ = self._model.mass
        self.n_clusters_ = self.cluster_centers_.shape[0]
