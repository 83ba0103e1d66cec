"""Rows or nodes: what the search of a variational mixture runs on, and how it ends."""

from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.sparse as sp

from kfree.inference.loop import Budget
from kfree.inference.variational.greedy import Found, Plan, polish
from kfree.inference.variational.nodes import Rule, TreeNodes
from kfree.inference.variational.partition import Partition, SingleRows
from kfree.models.mixture import Problem
from kfree.rows.tree import Slices, Tree

ACCELERATE = ("auto", "tree", "kdtree")
EXPAND = ("gain", "q")
FINAL = ("labels", "refine", "polish")
#: What is kept of the second moments of nodes.
_SHAPES = {"gaussian": "full", "diag": "diag", "spherical": "spherical"}
# Rows from which "auto" takes the tree; columns must be few beside them, or nodes stay too wide to save anything.
_MANY, _PER_COLUMN = 20_000, 100
# Exact updates of all rows that a polish makes.
_POLISH = 10


class Acceleration(NamedTuple):
    """The user's choices."""

    accelerate: str | None
    expand: str
    final: str
    max_nodes: int | None

    def partition(self, problem: Problem, kd_slices: Callable[[Any], Slices]) -> Partition:
        """What the search runs on; ``kd_slices`` makes the slices of a kd-tree of dense rows."""
        rows, family = problem.tied, problem.setting.family
        how = self.accelerate
        if how == "auto":
            size = max(rows.size, rows.total)  # the same for copies and integer weights
            many = size >= max(_MANY, _PER_COLUMN * rows.mean.shape[1]) and family.continuous
            how = "tree" if many else None
        if how is None:
            return SingleRows(rows)
        slices = None
        if how == "kdtree":
            check_dense(rows.mean, family.name)
            slices = kd_slices(rows.mean)
        shape = _SHAPES.get(family.name, "none")
        # continuous rows were copied into units of their own: nobody else needs them
        tree = Tree(rows, shape, max_nodes=self.max_nodes, slices=slices, inplace=family.continuous)
        return TreeNodes(tree, Rule(kind=self.expand, refine=self.final == "refine"))

    def finish(self, problem: Problem, partition: Partition, found: Found, plan: Plan, budget: Budget) -> Found:
        """Exact updates of all rows, if they are wanted and have not been made."""
        if self.final != "polish" or partition.fixed:
            return found
        return polish(problem.setting, SingleRows(partition.rows), found, plan._replace(max_iter=_POLISH), budget)


def check_dense(X: Any, name: str) -> None:
    """A kd-tree cannot be made of sparse rows."""
    if sp.issparse(X):
        raise ValueError(
            f"accelerate='kdtree' needs dense rows, and family={name!r} was given sparse ones. Use accelerate='tree'."
        )
