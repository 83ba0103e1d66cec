"""Dask collections as rows of binary features: how they are bound, and what they do not allow."""

from functools import partial
from typing import Any

from kfree.estimators._spread import Binding
from kfree.models.features import FeatureProblem
from kfree.models.sharded import Look
from kfree.models.spread_features import SpreadFeatures, first_look_at_features
from kfree.rows.blocks import Blocks


def of_features(estimator: Any) -> Binding:
    """Rows bound to features, wherever they are."""
    intercept = isinstance(estimator.base, str) and estimator.base == "intercept"

    def spread(blocks: Blocks, seen: Look) -> SpreadFeatures:
        refuse_what_visits_rows(estimator)
        return SpreadFeatures.of(blocks, seen, intercept=intercept)

    here = partial(
        FeatureProblem.of,
        intercept=intercept,
        merge=estimator.algorithm == "extended" and isinstance(estimator.init, str),
        # given means may leave the space of the rows, so they are used in the user's columns
        reduce=not isinstance(estimator.init, tuple),
    )
    return Binding(here, first_look_at_features, spread)


def refuse_what_visits_rows(estimator: Any) -> None:
    """Parameters with which a fit would look at rows one by one."""
    way_out = "kfree.read(X) brings the rows to a file here, block by block, and takes every parameter."
    if estimator.algorithm != "extended":
        raise ValueError(
            f"algorithm={estimator.algorithm!r} goes on from the features that each row has, which blocks of Dask do "
            f"not keep. Use algorithm='extended'; {way_out}"
        )
    if estimator.row == "coordinate":
        raise ValueError(
            "row='coordinate' goes on from the features that each row has, which blocks of Dask do not keep. Use "
            f"row='exact'; {way_out}"
        )
    if not isinstance(estimator.init, str):
        raise ValueError(f"init is an allocation of all rows, which are in blocks of Dask. Use init='auto'; {way_out}")
