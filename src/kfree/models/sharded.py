"""Clusters of rows that lie in blocks elsewhere: what is to be known of all of them, and the problem they make."""

import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array, Family, Geometry, Summary, make_family
from kfree.inference.clusters.block_answers import Lowest, ask_table
from kfree.inference.clusters.labelling import Labelling
from kfree.inference.clusters.sharded_labelling import Facts, Shards
from kfree.inference.clusters.table import Table, make_table
from kfree.inference.content import count_distinct, union
from kfree.models.checks import (
    Ends,
    check_domain,
    check_family,
    check_finite,
    check_weight,
    make_geometry,
    make_rows,
    near,
    ratio_of,
    row_scale,
)
from kfree.models.clusters import Problem
from kfree.models.ranges import (
    Reach,
    check_means,
    check_prior_range,
    check_reach,
    check_shares,
    check_spread,
    check_total,
)
from kfree.rows import CsrRows, DenseRows
from kfree.rows.blocks import Beside, Blocks, Question, RowBlock
from kfree.rows.dense import sizes_of
from kfree.rows.exact_sums import CostSum, ExactProducts, ExactSums, Grid, WeightRange

_NONE = np.empty(0)
_EXTREMES = np.minimum, np.maximum, np.minimum


class Look(NamedTuple):
    """What a first look at some rows says; parts are joined."""

    sizes: tuple[tuple[int, int], ...]  # of each block: its number, and its rows
    p: int
    sparse: bool
    entries: int
    weighted: bool
    users: WeightRange  # of the weights as they were given
    weights: WeightRange  # and with the weighting
    total: float  # about the sum of these
    long: float  # the largest size of a row
    ends: Ends
    most: float  # the largest entry of a row that has weight
    extent: tuple[Array, Array, Array]  # (p,) the least, largest and finest entries of rows times their scales

    def joined(self, other: "Look") -> "Look":
        """At these rows and others."""
        if self.p != other.p or self.sparse != other.sparse:
            kinds = [f"{look.p} columns{' (sparse)' if look.sparse else ''}" for look in (self, other)]
            raise ValueError(f"Blocks of X differ: some have {kinds[0]}, others {kinds[1]}. Make them alike.")
        return Look(
            self.sizes + other.sizes,
            self.p,
            self.sparse,
            self.entries + other.entries,
            self.weighted or other.weighted,
            self.users.joined(other.users),
            self.weights.joined(other.weights),
            self.total + other.total,
            max(self.long, other.long),
            self.ends.joined(other.ends),
            max(self.most, other.most),
            tuple(f(a, b) for f, a, b in zip(_EXTREMES, self.extent, other.extent)),  # type: ignore[arg-type]
        )


def look(block: RowBlock, beside: Beside, family: Family, weighting: str) -> Look:
    """Check the rows of a block."""
    X, n = block.X, block.X.shape[0]
    weight = block.weight
    if n == 0:
        users, far = WeightRange(0.0, np.inf), np.full(X.shape[1], np.inf)  # what leaves others as they are
        about = ((block.number, 0),), X.shape[1], sp.issparse(X), 0, bool(weight.size)
        return Look(*about, users, users, 0.0, 0.0, Ends(), -np.inf, (far, -far, far))
    check_finite(X)
    if weight.size and weight.any():
        check_weight(weight, n)
    check_domain(X, check_family(family, X))
    scale, size = row_scale(X, family)
    users = range_of(weight)
    own = weight
    if weighting != "none":
        own = size * weight if weight.size else size
    rows = CsrRows(X, weight=own, scale=scale) if sp.issparse(X) else _plain(X, own, scale)
    active = X[weight > 0] if weight.size and (weight == 0).any() else X
    values = active.data if sp.issparse(active) else active
    return Look(
        ((block.number, n),),
        X.shape[1],
        sp.issparse(X),
        int(X.nnz) if sp.issparse(X) else n * X.shape[1],
        bool(weight.size),
        users,
        range_of(own),
        float(own.sum()) if own.size else float(n),
        float(size.max(initial=0.0)) if size.size else 0.0,
        Ends.of(X, scale, family),
        float(values.max()) if values.size else 0.0,
        rows.extent,
    )


def _plain(X: Array, weight: Array, scale: Array) -> DenseRows:
    return DenseRows(X, weight=weight, scale=scale, shift=np.zeros(X.shape[1]))


def range_of(weight: Array) -> WeightRange:
    """Of weights that may all be 0."""
    return WeightRange.of(weight) if not weight.size or weight.any() else WeightRange(0.0, np.inf)


