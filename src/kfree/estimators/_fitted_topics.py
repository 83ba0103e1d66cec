"""What a fitted HDPTopics can be asked, and how its topics are merged."""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._card import Parts
from kfree.estimators._endings import all_or_nothing
from kfree.estimators._running import RunningEstimator
from kfree.estimators._sklearn import check_table, weight_of
from kfree.estimators._spread import by_block
from kfree.families import Array
from kfree.inference.topics.coherence import npmi, rank_words
from kfree.inference.topics.hard_topics import objective
from kfree.inference.topics.topic_goal import TopicCounts, TopicGoal
from kfree.inference.topics.topic_merges import merge_changes
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_tree import cut_tree, merge_tree
from kfree.models.checks import check_choice, check_number
from kfree.models.explain_topics import NextMerge, TopicsToTell, explain
from kfree.models.merged_topics import TopicTables, added_up, check_groups, renumbered
from kfree.models.topic_documents import representatives
from kfree.models.topic_words import Company, check_vocabulary, name_topics
from kfree.models.topics import TopicModel, check_counts, merge_goal
from kfree.rows import Documents, set_span_threads
from kfree.rows.dask import map_parts

#: Attributes that are there after a fit of documents in blocks only.
OF_BLOCKS = ("_bags", "_sampled")


