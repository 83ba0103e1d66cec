"""First topics: documents far from those already chosen."""

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from kfree.families import Array
from kfree.inference.loop import Budget, attempt, repeat
from kfree.inference.topics.soft_topics import Soft, width_of
from kfree.inference.topics.topic_goal import TopicGoal, word_shares
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.kernels import kernels
from kfree.rows import Documents


class SeedsSoFar(NamedTuple):
    """Documents chosen, and how far the others are from them."""

    chosen: list[int]
    nearest: Array  # (D,) KL divergence from the nearest seed or known topic, inf as long as there is none
    reach: Array  # (D,) the same, but as long as there is none from the mean of the corpus


# Candidates that the kernel takes at a time: the width of its tables.
_COLUMNS = 8


def usual_number(documents: Documents) -> int:
    """How many topics to start from: more than there will be."""
    most = max(TOPICS.start_least, int(documents.weights.sum()) // TOPICS.start_documents)
    wanted = int(np.clip(round(TOPICS.start_rate * np.sqrt(documents.total)), TOPICS.start_least, most))
    return min(wanted, int((documents.weights > 0).sum()))


def background(totals: Array) -> Array:
    """Word probabilities of a corpus with these totals (V,), none of them zero."""
    counts = totals + TOPICS.unseen
    return counts / counts.sum()


def first_topics(documents: Documents, goal: TopicGoal, budget: Budget, rng: np.random.Generator) -> Soft:
    """The known topics and seeds after them; without either, one topic."""
    chosen = seed_documents(documents, goal, budget, rng)

    def make() -> Soft:
        return seeded(documents, chosen, goal) if chosen.size or goal.n_known else one_topic(documents)

    return attempt(make, make, budget)


def seed_documents(documents: Documents, goal: TopicGoal, budget: Budget, rng: np.random.Generator) -> Array:
    """Documents to start from: none for one topic, those chosen so far if the user interrupts."""
    none, alone = np.zeros(0, int), goal.n_known == 0 and goal.n_seeds == 1
    if budget.interrupted or alone or goal.n_seeds == 0:
        return none
    return attempt(lambda: choose_seeds(documents, goal, budget, rng), lambda: none, budget)


def choose_seeds(documents: Documents, goal: TopicGoal, budget: Budget, rng: np.random.Generator) -> Array:
    """Documents whose seed topics are far from each other and the known ones, one by one, each the best of some draws.

    A draw's probability is n_j KL(x_j || nearest seed); the best is the one that leaves least of it in all. Documents
    are drawn in the order of their content, so that the order of the rows does not matter, and equal ones are adjacent.
    """
    mean, length = background(documents.word_totals), np.maximum(documents.length, 1.0)
    mass, order = documents.length * documents.weights, np.argsort(documents.hash(), kind="stable")
    alone = _from_mean(documents, mean)

    def add(state: SeedsSoFar) -> tuple[SeedsSoFar, bool]:
        candidates = _draw(mass, state, order, rng)
        left = np.minimum(state.nearest, alone - _gains(documents, candidates, mean) / length)
        best = int(np.argmin((mass * np.maximum(left, 0.0)).sum(axis=1)))
        return SeedsSoFar([*state.chosen, int(candidates[best])], left[best], left[best]), False

    start = SeedsSoFar([], np.full(documents.n, np.inf), alone)
    if goal.n_known:
        nearest = _from_known(documents, np.ascontiguousarray(word_shares(goal.known.T, goal.pseudo).T))
        start = SeedsSoFar([], nearest, nearest)
    end, _ = repeat(add, start, budget, most=goal.n_seeds)
    missing = 0 if goal.n_topics is None else goal.n_topics - goal.n_known - len(end.chosen)
    rest = _draw_at_once(mass, end, missing, rng) if missing > 0 else []
    return np.array([*end.chosen, *rest], dtype=int)


def _chances(mass: Array, state: SeedsSoFar) -> Array:
    """How likely each document is to be drawn, (D,)."""
    chance = mass * np.maximum(state.reach, 0.0)
    chance[state.chosen] = 0.0
    if not chance.sum() > 0:
        chance = np.where(mass > 0, 1.0, 0.0)
        chance[state.chosen] = 0.0
    return chance


def _draw(mass: Array, state: SeedsSoFar, order: Array, rng: np.random.Generator) -> Array:
    """Candidates for the next seed."""
    ladder = np.cumsum(_chances(mass, state)[order])
    places = np.searchsorted(ladder, rng.random(TOPICS.seed_draws) * ladder[-1], side="right")
    return np.unique(order[places.clip(max=len(order) - 1)])


def _draw_at_once(mass: Array, state: SeedsSoFar, count: int, rng: np.random.Generator) -> list[int]:
    """Seeds that are asked for when there is no time left to look at each."""
    left = np.setdiff1d(np.flatnonzero(mass > 0), state.chosen)
    chance = np.maximum(_chances(mass, state)[left], np.finfo(float).tiny)
    with np.errstate(over="ignore"):  # the slowest never arrive
        arrival = rng.exponential(size=left.size) / chance
    return left[np.argsort(arrival, kind="stable")[:count]].tolist()


def _from_mean(documents: Documents, mean: Array) -> Array:
    """KL divergence of the documents from seed topics that share no word with them."""
    data, length = documents.data, np.maximum(documents.length, 1.0)
    away = data * np.log((1 - TOPICS.seed_share) * mean[documents.indices])
    terms = xlogy(data, data / length[documents.owner]) - away
    return np.bincount(documents.owner, weights=terms, minlength=documents.n) / length


def _from_known(documents: Documents, known: Array) -> Array:
    """KL divergence of the documents from the nearest of some topics, whose means are ``known`` (V, K)."""
    data, length = documents.data, np.maximum(documents.length, 1.0)
    own = np.bincount(documents.owner, weights=xlogy(data, data / length[documents.owner]), minlength=documents.n)
    return (own - (documents.table @ np.log(known)).max(axis=1)) / length


def _gains(documents: Documents, candidates: Array, mean: Array) -> Array:
    """sum_w n_jw log(seed_w / ((1 - share) mean_w)) for every document and candidate, (C, D)."""
    (data, indices, indptr), share = documents.cells, TOPICS.seed_share
    values, gain = (np.zeros((n, _COLUMNS), np.float32) for n in (documents.p, documents.n))
    for c, j in enumerate(candidates):
        part = slice(indptr[j], indptr[j + 1])
        words, x = indices[part], data[part] / documents.length[j]
        values[words, c] = np.log1p(share * x / ((1 - share) * mean[words]))

    def of_span(span: slice) -> None:
        kernels().gain_of_seeds(*documents.cells, span.start, span.stop, values, gain)

    documents.do(of_span, documents.document_spans, 4.0 * data.size)
    return gain[:, : len(candidates)].T.astype(np.float64)


def seeded(documents: Documents, seeds: Array, goal: TopicGoal) -> Soft:
    """Counts that make the seeds the topics, after the known ones: equal shares everywhere, words as in the seeds."""
    known, share, mean = goal.n_known, TOPICS.seed_share, background(documents.word_totals)
    G = known + len(seeds)
    words = np.zeros((documents.p, width_of(G)), np.float32)
    # heavy enough that pseudo-counts hardly move the seeds
    mass = max(documents.total / G, TOPICS.seed_mass * goal.smoothing)
    words[:, known:G] = (mass * (1 - share) * mean)[:, None]
    for g, j in enumerate(seeds, known):
        part = slice(documents.indptr[j], documents.indptr[j + 1])
        words[documents.indices[part], g] += mass * share * documents.data[part] / documents.length[j]
    shares = np.zeros((documents.n, width_of(G)), np.float32)
    shares[:, :G] = (documents.length / G)[:, None]
    return Soft(shares, words, G)


def one_topic(documents: Documents) -> Soft:
    """All tokens in one topic."""
    shares, words = (np.zeros((n, width_of(1)), np.float32) for n in (documents.n, documents.p))
    shares[:, 0], words[:, 0] = documents.length, documents.word_totals
    return Soft(shares, words, 1)
