"""Why there are so many binary features, in plain words; every figure is an attribute of the estimator."""

from typing import NamedTuple

from kfree.families import Array
from kfree.models.explain_mixtures import Sampled, how_sure
from kfree.models.features import HeldFeatures
from kfree.models.sentences import count, percent, together


class Priced(NamedTuple):
    """What a fit has published."""

    held: HeldFeatures
    explained: float
    lam: float | None = None  # None: K was given
    window: tuple[float, float] | None = None  # prices for which the number is best, if it was chosen


def explain_priced(found: Priced) -> str:
    """Features that were given, or paid for."""
    K = len(found.held.counts)
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
    return together(first, saved if K else "", _rows(found.held))


def explain_sampled_features(found: Sampled, Z: Array, noise: float) -> str:
    """A posterior of features."""
    return together(
        *how_sure(found, "feature"),
        f"What they leave is noise with a standard deviation of {noise:.4g}.",
        _rows(HeldFeatures.of(Z)),
    )


def _rows(held: HeldFeatures) -> str:
    """Sentences on who has which feature."""
    n, K, counts = held.n, len(held.counts), held.counts
    if not K:
        return "No row has any: nothing that rows share is worth its price."
    text = f"A row has {counts.sum() / n:.2g} of them on average, and {held.bare} of {n} rows have none."
    if K > 1:
        text += f" The commonest is in {counts.max()} rows, the rarest in {counts.min()}."
    return text