class MakeShard(NamedTuple):
    """Makes the table of a block, with what is known of all of them."""

    name: str
    family: Family
    weighting: str
    unit: float
    ends: Ends
    weights: WeightRange
    grid: Grid
    shift: Array
    geometry: Geometry | None = None  # None: only sums are asked for

    def __call__(self, block: RowBlock) -> Table:
        """Its rows, with what does not change during a fit."""
        kind = {"weighting": self.weighting, "unit": self.unit, "ends": self.ends}
        prepared = make_rows(block.X, self.family, block.weight, self.shift, **kind)  # type: ignore[arg-type]
        prepared.rows.weight_range, prepared.rows.grid = self.weights, self.grid
        geometry = self.geometry or Geometry(self.family, self.family.inside(np.zeros(self.shift.size)))
        if self.geometry is None:
            n = prepared.rows.n
            return Table(prepared.rows, geometry, np.zeros(n), np.zeros(n, np.uint64), _NONE, _NONE)
        return make_table(prepared.rows, geometry, prepared.once)


class Whole(NamedTuple):
    """Exact sum and weight of all rows, and limbs of the total weight."""

    heaviest: float

    def __call__(self, table: Table) -> tuple[Array, Array]:
        """Of a block."""
        weight, limbs = table.rows.weight, np.zeros(3, np.int64)
        if weight.size:
            limbs = CostSum(self.heaviest, WeightRange()).limbs(weight, _NONE)
        return table.rows.exact_whole.limbs.copy(), limbs


class Length(NamedTuple):
    """Limbs of the sum of the sizes of rows, in units of a power of two, and of their weights."""

    family: Family
    exponent: int
    users: WeightRange

    def __call__(self, block: RowBlock, beside: Beside) -> tuple[Array, Array]:
        """Of a block."""
        size, weight = np.ldexp(row_scale(block.X, self.family)[1], -self.exponent), block.weight
        ones = weight if weight.size else np.ones(size.size)
        total = CostSum(self.users.heaviest, WeightRange())
        return CostSum(1.0, self.users).limbs(size, weight), total.limbs(ones, _NONE)


class Away(NamedTuple):
    """How far columns are from their means, at most."""

    mean: Array

    def __call__(self, block: RowBlock, beside: Beside) -> Array:
        """In a block."""
        gap = _gap(block, self.mean)[0]
        return np.abs(gap).max(axis=0, initial=0.0)


class Products(NamedTuple):
    """Exact sums of products of columns less their means."""

    mean: Array
    spread: Array
    users: WeightRange

    def __call__(self, block: RowBlock, beside: Beside) -> Array:
        """Of a block."""
        products = ExactProducts(self.spread, self.users)
        products.add(*_gap(block, self.mean))
        return products.limbs


