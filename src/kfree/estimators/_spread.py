"""Dask collections as X: rows that stay where they are while clusters are fitted, and what models say of them."""

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._sklearn import check_header, check_weighted_table, refuse_frames_of_dask
from kfree.families import Array
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.models.clusters import LocalProblem, Model
from kfree.models.matching import Matched, match_components
from kfree.models.mixture_model import MixtureModel
from kfree.models.sharded import Look, ShardedProblem, first_look
from kfree.models.sharded_mixtures import labels_of_rows, match_blocks
from kfree.rows import set_span_threads
from kfree.rows.blocks import Blocks, naming_the_block
from kfree.rows.dask import DaskTable, is_dask, map_rows

# Bytes of a block of answers from which a worker may lack the room.
_LARGE = 2.0**30


class Binding(NamedTuple):
    """How rows are bound to what is looked for in them."""

    here: Callable[[Any, Any], Any]  # rows and weights in memory
    look: Callable[[Blocks], Look]  # a first look at all blocks, which checks them
    spread: Callable[[Blocks, Look], Any]  # blocks that were looked at


def of_clusters(estimator: Any, divergence: Any, weighting: str, *smoothing: Any) -> Binding:
    """Rows bound to a divergence."""

    def spread(blocks: Blocks, seen: Look) -> ShardedProblem:
        refuse_what_needs_all_rows(estimator)
        return ShardedProblem.of(blocks, seen, divergence, weighting, *smoothing)

    def here(X: Any, weight: Any) -> LocalProblem:
        return LocalProblem.of(X, weight, divergence, weighting, *smoothing)

    return Binding(here, lambda blocks: first_look(blocks, divergence, weighting), spread)


class RowsHere:
    """Rows in memory, or in files that are mapped."""

    def __init__(self, estimator: Any, X: Any, sample_weight: Any, *, reset: bool = True) -> None:
        self.X, self.weight = check_weighted_table(estimator, X, sample_weight, reset=reset)

    def bind(self, how: Binding) -> Any:
        """The rows and what is looked for in them."""
        return how.here(self.X, self.weight)

    def likeliest(self, mixture: MixtureModel) -> Any:
        """Likeliest component of each row."""
        return mixture.labels(self.X)

    def match(self, mixture: MixtureModel, match_to: Any, labels: Array | None = None) -> Matched:
        """Which components are the same as earlier ones; labels that are known already need not be found."""
        labels = mixture.labels(self.X) if labels is None else labels
        return match_components(mixture, match_to, self.X, labels)

    def labels(self, labels: Any) -> Any:
        """Labels as they are published."""
        return labels

    def ask(self, function: Callable[[Any], Array], dtype: Any) -> Any:
        """What a function of rows says of all of them."""
        return function(self.X)

    def lazily(self, here: Array, function: Callable[[Any], Array] | None) -> Any:
        """Entries of rows as they are published."""
        return here

    def strengths(self, problem: Any, model: Model, labels: Any, radius: float) -> Any:
        """How strongly rows belong to their clusters."""
        return model.strengths(problem.table, labels, radius)

    def close(self) -> None:
        """Nothing is held."""


class RowsSpread:
    """Rows of a Dask collection. Few of them are fitted in memory, as searches look at all rows of a short table."""

    def __init__(self, estimator: Any, X: Any, sample_weight: Any) -> None:
        self._table = DaskTable(X, sample_weight)
        check_header(estimator, self._table.header, reset=True)
        self._estimator, self._blocks = estimator, self._table.blocks()
        self._all_sizes: list[int] = []
        self._sizes: list[int] = []  # of blocks that are not empty
        self._here: RowsHere | None = None

    def bind(self, how: Binding) -> Any:
        """The rows and what is looked for in them."""
        seen = how.look(self._blocks)
        self._all_sizes = [size for _, size in sorted(seen.sizes)]
        self._sizes = [size for size in self._all_sizes if size]
        if sum(self._sizes) <= CLUSTERS.search_up_to:
            self._here = RowsHere(self._estimator, *self._table.gathered())
            check_header(self._estimator, self._table.header, reset=True)  # names are not gathered
            return self._here.bind(how)
        return how.spread(self._blocks, seen)

    def likeliest(self, mixture: MixtureModel) -> Any:
        """Likeliest component of each row, as a Dask array with blocks of known sizes."""
        if self._here is not None:
            return self._table.spread(self._here.likeliest(mixture))
        return self._table.like(self._blocks.keep(labels_of_rows, (mixture,)), self._sizes, np.intp)

    def match(self, mixture: MixtureModel, match_to: Any, labels: Array | None = None) -> Matched:
        """Which components are the same as earlier ones."""
        return match_blocks(self._blocks, mixture, match_to)

    def labels(self, labels: Any) -> Any:
        """Labels as a Dask array with blocks of known sizes."""
        if self._here is not None:
            return self._table.spread(labels)
        return self._table.like(labels, self._sizes, np.int32)

    def ask(self, function: Callable[[Any], Array], dtype: Any) -> Any:
        """What a function of rows says of all of them, lazily, as a Dask array with blocks of known sizes."""
        return self._table.lazily(function, self._all_sizes, np.empty(0, dtype))

    def lazily(self, here: Array, function: Callable[[Any], Array] | None) -> Any:
        """Entries of rows, made of each block when they are asked for; ``here`` is what there is of them in memory, or
        what none have."""
        if function is None:
            return self._table.spread(here)
        return self._table.lazily(function, self._all_sizes, here[:0])

    def strengths(self, problem: Any, model: Model, labels: Any, radius: float) -> Any:
        """How strongly rows belong to their clusters, lazily."""
        return self.ask(partial(_strengths, model, radius), np.float64)

    def close(self) -> None:
        """What workers keep of the rows may go."""
        self._blocks.close()


