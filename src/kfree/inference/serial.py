"""``algorithm="serial"``: the papers' sweep, one row after the other, evaluated in blocks with the same result.

Old centres stand still during a pass and new ones are only appended. So a block is compared with all centres known
before it in one product; only rows beyond their threshold there can open a cluster, and they are looked at in order;
then every row is compared with the centres opened in the block before its turn. Labels equal the one-row-at-a-time
algorithm for any block size.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.assign import Centres, Sums, exact_costs, exact_own, make_centres, nearest_spread, own_cost
from kfree.inference.grow import openers_in_order, penalised, update
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.inference.table import Memory, Table

#: Smallest and largest number of rows in a block; blocks shrink while many clusters open.
SMALL_BLOCK, LARGE_BLOCK = 64, 32768
_MANY = 16


class Swept(NamedTuple):
    """State between two passes."""

    centres: Centres
    rng: np.random.Generator


class Sweep(NamedTuple):
    """How the rows are visited."""

    lam: float
    order: str | Array  # "random" (a fresh permutation per pass), "index", "content", or a permutation
    tol: float
    max_clusters: float = np.inf
    block: int | None = None  # a fixed number of rows, for tests; by itself it adapts


def fit_serial(
    table: Table,
    centres: Centres,
    memory: Memory,
    sweep: Sweep,
    budget: Budget,
    *,
    rng: np.random.Generator,
    max_iter: int,
) -> Outcome:
    """Sweep until a pass changes nothing; the outcome's state holds the centres."""

    def step(state: Swept) -> tuple[Swept, Info]:
        return _pass(table, state, memory, sweep)

    return run(step, Swept(centres, rng), budget, phase="all rows", tol=sweep.tol, max_iter=max_iter)


def _pass(table: Table, state: Swept, memory: Memory, sweep: Sweep) -> tuple[Swept, Info]:
    order = visit(table, sweep.order, state.rng)
    before = memory.labels.copy()
    centres, opened = sweep_once(table, state.centres, memory, sweep, order)
    K = centres.mean.shape[0]
    total, mass = table.rows.sums(memory.labels, K)
    weight = table.rows.weights(slice(0, table.n))
    cost = float((weight * np.where(weight > 0, memory.cost, 0.0)).sum())
    changed = float(weight[before != memory.labels].sum()) / table.rows.total_weight()
    objective = penalised(table, centres, Sums(total, mass, changed, cost, 0), sweep.lam)
    info = Info(objective, cost, changed, opened, int((mass > 0).sum()))
    return Swept(update(table, centres, total, mass, memory), state.rng), info


def visit(table: Table, order: str | Array, rng: np.random.Generator) -> Array:
    """The order in which a pass visits the rows; "content" depends on nothing but the rows themselves."""
    if not isinstance(order, str):
        return np.asarray(order)
    if order == "content":
        return np.argsort(table.hashes, kind="stable")
    return rng.permutation(table.n) if order == "random" else np.arange(table.n)


def sweep_once(table: Table, centres: Centres, memory: Memory, sweep: Sweep, order: Array) -> tuple[Centres, int]:
    """One pass: fills labels and costs, returns the centres with the new ones appended and how many these are."""
    opened, start = 0, 0
    size = sweep.block or 1024
    while start < order.size:
        rows = order[start : start + size]
        start += rows.size
        labels, cost = _nearest(table, rows, centres, sweep.lam)
        candidates = np.flatnonzero(table.excess(cost, sweep.lam, rows) > 0)
        room = sweep.max_clusters - centres.mean.shape[0]
        if candidates.size and room > 0:
            chosen = openers_in_order(table, rows[candidates], table.threshold(sweep.lam, rows[candidates]))
            positions = candidates[chosen][: int(min(room, chosen.size))]
            centres = _settle(table, rows, positions, labels, cost, centres)
            opened += positions.size
            if sweep.block is None and positions.size > _MANY:
                size = max(SMALL_BLOCK, size // 2)
        if sweep.block is None and candidates.size <= _MANY:
            size = min(LARGE_BLOCK, 2 * size)
        memory.labels[rows], memory.cost[rows] = labels, cost
    return centres, opened


def _nearest(table: Table, rows: Array, centres: Centres, lam: float) -> tuple[Array, Array]:
    """Nearest centres and costs of a block, exact where a cost comes near its threshold."""
    found = nearest_spread(table, rows, centres)
    labels = found.labels
    cost = own_cost(table, rows, centres, labels)
    scale = table.base[rows] + lam + centres.affine.size
    if np.isfinite(lam):
        close = np.flatnonzero(np.abs(table.excess(cost, lam, rows)) <= 1e-10 * scale)
        if close.size:
            cost[close] = exact_own(table, rows[close], centres.mean, labels[close])
    return labels, cost


def _settle(table: Table, rows: Array, positions: Array, labels: Array, cost: Array, centres: Centres) -> Centres:
    """Append the centres opened at ``positions`` of a block; rows after each of them may prefer it."""
    fresh = make_centres(table.geometry, table.singletons(rows[positions]))
    K = centres.mean.shape[0]
    stops = [*positions[1:], rows.size]
    for count, (opener, stop) in enumerate(zip(positions, stops), start=1):
        labels[opener] = K + count - 1
        known = Centres(fresh.mean[:count], fresh.affine.some(slice(count)))
        cost[opener] = own_cost(table, rows[opener : opener + 1], known, np.array([count - 1], np.int32))[0]
        after = np.arange(opener + 1, stop)
        if after.size:
            _prefer(table, rows, after, known, centres, labels, cost)
    return make_centres(table.geometry, np.concatenate([centres.mean, fresh.mean]))


def _prefer(table: Table, rows: Array, after: Array, fresh: Centres, old: Centres, labels: Array, cost: Array) -> None:
    """Give rows to a fresh centre that is strictly nearer than their old one."""
    index = rows[after]
    found = nearest_spread(table, index, fresh)
    new_cost = own_cost(table, index, fresh, found.labels)
    margin = found.slack + 1e-10 * (table.base[index] + old.affine.size)
    with np.errstate(invalid="ignore"):
        gap = cost[after] - new_cost
    unsure = np.flatnonzero(np.abs(gap) <= margin)
    if unsure.size:
        sure_old = exact_own(table, index[unsure], old.mean, labels[after[unsure]])
        gap[unsure] = sure_old - exact_costs(table, index[unsure], fresh.mean).min(axis=1)
    wins = np.flatnonzero(gap > 0)
    labels[after[wins]] = old.mean.shape[0] + found.labels[wins]
    cost[after[wins]] = new_cost[wins]
