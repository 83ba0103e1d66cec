"""The public class GibbsDPMixture: samples of the posterior of a Dirichlet-process mixture."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._endings import all_or_nothing, ending
from kfree.estimators._mixture import MixtureEstimator
from kfree.estimators._running import Words
from kfree.estimators._sklearn import check_weighted_table, made_when_asked
from kfree.estimators.dp_means import DPMeans
from kfree.estimators.variational import VariationalDPMixture
from kfree.families.conjugate import CONJUGATE, SAMPLED
from kfree.inference.gibbs.chains import Chain, ChainSamples, Length, new_chains, run_chains
from kfree.inference.gibbs.diagnostics import complaints, diagnose
from kfree.inference.gibbs.dp_mixture import DPSampler, Way
from kfree.inference.gibbs.gibbs_numbers import GIBBS
from kfree.inference.gibbs.partitions import coclustering, own_probability, point_estimate, posterior_of_count
from kfree.inference.gibbs.summary_numbers import SUMMARIES
from kfree.inference.gibbs.to_arviz import inference_data
from kfree.inference.labels import renumbered
from kfree.inference.loop import Budget, attempt
from kfree.models.explain_mixtures import Sampled, explain_sampled
from kfree.models.gibbs_mixture import (
    GibbsModel,
    GibbsProblem,
    by_size,
    check_labels,
    check_prior_of_concentration,
    check_schedule,
)
from kfree.models.mixture import published
from kfree.models.parameter_tables import GIBBS_DP_MIXTURE
from kfree.rows import set_span_threads

#: Divergences that first clusters of a family are found by.
_DIVERGENCES = {"multinomial": "kl", "poisson": "poisson", "bernoulli": "bernoulli", "gamma": "itakura_saito"}


class GibbsDPMixture(MixtureEstimator):
    r"""Dirichlet-process mixture by Gibbs sampling: how many clusters, and which rows belong together, with what
    probability.

    Draws partitions z of the N rows from their posterior. With K clusters, of :math:`n_c` rows each,

    .. math:: p(z | X) \propto \alpha^K \prod_c (n_c - 1)! \int p(\theta) \prod_{i \in c} p(x_i | \theta) \, d\theta

    Rows are drawn one at a time given all others, then splits and merges of whole clusters are proposed and accepted
    with the exact probability (Metropolis-Hastings). Meant for up to some thousands of rows.

    Parameters
    ----------
    family : str, default="gaussian"
        What a cluster is. Gaussians with full ("gaussian"), diagonal ("diag"), spherical ("spherical") or known
        ("known") covariance; counts given their total ("multinomial"), independent counts ("poisson"), zeros and ones
        ("bernoulli"); positive numbers of known shape ("gamma"). Rows may be sparse for "multinomial", "poisson" and
        "bernoulli".
    concentration : float or pair, default=1.0
        Larger expects more clusters, about alpha log(N / alpha). A pair (shape, rate) is a gamma prior: the
        concentration is then sampled, too.
    prior : dict, "fixed", "learn" or None, default=None
        What a cluster looks like before data. A dict of hyperparameters, in the units of X, as for
        :class:`VariationalDPMixture`; those not given, and all with None or "fixed", have the defaults there. "learn"
        takes the prior that VariationalDPMixture learns from X. "known": "mean", "mean_precision" (0.01) and the
        known "covariance" (0.01 of the largest eigenvalue of the data's) or its root "sd". "gamma": the known "shape"
        (1), "mean" (that of the data) and "mean_precision" (1), the rows it is worth.
    beta : float or sequence, default=1.0
        Every row counts as beta rows, and the concentration is raised to that power: as beta grows, samples come to
        minimise the objective of DPMeans with the price lam = -log(concentration). A sequence that does not fall has
        one value for each of the first sweeps, at most ``burn_in + 1`` of them; the last one stays.
    n_samples : int, default=1000
        Samples kept of each chain.
    burn_in : int, default=500
        Sweeps before the first sample.
    thin : int, default=1
        Sweeps from one sample to the next.
    n_chains : int, default=2
        Chains. They begin with different partitions, so that they can be compared.
    collapsed : bool, default=True
        True integrates parameters out (Algorithm 3 of [1]_). False samples them, too (Algorithm 2; [2]_, section 2.2),
        which mixes more slowly.
    moves : {"split_merge"} or None, default="split_merge"
        "split_merge" proposes splits and merges by sequential allocation [3]_ after each sweep. Without them chains
        hardly ever part or join large clusters.
    init : {"dpmeans", "one", "singles"} or array (N,), default="dpmeans"
        First partition: the clusters of DPMeans for the first chain, the same joined or cut at random for others; one
        cluster; one for each row; given labels.
    point_estimate : {"vi", "binder", "map"}, default="vi"
        What ``labels_`` is: the partition of least expected loss, variation of information or Binder's, or the sample
        of largest posterior.
    match_to : fitted model or array (K, D), default=None
        Earlier components: those of this fit that are the same keep their numbers, as in :class:`DPMeans`; others are
        ordered by weight.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
        Chains at a time; draws do not depend on it.
    warm_start : bool, default=False
        Go on with the chains of the last fit, of the same X: ``n_samples`` more of each.
    verbose : int, default=0
        1 prints how far chains have come.
    max_time : float, default=None
        Seconds after which sampling ends; all samples so far are kept, as they are after Ctrl-C.

    Attributes
    ----------
    labels_ : array (N,)
        The partition that stands for all samples, largest cluster first.
    n_clusters_, n_components_ : int
        Its clusters.
    expected_loss_ : float
        Mean loss of ``labels_`` over the samples: variation of information in nats, or for "binder" the share of pairs.
    posterior_n_clusters_ : tuple of arrays
        Numbers of clusters that occur in samples, and their probabilities.
    coclustering_ : array (N, N)
        How probable it is that two rows are in one cluster. Made when first asked for, up to 5000 rows; see
        ``coclustering``.
    cluster_probability_ : array (N,)
        How probable it is that a row is with another of its cluster in ``labels_``, mean over these.
    samples_ : array (n_chains * n_samples, N)
        Labels of the rows in each sample, one chain after the other; one byte each up to 256 clusters. -1 for rows
        without weight.
    sample_chain_ : array (n_chains * n_samples,)
        The chain of each sample.
    n_clusters_trace_, log_posterior_trace_, concentration_trace_ : arrays (n_chains, burn_in + thin * n_samples)
        After each sweep, burn-in included.
    diagnostics_ : dict
        Split R-hat (``rhat``) and effective sample size (``ess``) of "n_clusters", "log_posterior" and, if it is
        sampled, "concentration".
    weights_, means_, covariances_ : arrays (K,), (K, D), (K, D, D), (K, D) or (K,)
        Expected given ``labels_``.
    tail_weight_ : float
        Weight left for clusters that were not seen; with ``weights_`` it sums to 1.
    concentration_ : float
        Mean over samples.
    acceptance_rate_ : float
        Share of the splits and merges proposed that were accepted.
    prior_ : dict
        The hyperparameters, in the units of X.
    matched_ : array (K,) or None
        With ``match_to``: the number of the same component there, -1 for those that are new.
    n_iter_ : int
        Sweeps of each chain.
    converged_ : bool
        Whether chains are as long as was wanted and ``diagnostics_`` are good.

    See Also
    --------
    VariationalDPMixture : Faster, for any number of rows; one answer.
    DPMeans : Labels only.

    Notes
    -----
    With weights w, a row's likelihood counts w times, but the row moves as one and is one row of :math:`n_c`.
    ``predict``, ``predict_proba``, ``score_samples`` and ``sample`` are means over up to 200 of the samples.

    References
    ----------
    .. [1] Neal (2000), Markov chain sampling methods for Dirichlet process mixture models.
    .. [2] Jiang, Kulis & Jordan (2012), Small-variance asymptotics for exponential family Dirichlet process mixture
       models.
    .. [3] Dahl (2003), An improved merge-split sampler for conjugate Dirichlet process mixture models.
    .. [4] Escobar & West (1995), Bayesian density estimation and inference using mixtures, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import GibbsDPMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, size=(40, 2)) for m in (-6, 0, 6)])
    >>> model = GibbsDPMixture(n_samples=200, burn_in=100, random_state=0).fit(X)
    >>> model.n_clusters_
    3
    >>> K, probability = model.posterior_n_clusters_
    >>> int(K[probability.argmax()]), model.coclustering_[0, [1, 50]].round(1)
    (3, array([1., 0.]))
    """

    _families = SAMPLED
    _parameters = GIBBS_DP_MIXTURE
    _words = Words("clusters", "log posterior")
    _last: tuple[list[Chain], Length, GibbsProblem] | None

    def __init__(
        self,
        *,
        family="gaussian",
        concentration=1.0,
        prior=None,
        beta=1.0,
        n_samples=1000,
        burn_in=500,
        thin=1,
        n_chains=2,
        collapsed=True,
        moves="split_merge",
        init="dpmeans",
        point_estimate="vi",
        match_to=None,
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
        max_time=None,
    ):
        self.family = family
        self.concentration = concentration
        self.prior = prior
        self.beta = beta
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.collapsed = collapsed
        self.moves = moves
        self.init = init
        self.point_estimate = point_estimate
        self.match_to = match_to
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time

    def fit(self, X, y=None, sample_weight=None):
        """Sample partitions of the rows of X.

        Parameters
        ----------
        X : array (N, D), or CSR matrix for "multinomial", "poisson" and "bernoulli"
        y : ignored
        sample_weight : array (N,), default=None
            How often the likelihood of a row counts. The row moves as one.

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            X, sample_weight = check_weighted_table(self, X, sample_weight, reset=True)
            problem = GibbsProblem.of(X, sample_weight, self.family, self._prior(X, sample_weight))
            sampler, chains, length = self._chains(problem, X, sample_weight, budget)
            done = run_chains(sampler, chains, length, budget, self.n_jobs)
            publish = partial(self._publish, problem, sampler, done, length, X)
            # if it is interrupted it is done again, so that nothing is lost
            attempt(publish, publish, budget)
        self._warn(problem, done, budget)
        return self

    def coclustering(self, rows, others=None):
        """How probable it is that rows are in one cluster.

        Parameters
        ----------
        rows : array of int (n,)
            Places of training rows.
        others : array of int (m,), default=None
            As many others as there are; ``rows`` if None.

        Returns
        -------
        array (n, m)
        """
        check_is_fitted(self)
        places = [
            self._places(name, value) for name, value in (("rows", rows), ("others", others)) if value is not None
        ]
        with set_span_threads():
            return coclustering(self._by_number(), *places)

    @made_when_asked
    def coclustering_(self):
        """How probable it is that two rows are in one cluster, (N, N)."""
        check_is_fitted(self)
        n = self.samples_.shape[1]
        if n > SUMMARIES.dense_rows:
            raise AttributeError(
                f"coclustering_ would need {8e-9 * n * n:.1f} GB for {n} rows; it is made for up to "
                f"{SUMMARIES.dense_rows}. Ask for some rows: coclustering(rows)."
            )
        with set_span_threads():
            return coclustering(self._by_number())

    def to_arviz(self):
        """All samples as arviz takes them, which must be installed.

        Returns
        -------
        arviz.InferenceData
            "n_clusters", "concentration" and "labels" of each sample; the log posterior is "lp" of its statistics.
        """
        check_is_fitted(self)
        posterior = {"n_clusters": self._kept["n_clusters"], "concentration": self._kept["concentration"]}
        posterior["labels"] = self.samples_
        stats = {"lp": self._kept["log_posterior"]}
        return inference_data(posterior, self.sample_chain_, sample_stats=stats, dims={"labels": ["row"]})

    def explain(self):
        """How sure the number of clusters is, and who belongs to them, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        mass = np.bincount(self.labels_, minlength=self.n_clusters_)
        length = self.sample_chain_.size, int(self.sample_chain_[-1]) + 1
        sampled = Sampled(self.n_clusters_, *self.posterior_n_clusters_, *length, self.converged_)
        return explain_sampled(sampled, self.cluster_probability_, mass)

    def _prior(self, X: Any, sample_weight: Any) -> Any:
        """What the user said of the prior; learned by another fit if that is wanted."""
        if isinstance(self.prior, str) and self.prior == "learn":
            if self.family not in CONJUGATE:
                raise ValueError(f"prior='learn' is for {', '.join(map(repr, CONJUGATE))}; pass a dict, or None.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learned = VariationalDPMixture(family=self.family, max_time=self.max_time)
                return learned.fit(X, sample_weight=sample_weight).prior_
        return self.prior

    def _chains(self, problem: GibbsProblem, X: Any, sample_weight: Any, budget: Budget) -> tuple[Any, Any, Length]:
        """A sampler, chains to run or to go on with, and how long they are to be."""
        concentration = check_prior_of_concentration(self.concentration)
        beta = check_schedule(self.beta, self.burn_in, concentration)
        way = Way(beta, bool(self.collapsed), GIBBS.proposals if self.moves else 0)
        last = getattr(self, "_last", None) if self.warm_start else None
        if last is not None:
            chains, length, before = last
            self._check_same(problem, before, length, len(chains))
            length = length._replace(n_samples=len(chains[0].kept) + self.n_samples)
            return DPSampler(problem.bound, problem.weight, concentration, way, []), chains, length
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        starts = self._starts(problem, X, sample_weight, np.random.default_rng([seed, 1]), budget)
        sampler = DPSampler(problem.bound, problem.weight, concentration, way, starts)
        return sampler, new_chains(self.n_chains, seed), Length(self.n_samples, self.burn_in, self.thin)

    def _check_same(self, problem: GibbsProblem, before: GibbsProblem, length: Length, n_chains: int) -> None:
        """Whether chains may go on."""
        rows = problem.bound.rows
        same = before.bound.family.name == problem.bound.family.name and before.bound.rows.shape == rows.shape
        if same:
            gap = before.bound.rows - rows
            same = not (gap.nnz if sp.issparse(gap) else gap.any()) and np.array_equal(before.weight, problem.weight)
        if not same or (self.n_chains, self.burn_in, self.thin) != (n_chains, length.burn_in, length.thin):
            raise ValueError(
                "warm_start=True goes on with the chains of the last fit, but X, sample_weight, family, n_chains, "
                "burn_in or thin differ from those of that fit. Pass the same, or set warm_start=False."
            )

    def _starts(
        self, problem: GibbsProblem, X: Any, sample_weight: Any, rng: np.random.Generator, budget: Budget
    ) -> list[Any]:
        """First partitions, one chain after the other."""
        n = problem.active.size
        if not isinstance(self.init, str):
            return [renumbered(check_labels(self.init, X.shape[0])[problem.active])]
        if self.init == "one" or n == 1:
            return [np.zeros(n, np.int32)]
        if self.init == "singles":
            return [np.arange(n, dtype=np.int32)]
        found = self._first_clusters(X[problem.active], problem.weight, budget).astype(np.int32)
        K = int(found.max()) + 1
        joined = (rng.permutation(K) // 2).astype(np.int32)[found]
        cut = 2 * found + rng.integers(0, 2, size=n).astype(np.int32)
        others = [joined, cut] if K > 1 else [cut]
        return [renumbered(labels) for labels in (found, *others)]

    def _first_clusters(self, X: Any, weight: Any, budget: Budget) -> Any:
        """Clusters of DPMeans; rows without counts are with the first."""
        labels, rows = np.zeros(X.shape[0], np.int64), np.arange(X.shape[0])
        if self.family == "multinomial":
            rows = np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)
        if rows.size < 2:
            return labels
        model = DPMeans(divergence=_DIVERGENCES.get(self.family, "sqeuclidean"), random_state=0, max_time=self.max_time)
        if self.family in ("multinomial", "bernoulli"):
            model.set_params(smoothing=0.1)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            labels[rows] = model.fit(X[rows], sample_weight=weight[rows]).labels_
        budget.interrupted |= any("interrupted" in str(one.message) for one in told)
        return labels

    def _publish(self, problem: GibbsProblem, sampler: DPSampler, done: ChainSamples, length: Length, X: Any) -> None:
        """Write every fitted attribute, once."""
        self.__dict__.pop("coclustering_", None)
        samples = [sample for chain in done.kept for sample in chain]
        labels = np.stack([sample.labels.astype(np.int32) for sample in samples])
        names = ("n_clusters", "log_posterior", "concentration", "accepted")
        traces = dict(zip(names, np.moveaxis(done.traces, 2, 0)))
        self._kept = {name: done.in_kept[:, :, i].ravel() for i, name in enumerate(names)}
        self._kept["n_clusters"] = self._kept["n_clusters"].astype(np.int64)
        self.sample_chain_ = np.repeat(np.arange(len(done.kept)), len(done.kept[0]))
        found = point_estimate(labels, self.point_estimate, self._kept["log_posterior"])
        estimate, self.expected_loss_ = by_size(found.labels), found.loss
        beta = float(sampler.way.beta[-1])
        model = GibbsModel.of(problem, estimate, samples, beta)
        matched = self._match(model.point, X[problem.active], estimate)
        if matched is not None:
            estimate = matched.rank[estimate]
            model = GibbsModel.of(problem, estimate, samples, beta)
        self.matched_ = None if matched is None else matched.earlier
        own, probability = estimate, own_probability(estimate, labels)
        if estimate.size < X.shape[0]:
            own, probability, labels = self._with_weightless(problem, model, estimate, probability, labels, X)
        self._publish_model(model, own)
        self.n_clusters_, self.tail_weight_ = self.n_components_, float(model.weights[-1])
        self.samples_ = labels.astype(np.min_scalar_type(labels.max() if labels.min() >= 0 else -1 - labels.max()))
        self.cluster_probability_ = probability
        self.n_clusters_trace_ = traces["n_clusters"].astype(np.int64)
        self.log_posterior_trace_, self.concentration_trace_ = traces["log_posterior"], traces["concentration"]
        self.posterior_n_clusters_ = posterior_of_count(self._kept["n_clusters"])
        wanted = names[: 2 if sampler.concentration.prior is None else 3]
        self.diagnostics_ = diagnose({name: self._kept[name] for name in wanted}, self.sample_chain_)
        self.concentration_ = float(self._kept["concentration"].mean())
        self.prior_ = published(problem.bound.family, problem.bound.prior, problem.units)
        proposed = sampler.way.proposals if problem.active.size > 1 else 0
        self.acceptance_rate_ = float(traces["accepted"].mean()) / proposed if proposed else 0.0
        self.n_iter_ = int(done.traces.shape[1])
        self.converged_ = done.complete and not self._complaints()
        self._last = (done.chains, length, problem) if self.warm_start else None

    def _with_weightless(
        self, problem: GibbsProblem, model: GibbsModel, estimate: Any, probability: Any, labels: Any, X: Any
    ) -> tuple[Any, Any, Any]:
        """Labels and probabilities of all rows: those without weight are asked about as new ones are."""
        shares = model.shares(X)
        all_labels, sure = shares.argmax(axis=1), shares.max(axis=1)
        all_labels[problem.active], sure[problem.active] = estimate, probability
        samples = np.full((labels.shape[0], X.shape[0]), -1, np.int32)
        samples[:, problem.active] = labels
        return all_labels, sure, samples

    def _by_number(self) -> Any:
        """Samples in which rows without weight have clusters of their own."""
        if self.samples_.dtype.kind == "u":
            return self.samples_
        samples = self.samples_.astype(np.int32)
        beyond = np.flatnonzero((samples < 0).any(axis=0))
        samples[:, beyond] = samples.max() + 1 + np.arange(beyond.size)
        return samples

    def _places(self, name: str, rows: Any) -> Any:
        places, n = np.atleast_1d(np.asarray(rows)), self.samples_.shape[1]
        if places.ndim != 1 or places.dtype.kind not in "iu" or (places.size and not -n <= places.min()):
            raise ValueError(f"{name} must be places of training rows, whole numbers from 0 to {n - 1}, got {rows!r}.")
        if places.size and places.max() >= n:
            raise ValueError(f"{name} has {places.max()}, but there are only {n} training rows.")
        return places % n

    def _complaints(self) -> list[str]:
        return complaints(self.diagnostics_, self.sample_chain_.size, int(self.sample_chain_[-1]) + 1)

    def _warn(self, problem: GibbsProblem, done: ChainSamples, budget: Budget) -> None:
        if problem.degenerate:
            warnings.warn(
                "The rows of X do not differ, so the data say nothing about the width of a cluster: it was taken "
                "to be a tenth of a unit. Pass prior={'covariance': ...} to set it.",
                UserWarning,
                stacklevel=3,
            )
        said = [] if done.complete else [self._ending(done, budget)]
        for text in said if not done.burnt_in else said + self._complaints():
            warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def _ending(self, done: ChainSamples, budget: Budget) -> str:
        reason = ending(self, budget)
        if done.burnt_in:
            return f"Sampling {reason}: {len(done.kept[0])} samples of each chain are kept."
        return (
            f"Sampling {reason}, before the end of burn-in (sweep {done.traces.shape[1]} of {self.burn_in}): only the "
            "last state of each chain is kept. Give it more time, or lower burn_in."
        )
