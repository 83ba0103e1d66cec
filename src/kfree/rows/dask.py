"""Dask arrays and dataframes: blocks that lie on the workers of a cluster, or that the scheduler of Dask makes.

Tasks are pure functions of a block and a question, so it does not matter which worker answers, how often, or whether it
was killed meanwhile. What is kept beside a block is in the memory of whoever answered last, which is asked first.
"""

import contextlib
import logging
import pickle
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any
from zlib import crc32

import numpy as np

from kfree.families import Array
from kfree.rows.blocks import (
    A,
    Beside,
    BlockError,
    Blocks,
    Kept,
    NearBlocks,
    Question,
    RowBlock,
    answer,
    naming_the_block,
)
from kfree.rows.threads import set_span_threads

_LOGGER = logging.getLogger("kfree")
# Answers that are merged by one task.
_FAN_IN = 16
# Bytes of arguments from which they are sent once, not with every task.
_LARGE = 100_000
# Seconds between looks at tasks; without any progress after which they are asked again of whoever is there; and how
# often.
_LOOK, _PATIENCE, _ATTEMPTS = 2.0, 12.0, 3
# Seconds after which a worker that has not been heard of does no work.
_SILENCE = 20.0

_NONE = np.empty(0)


def is_dask(value: Any) -> bool:
    """Whether something is a Dask collection, without importing Dask."""
    return any(kind.__module__.split(".")[0] in ("dask", "dask_expr", "dask_array") for kind in type(value).__mro__)


class DaskTable:
    """Rows of a Dask collection with their weights, in blocks."""

    def __init__(self, X: Any, weight: Any = None) -> None:
        self.array = rows_as_blocks(X)
        self._weight = None if weight is None else _as_weight(weight, self.array)
        #: A table without rows that has the columns.
        self.header = header_of(X) if hasattr(X, "columns") else np.empty((0, self.array.shape[1]), self.array.dtype)

    def blocks(self) -> Blocks:
        """The blocks, on the cluster that is this process's; without one they are made here, one after the other."""
        import dask

        made = list(self.array.to_delayed().ravel())
        if self._weight is not None:
            # optimised together, so that what rows and weights have in common is made once
            both = dask.optimize(self.array, self._weight)
            X, weight = (list(one.to_delayed(optimize_graph=False).ravel()) for one in both)
            made = [dask.delayed(_pair, pure=True)(*pair) for pair in zip(X, weight)]
        client = _client()
        return NearBlocks(_Maker(made), len(made)) if client is None else WorkerBlocks(client, made)

    def gathered(self) -> tuple[Any, Any]:
        """All rows and weights, in this process."""
        import dask

        X, weight = dask.compute(self.array, self._weight)
        return X, weight

    def like(self, kept: Kept, sizes: Sequence[int], dtype: Any) -> Any:
        """A Dask array with an entry for each row, in blocks of known sizes."""
        import dask.array as da

        parts = [
            da.from_array(part, chunks=-1) if isinstance(part, np.ndarray) else da.from_delayed(part, (size,), dtype)
            for part, size in zip(kept.parts, sizes)
        ]
        return da.concatenate(parts)

    def spread(self, values: Array) -> Any:
        """An array in memory as a Dask array with the blocks of the rows, where these are known."""
        import dask.array as da

        sizes = self.array.chunks[0]
        known = not any(np.isnan(size) for size in sizes) and sum(sizes) == len(values)
        return da.from_array(values, chunks=(sizes if known else -1, *(-1 for _ in values.shape[1:])))

    def pieces(self, values: Any, sizes: Sequence[int]) -> Any:
        """What is in memory, an array or a CSR matrix, as a Dask array in blocks of these sizes."""
        import dask
        import dask.array as da

        parts = [values[stop - size : stop] for size, stop in zip(sizes, accumulate(sizes))]
        whole = [dask.delayed(part, traverse=False, pure=False) for part in parts]
        return da.concatenate([da.from_delayed(made, part.shape, meta=part[:0]) for made, part in zip(whole, parts)])

    def lazily(self, function: Callable[[Any], Any], sizes: Sequence[int], like: Any) -> Any:
        """What a function says of the rows of each block, so many entries (or rows), when it is asked for. ``like`` is
        what it says of none."""
        chunks = (tuple(sizes), *((size,) for size in like.shape[1:]))
        drop = 1 if like.ndim == 1 else None
        asked = partial(_of_rows, pickle.dumps(function))  # else its arrays may come unaligned
        return self.array.map_blocks(asked, dtype=like.dtype, chunks=chunks, drop_axis=drop, meta=like)


