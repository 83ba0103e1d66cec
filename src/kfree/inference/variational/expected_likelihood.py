"""The three forms of expected log-likelihoods, made ready to run over blocks of tied rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from kfree.families import Array
from kfree.families.cached import cached_property
from kfree.families.conjugate import Form, Linear, Moments, Weighted, Whitened
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.kernels import kernels
from kfree.rows import Summable, Tied
from kfree.rows.threads import in_order


class Shares(NamedTuple):
    """Soft assignments of a block."""

    resp: Array  # (K, m)
    lse: Array  # (m,) without log h


def soften(scores: Array, log_weight: Array | None = None) -> Shares:
    """Shares of terms in sums of exponentials, and the logs of the sums."""
    log_weight = np.zeros(scores.shape[1]) if log_weight is None else log_weight
    resp, lse = np.empty(scores.shape[::-1]), np.empty(scores.shape[0])
    kernels().soften(scores, log_weight, resp, lse)
    return Shares(resp, lse)


def whiten(rows: Array, form: Weighted | Whitened, k: int) -> Array:
    """Rows in coordinates in which component k is a standard Gaussian."""
    gap = rows - form.mean[k]
    return gap @ form.root[k] if isinstance(form, Whitened) else gap * np.sqrt(form.precision[k])


class Runner(ABC):
    """Scores of blocks under K components, and sums of the first ``free`` of them."""

    def __init__(self, form: Form, free: int, columns: int):
        self.form, self.free, self.K, self.p = form, free, form.offset.shape[0], columns

    @abstractmethod
    def scores(self, tied: Tied, span: slice) -> Array:
        """E[log p] without log h, (m, K)."""

    def shares(self, tied: Tied, span: slice, log_weight: Array) -> Shares:
        """Responsibilities."""
        return soften(self.scores(tied, span), log_weight)

    def assign(self, tied: Tied, span: slice, log_weight: Array, labels: Array, lse: Array) -> None:
        """Fill the likeliest component but the last, and the logs of the sums of all."""
        scores = self.scores(tied, span)
        labels[:] = (scores[:, :-1] + log_weight[:-1]).argmax(axis=1)
        lse[:] = soften(scores, log_weight).lse

    def apart(self, tied: Tied, first: Array, log_weight: Array, share: Array) -> Array:
        """What single rows gain, on average over rows first[t]..first[t + 1], by shares of their own instead of
        ``share[:, t]`` for all of them."""
        scores, common = self.scores(tied, slice(0, tied.size)) + log_weight, np.repeat(share.T, np.diff(first), axis=0)
        gain = logsumexp(scores, axis=1) - (common * scores).sum(axis=1) + xlogy(common, common).sum(axis=1)
        return np.add.reduceat(tied.n * gain, first[:-1]) / np.add.reduceat(tied.n, first[:-1])

    def sweep(self, tied: Tied, span: slice, log_weight: Array) -> tuple[tuple[Array, ...], float, float]:
        """Sums of a block, the weight of its rows beyond the first ``free``, and the sum of n lse; they add."""
        resp, lse = self.shares(tied, span, log_weight)
        n = tied.n[span]
        return self.sums(tied, span, resp), float((resp[self.free :] @ n).sum()), float(n @ lse)

    @abstractmethod
    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        """Sums of a block for responsibilities (K, m); they add."""

    @abstractmethod
    def result(self, parts: tuple[Array, ...]) -> Moments:
        """What the sums of all blocks are sums of."""


class _Linear(Runner):
    form: Linear

    @cached_property
    def _coef(self) -> Array:
        return np.ascontiguousarray(self.form.coef.T)

    def scores(self, tied: Tied, span: slice) -> Array:
        return np.asarray(tied.mean[span] @ self._coef) - self.form.offset

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        weight = resp[: self.free] * tied.n[span]
        return weight.sum(axis=1), np.asarray((tied.mean[span].T @ weight.T).T)

    def result(self, parts: tuple[Array, ...]) -> Moments:
        return Moments(parts[0], parts[1], None, np.zeros((self.free, self.p)))


class _Weighted(Runner):
    form: Weighted

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        """Precisions and means, a column for each component."""
        return np.ascontiguousarray(self.form.precision.T), np.ascontiguousarray(self.form.mean.T)

    def scores(self, tied: Tied, span: slice) -> Array:
        rows = tied.mean[span]
        precision, mean = self._columns
        scores = np.empty((rows.shape[0], self.K))
        kernels().weighted_scores(rows, precision, mean, self.form.offset, scores)
        if tied.second is not None:
            own = tied.second[span].reshape(rows.shape[0], -1)
            scores -= 0.5 * own @ precision[: own.shape[1]]
        return scores

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        mass, first, second = np.zeros(self.free), np.zeros((self.free, self.p)), np.zeros((self.free, self.p))
        centre = self.form.mean[: self.free]
        kernels().add_squares(tied.mean[span], tied.n[span], resp[: self.free], centre, mass, first, second)
        if tied.second is not None:
            own = (resp[: self.free] * tied.n[span]) @ tied.second[span].reshape(resp.shape[1], -1)
            second += own / (self.p if tied.second.ndim == 1 else 1)  # of a sum over columns each gets its part
        return mass, first, second

    def result(self, parts: tuple[Array, ...]) -> Moments:
        return Moments(parts[0], parts[1], parts[2], self.form.mean[: self.free])


class _Whitened(Runner):
    form: Whitened

    @cached_property
    def _pieces(self) -> list[tuple[int, Array, Array]]:
        """Groups of components, named by their first, and of directions: roots and whitened means."""
        root, mean, _ = self.form
        per = max(1, VARIATIONAL.product_columns // self.p)
        groups = [slice(k, min(k + per, self.K)) for k in range(0, self.K, per)]
        # roots are upper triangular: the first directions need the first columns only
        cuts = np.linspace(0, self.p, 1 + (1 if self.p < 8 else 2 if self.p < 32 else 4)).astype(int)
        shift = np.einsum("kd,kde->ek", mean, root)
        # column d K + k of a product is direction d of component k: squares are then added across components
        return [
            (
                group.start,
                np.ascontiguousarray(root[group, :stop, start:stop].transpose(1, 2, 0).reshape(stop, -1)),
                np.ascontiguousarray(shift[start:stop, group]),
            )
            for group in groups
            for start, stop in pairwise(cuts)
        ]

    def scores(self, tied: Tied, span: slice) -> Array:
        rows = tied.mean[span]
        scores = np.tile(-self.form.offset, (rows.shape[0], 1))
        near = VARIATIONAL.far / (np.finfo(float).eps * np.sqrt(self.p) * np.abs(self.form.root).max())
        far = max(rows.max(initial=0.0), -rows.min(initial=0.0)) > near
        tile = max(64, VARIATIONAL.held // max(shift.size for _, _, shift in self._pieces))
        for start in range(0, rows.shape[0], tile):
            some, target = rows[start : start + tile], scores[start : start + tile]
            if far:
                self._add_centred(some, target)
                continue
            for first, root, shift in self._pieces:
                kernels().subtract_squares(some[:, : root.shape[0]] @ root, shift, first, target)
        return scores

    def assign(self, tied: Tied, span: slice, log_weight: Array, labels: Array, lse: Array) -> None:
        """Many rows against one component after the other: nothing of the size of rows x components is kept."""
        if self.p > VARIATIONAL.few_columns:
            super().assign(tied, span, log_weight, labels, lse)
            return
        kernels().assign_rows(tied.mean[span], *self._heights(log_weight), labels, lse)

    def apart(self, tied: Tied, first: Array, log_weight: Array, share: Array) -> Array:
        """The same, compiled."""
        if self.p > VARIATIONAL.few_columns:
            return super().apart(tied, first, log_weight, share)
        gains = np.empty(share.shape[1])
        kernels().gains_apart(tied.mean, tied.n, first, *self._heights(log_weight), share, gains)
        return gains

    def _heights(self, log_weight: Array) -> tuple[Array, Array, Array]:
        """Lower triangles, means and largest scores of components."""
        lower = np.ascontiguousarray(self.form.root.transpose(0, 2, 1))
        return lower, self.form.mean, log_weight - self.form.offset

    def _add_centred(self, rows: Array, scores: Array) -> None:
        """The same from differences to the means, where whitened rows less whitened means would lose digits."""
        for k, (root, mean) in enumerate(zip(self.form.root, self.form.mean)):
            kernels().subtract_squares((rows - mean) @ root, np.zeros((self.p, 1)), k, scores)

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        rows, weight = tied.mean[span], tied.n[span]
        gram = np.empty((self.free, self.p + 1, self.p + 1))
        held = np.empty((rows.shape[0], self.p + 1))
        for k in range(self.free):
            some = held[: kernels().collect(rows, weight, resp[k], self.form.mean[k], held)]
            gram[k] = some.T @ some
        return (gram,)

    def result(self, parts: tuple[Array, ...]) -> Moments:
        gram = parts[0]
        pieces = (gram[:, 0, 0], gram[:, 0, 1:], gram[:, 1:, 1:])
        mass, first, second = (np.ascontiguousarray(piece) for piece in pieces)  # kernels take no others
        return Moments(mass, first, second, self.form.mean[: self.free])


class _OfNodes(Runner):
    """What nodes need beyond single rows: how far their own covariances reach."""

    form: Whitened

    @cached_property
    def _halves(self) -> tuple[Array, Array]:
        """Lower triangles, and halves of precisions, packed."""
        lower, packed = np.empty_like(self.form.root), np.empty((self.K, self.p * (self.p + 1) // 2))
        kernels().half_precisions(self.form.root, lower, packed)
        return lower, packed


class _WideNodes(_Whitened, _OfNodes):
    """Whitened distances of nodes with many columns: as for single rows, and products with their own covariances."""

    def scores(self, tied: Tied, span: slice) -> Array:
        assert tied.second is not None
        return super().scores(tied, span) - tied.second[span] @ self._halves[1].T

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        assert tied.second is not None
        own = (resp[: self.free] * tied.n[span]) @ tied.second[span]
        return *super().sums(tied, span, resp), own

    def result(self, parts: tuple[Array, ...]) -> Moments:
        mass, first, second, about = super().result(parts)
        assert second is not None
        own = np.empty((self.free, self.p, self.p))
        kernels().unpack(parts[1], own)
        return Moments(mass, first, second + own, about)


class _Nodes(_OfNodes):
    """Whitened distances of nodes with few columns, where compiled loops beat products."""

    def _ways(self, count: int) -> tuple[Array, Array]:
        """Directions that tell components apart, if there are enough nodes to make up for their making."""
        worth = count >= VARIATIONAL.nodes_per_column * self.p and self.K**2 * self.p <= VARIATIONAL.direction_entries
        return self._directions if worth else (np.empty((0, 0, 0)), np.empty((0, 0)))

    @cached_property
    def _directions(self) -> tuple[Array, Array]:
        directions, shift = np.empty((self.K, self.K, self.p)), np.empty((self.K, self.K))
        kernels().tell_apart(self._halves[0], self.form.mean, directions, shift)
        return directions, shift

    def scores(self, tied: Tied, span: slice) -> Array:
        assert tied.second is not None
        _, mean, offset = self.form
        scores = np.empty((span.stop - span.start, self.K))
        kernels().node_scores(tied.mean[span], tied.second[span], *self._halves, mean, offset, scores)
        return scores

    def shares(self, tied: Tied, span: slice, log_weight: Array) -> Shares:
        """Without looking closely at components that cannot matter."""
        assert tied.second is not None
        _, mean, offset = self.form
        found = Shares(np.empty((self.K, span.stop - span.start)), np.empty(span.stop - span.start))
        rows, second = tied.mean[span], tied.second[span]
        components = (*self._halves, mean, offset, log_weight, *self._ways(rows.shape[0]))

        def of_some(some: slice) -> None:
            resp = np.empty((self.K, rows[some].shape[0]))
            kernels().node_shares(rows[some], second[some], *components, resp, found.lse[some])
            found.resp[:, some] = resp

        self._parted(of_some, rows.shape[0], self.K)
        return found

    def sweep(self, tied: Tied, span: slice, log_weight: Array) -> tuple[tuple[Array, ...], float, float]:
        """The same in one call if nodes are few, where calls cost more than what they compute."""
        if (span.stop - span.start) * self.K * self.p >= VARIATIONAL.worth_threads:
            return super().sweep(tied, span, log_weight)
        assert tied.second is not None
        sums = (np.zeros(self.free), np.zeros((self.free, self.p)), np.zeros((self.free, self.p * (self.p + 1) // 2)))
        _, mean, offset = self.form
        components = (*self._halves, mean, offset, log_weight, *self._ways(span.stop - span.start))
        tail, lse = kernels().sweep_nodes(tied.n[span], tied.mean[span], tied.second[span], *components, *sums)
        return sums, tail, lse

    def _parted(self, work: Callable[[slice], None], count: int, other: int) -> None:
        """Work on ``count`` things that do not touch each other, side by side if that is worth it."""
        if count * other * self.p < VARIATIONAL.worth_threads:
            work(slice(0, count))
            return
        edges = np.linspace(0, count, min(count, VARIATIONAL.thread_parts) + 1).astype(int)
        for _ in in_order(work, [slice(start, stop) for start, stop in pairwise(edges)]):
            pass

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        assert tied.second is not None
        mass, first = np.zeros(self.free), np.zeros((self.free, self.p))
        packed, centre = np.zeros((self.free, self.p * (self.p + 1) // 2)), self.form.mean[: self.free]
        rows = (tied.mean[span], tied.second[span], tied.n[span])

        def of_some(some: slice) -> None:
            kernels().node_sums(*rows, resp[some], centre[some], mass[some], first[some], packed[some])

        self._parted(of_some, self.free, tied.n[span].shape[0])
        return mass, first, packed

    def result(self, parts: tuple[Array, ...]) -> Moments:
        second = np.empty((self.free, self.p, self.p))
        kernels().unpack(parts[2], second)
        return Moments(parts[0], parts[1], second, self.form.mean[: self.free])


_RUNNERS: dict[Any, type[Runner]] = {Linear: _Linear, Weighted: _Weighted, Whitened: _Whitened}


def make_runner(form: Form, free: int, tied: Summable) -> Runner:
    """The runner of a form."""
    if isinstance(form, Whitened) and not tied.single:
        return (_Nodes if tied.columns <= VARIATIONAL.few_columns else _WideNodes)(form, free, tied.columns)
    return _RUNNERS[type(form)](form, free, tied.columns)
