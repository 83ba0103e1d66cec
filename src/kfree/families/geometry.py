"""A family bound to one data set: the reference point all costs are relative to, and the smoothing prior."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfree.families.base import Affine, Array, Family
from kfree.families.cached import cached_property


@dataclass(frozen=True)
class Geometry:
    r"""How far rows are from centres, and what clusters cost, given a reference point and a prior.

    Costs are kept relative to the anchor c (the global centre), which saves the digits that large
    ``phi`` values would swallow:

    .. math:: D(x, \mu_k) = D(x, c) + [\psi_k - \psi_c] - \langle x, \theta_k - \theta_c \rangle .

    The prior holds ``eta`` pseudo-observations at ``prior_mean`` in every cluster (eta = 0: none).
    """

    family: Family
    anchor: Array  # (p,)
    eta: float = 0.0
    prior_mean: Array | None = None  # (p,), needed if eta > 0
    tiny: bool = False  # rows have entries that a stand-in for infinity is too small for

    @property
    def _tau(self) -> Array | float:
        return 0.0 if self.prior_mean is None else self.eta * self.prior_mean

    @property
    def plain(self) -> bool:
        """Whether costs are squared distances, up to a factor, and centres are means of rows and nothing else."""
        return self.family.euclidean_factor is not None and self.family.smoothable and not self.eta

    @cached_property
    def _origin(self) -> tuple[Array, Array]:
        """Natural parameters (1, p) and psi (1,) of the anchor."""
        theta = self.family.natural(self.anchor[None])
        return theta, self.family.psi_at(self.anchor[None], theta)

    def affine(self, mean: Array) -> Affine:
        """Coefficients and offsets of the product that gives all costs relative to the anchor."""
        anchor, psi_anchor = self._origin
        theta = self.family.natural(mean)
        psi = self.family.psi_at(mean, theta)
        return Affine(theta - anchor, psi - psi_anchor, self._magnitude(mean, theta, psi))

    def _magnitude(self, mean: Array, theta: Array, psi: Array) -> float:
        """Size of the numbers that costs are differences of."""
        if self.family.translates:  # psi is half the square of the mean, and the anchor is next to 0
            return float(np.abs(psi).max(initial=0.0) + np.abs(self._origin[1]).max())
        of_anchor = self.family.magnitude(self.anchor[None], *self._origin)
        return float(self.family.magnitude(mean, theta, psi).max(initial=0.0) + of_anchor.max())

    def ends(self, mean: Array) -> tuple[Affine, Affine] | None:
        """Costs of rows that centres do not exclude, and a product that is positive for rows they do; None where the
        costs alone tell (see ``Family.ends``)."""
        found = self.family.ends(mean)
        if found is None and self.tiny:
            found = self.family.zero_ends(mean)
        if found is None:
            return None
        anchor, psi_anchor = self._origin
        size = self._magnitude(mean, found.theta, found.psi)
        return (
            Affine(found.theta - anchor, found.psi - psi_anchor, size),
            Affine(found.coef, found.offset, float(found.offset.max(initial=0.0))),
        )

    def divergence(self, stats: Array, mean: Array) -> Array:
        """D(stats, mean) by the family's own formula, broadcasting over leading axes."""
        return self.family.divergence(stats, mean)

    def centre(self, total: Array, mass: Array) -> Array:
        """Centres (K, p) of clusters from their sums and weights, prior included."""
        return self.family.centre(total + self._tau, mass + self.eta)

    def from_anchor(self, mean: Array) -> Array:
        """D(mean, anchor), (K,)."""
        return self.family.divergence(mean, self.anchor)

    def prior_cost(self, mean: Array) -> Array:
        """eta D(mu0, mu_k), (K,)."""
        if self.eta == 0 or self.prior_mean is None:
            return np.zeros(mean.shape[:-1])
        return self.eta * self.family.divergence(self.prior_mean, mean)

    def prior_costs(self, mean: Array, affine: Affine) -> Array:
        """The same from the product form of the centres where the formula would take logarithms."""
        if self.eta == 0 or self.prior_mean is None:
            return np.zeros(mean.shape[0])
        if self.family.translates:  # differences are as fast, and lose no digits to an offset
            return self.prior_cost(mean)
        base = self.family.divergence(self.prior_mean, self.anchor)
        return self.eta * np.maximum(base + affine.offset - affine.coef @ self.prior_mean, 0.0)

    def prior_magnitude(self, affine: Affine) -> Array:
        """Size of the numbers whose differences ``prior_costs`` are, (K,): what their rounding scales with."""
        if self.eta == 0 or self.prior_mean is None:
            return np.zeros(affine.offset.shape[0])
        base = self.family.divergence(self.prior_mean, self.anchor)
        with np.errstate(over="ignore"):  # of what is next to the largest numbers nothing is known but that
            return self.eta * (base + affine.size + np.abs(affine.coef) @ np.abs(self.prior_mean))

    def singleton_centre(self, stats: Array, weight: Array) -> Array:
        """Centres of clusters that hold one row each."""
        return self.centre(stats * weight[..., None], weight)

    def singleton_cost(self, stats: Array, weight: Array) -> Array:
        """s(x, w): what a cluster holding x alone costs besides lam; 0 without a prior."""
        if self.eta == 0:
            return np.zeros(stats.shape[:-1])
        alone = self.singleton_centre(stats, weight)
        cost = self.family.divergence(stats, alone)  # +inf where the prior alone excludes a row that has no weight
        return weight * np.where(weight > 0, cost, 0.0) + self.prior_cost(alone)

    def singleton_terms(self, stats: Array, prior: Array, weight: float) -> Array:
        """The same column by column, for entries of rows and of the prior mean that belong together."""
        family: Any = self.family
        alone = family.centre((weight * stats + self.eta * prior)[None], np.array([weight + self.eta]))[0]
        return weight * family.terms(stats, alone) + self.eta * family.terms(prior, alone)

    def cluster_cost(self, total: Array, mass: Array) -> Array:
        """G, the cost of clusters, less what their rows bring along: eta phi(mu0) - (W + eta) phi(mu), (K,)."""
        prior = 0.0 if self.prior_mean is None else self.eta * self.family.phi(self.prior_mean[None])
        return prior - (mass + self.eta) * self.family.phi(self.centre(total, mass))

    def join_cost(self, total_a: Array, mass_a: Array, total_b: Array, mass_b: Array) -> Array:
        """G_ab - G_a - G_b: rise of the objective, penalty apart, when clusters a and b become one.

        Merges compare it with lam, splits gain it, and a row x joins cluster c rather than stand alone
        iff it is at most lam for the clusters c and {x}.
        """
        if self.eta == 0:
            return self.family.join_cost(total_a, mass_a, total_b, mass_b)
        joint = self.centre(total_a + total_b, mass_a + mass_b)
        mean_a, mean_b = self.centre(total_a, mass_a), self.centre(total_b, mass_b)
        return (
            (mass_a + self.eta) * self.family.divergence(mean_a, joint)
            + (mass_b + self.eta) * self.family.divergence(mean_b, joint)
            - self.prior_cost(joint)
        )
