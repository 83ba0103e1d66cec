"""Topics: checked counts, penalties in numbers, and fitted topics that can be asked."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, attempt
from kfree.inference.topics.fold_in import completion, fill_shares, fold_in, split_tokens
from kfree.inference.topics.hard_topics import count, has_tokens, likely_labels, word_prices
from kfree.inference.topics.randomness_test import Structure, look_for_structure
from kfree.inference.topics.topic_goal import FoundTopics, TopicCounts, TopicGoal, no_topics, topic_means
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.inference.topics.topic_search import SEARCHES
from kfree.inference.topics.topic_seeds import usual_number
from kfree.models.checks import check_weight
from kfree.rows import Documents

COMPONENTS = ("soft", "hard")
_NONE = np.empty(0)
# Tokens of a document, and of a corpus, whose sums are exact.
_TOKENS, ALL_TOKENS = 1e15, 1e18
# A lam for every document and topic is still a number.
LARGEST_LAM = 1e250
# Weights of documents that are not 0, and smoothing: single precision holds their products with tokens.
_LEAST_WEIGHT, MOST_WEIGHT = 1e-15, 1e15
# Pseudo-tokens of a topic for each token and word: costs of words are differences of numbers of their size, and must be
# known to 1e-9.
_MOST_SMOOTHING = 1e4


def check_counts(X: Any) -> sp.csr_matrix:
    """X as CSR of whole numbers >= 0 without stored zeros; the message names the first cell that is not."""
    X = sp.csr_matrix(X, dtype=np.float64)
    for wrong, needs, remedy in (
        (X.data < 0, "counts >= 0", "Negative counts mean nothing here; pass the output of a CountVectorizer."),
        (
            X.data != np.floor(X.data),
            "whole numbers",
            "Pass raw counts, not tf-idf weights or frequencies, or round them.",
        ),
    ):
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            i = int(np.searchsorted(X.indptr, k, side="right")) - 1
            negative = "Negative values in data: " if X.data[k] < 0 else ""
            raise ValueError(
                f"{negative}HDPTopics needs {needs}, but X[{i}, {X.indices[k]}] = {X.data[k]:g}, and "
                f"{int(wrong.sum())} such cells in all. {remedy}"
            )
    if (X.data == 0).any():
        X = X.copy()
        X.eliminate_zeros()
    with np.errstate(over="ignore"):
        length = np.asarray(X.sum(axis=1)).ravel()
        total = length.sum()
    if not (length.max(initial=0.0) <= _TOKENS and total <= ALL_TOKENS):
        i = int(length.argmax())
        raise ValueError(
            f"HDPTopics can count up to {_TOKENS:g} tokens in a document and {ALL_TOKENS:g} in all, but document {i} "
            f"has {length[i]:g} and all have {total:g}. Divide the counts, and round them."
        )
    return X


def check_document_weight(sample_weight: Any, n: int) -> Array:
    """Weights of documents that single precision can hold, or an empty array where there are none."""
    weight = check_weight(sample_weight, n)
    wrong = np.flatnonzero((weight > 0) & ~((weight >= _LEAST_WEIGHT) & (weight <= MOST_WEIGHT)))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"HDPTopics needs weights that are 0 or between {_LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, but sample_weight"
            f"[{i}] = {weight[i]:g}, and {wrong.size} of {n} are like it. Divide them by their largest, and set to 0 "
            "what is then too small."
        )
    return weight


def make_documents(X: sp.csr_matrix, sample_weight: Any) -> Documents:
    """Documents to fit; one without words is an error."""
    weight = check_document_weight(sample_weight, X.shape[0])
    empty = np.flatnonzero(np.diff(X.indptr) == 0)
    if empty.size == X.shape[0]:
        raise ValueError(
            f"The corpus is empty: none of the {X.shape[0]} documents has a word of the {X.shape[1]} in the "
            "vocabulary. Check the vectorizer's vocabulary and its min_df and max_df."
        )
    if empty.size:
        some = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
        raise ValueError(
            f"{empty.size} of {X.shape[0]} documents have no words (rows {some}). Drop them before the fit, for "
            "instance by X = X[X.sum(axis=1) > 0]; transform gives them equal shares of all topics."
        )
    return Documents(X, weight)


def check_search(model: Any) -> None:
    """The parameters of HDPTopics that must go with each other."""
    if model.search == "paper" and (model.mix != 0 or model.n_topics is not None):
        raise ValueError(
            "search='paper' minimises the paper's objective, which has no mixing cost, and finds the number of "
            f"topics: it needs mix=0 and n_topics=None, got mix={model.mix!r} and n_topics={model.n_topics!r}."
        )
    if model.search == "paper" and model.refine is not None:
        raise ValueError("refine='collapsed' belongs to search='anneal'; search='paper' is the paper's alone.")


class LocalPrice(NamedTuple):
    """Price of a topic in a document of n tokens: ``flat + per_log log(n + 1)``."""

    flat: float
    per_log: float

    def of(self, documents: Documents) -> Array:
        """The price in each document."""
        return self.at(documents.length)

    def at(self, length: Any) -> Any:
        """The price in documents of so many tokens."""
        return self.flat + self.per_log * np.log(length + 1.0)


class Penalties(NamedTuple):
    """The penalties as numbers."""

    mix: float
    lam_local: LocalPrice
    lam_global: float
    smoothing: float  # eta: pseudo-tokens of a topic, spread evenly over the words

    def pseudo(self, p: int) -> Array:
        """The pseudo-tokens of each of p words."""
        return np.full(p, self.smoothing / p)

    @classmethod
    def of(cls, model: Any, documents: Documents, smoothing: Any, seen: float = 0.0) -> "Penalties":
        """What the user said, the rest chosen from the data, to which ``seen`` earlier tokens belong."""
        local, top = LocalPrice(0.0, TOPICS.local_price), model.lam_global
        if not isinstance(model.lam_local, str):
            local = LocalPrice(float(model.lam_local), 0.0)
        elif model.mix == 0:
            local = LocalPrice(float(TOPICS.local_price_unmixed * (documents.total / documents.weights.sum())), 0.0)
        if isinstance(top, str):
            top = TOPICS.global_price * np.sqrt(seen + documents.total)
        eta = TOPICS.smoothing * documents.p if isinstance(smoothing, str) else smoothing
        tokens = seen + documents.total
        if not isinstance(smoothing, str) and eta > _MOST_SMOOTHING * (tokens + documents.p):
            raise ValueError(
                f"smoothing={eta:g} is more than {_MOST_SMOOTHING:g} times the {tokens:g} tokens and {documents.p} "
                "words of the documents: beside so many pseudo-tokens topics could not be told apart. Pass less."
            )
        return cls(float(model.mix), local, float(top), float(eta))


def first_goal(model: Any, documents: Documents, penalties: Penalties) -> TopicGoal:
    """What is wanted of a fit from the first topics on."""
    usable = int((documents.weights > 0).sum())
    if model.n_topics is not None and model.n_topics > usable:
        raise ValueError(
            f"n_topics={model.n_topics} topics cannot be started from {usable} documents. Pass at most {usable}."
        )
    wanted = usual_number(documents) if isinstance(model.n_topics_init, str) else int(model.n_topics_init)
    n_seeds = min(max(wanted, model.n_topics or 1), usable)
    return _goal(model, documents, penalties, no_topics(documents.p), n_seeds)


def next_goal(model: Any, documents: Documents, penalties: Penalties, counts: Array) -> TopicGoal:
    """What is wanted of a fit that goes on from known topics, which have the counts (K, V)."""
    fresh = usual_number(documents) if model.n_topics is None else max(0, model.n_topics - len(counts))
    goal = _goal(model, documents, penalties, counts.T, min(fresh, documents.n))
    return goal if goal.n_topics is None else goal._replace(n_topics=max(goal.n_topics, goal.n_known))


def merge_goal(model: Any, bags: Documents, penalties: Penalties, p: int) -> TopicGoal:
    """What is wanted of topics over p words that are merged after a fit: the objective alone is looked at."""
    return _goal(model, bags, penalties, no_topics(p), 0)


def _goal(model: Any, documents: Documents, penalties: Penalties, known: Array, n_seeds: int) -> TopicGoal:
    return TopicGoal(
        mix=penalties.mix,
        lam_local=penalties.lam_local.of(documents),
        lam_global=penalties.lam_global,
        smoothing=penalties.smoothing,
        pseudo=penalties.pseudo(len(known)),
        known=known,
        n_topics=model.n_topics,
        n_seeds=n_seeds,
        tol=model.tol,
        max_iter=model.max_iter,
        refine=model.refine is not None,
    )


def describe_chance(structure: Structure) -> str:
    """What a user is told of a corpus that does not stand out from chance."""
    return (
        "No structure was found: the documents look like draws from one distribution of words "
        f"(strength {structure.strength:.3g}, by chance {structure.chance:.3g}), so there is one topic. "
        "Pass n_topics to have more."
    )


def without_empty(documents: Documents, goal: TopicGoal, found: FoundTopics) -> FoundTopics:
    """A topic that no cell of weight prefers is none; cells of documents without weight then take another one."""
    used = has_tokens(found.counts)
    labels, lost = compact(used)[found.labels], np.flatnonzero(~used[found.labels])
    words, in_documents = found.counts.words[used], found.counts.documents[used]
    if lost.size:
        prices = word_prices(documents, words, goal.pseudo)
        labels[lost] = prices[documents.indices[lost]].argmin(axis=1)
        in_documents = count(documents, labels, len(words), no_topics(documents.p)).documents
    counts = TopicCounts(words, in_documents)
    return found._replace(soft_counts=found.soft_counts[used], counts=counts, labels=labels)


def find_topics(
    documents: Documents, goal: TopicGoal, search: str, budget: Budget, rng: np.random.Generator
) -> FoundTopics:
    """A fit from the first topics on; whether there is anything to find is asked unless the user has decided.

    Searches keep what they have when the user interrupts. In between, where there is nothing to keep, all starts once
    more, with no time but for one topic.
    """

    def look() -> Structure | None:
        return None if budget.spent else look_for_structure(documents, rng, budget)

    def find() -> FoundTopics:
        ours = goal.n_topics is None and search == "anneal"
        structure = attempt(look, lambda: None, budget) if ours else None
        one = structure is not None and not structure.found
        found = SEARCHES[search](documents, goal._replace(n_seeds=1) if one else goal, budget, rng)
        return found._replace(structure=structure)

    found = attempt(find, find, budget)
    if goal.n_topics is not None:
        return found

    def drop() -> FoundTopics:
        return without_empty(documents, goal, found)

    return attempt(drop, drop, budget)


def follow_topics(documents: Documents, goal: TopicGoal, budget: Budget, rng: np.random.Generator) -> FoundTopics:
    """A fit that goes on from known topics; see ``find_topics`` for interrupts."""

    def find() -> FoundTopics:
        return SEARCHES["anneal"](documents, goal, budget, rng)

    return attempt(find, find, budget)


class TopicModel(NamedTuple):
    """Fitted topics, to be asked."""

    mean: Array  # (V, K) word probabilities
    penalties: Penalties

    @classmethod
    def of(cls, counts: Array, penalties: Penalties) -> "TopicModel":
        """The topics that have these counts (K, V) of words."""
        return cls(topic_means(counts, penalties.pseudo(counts.shape[1])), penalties)

    def shares(self, X: sp.csr_matrix) -> Array:
        """Topic shares of documents, (D, K)."""
        return fold_in(Documents(X, _NONE), self.mean)

    def shares_in_time(self, documents: Documents, counts: TopicCounts, budget: Budget) -> tuple[Array, bool]:
        """The same of the documents of a fit, and whether there was time for all: others have those of hard labels."""
        K = self.mean.shape[1]
        share = np.ascontiguousarray(counts.documents.T) + TOPICS.concentration / K
        complete = fill_shares(documents, self.mean, budget, share)
        return share / share.sum(axis=1, keepdims=True), complete

    def main_topics(self, X: sp.csr_matrix) -> Array:
        """The topic with the largest share of each document, (D,); -1 for documents without words."""
        return np.where(np.diff(X.indptr) > 0, self.shares(X).argmax(axis=1), -1)

    def hard_shares(self, X: sp.csr_matrix) -> Array:
        """Shares of the tokens after every cell has taken one topic; equal shares for empty documents."""
        documents = Documents(X, _NONE)
        labels = self.hard_labels(documents)
        counts = count(documents, labels, self.mean.shape[1], no_topics(documents.p)).documents.T
        empty = documents.length == 0
        counts[empty] = 1.0
        return counts / counts.sum(axis=1, keepdims=True)

    def hard_labels(self, documents: Documents) -> Array:
        """The topic of each cell, after every cell has taken one."""
        mix, lam_local, _, _ = self.penalties
        return likely_labels(documents, self.mean, fold_in(documents, self.mean), mix, lam_local.of(documents))

    def completion(self, X: sp.csr_matrix, sample_weight: Any) -> float:
        """Mean log-probability of a token of the second halves, given the first halves."""
        documents = Documents(X, check_document_weight(sample_weight, X.shape[0]))
        given, held = split_tokens(documents)
        if not (held * documents.weights[documents.owner]).sum() > 0:
            raise ValueError(f"There is nothing to score: the {X.shape[0]} documents hold no tokens.")
        half = Documents(sp.csr_matrix((given, X.indices, X.indptr), shape=X.shape), _NONE)
        return completion(half, held, self.mean, documents.weights)
