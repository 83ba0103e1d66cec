"""Batches of rows that are read one after the other: candidates of the first, sums of random features of all."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.kernel_means import FeatureSums, FeatureTarget, SeenRows, sum_features
from kfree.inference.loop import Budget
from kfree.models.kernel_problem import Frame, KernelWish, LocalKernelProblem, Looked, enough_features
from kfree.models.kernel_rows import stack


class Stream(NamedTuple):
    """Batches that have been read: candidates of the first, sums of random features of all."""

    frame: Frame
    params: Any
    frequencies: Array
    sums: FeatureSums
    kept: Any  # rows drawn from all batches, as the kernel sees them
    arrival: Array  # when they arrive in a race in which heavy rows are fast
    rng: np.random.Generator

    @classmethod
    def begin(cls, problem: LocalKernelProblem, wish: KernelWish, budget: Budget, rng: np.random.Generator) -> "Stream":
        """The first batch."""
        frame, params = problem.frame, problem.candidates(wish, budget, rng)
        count = enough_features(wish, params[0].shape[0])
        frequencies = frame.family.frequencies(frame.kernel, problem.rows.X.shape[1], count, rng)
        F = frame.family.row_features(frequencies, problem.rows.X[:1]).shape[1]
        none = FeatureSums(np.zeros((EMBEDDING.folds, F)), np.zeros(EMBEDDING.folds))
        return cls(frame, params, frequencies, none, problem.rows.X[:0], np.empty(0), rng).after(problem.rows)

    def after(self, rows: SeenRows) -> "Stream":
        """With one more batch."""
        sums = self.sums.plus(sum_features(self.frame.family, self.frequencies, rows))
        arrival = np.append(self.arrival, self.rng.exponential(size=rows.weight.size) / rows.weight)
        both = stack(self.kept, rows.X)
        if arrival.size > EMBEDDING.kept_rows:
            first = np.sort(np.argpartition(arrival, EMBEDDING.kept_rows)[: EMBEDDING.kept_rows])
            both, arrival = both[first], arrival[first]
        return self._replace(sums=sums, kept=both, arrival=arrival)

    def look(self) -> Looked:
        """What is to be matched."""
        plain = FeatureTarget(self.frame.family, self.frame.kernel, self.frequencies, self.sums)
        target = plain.in_units_of(self.params)
        return Looked(target, target.inner(self.params), target.parts(self.params), True)