def _gap(block: RowBlock, mean: Array) -> tuple[Array, Array]:
    weight = block.weight if block.weight.size else np.ones(block.X.shape[0])
    kept = weight > 0
    rows = block.X[kept].toarray() if sp.issparse(block.X) else np.asarray(block.X[kept], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return rows - mean, weight[kept]


def ask_block(block: RowBlock, beside: Beside, query: Any) -> Any:
    """Ask a block that is no table yet."""
    return query(block, beside)


def check_some_weight(seen: Look) -> None:
    """Some row must count."""
    if seen.weighted and not seen.weights.heaviest:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit. Give some row a weight.")


def reach_of(table: Table) -> Reach:
    """How far the rows of a block are."""
    return Reach.of(table)


def _joined(one: Any, other: Any) -> Any:
    return one.joined(other)


def _added(one: Any, other: Any) -> Any:
    return tuple(a + b for a, b in zip(one, other))


@dataclass(frozen=True)
class ShardedProblem(Problem):
    """Rows in blocks."""

    blocks: Blocks
    make: MakeShard
    facts: Facts
    reach: Reach
    family: Family
    shift: Array
    unit: float

    @classmethod
    def of(
        cls, blocks: Blocks, seen: Look, divergence: Any, weighting: str, smoothing: float, smoothing_mean: Any
    ) -> "ShardedProblem":
        """Bind rows that were looked at with this divergence."""
        family, name = make_family(divergence), uuid.uuid4().hex
        if type(family).adapt is not Family.adapt:
            adapted = family.adapt(_summary(blocks, seen))
            if (family.lower, family.upper) != (adapted.lower, adapted.upper):
                seen = blocks.ask(look, (adapted, weighting), _joined)
            family = adapted
        unit = 0.0
        if weighting == "relative":
            unit = mean_size(blocks, seen, family)
            low, high = seen.weights.lightest / unit, seen.weights.heaviest / unit
            seen = seen._replace(weights=WeightRange(high, low, False), total=seen.total / unit)
        check_some_weight(seen)
        check_total(seen.total)
        ends, p = seen.ends, seen.p
        ratio = ratio_of(ends, family)
        first = ratio if seen.sparse or not family.translates else 1.0
        make = MakeShard(
            name + "-sums", family, weighting, unit, ends, seen.weights, _grid(seen, np.zeros(p), first), np.zeros(p)
        )
        whole, total_weight = _whole(blocks, make, seen)
        (total, mass), shift = whole.values(), np.zeros(p)
        if family.translates and not seen.sparse:
            shift = near(total[0] / mass[0])
            total = whole.less(shift) if shift.any() else total
        geometry = make_geometry(family, (total, mass), shift, ends.tiny, smoothing, smoothing_mean)
        make = make._replace(name=name, shift=shift, grid=_grid(seen, shift, ratio), geometry=geometry)
        if family.translates:
            check_means(np.concatenate([shift, geometry.anchor]))
        reach = blocks.ask(ask_table, (make, reach_of), _joined)
        n = sum(size for _, size in seen.sizes)
        facts = Facts(
            geometry,
            shift,
            n,
            seen.entries // max(n, 1),
            total,
            mass,
            total_weight,
            seen.weights,
            seen.weighted or weighting != "none",
            make.grid,
            reach.all_equal,
        )
        problem = cls(blocks, make, facts, reach, family, shift, unit)
        problem.check_reach()
        check_prior_range(geometry)
        check_shares(geometry, seen.weights.lightest, total_weight, ends.least, ends.short)
        return problem

    def labelling(self) -> Labelling:
        """The rows, without labels."""
        return Shards(self.blocks, self.make, self.facts)

    def check_reach(self, squares: str = "") -> None:
        """Whether divergences, or their squares, are in the range of floats."""
        weights = self.facts.weights.lightest, self.facts.total_weight
        check_reach(self.reach, self.geometry, *weights, squares=squares)

    def count_different(self, enough: int) -> int:
        """How many different rows have weight; of more than enough, so many."""
        return self.facts.n if enough < 2 else _different(self.blocks, self.make, enough, self.facts.n)

    @property
    def n_active(self) -> int:
        """Number of rows; those without weight are few."""
        return self.facts.n

    @property
    def geometry(self) -> Geometry:  # type: ignore[override]
        """How far rows are from centres."""
        return self.facts.geometry

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self.facts.n


def _grid(seen: Look, shift: Array, ratio: float | None) -> Grid:
    """What sums are measured in, as for the same rows in memory; rows that have scales are not shifted."""
    return Grid.of_sizes(*sizes_of(seen.extent, shift, 0.0), seen.weights, ratio)


def _whole(blocks: Blocks, make: MakeShard, seen: Look) -> tuple[ExactSums, float]:
    limbs, weight = blocks.ask(ask_table, (make, Whole(seen.weights.heaviest)), _added)
    total = CostSum(seen.weights.heaviest, WeightRange())
    total.add(weight)
    n = sum(size for _, size in seen.sizes)
    weighted = seen.weighted or make.weighting != "none"
    return ExactSums.of_limbs(make.grid, limbs), total.value if weighted else float(n)


def mean_size(blocks: Blocks, seen: Look, family: Family) -> float:
    """The weighted mean of the sizes of rows."""
    exponent = int(np.frexp(seen.long)[1])
    size, weight = blocks.ask(ask_block, (Length(family, exponent, seen.users),), _added)
    sizes, total = CostSum(1.0, seen.users), CostSum(seen.users.heaviest, WeightRange())
    sizes.add(size)
    total.add(weight)
    return float(np.ldexp(sizes.value / total.value, exponent))


def mean_of_blocks(blocks: Blocks, seen: Look) -> tuple[Array, float]:
    """The mean (p,) of rows by the weights that users gave, and the sum of these."""
    users = seen.users
    plain, none = seen._replace(weights=users), np.zeros(seen.p)
    plainly = make_family("sqeuclidean")  # the family of a fit may not be able to measure yet
    make = MakeShard(uuid.uuid4().hex, plainly, "none", 0.0, seen.ends, users, _grid(plain, none, 1.0), none)
    whole, total_weight = _whole(blocks, make, plain)
    total, mass = whole.values()
    return total[0] / mass[0], total_weight


def _summary(blocks: Blocks, seen: Look) -> Summary:
    """What families may adapt to, of all rows."""
    users = seen.users
    mean, total_weight = mean_of_blocks(blocks, seen)

    def covariance() -> Array:
        spread = blocks.ask(ask_block, (Away(mean),), np.maximum)
        check_spread(spread, mean)
        limbs = blocks.ask(ask_block, (Products(mean, spread, users),), np.add)
        return ExactProducts.of_limbs(spread, users, limbs).value / total_weight

    return Summary(mean, seen.most, covariance)


def _different(blocks: Blocks, make: MakeShard, enough: int, n: int) -> int:
    limit = np.uint64(min(2**64 - 1, 2**64 * (2 * enough + 64) // n))
    found = 0
    for upto in (limit, np.uint64(2**64 - 1)):
        hashes, _ = blocks.ask(ask_table, (make, Lowest(upto)), lambda a, b: tuple(map(union, a, b)))
        found = count_distinct(hashes)
        if found >= enough:
            break
    return found


def first_look(blocks: Blocks, divergence: Any, weighting: str, question: Question = look) -> Look:
    """Check all rows for a divergence; blocks without any are not asked again."""
    seen = blocks.ask(question, (make_family(divergence), weighting), _joined)
    if not any(size for _, size in seen.sizes):
        raise ValueError("X has no rows. Pass some.")
    blocks.some(sorted(number for number, size in seen.sizes if size))
    return seen
