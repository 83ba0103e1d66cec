"""Between HDPTopics and the inference below it: checked counts, charges in numbers, questions to fitted topics."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.loop import Budget
from kfree.inference.topics.fold_in import completion, fold_in, split_tokens
from kfree.inference.topics.hard_topics import Charges, Counts, count, solve
from kfree.inference.topics.hdp_cells import fit_paper
from kfree.inference.topics.randomness_test import Structure, look_for_structure
from kfree.inference.topics.soft_topics import Prior
from kfree.inference.topics.topic_search import Fitted, extended, initial_topics, search, seed_documents, seeds
from kfree.models.checks import check_choice, check_number, check_weight
from kfree.rows import Documents

#: Pseudo-tokens of a document, spread evenly over the topics.
CONCENTRATION = 1.0
_SEARCHES = ("anneal", "paper")
_COMPONENTS = ("soft", "hard")
_NONE = np.empty(0)


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
    return X


def make_documents(X: sp.csr_matrix, sample_weight: Any) -> Documents:
    """Documents to fit; one without words is an error."""
    weight = check_weight(sample_weight, X.shape[0])
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


def check_parameters(model: Any) -> None:
    """Every parameter of HDPTopics."""
    for name in ("lam_local", "lam_global"):
        value = getattr(model, name)
        if isinstance(value, str):
            check_choice(name, value, ("auto",))
        else:
            check_number(name, value, least=0.0, hint=f"Pass a number >= 0, or {name}='auto'.")
    check_number("mix", model.mix, least=0.0)
    if model.mix > 1:
        raise ValueError(f"mix must be at most 1, got {model.mix!r}.")
    check_choice("search", model.search, _SEARCHES)
    if model.search == "paper" and (model.mix != 0 or model.n_topics is not None):
        raise ValueError(
            "search='paper' minimises the paper's objective, which has no mixing cost, and finds the number of "
            f"topics: it needs mix=0 and n_topics=None, got mix={model.mix!r} and n_topics={model.n_topics!r}."
        )
    check_choice("components", model.components, _COMPONENTS)
    if model.refine is not None:
        check_choice("refine", model.refine, ("collapsed",))
        if model.search == "paper":
            raise ValueError("refine='collapsed' belongs to search='anneal'; search='paper' is the paper's alone.")
    if model.n_topics is not None:
        check_number("n_topics", model.n_topics, least=1, integer=True)
    if isinstance(model.n_topics_init, str):
        check_choice("n_topics_init", model.n_topics_init, ("auto",))
    else:
        check_number("n_topics_init", model.n_topics_init, least=1, integer=True)
    if isinstance(model.smoothing, str):
        check_choice("smoothing", model.smoothing, ("auto",))
    else:
        check_number("smoothing", model.smoothing, least=1e-6, hint="Without smoothing no topic could take new words.")
    check_number("max_iter", model.max_iter, least=1, integer=True)
    check_number("tol", model.tol, least=0.0)
    if model.max_time is not None:
        check_number("max_time", model.max_time, least=0.0)


class Rules(NamedTuple):
    """The penalties as numbers."""

    mix: float
    lam_local: float | None  # None: half the log of the document's length, as BIC would charge
    lam_global: float
    smoothing: float  # eta: pseudo-tokens of a topic, spread evenly over the words

    @classmethod
    def of(cls, documents: Documents, lam_local: Any, lam_global: Any, mix: float, smoothing: Any) -> "Rules":
        """Fill in what is to be chosen from the data."""
        if isinstance(lam_local, str):
            mean = documents.total / documents.weights.sum()
            local = None if mix > 0 else 0.25 * mean
        else:
            local = float(lam_local)
        top = 5.0 * np.sqrt(documents.total) if isinstance(lam_global, str) else float(lam_global)
        eta = 0.05 * documents.p if isinstance(smoothing, str) else float(smoothing)
        return cls(float(mix), local, float(top), eta)

    def prices(self, documents: Documents) -> Array:
        """Price of a topic in each document."""
        if self.lam_local is None:
            return 0.5 * np.log(documents.length + 1.0)
        return np.full(documents.n, self.lam_local)

    def charges(self, documents: Documents) -> Charges:
        """What the objective charges these documents."""
        pseudo = np.full(documents.p, self.smoothing / documents.p)
        return Charges(self.mix, self.prices(documents), self.lam_global, pseudo)


class Plan(NamedTuple):
    """How to search, as the user said."""

    search: str
    mix: float
    n_topics: int | None
    n_topics_init: Any
    tol: float
    max_iter: int
    refine: str | None = None

    def prior(self, charges: Charges, base: Array) -> Prior:
        """Of the soft stage. Without any mixing cost soft topics are poor: mix=0 is for the hard stage only."""
        return Prior(charges.pseudo, CONCENTRATION, self.mix or 1.0, base)

    def initial(self, documents: Documents) -> int:
        """Topics to start from."""
        usable = int((documents.weights > 0).sum())
        if self.n_topics is not None and self.n_topics > usable:
            raise ValueError(
                f"n_topics={self.n_topics} topics cannot be started from {usable} documents. Pass at most {usable}."
            )
        wanted = initial_topics(documents) if isinstance(self.n_topics_init, str) else int(self.n_topics_init)
        return min(max(wanted, self.n_topics or 1), usable)


def find_structure(documents: Documents, plan: Plan, rng: np.random.Generator, budget: Budget) -> Structure | None:
    """Whether there is anything to find; not asked where the user has decided, or interrupts."""
    if plan.n_topics is not None or plan.search == "paper":
        return None
    try:
        return look_for_structure(documents, rng)
    except KeyboardInterrupt:
        budget.interrupted = True
        return None


def find_topics(
    documents: Documents,
    rules: Rules,
    plan: Plan,
    structure: Structure | None,
    rng: np.random.Generator,
    budget: Budget,
) -> Fitted:
    """A fit from the first topics on."""
    charges, rest = rules.charges(documents), (plan.tol, plan.max_iter)
    G = plan.initial(documents) if structure is None or structure.found else 1
    if plan.search == "paper":
        return fit_paper(documents, seed_documents(documents, G, rng, budget), charges, rng, budget, *rest)
    start = seeds(documents, G, rules.smoothing, rng, budget)
    prior = plan.prior(charges, np.zeros((documents.p, 0)))
    return search(documents, start, prior, charges, plan.n_topics, budget, *rest, plan.refine is not None)


def without_empty(fitted: Fitted) -> Fitted:
    """A topic that no cell prefers is none."""
    used = fitted.counts.words.sum(axis=1) > 0
    counts = Counts(fitted.counts.words[used], fitted.counts.documents[used])
    labels = (np.cumsum(used) - 1)[fitted.labels].astype(np.int32)
    return fitted._replace(soft_counts=fitted.soft_counts[used], counts=counts, labels=labels)


class Known(NamedTuple):
    """Topics of earlier documents."""

    mean: Array  # (V, K)
    counts: Array  # (K, V)


def follow_topics(
    documents: Documents, rules: Rules, plan: Plan, known: Known, rng: np.random.Generator, budget: Budget
) -> Fitted:
    """A fit that goes on from known topics."""
    charges, K = rules.charges(documents), known.mean.shape[1]
    fresh = initial_topics(documents) if plan.n_topics is None else max(0, plan.n_topics - K)
    start = extended(documents, known.mean, min(fresh, documents.n), rules.smoothing, rng, budget)
    prior = plan.prior(charges, known.counts.T)
    target = None if plan.n_topics is None else max(K, plan.n_topics)
    return search(documents, start, prior, charges, target, budget, plan.tol, plan.max_iter, plan.refine is not None)


def presence(X: sp.csr_matrix, words: Array) -> sp.csc_matrix:
    """Which of some words (any shape) each document has; the other columns are empty."""
    wanted = np.zeros(X.shape[1], bool)
    wanted[words] = True
    kept = wanted[X.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return sp.csr_matrix((np.ones(int(kept.sum()), bool), X.indices[kept], indptr), shape=X.shape).tocsc()


class Topics(NamedTuple):
    """Fitted topics, to be asked."""

    mean: Array  # (V, K) word probabilities
    rules: Rules

    def shares(self, X: sp.csr_matrix) -> Array:
        """Topic shares of documents, (D, K)."""
        return fold_in(Documents(X, _NONE), self.mean, CONCENTRATION)

    def hard_shares(self, X: sp.csr_matrix) -> Array:
        """Shares of the tokens after every cell has taken one topic; equal shares for empty documents."""
        documents = Documents(X, _NONE)
        soft = fold_in(documents, self.mean, CONCENTRATION)
        labels = np.empty(documents.data.size, np.int32)
        for span in documents.document_spans:
            cells = slice(documents.indptr[span.start], documents.indptr[span.stop])
            chance = self.mean[documents.indices[cells]] * soft[documents.owner[cells]]
            labels[cells] = chance.argmax(axis=1)
        K = self.mean.shape[1]
        labels = solve(documents, labels, -np.log(self.mean), self.rules.mix, self.rules.prices(documents))
        counts = count(documents, labels, K, np.zeros((documents.p, 0))).documents.T
        empty = documents.length == 0
        counts[empty] = 1.0
        return counts / counts.sum(axis=1, keepdims=True)

    def completion(self, X: sp.csr_matrix, sample_weight: Any) -> float:
        """Mean log-probability of a token of the second halves, given the first halves."""
        weight = check_weight(sample_weight, X.shape[0])
        documents = Documents(X, weight)
        given, held = split_tokens(documents)
        if not (held * documents.weights[documents.owner]).sum() > 0:
            raise ValueError(f"There is nothing to score: the {X.shape[0]} documents hold no tokens.")
        half = Documents(sp.csr_matrix((given, X.indices, X.indptr), shape=X.shape), _NONE)
        return completion(half, held, self.mean, CONCENTRATION, documents.weights)
