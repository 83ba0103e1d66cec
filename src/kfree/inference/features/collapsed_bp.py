"""Collapsed BP-means (Algorithm 3): rows one at a time, with the means solved for at every visit."""

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import State, settle
from kfree.inference.features.best_rows import Rule
from kfree.inference.features.feature_table import Table
from kfree.inference.features.k_features import Run, check_fall
from kfree.inference.loop import Budget, Info
from kfree.kernels import kernels

_DONE, _BIRTH, _REPLACED = 0, 1, 2


def collapsed_pass(table: Table, X: Array, state: State, lam: float, rule: Rule, budget: Budget) -> tuple[State, int]:
    """Visit every row once; the state and how many rows changed. ``lam=inf`` keeps the number of features."""
    fixed = int(table.intercept)
    changed, first = 0, 0
    while first < table.n and not (changed and budget.spent):
        Z = np.concatenate([np.ones((table.n, fixed), np.uint8), state.Z], axis=1)
        S, T = table.sums(state.Z) if Z.shape[1] else (np.zeros((0, 0)), np.zeros((0, table.p)))
        M, A, G = np.zeros_like(S), np.zeros_like(T), np.zeros_like(S)
        kernels().rebuild(S, T, M, A, G)
        n, event, more, drop = kernels().collapsed_rows(
            X, table.weight, table.square, lam, fixed, rule.exact, first, Z, S, T, M, A, G
        )
        changed, first = changed + more, n + 1
        if event == _REPLACED:
            Z = np.delete(Z, drop, axis=1)
        elif event == _BIRTH:
            column = np.zeros((table.n, 1), np.uint8)
            column[n] = 1
            Z, changed = np.concatenate([Z, column], axis=1), changed + 1
        before = state.inertia + (lam * state.K if lam < np.inf else 0.0)
        state = settle(table, np.ascontiguousarray(Z[:, fixed:]))
        check_fall(before, state.inertia + (lam * state.K if lam < np.inf else 0.0), table.total)
        if event == _DONE:
            break
    return state, changed


def run_collapsed(table: Table, state: State, lam: float, rule: Rule, max_iter: int, budget: Budget) -> Run:
    """Passes until nothing changes."""
    X = np.require(table.dense(slice(0, table.n)), requirements=["C", "W"])
    if not state.Z.any(axis=0).all():
        state = settle(table, state.Z)  # empty columns have no inverse
    trace: list[float] = []
    for count in range(1, max_iter + 1):
        if budget.spent:
            break
        state, changed = collapsed_pass(table, X, state, lam, rule, budget)
        objective = state.inertia + lam * state.K if lam < np.inf else state.inertia
        trace.append(objective)
        budget.tell("collapsed", count, Info(objective, table.total, changed / table.n, 0, state.K))
        if not changed:
            return Run(state, trace, True)
    return Run(state, trace, False)