class _Maker:
    """Makes blocks in this process whenever they are asked for; they must be the same rows each time."""

    def __init__(self, made: list[Any]) -> None:
        self._made = made
        self._seen: dict[int, int] = {}

    def __call__(self, number: int) -> RowBlock:
        """The rows of a block."""
        block = _block(number, self._made[number].compute())
        fingerprint = _fingerprint(block)
        if self._seen.setdefault(number, fingerprint) != fingerprint:
            raise BlockError(
                number,
                "they come in another order, or are others, each time the block is made, as those of shuffle, merge "
                "and set_index do without a cluster. Start a Client or call X.persist() before, or bring the rows to "
                "a file: kfree.read(X).",
            )
        return block


def _pair(X: Any, weight: Any) -> tuple[Any, Any]:
    """Rows with their weights, which are made together or not at all."""
    return X, weight


def _fingerprint(block: RowBlock) -> int:
    """What changes if rows or their order do."""
    X, code = block.X, 0
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    for part in (*parts, block.weight):
        code = crc32(np.ascontiguousarray(part).view(np.uint8).data, code)
    return code


def map_rows(X: Any, function: Callable[[Any], Array], dtype: Any, width: int | None = None) -> Any:
    """What a function of rows gives for each block: as long as the rows, lazily; of a dataframe a series (or frame)
    with its index."""
    if hasattr(X, "columns"):
        import pandas as pd

        if width is None:
            return X.map_partitions(_series, function, meta=pd.Series([], dtype=dtype))
        return X.map_partitions(_frame, function, meta=pd.DataFrame(np.empty((0, width), dtype)))
    array = rows_as_blocks(X)
    if width is None:
        return array.map_blocks(function, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype))
    chunks = (array.chunks[0], (width,))
    return array.map_blocks(function, dtype=dtype, chunks=chunks, meta=np.empty((0, width), dtype))


def _series(frame: Any, function: Callable[[Any], Array]) -> Any:
    import pandas as pd

    return pd.Series(function(frame), index=frame.index)


def _frame(frame: Any, function: Callable[[Any], Array]) -> Any:
    import pandas as pd

    return pd.DataFrame(function(frame), index=frame.index)


def map_parts(values: Any, function: Callable[[Any], Any], width: int | None = None) -> Any:
    """A function of each block of what was made of rows, lazily if it is a Dask array; ``width`` is the new number of
    columns."""
    if not is_dask(values):
        return function(values)
    chunks = values.chunks if width is None else (values.chunks[0], (width,))
    return values.map_blocks(function, dtype=values.dtype, chunks=chunks, meta=values._meta)


def parts_of(X: Any) -> Iterator[Any]:
    """The blocks of a collection, one after the other, in this process."""
    for part in np.ravel(X.to_delayed()):
        yield part.compute()


def asked_of_parts(X: Any, ask: Callable[[Any], Any]) -> Iterator[Any]:
    """What a function says of each block, one after the other. The block, which may be other rows each time it is made,
    is made once for it."""
    import dask

    asked = dask.delayed(naming_the_block, pure=False)
    for number, part in enumerate(np.ravel((X if hasattr(X, "columns") else rows_as_blocks(X)).to_delayed())):
        yield asked(ask, part, number=number).compute()


def header_of(frame: Any) -> Any:
    """A frame without rows that has the columns of a Dask dataframe, with their types."""
    from dask.dataframe.utils import make_meta

    return make_meta(frame)


def rows_as_blocks(X: Any) -> Any:
    """A collection as an array whose blocks are whole rows."""
    from dask.delayed import Delayed

    if isinstance(X, Delayed):  # which has whatever attribute it is asked for
        raise TypeError(
            "X is a Dask Delayed, of which nobody knows what it will be. Pass da.from_delayed(X, shape, dtype), "
            "dd.from_delayed(X), or X.compute()."
        )
    if hasattr(X, "columns"):
        if X.ndim != 2:
            raise ValueError(f"X is a Dask {type(X).__name__}, which has one axis. Pass a dataframe: X.to_frame().")
        X = _numbers_of(X)
    if not hasattr(X, "chunks"):
        raise TypeError(f"X is a Dask {type(X).__name__}. Pass a Dask array or dataframe.")
    if X.ndim != 2:
        raise ValueError(f"X is a Dask array with {X.ndim} axes; rows and columns are needed.")
    if X.shape[1] == 0:
        raise ValueError("X has 0 columns. Pass at least one.")
    if X.dtype.kind not in "biuf":
        raise ValueError(
            f"X holds values of type {X.dtype}. Select the columns that are numbers, or make them numbers: "
            "X.astype(float)."
        )
    return X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})


