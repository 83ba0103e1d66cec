"""The best row of features for every row of data, means given."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import Means, relative_products, shifted_squares
from kfree.inference.features.feature_table import Table, add_up
from kfree.kernels import kernels

#: Nodes after which the sphere decoder keeps the best row it has found; and in all rows of a pass together, but each
#: row gets some.
NODES, NODES_OF_PASS, LEAST_NODES = 100_000, 20_000_000, 500
#: Changes below this share of the squared lengths are rounding: the present state is kept.
TIE = 1e-12


class Rule(NamedTuple):
    """How a row is searched."""

    exact: bool = True
    nodes: int = NODES


def rule_for(n: int, exact: bool) -> Rule:
    """The rule for a fit to n rows."""
    return Rule(exact, max(LEAST_NODES, min(NODES, NODES_OF_PASS // max(n, 1))))


class Sweep(NamedTuple):
    """What one look at all rows gives."""

    changed: int  # rows that changed
    sums: tuple[Array, Array]  # of the new allocation


def search(P: Array, G: Array, slack: Array, rule: Rule, Z: Array, cost: Array) -> int:
    """Improve rows in place; ``cost`` is what each costs besides its square. Returns how many changed."""
    if not G.shape[0]:
        cost[:] = 0.0
        return 0
    if rule.exact:
        return int(kernels().best_rows(P, G, slack, rule.nodes, Z, cost))
    return int(kernels().sweep_rows(P, G, slack, Z, cost))


def slack_of(square: Array, G: Array) -> Array:
    """What counts as a tie, for each row."""
    return TIE * (square + (G.diagonal().max() if G.shape[0] else 0.0))


def sweep(table: Table, Z: Array, means: Means, rule: Rule) -> Sweep:
    """Improve every row of Z in place and add up what the solve needs, in one reading of the rows."""
    G = means.A @ means.A.T
    shift = means.base @ means.A.T
    slack = slack_of(shifted_squares(table, means.base), G)
    cost = np.empty(table.n)
    counts = []

    def of_span(span: slice) -> tuple[Array, Array]:
        part = table.part(span)
        P = np.ascontiguousarray(part @ means.A.T)
        if table.intercept:
            P -= shift
        counts.append(search(P, G, slack[span], rule, Z[span], cost[span]))
        return table.part_sums(part, Z[span], span, table.intercept)

    sums = add_up(iter(table.each(of_span)))
    return Sweep(sum(counts), sums)


def allocate(table: Table, means: Means, rule: Rule) -> tuple[Array, Array]:
    """Best rows from scratch, and their squared residuals; above the table's reach from several starts."""
    A = means.A
    K, G = A.shape[0], A @ A.T
    Z, square = np.zeros((table.n, K), np.uint8), shifted_squares(table, means.base)
    slack, cost = slack_of(square, G), np.empty(table.n)

    def of_span(span: slice) -> None:
        P = relative_products(table, means, span)
        search(P, G, slack[span], rule, Z[span], cost[span])
        for start in _starts(P, G) if K else ():
            other = cost[span].copy()
            search(P, G, slack[span], rule, start, other)
            better = other < cost[span] - slack[span]
            Z[span][better], cost[span][better] = start[better], other[better]

    for _ in table.each(of_span):
        pass
    return Z, np.maximum(square + cost, 0.0)


def _starts(P: Array, G: Array) -> list[Array]:
    """Other rows to start from where the search is not exhaustive: all features that point along the row, and all."""
    if G.shape[0] <= MOST_EXHAUSTIVE:
        return []
    along = (G.diagonal() < 2.0 * P).astype(np.uint8)
    return [along, np.ones_like(along)]


#: Features up to which all rows are looked at.
MOST_EXHAUSTIVE = 12
