"""A prior that is learned: moved, along with the posterior, to where the penalised free energy is least.

F' = F + KL(star || prior): one pseudo-component, whose posterior is a wide prior, keeps the prior from running after
the components. F' falls by every step, so that nothing can be gained by going round in circles.
"""

from typing import NamedTuple

from kfree.families.conjugate.conjugate_family import Hyperprior
from kfree.inference.variational.posterior import MeasuredMixture, Setting, best_mixture, measure


class Learner(NamedTuple):
    """What moves the prior, and from when on."""

    hyper: Hyperprior
    first: int  # components from which on the prior is moved

    def penalty(self, setting: Setting) -> float:
        """How far the prior is from the star."""
        return float(setting.family.divergence(self.hyper.star, setting.prior)[0])

    def step(self, setting: Setting, state: MeasuredMixture) -> tuple[Setting, MeasuredMixture, float]:
        """The best prior for the components, then the best components for it, and one sweep; and by how much F' fell.
        The tail sees the prior, too, so that it may rise: then nothing has changed."""
        prior = setting.family.learned(state.mixture.params, setting.prior, self.hyper)
        after = setting._replace(prior=prior)
        mixture, order = best_mixture(after, state.swept)
        swept = measure(after, state.tied, mixture, state.names[order])
        fall = state.energy + self.penalty(setting) - swept.energy - self.penalty(after)
        return (after, swept, fall) if fall > 0 else (setting, state, 0.0)