def _numbers_of(frame: Any) -> Any:
    """A Dask dataframe as an array of one type, as scikit-learn makes of such frames in memory."""
    from pandas.api.types import is_numeric_dtype

    kinds = list(header_of(frame).dtypes)
    plain = all(isinstance(kind, np.dtype) for kind in kinds)
    if (len(set(kinds)) == 1 and plain) or not all(map(is_numeric_dtype, kinds)):
        return frame.to_dask_array()
    single = plain and np.result_type(*kinds) in (np.float16, np.float32)
    return frame.astype(np.float32 if single else np.float64).to_dask_array()


def _as_weight(weight: Any, X: Any) -> Any:
    """Weights in the blocks of the rows."""
    import dask.array as da

    known = not any(np.isnan(size) for size in X.chunks[0])
    if not is_dask(weight):
        weight = np.asarray(weight, dtype=np.float64)
        if not known:
            raise ValueError(
                "sample_weight is in memory, and how many rows the blocks of X have is not known. Pass it as a column "
                "of the same Dask dataframe, or make the sizes known before: X.compute_chunk_sizes() of an array, "
                "X.to_dask_array(lengths=True) of a dataframe."
            )
        weight = da.from_array(weight, chunks=-1)
    elif not hasattr(weight, "chunks"):
        weight = weight.to_dask_array()
    if weight.ndim != 1:
        raise ValueError(f"sample_weight has {weight.ndim} axes. Pass one weight for each row.")
    if known and weight.shape[0] == X.shape[0]:
        return weight.rechunk((X.chunks[0],))
    unknown = not known or np.isnan(weight.shape[0])
    if unknown and weight.numblocks[0] == X.numblocks[0]:
        return weight  # lengths are compared when they are known
    raise ValueError(
        f"sample_weight has shape {weight.shape} in {weight.numblocks[0]} blocks, but X has shape {X.shape} in "
        f"{X.numblocks[0]}. Pass one weight for each row, in the same blocks."
    )


