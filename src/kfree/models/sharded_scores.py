"""How well clusters fit rows that lie in blocks elsewhere."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.models.checks import Ends
from kfree.models.clusters import Model
from kfree.models.ranges import check_total
from kfree.models.sharded import ask_block, check_some_weight, first_look, range_of
from kfree.rows.blocks import Beside, Blocks, RowBlock
from kfree.rows.exact_sums import CostSum, WeightRange

_NONE = np.empty(0)


def score_blocks(blocks: Blocks, model: Model, weighting: str) -> float:
    """Minus the weighted mean divergence from the nearest centres: the number of the same rows in memory to the last
    bit."""
    seen = first_look(blocks, model.geometry.family, weighting)
    check_some_weight(seen)
    check_total(seen.total / (model.unit or 1.0))
    costs = _CostsOf(model, weighting, seen.ends)
    largest, weights = blocks.ask(ask_block, (_Largest(costs),), _larger)
    total, weight = CostSum(largest, weights), CostSum(weights.heaviest, WeightRange())
    of_costs, of_weights = blocks.ask(ask_block, (_SumsOf(costs, largest, weights),), _added)
    total.add(of_costs)
    weight.add(of_weights)
    weighted = seen.weighted or weighting != "none"
    return -total.value / (weight.value if weighted else float(sum(size for _, size in seen.sizes)))


class _CostsOf(NamedTuple):
    """Divergences of the rows of a block from their nearest centres, and weights."""

    model: Model
    weighting: str
    ends: Ends

    def __call__(self, block: RowBlock, beside: Beside) -> tuple[Array, Array]:
        """They are kept: sums are asked for when the largest of all is known."""
        if "costs" not in beside:
            table = self.model.table(block.X, block.weight, self.weighting, ends=self.ends)
            beside["costs"] = self.model.costs(table)[0], table.rows.weight
        return beside["costs"]


class _Largest(NamedTuple):
    """The largest cost of a row that has weight, and the range of the weights."""

    costs: _CostsOf

    def __call__(self, block: RowBlock, beside: Beside) -> tuple[float, WeightRange]:
        """In a block."""
        cost, weight = self.costs(block, beside)
        return float(cost.max(where=weight > 0 if weight.size else True, initial=0.0)), range_of(weight)


class _SumsOf(NamedTuple):
    """Limbs of the weighted sum of costs, and of the sum of the weights."""

    costs: _CostsOf
    largest: float
    weights: WeightRange

    def __call__(self, block: RowBlock, beside: Beside) -> tuple[Array, Array]:
        """Of a block."""
        cost, weight = self.costs(block, beside)
        own = CostSum(self.weights.heaviest, WeightRange()).limbs(weight, _NONE) if weight.size else np.zeros(3, int)
        return CostSum(self.largest, self.weights).limbs(cost, weight), own


def _larger(one: Any, other: Any) -> Any:
    return max(one[0], other[0]), one[1].joined(other[1])


def _added(one: Any, other: Any) -> Any:
    return tuple(a + b for a, b in zip(one, other))
