"""What is taken from scikit-learn besides its base classes, in one place: validation, its kd-tree, and callbacks."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import KDTree
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_array, validate_data

from kfree.families import Array
from kfree.inference.loop import Info
from kfree.models.checks import check_finite
from kfree.models.table_reading import library_of
from kfree.rows.dask import is_dask
from kfree.rows.source import Source
from kfree.rows.tree import Slices

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there are none
    CallbackSupportMixin, with_callbacks = object, None

# Precision and memory order are kept; finiteness is checked below, with a message that says where.
_AS_IT_IS: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "order": None, "ensure_all_finite": False}
# Rows in the last nodes of a kd-tree; smaller ones are made as they are needed.
_LEAF = 32


def check_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a 2-d array in its own precision, or as canonical CSR; finite, with the columns of the fit."""
    _refuse_anndata(X)
    refuse_dask(X)
    if isinstance(X, Source):
        return _settle(_mapped(estimator, X, reset))
    return _settle(validate_data(estimator, X, reset=reset, **_AS_IT_IS))


def check_plain_table(X: Any) -> Any:
    """The same for functions, which have no columns to compare with."""
    _refuse_anndata(X)
    refuse_dask(X)
    return _settle(check_array(X.array if isinstance(X, Source) else X, input_name="X", **_AS_IT_IS))


def check_weighted_table(estimator: Any, X: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any]:
    """The same, with the weights of rows: those given, or the column that was named when a file was read."""
    weight = weight_of(X, sample_weight)
    return check_table(estimator, X, reset=reset), weight


def weight_of(X: Any, sample_weight: Any) -> Any:
    """Weights of rows that come with them, or are given; not both."""
    refuse_dask(sample_weight, "sample_weight")
    weight = X.weight if isinstance(X, Source) else None
    if weight is not None and sample_weight is not None:
        raise ValueError(
            "X was read with a column of weights, and sample_weight is given too. Leave sample_weight out, or read X "
            "without weight=."
        )
    return sample_weight if weight is None else weight


def refuse_weights(X: Any, who: str) -> None:
    """What takes no weights must not leave them out silently."""
    if isinstance(X, Source) and X.weight is not None:
        raise ValueError(f"{who} takes no weights. Read X without weight=.")


def refuse_dask(X: Any, name: str = "X") -> None:
    """A Dask collection would be pulled to this machine as a whole by whoever looks at its values."""
    if is_dask(X) and name != "X":
        raise TypeError(f"{name} is a Dask {type(X).__name__}, and X is in memory. Pass {name}.compute().")
    if is_dask(X):
        raise TypeError(
            f"X is a Dask {type(X).__name__}, all of which would be pulled to this machine. kfree.read(X) brings it "
            "into a file here, block by block; if there is room, pass X.compute(). DPMeans, HDPTopics, "
            "KernelDPMixture, VariationalDPMixture, KFeatures, BPMeans and StepwiseKFeatures are fitted where rows are."
        )


def refuse_frames_of_dask(estimator: Any, method: str) -> None:
    """A frame of all rows, which scikit-learn would make of what ``transform`` says, would be made on this machine."""
    wanted = _get_output_config("transform", estimator)["dense"] if method == "transform" else "default"
    if wanted != "default":
        raise ValueError(
            f"set_output(transform={wanted!r}) makes one frame of all rows on this machine. Set it to 'default' for "
            "Dask: a Dask dataframe gives a Dask dataframe then, an array an array."
        )


def _mapped(estimator: Any, X: Source, reset: bool) -> Any:
    """Rows of files, with the names that their columns have."""
    if X.columns is None:
        return validate_data(estimator, X.array, reset=reset, **_AS_IT_IS)
    import pyarrow as pa

    check_header(estimator, pa.table({name: pa.array([], pa.float64()) for name in X.columns}), reset=reset)
    return check_array(X.array, input_name="X", estimator=estimator, **_AS_IT_IS)


def check_header(estimator: Any, header: Any, *, reset: bool) -> None:
    """Names and number of columns of rows that are not looked at here."""
    validate_data(estimator, header, reset=reset, skip_check_array=True)


def _refuse_anndata(X: Any) -> None:
    """NumPy would say that it has more than 64 dimensions."""
    if type(X).__name__ == "AnnData":
        raise TypeError(
            "X is an AnnData object, not a table. Use kfree.anndata.cluster(adata), or pass one of its tables, such as "
            "adata.obsm['X_pca']."
        )


