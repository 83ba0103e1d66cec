"""Splitting a component: its rows are shared between the children, all other responsibilities are held."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.conjugate import join, take
from kfree.inference.loop import Budget
from kfree.inference.variational import normal_wishart
from kfree.inference.variational.expected_likelihood import make_runner
from kfree.inference.variational.partition import ComponentRows, Partition, Ray
from kfree.inference.variational.posterior import MeasuredMixture, Mixture, Setting, arranged
from kfree.inference.variational.sweep import ExpectedSums, members, soften_all, sums_of, sweep
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.kernels import kernels
from kfree.rows import Tied
from kfree.structures import by_size


class Proposal(NamedTuple):
    """A component split in two or more."""

    gain: float  # fall of the free energy, other responsibilities held; -inf if it cannot be split
    mass: float  # of the component when this was tried
    params: Any = None  # record of the children
    sizes: Any = None  # weights of the children
    token: Any = None  # what the partition was refined by
    hopeless: bool = False  # whether it would not pay on finer rows, either


def propose(
    setting: Setting,
    partition: Partition,
    state: MeasuredMixture,
    wanted: Array,
    enough: float,
    most: float,
    budget: Budget,
) -> list[Proposal]:
    """Try to split each of the wanted components into at most ``most``, so that the free energy falls by ``enough``;
    those that there is no time for cannot be split."""
    tied, view, swept = partition.tied, state.view, state.swept
    found = members(tied, view.runner(tied), view.log_weight, wanted, VARIATIONAL.least_share)
    some, sizes = take(state.mixture.params, wanted), np.append(swept.sums.mass, swept.tail)
    prices = setting.divergence(some)
    sure = partition.sure(view, wanted, prices)
    parents = [
        _Parent(setting, take(some, [k]), float(sizes[c]), float(prices[k]), sure[k], np.delete(sizes, c), enough, most)
        for k, c in enumerate(wanted)
    ]
    # single rows of all components would be a copy of the table: there it is one after the other
    groups = [[k] for k in range(len(wanted))] if partition.fixed else [list(range(len(wanted)))]
    return [
        best for ks in groups for best in _try_all(partition, [parents[k] for k in ks], [found[k] for k in ks], budget)
    ]


def _try_all(
    partition: Partition, parents: list["_Parent"], found: list[tuple[Array, Array]], budget: Budget
) -> list[Proposal]:
    """For each component the best of its splits along rays of one kind or another."""
    parts = [partition.part(index, share) for index, share in found]
    first, *others = find_rays(parents[0].setting, join([parent.params for parent in parents]), parts)
    best = _try_rays(partition, parents, list(parts), first, budget)
    for rays in others:
        # on a tree, where many splits are made together, one that pays is good enough
        left = [k for k, split in enumerate(best) if partition.fixed or split.gain <= parents[k].enough]
        if not left:
            break
        some, along = [parents[k] for k in left], [rays[k] for k in left]
        for k, split in zip(left, _try_rays(partition, some, [parts[k] for k in left], along, budget)):
            best[k] = max(best[k], split, key=lambda one: one.gain)
    return best


def _try_rays(
    partition: Partition, parents: list["_Parent"], parts: list[ComponentRows], rays: list[Ray], budget: Budget
) -> list[Proposal]:
    """Splits on rows refined along rays, and again as long as these leave a doubt."""
    tried: list[_Tried | None] = [None] * len(parents)
    left = [k for k, part in enumerate(parts) if part.share.size]
    for step in range(VARIATIONAL.closest):
        if budget.spent:
            break
        left = [k for k in left if step < VARIATIONAL.closer or not parents[k].sure]
        finer = partition.refined([parts[k] for k in left], [rays[k] for k in left]) if left else []
        changed = [k for k, part in zip(left, finer) if step == 0 or part is not parts[k]]
        for k, part in zip(left, finer):
            parts[k] = part
        for k in changed:
            if not budget.spent:
                tried[k] = parents[k].halve(parts[k], rays[k])
        left = [k for k in changed if parents[k].doubts(tried[k])]
    return [
        parent.propose(pair, part.token, deeper=not budget.spent) for parent, pair, part in zip(parents, tried, parts)
    ]


class _Children(NamedTuple):
    params: Any  # record
    sizes: Array
    log_weight: Array  # expected log-weights
    cost: float  # free energy, up to what is held


class _Tried(NamedTuple):
    """A split in two on the rows of a component."""

    rows: Tied  # weighted by the component's share
    whole: float  # cost as one
    pair: _Children

    @property
    def gain(self) -> float:
        """What it saves."""
        return self.whole - self.pair.cost


class _Parent(NamedTuple):
    """A component to be split, beside others that are held."""

    setting: Setting
    params: Any  # record of one
    mass: float
    price: float  # its divergence from the prior
    sure: bool  # whether clear verdicts are trusted
    others: Array  # sizes of the other components, the tail's last
    enough: float
    most: float  # children it may have

    def halve(self, part: ComponentRows, ray: Ray) -> _Tried | None:
        """In two along a ray; None if one side is empty."""
        rows = part.rows._replace(n=part.rows.n * part.share)
        halves = self._halves(rows, self.params, np.ones(rows.size), ray)
        if halves is None:
            return None
        whole = self.update(rows, np.ones((1, rows.size)), np.inf, 1).cost
        return _Tried(rows, whole, self.update(rows, halves, whole))

    def _is_hopeless(self, gain: float) -> bool:
        return self.sure and gain < -VARIATIONAL.clear * self.price

    def doubts(self, tried: _Tried | None) -> bool:
        """Whether finer rows may tell more."""
        return tried is not None and tried.gain <= self.enough and not self._is_hopeless(tried.gain)

    def propose(self, tried: _Tried | None, token: Any, *, deeper: bool) -> Proposal:
        """The split in two; or, where that does not pay and there is time to go ``deeper``, in three or four."""
        if tried is None:
            return Proposal(-np.inf, self.mass)
        best = tried.pair
        if tried.gain <= self.enough and self.most > 2 and deeper:
            best = self._deeper(*tried)
        gain = tried.whole - best.cost
        return Proposal(gain, self.mass, best.params, best.sizes, token, self._is_hopeless(gain))

    def _halves(self, part: Tied, params: Any, share: Array, ray: Ray) -> Array | None:
        """Shares (2, R) of the two sides of a component's centre; None if one is empty."""
        side = project(self.setting, params, part, ray) > 0
        halves = np.stack([share * side, share * ~side])
        return halves if (halves @ part.n > VARIATIONAL.empty).all() else None

    def _deeper(self, part: Tied, whole: float, pair: _Children) -> _Children:
        """Children split once more, if that is better: three or four may pay where two do not."""
        resp = soften_all(part, make_runner(self.setting.form(pair.params), 2, part), pair.log_weight).resp
        halves_of = [ComponentRows(np.zeros(0, np.intp), part, share) for share in resp]
        rays = find_rays(self.setting, pair.params, halves_of)[0]
        split: list[Array] = []
        for k in range(2):
            halves = self._halves(part, take(pair.params, [k]), resp[k], rays[k])
            split.append(resp[k : k + 1] if halves is None else halves)
        ways = [(split[0], split[1]), (split[0], resp[1:]), (resp[:1], split[1])]
        best = pair
        for way in ways:
            if 2 < sum(map(len, way)) <= self.most:
                found = self.update(part, np.concatenate(way), whole)
                if len(found.sizes) == 4 and found.cost - whole >= 2 * (pair.cost - whole):
                    return pair  # two splits more bring as little as the first did: one will not, either
                best = min(best, found, key=lambda children: children.cost)
        return best

    def update(self, part: Tied, resp: Array, whole: float, updates: int = VARIATIONAL.child_updates) -> _Children:
        """Coordinate updates of components that share the part, from responsibilities (K, R); given up if they are
        not on the way to cost less than the whole."""
        if part.second is not None and self.setting.compiled:
            found = self._update_nodes(part, resp, whole, updates)
            if found is not None:
                return found
        return self._update(part, resp, whole, updates)

    def _update_nodes(self, part: Tied, resp: Array, whole: float, updates: int) -> _Children | None:
        """The same, compiled; None if rounding was in the way."""
        prior, weights, (K, D) = self.setting.prior, self.setting.weights, (resp.shape[0], part.mean.shape[1])
        assert part.second is not None
        second = normal_wishart.with_grain(part.second, self.setting.grain)
        found, mass, log_weight = normal_wishart.blank(K, D), np.empty(K), np.empty(K)
        base, centre = part.base, np.repeat(self.params.mean, K, axis=0)
        cost = kernels().share_nodes(
            part.n, part.mean, second, resp.copy(), centre, self.others, prior.mean[0], prior.scale[0],
            normal_wishart.constants(prior), np.array(weights), self.enough, whole + base, VARIATIONAL.empty, updates,
            *found, mass, log_weight,
        )  # fmt: skip
        return (
            None
            if np.isnan(cost)
            else _Children(normal_wishart.record(prior, mass, found), mass, log_weight, cost - base)
        )

    def _update(self, part: Tied, resp: Array, whole: float, updates: int) -> _Children:
        K, best, setting = resp.shape[0], None, self.setting
        last, fall = np.inf, np.inf
        sums = sums_of(part, setting.form(take(self.params, [0] * K)), resp)
        for left in range(updates - 1, -1, -1):
            params = setting.posterior(sums)
            sizes = np.concatenate([self.others[:-1], sums.mass])
            order = by_size(sizes)
            sizes = np.append(sizes[order], self.others[-1])
            sticks = setting.weights.posterior(sizes)
            expected = setting.weights.expected_log(sticks)
            log_weight = expected[np.argsort(order)[-K:]]
            swept = sweep(part, make_runner(setting.form(params), K, part), log_weight)
            held = float(sizes @ expected - sums.mass @ log_weight)
            own = float(setting.divergence(params).sum())
            cost = setting.weights.divergence(sticks) + own - swept.evidence - held
            if best is None or cost < best.cost:
                best = _Children(params, sums.mass, log_weight, cost)
            before, fall = fall, last - cost
            slowing = min(1.0, fall / before) if before < np.inf else 1.0
            done = left == 0 or not fall > self.enough / VARIATIONAL.child_fine
            if done or swept.sums.mass.min() <= VARIATIONAL.empty or cost - whole > left * fall * slowing:
                break
            last, sums = cost, swept.sums
        assert best is not None
        return best


