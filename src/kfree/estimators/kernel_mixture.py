"""KernelDPMixture: a mixture whose kernel mean is as close to that of the rows as candidates allow."""

import warnings
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._endings import all_or_nothing, warn_unfinished
from kfree.estimators._mixture import MixtureEstimator
from kfree.estimators._running import Words
from kfree.estimators._sklearn import check_table, check_weighted_table, refuse_weights
from kfree.estimators._spread import Binding, Rows, RowsHere, given_rows, refuse_batch
from kfree.families import Array
from kfree.families.points import POINTS, MovableFamily, PointFamily
from kfree.inference.loop import Budget, attempt
from kfree.models.checks import check_flag, check_number
from kfree.models.explain_mixtures import Weighed, explain_weighed
from kfree.models.kernel_mixture import FoundWeights, KernelModel, find, keep
from kfree.models.kernel_problem import KernelWish, LocalKernelProblem, Looked
from kfree.models.kernel_stream import Stream
from kfree.models.parameter_tables import KERNEL_DP_MIXTURE
from kfree.models.sharded import Look
from kfree.models.sharded_kernel import ShardedKernelProblem, first_look_of_kernel
from kfree.rows import set_span_threads
from kfree.rows.blocks import Blocks


class MMDTest(NamedTuple):
    """Result of a two-sample test.

    Attributes
    ----------
    statistic : float
        Squared distance of the kernel means of the two tables, each row with itself included.
    pvalue : float
        Share of the permutations of all rows, the one that is true included, whose statistic is as large.
    n_rows : tuple of int
        Training rows, and rows of the new table, that were compared.
    """

    statistic: float
    pvalue: float
    n_rows: tuple[int, int]


