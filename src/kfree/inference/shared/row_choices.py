"""Hard HDP, first part of a pass: every row in turn chooses its cluster.

A cluster that the row's group does not hold yet costs lam_local more, and a new one lam_local + lam_global. Centres
stand still and new ones are only appended, so most rows are settled by one product for all: a row whose nearest
centre its group holds stays with it. Only the others, and rows beyond the threshold, are visited in turn, in blocks
whose costs are one product. Labels equal the one-row-at-a-time algorithm for any size of a block.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Affine, Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.exact import all_costs, exact_costs, own_cost
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.goal import Goal, Order
from kfree.inference.loop import Budget
from kfree.inference.shared.groups import Groups, Held, Lams, arranged, find_slots
from kfree.inference.shared.hdp_numbers import HDP
from kfree.kernels import kernels
from kfree.kernels.splitmix import mix
from kfree.rows.threads import cut, in_order

_EPS = float(np.finfo(float).eps)


class SharedState(NamedTuple):
    """State between two passes of the hard HDP."""

    centres: Centres
    labels: Array  # (n,) int32, global cluster of each row; -1 for rows without weight, and before the first pass
    held: Held
    rng: np.random.Generator


class Visited(NamedTuple):
    """Where the rows went."""

    labels: Array  # (n,) int32; -1 for rows without weight
    held: Held  # what the groups hold, also what nobody uses any more
    fresh: Array  # (F, p) centres opened; labels from K on


def turns(table: Table, groups: Groups, order: Order | Array, rng: np.random.Generator) -> Array:
    """Rows in the order of their turns, group after group."""
    if not isinstance(order, Order):
        order = order[table.rows.weights(order) > 0]
        first = np.full(groups.n_groups, order.size)
        np.minimum.at(first, groups.code[order], np.arange(order.size))
        return _by_rank(groups, order, np.argsort(first, kind="stable"))
    if order is Order.RANDOM:
        return _by_rank(groups, rng.permutation(groups.rows), rng.permutation(groups.n_groups))
    if order is Order.CONTENT:
        inside = groups.rows[np.argsort(mix(table.hashes[groups.rows]), kind="stable")]
        return _by_rank(groups, inside, np.arange(groups.n_groups))
    return groups.rows


def _by_rank(groups: Groups, rows: Array, sequence: Array) -> Array:
    """Rows group after group, the groups in a given sequence."""
    rank = np.empty(groups.n_groups, np.intp)
    rank[sequence] = np.arange(groups.n_groups)
    sizes = np.diff(groups.start)[sequence]
    return arranged(rows, rank[groups.code], np.concatenate([[0], np.cumsum(sizes)]))


class CostBlock(NamedTuple):
    """Rows to be visited, with their costs."""

    rows: Array  # (m,)
    cost: Array  # (m, K) divergences from all centres known
    slack: Array  # (m,) how wrong they may be; 0: exact

    def some(self, which: Array | slice) -> "CostBlock":
        """Some of the rows."""
        return CostBlock(self.rows[which], self.cost[which], self.slack[which])


def make_block(table: Table, rows: Array, centres: Centres, lams: Lams) -> CostBlock:
    """Costs of a few rows to all centres, in float64."""
    penalties = lams.local + (lams.top if np.isfinite(lams.top) else 0.0)
    cost, slack = np.empty((rows.size, centres.mean.shape[0])), np.empty(rows.size)

    def fill(piece: slice) -> None:
        sizes = []

        def product(affine: Affine) -> Array:
            products, size = table.rows.products(rows[piece], affine)
            sizes.append(size)
            return products

        cost[piece] = all_costs(table, rows[piece], centres, product)
        total = table.base[rows[piece]] + centres.finite.size + sizes[0]
        slack[piece] = (table.rows.p + 4) * _EPS * total + 8 * _EPS * penalties + 1e-300

    for _ in in_order(fill, cut(rows.size, HDP.cost_rows)):
        pass
    return CostBlock(rows, cost, slack)


def units(table: Table, rows: Array) -> tuple[Array, Array]:
    """Weight of one copy of each row, and what a cluster of it costs besides the penalties."""
    unit = table.unit[rows] if table.unit.size else np.ones(rows.size)
    return unit, table.alone[rows] if table.alone.size else np.zeros(rows.size)


class Turn:
    """One visit of all rows; keeps what has been opened and added so far."""

    def __init__(self, table: Table, groups: Groups, held: Held, centres: Centres, lams: Lams, most: float):
        self.table, self.groups, self.held, self.lams = table, groups, held, lams
        self.old, self.centres, self.most = centres, centres, most
        self.added: list[tuple[Array, Array]] = []  # (groups, clusters) that became local clusters
        self.last = (-1, np.empty(0, np.int32))  # the group visited last, and what it added

    @property
    def fresh(self) -> Centres:
        """Centres opened so far."""
        return self.centres.some(slice(self.old.mean.shape[0], None))

    def masks(self, rows: Array, extra: int) -> tuple[Array, Array]:
        """Number of the group of each row among those of a block, and what these hold, (G, K + extra)."""
        code = self.groups.code[rows]
        edge = np.concatenate([[True], code[1:] != code[:-1]])
        which = code[edge]
        held = self.held.mask(which, self.centres.mean.shape[0] + extra)
        if which[0] == self.last[0]:
            held[0, self.last[1]] = True
        return np.cumsum(edge) - 1, held

    def openers(self, block: CostBlock) -> Array:
        """Positions of the rows that may open a cluster."""
        if self.centres.mean.shape[0] >= self.most or not block.rows.size:
            return np.empty(0, np.intp)
        group, held = self.masks(block.rows, 0)
        rows = np.empty(block.rows.size, np.intp)
        unit, alone = units(self.table, block.rows)
        count = kernels().may_open(block.cost, block.slack, unit, alone, group, held, tuple(self.lams), rows)
        return rows[:count]

    def visit(self, block: CostBlock, openers: Array, labels: Array) -> None:
        """Let the rows choose, in order; ``openers`` are positions in the block."""
        table, K = self.table, self.centres.mean.shape[0]
        unit, alone = units(table, block.rows)
        group, held = self.masks(block.rows, openers.size)
        column = np.full(block.rows.size, -1)
        column[openers] = K + np.arange(openers.size)
        known = np.arange(K + openers.size) < K
        centres, cost, slack = self.centres, block.cost, block.slack.copy()
        if openers.size:
            own = Centres(table.geometry, table.singletons(block.rows[openers]))
            theirs = make_block(table, block.rows, own, self.lams)
            cost = np.concatenate([cost, theirs.cost], axis=1)
            slack = np.maximum(slack, theirs.slack)
            centres = centres.joined(own)
        room = np.array([int(min(self.most - K, openers.size))])
        chosen, grew = np.empty(block.rows.size, np.int32), np.zeros(block.rows.size, bool)
        at = 0
        while True:
            at = kernels().visit_rows(
                at, cost, slack, unit, alone, group, column, tuple(self.lams), room, known, held, chosen, grew
            )
            if at == block.rows.size:
                break
            settle_exactly(table, block.rows, centres.mean, at, cost, slack)
        name = np.cumsum(known).astype(np.int32) - 1
        chosen = name[chosen]
        labels[block.rows] = chosen
        self.centres = centres.some(np.flatnonzero(known))
        self._remember(self.groups.code[block.rows[grew]], chosen[grew], int(self.groups.code[block.rows[-1]]))

    def _remember(self, group: Array, member: Array, last: int) -> None:
        if group.size:
            self.added.append((group, member))
        before = self.last[1] if self.last[0] == last else np.empty(0, np.int32)
        self.last = (last, np.concatenate([before, member[group == last]]))

    def result(self, labels: Array) -> Visited:
        """What the turn came to."""
        held = self.held
        if self.added:
            held = held.grown(*map(np.concatenate, zip(*self.added)))
        return Visited(labels, held, self.fresh.mean)


def settle_exactly(table: Table, rows: Array, mean: Array, at: int, cost: Array, slack: Array) -> None:
    """Measure a row, and those after it whose two least costs are too close to tell, by the decisive formula."""
    rest = cost[at:]
    least = np.partition(rest, 1, axis=1)[:, :2] if rest.shape[1] > 1 else np.zeros((rest.shape[0], 2))
    with np.errstate(invalid="ignore"):
        close = ~(least[:, 1] - least[:, 0] > 2 * slack[at:]) & (slack[at:] > 0)
    close[0] = True
    which = at + np.flatnonzero(close)
    cost[which] = exact_costs(table, rows[which], mean)
    slack[which] = 0.0


def visit_points(
    table: Table, groups: Groups, state: SharedState, memory: Memory, goal: Goal, budget: Budget
) -> Visited:
    """Let all rows choose in turn; ``memory`` holds their nearest centres and what they cost.

    Once the budget is spent nothing is opened any more: what is left to do is little.
    """
    lams, held, centres = Lams.of(goal), state.held, state.centres
    labels = np.full(table.n, -1, np.int32)
    labels[groups.rows] = memory.labels[groups.rows]
    open_ = _unsettled(table, groups, held, centres, memory, lams)
    cost = _settle_groups(table, groups, state, memory, lams, (open_, labels))
    turn = Turn(table, groups, held, centres, lams, goal.max_clusters)
    if not open_.any():
        return turn.result(labels)
    sequence = turns(table, groups, goal.order, state.rng)
    walk = _Walk(sequence, np.flatnonzero(open_[sequence]))
    while True:
        rows = walk.rows(turn)
        if not rows.size:
            return turn.result(labels)
        wanted = open_[rows]
        if turn.fresh.mean.shape[0]:
            wanted |= _maybe_nearer(table, rows, turn.fresh, cost)
        block = make_block(table, rows[wanted], turn.centres, lams)
        if budget.spent:
            turn.most = turn.centres.mean.shape[0]
        openers = turn.openers(block)
        stop = walk.advance(rows, wanted, openers)
        if stop < rows.size:  # too many to compare with each other: the rest comes next time
            rows, wanted = rows[:stop], wanted[:stop]
            block = block.some(slice(int(wanted.sum())))
            openers = openers[openers < block.rows.size]
        if openers.size:
            block, openers = _with_neighbours(turn, rows, wanted, block, openers, cost)
        if block.rows.size:
            turn.visit(block, openers, labels)


class _Walk:
    """Which rows are looked at together, on the way through all of them."""

    def __init__(self, sequence: Array, open_: Array):
        self.sequence, self.open = sequence, open_  # positions of the rows that are not settled
        self.at, self.size = 0, HDP.blocks[0]

    def rows(self, turn: Turn) -> Array:
        """The next rows; until a cluster is opened the settled ones among them need no look."""
        K = turn.centres.mean.shape[0]
        size = max(1, min(self.size, HDP.cost_entries // K))
        if turn.fresh.mean.shape[0]:
            return self.sequence[self.at : self.at + size]
        last = int(np.searchsorted(self.open, self.at)) + size
        stop = self.at if last == size + self.open.size else int(self.open[min(last, self.open.size) - 1]) + 1
        return self.sequence[self.at : stop]

    def advance(self, rows: Array, wanted: Array, openers: Array) -> int:
        """How many of the rows to visit now: those up to a certain number of possible openers, and of others."""
        stop, grown = rows.size, 2 * self.size
        if openers.size:
            place = np.flatnonzero(wanted)[openers]
            stop = min(stop, int(place[0]) + self.size)
            if openers.size > HDP.block_openers:
                stop, grown = min(stop, int(place[HDP.block_openers])), self.size // 4
        self.at += stop
        self.size = int(np.clip(grown, *HDP.blocks))
        return stop


def _unsettled(table: Table, groups: Groups, held: Held, centres: Centres, memory: Memory, lams: Lams) -> Array:
    """Rows (n,) whose group lacks their nearest centre, or that are beyond the threshold even so."""
    lacking = find_slots(groups, held, memory.labels, centres.mean.shape[0]) < 0
    open_ = np.zeros(table.n, bool)
    open_[groups.rows[lacking]] = True
    if np.isfinite(lams.top):
        margin = 1e-10 * (table.base + lams.both + centres.affine.size)
        far = ~(table.excess(memory.cost, lams.both) < -margin)
        if table.rows.weight.size:
            far &= table.rows.weight > 0
        open_ |= far
    return open_


def _settle_groups(
    table: Table, groups: Groups, state: SharedState, memory: Memory, lams: Lams, rows_so_far: tuple[Array, Array]
) -> Array:
    """Settle groups in which no row gains by a cluster that the group lacks: their rows stay with the nearest of
    those it holds, whatever their order. Updates which rows are open and the labels; returns what rows pay, (n,)."""
    held, centres, (open_, labels) = state.held, state.centres, rows_so_far
    cost, size = memory.cost.copy(), np.diff(held.start)
    few = (size > 0) & (HDP.few_held * size <= centres.mean.shape[0])
    rows = groups.rows[open_[groups.rows]]
    rows = rows[few[groups.code[rows]]]
    if not rows.size:
        return cost
    pieces = [rows[start : start + HDP.list_share] for start in range(0, rows.size, HDP.list_share)]
    found = in_order(lambda piece: _nearest_held(table, groups, held, centres, piece), pieces)
    near, least, tied = map(np.concatenate, zip(*found))
    margin = 1e-10 * (table.base[rows] + centres.affine.size + lams.local)
    unit = table.unit[rows] if table.unit.size else 1.0
    with np.errstate(invalid="ignore"):
        gains = ~(unit * (least - memory.cost[rows]) < lams.local - margin)
    far = ~(table.excess(least, lams.both, rows) < -margin) if np.isfinite(lams.top) else np.zeros(rows.size, bool)
    restless = np.zeros(groups.n_groups, bool)
    restless[groups.code[rows[tied | gains | far]]] = True
    calm = ~restless[groups.code[rows]]
    open_[rows[calm]] = False
    labels[rows[calm]], cost[rows[calm]] = near[calm], least[calm]
    return cost


def _nearest_held(
    table: Table, groups: Groups, held: Held, centres: Centres, rows: Array
) -> tuple[Array, Array, Array]:
    """Nearest of the clusters that the group of each row holds, its cost, and whether others come close to it."""
    code = groups.code[rows]
    count = np.diff(held.start)[code]
    start = np.cumsum(count) - count
    line = np.repeat(np.arange(rows.size), count)
    member = held.member[held.start[code][line] + np.arange(line.size) - start[line]]
    cost = own_cost(table, rows[line], centres, member)
    least = np.minimum.reduceat(cost, start)
    margin = 1e-10 * (table.base[rows] + centres.affine.size)
    close = ~(cost > (least + margin)[line])
    first = np.flatnonzero(cost == least[line])
    near = np.empty(rows.size, np.int32)
    near[line[first]] = member[first]
    return near, least, np.bincount(line[close], minlength=rows.size) > 1


def _maybe_nearer(table: Table, rows: Array, fresh: Centres, cost: Array) -> Array:
    """Mask of the rows that may be nearer to some fresh centre than ``cost`` (n,), what their own costs them."""

    def of_piece(piece: Array) -> Array:
        base = table.base[piece]
        found, _ = table.rows.nearest(piece, base, fresh.affine, norms=table.norms())
        margin = 2 * found.slack + 1e-10 * (base + fresh.affine.size)
        return ~(base + found.least > cost[piece] + margin)

    pieces = [rows[start : start + HDP.list_share] for start in range(0, rows.size, HDP.list_share)]
    return np.concatenate(list(in_order(of_piece, pieces))) if pieces else np.empty(0, bool)


def _with_neighbours(
    turn: Turn, rows: Array, wanted: Array, block: CostBlock, openers: Array, cost: Array
) -> tuple[CostBlock, Array]:
    """The block with the settled rows that may prefer a cluster opened in it; openers as positions in it."""
    table = turn.table
    place = np.flatnonzero(wanted)
    settled = np.flatnonzero(~wanted[place[openers[0]] :]) + place[openers[0]]
    own = Centres(table.geometry, table.singletons(block.rows[openers]))
    settled = settled[_maybe_nearer(table, rows[settled], own, cost)]
    if not settled.size:
        return block, openers
    others = make_block(table, rows[settled], turn.centres, turn.lams)
    order = np.argsort(np.concatenate([place, settled]), kind="stable")
    joined = CostBlock(*(np.concatenate(pair)[order] for pair in zip(block, others)))
    rank = np.empty(order.size, np.intp)
    rank[order] = np.arange(order.size)
    return joined, rank[openers]
