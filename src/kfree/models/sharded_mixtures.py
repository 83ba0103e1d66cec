"""What fitted mixtures say of rows that lie in blocks elsewhere."""

import math
import operator
from typing import Any, NamedTuple

from kfree.families import Array
from kfree.models.checks import check_finite, check_weight
from kfree.models.matching import Matched, finite_costs, match_clusters
from kfree.models.mixture_model import Asked, MixtureModel
from kfree.models.ranges import check_total
from kfree.models.sights import Yardstick
from kfree.rows.blocks import Beside, Blocks, RowBlock


def labels_of_rows(block: RowBlock, beside: Beside, model: Asked) -> Array:
    """Likeliest component of each row of a block."""
    return model.labels(block.X)


def match_blocks(blocks: Blocks, mixture: MixtureModel, match_to: Any) -> Matched:
    """Which components are the same as earlier ones: see ``match_components``."""
    yardstick = Yardstick.of_mixture(mixture)
    parts: list[_Part] = sorted(blocks.ask(_own_costs, (mixture, yardstick), operator.add))
    rows = sum(part.rows for part in parts)
    return match_clusters(yardstick, match_to, math.fsum(part.total for part in parts) / rows if rows else 0.0)


def _own_costs(block: RowBlock, beside: Beside, mixture: MixtureModel, yardstick: Yardstick) -> "tuple[_Part, ...]":
    if not block.X.shape[0]:
        return ()
    cost = finite_costs(yardstick, block.X, mixture.labels(block.X))
    return (_Part(block.number, cost.size, float(cost.sum()), float(cost.size)),)


def mean_log_density(blocks: Blocks, model: Asked) -> float:
    """The weighted mean of the log of the density. Blocks are added in their order, whoever answers first."""
    parts: list[_Part] = sorted(blocks.ask(_log_densities, (model,), operator.add))
    rows = sum(part.rows for part in parts)
    if not rows:
        raise ValueError("X has no rows. Pass some.")
    weight = math.fsum(part.weight for part in parts)
    check_total(weight)
    if not weight:
        raise ValueError("sample_weight is zero for every row: there is nothing to score. Give some row a weight.")
    return math.fsum(part.total for part in parts) / weight


class _Part(NamedTuple):
    """What one block adds to a mean."""

    number: int
    rows: int
    total: float
    weight: float


def _log_densities(block: RowBlock, beside: Beside, model: Asked) -> tuple[_Part, ...]:
    X, weight = block.X, block.weight
    n = X.shape[0]
    if not n:
        return ()
    check_finite(X)
    value = model.log_density(X)
    if not weight.size:
        return (_Part(block.number, n, float(value.sum()), float(n)),)
    if not weight.any():
        return (_Part(block.number, n, 0.0, 0.0),)
    weight = check_weight(weight, n)
    kept = weight > 0  # a row that nothing could have made counts only if it has weight
    return (_Part(block.number, n, float(weight[kept] @ value[kept]), float(weight.sum())),)