class FittedTopics(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RunningEstimator):
    """An estimator whose model is a set of topics, and what is known of the documents they were found in."""

    _topics: TopicModel
    _background: Array  # (V,) word probabilities of the corpus
    _company: Company
    _hard_words: sp.csr_matrix  # (K, V) tokens by hard labels
    _weight: Array  # (D,) weights of the documents of the fit, (0,) for ones
    _n_found: int  # topics of the fit, before any merge
    _bags: sp.csr_matrix  # (S, K) of documents in blocks: tokens by hard labels in those that are remembered
    _sampled: bool  # and whether there are more of them
    components_: Any
    topic_word_counts_: Any
    documents_per_topic_: Any
    n_topics_: int
    lam_global: Any
    n_topics: Any

    @by_block(np.float64, lambda self, hard=False: self.n_topics_)
    def transform(self, X, *, hard=False):
        """Topic shares of documents.

        Parameters
        ----------
        X : CSR matrix or array (D, V)
            Documents, seen or unseen, over the same vocabulary. One without words gets equal shares of all topics.
        hard : bool, default=False
            Let every cell take one topic, as in the fit, and return the shares of tokens. Many zeros, but shares
            of short documents are less well known.

        Returns
        -------
        array (D, K)
            Rows sum to 1.
        """
        check_is_fitted(self)
        X = self._counts(X, reset=False)
        with set_span_threads():
            return self._topics.hard_shares(X) if hard else self._topics.shares(X)

    @by_block(np.intp)
    def predict(self, X):
        """The main topic of each document: the one with the largest share in ``transform(X)``.

        Parameters
        ----------
        X : CSR matrix or array (D, V)
            Documents, seen or unseen, over the same vocabulary.

        Returns
        -------
        array (D,)
            -1 for a document without words.
        """
        check_is_fitted(self)
        X = self._counts(X, reset=False)
        with set_span_threads():
            return self._topics.main_topics(X)

    def score(self, X, y=None, sample_weight=None):
        """Document completion: mean log-probability of a token, larger is better.

        Half of the tokens of each document (at random, but always the same half) give its topic shares; the tokens
        of the other half are scored by ``log sum_p share_p components_[p, word]``.

        Parameters
        ----------
        X : CSR matrix or array (D, V)
            Documents that were not in the fit.
        y : ignored
        sample_weight : array (D,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X, sample_weight = self._counts(X, reset=False), weight_of(X, sample_weight)
        with set_span_threads():
            return self._topics.completion(X, sample_weight)

    def perplexity(self, X, sample_weight=None):
        """``exp(-score(X))``: how many equally likely words a held-out token is like."""
        return float(np.exp(-self.score(X, sample_weight=sample_weight)))

    def top_words(self, n=10, *, by="probability", vocabulary=None):
        """The first words of each topic.

        Parameters
        ----------
        n : int, default=10
        by : {"probability", "lift"}, default="probability"
            "lift" divides by the probability of the word in the corpus: words that are special to the topic.
        vocabulary : array of str or vectorizer, default=None
            Names of the words, or a fitted vectorizer that knows them; by default those given to ``name_topics``,
            else the names of the columns X had in the fit, else their numbers.

        Returns
        -------
        array (K, n)
        """
        check_is_fitted(self)
        check_number("n", n, least=1, integer=True)
        check_choice("by", by, ("probability", "lift"))
        value = self.components_ if by == "probability" else self.components_ / self._background
        words = rank_words(value, min(n, self.n_features_in_))
        names = self._word_names() if vocabulary is None else check_vocabulary(vocabulary, self.n_features_in_)
        return words if names is None else names[words]

    def name_topics(self, vocabulary):
        """Tell the model what its words are called: ``topic_names_`` and ``top_words()`` then use these names.

        Parameters
        ----------
        vocabulary : array of str or vectorizer
            A name for each column of X, or the fitted vectorizer that made X.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.vocabulary_ = check_vocabulary(vocabulary, self.n_features_in_)
        self.topic_names_ = name_topics(self.components_, self._background, self.vocabulary_)
        return self

    def representative_documents(self, X, texts=None, n=5):
        """The documents that show best what each topic is about: those with the largest shares of it.

        They are looked for among those whose main topic it is, or among all if there are none. A share that is known
        from few words counts for less, and of several documents with the same words only the first is shown.

        Parameters
        ----------
        X : CSR matrix or array (D, V)
            Documents, seen or unseen.
        texts : sequence of D texts (or titles, or anything else), default=None
            What to return in place of the documents' positions.
        n : int, default=5
            Documents for each topic.

        Returns
        -------
        array (K, n) of positions in X, -1 where there are no more documents; or, with ``texts``, a list of K lists
        """
        check_is_fitted(self)
        check_number("n", n, least=1, integer=True)
        X = self._counts(X, reset=False)
        if texts is not None and len(texts) != X.shape[0]:
            raise ValueError(f"There are {len(texts)} texts for {X.shape[0]} documents. Pass one for each row of X.")
        with set_span_threads():
            found = representatives(Documents(X, np.empty(0)), self._topics.shares(X), int(n))
        if texts is None:
            return found
        every = list(texts)
        return [[every[j] for j in row if j >= 0] for row in found]

    def coherence(self, n=10, reference=None, *, per_topic=False):
        """NPMI of the first n words of the topics: from -1 (they never meet in a document) to 1.

        Parameters
        ----------
        n : int, default=10
        reference : CSR matrix or array (D, V), default=None
            Documents in which words meet; by default those of the last fit (or batch, or the sample of a fit in
            blocks), for n up to 50.
        per_topic : bool, default=False
            Return the value of each topic instead of their mean.

        Returns
        -------
        float or array (K,)
        """
        check_is_fitted(self)
        check_number("n", n, least=2, integer=True)
        n = min(int(n), self.n_features_in_)
        if n < 2:
            raise ValueError("coherence compares pairs of words, but the vocabulary has only one.")
        if reference is None and n > TOPICS.remembered:
            raise ValueError(f"coherence(n={n}) needs a reference: without one, n is at most {TOPICS.remembered}.")
        words = rank_words(self.components_, n)
        if reference is None:
            value = self._company.coherence(words)
        else:
            value = npmi(words, self._counts(reference, reset=False).tocsc())
        return value if per_topic else value.mean()

    def merge_topics(self, groups):
        """Make one topic of each group of topics, without a new fit.

        Counts, shares in documents and labels of the merged topics add up; the model is then as if its topics had been
        found that way. The heaviest topic comes first again, so numbers change: pass all groups at once. ``transform``
        finds shares anew with the merged topics, which are close to the sums in ``doc_topic_``, not equal to them.

        Where the documents of the fit are in blocks of Dask, main topics go with their topics, and what a merge does to
        ``objective_`` is known from the sample.

        Parameters
        ----------
        groups : list of lists of int
            Topics to be merged, such as ``[[0, 3], [1, 2, 7]]``; topics that are in none stay as they are.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        return self._merge(check_groups(groups, self.n_topics_))

    def reduce_topics(self, n):
        """Merge topics until n are left, without a new fit: always the two whose words then cost least more in all.

        Parameters
        ----------
        n : int
            Topics to be left.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        check_number("n", n, least=1, integer=True)
        if n > self.n_topics_:
            raise ValueError(
                f"reduce_topics({n}), but there are {self.n_topics_} topics. Pass at most {self.n_topics_}, or fit "
                "with a smaller lam_global, or with n_topics, to have more."
            )
        return self._merge(cut_tree(self.topic_tree(), int(n)))

    def topic_tree(self):
        """The merges that ``reduce_topics`` makes, from all topics down to one.

        Returns
        -------
        array (K - 1, 4)
            As ``scipy.cluster.hierarchy`` has it: the two that are merged (topics below K, K + i is the result of merge
            i), what that adds to the cost of the words in nats, and how many topics are then in it.
        """
        check_is_fitted(self)
        with set_span_threads():
            return merge_tree(*self._to_merge())

    def explain(self):
        """Why there are so many topics, and which would be merged next, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        told = TopicsToTell(
            names=self.topic_names_,
            documents=self.documents_per_topic_,
            lam_global=self.lam_global_,
            merge=self._next_merge(),
            structure=self.structure_,
            n_found=self._n_found,
            asked=self.n_topics,
            chosen=isinstance(self.lam_global, str),
        )
        return explain(told)

    def _parts(self) -> Parts:
        return Parts("topics", self.topic_sizes_, float(self.topic_sizes_.sum()), self.topic_names_.tolist())

    @property
    def _n_features_out(self):
        return self.n_topics_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_topics")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _counts(self, X: Any, *, reset: bool) -> sp.csr_matrix:
        return check_counts(check_table(self, X, reset=reset))

    @property
    def _in_blocks(self) -> bool:
        """Whether the documents of the fit are where they were, in blocks."""
        return "_bags" in vars(self)

    def _word_names(self) -> Array | None:
        """What the words are called, if that is known."""
        return getattr(self, "vocabulary_", getattr(self, "feature_names_in_", None))

    def _to_merge(self) -> tuple[Documents, TopicCounts, TopicGoal]:
        """What prices of merges are made of."""
        tables = self._tables()
        bags = tables.bags(self._weight)
        return bags, tables.hard_counts(), merge_goal(self, bags, self._topics.penalties, self.n_features_in_)

    def _next_merge(self) -> NextMerge | None:
        """What ``reduce_topics`` would merge first."""
        if self.n_topics_ == 1:
            return None
        bags, counts, goal = self._to_merge()
        with set_span_threads():
            pair = merge_tree(bags, counts, goal)[:1, :2].astype(np.int64)
            price = float(merge_changes(bags, counts, pair, goal)[0]) + goal.lam_global
        return NextMerge(int(pair[0, 0]), int(pair[0, 1]), max(price, 0.0))

    def _tables(self) -> TopicTables:
        if self._in_blocks:  # what is known of each document is with it
            labels = (np.empty(0, np.int32), self._bags, np.empty((0, self.n_topics_)))
        else:
            labels = (self.cell_labels_, self.doc_topic_counts_, self.doc_topic_)
        return TopicTables(self.topic_word_counts_, self._hard_words, *labels)

    def _merge(self, group: Array) -> "FittedTopics":
        """Merge the topics that have the same number in ``group`` (K,)."""
        if np.unique(group).size == self.n_topics_:
            return self
        with all_or_nothing(self), set_span_threads():
            before = self._tables()
            tables = before.merged(group)
            model = TopicModel.of(tables.words, self._topics.penalties)
            if self._in_blocks:
                self._merge_in_blocks(before, tables, group, model)
            else:
                self._set_topics(tables, model)
                self.objective_ = self._cost(tables)
        return self

    def _merge_in_blocks(self, before: TopicTables, tables: TopicTables, group: Array, model: TopicModel) -> None:
        """The same where documents are in blocks: what is said of each follows, if it is still there."""
        self.objective_ = self._cost(tables) + (self.objective_ - self._cost(before) if self._sampled else 0.0)
        new = before.numbers(group)
        self._bags = tables.doc_counts
        self._set_words(tables.words, tables.hard_words, model)
        self.documents_per_topic_ = np.bincount(new, weights=self.documents_per_topic_)
        for name in ("cell_labels_", "doc_labels_"):
            if hasattr(self, name):
                setattr(self, name, map_parts(getattr(self, name), partial(renumbered, new)))
        for name in ("doc_topic_counts_", "doc_topic_"):
            if hasattr(self, name):
                setattr(self, name, map_parts(getattr(self, name), partial(added_up, new), self.n_topics_))

    def _cost(self, tables: TopicTables) -> float:
        """J of hard labels, of the documents that merges are priced by."""
        bags = tables.bags(self._weight)
        goal = merge_goal(self, bags, self._topics.penalties, self.n_features_in_)
        return float(objective(bags, tables.hard_counts(), goal))

    def _set_topics(self, tables: TopicTables, model: TopicModel) -> None:
        """Write every attribute that is made of counts by topic."""
        self._set_words(tables.words, tables.hard_words, model)
        self.cell_labels_, self.doc_topic_counts_ = tables.cell_labels, tables.doc_counts
        self.doc_topic_, self.doc_labels_ = tables.doc_shares, tables.doc_shares.argmax(axis=1)
        weight = self._weight if self._weight.size else None
        self.documents_per_topic_ = np.bincount(self.doc_labels_, weights=weight, minlength=self.n_topics_)

    def _set_words(self, words: Array, hard_words: sp.csr_matrix, model: TopicModel) -> None:
        """Those of them that are made of words."""
        self._topics, self._hard_words = model, hard_words
        self.components_, self.topic_word_counts_ = np.ascontiguousarray(model.mean.T), words
        self.n_topics_ = self.n_components_ = len(words)
        self.topic_sizes_ = words.sum(axis=1)
        self.topic_names_ = name_topics(self.components_, self._background, self._word_names())
