"""VariationalDPMixture: soft clusters and a density, the number of components found."""

import warnings
from contextlib import closing
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._endings import all_or_nothing, warn_unfinished
from kfree.estimators._mixture import MixtureEstimator
from kfree.estimators._running import Words
from kfree.estimators._sklearn import check_table, kd_slices
from kfree.estimators._spread import Binding, Rows, by_block, given_rows
from kfree.families.conjugate import CONJUGATE
from kfree.inference.loop import Budget, attempt
from kfree.inference.variational.greedy import FoundMixture, GreedyGoal
from kfree.inference.variational.partition import Partition
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.models.acceleration import Acceleration
from kfree.models.checks import check_number
from kfree.models.explain_mixtures import Grown, explain_grown
from kfree.models.mixture import (
    LocalMixtureRows,
    MixtureProblem,
    MixtureRows,
    MixtureWish,
    check_concentration,
    published,
)
from kfree.models.mixture_model import MixtureModel
from kfree.models.parameter_tables import VARIATIONAL_DP_MIXTURE
from kfree.models.sharded_variational import ShardedMixtureRows, first_look_of_mixture
from kfree.rows import set_span_threads
from kfree.structures import StickBreaking


class VariationalDPMixture(MixtureEstimator):
    r"""Dirichlet-process mixture by variational inference; the number of components is found.

    Weights are broken off a stick, :math:`\pi_i = v_i \prod_{j<i} (1 - v_j)`, :math:`v_i \sim Beta(a_1, a_2)`, without
    end. The first T components have posteriors of their own, all others keep the prior and are summed exactly: there is
    no truncation. Minimises the free energy, an upper bound of minus the log evidence,

    .. math:: F = \sum_{i \le T} KL(q(v_i) \| p(v)) + KL(q(\eta_i) \| p(\eta))
        - \sum_n \log \sum_{i=1}^{\infty} \exp E_q[\log \pi_i + \log p(x_n | \eta_i)]

    T grows from 1 by splits for as long as F falls.

    Parameters
    ----------
    family : {"gaussian", "diag", "spherical", "multinomial", "poisson", "bernoulli"}, default="gaussian"
        What a component is. Gaussians with full, diagonal or spherical covariance; counts given their total,
        independent counts, zeros and ones. Rows may be sparse for the last three. Entries of Gaussian rows may be as
        large as 1e150, counts (totals of "multinomial" rows) as 2**53.
    accelerate : {"auto", "tree", "kdtree"} or None, default="auto"
        None looks at every row in every update (VDP). "tree" lets nodes of a tree of principal directions stand for
        the rows they hold (Fast-VDP), "kdtree" those of scikit-learn's KDTree, as in [1]_: many more nodes for the
        same free energy. Labels, and F, are from a last exact look at all rows. "auto" takes the tree for Gaussians of
        at least 20 000 rows and 100 rows a column. Where nodes come down to single rows, the rows take over.
    concentration : float or pair, default=1.0
        Larger expects more components. A pair (a1, a2) is the Beta prior of every stick; a number stands for
        (1, concentration), the Dirichlet process. From 1e-100 to 1e8; a2 at most 1e8 times a1.
    prior : {"learn", "fixed"} or dict, default="learn"
        What a component looks like before data. "learn" moves the prior, along with the posterior, to where F plus
        its divergence from a wide prior is least; units of columns then do not matter, and entries count as known to
        half a step of their recording. "fixed" is one width in all directions. A dict holds hyperparameters, in the
        units of X, and learns the others. Gaussians: "mean" (that of the data), "mean_precision" ("fixed": 0.01),
        "degrees_of_freedom" (D + 1), "covariance" (0.01 of the largest eigenvalue of the data's covariance) or its
        root "sd", each a number, one for each column, or a matrix. "multinomial": "counts" (0.5). "poisson", which
        never learns: "shape" (column means + 0.5), "rate" (1). "bernoulli": "ones", "zeros" (0.5). What counts rows
        or what rows count is from 1e-20 to 1e8 ("shape" to 2**54), "degrees_of_freedom" of "gaussian" beyond D - 1;
        "covariance" from 1e-20 to 1e20 of the square of the data's spread.
    max_components : int, default=None
        Stop growing at so many; None for no limit.
    n_candidates : int, default=10
        Components whose split is tried at a time, the largest first. More are tried only if none of these pays.
    n_failed : int, default=1
        Splits that may fail in a row before growth ends.
    tol : float or "relative", default=1e-5
        Fall of F, in nats per row and column, that a split must bring; updates of rows stop at a tenth of it, of nodes
        at what counts there. "relative": 1e-5 of the size of F, as in [1]_, which depends on the units of X.
    max_iter : int, default=300
        Most updates for each number of components.
    max_time : float, default=None
        Seconds after which the best so far is returned.
    expand : {"gain", "q"}, default="gain"
        When a node gives way to its two children. "gain": if that lowers F by more than 0.01 nats a row, or if its
        rows are farther from their components than these are wide; Gaussian nodes are also compared with single rows of
        theirs (64 while growing, then up to 1024). "q": if responsibilities change by more than 0.1 in total
        variation, the rule of [1]_, which sees less.
    final : {"labels", "refine", "polish"}, default="labels"
        How a search over nodes ends: as it is, with nodes refined to a tenth of the tolerance and more growth on them,
        or with ten exact updates of all rows.
    max_nodes : int, default=None
        Nodes the tree may have; about 8 (D + 3)^2 / 2 bytes each.
    match_to : fitted model or array (K, D), default=None
        Earlier components: those of this fit that are the same keep their numbers, as in :class:`DPMeans`; others are
        ordered by weight.
    random_state : int, RandomState or None, default=None
        For ``sample``; a fit draws nothing at random.
    verbose : int, default=0
        1 prints every update.

    Attributes
    ----------
    n_components_ : int
        T.
    weights_ : array (T,)
        Expected weights, largest component first.
    tail_weight_ : float
        Expected weight of all other components together; with ``weights_`` it makes 1.
    means_ : array (T, D)
        Expected means: of the rows, or, for "multinomial", the probabilities of the columns.
    covariances_ : array (T, D, D), (T, D) or (T,)
        Inverse of the expected precisions: full, diagonal, spherical. Gaussians only.
    labels_ : array (N,)
        Likeliest component of each training row.
    means_sd_, weights_sd_ : arrays (T, D), (T,)
        Standard deviations of means and weights under the posterior; inf where it has none.
    prior_ : dict
        The hyperparameters, learned or not, in the units of X.
    prior_penalty_ : float
        Divergence of a wide prior from the learned one; 0 if the prior is not learned.
    free_energy_ : float
        F of the training rows under ``prior_``.
    tied_free_energy_ : float
        F on what the search ran on; at least ``free_energy_`` where nodes share their responsibilities. Of a Dask
        collection the same as ``free_energy_``.
    free_energy_trace_ : array
        ``tied_free_energy_`` and the penalty after each update that was kept. Never rises, except where nodes are
        joined again. Of a Dask collection: after each update of all rows, which follow the search in the sample.
    n_nodes_ : int
        Rows or nodes that the search ended with; of a Dask collection those of the sample.
    matched_ : array (T,) or None
        With ``match_to``: the number of the same component there, -1 for those that are new.
    n_iter_ : int
        Updates, those of splits that failed included; of a Dask collection those of the sample, too.
    converged_ : bool
        Whether growth ended by itself and the last updates met ``tol``; of a Dask collection in the sample and on all
        rows.

    See Also
    --------
    sklearn.mixture.BayesianGaussianMixture : Truncated, dense Gaussian data only.

    References
    ----------
    .. [1] Kurihara, Welling & Vlassis (2006), Accelerated variational Dirichlet process mixtures.
    .. [2] Blei & Jordan (2006), Variational inference for Dirichlet process mixtures.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import VariationalDPMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, size=(200, 2)) for m in (-6, 0, 6)])
    >>> model = VariationalDPMixture().fit(X)
    >>> model.n_components_
    3
    >>> model.predict_proba(X[:1]).round(2), model.score_samples([[0.0, 0.0], [50.0, 0.0]]) > -10
    (array([[1., 0., 0.]]), array([ True, False]))
    """

    _families = CONJUGATE
    _words = Words("components", "free energy")
    _parameters = VARIATIONAL_DP_MIXTURE
    _model: MixtureModel

    def __init__(
        self,
        *,
        family="gaussian",
        accelerate="auto",
        concentration=1.0,
        prior="learn",
        max_components=None,
        n_candidates=10,
        n_failed=1,
        tol=1e-5,
        max_iter=300,
        max_time=None,
        expand="gain",
        final="labels",
        max_nodes=None,
        match_to=None,
        random_state=None,
        verbose=0,
    ):
        self.family = family
        self.accelerate = accelerate
        self.concentration = concentration
        self.prior = prior
        self.max_components = max_components
        self.n_candidates = n_candidates
        self.n_failed = n_failed
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.expand = expand
        self.final = final
        self.max_nodes = max_nodes
        self.match_to = match_to
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find the components of the rows of X.

        Parameters
        ----------
        X : array (N, D), or CSR matrix for "multinomial", "poisson" and "bernoulli"
            Dask collections are fitted where they are: up to 100 000 rows in memory; of more components are sought in
            a sample of up to 50 000 rows by content, and they and the prior then updated on all rows.
        y : ignored
        sample_weight : array (N,), default=None
            An integer weight equals repeating the row. They may sum to 1e15.

        Returns
        -------
        self
        """
        self._check_parameters()
        weights = check_concentration(self.concentration)
        with (
            self._running() as budget,
            all_or_nothing(self),
            set_span_threads(),
            closing(given_rows(self, X, sample_weight)) as rows,
        ):
            bound: MixtureRows = rows.bind(self._binding(weights))
            acceleration = Acceleration(self.accelerate, self.expand, self.final, self.max_nodes)
            partition = acceleration.partition(bound.problem, kd_slices, budget)
            found = acceleration.search(bound.problem, partition, self._goal(), budget)
            found = bound.finish(found, self._goal(), budget)
            publish = partial(self._publish, bound, partition, found, rows)
            # if it is interrupted the last look at all rows is made again, so that nothing is lost
            attempt(publish, publish, budget)
        self._warn(bound.problem, partition, budget)
        return self

    @by_block(np.float64, lambda self, tail=False: self.n_components_ + tail)
    def predict_proba(self, X, *, tail=False):
        """Responsibilities of the components.

        Parameters
        ----------
        X : array or CSR matrix (n, D)
        tail : bool, default=False
            Add a column for all components beyond the T that were found: rows that fit none of these have a large
            value there. Without it, rows are shared among the T.

        Returns
        -------
        array (n, T) or (n, T + 1)
            Rows sum to 1.
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.shares(X, tail=tail)

    def sample_parameters(self, n_samples=1):
        """Draw weights and parameters of the components from their variational posterior.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        dict of arrays
            "weights" (n_samples, T), which sum to one with what is left for components that were not found; "means"
            (n_samples, T, D); for Gaussians "covariances" (n_samples, T, D, D), (n_samples, T, D) or (n_samples, T).
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, least=1, integer=True)
        return self._posterior.draw(int(n_samples), self._draws())

    def explain(self):
        """Why there are so many components, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        full = self.max_components is not None and self.n_components_ >= self.max_components
        return explain_grown(Grown(self.weights_, self.tail_weight_, self.free_energy_, self.converged_, full))

    def _goal(self) -> GreedyGoal:
        most = np.inf if self.max_components is None else self.max_components
        relative = isinstance(self.tol, str)
        tol = VARIATIONAL.relative_tol if relative else float(self.tol)
        return GreedyGoal(self.n_candidates, self.n_failed, most, self.max_iter, tol, relative)

    def _binding(self, weights: StickBreaking) -> Binding:
        """How rows are bound, wherever they are."""
        wish = MixtureWish.of(self.family, self.prior, weights)
        return Binding(
            here=lambda X, weight: LocalMixtureRows.of(X, weight, wish),
            look=lambda blocks: first_look_of_mixture(blocks, wish.family),
            spread=lambda blocks, seen: ShardedMixtureRows.of(blocks, seen, wish),
        )

    def _publish(self, bound: MixtureRows, partition: Partition, found: FoundMixture, rows: Rows) -> None:
        """Write every fitted attribute, once."""
        solved = bound.solve(found, partition)
        matched = None if self.match_to is None else rows.match(solved.model, self.match_to, solved.labels)
        solved = solved if matched is None else solved.reordered(matched.order, matched.rank)
        labels = rows.likeliest(solved.model) if solved.labels is None else rows.labels(solved.labels)
        self.matched_ = None if matched is None else matched.earlier
        self.prior_ = published(found.setting.family, found.setting.prior, bound.problem.units)
        self._publish_model(solved.model, labels)
        self._posterior = solved.posterior
        self.weights_sd_, self.means_sd_ = solved.posterior.deviations()
        self.tail_weight_ = float(solved.model.weights[-1])
        self.free_energy_, self.tied_free_energy_ = solved.energy, found.energy
        self.prior_penalty_ = found.penalty
        self.free_energy_trace_ = np.array(found.trace)
        self.n_nodes_ = found.n_nodes
        self.n_iter_, self.converged_ = max(1, found.n_iter), found.converged

    def _warn(self, problem: MixtureProblem, partition: Partition, budget: Budget) -> None:
        if partition.full:
            warnings.warn(
                f"The tree has the {self.max_nodes} nodes it may have, so rows may be tied that should not be, and "
                "components may be missing. Raise max_nodes.",
                UserWarning,
                stacklevel=3,
            )
        if problem.degenerate:
            warnings.warn(
                "The rows of X do not differ, so the data say nothing about the width of a component: it was taken "
                "to be a tenth of a unit. Pass prior={'covariance': ...} to set it.",
                UserWarning,
                stacklevel=3,
            )
        warn_unfinished(
            self, budget, f"The free energy still falls after max_iter={self.max_iter} updates (raise max_iter or tol)"
        )
