"""Mixtures that are sampled: checked rows, and samples of partitions as a model that can be asked about others."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax, logsumexp

from kfree.families import Array
from kfree.families.conjugate import SAMPLED, join
from kfree.inference.gibbs.bound_family import BoundFamily
from kfree.inference.gibbs.dp_mixture import Concentration, Kept
from kfree.inference.gibbs.gibbs_numbers import GIBBS
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.models.checks import as_numbers, check_entries, check_number
from kfree.models.mixture import PriorWish, check_blur, check_mass, in_units, prepare
from kfree.models.mixture_model import MixtureModel, check_rows
from kfree.rows.standardise import Units


def check_prior_of_concentration(concentration: Any) -> Concentration:
    """A number, or a pair (shape, rate) of a gamma prior, which begins at its mean."""
    least, most = VARIATIONAL.least_concentration, VARIATIONAL.most_concentration
    pair = isinstance(concentration, tuple | list | np.ndarray)
    if pair and len(concentration) != 2:
        raise ValueError(f"concentration must be a number or a pair (shape, rate), got {len(concentration)} values.")
    for value in concentration if pair else (concentration,):
        check_number("concentration", value, above=0.0, hint="Pass a number > 0, or a pair (shape, rate) of such.")
        if not (pair or least <= value) or not value <= most:
            raise ValueError(f"concentration must be at least {least:g} and at most {most:g}, got {value!r}.")
    if not pair:
        return Concentration(float(np.log(concentration)))
    shape, rate = map(float, concentration)
    if not (1 / most <= shape and 1 / most <= rate):
        raise ValueError(f"concentration=({shape!r}, {rate!r}) must have a shape and a rate of at least {1 / most:g}.")
    return Concentration(float(np.log(shape / rate)), (shape, rate))


def check_schedule(beta: Any, burn_in: int, concentration: Concentration) -> Array:
    """How often rows count: a number, or numbers that do not fall, one for each of the first sweeps."""
    values = np.atleast_1d(as_numbers("beta", beta))
    check_entries("beta", values)
    if values.ndim != 1 or not values.size or not (values > 0).all() or (np.diff(values) < 0).any():
        raise ValueError(f"beta must be a number > 0, or a sequence of such that does not fall, got {beta!r}.")
    if values.size > burn_in + 1:
        raise ValueError(
            f"beta has {values.size} values, but burn_in={burn_in}: samples are to be drawn at the last of them. "
            f"Raise burn_in to {values.size - 1}, or shorten beta."
        )
    if concentration.prior is not None and (values != 1).any():
        raise ValueError(
            "beta other than 1 needs a given concentration: the price of a cluster is -log(concentration). Pass a "
            "number, not a pair."
        )
    return values


def check_labels(init: Any, n: int) -> Array:
    """A partition that chains begin with."""
    labels = as_numbers("init", init)
    if labels.shape != (n,):
        raise ValueError(f"init has shape {labels.shape}; pass labels of shape ({n},), or a name.")
    check_entries("init", labels)
    return labels


class GibbsProblem(NamedTuple):
    """Checked rows and what is assumed of them."""

    bound: BoundFamily  # to the rows that weigh something
    weight: Array  # (n,) of these
    active: Array  # (n,) which these are
    units: Units
    degenerate: bool  # rows do not differ
    length: float  # mean total of count rows

    @classmethod
    def of(cls, X: Any, sample_weight: Any, name: str, prior: Any) -> "GibbsProblem":
        """Check X for the family and bring it into units of its own."""
        wish = PriorWish.of("fixed" if prior is None else prior, SAMPLED[name])
        family = SAMPLED[name].made(wish.given)
        if sp.issparse(X) and family.lower_open:
            raise TypeError(f"family={name!r} needs entries > 0, and sparse rows have zeros. Pass X.toarray().")
        check_rows(X, family)
        weight = check_mass(sample_weight, X.shape[0])
        active = np.flatnonzero(weight > 0)
        if active.size < weight.size:
            X, weight = X[active], weight[active]
        rows, units, facts, degenerate = prepare(X, weight, family, False)
        own = family.prior(facts, in_units(wish.given, units))
        check_blur(family, own, float(weight.sum()))
        dense = not sp.issparse(rows)
        rows = np.ascontiguousarray(rows, dtype=np.float64) if dense else sp.csr_matrix(rows, dtype=np.float64)
        length = 0.0 if family.continuous else float(weight @ np.asarray(rows.sum(axis=1)).ravel() / weight.sum())
        return cls(BoundFamily(family, own, rows), weight, active, units, degenerate, length)

    def component_model(self, labels: Array, weight: Array, log_alpha: float) -> MixtureModel:
        """The mixture that goes with a partition: its clusters, and one that stands for all new ones."""
        K, bound = int(labels.max()) + 1, self.bound
        logs = log_softmax(np.append(np.log(np.bincount(labels, minlength=K)), log_alpha))
        params = join([bound.posterior(labels, weight, K), bound.prior])
        return MixtureModel(bound.family, params, logs, np.exp(logs), self.units, tail=True, length=self.length)


def by_size(labels: Array) -> Array:
    """The same partition, largest cluster first; those of equal size as they appear."""
    sizes = np.bincount(labels)
    rank = np.empty(sizes.size, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    return rank[labels]


class AskedSample(NamedTuple):
    """A sample that rows are asked about."""

    model: MixtureModel
    shared: Array  # (K, T) share of the rows of each of its clusters that has each label


class GibbsModel(NamedTuple):
    """Samples that can be asked about rows: what is said of rows is a mean over them."""

    point: MixtureModel  # of the partition that stands for all
    asked: list[AskedSample]

    @classmethod
    def of(cls, problem: GibbsProblem, labels: Array, samples: Sequence[Kept], beta: float) -> "GibbsModel":
        """A model of the partition ``labels`` (of the rows that weigh something), and of some of the samples."""
        weight = beta * problem.weight
        log_alpha = beta * float(np.mean([sample.log_alpha for sample in samples]))
        point = problem.component_model(labels, weight, log_alpha)
        own = sum(field[0].size for field in problem.bound.prior)
        K = max(int(np.mean([sample.labels.max() for sample in samples])), 1) + 2
        count = int(min(GIBBS.asked, max(GIBBS.entries // (own * K), 1), len(samples)))
        asked = []
        for at in np.linspace(0, len(samples) - 1, count).round().astype(int):
            sample = samples[at]
            model = problem.component_model(sample.labels, weight, beta * sample.log_alpha)
            table = np.zeros((model.size, point.size))
            np.add.at(table, (sample.labels, labels), 1.0)
            asked.append(AskedSample(model, table / table.sum(axis=1, keepdims=True)))
        return cls(point, asked)

    @property
    def size(self) -> int:
        """Clusters that rows may be labelled by."""
        return self.point.size

    @property
    def weights(self) -> Array:
        """Expected weights, and what is left for new clusters."""
        return self.point.weights

    def means(self) -> Array:
        """Expected means in the users' units."""
        return self.point.means()

    def covariances(self) -> Array | None:
        """Covariances in the users' units; None if the family has none."""
        return self.point.covariances()

    def labels(self, X: Any) -> Array:
        """Likeliest cluster of each row."""
        return np.asarray(self.shares(X).argmax(axis=1))

    def _logs(self, model: MixtureModel, rows: Any) -> Array:
        """(n, K + 1) Logs of weights times densities."""
        return model.family.log_predictive(model.params, rows) + model.log_weight

    def _rows(self, X: Any) -> Any:
        check_rows(X, self.point.family)
        if self.point.family.continuous:
            return self.point.units.rows(X)
        return sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)

    def shares(self, X: Any) -> Array:
        """(n, T) How probable it is that a row belongs to each cluster, if it belongs to any of them."""
        rows, total = self._rows(X), np.zeros((X.shape[0], self.size))
        for model, shared in self.asked:
            logs = self._logs(model, rows)[:, : model.size]
            total += np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) @ shared
        return total / total.sum(axis=1, keepdims=True)

    def log_density(self, X: Any) -> Array:
        """Log of the posterior predictive density of rows."""
        rows = self._rows(X)
        logs = np.stack([logsumexp(self._logs(model, rows), axis=1) for model, _ in self.asked])
        return np.asarray(logsumexp(logs, axis=0) - np.log(len(self.asked)) - self.point.units.log_volume)

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows drawn from the posterior predictive density, and the likeliest of their clusters; -1 for new ones."""
        which = rng.integers(0, len(self.asked), size=count)
        rows, labels = np.empty((count, self.point.units.shift.size)), np.empty(count, np.int64)
        for at in np.unique(which):
            model, shared = self.asked[at]
            here = which == at
            rows[here], drawn = model.sample(int(here.sum()), rng)
            labels[here] = np.where(drawn >= 0, shared.argmax(axis=1)[drawn], -1)
        return rows, labels
