"""Rows that come in groups: visiting them in turn, and the clusters that each group holds."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def arrange(order, bins, start, out):  # noqa: D103
    place = start[:-1].copy()
    for t in range(order.shape[0]):
        b = bins[order[t]]
        out[place[b]] = order[t]
        place[b] += 1


@njit(nogil=True, cache=True)
def find_slots(rows, row_start, labels, start, member, place, slot):  # noqa: D103
    for g in range(start.shape[0] - 1):
        for t in range(start[g], start[g + 1]):
            place[member[t]] = t
        for q in range(row_start[g], row_start[g + 1]):
            label = labels[rows[q]]
            slot[q] = place[label] if label >= 0 else -1
        for t in range(start[g], start[g + 1]):
            place[member[t]] = -1


@njit(nogil=True, cache=True)
def may_open(cost, slack, unit, alone, group, held, lam, rows):  # noqa: D103
    count = 0
    for r in range(cost.shape[0]):
        g, v = group[r], unit[r]
        limit = lam[0] + lam[1] + alone[r] - slack[r]
        open_ = True
        for k in range(cost.shape[1]):
            value = v * cost[r, k]
            if not held[g, k]:
                value += lam[0]
            if value < limit:
                open_ = False
                break
        if open_:
            rows[count] = r
            count += 1
    return count


@njit(nogil=True, cache=True)
def visit_rows(first, cost, slack, unit, alone, group, column, lam, room, known, held, labels, grew):  # noqa: D103
    for r in range(first, cost.shape[0]):
        g, v = group[r], unit[r]
        best, second, arg = np.inf, np.inf, 0
        for k in range(cost.shape[1]):
            if not known[k]:
                continue
            value = v * cost[r, k]
            if not held[g, k]:
                value += lam[0]
            if value < second:
                if value < best:
                    second, best, arg = best, value, k
                else:
                    second = value
        threshold = lam[0] + lam[1] + alone[r]
        if slack[r] > 0 and not (second - best > 2 * slack[r] and abs(best - threshold) > slack[r]):
            return r
        if best > threshold and room[0] > 0:
            arg = column[r]
            known[arg] = True
            room[0] -= 1
        labels[r] = arg
        grew[r] = not held[g, arg]
        held[g, arg] = True
    return cost.shape[0]


@njit(nogil=True, cache=True)
def share_gains(cost, weight, group, held, add, drop, labels):  # noqa: D103
    for r in range(cost.shape[0]):
        g, w = group[r], weight[r]
        best, second, arg = np.inf, np.inf, -1
        for k in range(cost.shape[1]):
            if held[g, k] and cost[r, k] < second:
                if cost[r, k] < best:
                    second, best, arg = best, cost[r, k], k
                else:
                    second = cost[r, k]
        labels[r] = arg
        for k in range(cost.shape[1]):
            if not held[g, k] and cost[r, k] < best:
                add[g, k] += w * (best - cost[r, k])
        if arg >= 0:
            drop[g, arg] += w * (second - best)