def check_frame(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A frame as it is, anything else as an array of its own type, with the columns of the fit; values are not read."""
    refuse_dask(X)
    if isinstance(X, Source):
        raise TypeError(
            f"{type(estimator).__name__} looks at columns of all kinds, and a Source holds numbers only: they need no "
            "preparing. Give it to another estimator, or load the table as a frame."
        )
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # a lazy frame
        X = X.collect()
    if library_of(X):
        _check_frame_shape(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    if not hasattr(X, "__array__") and not sp.issparse(X):
        X = _as_objects(X)
    return validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)


def check_names_in(estimator: Any, names: Any) -> None:
    """Whether names are those of the columns of the fit."""
    _check_feature_names_in(estimator, names)


def _as_objects(X: Any) -> Any:
    """Lists with numbers and text, whose numbers numpy would make text of."""
    plain = np.asarray(X)
    return np.array(X, dtype=object) if plain.dtype.kind in "SU" else plain


def _check_frame_shape(X: Any) -> None:
    """Whether there are rows and columns, and names that tell columns apart."""
    n, p = X.shape
    if not n or not p:
        raise ValueError(f"X has {n} rows and {p} columns; at least 1 of each is needed.")
    names = list(getattr(X, "column_names", X.columns))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"X has {names.count(twice[0])} columns called {twice[0]!r}. Give each a name of its own.")


def _settle(X: Any) -> Any:
    if not sp.issparse(X) and not X.flags.aligned:  # as buffers of files and networks may be
        X = X.copy()
    if X.dtype.kind == "f" and X.dtype.itemsize not in (4, 8):
        X = X.astype("float64")
    check_finite(X)
    if sp.issparse(X):
        if X.dtype.kind != "f":
            X = X.astype("float64")
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def kd_slices(X: Array) -> Slices:
    """The nodes of a kd-tree over one row for each content, in the order of their values: medians then do not hang on
    copies or the order of rows."""
    once, which, copies = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    _, order, nodes, _ = KDTree(once, leaf_size=_LEAF).get_arrays()
    edges = np.concatenate([[0], np.cumsum(copies[order])])
    start, stop = (edges[nodes[name]] for name in ("idx_start", "idx_end"))
    place = np.empty(order.size, np.intp)
    place[order] = np.arange(order.size)
    return Slices(np.argsort(place[which.ravel()], kind="stable"), start, stop)


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator has been fitted."""
    return bool(estimator.__sklearn_is_fitted__())


#: Whether scikit-learn looks at all attributes at once, to show them: no time to make those that are made when asked.
_looking: ContextVar[bool] = ContextVar("_looking", default=False)


class made_when_asked(cached_property):
    """A large attribute that is made when a user asks for it, and kept."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None and _looking.get():
            raise AttributeError(f"{self.attrname} is made when it is asked for.")
        return super().__get__(instance, owner)


class NotebookSupport:
    """An estimator that notebooks show with a card above scikit-learn's diagram."""

    def _card(self) -> str:
        raise NotImplementedError

    def _repr_html_inner(self) -> str:
        return self._card() + super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        shown = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return {kind: self._card() + text if kind == "text/html" else text for kind, text in shown.items()}

    def _get_fitted_attr_html(self, *args: Any, **kwargs: Any) -> Any:
        before = _looking.set(True)
        try:
            return super()._get_fitted_attr_html(*args, **kwargs)  # type: ignore[misc]
        finally:
            _looking.reset(before)


class FitTask:
    """A fit as callbacks see it: a task of which every pass is a part."""

    def __init__(self, estimator: Any) -> None:
        self._estimator, self._context = estimator, estimator._init_callback_context(max_subtasks=None)
        self._context.call_on_fit_task_begin(estimator=estimator)

    def passed(self, phase: str, count: int, info: Info) -> bool:
        """Tell of a pass; whether a callback asks for the end of the fit."""
        known = {"phase": phase, "count": count, "n_clusters": info.n_clusters, "objective": info.objective}
        part = self._context.subcontext(task_name=phase)
        part.call_on_fit_task_begin(estimator=self._estimator, metadata=known)
        return bool(part.call_on_fit_task_end(estimator=self._estimator, metadata=known))

    def ended(self) -> None:
        """Tell that the fit has ended."""
        self._context.call_on_fit_task_end(estimator=self._estimator)


class CallbackSupport(CallbackSupportMixin):
    """An estimator that has ``set_callbacks`` where scikit-learn has callbacks."""

    @contextmanager
    def _callbacks(self) -> Iterator[FitTask | None]:
        """The task of a fit; None if nobody listens."""
        if with_callbacks is None or not getattr(self, "_skl_callbacks", None):
            yield None
            return
        try:
            task = FitTask(self)
            yield task
            task.ended()
        finally:
            with_callbacks(_nothing)(self)  # around whatever it is, it tears down what was set up


def _nothing(estimator: Any) -> None:
    pass
