"""Clusters of the cells of an AnnData object, in the manner of scanpy's tools."""

import warnings
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

import kfree
from kfree.estimators import DPMeans

if TYPE_CHECKING:
    from anndata import AnnData

# What scanpy's tools take if they are told nothing.
_USUAL = "X_pca"
# Whose versions are written beside kfree's.
_PACKAGES = ("anndata", "numpy", "scikit-learn")


def cluster(
    adata: "AnnData",
    *,
    key_added: str = "kfree",
    use_rep: str | None = None,
    layer: str | None = None,
    n_clusters: int | None = None,
    copy: bool = False,
    **parameters: Any,
) -> "AnnData | None":
    """Find the clusters of cells with :class:`kfree.DPMeans`; how many there are is found, too.

    Parameters
    ----------
    adata : AnnData
        Cells in rows. Log-normalised counts reduced by a PCA are what works: see docs/tasks/single_cells.md.
    key_added : str, default="kfree"
        Name under which the result is written. What an earlier call wrote there is replaced, what others wrote is not.
    use_rep : str, default=None
        Which columns: a name in ``adata.obsm``, or "X" for ``adata.X``. By default "X_pca" if it is there, else "X"
        with a warning.
    layer : str, default=None
        A name in ``adata.layers``, in place of ``use_rep``.
    n_clusters : int, default=None
        Exactly so many clusters; by default the number is found.
    copy : bool, default=False
        Return a copy with the result, and leave ``adata`` alone.
    **parameters
        Other parameters of :class:`kfree.DPMeans`, such as ``lam`` (a larger price gives fewer clusters) or
        ``divergence``.

    Returns
    -------
    AnnData or None
        The copy, or None. Written are

        ``.obs[key_added]`` : categorical
            Cluster of each cell, "0" to "K-1", largest first; missing for cells that have none.
        ``.uns[key_added]`` : dict
            ``"params"`` of the call; ``"n_clusters"``; ``"cluster_centers"`` (K, p); ``"explanation"``, why so many, in
            words; ``"lam"``, ``"lam_window"``, ``"radius"`` and ``"choice"``, the attributes of :class:`kfree.DPMeans`
            of these names; ``"versions"``. What is None is left out, so that all of it can be written to a file.

    Examples
    --------
    >>> import numpy as np, anndata, kfree
    >>> rng = np.random.default_rng(0)
    >>> centres = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], [50, 30, 20], axis=0)
    >>> adata = anndata.AnnData(obsm={"X_pca": centres + rng.normal(size=(100, 2))})
    >>> kfree.anndata.cluster(adata)
    >>> adata.obs["kfree"].value_counts().to_dict()
    {'0': 50, '1': 30, '2': 20}
    >>> adata.uns["kfree"]["n_clusters"]
    3
    """
    _check_adata(adata)
    _check_parameters(parameters)
    _check_key(adata, key_added)
    X, source = _table(adata, use_rep, layer)
    model = DPMeans(n_clusters=n_clusters, **parameters).fit(X)
    if copy:
        adata = adata.copy()
    adata.obs[key_added] = _categories(model)
    adata.uns[key_added] = _notes(model, source)
    return adata if copy else None


def _check_adata(adata: Any) -> None:
    try:
        from anndata import AnnData
    except ImportError:
        raise ImportError("kfree.anndata.cluster needs the package anndata: pip install anndata.") from None
    if not isinstance(adata, AnnData):
        raise TypeError(
            f"cluster needs an AnnData object, got {type(adata).__name__}. For other tables use kfree.DPMeans().fit(X)."
        )


def _check_parameters(parameters: dict[str, Any]) -> None:
    known = DPMeans().get_params(deep=False)
    for name in parameters:
        if name not in known:
            raise TypeError(
                f"cluster has no parameter {name!r}, and DPMeans has none either. The number of clusters is found; for "
                "another one pass n_clusters, or lam: a larger price gives fewer clusters."
            )


