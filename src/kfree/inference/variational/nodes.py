"""Outer nodes of a tree as the rows of a search: refined where it pays, coarsened where it does not."""

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from kfree.families import Array
from kfree.families.conjugate import Linear, Weighted, Whitened
from kfree.inference.variational.expected_likelihood import Shares, whiten
from kfree.inference.variational.gaussianity import negentropy
from kfree.inference.variational.partition import ComponentRows, Ray
from kfree.inference.variational.posterior import View
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.rows import Tied
from kfree.rows.threads import in_order
from kfree.rows.tree import LEAF, Tree


class ExpansionRule(NamedTuple):
    """When to expand a node."""

    kind: str = "gain"  # "gain", or "q": the paper's
    refine: bool = False  # whether growth goes on with a tenth of the tolerances once it has ended
    tolerance: float = 1.0  # share of the usual tolerances
    most: float = np.inf  # nodes, as a share of the rows, beyond which these take over

    @property
    def gain(self) -> float:
        """Nats per row that the split of a node must gain."""
        return self.tolerance * VARIATIONAL.gain

    @property
    def least(self) -> float:
        """Nats per row and column of all rows that a node must be in question for."""
        return self.tolerance * VARIATIONAL.least_gain

    @property
    def change(self) -> float:
        """Total variation of q between a node and its children, for the paper's rule."""
        return self.tolerance * VARIATIONAL.change


