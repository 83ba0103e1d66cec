"""The three forms of expected log-likelihoods, made ready to run over blocks of tied rows."""

from typing import Any

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import Form, Linear, Sums, Weighted, Whitened
from kfree.kernels import kernels
from kfree.rows import Tied

# Entries of whitened rows held at a time: they should stay in the cache until they are squared.
_HELD = 65_536
# Components whitened in one product.
_COLUMNS = 1024
# Relative rounding of whitened rows above which rows are centred for each component.
_FAR = 1e-10


class Runner:
    """Scores of blocks under K components, and sums of the first ``free`` of them."""

    def __init__(self, form: Form, free: int, tied: Tied):
        self.form, self.free, self.K = form, free, form.offset.shape[0]
        self.p = tied.mean.shape[1]
        self._prepare(tied)

    def _prepare(self, tied: Tied) -> None:
        """What is the same for all blocks."""

    def scores(self, tied: Tied, span: slice) -> Array:
        """E[log p] without log h, (m, K)."""
        raise NotImplementedError

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        """Sums of a block for responsibilities (K, m); they add."""
        raise NotImplementedError

    def result(self, parts: tuple[Array, ...]) -> Sums:
        """What the sums of all blocks are sums of."""
        raise NotImplementedError


class _Linear(Runner):
    form: Linear

    def _prepare(self, tied: Tied) -> None:
        self._coef = np.ascontiguousarray(self.form.coef.T)

    def scores(self, tied: Tied, span: slice) -> Array:
        return np.asarray(tied.mean[span] @ self._coef) - self.form.offset

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        weight = resp[: self.free] * tied.n[span]
        return weight.sum(axis=1), np.asarray((tied.mean[span].T @ weight.T).T)

    def result(self, parts: tuple[Array, ...]) -> Sums:
        return Sums(parts[0], parts[1], None, np.zeros((self.free, self.p)))


class _Weighted(Runner):
    form: Weighted

    def _prepare(self, tied: Tied) -> None:
        self._precision, self._mean = (np.ascontiguousarray(a.T) for a in self.form[:2])
        self._own = self._precision if tied.second is None or tied.second.ndim == 2 else self._precision[:1]

    def scores(self, tied: Tied, span: slice) -> Array:
        rows = tied.mean[span]
        scores = np.empty((rows.shape[0], self.K))
        kernels().weighted_scores(rows, self._precision, self._mean, self.form.offset, scores)
        if tied.second is not None:
            scores -= 0.5 * tied.second[span].reshape(rows.shape[0], -1) @ self._own
        return scores

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        mass, first, second = np.zeros(self.free), np.zeros((self.free, self.p)), np.zeros((self.free, self.p))
        centre = self.form.mean[: self.free]
        kernels().add_squares(tied.mean[span], tied.n[span], resp[: self.free], centre, mass, first, second)
        if tied.second is not None:
            own = (resp[: self.free] * tied.n[span]) @ tied.second[span].reshape(resp.shape[1], -1)
            second += own / (self.p if tied.second.ndim == 1 else 1)  # of a sum over columns each gets its part
        return mass, first, second

    def result(self, parts: tuple[Array, ...]) -> Sums:
        return Sums(parts[0], parts[1], parts[2], self.form.mean[: self.free])


class _Whitened(Runner):
    form: Whitened

    def _prepare(self, tied: Tied) -> None:
        root, mean, _ = self.form
        per = max(1, _COLUMNS // self.p)
        groups = [slice(k, min(k + per, self.K)) for k in range(0, self.K, per)]
        # column d K + k of a product is direction d of component k: squares are then added across components
        self._groups = [
            (
                g,
                np.ascontiguousarray(root[g].transpose(1, 2, 0).reshape(self.p, -1)),
                np.ascontiguousarray(np.einsum("kd,kde->ek", mean[g], root[g])),
            )
            for g in groups
        ]
        widest = max(shift.size for _, _, shift in self._groups)
        self._tile = max(64, _HELD // widest)
        self._near = _FAR / (np.finfo(float).eps * np.sqrt(self.p) * np.abs(root).max())
        if tied.second is not None:
            self._upper = np.triu_indices(self.p)
            twice = np.where(self._upper[0] == self._upper[1], 0.5, 1.0)
            precision = np.einsum("kde,kfe->kdf", root, root)
            self._packed = np.ascontiguousarray((precision[:, self._upper[0], self._upper[1]] * twice).T)

    def scores(self, tied: Tied, span: slice) -> Array:
        rows = tied.mean[span]
        scores = np.empty((rows.shape[0], self.K))
        far = max(rows.max(initial=0.0), -rows.min(initial=0.0)) > self._near
        for start in range(0, rows.shape[0], self._tile):
            some, target = rows[start : start + self._tile], scores[start : start + self._tile]
            for group, root, shift in self._groups:
                products = self._centred(some, group) if far else some @ root
                origin = np.zeros_like(shift) if far else shift
                kernels().whitened_scores(products, origin, self.form.offset[group], group.start, target)
        if tied.second is not None:
            scores -= tied.second[span] @ self._packed
        return scores

    def _centred(self, rows: Array, group: slice) -> Array:
        """Whitened differences from the means, where whitened rows less whitened means would lose digits."""
        gaps = [(rows - mean) @ root for root, mean in zip(self.form.root[group], self.form.mean[group])]
        return np.stack(gaps, axis=2).reshape(rows.shape[0], -1)

    def sums(self, tied: Tied, span: slice, resp: Array) -> tuple[Array, ...]:
        rows, weight = tied.mean[span], tied.n[span]
        gram = np.empty((self.free, self.p + 1, self.p + 1))
        held = np.empty((rows.shape[0], self.p + 1))
        for k in range(self.free):
            some = held[: kernels().collect(rows, weight, resp[k], self.form.mean[k], held)]
            gram[k] = some.T @ some
        if tied.second is not None:
            packed = (resp[: self.free] * weight) @ tied.second[span]
            i, j = self._upper
            gram[:, i + 1, j + 1] += packed
            gram[:, j + 1, i + 1] += np.where(i == j, 0.0, packed)
        return (gram,)

    def result(self, parts: tuple[Array, ...]) -> Sums:
        gram = parts[0]
        return Sums(gram[:, 0, 0], gram[:, 0, 1:], gram[:, 1:, 1:], self.form.mean[: self.free])


_RUNNERS: dict[Any, type[Runner]] = {Linear: _Linear, Weighted: _Weighted, Whitened: _Whitened}


def make_runner(form: Form, free: int, tied: Tied) -> Runner:
    """The runner of a form."""
    return _RUNNERS[type(form)](form, free, tied)