def split_mixture(
    setting: Setting, mixture: Mixture, swept: ExpectedSums, proposals: dict[int, Proposal]
) -> tuple[Mixture, Array]:
    """The mixture with components replaced by their children, largest first; where components came from (new: -1)."""
    keep = np.delete(np.arange(mixture.size), list(proposals))
    params = join([take(mixture.params, keep), *(proposal.params for proposal in proposals.values())])
    sizes = np.concatenate([swept.sums.mass[keep], *(proposal.sizes for proposal in proposals.values())])
    split, order = arranged(setting, params, sizes, swept.tail)
    return split, np.concatenate([keep, np.full(sizes.size - keep.size, -1)])[order]


def find_rays(setting: Setting, params: Any, parts: list[ComponentRows]) -> list[list[Ray]]:
    """The leading directions of components, given their rows, and their centres; one list for each kind of them."""
    kinds = setting.family.directions(params, setting.prior, setting.deviation)
    if kinds:
        return [[Ray(*ray) for ray in zip(directions, setting.family.means(params))] for directions in kinds]
    return [[_find_ray(setting, take(params, [k]), part) for k, part in enumerate(parts)]]


def _find_ray(setting: Setting, params: Any, part: ComponentRows) -> Ray:
    """The leading direction of a component's rows, and their centre."""
    weight = part.rows.n * part.share
    rows = setting.family.standardised(part.rows.mean, setting.family.means(params)[0])
    centre = np.asarray(rows.T @ weight).ravel() / max(float(weight.sum()), VARIATIONAL.empty)
    return Ray(_leading(rows, weight, centre, part.rows.second), centre)


