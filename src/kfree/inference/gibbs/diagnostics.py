"""How well chains have mixed: split R-hat and effective sample size, and what to say if they are bad."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.gibbs.summary_numbers import SUMMARIES

# What is looked at, in words, for warnings.
_WORDS = {
    "n_clusters": "the number of clusters",
    "n_components": "the number of features",
    "log_posterior": "the log posterior",
    "concentration": "the concentration",
    "noise": "the noise",
    "feature_scale": "the scale of the features",
}


class Diagnostic(NamedTuple):
    """How well the chains agree on one number."""

    rhat: float  # split R-hat: 1 if all halves of chains have one distribution, inf if they never meet; nan: too few
    ess: float  # independent draws that would tell as much of the mean as all samples together; nan: too few


def halves(values: Array, chain: Array) -> Array:
    """(2 chains, n // 2) The halves of all chains; chains that are longer than the shortest lose their beginning.

    Parameters
    ----------
    values : array of shape (S,)
        A number of each sample, the samples of a chain in their order.
    chain : int array of shape (S,)
        Which chain each sample is of.
    """
    parts = [values[chain == c] for c in np.unique(chain)]
    length = min((part.size for part in parts), default=0)
    n = length // 2  # of an odd number the middle one is left out
    starts = [(part, part.size - length) for part in parts]
    return np.array([h for part, at in starts for h in (part[at : at + n], part[part.size - n :])], float)


def split_rhat(values: Array, chain: Array) -> float:
    r"""Split R-hat (Gelman et al., Bayesian Data Analysis, 2013, equation 11.4).

    .. math:: \hat R = \sqrt{\frac{(n - 1) W / n + B / n}{W}}

    with W the mean variance within the halves of chains, and B / n the variance of their means.
    """
    parts = halves(values, chain)
    if parts.shape[-1] < 2:
        return np.nan
    within, total = _variances(parts)
    if within <= 0:
        return 1.0 if total <= 0 else np.inf
    return float(np.sqrt(total / within))


def effective_size(values: Array, chain: Array) -> float:
    """Effective sample size over all chains, by Geyer's initial monotone sequence.

    Autocorrelations are those of Bayesian Data Analysis (2013), section 11.5, which count what chains differ by; their
    sums over pairs of lags are followed until one is negative, and never rise (Geyer 1992).
    """
    parts = halves(values, chain)
    m, n = parts.shape if parts.ndim == 2 else (0, 0)
    if n < 2:
        return np.nan
    within, total = _variances(parts)
    if total <= 0:  # a constant is known at once
        return float(m * n)
    correlation = 1 - (within - _autocovariance(parts).mean(axis=0)) / total
    correlation[0] = 1.0
    pairs = correlation[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    below = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: below[0]] if below.size else pairs)
    # chains that alternate can tell more than independent draws, but not without bound
    return float(m * n / max(2 * pairs.sum() - 1, 1 / np.log10(m * n)))


def _variances(parts: Array) -> tuple[float, float]:
    """Mean variance within parts, and the estimate from within and between; rounding counts as none."""
    n = parts.shape[1]
    within = parts.var(axis=1, ddof=1).mean()
    between = parts.mean(axis=1).var(ddof=1)
    tiny = (1e-14 * np.abs(parts).max()) ** 2
    within, between = (0.0 if value <= tiny else float(value) for value in (within, between))
    return within, (n - 1) / n * within + between


def _autocovariance(parts: Array) -> Array:
    """(parts, n) Autocovariances at lags 0 to n - 1, divided by n."""
    n = parts.shape[1]
    centred = parts - parts.mean(axis=1, keepdims=True)
    waves = np.fft.rfft(centred, 2 * n, axis=1)
    return np.fft.irfft(waves * waves.conj(), 2 * n, axis=1)[:, :n] / n


def diagnose(traces: dict[str, Array], chain: Array) -> dict[str, Diagnostic]:
    """R-hat and effective sample size of each of some numbers (S,) by name."""
    return {name: Diagnostic(split_rhat(v, chain), effective_size(v, chain)) for name, v in traces.items()}


def complaints(diagnostics: dict[str, Diagnostic], n_samples: int, n_chains: int) -> list[str]:
    """What is wrong with chains in plain words, and what to do; nothing if they are well.

    ``n_samples`` are those of all chains together.
    """
    short = [name for name, found in diagnostics.items() if np.isnan(found.rhat) or np.isnan(found.ess)]
    apart = {name: d.rhat for name, d in diagnostics.items() if d.rhat > SUMMARIES.most_rhat}
    least = SUMMARIES.least_ess * n_chains
    slow = {name: d.ess for name, d in diagnostics.items() if d.ess < least and name not in apart}
    said = []
    if short:
        said.append(
            f"{n_samples} samples of {n_chains} chain(s) are too few to say whether the chains have mixed. Draw more: "
            "at least 4 of each chain (n_samples), or give more time (max_time)."
        )
    if apart:
        where = "between chains or their halves" if n_chains > 1 else "between the halves of the chain"
        said.append(
            f"The chains have not mixed: {_listed(apart, 'split R-hat {:.2f}')} differ {where} by more than within "
            f"them (R-hat below {SUMMARIES.most_rhat:g} is wanted). What is said of the posterior depends on where the "
            "chains began. Raise burn_in and n_samples, and compare the chains one by one."
        )
    if slow:
        said.append(
            f"The chains move slowly: {n_samples} samples tell as little as a few independent draws of "
            f"{_listed(slow, '{:.0f} draws')}; at least {least:.0f} are wanted. Raise n_samples: probabilities and "
            "means are less certain than the number of samples suggests."
        )
    return said


def _listed(values: dict[str, float], form: str) -> str:
    """Names in words, each with its figure."""
    return ", ".join(f"{_WORDS.get(name, name)} ({form.format(value)})" for name, value in values.items())
