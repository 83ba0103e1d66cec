"""Hard labels refined cell by cell: topics and shares follow every move."""

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.inference.topics.hard_topics import Charges, Labelled, count, objective
from kfree.kernels import kernels
from kfree.rows import Documents

# Gains below this share of a cell's cost are rounding.
_TINY = 1e-10


def refine(
    documents: Documents, start: Labelled, charges: Charges, base: Array, budget: Budget, tol: float, passes: int
) -> Outcome:
    """Passes over all cells, each to the topic that lowers J most, until at most ``tol`` of them move."""
    G = len(start.counts.words)
    fixed = (charges.pseudo, charges.mix, charges.lam_local, charges.lam_global, _TINY)

    def step(state: Labelled) -> tuple[Labelled, Info]:
        words, shares = (np.ascontiguousarray(table.T) for table in state.counts)
        labels = state.labels.copy()
        size = words.sum(axis=0)
        moved = kernels().collapse_cells(*documents.cells, documents.weight, *fixed, words, size, shares, labels)
        counts = count(documents, labels, G, base)
        value = objective(documents, counts, charges)
        live = int((counts.words.sum(axis=1) > 0).sum())
        return Labelled(labels, counts), Info(value, abs(value), moved / max(labels.size, 1), 0, live)

    before = objective(documents, start.counts, charges)
    return run(step, start, budget, phase="collapsed", tol=tol, max_iter=passes, guard=before)
