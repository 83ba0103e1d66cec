"""A tree over rows whose nodes are tied rows: each node is split at its mean along its principal direction.

Nodes are split only when asked for. Dense rows are permuted as nodes are split, so that a node is a slice of them.
What a node stands for does not depend on when it was split, nor on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.kernels import kernels
from kfree.rows.csr import cells_of
from kfree.rows.threads import in_order
from kfree.rows.tied import Tied

#: Marks of nodes without children.
UNSPLIT, LEAF = -1, -2
# Columns up to which a covariance is formed to find its principal direction, where no covariance is kept.
_EXPLICIT = 64
# Steps of a power iteration: on a covariance, and over the rows.
_STEPS, _PASSES = 100, 30
# Square of the change of a direction that ends its iteration.
_SETTLED, _SETTLED_OVER_ROWS = 1e-20, 1e-18
# Share of a node's spread within which a row counts as being at the mean, whatever rounding says.
_TIE = 1e-9
# Entries handled between two looks at the queue of work.
_ENTRIES = 65_536
# Rows of a node that are measured by one thread.
_PIECE = 65_536
# Steps to a standard deviation in which the distances of rows from the mean of all are told apart: too wide for
# rounding to matter, and too narrow for many rows to share one.
_STEPS_APART = 2.0**24


class NodeStats(NamedTuple):
    """Statistics of some nodes, a row for each; of two children one after the other."""

    start: Array
    stop: Array
    n: Array
    mean: Array
    log_h: Array
    second: Array | None


class NewNodes(NamedTuple):
    """What has become of nodes that were to be parted."""

    apart: Array  # which of them have children
    children: NodeStats
    alike: Array  # whether a child holds copies of one row


class DenseTable:
    """Dense rows, permuted where they are."""

    def __init__(self, rows: Tied, shape: str, order: Array):
        self.rows, self.X, self.shape, self.p = rows, rows.mean, shape, rows.mean.shape[1]
        self.order = self.places = order
        # parts of the table itself, or nothing: they are permuted with the rows
        self.weight, self.log_h = _varying(rows.n, 1.0), _varying(rows.log_h)
        self.level = 0.0 if self.log_h.size else float(rows.log_h[0])
        self.key = np.empty(0, np.uint32)  # says which rows stand for a node; the same for copies, wherever they lie
        self._diagonal = np.cumsum(np.arange(self.p, 0, -1)) - np.arange(self.p, 0, -1)  # in a packed triangle

    def part(self, nodes: NodeStats, cut: Array, axes: bool) -> NewNodes:
        """Part the rows of nodes; fills ``cut`` where it is negative."""
        if (cut < 0).any():
            self._halve(nodes, cut, axes)
        return _born(self, nodes, cut)

    def part_at_once(self, nodes: Array, first: int, fields: NodeStats, left: Array, parent: Array) -> int:
        """All that is to be done for nodes of few rows, with full covariances, in one call: their children are written
        from place ``first`` on. How many there are."""
        rows = (self.X, self.weight, self.log_h, self.level, self.key, self.order)
        limits = (_TIE, min(8, _STEPS // self.p), _STEPS, _SETTLED)
        return int(kernels().part_nodes(*rows, nodes, first, (UNSPLIT, LEAF), *limits, *fields, left, parent))

    def _halve(self, part: NodeStats, cut: Array, axes: bool) -> None:
        direction, spread = self._directions(part, axes)
        rows = (self.X, self.weight, self.log_h, self.key, self.order)
        kernels().halve_dense(*rows, part.start, part.stop, part.mean, direction, _TIE * np.sqrt(spread), cut)

    def _directions(self, part: NodeStats, axes: bool) -> tuple[Array, Array]:
        """Directions to part nodes along, and the sums of their variances."""
        direction, slices = np.zeros((part.n.shape[0], self.p)), (part.start, part.stop)
        if self.shape == "full" and not axes:
            assert part.second is not None
            self._leading(part.second, direction)
            return direction, self._spread(part.second)
        variance = np.empty_like(direction)
        kernels().second_diag(self.X, self.weight, *slices, part.n, part.mean, variance)
        if axes:
            widest = (variance >= (1 - 1e-9) * variance.max(axis=1, keepdims=True)).argmax(axis=1)
            direction[np.arange(part.n.shape[0]), widest] = 1.0
        elif self.shape != "none" and self.p <= _EXPLICIT:
            second = np.empty((part.n.shape[0], self.p * (self.p + 1) // 2))
            kernels().second_full(self.X, self.weight, *slices, part.n, part.mean, second)
            self._leading(second, direction)
        else:  # as sparse rows do it
            settled = _SETTLED_OVER_ROWS
            kernels().leading_dense(self.X, self.weight, *slices, part.mean, _PASSES, settled, direction)
        return direction, variance.sum(axis=1)

    def _leading(self, second: Array, direction: Array) -> None:
        kernels().leading_packed(second, min(8, _STEPS // self.p), _STEPS, _SETTLED, direction)

    def alike(self, start: Array, stop: Array) -> Array:
        """Whether slices hold copies of one row."""
        alike = np.empty(start.shape[0], bool)
        kernels().alike_dense(self.X, start, stop, alike)
        return alike

    def measure(self, start: Array, stop: Array, centre: Array) -> NodeStats:
        """Statistics of slices; large ones are measured piece by piece."""
        if not (stop - start > _PIECE).any():
            n, mean, log_h = self._means(start, stop, centre)
            second = None if self.shape == "none" else self._seconds(start, stop, n, mean)
            return NodeStats(start, stop, n, mean, log_h + self.level, second)
        cuts = [np.append(np.arange(a, b, _PIECE), b) for a, b in zip(start, stop)]
        begin, end = np.concatenate([cut[:-1] for cut in cuts]), np.concatenate([cut[1:] for cut in cuts])
        owner = np.repeat(np.arange(start.shape[0]), [cut.size - 1 for cut in cuts])
        first, pieces = np.searchsorted(owner, np.arange(start.shape[0])), range(owner.size)

        def means(i: int) -> tuple[Array, Array, Array]:
            return self._means(begin[i : i + 1], end[i : i + 1], centre[owner[i : i + 1]])

        weight, mean, log_h = (np.concatenate(part) for part in zip(*in_order(means, pieces)))
        n = np.add.reduceat(weight, first)
        share = (weight / n[owner])[:, None]
        mean = centre + np.add.reduceat(share * (mean - centre[owner]), first)
        log_h = np.add.reduceat(share[:, 0] * log_h, first)
        second = None
        if self.shape != "none":

            def seconds(i: int) -> Array:
                return self._seconds(begin[i : i + 1], end[i : i + 1], n[owner[i : i + 1]], mean[owner[i : i + 1]])

            second = np.add.reduceat(np.concatenate(list(in_order(seconds, pieces))), first)
        return NodeStats(start, stop, n, mean, log_h + self.level, second)

    def give_keys(self, whole: NodeStats) -> None:
        """Give the rows keys by their distance from the mean of all: the same in any order, and if all are turned."""
        assert whole.second is not None
        spread = self._spread(whole.second)[0]
        unit = _STEPS_APART / np.sqrt(spread) if spread > 0 else 0.0
        self.key = np.empty(self.X.shape[0], np.uint32)
        spans = [slice(a, a + _PIECE) for a in range(0, self.X.shape[0], _PIECE)]
        for _ in in_order(lambda at: kernels().key_rows(self.X[at], whole.mean[0], unit, self.key[at]), spans):
            pass

    def sample(self, start: Array, stop: Array, total: Array, most: int, merged: bool) -> tuple[Tied, Array]:
        """Rows of slices of so much weight, and where those of each slice begin, and end."""
        size = int((stop - start).sum())
        first, chosen, n = np.empty(start.size + 1, np.intp), np.empty(size, np.intp), np.empty(size)
        kernels().sample_rows(self.X, self.weight, self.key, start, stop, total, most, merged, first, chosen, n)
        n = n[: first[-1]].copy()
        return Tied(n, self.X[chosen[: n.size]], None, np.zeros(n.size)), first

    def _spread(self, second: Array) -> Array:
        """Sums of variances."""
        if self.shape == "spherical":
            return second
        return (second[:, self._diagonal] if self.shape == "full" else second).sum(axis=1)

    def _means(self, start: Array, stop: Array, centre: Array) -> tuple[Array, Array, Array]:
        n, log_h, mean = np.empty(start.shape[0]), np.empty(start.shape[0]), np.empty((start.shape[0], self.p))
        kernels().mean_dense(self.X, self.weight, self.log_h, start, stop, centre, n, mean, log_h)
        return n, mean, log_h

    def _seconds(self, start: Array, stop: Array, n: Array, mean: Array) -> Array:
        """Sums of squares about the mean over n, as the shape says."""
        second = np.empty((start.shape[0], self.p * (self.p + 1) // 2 if self.shape == "full" else self.p))
        kernel = kernels().second_full if self.shape == "full" else kernels().second_diag
        kernel(self.X, self.weight, start, stop, n, mean, second)
        return second.sum(axis=1) if self.shape == "spherical" else second


class CsrTable:
    """Sparse rows, which stay where they are: only their order is permuted."""

    shape = "none"
    places: Array | None = None

    def __init__(self, rows: Tied, order: Array):
        self.rows, X = rows, rows.mean
        if (X.data == 0).any():
            X = X.copy()
            X.eliminate_zeros()
        self.cells = cells_of(X.astype(np.float64, copy=False))
        self.weight, self.log_h = _varying(rows.n, 1.0), _varying(rows.log_h)
        self.level = 0.0 if self.log_h.size else float(rows.log_h[0])
        self.order, self.p = order, X.shape[1]

    def part(self, nodes: NodeStats, cut: Array, axes: bool) -> NewNodes:
        """Part the rows of nodes; fills ``cut``."""
        direction, slices = np.empty((cut.shape[0], self.p)), (nodes.start, nodes.stop)
        steps = (_PASSES, _SETTLED_OVER_ROWS)
        kernels().leading_csr(*self.cells, self.weight, self.order, *slices, nodes.mean, *steps, direction)
        margin = _TIE * np.sqrt(np.einsum("td,td->t", nodes.mean, nodes.mean))
        kernels().halve_csr(*self.cells, self.order, *slices, nodes.mean, direction, margin, cut)
        return _born(self, nodes, cut)

    def alike(self, start: Array, stop: Array) -> Array:
        """Whether slices hold copies of one row."""
        alike = np.empty(start.shape[0], bool)
        kernels().alike_csr(*self.cells, self.order, start, stop, alike)
        return alike

    def measure(self, start: Array, stop: Array, centre: Array) -> NodeStats:
        """Statistics of slices."""
        n, log_h, mean = np.empty(start.shape[0]), np.empty(start.shape[0]), np.empty((start.shape[0], self.p))
        rows = (self.weight, self.log_h, self.order)
        kernels().mean_csr(*self.cells, *rows, start, stop, n, mean, log_h)
        return NodeStats(start, stop, n, mean, log_h + self.level, None)


def _born(table: CsrTable | DenseTable, nodes: NodeStats, cut: Array) -> NewNodes:
    """The children of nodes that are parted at ``cut``."""
    apart = np.flatnonzero(cut < nodes.stop)
    start, stop = np.empty(2 * apart.size, np.intp), np.empty(2 * apart.size, np.intp)
    start[::2], start[1::2], stop[::2], stop[1::2] = nodes.start[apart], cut[apart], cut[apart], nodes.stop[apart]
    children = table.measure(start, stop, np.repeat(nodes.mean[apart], 2, axis=0))
    return NewNodes(apart, children, table.alike(start, stop))


def _varying(values: Array, usual: float | None = None) -> Array:
    """The values, or nothing if all are equal (to the usual one, if there is one)."""
    usual = values[0] if usual is None and values.size else usual
    return np.empty(0) if (values == usual).all() else values


class Slices(NamedTuple):
    """A ready-made binary tree: node k is the rows start[k]..stop[k] in this order, with children 2k + 1, 2k + 2."""

    order: Array
    start: Array
    stop: Array


class Tree:
    """Nodes over single rows; node 0 is the root, and the children of a node have consecutive numbers.

    ``shape`` says what is kept of the second moments: "full", "diag", "spherical" or "none". Rows without weight
    belong to no node. With ``slices`` nodes are split as given, and along the widest column below that. A tree
    that has ``max_nodes`` splits no more. The table must not be used any more if it is given away (``inplace``).
    """

    def __init__(
        self,
        rows: Tied,
        shape: str,
        *,
        max_nodes: int | None = None,
        slices: Slices | None = None,
        inplace: bool = False,
    ):
        order = np.flatnonzero(rows.n > 0) if slices is None else slices.order.astype(np.intp)
        self.table: CsrTable | DenseTable
        if sp.issparse(rows.mean):
            self.table = CsrTable(rows, order)
        else:
            given_away = inplace and slices is None and order.size == rows.size
            own = rows if given_away else Tied(rows.n[order], rows.mean[order], None, rows.log_h[order])
            self.table = DenseTable(own, shape, order)
        self.max_nodes, self._slices = max_nodes, slices
        whole = (np.zeros(1, np.intp), np.full(1, order.shape[0], np.intp))
        self._nodes = self.table.measure(*whole, np.zeros((1, self.table.p)))
        if isinstance(self.table, DenseTable) and shape != "none":
            self.table.give_keys(self._nodes)
        self.count = 1
        self.left = np.where(self.table.alike(*whole), LEAF, UNSPLIT)  # first child, or a mark
        self.parent = np.full(1, -1, np.intp)
        self._ready = np.zeros(1, np.intp)  # number among the given slices, or -1

    @property
    def rows(self) -> Tied:
        """The single rows, as they lie here."""
        return self.table.rows

    @property
    def places(self) -> Array | None:
        """Where they were in the table; None if they have stayed there."""
        return self.table.places

    @property
    def order(self) -> Array:
        """The rows in the order of the nodes."""
        return self.table.order

    @property
    def full(self) -> bool:
        """Whether there is no room for more nodes."""
        return self.max_nodes is not None and self.count + 2 > self.max_nodes

    def bounds(self, nodes: Array) -> tuple[Array, Array]:
        """Where the rows of nodes start and stop in ``order``."""
        return self._nodes.start[nodes], self._nodes.stop[nodes]

    def tied(self, nodes: Array) -> Tied:
        """Nodes as tied rows."""
        _, _, n, mean, log_h, second = self._nodes
        return Tied(n[nodes], mean[nodes], None if second is None else second[nodes], log_h[nodes])

    def sample(self, nodes: Array, most: int, merged: bool = False) -> tuple[Tied, Array]:
        """The rows of nodes without log h, or of those with many rows about ``most``; and where the rows of each node
        begin, and end. If ``merged``, copies are one row. Dense rows with second moments only."""
        assert isinstance(self.table, DenseTable)
        return self.table.sample(*self.bounds(nodes), self._nodes.n[nodes], most, merged)

    def split(self, nodes: Array) -> Array:
        """Give children to nodes that have none, if there is room; returns whether each has children now."""
        new = nodes[self.left[nodes] == UNSPLIT]
        if self.max_nodes is not None:
            new = new[: max(0, self.max_nodes - self.count) // 2]
        if new.size:
            self._reserve(self.count + 2 * new.size)
            chunks, room = self._chunks(new), self.count
            places = [room := room + 2 * some.size for some in chunks]
            tasks = [(some, end - 2 * some.size) for some, end in zip(chunks, places)]
            born = list(in_order(lambda task: self._parted(*task), tasks))
            # where nodes of a chunk do not come apart, numbers are left out
            self.count = tasks[-1][1] + born[-1]
        return self.left[nodes] >= 0

    def _chunks(self, nodes: Array) -> list[Array]:
        """Nodes to be handled together: about as much work in each."""
        start, stop = self.bounds(nodes)
        work = np.cumsum((stop - start) * self.table.p) // _ENTRIES
        return [nodes] if work[-1] == 0 else np.split(nodes, np.flatnonzero(np.diff(work)) + 1)

    def _parted(self, nodes: Array, first: int) -> int:
        """Give children to nodes, if they come apart, from place ``first`` on; how many."""
        start, stop, n, mean, log_h, second = self._nodes
        table, slices = self.table, (start[nodes], stop[nodes])
        few = (slices[1] - slices[0]).max() <= _PIECE
        if few and isinstance(table, DenseTable) and table.shape == "full" and self._slices is None:
            return table.part_at_once(nodes, first, self._nodes, self.left, self.parent)
        own = None if second is None else second[nodes]
        part = NodeStats(*slices, n[nodes], mean[nodes], log_h[nodes], own)
        return self._write(nodes, first, table.part(part, self._cuts(nodes), self._slices is not None))

    def _cuts(self, nodes: Array) -> Array:
        """Where the given slices part nodes, -1 below them."""
        cut = np.full(nodes.shape[0], -1, np.intp)
        if self._slices is not None:
            child = 2 * self._ready[nodes] + 1
            given = (child > 0) & (child < self._slices.stop.shape[0])
            cut[given] = self._slices.stop[child[given]]
        return cut

    def _write(self, nodes: Array, first: int, born: NewNodes) -> int:
        """Number the children of nodes; those without are leaves."""
        parents, stop = nodes[born.apart], first + born.alike.size
        for field, values in zip(self._nodes, born.children):
            if field is not None:
                field[first:stop] = values
        self.left[first:stop] = np.where(born.alike, LEAF, UNSPLIT)
        self.left[nodes] = LEAF
        self.left[parents] = np.arange(first, stop, 2)
        self.parent[first:stop] = np.repeat(parents, 2)
        if self._slices is not None:
            child = 2 * np.repeat(self._ready[parents], 2) + np.tile([1, 2], parents.shape[0])
            limit = self._slices.stop.shape[0]
            self._ready[first:stop] = np.where((child > 0) & (child < limit), child, -1)
        return stop - first

    def _reserve(self, size: int) -> None:
        """Make room for so many nodes, and as many again as there are."""
        if size <= self.left.shape[0]:
            return
        spare = max(size, 64, 2 * self.left.shape[0]) - self.left.shape[0]

        def grown(field: Any) -> Any:
            return None if field is None else np.concatenate([field, np.empty((spare, *field.shape[1:]), field.dtype)])

        self._nodes = NodeStats(*map(grown, self._nodes))
        self.left, self.parent, self._ready = grown(self.left), grown(self.parent), grown(self._ready)
