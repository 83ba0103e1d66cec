"""Divergences of rows from centres in float64, and by the family's own formula: the last two steps of the ladder."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Affine, Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.table import Table


def exact_costs(table: Table, rows: Array, mean: Array) -> Array:
    """Divergences (m, K) of a few rows by the family's formula."""
    costs = np.empty((len(rows), mean.shape[0]))
    step = max(1, CLUSTERS.exact_entries // max(mean.size, 1))
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        costs[piece] = table.geometry.divergence(table.rows.dense(rows[piece])[:, None, :], mean[None])
    return costs


def exact_own(table: Table, rows: Array, mean: Array, labels: Array) -> Array:
    """Divergences (m,) of a few rows from one centre each, by the family's formula."""
    costs = np.empty(len(rows))
    step = max(1, CLUSTERS.exact_entries // max(mean.shape[1], 1))
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        costs[piece] = table.geometry.divergence(table.rows.dense(rows[piece]), mean[labels[piece]])
    return costs


def own_cost(table: Table, rows: slice | Array, centres: Centres, labels: Array) -> Array:
    """Divergences (m,) of rows from the centres in ``labels``, float64; +inf where a centre excludes a row."""
    family = table.geometry.family
    if family.euclidean_factor is not None:
        return family.euclidean_factor * table.rows.distance(rows, labels, centres.mean)
    if family.translates:  # differences of rows and centres keep digits that products lose where columns are collinear
        return family.divergence(table.rows.dense(rows), centres.mean[labels])
    cost = np.maximum(table.base[rows] + table.rows.own(rows, labels, centres.finite), 0.0)
    if centres.ends is None:
        return family.divergence_at_infinity(cost)
    return np.where(excluded(table, rows, centres, labels), np.inf, cost)


def excluded(table: Table, rows: slice | Array, centres: Centres, labels: Array) -> Array:
    """True for rows that the centres in ``labels``, some of which lie on an end of the domain, exclude."""
    assert centres.ends is not None
    return table.rows.own(rows, labels, centres.ends[1]) > 0


def all_costs(table: Table, rows: slice | Array, centres: Centres, product: Callable[[Affine], Array]) -> Array:
    """Divergences (m, K) of some rows from all centres, given their products with coefficients."""
    with np.errstate(invalid="ignore", over="ignore"):
        cost = np.maximum(table.base[rows, None] + (centres.finite.offset - product(centres.finite)), 0.0)
    if centres.ends is None:
        return table.geometry.family.divergence_at_infinity(cost)
    return np.where(centres.ends[1].offset - product(centres.ends[1]) > 0, np.inf, cost)


def cost_matrix(table: Table, centres: Centres, dtype: Any) -> Array:
    """Divergences of all rows from all centres, (n, K): what a user asked to see, and nothing else needs."""
    costs = np.empty((table.n, centres.mean.shape[0]), dtype)

    def of_span(span: slice) -> None:
        step = max(1, CLUSTERS.exact_entries // max(table.rows.p, centres.mean.shape[0]))
        for start in range(span.start, span.stop, step):
            piece = slice(start, min(start + step, span.stop))
            with np.errstate(over="ignore"):  # in single precision
                costs[piece] = all_costs(table, piece, centres, partial(_product, table.rows.dense(piece)))

    for _ in table.rows.each(of_span):
        pass
    return costs


class Rivals(NamedTuple):
    """Rows between their own centres and the best of the others."""

    own: Array  # (n,) divergences from the centres of their labels
    second: Array  # (n,) the least divergences from others, +inf if there are none
    rival: Array  # (n,) which these are, -1 if there are none


def own_costs(table: Table, centres: Centres, labels: Array) -> Array:
    """(n,) Divergences of rows from their own centres (labels are int32)."""
    own = np.empty(table.n)

    def of_span(span: slice) -> None:
        own[span] = own_cost(table, span, centres, labels[span])

    for _ in table.rows.each(of_span):
        pass
    return own


def strengths(table: Table, centres: Centres, labels: Array, radius: float) -> Array:
    """(n,) How strongly rows belong to their own centres: 1 there, 0 at the radius and beyond."""
    found = np.empty(table.n)

    def of_span(span: slice) -> None:
        found[span] = margins(own_cost(table, span, centres, labels[span]), np.array(radius))

    for _ in table.rows.each(of_span):
        pass
    return found


def rivals(table: Table, centres: Centres, labels: Array) -> Rivals:
    """How near rows are to their own centres (labels are int32), and to the best of the others."""
    K = centres.mean.shape[0]
    second, rival = np.full(table.n, np.inf), np.full(table.n, -1)

    def of_span(span: slice) -> None:
        step = max(1, CLUSTERS.exact_entries // K)
        for start in range(span.start, span.stop if K > 1 else span.start, step):
            piece = slice(start, min(start + step, span.stop))
            lines = np.arange(piece.stop - piece.start)
            costs = all_costs(table, piece, centres, partial(_products, table, piece))
            costs[lines, labels[piece]] = np.inf
            rival[piece] = costs.argmin(axis=1)
            second[piece] = costs[lines, rival[piece]]

    for _ in table.rows.each(of_span):
        pass
    return Rivals(own_costs(table, centres, labels), second, rival)


def margins(own: Array, second: Array) -> Array:
    """How much nearer rows are to their own centres than a second divergence: 1 at the centre, 0 if both are equal."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = own / second
    share = np.where(np.isnan(share), 1.0, share)  # both are infinite, or both 0
    return np.where(own > 0, np.maximum(1.0 - share, 0.0), 1.0)


def _products(table: Table, rows: slice, affine: Affine) -> Array:
    return table.rows.products(rows, affine)[0]


def _product(stats: Array, affine: Affine) -> Array:
    return stats @ affine.coef.T