class TreeNodes:
    """A partition of the rows into nodes of a tree; falls back to the rows themselves if there are too many."""

    def __init__(self, tree: Tree, rule: ExpansionRule):
        self.tree, self.rows, self.places, self.rule = tree, tree.rows, tree.places, rule
        self.total = self.rows.total
        self.fixed, self.growing, self._looks = False, True, 0
        self._seen = np.zeros(0, np.intp)  # nodes that were looked at row by row
        self.nodes = np.zeros(1, np.intp)
        columns, size = self.rows.mean.shape[1], max(self.rows.size, self.total)  # the same for copies
        if columns > VARIATIONAL.wide_columns and size < VARIATIONAL.rows_per_column * columns:
            self.tied, self.fixed, self.growing = self.rows, True, False
            return
        for _ in range(VARIATIONAL.depth):
            self._replace(self.nodes)
        self._gather()

    @property
    def full(self) -> bool:
        """The tree has all the nodes it may have."""
        return self.tree.full and not self.fixed

    @property
    def rough(self) -> float:
        """While growing, nodes are looked at only now and then, and not closely."""
        if self.fixed or not self.growing:
            return 0.0
        return VARIATIONAL.doubt * VARIATIONAL.slack * self.rows.mean.shape[1]

    @property
    def ways(self) -> float:
        """While growing, components split in two, as more of them will come; at the end everything is tried."""
        return 2 if self.growing and not self.fixed else np.inf

    def _gather(self) -> None:
        self.tied = self.tree.tied(self.nodes)
        alone = self.tied.n[self.tree.left[self.nodes] == LEAF].sum()
        many = self.nodes.size > self.rule.most * max(self.rows.size, self.total)  # the same for copies
        if many or alone > VARIATIONAL.single_rows * self.total:
            self.tied, self.fixed = self.rows, True

    def _replace(self, some: Array) -> Array:
        """Put the children of outer nodes, where they have some, in their place; the children."""
        apart = some[self.tree.split(some)]
        if not apart.size:
            return apart
        inner = np.zeros(self.tree.count, bool)
        inner[apart] = True
        left = self.tree.left[apart]
        children = np.sort(np.concatenate([left, left + 1]))
        self.nodes = np.sort(np.concatenate([self.nodes[~inner[self.nodes]], children]))
        return children

    def sure(self, view: View, wanted: Array, prices: Array) -> Array:
        """While growing, as components are tried again; later, where the rows of a component are nearly Gaussian: what
        more components could gain is less than what one costs."""
        if self.growing:
            return np.ones(len(wanted), bool)
        form = view.form
        if self.fixed or isinstance(form, Linear):  # what nodes said before rows took over does not count
            return np.zeros(len(wanted), bool)
        share = view.shares(self.tied).resp
        lost = in_order(lambda c: self._lost(form, int(c), np.flatnonzero(share[c] > 0.5)), wanted)
        return np.array(list(lost)) <= VARIATIONAL.pays * prices

    def _lost(self, form: Weighted | Whitened, c: int, own: Array) -> float:
        """Nats that a Gaussian lacks in describing the rows of a component's own nodes; 0 if there are few rows."""
        mass = float(self.tied.n[own].sum())
        if mass < VARIATIONAL.ample * self.rows.mean.shape[1]:
            return 0.0
        # merged: each counts once for what chance may do
        rows, _ = self.tree.sample(self.nodes[own], VARIATIONAL.sample, merged=True)
        return mass * negentropy(whiten(rows.mean, form, c), rows.n)

    def part(self, index: Array, share: Array) -> ComponentRows:
        """Some of the nodes."""
        names = index if self.fixed else self.nodes[index]
        return ComponentRows(names, self.tied.take(index), share, None if self.fixed else names[:0])

    def refined(self, parts: list[ComponentRows], rays: list[Ray]) -> list[ComponentRows]:
        """Half of the nodes that are mostly the component's, those widest along the ray, give way to their children."""
        if self.fixed:
            return parts
        widest = [self._widest(part, ray) for part, ray in zip(parts, rays)]
        self.tree.split(np.unique(np.concatenate([part.names[w] for part, w in zip(parts, widest)])))
        return [self._with_children(part, w) for part, w in zip(parts, widest)]

    def _widest(self, part: ComponentRows, ray: Ray) -> Array:
        """Positions of half of the nodes that are mostly the component's: the widest along a ray."""
        own = np.flatnonzero((part.share > 0.5) & (self.tree.left[part.names] != LEAF))
        width = (part.rows.n * _along(part.rows, ray.direction))[own]
        # rounded: the order of equal widths must not hang on the order of summation
        width = np.round(np.log(np.maximum(width, np.finfo(float).tiny)), 9)
        return own[np.argsort(-width, kind="stable")[: (own.size + 1) // 2]]

    def _with_children(self, part: ComponentRows, some: Array) -> ComponentRows:
        """A part with the children of some nodes, where they have any, in their place."""
        nodes, rows, share, token = part
        some = some[self.tree.left[nodes[some]] >= 0]
        if not some.size:
            return part
        left = self.tree.left[nodes[some]]
        kept, children = np.delete(np.arange(nodes.size), some), np.concatenate([left, left + 1])
        return ComponentRows(
            np.concatenate([nodes[kept], children]),
            _joined(rows.take(kept), self.tree.tied(children)),
            np.concatenate([share[kept], np.tile(share[some], 2)]),
            np.concatenate([token, nodes[some]]),
        )

    def keep(self, token: Any) -> None:
        """Replace the nodes that were refined for a split, or what they have been joined to since."""
        self._looks = 0
        if self.fixed or token is None:
            return
        while (above := self._outer_above(token)).size:
            self._replace(above)
        self._gather()

    def _outer_above(self, nodes: Array) -> Array:
        """The outer nodes that are among these or stand above them."""
        outer = np.zeros(self.tree.count, bool)
        outer[self.nodes] = True
        while nodes.size and not outer[nodes].all():
            nodes = np.unique(np.where(outer[nodes], nodes, self.tree.parent[nodes]))
            nodes = nodes[nodes >= 0]  # of those that have been replaced already nothing is above
        return nodes

    def expand(self, view: View) -> int:
        """Replace the nodes that the rule names, a few levels at once; how many. As long as components are missing one
        look is enough for each number of them: with more of them nodes are asked again."""
        if self.fixed or self.tree.full or (self.growing and self._looks >= VARIATIONAL.looks):
            return 0
        some, count = self.nodes, 0
        self._looks += 1
        if not self.growing:
            some = np.setdiff1d(some, self._seen, assume_unique=True)
        for _ in range(VARIATIONAL.levels):
            some = self._replace(some[self._due(view, some)])
            count += some.size // 2
            if not some.size:
                break
        if count:
            self._gather()
        return count

    def sharpen(self) -> bool:
        """Look at rows once growth has ended: those of nodes, or all, if they have taken over since; then, if that is
        wanted, with a tenth of the tolerance."""
        if not self.growing and (self.fixed or not self.rule.refine):
            return False
        if not self.growing:
            self.rule = self.rule._replace(tolerance=VARIATIONAL.finer, refine=False)
        self._seen = self._seen[:0]
        self.growing = False
        return True

    def _due(self, view: View, nodes: Array) -> Array:
        """Positions of the nodes to expand."""
        if not nodes.size:
            return nodes
        tied = self.tied if nodes is self.nodes else self.tree.tied(nodes)
        rule, found = self.rule, view.shares(tied)
        share, lse = found
        inner = self.tree.left[nodes] != LEAF
        if rule.kind == "q":
            return np.flatnonzero(inner)[self._changes(view, share[:, inner], nodes[inner]) > rule.change]
        if isinstance(view.form, Linear):
            gains = self._gains(view, lse[inner], tied.n[inner], nodes[inner], 2)
            return np.flatnonzero(inner)[gains > self._worth(tied.n[inner])]
        poor = np.zeros_like(inner)
        if self.growing:
            poor = inner & (self._misfits(view, found, tied.n, VARIATIONAL.misfit) > 0)
        # nodes of which more is not known yet
        rest = np.flatnonzero(inner & ~poor)
        return np.sort(
            np.concatenate([np.flatnonzero(poor), rest[self._lacking(view, nodes[rest], tied.n[rest], share[:, rest])]])
        )

    def _lacking(self, view: View, nodes: Array, n: Array, share: Array) -> Array:
        """Which nodes stand badly for their rows: those, one by one, would gain too much. Where a component has hardly
        more than one node, only this tells if the node is mixed."""
        if not nodes.size:
            return np.zeros(0, bool)
        most = VARIATIONAL.glance if self.growing else VARIATIONAL.sample
        if not self.growing:
            self._seen = np.union1d(self._seen, nodes)

        def of_chunk(part: slice) -> Array:
            return self._apart(view, nodes[part], share[:, part], most)

        gains = np.concatenate(list(in_order(of_chunk, _chunks(np.minimum(n, most)))))
        # of a light component even a small node is a large part, and may be all that it was made for
        weight = self.total * np.exp(view.log_weight)[share.argmax(axis=0)]
        return gains > self._worth(n, VARIATIONAL.lighter * weight)

    def _apart(self, view: View, nodes: Array, share: Array, most: int) -> Array:
        """What the rows of nodes would gain by shares of their own: the mean divergence of the node's from theirs."""
        rows, first = self.tree.sample(nodes, most)
        return view.runner(rows).apart(rows, first, view.log_weight, np.ascontiguousarray(share))

    def _worth(self, n: Array, total: Any = None) -> Array:
        """Nats per row that the split of nodes must gain: small nodes more, as all of them together matter little."""
        total = self.total if total is None else total
        return np.maximum(self.rule.gain, _over(self.rule.least * total * self.rows.mean.shape[1], n))

    def _misfits(self, view: View, found: Shares, n: Array, misfit: float) -> Array:
        """By how much half the mean squared distance of a node's rows exceeds what is allowed."""
        D = self.rows.mean.shape[1]
        best = view.log_weight - view.form.offset
        share, lse = found
        # the log of a share is the score less lse
        excess = best @ share - xlogy(share, share).sum(axis=0) - lse - D / 2
        allowed = np.maximum(VARIATIONAL.slack, _over(self.rule.least * self.total, n)) * D
        return excess - np.maximum(misfit * np.sqrt(_over(D / 2, n)), allowed)

    def _gains(self, view: View, whole: Array, n: Array, nodes: Array, levels: int) -> Array:
        """Fall of the free energy per row if nodes give way to their children, or to theirs."""
        if not nodes.size:
            return np.zeros(0)
        owner, level = np.arange(nodes.size), nodes
        for _ in range(levels):
            apart = self.tree.split(level)
            left = self.tree.left[level[apart]]
            owner = np.concatenate([owner[~apart], owner[apart], owner[apart]])
            level = np.concatenate([level[~apart], left, left + 1])
        below = self.tree.tied(level)
        total = np.bincount(owner, weights=below.n * view.shares(below).lse, minlength=nodes.size)
        return total / n - whole

    def _changes(self, view: View, share: Array, nodes: Array) -> Array:
        """Largest total variation between the responsibilities of a node and those of a child."""
        change = np.zeros(nodes.size)
        apart = np.flatnonzero(self.tree.split(nodes))
        for child in (0, 1) if apart.size else ():
            below = view.shares(self.tree.tied(self.tree.left[nodes[apart]] + child)).resp
            change[apart] = np.maximum(change[apart], 0.5 * np.abs(below - share[:, apart]).sum(axis=0))
        return change

    def coarsen(self, view: View) -> None:
        """Join siblings that lose next to nothing by it, again and again."""
        self._seen = self._seen[:0]
        if self.fixed or not self.growing:
            return
        nodes, value = self.nodes, self.tied.n * view.shares(self.tied).lse
        apart = np.zeros(nodes.size, bool)  # whether the pair that begins here must not be joined
        while True:
            above = self.tree.parent[nodes]
            first = np.flatnonzero((above[:-1] == above[1:]) & ~apart[:-1])
            if not first.size:
                break
            joined, their = self._joined(view, above[first], value[first] + value[first + 1])
            apart[first[~joined]] = True
            first = first[joined]
            rest = np.delete(np.arange(nodes.size), np.append(first, first + 1))
            nodes = np.append(nodes[rest], above[first])
            order = np.argsort(nodes)
            nodes, value = nodes[order], np.append(value[rest], their[joined])[order]
            apart = np.append(apart[rest], np.zeros(first.size, bool))[order]
        if nodes.size < self.nodes.size:
            self.nodes = nodes
            self._gather()

    def _joined(self, view: View, parents: Array, together: Array) -> tuple[Array, Array]:
        """Which pairs of siblings may be joined, given what they add to the evidence; and what their parents would."""
        tied = self.tree.tied(parents)
        found = view.shares(tied)
        cheap = together / tied.n - found.lse < VARIATIONAL.join_loss * self.rule.gain
        if not isinstance(view.form, Linear):
            cheap &= self._misfits(view, found, tied.n, VARIATIONAL.join_misfit) <= 0
        return cheap, tied.n * found.lse


def _over(total: Any, n: Array) -> Array:
    """What falls to a unit of the weight of nodes; to those of next to none infinitely much."""
    with np.errstate(over="ignore"):
        return np.asarray(total / n)


def _chunks(n: Array) -> list[slice]:
    """Nodes to be looked at together: about as many rows each."""
    passed = np.cumsum(n) // VARIATIONAL.together
    edges = [0, *(np.flatnonzero(np.diff(passed)) + 1).tolist(), n.size]
    return [slice(a, b) for a, b in pairwise(edges)]


def _along(part: Tied, direction: Array) -> Array:
    """Variance of nodes along a direction; 1 where second moments are not kept."""
    if part.second is None:
        return np.ones(part.size)
    if part.second.ndim == 1:
        return part.second / direction.size
    if part.second.shape[1] == direction.size:
        return part.second @ (direction * direction)
    i, j, twice = _upper(direction.size)
    return part.second @ (direction[i] * direction[j] * twice)


@cache
def _upper(D: int) -> tuple[Array, Array, Array]:
    """Rows and columns of the entries of a packed triangle, and how often each stands in the matrix."""
    i, j = np.triu_indices(D)
    return i, j, np.where(i == j, 1.0, 2.0)


def _joined(one: Tied, two: Tied) -> Tied:
    """The rows of both."""
    second = None if one.second is None or two.second is None else np.concatenate([one.second, two.second])
    mean = np.concatenate([one.mean, two.mean])
    return Tied(np.concatenate([one.n, two.n]), mean, second, np.concatenate([one.log_h, two.log_h]))
