"""Why there are so many binary features, in plain words; every figure is an attribute of the estimator."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.models.explain_mixtures import Sampled, how_sure
from kfree.models.sentences import count, percent, together


class Priced(NamedTuple):
    """What a fit has published."""

    Z: Array  # (n, K)
    explained: float
    lam: float | None = None  # None: K was given
    window: tuple[float, float] | None = None  # prices for which the number is best, if it was chosen


def explain_priced(found: Priced) -> str:
    """Features that were given, or paid for."""
    K = found.Z.shape[1]
    if found.lam is None:
        first = f"{count(K, 'feature')}, as asked for."
    elif found.window is None:
        first = (
            f"{count(K, 'feature')} at a price of lam = {found.lam:.4g} each; no other that was tried saves as much."
        )
    else:
        first = f"{count(K, 'feature')}: that number is best for prices from {found.window[0]:.4g} to "
        first += f"{found.window[1]:.4g}, and lam = {found.lam:.4g} was taken."
    saved = f"They account for {percent(found.explained)} of the sum of squares of X."
    return together(first, saved if K else "", _rows(found.Z))


def explain_sampled_features(found: Sampled, Z: Array, noise: float) -> str:
    """A posterior of features."""
    return together(
        *how_sure(found, "feature"), f"What they leave is noise with a standard deviation of {noise:.4g}.", _rows(Z)
    )


def _rows(Z: Array) -> str:
    """Sentences on who has which feature."""
    n, K = Z.shape
    if not K:
        return "No row has any: nothing that rows share is worth its price."
    held = Z.sum(axis=1, dtype=np.int64)
    counts = Z.sum(axis=0, dtype=np.int64)
    text = f"A row has {held.mean():.2g} of them on average, and {np.count_nonzero(held == 0)} of {n} rows have none."
    if K > 1:
        text += f" The commonest is in {counts.max()} rows, the rarest in {counts.min()}."
    return text