def _check_key(adata: "AnnData", key: Any) -> None:
    """Nothing is written over what is not ours."""
    if not isinstance(key, str) or not key:
        raise TypeError(f"key_added must be a name, got {type(key).__name__} {key!r}.")
    before = adata.uns.get(key)
    if isinstance(before, dict) and "kfree" in before.get("versions", ()):
        return
    for name, part in (("obs", adata.obs), ("uns", adata.uns)):
        if key in part:
            raise ValueError(
                f"adata.{name}[{key!r}] is there already, and kfree did not write it. Pass another key_added, or "
                "delete it."
            )


def _table(adata: "AnnData", use_rep: str | None, layer: str | None) -> tuple[Any, dict[str, str]]:
    """The rows to cluster, and which they are."""
    if layer is not None:
        if use_rep is not None:
            raise ValueError(f"use_rep={use_rep!r} and layer={layer!r} both say which columns. Pass one of them.")
        return _part(adata.layers, "layer", layer), {"layer": layer}
    if use_rep is None:
        use_rep = _usual(adata)
    if use_rep != "X":
        return _part(adata.obsm, "use_rep", use_rep), {"use_rep": use_rep}
    if adata.X is None:
        raise ValueError(f"adata.X is empty. Pass use_rep: {_names(adata.obsm, 'adata.obsm')}.")
    return adata.X.to_memory() if hasattr(adata.X, "to_memory") else adata.X, {"use_rep": "X"}


def _usual(adata: "AnnData") -> str:
    """The principal components, or else X, with a warning."""
    if _USUAL in adata.obsm or adata.X is None:
        return _USUAL
    warnings.warn(
        f"adata.obsm has no {_USUAL!r}, so the clusters are those of adata.X as it is ({adata.n_obs} cells, "
        f"{adata.n_vars} columns). Counts show few clusters or none: normalise them, take logarithms and principal "
        "components first (sc.pp.normalize_total, sc.pp.log1p, sc.pp.pca). If adata.X is meant, pass use_rep='X'.",
        UserWarning,
        stacklevel=4,
    )
    return "X"


def _part(mapping: Any, parameter: str, name: str) -> Any:
    if name in mapping:
        return mapping[name]
    place, else_ = ("adata.layers", "") if parameter == "layer" else ("adata.obsm", ", or 'X' for adata.X")
    raise ValueError(f"{parameter}={name!r} is not in {place}: {_names(mapping, place)}. Pass one that is{else_}.")


def _names(mapping: Any, place: str) -> str:
    return f"{place} has " + (", ".join(map(repr, mapping)) or "nothing")


def _categories(model: DPMeans) -> Any:
    """Numbers of clusters as scanpy wants them: names, in order; a label below 0 is missing."""
    from pandas import Categorical, Index

    names = [str(k) for k in range(model.n_clusters_)]
    # AnnData 0.12 cannot write the strings of pandas 3 to a file, but objects
    return Categorical.from_codes(model.labels_, categories=Index(names, dtype=object))


def _notes(model: DPMeans, source: dict[str, str]) -> dict[str, Any]:
    """What is written beside the labels."""
    notes = {
        "params": {**source, **model.get_params(deep=False)},
        "n_clusters": model.n_clusters_,
        "cluster_centers": model.cluster_centers_,
        "explanation": model.explain(),
        "lam": model.lam_,
        "lam_window": model.lam_window_,
        "radius": model.radius_,
        "choice": None if model.choice_ is None else model.choice_._asdict(),
        "versions": {"kfree": kfree.__version__} | {name: version(name) for name in _PACKAGES},
    }
    return _writable(notes)


def _writable(notes: dict[str, Any]) -> dict[str, Any]:
    """Only what AnnData's files know: names, numbers, arrays and dicts of them."""
    found: dict[str, Any] = {}
    for name, value in notes.items():
        if isinstance(value, dict):
            found[name] = _writable(value)
        elif isinstance(value, str | bool | int | float | np.ndarray | np.generic):
            found[name] = value
        elif isinstance(value, tuple | list):
            found[name] = np.asarray(value)
        elif value is not None:
            found[name] = repr(value)
    return found
