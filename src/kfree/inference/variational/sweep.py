"""One sweep: responsibilities of all tied rows, block by block, and the sums that updates need."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import Form, Moments
from kfree.inference.variational.expected_likelihood import Runner, Shares, make_runner
from kfree.rows import Summable, Tied


class ExpectedSums(NamedTuple):
    """Sums of statistics under the responsibilities of a sweep."""

    sums: Moments  # of the first T components
    tail: float  # weight of the rows beyond them
    evidence: float  # sum over rows of n logsumexp(W), log h included


@dataclass(frozen=True)
class Softened:
    """Sums under the best responsibilities, of one span; a record, as it may go to where the rows are."""

    runner: Runner
    log_weight: Array

    def __call__(self, tied: Tied, span: slice) -> tuple[Any, ...]:
        """Sums of statistics, the weight of the tail, and the evidence without log h."""
        parts, tail, evidence = self.runner.sweep(tied, span, self.log_weight)
        return *parts, tail, evidence


def sweep(tied: Summable, runner: Runner, log_weight: Array) -> ExpectedSums:
    """Sums under q(z) = softmax(W), ``W = E[log p] + log_weight``, for the free components."""
    *total, tail, evidence = tied.added(Softened(runner, log_weight), runner.K)
    return ExpectedSums(runner.result(tuple(total)), tail, evidence + tied.base)


def sums_of(tied: Tied, form: Form, resp: Array) -> Moments:
    """Sums for given responsibilities (K, R)."""
    runner = make_runner(form, resp.shape[0], tied)

    def of_span(tied: Tied, span: slice) -> tuple[Any, ...]:
        return runner.sums(tied, span, np.ascontiguousarray(resp[:, span]))

    return runner.result(tied.added(of_span, runner.K))


def log_joint(tied: Tied, runner: Runner, log_weight: Array) -> Array:
    """W without log h of all rows, (R, K): for tables whose rows are few."""
    parts = tied.each(lambda span: runner.scores(tied, span) + log_weight, runner.K)
    return np.concatenate(list(parts))


def members(tied: Tied, runner: Runner, log_weight: Array, wanted: Array, least: float) -> list[tuple[Array, Array]]:
    """For each wanted component the rows (ascending) in which its share exceeds ``least``, and that share."""

    def of_span(span: slice) -> list[tuple[Array, Array]]:
        resp = runner.shares(tied, span, log_weight).resp[wanted]
        places = [np.flatnonzero(share > least) for share in resp]
        return [(span.start + place, share[place]) for place, share in zip(places, resp)]

    parts = list(tied.each(of_span, runner.K))
    return [
        (np.concatenate([part[c][0] for part in parts]), np.concatenate([part[c][1] for part in parts]))
        for c in range(len(wanted))
    ]


def assign(tied: Tied, runner: Runner, log_weight: Array) -> tuple[Array, Array]:
    """Likeliest of the components but the last (the tail) of each row, and logsumexp(W) without log h."""
    labels, lse = np.empty(tied.size, np.intp), np.empty(tied.size)

    def of_span(span: slice) -> None:
        runner.assign(tied, span, log_weight, labels[span], lse[span])

    for _ in tied.each(of_span, runner.K):
        pass
    return labels, lse


def soften_all(tied: Tied, runner: Runner, log_weight: Array) -> Shares:
    """Responsibilities of all rows, and logs of the sums they are shares of, without log h."""
    parts = list(tied.each(lambda span: runner.shares(tied, span, log_weight), runner.K))
    return parts[0] if len(parts) == 1 else Shares(*(np.concatenate(part, axis=-1) for part in zip(*parts)))
