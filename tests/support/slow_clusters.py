"""The algorithms as the papers write them: one row at a time, every formula spelled out, no block, no bound.

They work on statistics (histograms already divided, unit vectors already scaled) with a family of the registry.
"""

import numpy as np


class Slow:
    """DP-means on a handful of rows."""

    def __init__(self, family, x, lam, weight=None, eta=0.0, mu0=None):
        self.family, self.x, self.lam = family, np.asarray(x, float), lam
        self.w = np.ones(len(x)) if weight is None else np.asarray(weight, float)
        self.v = np.minimum(self.w, 1.0)
        self.eta, self.mu0 = eta, mu0

    def centre(self, members):
        total = (self.w[members, None] * self.x[members]).sum(axis=0)
        return self._centre(total, self.w[members].sum())

    def _centre(self, total, mass):
        if self.eta:
            total, mass = total + self.eta * self.mu0, mass + self.eta
        return self.family.centre(total[None], np.array([mass]))[0]

    def d(self, i, mu):
        return float(self.family.divergence(self.x[i], mu))

    def single(self, i):
        return self._centre(self.v[i] * self.x[i], self.v[i])

    def s(self, i, w=None):
        w = self.v[i] if w is None else w
        if not self.eta:
            return 0.0
        alone = self._centre(w * self.x[i], w)
        return w * self.d(i, alone) + self.eta * float(self.family.divergence(self.mu0, alone))

    def cost(self, members):
        """G of a cluster: weighted divergences and the prior's share."""
        mu = self.centre(members)
        prior = self.eta * float(self.family.divergence(self.mu0, mu)) if self.eta else 0.0
        return sum(self.w[i] * self.d(i, mu) for i in members) + prior

    def objective(self, labels):
        groups = [np.flatnonzero(labels == k) for k in np.unique(labels)]
        return sum(self.cost(g) for g in groups) + self.lam * len(groups)

    def serial(self, orders, centres=None):
        """Kulis & Jordan's Algorithm 1; one order a pass. Returns labels and centres after each pass."""
        everything = np.arange(len(self.x))
        mus = [self.centre(everything)] if centres is None else list(centres)
        for order in orders:
            labels = np.full(len(self.x), -1)
            for i in order:
                costs = [self.d(i, mu) for mu in mus]
                best = int(np.argmin(costs))
                if self.v[i] * costs[best] > self.lam + self.s(i):
                    mus.append(self.single(i))
                    best = len(mus) - 1
                labels[i] = best
            kept = [k for k in range(len(mus)) if (labels == k).any()]
            labels = np.searchsorted(kept, labels)
            mus = [self.centre(np.flatnonzero(labels == k)) for k in range(len(kept))]
            yield labels, np.array(mus)

    def delayed(self, passes):
        """PDC: all rows to the nearest centre, then only the farthest row opens a cluster."""
        mus = [self.centre(np.arange(len(self.x)))]
        for _ in range(passes):
            costs = np.array([[self.d(i, mu) for mu in mus] for i in range(len(self.x))])
            labels = costs.argmin(axis=1)
            excess = self.v * costs.min(axis=1) - self.lam - np.array([self.s(i) for i in range(len(self.x))])
            if excess.max() > 0:
                far = excess.argmax()
                same = (self.x == self.x[far]).all(axis=1)
                labels[same] = len(mus)
            kept = np.unique(labels)
            labels = np.searchsorted(kept, labels)
            mus = [self.centre(np.flatnonzero(labels == k)) for k in range(len(kept))]
            yield labels, np.array(mus)

    def collapsed(self, labels, orders):
        """MAD-Bayes Algorithm 2 by the rise of the objective."""
        labels = np.array(labels)
        for order in orders:
            for i in order:
                a = labels[i]
                labels[i] = -1
                options = {}
                for k in np.unique(labels[labels >= 0]):
                    members = np.flatnonzero(labels == k)
                    options[k] = self.cost(np.append(members, i)) - self.cost(members)
                alone = self.lam + self.s(i, self.w[i])
                here = options.get(a, alone)
                best = min(options, key=lambda k: (options[k], k), default=None)
                choice = min(alone, options[best]) if best is not None else alone
                if choice >= here - 1e-10 * (self.lam + here):
                    labels[i] = a if a in options else max(options, default=-1) + 1
                elif best is not None and options[best] <= alone:
                    labels[i] = best
                else:
                    labels[i] = max(options, default=-1) + 1
            yield labels.copy()

    def optimum(self):
        """The least objective over all partitions."""
        return min(self.objective(labels) for labels in partitions(len(self.x)))


