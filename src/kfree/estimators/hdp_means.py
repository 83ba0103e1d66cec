"""HDPMeans: clusters shared by groups of rows."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._base import HardClusters, finite_part
from kfree.estimators._endings import all_or_nothing
from kfree.estimators._sklearn import check_table, check_weighted_table, refuse_dask
from kfree.inference.goal import Order, Search
from kfree.inference.loop import Budget, attempt
from kfree.inference.shared.groups import Groups, Lams, make_groups
from kfree.inference.shared.hdp_pass import SharedFit
from kfree.models.clusters import LocalProblem, Model
from kfree.models.explain_clusters import FoundShared, explain_shared
from kfree.models.group_names import GroupIndex, check_groups
from kfree.models.how_many import choice_message
from kfree.models.parameter_tables import HDP_MEANS
from kfree.models.profiles import is_frame
from kfree.models.shared import Locals, SharedAim, SharedModel
from kfree.models.sights import HardSight, Seen
from kfree.rows import set_span_threads


class HDPMeans(HardClusters):
    r"""Clusters shared by groups of rows: every group uses some of the clusters, and all draw on the same ones.

    Minimises over labels and centres mu

    .. math:: J = \sum_i w_i D(x_i, \mu_{z_i}) + \mathrm{lam\_local} \cdot T + \mathrm{lam\_global} \cdot K

    where K is the number of clusters in use, T the sum over groups of the number of clusters each one uses (its local
    clusters), and D any Bregman divergence.

    Parameters
    ----------
    lam_local : float or "auto", default="auto"
        Price of a cluster in each group that uses it; larger makes groups use fewer clusters. 0 makes groups
        irrelevant.
    lam_global : float or "auto", default="auto"
        Price of a cluster, once for all groups; larger makes groups share more. 0 clusters every group for itself.
        "auto" takes the price that :class:`DPMeans` finds for a cluster of all rows together; ``lam_local`` is that
        price divided by the number of groups that use a cluster on average.
    divergence : str or Family, default="sqeuclidean"
        As in :class:`DPMeans`.
    search : {"auto", "points", "full"}, default="auto"
        "points": the three-part passes of the papers: rows choose their clusters one after the other, local clusters
        choose their global ones, centres move. "full": also changes of what a group uses, moves of single rows and
        of local clusters with the centres following, merges and splits, whatever lowers J; it starts from the
        clusters of the pooled rows that cost least with these penalties, so that
        ``HDPMeans(model.lam_local_, model.lam_global_)`` finds those of ``model`` again. "auto": "full".
    order : {"random", "index"} or permutation, default="random"
        Order in which "points" visits rows; always group after group, the groups at random, rising, or as they first
        occur in the permutation. "full" has an order of its own, which does not depend on where rows stand.
    init : {"auto", "mean", "farthest_first", "k-means++"} or array (K, p), default="auto"
        First centres. "mean": the global centre, which every group uses. Others are used by no group at first:
        "farthest_first" and "k-means++" add rows until all are within ``lam_local + lam_global`` of one. "auto": the
        solution that came with the penalties, else "mean".
    n_init : int, default=1
        Fits from different seeds; the one with the lowest objective is kept. Deterministic settings are run once.
    match_to : fitted model or array (K, p), default=None
        Earlier clusters: those of this fit that are the same keep their numbers, as in :class:`DPMeans`.
    weighting, smoothing, smoothing_mean
        As in :class:`DPMeans`.
    max_clusters : int, default=None
        Never open more (global) clusters than this.
    max_iter : int, default=300
        Most passes over all rows.
    tol : float, default=1e-4
        Share of the weight that may still change label when a fit stops; 0 runs to the fixed point.
    max_time : float, default=None
        Seconds after which the best so far is returned.
    warm_start : bool, default=False
        Start from the centres of the last fit, whatever ``init`` says.
    random_state : int, RandomState or None, default=None
        Seeds ``order="random"`` and ``init="k-means++"``; nothing else is random.
    verbose : int, default=0
        1 prints every pass.

    Attributes
    ----------
    labels_ : array (n,)
        (Global) cluster of each training row, 0 to K-1, heaviest first; equals ``predict(X, groups=groups)``.
    matched_ : array (K,) or None
        With ``match_to``: the number of the same cluster there, -1 for those that are new.
    local_labels_ : array (n,)
        Number of the row's local cluster inside its group, in the order of the global ones; -1 for rows without
        weight.
    groups_ : array (J,)
        Labels of the groups, sorted if they can be, otherwise as they first occur.
    group_clusters_ : CSR matrix (J, K)
        Weight of the rows of each group (in the order of ``groups_``) in each cluster.
    cluster_centers_ : array (K, p)
        Centres, in the units of the rows.
    cluster_weights_ : array (K,)
        Weight of the rows of each cluster.
    n_clusters_, n_local_clusters_ : int
        K and T.
    lam_local_, lam_global_ : float
        The penalties used.
    inertia_, objective_ : float
        Weighted sum of divergences; J (with the prior's share, if smoothing).
    objective_trace_ : array
        J after each pass; never rises. The last value is ``objective_``.
    n_iter_ : int
        Passes over all rows.
    converged_ : bool
        Whether ``tol`` was reached.
    family_ : Family
        The divergence, with what it took from the data.

    See Also
    --------
    DPMeans : Clusters of rows without groups.

    References
    ----------
    .. [1] Jiang, Kulis & Jordan (2012), Small-variance asymptotics for exponential family Dirichlet process
       mixture models, Section 4 (the objective is their eq. 4).
    .. [2] Kulis & Jordan (2012), Revisiting k-means: new algorithms via Bayesian nonparametrics, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import HDPMeans
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [0.1], [9.0], [9.2]])
    >>> groups = ["a", "a", "a", "a", "b", "b", "b"]
    >>> model = HDPMeans(lam_local=1.0, lam_global=2.0, random_state=0).fit(X, groups=groups)
    >>> model.n_clusters_, model.n_local_clusters_
    (3, 4)
    >>> model.labels_
    array([0, 0, 1, 1, 0, 2, 2], dtype=int32)
    >>> model.group_clusters_.toarray()
    array([[2., 2., 0.],
           [1., 0., 2.]])
    """

    _parameters = HDP_MEANS
    _shared: SharedModel

    def __init__(
        self,
        lam_local="auto",
        lam_global="auto",
        *,
        divergence="sqeuclidean",
        search="auto",
        order="random",
        init="auto",
        n_init=1,
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
        self.lam_local = lam_local
        self.lam_global = lam_global
        self.divergence = divergence
        self.search = search
        self.order = order
        self.init = init
        self.n_init = n_init
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

    def fit(self, X, y=None, *, groups=None, sample_weight=None):
        """Find the clusters that groups of rows share.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
            Rows; pandas and polars frames, float32, integers and memory maps are taken as they are.
        y : ignored
        groups : array (n,), default=None
            Group of each row: integers, strings or anything that can be a dictionary key, in any order. Without it
            all rows are one group, and HDPMeans is DPMeans at ``lam_local + lam_global``.
        sample_weight : array (n,), default=None
            Weights; an integer weight equals repeating the row, 0 leaves it out.

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            refuse_dask(groups, "groups")
            X, sample_weight = check_weighted_table(self, X, sample_weight, reset=True)
            labels = None if groups is None else check_groups(groups, X.shape[0])
            problem = self._problem(X, sample_weight)
            index, code = (None, np.zeros(X.shape[0], np.int32)) if labels is None else GroupIndex.of(labels)
            grouped = make_groups(code, problem.table.rows, 1 if index is None else index.labels.size)
            aim = self._aim(problem, grouped, budget)
            best = aim.fit(problem, grouped, budget, self._seeds(aim.goal))
            publish = partial(self._publish, problem, grouped, index, Lams.of(aim.goal), best)
            attempt(publish, publish, budget)  # what was found is not given up for an interrupt in between
            if self.matched_ is not None:  # ties go to the lower number, which may be another one now
                self.labels_ = self._shared.choose(X, groups).labels
        self._warn(choice_message(aim.choice, _alternative), budget)
        return self

    def fit_predict(self, X, y=None, *, groups=None, sample_weight=None):
        """Fit and return ``labels_``."""
        return self.fit(X, y, groups=groups, sample_weight=sample_weight).labels_

    def fit_transform(self, X, y=None, *, groups=None, sample_weight=None):
        """Fit and return the divergences of the rows from the centres."""
        return self.fit(X, y, groups=groups, sample_weight=sample_weight).transform(X)

    def predict(self, X, *, groups=None):
        """Cluster of each row; never opens one.

        A row of a group seen in the fit goes to the nearest of the clusters that its group holds, unless another one
        is nearer by more than ``lam_local_`` (divided by the smallest weight of a training row, if that is below 1).
        A row of any other group goes to the nearest cluster of all; so do all rows if ``groups`` is not given, unless
        the fit had no groups either. ``labels_`` equals ``predict(X, groups=groups)`` of the training rows.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        groups : array (n,), default=None
            Group of each row.

        Returns
        -------
        array (n,) of int32
        """
        check_is_fitted(self)
        refuse_dask(groups, "groups")
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._shared.choose(X, groups).labels

    def decision_function(self, X, *, groups=None):
        """What a cluster of its own would cost each row, less what its cluster costs it: negative for rows that would
        open one.

        That is ``lam_local_ + lam_global_`` less the divergence from the centre, and less ``lam_local_`` if the
        row's group does not hold the cluster. Only meaningful if the penalties are radii; those that "auto" finds are
        prices, far above any single divergence.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        groups : array (n,), default=None

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        refuse_dask(groups, "groups")
        X = check_table(self, X, reset=False)
        with set_span_threads():
            chosen = self._shared.choose(X, groups)
            return self.lam_global_ + np.where(chosen.lacking(), 0.0, self.lam_local_) - chosen.cost()

    def score(self, X, y=None, *, groups=None, sample_weight=None):
        """Minus the (weighted) mean divergence of the rows from the centres of their clusters; larger is better.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        groups : array (n,), default=None
        sample_weight : array (n,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        refuse_dask(groups, "groups")
        X, sample_weight = check_weighted_table(self, X, sample_weight, reset=False)
        with set_span_threads():
            chosen = self._shared.choose(X, groups, sample_weight, self.weighting)
            weight = chosen.table.rows.weights(slice(0, chosen.table.n))
            counted = weight > 0
            return -float(np.average(chosen.cost()[counted], weights=weight[counted]))

    def explain(self):
        """Why there are so many clusters, and how groups share them, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        chosen = isinstance(self.lam_local, str) or isinstance(self.lam_global, str)
        users = np.diff(self.group_clusters_.tocsc().indptr)
        lams = self.lam_local_, self.lam_global_
        return explain_shared(FoundShared(self.cluster_weights_, lams, chosen, users, self.groups_.size))

    def profile(self, X, sample_weight=None, *, groups=None):
        """What each cluster is, as :meth:`DPMeans.profile` tells it.

        Parameters
        ----------
        X : array, frame or CSR matrix (n, p)
        sample_weight : array (n,), default=None
        groups : array (n,), default=None
            Group of each row, as for ``predict``.

        Returns
        -------
        Profile, or a frame
        """
        refuse_dask(groups, "groups")
        profile = self._profile(X, sample_weight, groups=groups)
        return profile.to_frame(X) if is_frame(X) else profile

    def _seen(self, X: Any, **asked: Any) -> Seen:
        return Seen(HardSight(self._model), self._shared.choose(X, asked.get("groups")).labels, self.weighting)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.lam_local == 0 and self.lam_global == 0:
            raise ValueError("lam_local and lam_global are both 0: every row would be a cluster. Make one of them > 0.")

    def _aim(self, problem: LocalProblem, groups: Groups, budget: Budget) -> SharedAim:
        """What to fit, and from where."""
        wish, again = self._wish(problem), self.warm_start and hasattr(self, "_model")
        given: Any = self.cluster_centers_[: int(min(wish["max_clusters"], self.n_clusters_))] if again else self.init
        local, top = (None if isinstance(lam, str) else float(lam) for lam in (self.lam_local, self.lam_global))
        return SharedAim.of(problem, groups, wish, (local, top), given, budget)._replace(again=again)

    def _wish(self, problem: LocalProblem) -> dict[str, Any]:
        """Fields of the goal: what the parameters say, penalties and start apart."""
        search = "full" if self.search == "auto" else self.search
        order = problem.check_order(self.order)
        if search == "full":
            order = (
                Order.CONTENT
            )  # what is searched for is a minimum, not a trajectory: rows in any order give the same
        return {**self._limits(), "search": Search(search), "order": order}

    def _publish(
        self, problem: LocalProblem, groups: Groups, index: GroupIndex | None, lams: Lams, fitted: SharedFit
    ) -> None:
        """Write every fitted attribute, once."""
        matched = self._match(Model.of(problem, fitted), float(fitted.inertia))
        fitted = fitted if matched is None else fitted.reordered(matched.order, matched.rank)
        self.matched_ = None if matched is None else matched.earlier
        self._shared = SharedModel.of(problem, fitted, index, lams)
        self._model = self._shared.model
        local = Locals.of(problem, groups, fitted)
        self.labels_, self.local_labels_ = fitted.labels, local.labels
        self.groups_ = np.zeros(1, int) if index is None else index.labels
        self.group_clusters_ = local.weights
        self.n_local_clusters_ = local.number
        self.cluster_centers_ = self._model.centres
        self.cluster_weights_ = self._model.mass
        self.n_clusters_ = self.cluster_centers_.shape[0]
        self.lam_local_, self.lam_global_ = lams
        self.inertia_, self.objective_ = float(fitted.inertia), float(fitted.objective)
        self.objective_trace_ = finite_part(fitted.trace)
        self.n_iter_ = max(1, fitted.n_iter)
        self.converged_ = fitted.converged
        self.family_ = problem.family


def _alternative(K: int, price: float) -> str:
    return f"HDPMeans(lam_global={price:.3g}) for about {K}"
