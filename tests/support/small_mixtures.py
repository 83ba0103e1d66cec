"""Small problems for variational mixtures, and their exact evidence by enumeration."""

import numpy as np
from scipy.special import betaln, xlogy

from kfree.families.conjugate import CONJUGATE, Facts, join
from kfree.inference.variational.posterior import Setting, best_mixture, measure
from kfree.inference.variational.sweep import ExpectedSums, sums_of
from kfree.rows import Tied
from kfree.structures import StickBreaking

FAMILIES = tuple(CONJUGATE)
GAUSSIANS = ("gaussian", "diag", "spherical")


def draw(name, n, p, seed=0):
    rng = np.random.default_rng([seed, n, p])
    if name in GAUSSIANS:
        return rng.normal(size=(n, p)) * 1.5 + rng.normal(size=p) + 3 * rng.integers(0, 2, size=(n, 1))
    if name == "bernoulli":
        return rng.integers(0, 2, size=(n, p)).astype(float)
    return rng.poisson(rng.choice([0.5, 4.0], size=(n, 1)), size=(n, p)).astype(float)


def problem(name, X, sticks=(1.0, 1.0), weight=None, spread=1.0):
    """Setting and single rows; the prior's mean is zero."""
    family = CONJUGATE[name]()
    prior = family.prior(Facts(X.shape[1], spread, np.asarray(X.mean(axis=0)).ravel()), {})
    n = np.ones(X.shape[0]) if weight is None else np.asarray(weight, float)
    return Setting(family, prior, StickBreaking(*sticks)), Tied(n, X, None, family.log_base(X))


def mixture_of(setting, tied, resp):
    """The best mixture for responsibilities (R, T + 1), the last the tail's; not re-ordered unless it must be."""
    T = resp.shape[1] - 1
    form = setting.family.form(join([setting.prior] * T))
    sums = sums_of(tied, form, np.ascontiguousarray(resp[:, :T].T))
    return best_mixture(setting, ExpectedSums(sums, float(tied.n @ resp[:, T]), 0.0))


def free_energy(mixture, setting, tied):
    """F of a mixture with the best responsibilities."""
    return mixture.sweep(setting, tied)[1]


def free_energy_at(mixture, setting, tied, resp):
    """F of a mixture with given responsibilities (R, T + 1), the last the tail's."""
    view = mixture.view(setting)
    gap = xlogy(resp, resp) - resp * (view.scores(tied) + tied.log_h[:, None])
    return view.divergence + float(tied.n @ gap.sum(axis=1))


def measured(mixture, setting, tied):
    """A mixture on rows, its components named by their places."""
    return measure(setting, tied, mixture, np.arange(mixture.size))


def stick_cost(prior, sizes):
    """What weights cost in the free energy, for sizes (T + 1,) and the best sticks."""
    sticks = prior.posterior(sizes)
    return prior.divergence(sticks) - float(sizes @ prior.expected_log(sticks))


def posterior_of(setting, tied, rows):
    """Exact posterior of one component that has some of the rows."""
    resp = np.zeros((1, tied.size))
    resp[0, rows] = 1.0
    return setting.family.posterior(setting.prior, sums_of(tied, setting.family.form(setting.prior), resp))


def log_marginal(setting, tied, rows):
    """Log evidence of rows that form one component, by the chain rule of predictive densities."""
    total = 0.0
    for i, row in enumerate(rows):
        params = posterior_of(setting, tied, rows[:i])
        total += setting.family.log_predictive(params, tied.mean[row : row + 1])[0, 0]
    return total


def partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for i, block in enumerate(smaller):
            yield [*smaller[:i], [first, *block], *smaller[i + 1 :]]


def log_chance(sizes, a1, a2):
    """Log probability of a partition under sticks Beta(a1, a2), exactly: sticks without rows are a geometric series."""

    def chance(left):
        rows = sum(left)
        if not rows:
            return 1.0
        empty = np.exp(betaln(a1, a2 + rows) - betaln(a1, a2))
        here = 0.0
        for i, size in enumerate(left):
            taken = np.exp(betaln(a1 + size, a2 + rows - size) - betaln(a1, a2))
            here += taken * chance(left[:i] + left[i + 1 :])
        return here / (1 - empty)

    return np.log(chance(tuple(sizes)))


def log_evidence(setting, tied):
    """Log evidence of all rows under the infinite mixture, by enumeration of partitions."""
    a1, a2 = setting.weights
    terms = [
        log_chance([len(block) for block in blocks], a1, a2)
        + sum(log_marginal(setting, tied, sorted(block)) for block in blocks)
        for blocks in partitions(list(range(tied.size)))
    ]
    return np.logaddexp.reduce(terms)
