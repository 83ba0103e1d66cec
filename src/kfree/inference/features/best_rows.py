"""The best row of features for every row of data, means given."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import Means, relative_products, shifted_squares
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable, add_up
from kfree.inference.loop import Budget
from kfree.kernels import kernels


class RowRule(NamedTuple):
    """How a row is searched."""

    exact: bool = True  # the best of all rows of bits; else one sweep of single bits
    nodes: int = FEATURES.nodes  # of the sphere decoder

    @classmethod
    def of(cls, n: int, exact: bool) -> "RowRule":
        """The rule for a fit to n rows."""
        most = min(FEATURES.nodes, FEATURES.nodes_of_pass // max(n, 1))
        return cls(exact, max(FEATURES.least_nodes, most))


class ImprovedRows(NamedTuple):
    """What one look at all rows gives."""

    changed: int  # rows that changed
    sums: tuple[Array, Array]  # of the new allocation


def improve_rows(P: Array, G: Array, slack: Array, rule: RowRule, stop: Array, Z: Array, cost: Array) -> int:
    """Improve rows in place; ``cost`` is what each costs besides its square. Returns how many changed.

    The best of all rows is looked for until ``stop`` is set; rows that it has not come to stay as they are.
    """
    if not G.shape[0]:
        cost[:] = 0.0
        return 0
    if rule.exact:
        return int(kernels().best_rows(P, G, slack, rule.nodes, stop, Z, cost))
    return int(kernels().sweep_rows(P, G, slack, Z, cost))


def all_rows(K: int) -> Array:
    """All 2^K rows of bits."""
    return ((np.arange(1 << K)[:, None] >> np.arange(K)) & 1).astype(np.uint8)


def slack_of(square: Array, G: Array) -> Array:
    """What counts as a tie, for each row."""
    return FEATURES.tie * (square + (G.diagonal().max() if G.shape[0] else 0.0))


def improve_all_rows(table: FeatureTable, Z: Array, means: Means, rule: RowRule, budget: Budget) -> ImprovedRows:
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
        counts.append(improve_rows(P, G, slack[span], rule, budget.stop, Z[span], cost[span]))
        return table.part_sums(part, Z[span], span, table.intercept)

    sums = add_up(iter(table.each(of_span)))
    return ImprovedRows(sum(counts), sums)


def allocate(table: FeatureTable, means: Means, rule: RowRule, budget: Budget) -> tuple[Array, Array]:
    """Best rows from scratch, and their squared residuals; above the table's reach from several starts."""
    A = means.A
    K, G = A.shape[0], A @ A.T
    Z, square = np.zeros((table.n, K), np.uint8), shifted_squares(table, means.base)
    slack, cost = slack_of(square, G), np.empty(table.n)

    def of_span(span: slice) -> None:
        P = relative_products(table, means, span)
        Z[span], cost[span] = search_rows(P, G, slack[span], rule, budget.stop)

    for _ in table.each(of_span):
        pass
    return Z, np.maximum(square + cost, 0.0)


def search_rows(P: Array, G: Array, slack: Array, rule: RowRule, stop: Array) -> tuple[Array, Array]:
    """Best rows from scratch, and what they cost besides their squares."""
    Z, cost = np.zeros(P.shape, np.uint8), np.empty(len(P))
    improve_rows(P, G, slack, rule, stop, Z, cost)
    for start in _starts(P, G) if G.size else ():
        other = cost.copy()
        improve_rows(P, G, slack, rule, stop, start, other)
        better = other < cost - slack
        Z[better], cost[better] = start[better], other[better]
    return Z, cost


def _starts(P: Array, G: Array) -> list[Array]:
    """Other rows to start from where the search is not exhaustive: all features that point along the row, and all."""
    if G.shape[0] <= FEATURES.most_exhaustive:
        return []
    along = (G.diagonal() < 2.0 * P).astype(np.uint8)
    return [along, np.ones_like(along)]
