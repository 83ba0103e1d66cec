"""Valid data for every family of the registry, and small tools."""

from decimal import Decimal, localcontext

import numpy as np

from kfree.families import (
    FAMILIES,
    KL,
    Binomial,
    Geometry,
    ItakuraSaito,
    Mahalanobis,
    NegativeBinomial,
    Poisson,
    Separable,
    SquaredEuclidean,
)

NAMES = tuple(FAMILIES)
#: Families with a convex generator: all but the spherical one.
BREGMAN = tuple(name for name in NAMES if FAMILIES[name].smoothable)
SEPARABLE = tuple(name for name in NAMES if issubclass(FAMILIES[name], Separable))
TRIALS = 7


def make(name, p=3):
    """A family of the registry that can measure rows with p columns."""
    if name == "mahalanobis":
        root = np.tril(np.random.default_rng(p).normal(size=(p, p))) / 4 + np.eye(p)
        return Mahalanobis(root @ root.T)
    return Binomial(TRIALS) if name == "binomial" else FAMILIES[name]()


def draw_rows(name, n, p, seed=0, *, boundary=True):
    """Rows as the family sees them; with zeros (and upper limits) among them, or well inside the domain."""
    rng = np.random.default_rng([seed, n, p])
    if name in ("sqeuclidean", "mahalanobis"):
        return rng.normal(size=(n, p)) * 2 + rng.normal(size=p)
    if name == "cosine":
        x = rng.normal(size=(n, p)) + 0.5
        return x / np.sqrt((x * x).sum(axis=1, keepdims=True))
    if name == "itakura_saito":
        return rng.gamma(2.0, size=(n, p)) + 0.01
    if name in ("bernoulli", "binomial"):
        most = 1 if name == "bernoulli" else TRIALS
        steps = 8 * most if name == "bernoulli" else most
        x = rng.integers(0, steps + 1, size=(n, p)) * (most / steps)
        return x if boundary else 0.1 * most + 0.8 * x
    x = rng.poisson(1.5, size=(n, p)).astype(float)
    if not boundary:
        x += rng.uniform(0.2, 1.0, size=(n, p))
    if name == "kl":
        x[x.sum(axis=1) == 0, 0] = 1.0
        x /= x.sum(axis=1, keepdims=True)
    return x


def draw_weights(n, seed=0):
    """Positive weights, none of them special."""
    return np.random.default_rng([seed, n]).uniform(0.3, 2.5, size=n)


def geometry_of(family, rows, weight=None, *, eta=0.0):
    """A family bound to rows: the anchor is their centre; the prior, if any, sits halfway to the first row."""
    weight = np.ones(len(rows)) if weight is None else weight
    total, mass = (weight[:, None] * rows).sum(axis=0, keepdims=True), weight.sum(keepdims=True)
    anchor = family.centre(total, mass)[0]
    return Geometry(family, anchor, eta, (anchor + rows[0]) / 2 if eta else None)


def gradient(function, point, step=1e-5):
    """Central differences of a function of one row."""
    steps = step * np.maximum(np.abs(point), 0.1)[:, None] * np.eye(point.size)
    return np.array([(function(point + e) - function(point - e)) / (2 * e.sum()) for e in steps])


def table_divergence(family, x, mu):
    """D(x, mu) of one row by the table of the specification, in 60 digits, as the sum over columns."""
    with localcontext() as context:
        context.prec = 60
        return float(sum(_table_term(family, Decimal(float(a)), Decimal(float(b))) for a, b in zip(x, mu)))


def _table_term(family, x, mu):
    def x_log(a, b):
        return a * (a / b).ln() if a else Decimal(0)

    match family:
        case Binomial():
            n = Decimal(family.n)
            return x_log(x, mu) + x_log(n - x, n - mu)
        case SquaredEuclidean():  # cosine: 1 - <x, m> = |x - m|^2 / 2 for unit vectors
            return (x - mu) ** 2 / (2 * Decimal(family.variance))
        case KL() | Poisson():  # of histograms the last two sums cancel
            return x_log(x, mu) - x + mu
        case NegativeBinomial():
            r = Decimal(family.r)
            return x_log(x, mu) - x_log(x + r, mu + r)
        case ItakuraSaito():
            return Decimal(family.shape) * (x / mu - (x / mu).ln() - 1)
    raise AssertionError(f"no formula for {family}")
