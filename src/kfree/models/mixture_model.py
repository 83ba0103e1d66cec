"""A fitted mixture that can be asked: whatever fitted it, and whatever its components are."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from kfree.families import Array
from kfree.families.components import Components, grained, join, take
from kfree.families.conjugate.discrete import LARGEST_COUNT, totals
from kfree.inference.variational.expected_likelihood import make_runner
from kfree.inference.variational.sweep import assign, soften_all
from kfree.models.checks import check_domain
from kfree.rows import Tied
from kfree.rows.standardise import Units, blocks


class Asked(Protocol):
    """What every mixture can be asked."""

    @property
    def size(self) -> int:
        """Components that rows may be labelled by."""

    @property
    def weights(self) -> Array:
        """Weights of the density, which sum to one; those beyond ``size`` are of what was not found."""

    @property
    def point(self) -> "MixtureModel":
        """The components that rows may be labelled by."""

    def means(self) -> Array:
        """Expected means in the users' units."""

    def covariances(self) -> Array | None:
        """Covariances in the users' units; None if the family has none."""

    def labels(self, X: Any) -> Array:
        """Likeliest component of each row."""

    def shares(self, X: Any) -> Array:
        """Shares (n, T) of the components in rows."""

    def log_density(self, X: Any) -> Array:
        """Log of the density of rows."""

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows drawn from the density, and their components; -1 for those of the tail."""


class MixtureModel(NamedTuple):
    """Components with weights, in units of their own."""

    family: Components
    params: Any  # record of K components; the last stands for all that were not found, if there is a tail
    log_weight: Array  # (K,) shares of a row are softmax(form + log_weight)
    weights: Array  # (K,) of the density; they sum to one
    units: Units
    tail: bool = False
    grain: Array | None = None  # (p,) variance of what recording the entries of each column left open
    length: float = 0.0  # mean total of count rows

    @property
    def size(self) -> int:
        """Components that rows may be labelled by."""
        return self.weights.size - self.tail

    @property
    def point(self) -> "MixtureModel":
        """The mixture itself."""
        return self

    def reordered(self, order: Array) -> "MixtureModel":
        """The same components with other numbers; the tail stays where it is."""
        order = np.append(order, np.arange(self.size, self.weights.size))
        params, log_weight, weights = take(self.params, order), self.log_weight[order], self.weights[order]
        return self._replace(params=params, log_weight=log_weight, weights=weights)

    def means(self) -> Array:
        """Expected means in the users' units."""
        return self.units.means(self.family.means(take(self.params, slice(self.size))))

    def covariances(self) -> Array | None:
        """Covariances in the users' units; None if the family has none."""
        inside = self.family.covariances(take(self.params, slice(self.size)))
        return None if inside is None else self.units.covariances(inside)

    def tied(self, X: Any) -> Tied:
        """Rows, checked and in the units of the model."""
        check_rows(X, self.family)
        return self.weighted(X, np.ones(X.shape[0]))

    def weighted(self, X: Any, n: Array) -> Tied:
        """Rows that have been checked, in the units of the model, with weights."""
        return make_tied(self.units.rows(X) if self.family.continuous else X, n, self.family, self.units)

    def assign(self, tied: Tied) -> tuple[Array, Array]:
        """Likeliest component of each row, and logs of the sums that its shares are shares of, without log h."""
        params, log_weight = self.params, self.log_weight
        if not self.tail:  # one that has no share in any row
            params, log_weight = join([params, take(params, [-1])]), np.append(log_weight, -np.inf)
        return assign(tied, make_runner(grained(self.family.form(params), self.grain), self.size, tied), log_weight)

    def labels(self, X: Any) -> Array:
        """Likeliest component of each row."""
        return self.assign(self.tied(X))[0]

    def shares(self, X: Any, *, tail: bool = False) -> Array:
        """Shares (n, T) of the components in rows; with those of the tail in a last column if that is wanted."""
        which = slice(self.size + (tail and self.tail))
        form, tied = grained(self.family.form(take(self.params, which)), self.grain), self.tied(X)
        return soften_all(tied, make_runner(form, self.size, tied), self.log_weight[which]).resp.T

    def log_density(self, X: Any) -> Array:
        """Log of the density of rows."""
        tied, value = self.tied(X), np.empty(X.shape[0])
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.weights)

        def of_span(span: slice) -> None:
            value[span] = logsumexp(self.family.log_predictive(self.params, tied.mean[span]) + log_weight, axis=1)

        for _ in tied.each(of_span, log_weight.size):
            pass
        return value - self.units.log_volume

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows drawn from the density, and their components; -1 for those of the tail."""
        labels = rng.choice(self.weights.size, size=count, p=self.weights / self.weights.sum())
        rows = self.family.sample(self.params, labels, rng, np.full(count, round(self.length)))
        return self.units.means(rows), np.where(labels < self.size, labels, -1)


def check_rows(X: Any, family: Components) -> None:
    """Whether the family can have such rows."""
    if sp.issparse(X) and family.continuous:
        raise TypeError(
            f"family={family.name!r} does not work on sparse rows because centring makes them dense. Pass "
            "X.toarray(), or use family='multinomial', 'poisson' or 'bernoulli'."
        )
    check_domain(X, family, "family")
    if family.counted:
        _check_counts(X, family)


def _check_counts(X: Any, family: Components) -> None:
    """Counts that are exact."""
    with np.errstate(over="ignore"):
        size = totals(X) if family.counted == "row" else np.asarray(_dense(X.max(axis=1)), dtype=np.float64).ravel()
    beyond = np.flatnonzero(size > LARGEST_COUNT)
    if beyond.size:
        what = "sums of rows" if family.counted == "row" else "entries"
        raise ValueError(
            f"family={family.name!r} needs {what} of at most 2**53 = {LARGEST_COUNT:.5g}: up to there whole numbers "
            f"are exact. Row {beyond[0]} has {size[beyond[0]]:g}, and {beyond.size - 1} more rows are beyond. Divide "
            "X, or use family='gaussian'."
        )


def _dense(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else values


def floats(X: Any) -> Any:
    """Rows as they are, in double precision."""
    return sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def make_tied(X: Any, n: Array, family: Components, units: Units) -> Tied:
    """A table of single rows, which are in these units."""
    rows = floats(X)
    log_h = np.concatenate([family.log_base(rows[block]) for block in blocks(X.shape[0])])
    if family.continuous:
        log_h -= units.log_volume
    return Tied(n, rows, None, log_h)