def _client() -> Any:
    """The client of this process; None without one."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def _step_aside() -> contextlib.ExitStack:
    """A fit inside of a task of the cluster waits for other tasks: until it ends, its thread is free for them."""
    from distributed import get_worker, worker_client

    stack = contextlib.ExitStack()
    try:
        get_worker()
    except ValueError:
        return stack
    stack.enter_context(worker_client())
    return stack


def _block(number: int, made: Any) -> RowBlock:
    """Rows, or rows and weights, as kernels take them."""
    X, weight = made if isinstance(made, tuple) else (made, None)
    X = _aligned_sparse(X.tocsr()) if hasattr(X, "tocsr") else _aligned(np.asarray(X))
    return RowBlock(X, _NONE if weight is None else _weights(number, np.asarray(weight), X.shape[0]), number)


def _weights(number: int, weight: Array, n: int) -> Array:
    """Weights of so many rows of a block."""
    if weight.size != n:
        raise BlockError(number, f"sample_weight has {weight.size} entries where X has {n} rows.")
    if weight.dtype.kind == "c":
        raise BlockError(number, "sample_weight must hold real numbers, got complex ones.")
    try:
        return _aligned(np.ascontiguousarray(weight, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise BlockError(number, f"sample_weight must hold numbers, none of them missing: {error}.") from error


def _of_rows(sent: bytes, X: Any) -> Any:
    """A function of the rows of a block as kernels take them."""
    return _unpacked(sent)(_block(0, X).X)


def _aligned(values: Array) -> Array:
    """Numbers in their places in memory, where they are not as they came over the network."""
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        return values.astype(np.float64)
    return values if values.flags.aligned else values.copy()


def _aligned_sparse(X: Any) -> Any:
    """The same, with one entry for each place."""
    kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    parts = X.data.astype(kind, copy=False), X.indices, X.indptr
    if not all(part.flags.aligned for part in parts) or X.dtype != kind:
        X = type(X)(tuple(map(_aligned, parts)), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


# -- on the side of a worker -------------------------------------------------------------------------------------------

#: What is kept beside blocks, by table and number.
_BESIDE: dict[tuple[str, int], Beside] = {}
_COPIED = "as kernels take it"
_DOOR = threading.Lock()


def _beside(table: str, number: int) -> Beside:
    with _DOOR:
        return _BESIDE.setdefault((table, number), {})


def _kept_block(number: int, made: Any, beside: Beside) -> RowBlock:
    """A block as kernels take it. If it had to be copied for that, the copy is kept: there are many questions."""
    if _COPIED in beside:
        return beside[_COPIED]
    block = _block(number, made)
    if block.X is not (made[0] if isinstance(made, tuple) else made):
        beside[_COPIED] = block
    return block


def _bundle(table: str, numbers: Sequence[int], made: list[Any], question: Question, sent: Any, merge: Any) -> Any:
    """The merged answers of some blocks that are here."""
    merged, arguments = None, _unpacked(sent)
    with set_span_threads(1):
        for place, number in enumerate(numbers):
            beside = _beside(table, number)
            said = answer(question, _kept_block(number, made[place], beside), beside, arguments)
            merged = said if place == 0 else merge(merged, said)
    return merged


def _one(table: str, number: int, made: Any, question: Question, sent: Any) -> Any:
    """The answer of one block."""
    beside = _beside(table, number)
    with set_span_threads(1):
        return answer(question, _kept_block(number, made, beside), beside, _unpacked(sent))


def _merged(parts: list[Any], merge: Any) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = merge(found, part)
    return found


def _itself(value: Any) -> Any:
    return value


def _unpacked(sent: Any) -> Any:
    return pickle.loads(sent) if isinstance(sent, bytes) else sent


def _forget(table: str) -> None:
    with _DOOR:
        for key in [key for key in _BESIDE if key[0] == table]:
            del _BESIDE[key]


# -- on the side of whoever asks ---------------------------------------------------------------------------------------


class WorkersLost(RuntimeError):
    """Nobody answers."""


class WorkerBlocks(Blocks):
    """Blocks that lie on the workers of a cluster: they are made once, and again if the worker that has one is lost."""

    def __init__(self, client: Any, made: list[Any]) -> None:
        self._client, self._table, self._aside = client, uuid.uuid4().hex, _step_aside()
        self._heard: dict[str, tuple[float, float]] = {}
        self._numbers, self.count = list(range(len(made))), len(made)
        self._homes: list[tuple[str | None, list[int]]] = []
        self._made = self._await(client.compute(made), [partial(client.compute, block) for block in made])
        self._homes = self._where()
        self._forget = weakref.finalize(self, _forget_everywhere, client, self._table)

    def some(self, numbers: Sequence[int]) -> "WorkerBlocks":
        """Only these blocks, from now on."""
        self._numbers, self.count = list(numbers), len(numbers)
        self._homes = self._where()
        return self

    def ask(self, question: Question, arguments: Sequence[Any], merge: Callable[[A, A], A]) -> A:
        """The merged answers of all blocks."""
        sent = self._send(arguments)

        def submit(numbers: list[int], home: str | None) -> Any:
            task = _bundle, self._table, numbers, [self._made[i] for i in numbers], question, sent, merge
            return self._client.submit(*task, pure=False, **_at(home))

        parts = self._answers(submit)
        while len(parts) > _FAN_IN:
            groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
            tasks = [partial(self._client.submit, _merged, group, merge, pure=False) for group in groups]
            parts = self._await([task() for task in tasks], tasks)
        return _merged(self._client.gather(parts), merge)

    def keep(self, question: Question, arguments: Sequence[Any]) -> Kept:
        """Answers that stay with the workers."""
        sent = self._send(arguments)
        homes = self._home_of()

        def submit(i: int, home: str | None) -> Any:
            task = _one, self._table, i, self._made[i], question, sent
            return self._client.submit(*task, pure=False, **_at(home))

        tasks = [submit(i, homes.get(i)) for i in self._numbers]
        return Kept(self._await(tasks, [partial(submit, i, None) for i in self._numbers]))

    def close(self) -> None:
        """What was kept beside the blocks may go."""
        self._forget()
        self._aside.close()

    def _send(self, arguments: Sequence[Any]) -> Any:
        """Arguments for many tasks: large ones go once, as a task whose worker may be lost, unlike scattered data."""
        packed = pickle.dumps(tuple(arguments), protocol=pickle.HIGHEST_PROTOCOL)
        return self._client.submit(_itself, packed, pure=False) if len(packed) > _LARGE else packed

    def _where(self) -> list[tuple[str | None, list[int]]]:
        """Which blocks are asked together: those of one worker, in a task for each of its threads."""
        homes = self._home_of()
        by_home: dict[str | None, list[int]] = {}
        for i in self._numbers:
            by_home.setdefault(homes.get(i), []).append(i)
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        bundles = []
        for home, numbers in by_home.items():
            size = -(-len(numbers) // (workers[home]["nthreads"] if home in workers else 1))
            bundles += [(home, numbers[start : start + size]) for start in range(0, len(numbers), size)]
        return bundles

    def _home_of(self) -> dict[int, str]:
        """A worker that has a block, for each."""
        held = self._client.who_has(self._made)
        alive = self._client.scheduler_info(n_workers=-1)["workers"]
        places = {i: [w for w in held.get(self._made[i].key, ()) if w in alive] for i in self._numbers}
        return {i: workers[0] for i, workers in places.items() if workers}

    def _answers(self, submit: Callable[[list[int], str | None], Any]) -> list[Any]:
        """A finished task for every bundle."""
        alive = self._alive()
        if any(home is None or home not in alive for home, _ in self._homes):
            self._homes = self._where()  # blocks of a worker that has left are made elsewhere
        tasks = [submit(numbers, home) for home, numbers in self._homes]
        return self._await(tasks, [partial(submit, numbers, None) for _, numbers in self._homes])

    def _alive(self) -> Any:
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def _await(self, tasks: list[Any], again: Sequence[Callable[[], Any]]) -> list[Any]:
        """Wait for tasks, as long as somebody works on them; those that nobody does are submitted again. Returns the
        tasks that are finished."""
        from distributed import CancelledError, wait

        attempts, last, since = 0, -1, time.monotonic()
        tasks = list(tasks)
        try:
            while True:
                with contextlib.suppress(TimeoutError, CancelledError):
                    wait(tasks, timeout=_LOOK)
                bad = [place for place, task in enumerate(tasks) if task.status in ("error", "cancelled")]
                done = sum(task.status == "finished" for task in tasks)
                if done == len(tasks):
                    return tasks
                stuck = not self._anybody_works() and time.monotonic() - since > _PATIENCE
                if done > last:
                    last, since = done, time.monotonic()
                if bad:
                    _raise_own(tasks[bad[0]])
                if not bad and not stuck:
                    continue
                attempts += 1
                if attempts > _ATTEMPTS:
                    raise self._lost(tasks, bad)
                _LOGGER.warning("%d of %d tasks are asked again: their workers are lost", len(tasks) - done, len(tasks))
                for place, task in enumerate(tasks):
                    if task.status != "finished":
                        tasks[place] = again[place]()
                since = time.monotonic()
        except BaseException:
            with contextlib.suppress(Exception):
                self._client.cancel([task for task in tasks if task.status == "pending"], force=True)
            raise

    def _anybody_works(self) -> bool:
        """Whether a worker that is there, and says so, has something in work: the tasks, or what they need."""
        busy = self._client.processing()
        speaking = [worker for worker, known in self._alive().items() if self._speaks(worker, known)]
        return any(busy.get(worker) for worker in speaking)

    def _speaks(self, worker: str, known: Any) -> bool:
        """Whether a worker has been heard of lately: one that is stopped keeps its tasks and says nothing."""
        now, said = time.monotonic(), known.get("last_seen", 0.0)
        last, since = self._heard.get(worker, (None, now))
        if said != last:
            since = now
        self._heard[worker] = said, since
        return now - since < _SILENCE

    def _lost(self, tasks: list[Any], bad: list[int]) -> Exception:
        workers = sorted(self._alive())
        there = f"{len(workers)} workers are there: {', '.join(workers[:4])}" if workers else "no worker is there"
        text = f"The cluster does not answer after {_ATTEMPTS} attempts; {there}."
        if bad:
            error = tasks[bad[0]].exception() if tasks[bad[0]].status == "error" else tasks[bad[0]].status
            text += f" The last error: {error!r}."
        return WorkersLost(f"{text} Look at the workers' logs and memory, start workers, and fit again.")


def _at(home: str | None) -> dict[str, Any]:
    """Where a task is to run: at home, for to bring its block elsewhere takes longer than to wait a little."""
    return {} if home is None else {"workers": [home], "allow_other_workers": True}


def _raise_own(task: Any) -> None:
    """Raise an error that is about the rows, and would come again."""
    if task.status != "error":
        return
    error = task.exception()
    if isinstance(error, BlockError) or type(error).__module__.split(".")[0] not in ("distributed", "asyncio"):
        raise error


def _forget_everywhere(client: Any, table: str) -> None:
    """A task for every worker, which nobody waits for: one of them may never answer."""
    with contextlib.suppress(Exception):
        from distributed import fire_and_forget

        if client.status == "running":
            for worker in client.scheduler_info(n_workers=-1)["workers"]:
                # one that has just been lost would never run it
                fire_and_forget(client.submit(_forget, table, workers=[worker], allow_other_workers=True, pure=False))
