"""Corpora for tests of topics, and the papers' algorithm one cell at a time, every formula spelled out."""

import numpy as np
import scipy.sparse as sp

from kfree.inference.topics.soft_topics import Soft, width_of
from kfree.inference.topics.topic_goal import TopicGoal, no_topics
from kfree.rows import Documents

NONE = np.empty(0)


def planted(D=300, V=400, K=5, length=120, spread=0.1, width=0.05, seed=0):
    """Documents from K topics: counts, topics (K, V), shares (D, K)."""
    rng = np.random.default_rng(seed)
    topics, shares = rng.dirichlet(np.full(V, width), K), rng.dirichlet(np.full(K, spread), D)
    counts = np.stack([rng.multinomial(length, share @ topics) for share in shares])
    return sp.csr_matrix(counts.astype(float)), topics, shares


def structureless(D=400, V=1000, length=150, seed=0):
    """Documents that all come from one distribution of words."""
    rng = np.random.default_rng(seed)
    return sp.csr_matrix(rng.multinomial(length, rng.dirichlet(np.ones(V)), D).astype(float))


def random_documents(rng, D=None, V=None, weighted=False, empty=True):
    """A small table with everything that may occur: empty documents and words, large counts, weights."""
    D, V = D or rng.integers(1, 12), V or rng.integers(1, 9)
    table = rng.poisson(rng.gamma(1.0, 1.0, (D, V))) * (rng.random((D, V)) < 0.7)
    table[rng.random(D) < 0.15] = 0
    if not empty:
        table[table.sum(axis=1) == 0, rng.integers(0, V)] = 1
    weight = rng.integers(1, 4, D).astype(float) if weighted else NONE
    return Documents(sp.csr_matrix(table.astype(float)), weight)


def goal_of(documents, **wanted):
    """A goal that says what a test wants, and for the rest nothing special."""
    pseudo = wanted.get("pseudo", np.full(documents.p, 0.05))
    objective = {"mix": 1.0, "lam_local": np.zeros(documents.n), "lam_global": 0.0}
    topics = {"known": no_topics(documents.p), "n_topics": None, "n_seeds": 1}
    search = {"tol": 0.0, "max_iter": 100, "refine": False}
    return TopicGoal(**(objective | {"smoothing": pseudo.sum(), "pseudo": pseudo} | topics | search | wanted))


def random_goal(rng, documents, mix, **wanted):
    """A goal with prices and pseudo-counts at random."""
    prices = {"lam_local": rng.random(documents.n) + 0.1, "lam_global": float(3 * rng.random())}
    return goal_of(documents, mix=mix, **prices, pseudo=rng.random(documents.p) + 0.05, **wanted)


def table_of(documents):
    return documents.table.toarray()


def random_soft(rng, documents, G):
    shares, words = (np.zeros((n, width_of(G)), np.float32) for n in (documents.n, documents.p))
    shares[:, :G] = rng.dirichlet(np.ones(G), documents.n) * documents.length[:, None]
    words[:, :G] = rng.dirichlet(np.ones(G), documents.p) * documents.word_totals[:, None]
    return Soft(shares, words, G)


def tiny(table):
    return Documents(sp.csr_matrix(np.array(table, float)), NONE)


def x_log_x(y):
    return y * np.log(y) if y > 0 else 0.0


class SlowHDP:
    """Kulis & Jordan's Algorithm 2 on one-hot cells with smoothed centres: dictionaries and loops."""

    def __init__(self, table, pseudo, lam_local, lam_global):
        self.cells = [[(w, n) for w, n in enumerate(row) if n > 0] for row in table]
        self.pseudo, self.eta = pseudo, pseudo.sum()
        self.lam_local, self.lam_global = lam_local, lam_global

    def centre(self, counts):
        return (counts + self.pseudo) / (counts.sum() + self.eta)

    def alone(self, counts):
        """What counts cost in a topic of their own: with the mean, and the pseudo-tokens' share."""
        mu, mu0 = self.centre(counts), self.pseudo / self.eta
        return -(counts * np.log(mu)).sum() + self.eta * (mu0 * np.log(mu0 / mu)).sum()

    def one_hot(self, w, n):
        counts = np.zeros(self.pseudo.size)
        counts[w] = n
        return counts

    def one_pass(self, centres, held, order, inside):
        """Labels {(j, w): topic} and topics by age in each document, after points and local clusters."""
        centres, held, labels = list(centres), [list(h) for h in held], {}
        for j in order:
            for i in inside[j]:
                w, n = self.cells[j][i]
                cost = [
                    n * -np.log(mu[w]) + (self.lam_local[j] if p not in held[j] else 0) for p, mu in enumerate(centres)
                ]
                p = int(np.argmin(cost))
                if cost[p] > self.lam_local[j] + self.lam_global + self.alone(self.one_hot(w, n)):
                    centres.append(self.centre(self.one_hot(w, n)))
                    p = len(centres) - 1
                labels[j, w] = p
                if p not in held[j]:
                    held[j].append(p)
        centres, held, labels = self.drop(centres, held, labels)
        before = dict(labels)
        for j in range(len(self.cells)):
            for p in held[j]:
                counts = sum((self.one_hot(w, n) for w, n in self.cells[j] if before[j, w] == p))
                cost = [-(counts * np.log(mu)).sum() for mu in centres]
                best = int(np.argmin(cost))
                if cost[best] > self.lam_global + self.alone(counts):
                    centres.append(self.centre(counts))
                    best = len(centres) - 1
                for w, _ in self.cells[j]:
                    if before[j, w] == p:
                        labels[j, w] = best
            held[j] = list(dict.fromkeys(labels[j, w] for p in held[j] for w, _ in self.cells[j] if before[j, w] == p))
        _, held, labels = self.drop(centres, held, labels)
        return labels, held

    def drop(self, centres, held, labels):
        """Local clusters without cells go, then topics without any."""
        held = [[p for p in h if any(labels[j, w] == p for w, _ in self.cells[j])] for j, h in enumerate(held)]
        number = {p: i for i, p in enumerate(sorted(set(labels.values())))}
        centres = [centres[p] for p in number]
        return centres, [[number[p] for p in h] for h in held], {cell: number[p] for cell, p in labels.items()}
