"""What a fit of features is to do: one record from the estimators to the innermost loop."""

from typing import NamedTuple

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState
from kfree.inference.features.best_rows import RowRule
from kfree.inference.features.feature_numbers import FEATURES


class GivenStart(NamedTuple):
    """The allocation that the user starts from."""

    Z: Array  # (n, K) uint8
    A: Array | None  # (K, p) means; None: the best ones


class FeatureGoal(NamedTuple):
    """What the user asked for."""

    algorithm: str  # "extended", "paper" or "collapsed"
    rule: RowRule = RowRule()
    max_iter: int = 300
    n_init: int = 1
    n_jobs: int | None = None  # restarts at a time, as joblib counts them
    first: str = "in turn"  # the first feature of a start is the "mean", is "drawn", or both, restarts "in turn"
    shuffle: bool = False  # rows are visited in a random order
    start: GivenStart | None = None  # None: features are drawn
    price: float | None = None  # of a feature; None: their number is fixed

    @property
    def priced(self) -> bool:
        """Whether features have a price, and any number of them may be found."""
        return self.price is not None

    def objective(self, state: FeatureState) -> float:
        """What is minimised."""
        return state.inertia if self.price is None else state.inertia + self.price * state.K

    def while_searching(self) -> "FeatureGoal":
        """The same for the moves: many trials, so the decoder gets less time for each."""
        return self._replace(rule=self.rule._replace(nodes=min(self.rule.nodes, FEATURES.least_nodes)))
