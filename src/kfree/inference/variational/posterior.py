"""The variational posterior of a mixture, its free energy, and its update."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.components import grained
from kfree.families.conjugate import Conjugate, Form, Moments, join, take
from kfree.inference.variational import normal_wishart
from kfree.inference.variational.expected_likelihood import Runner, Shares, make_runner
from kfree.inference.variational.sweep import ExpectedSums, log_joint, soften_all, sweep
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.rows import TIED_SPAN, Summable, Tied
from kfree.structures import StickBreaking, by_size


class Setting(NamedTuple):
    """What is assumed of the rows; only the prior may change in a fit, where it is learned."""

    family: Conjugate
    prior: Any  # record of one component
    weights: StickBreaking
    grain: Array | None = None  # (p,) variance of what recording the entries of each column left open
    deviation: Array | None = None  # (p,) of the columns, where these have units of their own

    @property
    def compiled(self) -> bool:
        """Whether components are Normal-Wishart with so few columns that compiled formulas are used."""
        return normal_wishart.is_compiled(self.family, self.prior)

    def posterior(self, sums: Moments) -> Any:
        """The best parameters of components for sums of statistics."""
        if self.grain is not None and sums.second is not None:
            own = np.diag(self.grain) if sums.second.ndim == 3 else self.grain
            sums = sums._replace(second=sums.second + sums.mass.reshape(-1, *[1] * own.ndim) * own)
        found = normal_wishart.posterior(self.prior, sums) if self.compiled else None
        return self.family.posterior(self.prior, sums) if found is None else found

    def form(self, params: Any) -> Form:
        """Expected log-likelihoods under components."""
        return grained(normal_wishart.form(params) if self.compiled else self.family.form(params), self.grain)

    def divergence(self, params: Any) -> Array:
        """KL of components from the prior."""
        if self.compiled:
            return normal_wishart.divergence(params, self.prior)
        return self.family.divergence(params, self.prior)


@dataclass(frozen=True)
class View:
    """Parameters as rows see them: the T components and, last, the infinitely many others together."""

    form: Form
    log_weight: Array  # (T + 1,)
    divergence: float  # KL of all sticks and parameters from their priors
    _runners: dict[bool, Runner] = field(default_factory=dict, repr=False)

    def runner(self, tied: Summable) -> Runner:
        """The form, made ready for single rows or for nodes: once, as many tables are seen under the same view."""
        single = tied.single
        if single not in self._runners:
            self._runners[single] = make_runner(self.form, self.log_weight.size - 1, tied)
        return self._runners[single]

    def scores(self, tied: Tied) -> Array:
        """W of tied rows without log h, (R, T + 1)."""
        return log_joint(tied, self.runner(tied), self.log_weight)

    def shares(self, tied: Tied) -> Shares:
        """Responsibilities (T + 1, R) of tied rows, and logs of the sums they are shares of, without log h."""
        return soften_all(tied, self.runner(tied), self.log_weight)


class Mixture(NamedTuple):
    """q(v) and q(eta) of the T components that have left the prior."""

    params: Any  # record of T components
    sticks: Array  # (T, 2)

    @property
    def size(self) -> int:
        """T."""
        return int(self.sticks.shape[0])

    def view(self, setting: Setting) -> View:
        """Expected log-likelihoods and log-weights."""
        family, prior, weights = setting[:3]
        if setting.compiled:
            whitened, expected, cost = normal_wishart.view(self.params, prior, self.sticks, np.array(weights))
            return View(grained(whitened, setting.grain), expected, cost)
        cost = weights.divergence(self.sticks) + float(family.divergence(self.params, prior).sum())
        form = grained(family.form(join([self.params, prior])), setting.grain)
        return View(form, weights.expected_log(self.sticks), cost)

    def sweep(self, setting: Setting, tied: Summable, view: View | None = None) -> tuple[ExpectedSums, float]:
        """Sums under the best responsibilities, and the free energy."""
        view = self.view(setting) if view is None else view
        swept = sweep(tied, view.runner(tied), view.log_weight)
        return swept, view.divergence - swept.evidence


class MeasuredMixture(NamedTuple):
    """A mixture, the rows it was measured on, and what these said."""

    mixture: Mixture
    view: View
    names: Array  # (T,) numbers that components keep as they change places
    tied: Any  # Tied; Summable where nothing follows but updates
    swept: ExpectedSums
    energy: float  # free energy


def measure(
    setting: Setting, tied: Summable, mixture: Mixture, names: Array, view: View | None = None
) -> MeasuredMixture:
    """The sums under the best responsibilities of rows, and the free energy; the view is made if it is not at hand."""
    view = mixture.view(setting) if view is None else view
    return MeasuredMixture(mixture, view, names, tied, *mixture.sweep(setting, tied, view))


def size_of_sums(setting: Setting, measured: MeasuredMixture) -> float:
    """Size of the sums that a free energy is a difference of: its rounding scales with it."""
    tied, base = measured.tied, measured.tied.base
    rows = abs(measured.swept.evidence - base) + abs(base) + abs(measured.energy)
    params, sticks = measured.mixture
    own = float(setting.family.terms(params).sum()) + setting.weights.terms(sticks)
    # parameters that are wrong by a small share cost its square, for each unit of weight; sums over more rows are worse
    columns, added = tied.columns, min(tied.size, TIED_SPAN)
    blurred = tied.total * columns * np.log1p(setting.family.blur(setting.prior, tied.total) ** 2 * added / columns)
    return rows + VARIATIONAL.divergence_rounding * own + VARIATIONAL.nat * float(blurred)


def updated(setting: Setting, measured: MeasuredMixture) -> MeasuredMixture:
    """After one update of everything, on the same rows."""
    mixture, order = best_mixture(setting, measured.swept)
    return measure(setting, measured.tied, mixture, measured.names[order])


def best_mixture(setting: Setting, swept: ExpectedSums) -> tuple[Mixture, Array]:
    """The best parameters for sums of statistics, largest component first; and which component came from which."""
    order = by_size(swept.sums.mass)
    order = order[swept.sums.mass[order] > VARIATIONAL.empty]
    if not order.size:  # all weight is in the tail: one component at its prior is as good as none
        order = np.zeros(1, np.intp)
    mass, first, second, about = swept.sums
    sums = Moments(mass[order], first[order], None if second is None else second[order], about[order])
    # the sum of what is left out: a difference of sums would be rounding, which a small concentration feels
    lost = float(np.delete(mass, order).sum())
    sticks = setting.weights.posterior(np.append(sums.mass, swept.tail + lost))
    return Mixture(setting.posterior(sums), sticks), order


def arranged(setting: Setting, params: Any, sizes: Array, tail: float) -> tuple[Mixture, Array]:
    """A mixture of given components with the best sticks for their sizes, largest first; and the order."""
    order = by_size(sizes)
    return Mixture(take(params, order), setting.weights.posterior(np.append(sizes[order], tail))), order
