"""Variational mixtures beside scikit-learn's: fits, single sweeps, free-energy ratios."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks import THREADS
from benchmarks.measure import best_of
from kfree import VariationalDPMixture
from kfree.families.conjugate import CONJUGATE, Facts, join
from kfree.inference.variational.posterior import Setting, best_mixture
from kfree.inference.variational.sweep import ExpectedSums, sums_of
from kfree.models.mixture import MixtureProblem, MixtureWish
from kfree.rows import Tied, set_span_threads
from kfree.structures import StickBreaking

TRUNCATION = 20


def ratio(fast, plain):
    """The paper's free-energy ratio."""
    return 1 + (fast.free_energy_ - plain.free_energy_) / abs(plain.free_energy_)


def fit(X, accelerate, repeats=1, **options):
    """Seconds and the fitted model."""
    return best_of(repeats, lambda: VariationalDPMixture(accelerate=accelerate, **options).fit(X))


def truncated(max_iter=1000, seed=0, **options):
    """scikit-learn's truncated mixture with a Dirichlet-process prior."""
    return BayesianGaussianMixture(n_components=TRUNCATION, max_iter=max_iter, random_state=seed, **options)


def truncated_sweep(X, sweeps=3):
    """Seconds of one of its updates, the start not counted."""

    def run(count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = truncated(count, tol=0.0, init_params="random_from_data")
            return best_of(1, lambda: model.fit(X))[0]

    return max(run(1 + sweeps) - run(1), 0.0) / sweeps


def own_sweep(X, components=TRUNCATION, repeats=3):
    """Seconds of one update of all responsibilities and parameters of VDP with so many components."""
    rng = np.random.default_rng(0)
    family = CONJUGATE["gaussian"]()
    scale = float(np.sqrt(np.linalg.eigvalsh(np.cov(X.T))[-1]))
    rows = Tied(np.ones(X.shape[0]), np.ascontiguousarray((X - X.mean(axis=0)) / scale), None, family.log_base(X))
    setting = Setting(family, family.prior(Facts(X.shape[1], 1.0, np.zeros(X.shape[1])), {}), StickBreaking())
    with set_span_threads():
        # near random rows, so that responsibilities are neither all equal nor all 0 and 1
        near = rows.mean[rng.choice(X.shape[0], components, replace=False)]
        nearest = ((rows.mean[:, None, :4] - near[:, :4]) ** 2).sum(axis=2).argmin(axis=1)
        resp = (nearest == np.arange(components)[:, None]).astype(float)
        form = family.form(join([setting.prior] * components))
        mixture, _ = best_mixture(setting, ExpectedSums(sums_of(rows, form, resp), 0.0, 0.0))

        def update():
            swept, _ = mixture.sweep(setting, rows)
            return best_mixture(setting, swept)

        return best_of(repeats, update)[0]


def fit_truncated(X):
    """Seconds, the model, and its number of updates."""
    with threadpool_limits(THREADS):
        seconds, model = best_of(1, lambda: truncated().fit(X))
    return seconds, model


def free_energy_from(X, resp):
    """Our free energy (of all components, the infinite tail included) after one update from responsibilities (n, T)."""
    problem = MixtureProblem.of(X, None, MixtureWish.of("gaussian", "fixed", StickBreaking()))
    setting, tied = problem.setting, problem.tied
    form = setting.family.form(join([setting.prior] * resp.shape[1]))
    sums = sums_of(tied, form, np.ascontiguousarray(resp.T))
    return best_mixture(setting, ExpectedSums(sums, 0.0, 0.0))[0].sweep(setting, tied)[1]


def used(model, X):
    """Components of scikit-learn's mixture that have rows."""
    return int(np.unique(model.predict(X)).size)


def by_bic(X, sizes=(1, 2, 4, 8, 12, 16, 20)):
    """The Gaussian mixture with the least BIC."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = [GaussianMixture(n_components=k, random_state=0, reg_covar=1e-6).fit(X) for k in sizes if k < len(X)]
    return min(fitted, key=lambda model: model.bic(X))