def partitions(n):
    """Every partition of n rows, as labels in order of first appearance."""

    def grow(prefix, used):
        if len(prefix) == n:
            yield np.array(prefix)
            return
        for k in range(used + 1):
            yield from grow([*prefix, k], max(used, k + 1))

    yield from grow([], 0)


def same_partition(a, b):
    """True if two labellings group the rows alike."""
    a, b = np.asarray(a), np.asarray(b)
    pairs = set(zip(a.tolist(), b.tolist()))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


def orders(n, passes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for _ in range(passes)]


class SlowHDP(Slow):
    """The hard HDP on a handful of rows that belong to groups 0 .. J-1."""

    def __init__(self, family, x, groups, lam_local, lam_global, weight=None, eta=0.0, mu0=None):
        super().__init__(family, x, lam_global, weight, eta, mu0)
        self.groups, self.local, self.top = np.asarray(groups), lam_local, lam_global
        self.n_groups = int(self.groups.max()) + 1

    def objective(self, labels):
        used = [np.flatnonzero(labels == k) for k in np.unique(labels)]
        pairs = len(set(zip(self.groups.tolist(), labels.tolist())))
        return sum(self.cost(members) for members in used) + self.local * pairs + self.top * len(used)

    def objective_at(self, labels, mus):
        """J of labels with centres that need not be the best ones."""
        used = np.unique(labels)
        cost = sum(self.w[i] * self.d(i, mus[k]) for i, k in enumerate(labels))
        prior = sum(self.eta * float(self.family.divergence(self.mu0, mus[k])) for k in used) if self.eta else 0.0
        pairs = len(set(zip(self.groups.tolist(), labels.tolist())))
        return cost + prior + self.local * pairs + self.top * len(used)

    def passes(self, orders, centres=None):
        """Kulis & Jordan's Algorithm 2; one order a pass. Yields labels, centres and J after each of the parts."""
        everything = np.arange(len(self.x))
        mus = [self.centre(everything)] if centres is None else list(centres)
        held = [[0] if centres is None else [] for _ in range(self.n_groups)]
        for order in orders:
            labels = self._points(order, mus, held)
            held = [[p for p in V if (labels[self.groups == j] == p).any()] for j, V in enumerate(held)]
            labels, mus, held = self._dropped(labels, mus, held)
            readings = [self.objective_at(labels, mus)]
            labels, held = self._locals(labels, mus, held)
            labels, mus, held = self._dropped(labels, mus, held)
            readings.append(self.objective_at(labels, mus))
            mus = [self.centre(np.flatnonzero(labels == k)) for k in range(len(mus))]
            readings.append(self.objective_at(labels, mus))
            yield labels, np.array(mus), readings

    def _points(self, order, mus, held):
        labels = np.full(len(self.x), -1)
        for i in order:
            V = held[self.groups[i]]
            costs = [self.v[i] * self.d(i, mu) + (0.0 if p in V else self.local) for p, mu in enumerate(mus)]
            best = int(np.argmin(costs))
            if costs[best] > self.local + self.top + self.s(i):
                mus.append(self.single(i))
                best = len(mus) - 1
            labels[i] = best
            if best not in V:
                V.append(best)
        return labels

    def _locals(self, labels, mus, held):
        after = labels.copy()
        for j, V in enumerate(held):
            for c, old in enumerate(list(V)):
                S = np.flatnonzero((self.groups == j) & (labels == old))
                total, W = (self.w[S, None] * self.x[S]).sum(axis=0), self.w[S].sum()
                alone = self._centre(total, W)
                costs = [sum(self.w[i] * self.d(i, mu) for i in S) for mu in mus]
                prior = self.eta * float(self.family.divergence(self.mu0, alone)) if self.eta else 0.0
                own = sum(self.w[i] * self.d(i, alone) for i in S) + prior
                best = int(np.argmin(costs))
                if costs[best] - own > self.top + 1e-12 * W:  # not by rounding
                    mus.append(alone)
                    best = len(mus) - 1
                after[S], V[c] = best, best
        return after, [list(dict.fromkeys(V)) for V in held]

    @staticmethod
    def _dropped(labels, mus, held):
        kept = sorted(set(labels.tolist()))
        name = {old: new for new, old in enumerate(kept)}
        return np.searchsorted(kept, labels), [mus[k] for k in kept], [[name[p] for p in V] for V in held]