class KernelDPMixture(MixtureEstimator):
    r"""Mixture whose kernel mean is closest to that of the rows: a Dirichlet-process mixture in a Hilbert space.

    A kernel k turns a distribution f into a function, its mean :math:`\mu[f] = E\, k(x, \cdot)`. Among candidate
    components :math:`f_1, \ldots, f_T` weights are found that minimise

    .. math:: \tfrac12 \Bigl\| \tfrac1m \sum_k k(x_k, \cdot) - \sum_i p_i\, \mu[f_i] \Bigr\|^2
        + \tfrac{\epsilon}{2} \sum_i p_i^2, \qquad p_i \ge 0, \ \sum_i p_i = 1

    over the simplex: a quadratic programme with one solution, found exactly. Most weights are zero, so that the number
    of components is found. It is the distance of distributions (MMD) that is small, not the likelihood that is large.

    Parameters
    ----------
    family : {"gaussian", "multinomial", "bernoulli"}, default="gaussian"
        What a component is, and the kernel that goes with it: the Gaussian kernel; for documents the square of the
        inner product of their shares; for zeros and ones :math:`\rho` to the Hamming distance, with
        :math:`\rho = e^{-1 / 2 s^2}` for bandwidth s. Rows may be sparse for the last two.
    covariance : {"full", "diag", "spherical"}, default="full"
        Of Gaussian components.
    candidates : {"clusters", "local", "prior"}, array (T, D) or dict, default="clusters"
        Where candidates come from. "clusters": 1, 2, 3, 4, 6, ... soft clusters of the rows, up to the number that
        predicts held-out rows best. "local": rows drawn at random with their 20 nearest neighbours. "prior": draws from
        a wide prior, as in [1]_, of which few land where rows are. An array holds means, or probabilities of the
        columns; covariances are then those of the rows nearest to each. ``{"means": ..., "covariances": ...}`` gives
        both.
    n_candidates : int or "auto", default="auto"
        Candidates to make, at most. "auto": as many as there are for "clusters"; else 200, and for "prior" at least
        ``truncation_level(concentration, 1e-6)``.
    bandwidth : {"local", "median"}, float or list of float, default="local"
        s of the kernel :math:`e^{-|x - y|^2 / 2 s^2}`; components closer than s can hardly be told apart. "local": half
        the median squared distance from the 20th neighbour is :math:`s^2`; "median": that between rows. With both, the
        columns of Gaussian rows are in units of their standard deviations (except for ``covariance="spherical"``, whose
        columns have one unit), so that their units do not matter. A number is in the units of X and holds for all
        columns as they are; several: the mean of their kernels.
    ridge : float or "auto", default=1e-6
        :math:`\epsilon`, in units of the mean squared length of the candidates' kernel means. Larger draws weights
        towards each other. "auto" takes the one of 1e-8, ..., 1e-2 whose weights match held-out rows best.
    features : int, "auto" or None, default="auto"
        Random features that stand for the kernel. None evaluates it for every row and candidate; "auto" does so up to
        5e7 evaluations. ``partial_fit``, and ``fit`` on blocks of Dask, always work by features.
    refine : bool, default=False
        Move means and covariances of the components that have weight, too, in turn with the weights, for as long as
        the objective falls. "gaussian" only.
    concentration : float, default=1.0
        Of the Dirichlet process. It decides only how many candidates "prior" draws.
    match_to : fitted model or array (K, D), default=None
        Earlier components: those of this fit that are the same keep their numbers, as in :class:`DPMeans`; others are
        ordered by weight.
    random_state : int, RandomState or None, default=None
        For "local", "prior", random features, ``sample`` and ``mmd_test``.
    verbose : int, default=0
        1 prints what was found.
    max_time : float, default=None
        Seconds after which the best so far is returned.

    Attributes
    ----------
    n_components_ : int
        Components that have weight.
    weights_ : array (K,)
        Their weights, the largest first.
    means_ : array (K, D)
        Their means: of the rows, or, for "multinomial", the probabilities of the columns.
    covariances_ : array (K, D, D), (K, D) or (K,)
        Their covariances: full, diagonal, spherical. "gaussian" only.
    labels_ : array (N,)
        Likeliest component of each training row; after ``partial_fit`` of those of the last batch.
    support_ : array (K,)
        Which candidates they are.
    n_candidates_ : int
        T.
    bandwidth_ : array (D,), float or array
        s in the units of X: that of each column where the columns of Gaussian rows are in units of their deviations;
        else one for all, or several. Not for "multinomial".
    ridge_ : float
        :math:`\epsilon` that was used.
    gap_ : float
        By which the objective may be above its minimum, at most; in the units of ``ridge``.
    mmd2_ : float
        Squared distance of the kernel means of training rows and mixture.
    objective_ : float
        The objective without its constant, in the units of ``ridge``.
    objective_trace_ : array
        The same after the weights were found and after each round of ``refine``. Never rises.
    matched_ : array (K,) or None
        With ``match_to``: the number of the same component there, -1 for those that are new.
    n_iter_ : int
        Rounds of ``refine``, and one.
    converged_ : bool
        Whether all rows were looked at and ``refine`` ended by itself.

    See Also
    --------
    VariationalDPMixture : By likelihood, with posteriors of the parameters.
    truncation_level : How many candidates a prior needs.

    References
    ----------
    .. [1] Muandet (2012), Hilbert space embedding for Dirichlet process mixtures.
    .. [2] Song, Zhang, Smola, Gretton & Schoelkopf (2008), Tailoring density estimation via reproducing kernel moment
       matching.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import KernelDPMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, size=(200, 2)) for m in (-6, 0, 6)])
    >>> model = KernelDPMixture(random_state=0).fit(X)
    >>> bool(model.mmd2_ < 0.01 and model.gap_ < 1e-12)
    True
    >>> bool(model.mmd_test(X + 0.5).pvalue < 0.01)
    True
    """

    _families: ClassVar[Any] = {name: next(iter(shapes.values())) for name, shapes in POINTS.items()}

    _parameters = KERNEL_DP_MIXTURE
    _words = Words("components")
    _kernel_model: KernelModel
    _stream: Stream | None  # what partial_fit goes on from

    def __init__(
        self,
        *,
        family="gaussian",
        covariance="full",
        candidates="clusters",
        n_candidates="auto",
        bandwidth="local",
        ridge=1e-6,
        features="auto",
        refine=False,
        concentration=1.0,
        match_to=None,
        random_state=None,
        verbose=0,
        max_time=None,
    ):
        self.family = family
        self.covariance = covariance
        self.candidates = candidates
        self.n_candidates = n_candidates
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.features = features
        self.refine = refine
        self.concentration = concentration
        self.match_to = match_to
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time

    def fit(self, X, y=None, sample_weight=None):
        """Find the weights of candidates.

        Parameters
        ----------
        X : array (N, D), or CSR matrix for "multinomial" and "bernoulli"
            Dask collections are fitted where they are, by random features.
        y : ignored
        sample_weight : array (N,), default=None
            An integer weight equals repeating the row.

        Returns
        -------
        self
        """
        wish, family = self._wish()
        with (
            self._running() as budget,
            all_or_nothing(self),
            set_span_threads(),
            closing(given_rows(self, X, sample_weight)) as rows,
        ):
            problem, rng = rows.bind(self._binding(family)), self._draws()
            params = problem.candidates(wish, budget, rng)
            looked = problem.look(params, wish, budget, rng)
            found = _find(looked, params, wish, problem.frame.floor, budget)
            model = KernelModel.of(problem.frame, keep(problem.sample), found, self.bandwidth)
            distance = partial(problem.distance, model, rng, complete=looked.complete)
            publish = partial(self._publish, model, found, rows, distance)
            # if it is interrupted the last look at all rows is made again, so that nothing is lost
            attempt(publish, publish, budget)
            self._stream = None
        self._warn(found, problem.degenerate, budget)
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Read one more batch of rows, and find the weights anew.

        The first batch decides on candidates, bandwidth and random features: it should be like the others, and have
        some thousands of rows. Of later ones only sums of random features are kept.

        Parameters
        ----------
        X : array (n, D), or CSR matrix for "multinomial" and "bernoulli"
            In memory; the blocks of a Dask collection one after the other.
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        self
        """
        refuse_batch(X)
        wish, family = self._wish()
        degenerate = False
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            stream = self._stream if hasattr(self, "_model") else None
            rows = RowsHere(self, X, sample_weight, reset=stream is None)
            if stream is None:
                problem = LocalKernelProblem.of(rows.X, rows.weight, family, self.bandwidth)
                stream, degenerate = Stream.begin(problem, wish, budget, self._draws()), problem.degenerate
            else:
                stream = stream.after(stream.frame.weighted(rows.X, rows.weight))
            found = _find(stream.look(), stream.params, wish, stream.frame.floor, budget)
            model = KernelModel.of(stream.frame, stream.kept, found, self.bandwidth)
            self._publish(model, found, rows, partial(model.mmd2_of_sums, stream.frequencies, stream.sums))
            self._stream = stream
        self._warn(found, degenerate, budget)
        return self

    def mmd2(self, X, sample_weight=None, *, unbiased=False):
        """Squared distance of the kernel means of rows and mixture: how far the rows are from the model.

        Parameters
        ----------
        X : array or CSR matrix (n, D)
        sample_weight : array (n,), default=None
        unbiased : bool, default=False
            Leave out each row with itself: the mean over samples is then that of all rows there could be, and single
            values may be below 0.

        Returns
        -------
        float
            From more than about 7000 rows by random features.
        """
        check_is_fitted(self)
        check_flag("unbiased", unbiased)
        X, sample_weight = check_weighted_table(self, X, sample_weight, reset=False)
        with set_span_threads():
            rows = self._kernel_model.frame.weighted(X, sample_weight)
            if unbiased and rows.weight.size < 2:
                raise ValueError(f"unbiased=True compares pairs of rows, but {rows.weight.size} row has weight.")
            return self._kernel_model.mmd2(rows, self._draws(), unbiased=unbiased)

    def mmd_test(self, X, n_permutations=999, max_rows=2000) -> MMDTest:
        """Test whether rows come from the distribution that the training rows came from.

        Compared are X and up to 2000 training rows that the model has kept, not X and the fitted density: that is never
        quite right, and with enough rows would be rejected for that alone. If nothing has changed, a p-value is below
        any level with no more than that probability: rows of both tables are dealt at random, and the bandwidth, unless
        it is given, is chosen from both, as are the units of columns (median deviations from the median, which a few
        rows far away do not change). If the fit had weights that are not whole numbers, training rows are drawn by
        weight, and this holds about.

        Parameters
        ----------
        X : array or CSR matrix (n, D)
        n_permutations : int, default=999
        max_rows : int, default=2000
            Rows of either table that are compared; more are drawn from.

        Returns
        -------
        MMDTest
            ``statistic``, the squared distance of the kernel means of the two tables, ``pvalue`` and ``n_rows``.
        """
        check_is_fitted(self)
        check_number("n_permutations", n_permutations, least=1, integer=True)
        check_number("max_rows", max_rows, least=1, integer=True)
        refuse_weights(X, "mmd_test")
        X = check_table(self, X, reset=False)
        with set_span_threads():
            found = self._kernel_model.test(X, int(n_permutations), int(max_rows), self._draws())
        return MMDTest(found.statistic, found.pvalue, found.n_rows)

    def explain(self):
        """Why there are so many components, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return explain_weighed(Weighed(self.weights_, self.n_candidates_, self.mmd2_, self.gap_))

    def _wish(self) -> tuple[KernelWish, PointFamily]:
        """What is asked for, checked."""
        self._check_parameters()
        shapes = POINTS[self.family]
        family = shapes.get(self.covariance, next(iter(shapes.values())))()
        moved = family if isinstance(family, MovableFamily) else None
        if self.refine and moved is None:
            raise ValueError(
                f"refine=True moves Gaussian components; family={self.family!r} has none. Set it to False."
            )
        wish = KernelWish(
            self.candidates,
            None if isinstance(self.n_candidates, str) else int(self.n_candidates),
            None if isinstance(self.ridge, str) else float(self.ridge),
            self.features if self.features is None or isinstance(self.features, str) else int(self.features),
            moved if self.refine else None,
            float(self.concentration),
        )
        return wish, family

    def _binding(self, family: PointFamily) -> Binding:
        """How rows are bound, wherever they are."""

        def spread(blocks: Blocks, seen: Look) -> ShardedKernelProblem:
            if self.features is None:
                raise ValueError(
                    "features=None evaluates the kernel for every row and candidate, and blocks of Dask are fitted by "
                    'random features. Leave features="auto", or pass their number; kfree.read(X) brings the rows to a '
                    "file here, block by block, and takes every parameter."
                )
            return ShardedKernelProblem.of(blocks, seen, family, self.bandwidth)

        return Binding(
            here=lambda X, weight: LocalKernelProblem.of(X, weight, family, self.bandwidth),
            look=lambda blocks: first_look_of_kernel(blocks, family),
            spread=spread,
        )

    def _publish(self, model: KernelModel, found: FoundWeights, rows: Rows, mmd2: Any) -> None:
        """Write every fitted attribute, once."""
        distance, support = mmd2(), found.support
        matched = None if self.match_to is None else rows.match(model.mixture, self.match_to)
        if matched is not None:
            model, support = model._replace(mixture=model.mixture.reordered(matched.order)), support[matched.order]
        self.matched_ = None if matched is None else matched.earlier
        self._publish_model(model.mixture, rows.likeliest(model.mixture))
        self._kernel_model = model
        self.support_, self.n_candidates_ = support, found.n_candidates
        if model.frame.family.has_width:
            self.bandwidth_ = model.bandwidth()
        self.ridge_, self.gap_, self.mmd2_ = found.weights.ridge, found.weights.gap, distance
        self.objective_trace_, self.objective_ = np.array(found.trace), found.trace[-1]
        self.n_iter_, self.converged_ = len(found.trace), found.converged

    def _warn(self, found: FoundWeights, degenerate: bool, budget: Budget) -> None:
        if found.raised:
            warnings.warn(
                f"Some candidates repeat, and ridge={self.ridge!r} is too small to tell how they share their weight: "
                f"it was raised to {self.ridge_:.1e}. Pass a larger ridge, or different candidates.",
                UserWarning,
                stacklevel=3,
            )
        if degenerate:
            warnings.warn(
                "The rows of X do not differ, so the data say nothing about the width of a component: it was taken "
                "to be a tenth of a unit. Pass candidates={'means': ..., 'covariances': ...} to set it.",
                UserWarning,
                stacklevel=3,
            )
        warn_unfinished(self, budget, "Components still move after the last round of refine")


def _find(looked: Looked, params: Any, wish: KernelWish, floor: Array, budget: Budget) -> FoundWeights:
    """Weights, and, if the user interrupts, weights at least."""
    quick = partial(find, looked, params, wish._replace(moved=None), floor, budget)
    return attempt(partial(find, looked, params, wish, floor, budget), quick, budget)
