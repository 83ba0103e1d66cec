"""Topics of documents in blocks: a search on a sample of them, then passes over all."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.loop import Budget, Outcome, attempt
from kfree.inference.topics.coherence import rank_words
from kfree.inference.topics.fold_in import fold_in
from kfree.inference.topics.leave_one_out import burstiness
from kfree.inference.topics.topic_goal import FoundTopics, TopicGoal, topic_means
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_shards import (
    Everywhere,
    Passed,
    TopicPass,
    close_everywhere,
    count_main_topics,
    label_counts,
    main_topics,
    pass_documents,
    soft_counts,
)
from kfree.models.corpus import Corpus, SampledDocuments, as_counts
from kfree.models.topic_words import Company
from kfree.models.topics import Penalties, TopicModel, find_topics, first_goal
from kfree.rows import Documents
from kfree.rows.blocks import Kept

_NONE = np.empty(0)
# Costs of documents are this much below what they are said to be at most, whatever their rounding.
_ABOVE = 1.0 + 1e-6
# The number of no pass: main topics by other topics than those of the last one.
_ANOTHER = -1


class Bags(NamedTuple):
    """Documents as bags of topics."""

    counts: sp.csr_matrix  # (S, K) tokens by hard labels
    weight: Array  # (S,) or (0,) for ones


class SpreadTopics(NamedTuple):
    """A finished fit."""

    model: TopicModel
    labelled_by: TopicModel  # the topics that labels follow from
    words: Array  # (K, V) counts that the model is made of
    hard_words: sp.csr_matrix  # (K, V) the same by labels
    bags: Bags  # of the sample: merges are priced by them
    company: Company  # of the words in the sample
    main: Kept  # main topics of all documents
    documents_per_topic: Array  # (K,)
    penalties: Penalties
    sampled: FoundTopics  # what the search found
    trace: list[float]
    n_iter: int
    converged: bool


class PerDocument(NamedTuple):
    """What is said of each document of a block, when it is asked for."""

    model: TopicModel
    labelled_by: TopicModel

    def shares(self, X: Any) -> Array:
        """Topic shares."""
        return self.model.shares(as_counts(X))

    def labels(self, X: Any) -> Array:
        """The topic of each cell with tokens."""
        return self.labelled_by.hard_labels(Documents(as_counts(X), _NONE))

    def counts(self, X: Any) -> sp.csr_matrix:
        """Tokens of each topic by labels."""
        return _counts_of(Documents(as_counts(X), _NONE), self.labelled_by)

    def prices(self, X: Any) -> Array:
        """Prices of a topic."""
        return self.model.penalties.lam_local.of(Documents(as_counts(X), _NONE))


def _counts_of(documents: Documents, labelled_by: TopicModel) -> sp.csr_matrix:
    return label_counts(documents, labelled_by.hard_labels(documents), labelled_by.mean.shape[1])


def find_spread_topics(wanted: Any, corpus: Corpus, budget: Budget, rng: np.random.Generator) -> SpreadTopics:
    """A fit of a model that has the parameters of HDPTopics.

    The search sees as much evidence as there is in the sample, at the share of the price that the sample is of all
    tokens: topics that pay for themselves there do so everywhere, as far as the sample can tell.
    """
    measured = corpus.measure()
    sample = corpus.sample()
    documents, share = sample.documents, sample.documents.total / measured.tokens
    unseen = max(measured.tokens - documents.total, 0.0)
    penalties = Penalties.of(wanted, documents, wanted.smoothing, seen=unseen)
    own = penalties._replace(lam_global=penalties.lam_global * share)
    goal = first_goal(wanted, documents, own)
    found = find_topics(documents, goal, "anneal", budget, rng)

    def prepare() -> TopicPass:
        every = goal._replace(lam_local=_NONE, lam_global=penalties.lam_global)
        return TopicPass(
            number=0,
            words=found.soft_counts / share,
            goal=every,
            price=penalties.lam_local.of,
            burst=_burstiness(documents, found.soft_counts, goal),
            units=measured.units,
            weights=corpus.seen.weights,
            dearest=_dearest(corpus.seen.longest, len(found.soft_counts), penalties),
        )

    def ask(asked: TopicPass) -> Passed:
        return corpus.blocks.ask(pass_documents, (asked,), Passed.joined)

    outcome = close_everywhere(ask, attempt(prepare, prepare, budget), budget)

    def finish() -> SpreadTopics:
        return _finished(wanted, corpus, sample, penalties, outcome, found)

    return attempt(finish, finish, budget)


def _burstiness(documents: Documents, words: Array, goal: TopicGoal) -> float:
    """How far tokens come together, by topics of these counts (K, V)."""
    share = fold_in(documents, topic_means(words, goal.pseudo))
    return burstiness(documents, soft_counts(documents, share, words), goal)


def _dearest(longest: float, K: int, penalties: Penalties) -> float:
    """What a document adds to J, at most."""
    mixing = penalties.mix * longest * np.log(K) if K > 1 else 0.0
    return float(_ABOVE * (mixing + K * penalties.lam_local.at(longest))) + np.finfo(float).tiny


def _finished(
    wanted: Any,
    corpus: Corpus,
    sample: SampledDocuments,
    penalties: Penalties,
    outcome: Outcome,
    found: FoundTopics,
) -> SpreadTopics:
    """What is known after the last pass."""
    end: Everywhere = outcome.state
    soft, labelled_by = wanted.components == "soft", TopicModel.of(end.asked.words, penalties)
    words = end.asked.words if soft else end.hard
    model = labelled_by if soft else TopicModel.of(words, penalties)
    how = end.asked.number if soft else _ANOTHER, model.mean
    exponent = 60 - int(np.frexp(sum(corpus.seen.documents) * corpus.seen.weights.heaviest)[1])
    main_counts = corpus.blocks.ask(count_main_topics, (*how, exponent), np.add)
    return SpreadTopics(
        model,
        labelled_by,
        words,
        sp.csr_matrix(end.hard),
        Bags(_counts_of(sample.documents, labelled_by), sample.stands_for),
        Company.of(sample.documents.table, rank_words(model.mean.T, TOPICS.remembered)),
        corpus.blocks.keep(main_topics, how),
        np.ldexp(main_counts.astype(np.float64), -exponent),
        penalties,
        found,
        outcome.trace,
        found.n_iter + 1 + end.passes,
        outcome.converged,
    )
