"""Every update of a partition leaves the exact posterior as it is: its matrix, from the compiled kernels themselves.

A kernel is a function of uniform numbers. The chance of an outcome is the length of the interval that leads to it, and
its ends are found by halving, so that the matrix is exact to rounding.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kfree.kernels import kernels
from support.small_partitions import NAMES, case, no_turns, posterior

ROWS, LOG_ALPHA = 4, -0.3


def after(made, labels, **turns):
    """The partition that a kernel makes of one with given draws."""
    order, uniforms, pairs, deals, accepts = no_turns(made.n)
    drawn = {"order": order, "uniforms": uniforms, "pairs": pairs, "deals": deals, "accepts": accepts} | turns
    found = np.array(labels, np.int32)
    getattr(kernels(), made.kernel)(*made.arguments, tuple(drawn.values()), LOG_ALPHA, found, np.empty(0))
    return tuple(found.tolist())


def intervals(outcome, low=0.0, high=1.0):
    """Lengths of the intervals of [0, 1) with one outcome each, as a dict."""
    lengths = {}

    def look(low, first, high, last):
        if first == last:
            lengths[first] = lengths.get(first, 0.0) + high - low
        elif high - low < 1e-13:
            return
        else:
            middle = 0.5 * (low + high)
            between = outcome(middle)
            look(low, first, middle, between)
            look(middle, between, high, last)

    look(low, outcome(low), high, outcome(np.nextafter(high, 0.0)))
    return lengths


def visit(made, labels, row):
    """Chances of the partitions that the visit of a row may lead to."""
    order = np.roll(np.arange(made.n), -row)
    return intervals(lambda u: after(made, labels, order=order, uniforms=np.array([u])))


def propose(made, labels, pair, order):
    """The same for a split or a merge that begins with two rows."""
    own = labels[pair[0]]
    dealt = [t for t, row in enumerate(order) if labels[row] == own and row not in pair]
    dealt = dealt if labels[pair[1]] == own else []

    def moved(deals, accept):
        turns = {"pairs": np.array([pair]), "deals": deals[None], "accepts": np.array([accept])}
        return after(made, labels, order=order, **turns)

    chances = {}

    def deal(place, deals, chance):
        if place == len(dealt):
            for found, length in intervals(lambda u: moved(deals, u)).items():
                chances[found] = chances.get(found, 0.0) + chance * length
            return
        t = dealt[place]

        def with_first(u):
            found = moved(np.where(np.arange(made.n) == t, u, deals), 0.0)  # which is always accepted
            return found[order[t]] == found[pair[0]]

        for first, length in intervals(with_first).items():
            deal(
                place + 1,
                np.where(np.arange(made.n) == t, 0.0 if first else np.nextafter(1.0, 0.0), deals),
                chance * length,
            )

    deal(0, np.full(made.n, 0.5), 1.0)
    return chances


def stays(made, update):
    """Whether the posterior is what an update makes of the posterior."""
    every, chances = posterior(made, LOG_ALPHA, kernels())
    place, after_it = {z: k for k, z in enumerate(every)}, np.zeros(len(every))
    for labels, chance in zip(every, chances):
        moves = update(labels)
        assert_allclose(sum(moves.values()), 1.0, atol=1e-9)
        for found, share in moves.items():
            after_it[place[found]] += chance * share
    assert_allclose(after_it, chances, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_visit_of_a_row_leaves_the_posterior_as_it_is(name):
    rng = np.random.default_rng(3)
    made = case(name, ROWS, 2, rng, weighted=True)
    for row in range(ROWS):
        stays(made, lambda labels, row=row: visit(made, labels, row))


@pytest.mark.parametrize("name", NAMES)
def test_splits_and_merges_leave_the_posterior_as_it_is(name):
    rng = np.random.default_rng(4)
    made = case(name, ROWS, 2, rng, weighted=True)
    for _ in range(3):
        order, pair = rng.permutation(ROWS), tuple(rng.choice(ROWS, 2, replace=False).tolist())
        stays(made, lambda labels, pair=pair, order=order: propose(made, labels, pair, order))


def test_a_wrong_chance_of_the_way_back_would_be_seen():
    rng = np.random.default_rng(5)
    made = case("gibbs_known", ROWS, 2, rng)
    order, pair = rng.permutation(ROWS), (0, 2)

    def wrong(labels):
        moves = dict(propose(made, labels, pair, order))
        for found in [found for found in moves if max(found) > max(labels)]:  # splits are accepted a little less often
            moves[labels] = moves.get(labels, 0.0) + 0.01 * moves[found]
            moves[found] *= 0.99
        return moves

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        stays(made, wrong)