Rows = RowsHere | RowsSpread


def given_rows(estimator: Any, X: Any, sample_weight: Any) -> Rows:
    """The rows of a fit, wherever they are."""
    return (RowsSpread if is_dask(X) else RowsHere)(estimator, X, sample_weight)


@contextmanager
def blocks_of(estimator: Any, X: Any, sample_weight: Any) -> Iterator[Blocks]:
    """The blocks of a Dask collection that a fitted estimator is asked about."""
    table = DaskTable(X, sample_weight)
    check_header(estimator, table.header, reset=False)
    with closing(table.blocks()) as blocks, set_span_threads():
        yield blocks


def refuse_batch(X: Any) -> None:
    """A batch is held in memory: whoever learns from many of them gives one after the other."""
    if is_dask(X):
        parts = "X.partitions" if hasattr(X, "columns") else "X.blocks"
        raise TypeError(
            f"partial_fit learns from one batch in memory, and X is a Dask {type(X).__name__}. Pass its blocks one "
            f"after the other: for part in {parts}: model.partial_fit(part.compute()). fit(X) takes all of them where "
            "they are."
        )


def refuse_what_needs_all_rows(estimator: Any) -> None:
    """Parameters with which a fit would look at rows one by one."""
    wish = {name: getattr(estimator, name) for name in ("algorithm", "order", "search", "init")}
    way_out = "kfree.read(X) brings the rows to a file here, block by block, and takes every parameter."
    if wish["algorithm"] not in ("batch", "delayed"):
        raise ValueError(
            f"algorithm={wish['algorithm']!r} visits rows one by one, which blocks of Dask do not allow. Use "
            f'algorithm="batch"; {way_out}'
        )
    if not isinstance(wish["order"], str):
        raise ValueError(f"order is a permutation of the rows, which blocks of Dask do not allow. Leave it; {way_out}")
    if isinstance(wish["init"], str) and wish["init"] not in ("auto", "mean"):
        raise ValueError(
            f'init={wish["init"]!r} takes a pass over all rows for every centre. Use init="auto", or pass centres; '
            f"{way_out}"
        )
    given = not isinstance(wish["init"], str) or (estimator.warm_start and hasattr(estimator, "_model"))
    priced = estimator.radius is None and estimator.n_clusters is None
    radius = estimator.radius is not None
    if wish["search"] in ("polish", "full") if radius else given and priced and wish["search"] not in ("points",):
        raise ValueError(f'search={wish["search"]!r} would move rows one by one here. Use search="points"; {way_out}')


def by_block(dtype: Any, width: Callable[..., int] | None = None) -> Callable[[Any], Any]:
    """A method that says something of each row: of a Dask collection lazily, a block at a time. ``width`` gives the
    number of columns, if there are several; ``dtype`` is None where it is that of the rows."""

    def decorate(method: Any) -> Any:
        @wraps(method)
        def asked(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_dask(X):
                return method(self, X, *args, **kwargs)
            check_is_fitted(self)
            refuse_frames_of_dask(self, method.__name__)
            table = DaskTable(X)
            check_header(self, table.header, reset=False)
            kind = np.dtype(dtype) if dtype is not None else _kind(table.array.dtype)
            columns = None if width is None else width(self, **kwargs)
            nothing = np.empty((0,) if columns is None else (0, columns), kind)
            # as it is now: answers that are asked for later are not those of a later fit
            said = partial(_of_block, pickle.dumps(self), method.__name__, args, kwargs, nothing)
            _warn_of_large_blocks(table.array.chunks[0], nothing, method.__name__)
            return map_rows(X, said, kind, columns)

        return asked

    return decorate


def _kind(dtype: Any) -> Any:
    return np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)


def _warn_of_large_blocks(sizes: Any, nothing: Array, what: str) -> None:
    """A block of answers has a number for each row and column, however few columns the rows have."""
    columns = 1 if nothing.ndim == 1 else nothing.shape[1]
    size = max((size for size in sizes if not np.isnan(size)), default=0) * columns * nothing.itemsize
    if size > _LARGE:
        warnings.warn(
            f"{what} gives {columns} numbers for each row, so that a block of it takes up to {size / _LARGE:.1f} GiB "
            "of a worker. Cut X in smaller blocks before, with X.rechunk, or ask predict.",
            UserWarning,
            stacklevel=3,
        )


def _of_block(sent: bytes, method: str, args: Any, kwargs: Any, nothing: Array, X: Any) -> Array:
    """What an estimator says of a block, as plain numbers."""
    if not X.shape[0]:
        return nothing
    said = naming_the_block(partial(getattr(pickle.loads(sent), method), **kwargs), X, *args, number=None)
    return said if isinstance(said, np.ndarray) else np.asarray(said)


def labels_within(model: Model, radius: float, X: Any) -> Array:
    """Labels of rows, -1 for those farther than a radius from every centre."""
    if not X.shape[0]:
        return np.empty(0, np.int32)
    labels, cost = model.nearest(X)
    labels[cost > radius] = -1
    return labels


def _strengths(model: Model, radius: float, X: Any) -> Array:
    if not X.shape[0]:
        return np.empty(0)
    table, labels = model.table(X, np.empty(0)), model.nearest(X)[0]
    return model.strengths(table, labels, radius)
