"""Clusters shared by groups: what is to be found, and a model that can be asked about rows of groups."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.how_many.choose import Choice
from kfree.inference.clusters.how_many.price_path import PricePath
from kfree.inference.clusters.how_many.subsample import draw_pilot
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.inference.clusters.seeds import first_centres, global_centre
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.goal import Goal, Search, Start
from kfree.inference.loop import Budget, attempt
from kfree.inference.shared.groups import Groups, Held, Lams, find_slots
from kfree.inference.shared.hdp_fit import fit_shared
from kfree.inference.shared.hdp_lams import best_start, choose_lams
from kfree.inference.shared.hdp_pass import SharedFit, predict_rows, start_state
from kfree.inference.shared.hdp_search import best_shares, state_of
from kfree.inference.shared.row_choices import SharedState
from kfree.models.checks import check_weight
from kfree.models.clusters import LocalProblem, Model, best_of_seeds
from kfree.models.group_names import GroupIndex, check_groups


class SharedAim(NamedTuple):
    """What to fit, and where it comes from."""

    goal: Goal
    choice: Choice | None = None  # of the number of clusters of all rows, if a price was chosen from them
    labels: Array | None = None  # (n,) clusters of the rows that came with the penalties, if the fit starts from them
    again: bool = False  # the centres are those of an earlier fit

    @classmethod
    def of(
        cls,
        problem: LocalProblem,
        groups: Groups,
        wish: dict[str, Any],
        lams: tuple[Any, Any],
        init: Any,
        budget: Budget,
    ) -> "SharedAim":
        """The user's wish (fields of a goal) with prices (local, global; None: from the data) and ``init`` resolved."""
        local, top = lams
        own = isinstance(init, str) and init == "auto" and wish["search"] is Search.FULL
        given, table = local is not None and top is not None, problem.table
        if given and not own:
            return cls(_with(problem.goal(wish, local + top, init), Lams(local, top)))
        problem.check_reach("a price" if given else "'auto'")
        choice = None
        if given:
            prices, path = Lams(local, top), PricePath(draw_pilot(table), budget).trace()
        else:
            found = choose_lams(table, groups, (local, top), budget)
            prices, path, choice = found.lams, found.pooled.path, found.pooled.choice
        if not own:
            return cls(_with(problem.goal(wish, prices.both, init), prices), choice)
        start = best_start(table, groups, path, prices, wish["max_clusters"])
        goal = _with(problem.goal(wish, prices.both, start.mean + problem.shift), prices)._replace(paired=True)
        return cls(goal, choice, start.labels)

    def state(self, problem: LocalProblem, groups: Groups, budget: Budget, rng: np.random.Generator) -> SharedState:
        """The state before the first pass."""
        table, goal, lams = problem.table, self.goal, Lams.of(self.goal)

        def found() -> SharedState:
            if self.labels is not None:
                return state_of(table, groups, self.labels, rng)
            # seeds are chosen by what a cluster costs that nobody held before
            mean = first_centres(LocalLabelling(table), goal._replace(lam=lams.both), budget, rng)
            given = goal.start is not Start.MEAN
            state = start_state(mean, table, groups, given=given, rng=rng)
            wanted = given and (self.again or goal.search is Search.FULL)
            return best_shares(table, groups, state, lams) if wanted else state

        def nothing() -> SharedState:
            return start_state(global_centre(table), table, groups, given=False, rng=rng)

        return attempt(found, nothing, budget)

    def fit(self, problem: LocalProblem, groups: Groups, budget: Budget, seeds: Iterable[int]) -> SharedFit:
        """The best of some fits, one for each seed."""

        def fit(rng: np.random.Generator) -> SharedFit:
            state = self.state(problem, groups, budget, rng)
            return fit_shared(problem.table, groups, state, self.goal, budget)

        return best_of_seeds(fit, seeds, budget)


def _with(goal: Goal, lams: Lams) -> Goal:
    """A goal with both prices."""
    return goal._replace(lam_local=lams.local, lam=lams.top)


class SharedModel(NamedTuple):
    """Centres, and which group holds which."""

    model: Model
    names: GroupIndex | None  # None: fitted without groups, so that all rows belong to one
    held: Held
    penalty: float  # what a cluster that the group lacks costs a row more
    lams: Lams

    @classmethod
    def of(cls, problem: LocalProblem, fitted: SharedFit, names: GroupIndex | None, lams: Lams) -> "SharedModel":
        """The model of a finished fit."""
        return cls(Model.of(problem, fitted), names, fitted.held, fitted.penalty, lams)

    def codes(self, groups: Any, n: int) -> Array:
        """Number of the group of each row; -1 for rows of none that is known."""
        if groups is None:
            return np.full(n, 0 if self.names is None else -1, np.int32)
        labels = check_groups(groups, n)
        return np.full(n, -1, np.int32) if self.names is None else self.names.codes(labels)

    def choose(self, X: Any, groups: Any, sample_weight: Any = None, weighting: str = "none") -> "Chosen":
        """Where rows would go."""
        code = self.codes(groups, X.shape[0])
        table = self.model.table(X, check_weight(sample_weight, X.shape[0]), weighting)
        memory, centres = make_memory(table.n), self.model.inside(table)
        assign(table, centres, memory)
        return Chosen(self, table, centres, code, predict_rows(table, code, self.held, centres, memory, self.penalty))


class Chosen(NamedTuple):
    """Rows and the clusters they would go to."""

    shared: SharedModel
    table: Table
    centres: Centres
    code: Array
    labels: Array

    def cost(self) -> Array:
        """Divergence of each row from its centre."""
        cost = np.empty(self.table.n)

        def of_span(span: slice) -> None:
            cost[span] = own_cost(self.table, span, self.centres, self.labels[span])

        for _ in self.table.rows.each(of_span):
            pass
        return cost

    def lacking(self) -> Array:
        """Mask of the rows whose group does not hold their cluster."""
        held = self.shared.held.mask(np.arange(self.shared.held.start.size - 1), self.centres.mean.shape[0])
        return ~np.append(held, np.zeros((1, held.shape[1]), bool), axis=0)[self.code, self.labels]


class Locals(NamedTuple):
    """Local clusters as they are published."""

    labels: Array  # (n,) number of each row's local cluster inside its group; -1 for rows without weight elsewhere
    weights: sp.csr_matrix  # (J, K)
    number: int

    @classmethod
    def of(cls, problem: LocalProblem, groups: Groups, fitted: SharedFit) -> "Locals":
        """Number the local clusters of each group as its global ones are."""
        held, K = fitted.held, fitted.mean.shape[0]
        slot = find_slots(groups, held, fitted.labels, K)
        weight = np.bincount(slot, problem.table.rows.weights(groups.rows), held.member.size)
        labels = np.full(problem.table.n, -1, np.int32)
        labels[groups.rows] = slot - held.start[groups.code[groups.rows]]
        shape = (groups.n_groups, K)
        return cls(labels, sp.csr_matrix((weight, held.member, held.start), shape=shape), held.member.size)
