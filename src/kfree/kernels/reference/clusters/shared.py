"""Rows that come in groups: visiting them in turn, and the clusters that each group holds."""

import numpy as np


def arrange(order, bins, start, out):
    """Sort ``order`` by the bins of its elements, keeping their order inside a bin; ``start`` says where bins begin."""
    out[:] = order[np.argsort(bins[order], kind="stable")]


def find_slots(rows, row_start, labels, start, member, place, slot):
    """Where the label of each row stands among the clusters that its group holds; -1 if it does not.

    Group g has the rows ``rows[row_start[g] : row_start[g + 1]]`` and holds ``member[start[g] : start[g + 1]]``.
    ``place`` is scratch for all clusters, -1 before and after.
    """
    for g in range(start.size - 1):
        place[member[start[g] : start[g + 1]]] = np.arange(start[g], start[g + 1])
        own = labels[rows[row_start[g] : row_start[g + 1]]]
        slot[row_start[g] : row_start[g + 1]] = np.where(own >= 0, place[own], -1)
        place[member[start[g] : start[g + 1]]] = -1


def _penalised(cost, v, held, lam_local):
    return v * cost + np.where(held, 0.0, lam_local)


def may_open(cost, slack, unit, alone, group, held, lam, rows):
    """List the rows that may open a cluster of their own when their turn comes; returns how many.

    ``cost`` (m, K) are divergences known up to ``slack`` (m,), and ``held[g, k]`` says that group g holds cluster k;
    where it does not, ``lam[0]`` is added. A row opens a cluster if the least exceeds ``lam[0] + lam[1] + alone``.
    """
    least = _penalised(cost, unit[:, None], held[group], lam[0]).min(axis=1, initial=np.inf)
    found = np.flatnonzero(~(least < lam[0] + lam[1] + alone - slack))
    rows[: found.size] = found
    return found.size


def visit_rows(first, cost, slack, unit, alone, group, column, lam, room, known, held, labels, grew):
    """Give the rows from ``first`` on, one after the other, to their cheapest cluster or to one of their own.

    Costs, penalties and thresholds are as in ``may_open``. Columns that are not ``known`` are clusters nobody has
    opened yet; ``column[r]`` is the one that row r would open, while there is ``room[0]``. Fills ``labels`` and
    ``grew`` (True where the group did not hold the cluster before), and keeps ``known``, ``held`` and ``room`` up to
    date. Stops at a row whose slack leaves the decision open, and returns its position (the number of rows at the
    end); rows without slack are decided as they are.
    """
    for r in range(first, cost.shape[0]):
        g = group[r]
        values = np.where(known, _penalised(cost[r], unit[r], held[g], lam[0]), np.inf)
        arg = int(values.argmin())
        best, second = np.partition(np.append(values, np.inf), 1)[:2]
        threshold = lam[0] + lam[1] + alone[r]
        with np.errstate(invalid="ignore"):
            sure = second - best > 2 * slack[r] and abs(best - threshold) > slack[r]
        if slack[r] > 0 and not sure:
            return r
        if best > threshold and room[0] > 0:
            arg = column[r]
            known[arg] = True
            room[0] -= 1
        labels[r] = arg
        grew[r] = not held[g, arg]
        held[g, arg] = True
    return cost.shape[0]


def share_gains(cost, weight, group, held, add, drop, labels):
    """What groups would gain by holding one more cluster, and lose by giving one up.

    Adds to ``add[g, k]`` what the rows of group g would save if it held k as well, and to ``drop[g, k]`` what they
    would pay for their next best cluster if it did not. ``labels`` are their best clusters, -1 if all exclude a row.
    """
    for r in range(cost.shape[0]):
        g = group[r]
        own = np.where(held[g], cost[r], np.inf)
        best, second = np.partition(np.append(own, np.inf), 1)[:2]
        labels[r] = own.argmin() if best < np.inf else -1
        nearer = np.flatnonzero(~held[g] & (cost[r] < best))
        add[g, nearer] += weight[r] * (best - cost[r, nearer])
        if labels[r] >= 0:
            drop[g, labels[r]] += weight[r] * (second - best)
