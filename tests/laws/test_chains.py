"""Chains: the same draws however many run at a time, and nothing is lost when they are cut short."""

import numpy as np
import pytest

from kfree.inference.gibbs.chains import Length, new_chains, run_chains
from kfree.inference.loop import Budget, Info


class Walk:
    """A random walk; it is interrupted in one of its sweeps."""

    def __init__(self, interrupted_at=None):
        self.interrupted_at, self.calls = interrupted_at, 0

    def start(self, chain, rng):
        return 100.0 * chain

    def sweep(self, state, turn, rng):
        self.calls += 1
        if self.calls == self.interrupted_at:
            raise KeyboardInterrupt
        return state + rng.normal()

    def trace(self, state):
        return (state, state**2)

    def keep(self, state):
        return state

    def info(self, state):
        return Info(state, 1.0, 1.0, 0, 1)


def run(length, *, n_jobs=1, walk=None, budget=None, chains=None):
    return run_chains(walk or Walk(), chains or new_chains(3, 7), length, budget or Budget(), n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_draws_do_not_depend_on_the_number_of_jobs(n_jobs):
    one, other = run(Length(20, 5, 3)), run(Length(20, 5, 3), n_jobs=n_jobs)
    assert one.kept == other.kept
    np.testing.assert_array_equal(one.traces, other.traces)
    assert len({tuple(chain) for chain in np.diff(one.kept).round(9).tolist()}) == 3


def test_samples_are_every_thin_th_state_after_burn_in():
    done = run(Length(20, 5, 3))
    assert done.traces.shape == (3, 65, 2)
    assert done.in_kept.shape == (3, 20, 2)
    np.testing.assert_array_equal(done.in_kept[..., 0], done.kept)
    np.testing.assert_array_equal(done.traces[:, 7::3, 0], done.kept)
    assert done.complete
    assert done.burnt_in


def test_going_on_equals_not_having_stopped():
    whole, first = run(Length(30, 5, 2)), run(Length(10, 5, 2))
    again = run(Length(30, 5, 2), chains=first.chains)
    assert whole.kept == again.kept


@pytest.mark.parametrize("at", [1, 2, 3, 14, 50, 100, 194])
def test_an_interrupt_keeps_the_samples_of_complete_sweeps(at):
    whole, budget = run(Length(20, 5, 3)), Budget()
    done = run(Length(20, 5, 3), walk=Walk(at), budget=budget)
    assert budget.interrupted
    assert not done.complete
    assert len({len(chain) for chain in done.kept}) == 1
    if done.burnt_in:
        assert all(some == chain[: len(some)] for some, chain in zip(done.kept, whole.kept))
    else:
        assert all(len(chain) == 1 for chain in done.kept)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_time_is_one_sweep(n_jobs):
    done = run(Length(20, 5), budget=Budget(0.0), n_jobs=n_jobs)
    assert done.traces.shape == (3, 1, 2)
    assert not done.burnt_in
    assert [len(chain) for chain in done.kept] == [1, 1, 1]
