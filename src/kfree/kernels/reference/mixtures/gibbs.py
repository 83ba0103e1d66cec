"""Partitions drawn one row at a time, and by splits and merges, from log marginals of clusters.

A row is its statistics; a cluster the number of its rows, their weight and the weighted sum of their statistics.
``marginal(mass, sums)`` are logs of the marginals of some clusters, without what depends on the rows alone.
"""

import numpy as np
from scipy.special import gammaln


class _Cluster:
    """A set of rows."""

    def __init__(self, table):
        self.table, self.n, self.mass, self.sums = table, 0, 0.0, np.zeros(table.stats.shape[1])

    def add(self, i, sign=1):
        """Row i comes, or goes."""
        weight = sign * self.table.weight[i]
        self.n, self.mass, self.sums = self.n + sign, self.mass + weight, self.sums + weight * self.table.stats[i]
        return self

    def copy(self):
        """Another one of the same rows."""
        other = _Cluster(self.table)
        other.n, other.mass, other.sums = self.n, self.mass, self.sums
        return other


class _Table:
    """Rows and what is assumed of clusters."""

    def __init__(self, stats, weight, marginal):
        self.stats, self.weight, self._marginal = stats, weight, marginal

    def marginals(self, clusters):
        """Logs of the marginals of clusters."""
        return self._marginal(np.array([c.mass for c in clusters]), np.stack([c.sums for c in clusters]))

    def joins(self, clusters, i):
        """What row i adds to the logs of the marginals of clusters."""
        return self.marginals([c.copy().add(i) for c in clusters]) - self.marginals(clusters)


def draw(stats, weight, marginal, turns, log_alpha, labels, fresh):
    """Draw all rows in turn, then try splits and merges; fills ``labels``, numbered as they come, and ``fresh``, if it
    is wanted, with log marginals of clusters of single rows.

    Returns the number of clusters, of accepted splits and merges, and the log marginal of all rows.
    """
    order, uniforms, pairs, deals, accepts = turns
    table = _Table(stats, weight, marginal)
    if fresh.size:
        fresh[:] = marginal(weight, weight[:, None] * stats)
    of = np.unique(labels, return_index=True, return_inverse=True)
    by_age = np.argsort(np.argsort(of[1]))[of[2]]
    clusters = [_Cluster(table) for _ in of[0]]
    own = [clusters[k] for k in by_age]
    for i, cluster in enumerate(own):
        cluster.add(i)
    for i, uniform in zip(order[: len(uniforms)], uniforms):
        _visit(i, uniform, table, clusters, own, log_alpha)
    accepted = 0
    for (i, j), deal, accept in zip(pairs, deals, accepts):
        if i != j:
            way = _split if own[i] is own[j] else _merge
            accepted += way(i, j, table, clusters, own, (order, deal, accept, log_alpha))
    numbers: dict[int, int] = {}
    labels[:] = [numbers.setdefault(id(cluster), len(numbers)) for cluster in own]
    return len(clusters), accepted, float(table.marginals(clusters).sum())


def _close(clusters, cluster):
    """A cluster without rows goes, and the last takes its place."""
    place = next(k for k, other in enumerate(clusters) if other is cluster)
    clusters[place] = clusters[-1]
    clusters.pop()


def choose(chances, uniform):
    """A place drawn by logs of chances."""
    cumulative = np.cumsum(np.exp(chances - np.max(chances)))
    return int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))


def _visit(i, uniform, table, clusters, own, log_alpha):
    without = [c.copy().add(i, -1) if c is own[i] else c for c in clusters]
    rows = np.array([c.n for c in without])
    with np.errstate(divide="ignore"):
        chances = np.append(np.log(rows) + table.joins(without, i), log_alpha + table.joins([_Cluster(table)], i))
    chosen = choose(chances, uniform)
    if chosen < len(clusters) and clusters[chosen] is own[i]:
        return
    if chosen == len(clusters):
        if own[i].n == 1:
            return
        clusters.append(_Cluster(table))
    new, old = clusters[chosen], own[i]
    old.add(i, -1)
    if old.n == 0:
        _close(clusters, old)
    own[i] = new.add(i)


def _deal(i, j, table, members, choice):
    """Rows dealt to the clusters of i and j in turn; ``choice`` says from the chance of the first who has a row."""
    one, two, log_chance = _Cluster(table).add(i), _Cluster(table).add(j), 0.0
    second = [j]
    for t, row in members:
        gains = table.joins([one, two], row) + np.log([one.n, two.n])
        log_odds = gains[0] - gains[1]
        first = choice(t, row, log_odds)
        log_chance -= np.logaddexp(0.0, -log_odds if first else log_odds)
        (one if first else two).add(row)
        if not first:
            second.append(row)
    return one, two, log_chance, second


def _gain(table, one, two, whole, log_alpha):
    """Log posterior of two clusters less that of the one they make."""
    marginals = table.marginals([one, two, whole])
    return log_alpha + gammaln(one.n) + gammaln(two.n) - gammaln(whole.n) + marginals[0] + marginals[1] - marginals[2]


def _split(i, j, table, clusters, own, turn):
    order, deal, accept, log_alpha = turn
    old = own[i]
    members = [(t, row) for t, row in enumerate(order) if own[row] is old and row not in (i, j)]
    with np.errstate(over="ignore"):
        one, two, log_chance, second = _deal(
            i, j, table, members, lambda t, row, log_odds: deal[t] < 1 / (1 + np.exp(-log_odds))
        )
    if not np.log(accept) < _gain(table, one, two, old, log_alpha) - log_chance:
        return 0
    clusters.append(two)
    old.n, old.mass, old.sums = one.n, one.mass, one.sums
    for row in second:
        own[row] = two
    return 1


def _merge(i, j, table, clusters, own, turn):
    order, _, accept, log_alpha = turn
    old, other = own[i], own[j]
    whole = old.copy()
    whole.n, whole.mass, whole.sums = old.n + other.n, old.mass + other.mass, old.sums + other.sums
    members = [(t, row) for t, row in enumerate(order) if own[row] in (old, other) and row not in (i, j)]
    _, _, log_chance, _ = _deal(i, j, table, members, lambda t, row, log_odds: own[row] is old)
    if not np.log(accept) < log_chance - _gain(table, old, other, whole, log_alpha):
        return 0
    old.n, old.mass, old.sums = whole.n, whole.mass, whole.sums
    own[:] = [old if cluster is other else cluster for cluster in own]
    _close(clusters, other)
    return 1


def gibbs_given(scores, fresh, order, uniforms, begin, log_alpha, labels, rows):
    """Rows draw clusters whose parameters are given, from place ``begin`` of the order on; those without rows are gone.

    Ends at the first row that opens a cluster, which has then no label, and returns its place; N if there is none.
    """
    for t in range(begin, len(order)):
        i = order[t]
        if labels[i] >= 0:
            rows[labels[i]] -= 1
        with np.errstate(divide="ignore"):
            chances = np.where(rows > 0, np.log(rows) + scores[:, i], -np.inf)
        chosen = choose(np.append(chances, log_alpha + fresh[i]), uniforms[t])
        labels[i] = chosen if chosen < len(rows) else -1
        if chosen == len(rows):
            return t
        rows[chosen] += 1
    return len(order)
