"""HDPTopics: the topics of a document-term table, and how many there are."""

import warnings
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from kfree.estimators._endings import all_or_nothing, warn_unfinished
from kfree.estimators._fitted_topics import OF_BLOCKS, FittedTopics
from kfree.estimators._running import Words
from kfree.estimators._sklearn import weight_of
from kfree.estimators._spread import refuse_batch
from kfree.estimators._spread_documents import BY_CELL, BY_DOCUMENT, SpreadDocuments, spread_documents
from kfree.inference.loop import Budget, attempt
from kfree.inference.topics.coherence import rank_words
from kfree.inference.topics.topic_goal import FoundTopics, TopicGoal
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_seeds import background
from kfree.models.merged_topics import TopicTables
from kfree.models.parameter_tables import HDP_TOPICS
from kfree.models.spread_topics import SpreadTopics
from kfree.models.topic_words import Company
from kfree.models.topics import (
    Penalties,
    TopicModel,
    check_search,
    describe_chance,
    find_topics,
    first_goal,
    follow_topics,
    make_documents,
    next_goal,
)
from kfree.rows import Documents, set_span_threads


class HDPTopics(FittedTopics):
    r"""Topics of a document-term table; their number is found.

    Every cell (document j, word w, n tokens) takes one topic. Minimises

    .. math:: J = \sum_p h_p + \mathrm{mix} \sum_j n_j H(\theta_j) + \sum_j \mathrm{lam\_local}_j |V_j|
        + \mathrm{lam\_global} \cdot G

    where :math:`h_p` is the (smoothed) cost in nats of the words of topic p, :math:`n_j H(\theta_j)` that of saying
    which token of document j belongs to which of its topics :math:`V_j`, and G the number of topics. The default
    search starts with too many topics, assigns softly, merges whatever lowers J, and hardens at the end. The soft
    topics are closed by passes in which every cell is judged by the counts of the others.

    Parameters
    ----------
    lam_local : float or "auto", default="auto"
        Price of a topic in a document, in nats; larger gives fewer topics per document. "auto": ``0.5 log(n_j + 1)``
        for a document of n_j tokens; with ``mix=0`` a quarter of the mean length.
    lam_global : float or "auto", default="auto"
        Price of a topic, in nats; larger gives fewer topics. "auto": ``5 sqrt(number of tokens)``. This is the
        knob for coarser or finer topics: twice the price gives about half as many.
    mix : float, default=1.0
        Weight of the mixing cost, from 0 to 1. 0 is the objective of [1]_, which has none.
    search : {"anneal", "paper"}, default="anneal"
        "paper" is the algorithm of [1]_ and [2]_, cell by cell, from the same first topics; it needs ``mix=0``.
    n_topics : int, default=None
        Give this many topics, whatever the penalties say. Only for ``search="anneal"``.
    n_topics_init : int or "auto", default="auto"
        Topics to start from; "auto": ``0.15 sqrt(number of tokens)``, at most a quarter of the documents. With
        ``search="paper"``, 1 starts from a single topic as the papers do.
    components : {"soft", "hard"}, default="soft"
        Whether ``components_`` come from the soft counts after the closing passes or from the hard labels, which are
        less coherent and predict a little worse.
    refine : None or "collapsed", default=None
        "collapsed" moves single cells after the hard passes, topics and shares following every move: a
        lower J, for labels and hard components that are no better to read.
    smoothing : float or "auto", default="auto"
        Pseudo-tokens of every topic, spread evenly over the vocabulary; "auto": 0.05 for each word.
    max_iter : int, default=100
        Most hard passes.
    tol : float, default=1e-3
        Share of the cells that may still change topic when hard passes stop; 0 runs to the fixed point.
    max_time : float, default=None
        Seconds after which the best so far is returned.
    random_state : int, RandomState or None, default=None
        Seeds the choice of the first topics. None always makes the same choice: fits are repeatable.
    verbose : int, default=0
        1 prints how far the search is, 2 every pass.

    Attributes
    ----------
    components_ : array (K, V)
        Word probabilities of the topics, heaviest topic first; rows sum to 1.
    topic_word_counts_ : array (K, V)
        Tokens of each word in each topic: soft or hard as ``components`` says.
    n_topics_, n_components_ : int
        K.
    topic_names_ : array (K,) of str
        Names of about three words that are both frequent in a topic and special to it, all different. ``name_topics``
        tells the model what the words are called, if the columns of X had no names.
    topic_sizes_ : array (K,)
        Tokens of each topic: sums of ``topic_word_counts_``.
    documents_per_topic_ : array (K,)
        Documents (or their weights) whose main topic it is.
    doc_topic_ : array (D, K)
        Topic shares of the training documents, as ``transform`` gives them; rows sum to 1. If a fit ends for lack of
        time or is interrupted, those of the hard labels.
    doc_labels_ : array (D,)
        Main topic of each training document, as ``predict`` gives it: the one with the largest share.
    doc_topic_counts_ : CSR matrix (D, K)
        Tokens of each topic in each training document, by hard labels.
    cell_labels_ : array (cells,)
        Topic of each stored cell of X with a count above 0, row by row, words ascending: the hard labels.
    vocabulary_ : array (V,)
        What was given to ``name_topics``; not there before.
    objective_ : float
        J of the hard labels.
    objective_trace_ : array
        J of the first labels and after each hard pass; never rises. Topics merged after the fit are not in it. Of
        many documents in a Dask collection, J of the topics that all of them make, pass by pass, as long as it fell;
        that of the sample's topics, which may be lower, is not in it.
    soft_trace_ : array (passes, 3)
        Inverse temperature, number of topics and free energy of each soft pass; the last never rises as long as the
        first two stay the same. Closing passes lower no such energy and are not in it.
    structure_ : tuple (strength, chance, found) or None
        Largest singular value of the standardised residuals of the corpus, that of the same tokens dealt at random,
        and whether the first stands out. If not, there is one topic, with a warning. None if it was not asked.
    lam_local_ : float or array (D,)
        Price of a topic in each document.
    lam_global_, smoothing_ : float
        The values used.
    n_iter_ : int
        Passes over the documents.
    converged_ : bool
        Whether ``tol`` was reached in time.

    See Also
    --------
    sklearn.decomposition.LatentDirichletAllocation : Topics whose number is given.

    References
    ----------
    .. [1] Jiang, Kulis & Jordan (2012), Small-variance asymptotics for exponential family Dirichlet process
       mixture models, Sections 4 and 5.
    .. [2] Kulis & Jordan (2012), Revisiting k-means: new algorithms via Bayesian nonparametrics, Algorithm 2.
    .. [3] Hofmann (1999), Probabilistic latent semantic analysis (tempered EM).
    .. [4] Asuncion, Welling, Smyth & Teh (2009), On smoothing and inference for topic models (collapsed updates).
    .. [5] Jiang, Sra & Kulis (2017), Combinatorial topic models using small-variance asymptotics.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import HDPTopics
    >>> rng = np.random.default_rng(0)
    >>> topics = np.repeat(np.eye(3), 20, axis=1) / 20  # three topics of 20 words each
    >>> X = np.array([rng.multinomial(80, topics[j % 3]) for j in range(90)])
    >>> model = HDPTopics().fit(X)
    >>> model.n_topics_
    3
    >>> model.components_.shape, model.transform(X[:2]).max(axis=1) > 0.9
    ((3, 60), array([ True,  True]))
    """

    _parameters = HDP_TOPICS
    # the free energy of soft passes rises as they cool, and is no news to anybody
    _words = Words("topics", unmeasured=("soft", "settle", "melt", "close"), details=("settle",), step=5)

    def __init__(
        self,
        lam_local="auto",
        lam_global="auto",
        *,
        mix=1.0,
        search="anneal",
        n_topics=None,
        n_topics_init="auto",
        components="soft",
        refine=None,
        smoothing="auto",
        max_iter=100,
        tol=1e-3,
        max_time=None,
        random_state=None,
        verbose=0,
    ):
        self.lam_local = lam_local
        self.lam_global = lam_global
        self.mix = mix
        self.search = search
        self.n_topics = n_topics
        self.n_topics_init = n_topics_init
        self.components = components
        self.refine = refine
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find the topics of the documents in the rows of X.

        Parameters
        ----------
        X : CSR matrix or array (D, V)
            Counts of words in documents, whole numbers, up to 1e15 in a document and 1e18 in all; documents without
            words are an error. A Dask array (of arrays or CSR matrices) or dataframe is fitted where its blocks lie:
            topics are searched for in a sample of 100 000 documents, and closed by passes over all. Attributes with
            an entry for each document are then Dask arrays.
        y : ignored
        sample_weight : array (D,), default=None
            Weights of documents; an integer weight equals repeating the document. 0, or 1e-15 to 1e15.

        Returns
        -------
        self
        """
        self._check_parameters()
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            spread = spread_documents(self, X, sample_weight)
            if spread is None:
                publish = self._find(self._counts(X, reset=True), weight_of(X, sample_weight), budget)
            else:
                with closing(spread):
                    publish = self._find_spread(spread, budget)
            self.__dict__.pop("vocabulary_", None)  # names of the words of an earlier fit
            attempt(publish, publish, budget)
        self._warn(budget)
        return self

    def _find(self, X: sp.csr_matrix, sample_weight: Any, budget: Budget) -> Callable[[], None]:
        """Find the topics of documents in memory; what is to be done to publish them."""
        documents = make_documents(X, sample_weight)
        penalties = Penalties.of(self, documents, self.smoothing)
        goal = first_goal(self, documents, penalties)
        found = find_topics(documents, goal, self.search, budget, self._rng())
        return partial(self._publish, X, documents, found, penalties, goal, budget)

    def _find_spread(self, spread: SpreadDocuments, budget: Budget) -> Callable[[], None]:
        """The same of documents in blocks."""
        if not spread.few:
            return partial(self._publish_spread, spread, spread.find(budget, self._rng()))
        publish = self._find(*spread.gathered(), budget)

        def publish_in_blocks() -> None:
            publish()
            self._spread_out(spread)

        return publish_in_blocks

    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit and return the topic shares of the documents, as ``transform`` does."""
        return self.fit(X, y, sample_weight=sample_weight).doc_topic_.copy()

    def partial_fit(self, X, y=None, sample_weight=None):
        """Learn from one more batch of documents: topics follow, and those that pay for themselves are added.

        Topics keep their numbers and new ones are appended; counts of earlier batches stay. The attributes about
        documents (``doc_labels_``, ``doc_topic_``, ``cell_labels_``, ``objective_``) are those of this batch. The first
        batch is fitted as by ``fit``. ``lam_global`` "auto" follows the tokens seen so far.

        Parameters
        ----------
        X : CSR matrix or array (D, V)
        y : ignored
        sample_weight : array (D,), default=None

        Returns
        -------
        self
        """
        refuse_batch(X)
        if not hasattr(self, "_topics"):
            return self.fit(X, y, sample_weight=sample_weight)
        self._check_parameters()
        if self.search != "anneal":
            raise ValueError(f"partial_fit is there for search='anneal' only, not for search={self.search!r}.")
        with self._running() as budget, all_or_nothing(self), set_span_threads():
            X, sample_weight = self._counts(X, reset=False), weight_of(X, sample_weight)
            documents = make_documents(X, sample_weight)
            counts = self.topic_word_counts_
            penalties = Penalties.of(self, documents, self.smoothing_, seen=counts.sum())
            goal = next_goal(self, documents, penalties, counts)
            found = follow_topics(documents, goal, budget, self._rng())
            publish = partial(self._publish, X, documents, found, penalties, goal, budget)
            attempt(publish, publish, budget)
        self._warn(budget)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_search(self)

    def _rng(self) -> np.random.Generator:
        if self.random_state is None:
            return np.random.default_rng(0)
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _publish(
        self,
        X: sp.csr_matrix,
        documents: Documents,
        found: FoundTopics,
        penalties: Penalties,
        goal: TopicGoal,
        budget: Budget,
    ) -> None:
        """Write every fitted attribute."""
        soft = self.components == "soft" and self.search != "paper"
        words = found.soft_counts if soft else found.counts.words
        model = TopicModel.of(words, penalties)
        shares, complete = model.shares_in_time(documents, found.counts, budget)
        hard = (sp.csr_matrix(found.counts.words), found.labels, sp.csr_matrix(found.counts.documents.T))
        self._company = Company.of(X, rank_words(model.mean.T, TOPICS.remembered))
        self._background, self._weight = background(words.sum(axis=0)), documents.weight
        self._set_topics(TopicTables(words, *hard, shares), model)
        for name in OF_BLOCKS:
            self.__dict__.pop(name, None)
        self.lam_local_ = goal.lam_local if penalties.lam_local.per_log else penalties.lam_local.flat
        self._publish_search(found, penalties, found.trace)
        self.n_iter_, self.converged_ = max(1, found.n_iter), found.converged and complete

    def _publish_spread(self, spread: SpreadDocuments, found: SpreadTopics) -> None:
        """The same of documents in blocks."""
        self._company, self._background = found.company, background(found.words.sum(axis=0))
        (self._bags, self._weight), self._sampled = found.bags, True
        self._set_words(found.words, found.hard_words, found.model)
        self.documents_per_topic_ = found.documents_per_topic
        self.__dict__.update(spread.attributes(found))
        self._publish_search(found.sampled, found.penalties, found.trace)
        self.n_iter_, self.converged_ = found.n_iter, found.converged

    def _spread_out(self, spread: SpreadDocuments) -> None:
        """What was fitted in memory as what it would be in blocks."""
        self._bags, self._sampled = self.doc_topic_counts_, False
        for name in (*BY_DOCUMENT, BY_CELL):
            if not isinstance(getattr(self, name), float):  # one price for all documents
                setattr(self, name, spread.pieces(name, getattr(self, name)))

    def _publish_search(self, found: FoundTopics, penalties: Penalties, trace: list[float]) -> None:
        """What is known of the search."""
        self._n_found = self.n_topics_
        self.objective_trace_, self.objective_ = np.array(trace), float(trace[-1])
        self.soft_trace_ = np.array(found.soft_trace, dtype=np.float64).reshape(-1, 3)
        self.structure_ = found.structure
        self.lam_global_, self.smoothing_ = penalties.lam_global, penalties.smoothing

    def _warn(self, budget: Budget) -> None:
        if self.structure_ is not None and not self.structure_.found:
            warnings.warn(describe_chance(self.structure_), UserWarning, stacklevel=3)
        warn_unfinished(
            self, budget, f"Labels still change after max_iter={self.max_iter} hard passes (raise max_iter or tol)"
        )
