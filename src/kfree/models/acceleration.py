"""Rows or nodes: what the search of a variational mixture runs on, and how it ends."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.inference.loop import Budget, attempt, repeat
from kfree.inference.variational.greedy import FoundMixture, GreedyGoal, polish, search
from kfree.inference.variational.nodes import ExpansionRule, TreeNodes
from kfree.inference.variational.partition import Partition, SingleRows
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.models.mixture import MixtureProblem, PriorStart
from kfree.rows import Tied
from kfree.rows.tree import Slices, Tree

ACCELERATE = ("auto", "tree", "kdtree")
EXPAND = ("gain", "q")
FINAL = ("labels", "refine", "polish")


class Acceleration(NamedTuple):
    """The user's choices."""

    accelerate: str | None
    expand: str
    final: str
    max_nodes: int | None

    def partition(self, problem: MixtureProblem, kd_slices: Callable[[Any], Slices], budget: Budget) -> Partition:
        """What the search runs on; ``kd_slices`` makes the slices of a kd-tree of dense rows."""
        rows, family = problem.tied, problem.setting.family
        how = self._how(problem)
        if how is None:
            return SingleRows(rows)
        slices = None
        if how == "kdtree":
            check_dense(rows.mean, family.name)
            slices = kd_slices(rows.mean)
        # continuous rows were copied into units of their own: nobody else needs them
        tree = Tree(rows, family.second_moments, max_nodes=self.max_nodes, slices=slices, inplace=family.continuous)
        # where the prior is learned growth on many rows is quick
        quick = problem.starts[0].learner is not None and _size(rows) >= VARIATIONAL.auto_rows
        most = VARIATIONAL.most_nodes if quick else np.inf
        rule = ExpansionRule(self.expand, self.final == "refine", most=most)

        def nodes() -> Partition:
            return TreeNodes(tree, rule)

        # of a tree that is half made nothing is used but the order of its rows
        return attempt(nodes, lambda: SingleRows(tree.rows, tree.places), budget)

    def _how(self, problem: MixtureProblem) -> str | None:
        """The kind of tree, if any."""
        if self.accelerate != "auto":
            return self.accelerate
        rows = problem.tied
        least = max(VARIATIONAL.auto_rows, VARIATIONAL.auto_rows_per_column * rows.mean.shape[1])
        return "tree" if _size(rows) >= least and problem.setting.family.continuous else None

    def search(self, problem: MixtureProblem, partition: Partition, goal: GreedyGoal, budget: Budget) -> FoundMixture:
        """Grow a mixture; then exact updates of all rows, if they are wanted and have not been made."""
        found = self._best_start(problem, partition, goal, budget)
        if self.final != "polish" or partition.fixed:
            return found
        goal = goal._replace(max_iter=VARIATIONAL.polish)
        return polish(found.setting, SingleRows(partition.rows), found, goal, budget)

    def _best_start(
        self, problem: MixtureProblem, partition: Partition, goal: GreedyGoal, budget: Budget
    ) -> FoundMixture:
        """The mixture of least penalised free energy, of one search for each prior to begin with."""
        # beside many rows it does not matter where learning starts
        starts = problem.starts if partition.fixed else problem.starts[:1]

        def one(start: PriorStart) -> FoundMixture:
            return search(problem.setting._replace(prior=start.prior), partition, goal, budget, start.learner)

        def one_more(best: FoundMixture) -> tuple[FoundMixture, bool]:
            found = one(left.pop(0))
            better = found.energy + found.penalty < best.energy + best.penalty
            return (found if better else best)._replace(n_iter=best.n_iter + found.n_iter), not left

        first, *left = starts
        best = one(first)
        return repeat(one_more, best, budget)[0] if left else best


def _size(rows: Tied) -> float:
    """How many rows there are: the same for copies and integer weights."""
    return max(rows.size, rows.total)


def check_dense(X: Any, name: str) -> None:
    """A kd-tree cannot be made of sparse rows."""
    if sp.issparse(X):
        raise ValueError(
            f"accelerate='kdtree' needs dense rows, and family={name!r} was given sparse ones. Use accelerate='tree'."
        )
