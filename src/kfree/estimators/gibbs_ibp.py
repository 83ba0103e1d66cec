"""The public class GibbsIBP: samples of the posterior of binary latent features."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from kfree.estimators._card import Parts
from kfree.estimators._endings import all_or_nothing, warn_unfinished
from kfree.estimators._running import RunningEstimator, Words
from kfree.estimators._sklearn import check_table, refuse_weights
from kfree.inference.gibbs.chains import ChainSamples, Length, new_chains, run_chains
from kfree.inference.gibbs.diagnostics import complaints, diagnose
from kfree.inference.gibbs.partitions import posterior_of_count
from kfree.inference.gibbs.to_arviz import inference_data
from kfree.inference.loop import Budget, attempt
from kfree.models.explain_features import explain_sampled_features
from kfree.models.explain_mixtures import Sampled
from kfree.models.ibp_model import FeatureSamples, SampledFeatures
from kfree.models.ibp_problem import IBPProblem
from kfree.models.parameter_tables import GIBBS_IBP
from kfree.rows import set_span_threads

#: Phases of BP-means.
_STARTS = ("K-features", "collapsed", "BP-means", "restart")
_NAMES = ("n_components", "log_posterior", "concentration", "noise", "feature_scale")


class GibbsIBP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RunningEstimator):
    r"""Samples of the posterior of binary latent features; their number is sampled with them.

    Rows are sums of the features they have, and noise; the allocation Z has an Indian buffet process as its prior:

    .. math:: Z \sim \mathrm{IBP}(\gamma), \qquad a_k \sim N(0, \sigma_a^2 I), \qquad x_n \sim N(z_n A, \sigma^2 I)

    The means A are integrated out, rows are visited one at a time [1]_ [2]_. For small data, and where it matters how
    sure the features are; :class:`BPMeans` finds one good answer in much less time.

    Parameters
    ----------
    concentration : float or pair of floats, default=1.0
        The prior's gamma: gamma (1 + 1/2 + ... + 1/n) features are expected before the data are seen. Larger gives more
        features. A pair (shape, rate) is a gamma prior, and gamma is sampled.
    noise : float, pair of floats or "auto", default="auto"
        Standard deviation of the noise. Larger gives fewer features. "auto" samples it, with a vague prior that follows
        the data; a pair (shape, scale) is an inverse gamma prior of its square.
    feature_scale : float, pair of floats or "auto", default="auto"
        Standard deviation of the entries of the features, in the same way.
    n_samples : int, default=1000
        Samples kept of each chain.
    burn_in : int, default=500
        Sweeps of each chain before the first of them.
    thin : int, default=1
        Sweeps from one sample to the next.
    n_chains : int, default=2
        Chains; what they do not agree on is not known.
    init : {"bpmeans", "prior", "empty"} or array (n, K), default="bpmeans"
        Where chains start: from the features of BP-means (each chain from a restart of its own), a draw of the prior,
        no features, or an allocation. Rows move one at a time, so that chains hardly leave a mode; from "prior" and
        "empty" they often stay in a poor one, which R-hat then tells.
    random_state : int, RandomState or None, default=None
        Seeds the chains.
    n_jobs : int, default=None
        Chains at a time, through joblib; the samples do not depend on it.
    warm_start : bool, default=False
        Whether ``fit`` on the same X goes on with the chains of the last fit: ``n_samples`` more of each.
    verbose : int, default=0
        1 prints how far the chains are.
    max_time : float, default=None
        Seconds after which the samples so far are what counts.

    Attributes
    ----------
    Z_ : array (n, K), uint8
        Which row has which feature in the sample of the largest posterior density; columns by decreasing count.
    components_ : array (K, p)
        Means of these features, expected given ``Z_``.
    n_components_ : int
        K, which may be 0.
    counts_ : array (K,)
        Rows that have each feature.
    posterior_n_components_ : tuple of arrays
        Numbers of features, and the probability of each.
    samples_ : sequence of (Z, concentration, noise, feature_scale)
        All samples, one chain after the other; n K / 8 bytes each (``samples_.nbytes`` in all).
    sample_chain_ : array (n_chains * n_samples,)
        The chain of each sample.
    n_components_trace_, log_posterior_trace_, concentration_trace_, noise_trace_, feature_scale_trace_ : arrays
        (n_chains, burn_in + thin * n_samples) After each sweep, burn-in included.
    concentration_, noise_, feature_scale_ : float
        Means over samples.
    diagnostics_ : dict
        Split R-hat (``rhat``) and effective sample size (``ess``) of "n_components", "log_posterior" and what else is
        sampled.
    n_iter_ : int
        Sweeps of each chain.
    converged_ : bool
        Whether chains are as long as was wanted and ``diagnostics_`` are good.

    See Also
    --------
    BPMeans : One answer, by the limit of small noise.

    Notes
    -----
    Features have no order, and are not unique: compare samples by their rows ``Z @ A``, not by their columns. Features
    have mean 0, so that data far from the origin want their mean subtracted. A row has at most 20 features that no
    other row has.

    A good R-hat of chains that began with BP-means says that they agree about the mode they share, not that there is no
    other: compare ``log_posterior_trace_`` with that of other starts.

    References
    ----------
    .. [1] Griffiths & Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
    .. [2] Doshi-Velez & Ghahramani (2009), Accelerated sampling for the Indian buffet process, ICML.
    .. [3] Broderick, Kulis & Jordan (2013), MAD-Bayes: MAP-based asymptotic derivations from Bayes, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import GibbsIBP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(60, 3)) @ (5 * np.eye(3, 6)) + rng.normal(size=(60, 6)) / 5
    >>> model = GibbsIBP(n_samples=200, burn_in=100, random_state=0).fit(X)
    >>> model.n_components_
    3
    >>> K, probability = model.posterior_n_components_
    >>> int(K[probability.argmax()])
    3
    """

    _parameters = GIBBS_IBP
    # the chains begin with features of BP-means, which have no posterior
    _words = Words("features", "log posterior", unmeasured=_STARTS, details=_STARTS)

    def __init__(
        self,
        *,
        concentration=1.0,
        noise="auto",
        feature_scale="auto",
        n_samples=1000,
        burn_in=500,
        thin=1,
        n_chains=2,
        init="bpmeans",
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
        max_time=None,
    ):
        self.concentration = concentration
        self.noise = noise
        self.feature_scale = feature_scale
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.init = init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time

    def fit(self, X, y=None):
        """Sample features of the rows of X.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
            A sparse matrix is made dense.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            refuse_weights(X, "GibbsIBP")
            X = check_table(self, X, reset=True)
            problem = IBPProblem.of(X, self.concentration, self.noise, self.feature_scale)
            sampler, chains, length = self._chains(problem, budget)
            done = run_chains(sampler, chains, length, budget, self.n_jobs)
            publish = partial(self._publish, problem, done, length)
            # if it is interrupted it is done again, so that nothing is lost
            attempt(publish, publish, budget)
        self._warn(done, budget)
        return self

    def transform(self, X):
        """The most probable features of each row, given those of ``Z_``; none are added.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n, K), uint8
            Of all combinations up to K = 12, beyond that by single bits. Rows of the fit may have others than in
            ``Z_``, which is a draw.
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.allocate(X.toarray() if hasattr(X, "toarray") else X)

    def inverse_transform(self, Z):
        """Rows made of features: ``Z @ components_``.

        Parameters
        ----------
        Z : array (n, K)

        Returns
        -------
        array (n, p)
        """
        check_is_fitted(self)
        Z = check_array(Z, ensure_min_features=0, input_name="Z")
        if Z.shape[1] != self.n_components_:
            raise ValueError(f"Z has {Z.shape[1]} columns, but there are {self.n_components_} features.")
        return Z @ self.components_

    def to_arviz(self):
        """All samples as arviz takes them, which must be installed.

        Returns
        -------
        arviz.InferenceData
            "n_components", "concentration", "noise" and "feature_scale" of each sample; the log posterior is "lp" of
            its statistics.
        """
        check_is_fitted(self)
        posterior = {name: values for name, values in self._kept.items() if name != "log_posterior"}
        return inference_data(posterior, self.sample_chain_, sample_stats={"lp": self._kept["log_posterior"]})

    def explain(self):
        """How sure the number of features is, and who has them, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        length = self.sample_chain_.size, int(self.sample_chain_[-1]) + 1
        sampled = Sampled(self.n_components_, *self.posterior_n_components_, *length, self.converged_)
        return explain_sampled_features(sampled, self.Z_, self.noise_)

    def _parts(self) -> Parts:
        return Parts("features", self.counts_, float(len(self.Z_)))

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_model")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _chains(self, problem: IBPProblem, budget: Budget) -> tuple[Any, Any, Length]:
        """A sampler, chains to run or to go on with, and how long they are to be."""
        last = getattr(self, "_last", None) if self.warm_start else None
        if last is not None:
            before, chains, length = last
            same = before.full.shape == problem.full.shape and before.unit == problem.unit
            same = same and np.array_equal(before.full, problem.full) and before.prior == problem.prior
            if not same or (self.n_chains, self.burn_in, self.thin) != (len(chains), length.burn_in, length.thin):
                raise ValueError(
                    "warm_start=True goes on with the chains of the last fit, but X, the priors, n_chains, burn_in or "
                    "thin differ from those of that fit. Pass the same, or set warm_start=False."
                )
            return problem.sampler([]), chains, length._replace(n_samples=len(chains[0].kept) + self.n_samples)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        starts = problem.starts(self.init, self.n_chains, np.random.SeedSequence([seed, 1]), budget)
        return problem.sampler(starts), new_chains(self.n_chains, seed), Length(self.n_samples, self.burn_in, self.thin)

    def _publish(self, problem: IBPProblem, done: ChainSamples, length: Length) -> None:
        """Write every fitted attribute, once."""
        kept = [sample for chain in done.kept for sample in chain]
        traces, in_kept = (self._in_units(values, problem) for values in (done.traces, done.in_kept))
        self._kept = {name: values.ravel() for name, values in in_kept.items()}
        self.sample_chain_ = np.repeat(np.arange(len(done.kept)), len(done.kept[0]))
        model = SampledFeatures.of(problem, kept[int(np.argmax(self._kept["log_posterior"]))])
        self.Z_, self.components_, self.n_components_ = model.Z, model.components, int(model.Z.shape[1])
        self.counts_ = model.Z.sum(axis=0, dtype=np.int64)
        for name, values in traces.items():
            setattr(self, f"{name}_trace_", values)
        for name in _NAMES[2:]:
            setattr(self, f"{name}_", float(self._kept[name].mean()))
        self.posterior_n_components_ = posterior_of_count(self._kept["n_components"])
        prior = problem.prior
        sampled = [None, None, prior.concentration.value, prior.noise.value, prior.scale.value]
        own_units = dict(zip(_NAMES, np.moveaxis(done.in_kept, 2, 0)))  # squares of the user's might overflow
        wanted = {name: own_units[name].ravel() for name, value in zip(_NAMES, sampled) if value is None}
        self.diagnostics_ = diagnose(wanted, self.sample_chain_)
        self.samples_ = FeatureSamples(kept, problem.unit)
        self.n_iter_ = max(1, done.chains[0].swept)
        self._said = complaints(self.diagnostics_, len(kept), len(done.kept))
        self.converged_ = done.complete and not self._said
        self._last = problem, done.chains, length
        self._model = model

    def _in_units(self, values: Any, problem: IBPProblem) -> dict[str, Any]:
        """Traces (chains, sweeps) by name, in the units of X."""
        found = dict(zip(_NAMES, np.moveaxis(values, 2, 0)))
        found["n_components"] = found["n_components"].astype(np.int64)
        found["log_posterior"] = found["log_posterior"] + problem.constant
        for name in ("noise", "feature_scale"):
            found[name] = np.sqrt(found[name]) * problem.unit
        return found

    def _warn(self, done: ChainSamples, budget: Budget) -> None:
        if done.complete:
            for message in self._said:
                warnings.warn(message, UserWarning, stacklevel=3)
        else:
            warn_unfinished(self, budget, "The chains are shorter than was wanted")