def project(setting: Setting, params: Any, part: Tied, ray: Ray) -> Array:
    """Coordinates of rows along a ray, (R,)."""
    rows = setting.family.standardised(part.mean, setting.family.means(params)[0])
    if sp.issparse(rows):
        return np.asarray(rows @ ray.direction) - ray.centre @ ray.direction
    return (rows - ray.centre) @ ray.direction


def _leading(rows: Any, weight: Array, centre: Array, second: Array | None) -> Array:
    """Leading eigenvector of the weighted covariance of rows; ``second`` is what each has of its own."""
    p = centre.shape[0]
    own = np.zeros(p)
    if second is not None:
        own = np.broadcast_to((weight @ second) / (p if second.ndim == 1 else 1), (p,))
    if p > VARIATIONAL.explicit_columns:
        return _leading_by_products(rows, weight, centre, own)
    if sp.issparse(rows):
        gram = (rows.T @ rows.multiply(weight[:, None])).toarray() - weight.sum() * np.outer(centre, centre)
    else:
        gap = (rows - centre) * np.sqrt(weight)[:, None]
        gram = gap.T @ gap
    if np.trace(gram) <= VARIATIONAL.no_variance * weight.sum() * (centre @ centre):
        gram[:] = 0.0  # one row: rounding must not choose
    return np.linalg.eigh(gram + np.diag(own))[1][:, -1]


def _leading_by_products(rows: Any, weight: Array, centre: Array, own: Array) -> Array:
    p, square = centre.shape[0], rows.multiply(rows) if sp.issparse(rows) else rows * rows
    spread = np.maximum(np.asarray(square.T @ weight).ravel() - weight.sum() * centre**2, 0.0) + own
    # a fixed start that no symmetry of the columns is likely to make orthogonal to the answer
    vector = np.sqrt(spread) * np.random.default_rng(0).uniform(0.5, 1.0, p) * np.where(np.arange(p) % 2, 1.0, -1.0)
    vector = _unit(vector, int(spread.argmax()))
    for _ in range(VARIATIONAL.products):
        along = weight * (np.asarray(rows @ vector).ravel() - centre @ vector)
        after = np.asarray(rows.T @ along).ravel() - centre * along.sum() + own * vector
        last, vector = vector, _unit(after, int(spread.argmax()))
        if last @ vector >= 1 - VARIATIONAL.same_direction:
            break
    return vector


def _unit(vector: Array, axis: int) -> Array:
    """A vector of length one in its direction; of an axis, if it has none."""
    length = float(np.sqrt(vector @ vector))
    return vector / length if length > 0 else np.eye(1, vector.size, axis)[0]
