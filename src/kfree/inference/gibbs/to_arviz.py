"""Samples as arviz takes them, so that its plots and summaries do."""

from typing import Any

import numpy as np

from kfree.families import Array


def inference_data(
    posterior: dict[str, Array],
    chain: Array,
    *,
    sample_stats: dict[str, Array] | None = None,
    dims: dict[str, list[str]] | None = None,
) -> Any:
    """Samples by name, the first axis of each being that of all samples, as arviz's data of chains and draws.

    Parameters
    ----------
    posterior : dict of arrays of shape (S, ...)
        What was sampled.
    chain : int array of shape (S,)
        Which chain each sample is of; the samples of a chain are in their order.
    sample_stats : dict of arrays of shape (S, ...), optional
        What is known of the sampler at each sample; the log posterior is called "lp" there.
    dims : dict of lists of names, optional
        Names of the axes after the first: ``{"labels": ["row"]}``.

    Returns
    -------
    arviz.InferenceData
        An ``xarray.DataTree`` from arviz 1.0 on. Chains that are longer than the shortest lose their beginning.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs arviz, which is not installed: pip install arviz.") from error
    groups = {"posterior": posterior, "sample_stats": sample_stats or {}}
    tables = {g: {name: by_chain(v, chain) for name, v in some.items()} for g, some in groups.items() if some}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(tables, dims=dims)
    return arviz.from_dict(**tables, dims=dims)


def by_chain(values: Array, chain: Array) -> Array:
    """(chains, draws, ...) The samples of each chain."""
    parts = [values[chain == c] for c in np.unique(chain)]
    length = min(len(part) for part in parts)
    return np.stack([part[len(part) - length :] for part in parts])
