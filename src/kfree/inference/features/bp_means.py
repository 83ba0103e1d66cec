"""BP-means (Algorithm 1): rows in order, features born and deleted on the way, then the means.

Rows are proposed for whole blocks at once and then walked in order, which gives the bits of the one-by-one pass: rows
meet only through births, deaths and sole members, and those are done again in their turn.
"""

from dataclasses import dataclass

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, Means, residual, settle, shifted_squares
from kfree.inference.features.best_rows import improve_rows
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.kernels import kernels


@dataclass
class _Window:
    """Rows whose products and proposals are known, from ``start`` to ``stop``."""

    start: int
    stop: int
    P: Array  # (m, K) products with the means
    proposed: Array  # (m, known) rows found for the means the window began with
    redo: Array  # (m,) bool, proposals that no longer hold


class BPPass:
    """One pass over the rows, as a state that rows, births and deaths change."""

    def __init__(self, table: FeatureTable, start: FeatureState, goal: FeatureGoal):
        assert goal.price is not None
        self.table, self.price, self.rule = table, goal.price, goal.rule
        self.Z, self.A, self.base = start.Z.copy(), start.means.A.copy(), start.means.base
        self.square = shifted_squares(table, self.base)
        self.count = self.Z.sum(axis=0, dtype=np.int64)
        self.changed = 0  # rows that changed, and features born
        self._drop(self.count == 0, None, 0)

    def run(self, block: int, budget: Budget) -> None:
        """Visit all rows."""
        start, blocks = 0, 1
        while start < self.table.n and not (start and budget.spent):
            window = self._propose(start, min(self.table.n, start + blocks * block), block, budget)
            calm = self._walk(window, block, budget)
            start, blocks = window.stop, blocks * 2 if calm else 1

    def _propose(self, start: int, stop: int, block: int, budget: Budget) -> _Window:
        """Rows of some blocks against the present means, sole members ignored."""
        proposed, G = self.Z[start:stop].copy(), self.A @ self.A.T
        largest = G.diagonal().max(initial=0.0)
        spans = [slice(i, min(i + block, stop)) for i in range(start, stop, block)]

        def of_span(span: slice) -> Array:
            P = self.table.products(span, self.A) - self.base @ self.A.T
            slack = FEATURES.tie * (self.price / self.table.weight[span] + self.square[span] + largest)
            some = proposed[span.start - start : span.stop - start]
            improve_rows(P, G, slack, self.rule, budget.stop, some, np.empty(len(P)))
            return P

        P = np.concatenate(list(self.table.over(spans, of_span)))
        return _Window(start, stop, P, proposed, np.zeros(stop - start, bool))

    def _walk(self, window: _Window, block: int, budget: Budget) -> bool:
        """Settle the rows of a window in order; True if no feature came or went. Else it ends with the block."""
        calm, first = True, 0
        while first < window.stop - window.start and not (first and budget.spent):
            rows = slice(window.start, window.stop)
            n, changed = kernels().walk_rows(
                window.P,
                self.A @ self.A.T,
                window.proposed,
                window.proposed.shape[1],
                window.redo,
                self.table.weight[rows],
                self.square[rows],
                self.price,
                self.rule.exact,
                self.rule.nodes,
                budget.stop,
                first,
                self.Z[rows],
                self.count,
            )
            self.changed += changed
            first = n + 1
            if n < window.stop - window.start and self._event(window, n):
                calm = False
                end = window.start + (n // block + 1) * block
                window.stop = min(window.stop, end)
                m = window.stop - window.start
                window.P, window.proposed, window.redo = window.P[:m], window.proposed[:m], window.redo[:m]
        return calm

    def _event(self, window: _Window, n: int) -> bool:
        """Deaths and birth at row n of the window; False if there was none."""
        dead = self.count == 0
        if dead.any():
            self._drop(dead, window, n)
        born = self._birth(window, n)
        return bool(dead.any()) or born

    def _drop(self, dead: Array, window: _Window | None, n: int) -> None:
        """Forget features without members."""
        if not dead.any():
            return
        self.Z, self.A = np.ascontiguousarray(self.Z[:, ~dead]), self.A[~dead]
        self.count = self.count[~dead]
        if window is not None:
            window.P = np.ascontiguousarray(window.P[:, ~dead])
            gone = dead[: window.proposed.shape[1]]
            window.redo[n + 1 :] |= window.proposed[n + 1 :, gone].any(axis=1)
            window.proposed = np.ascontiguousarray(window.proposed[:, ~gone])

    def _birth(self, window: _Window, n: int) -> bool:
        """A feature for row n alone, if its residual is worth more than its price."""
        row = window.start + n
        r = residual(self.table, self.Z, Means(self.A, self.base), row)
        w = self.table.weight[row]
        largest = np.einsum("ij,ij->i", self.A, self.A).max(initial=0.0)
        if not w * (r @ r) > self.price + FEATURES.tie * (self.price + w * (self.square[row] + largest)):
            return False
        column = np.zeros((self.table.n, 1), np.uint8)
        column[row] = 1
        self.Z, self.A = np.concatenate([self.Z, column], axis=1), np.vstack([self.A, r])
        self.count = np.append(self.count, 1)
        along = self.table.products(slice(window.start, window.start + len(window.P)), r[None]) - self.base @ r
        window.P = np.concatenate([window.P, along], axis=1)
        self.changed += 1
        return True


def run_bp_means(table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """Passes until one changes no bit, no feature, and the solve gains nothing."""

    def one_pass(state: FeatureState) -> tuple[FeatureState, Info]:
        visit = BPPass(table, state, goal)
        visit.run(FEATURES.block, budget)
        new = settle(table, visit.Z)
        before, value = goal.objective(state), goal.objective(new)
        gained = before - value > FEATURES.tie * (table.total + value)
        return new, Info(value, table.total, visit.changed / table.n, int(gained), new.K)

    done = run(one_pass, start.as_start(), budget, phase="BP-means", tol=0.0, max_iter=goal.max_iter, always=1)
    if done.state.solved:
        return done
    state = settle(table, start.Z)  # interrupted before the end of the first pass
    return Outcome(state, [goal.objective(state)], False)
