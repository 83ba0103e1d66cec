"""Between HDPMeans and the inference below it: a model of shared clusters that can be asked about rows of groups."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign, own_cost
from kfree.inference.clusters.seeds import farthest_first, global_centre
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.loop import Budget
from kfree.inference.shared.groups import Groups, Held, Lams, find_slots
from kfree.inference.shared.hdp_lams import choose_lams
from kfree.inference.shared.hdp_pass import Fitted, Plan, Shared, predict_rows, start_state
from kfree.inference.shared.hdp_search import best_shares, state_of
from kfree.models.checks import check_weight
from kfree.models.clusters import Model, Problem, Start, auto_message
from kfree.models.group_names import GroupIndex, check_groups


class SharedStart(NamedTuple):
    """Where a fit starts and with which penalties."""

    lams: Lams
    start: Start
    labels: Array | None = None  # (n,) clusters of the rows that came with the penalties, if the fit starts from them
    again: bool = False  # the centres are those of an earlier fit

    @classmethod
    def of(
        cls,
        problem: Problem,
        groups: Groups,
        init: Any,
        lams: tuple[float | None, float | None],
        most: float,
        budget: Budget,
    ) -> "SharedStart":
        """Resolve the penalties (None: from the data) and ``init``."""
        local, top = lams
        if local is not None and top is not None:
            return cls(Lams(local, top), problem.start(init, local + top, most, budget))
        try:
            found = choose_lams(problem.table, groups, local, top, budget)
        except KeyboardInterrupt:
            budget.interrupted = True
            reach = float(farthest_first(problem.table, 1)[0][0])
            reach = reach if 0 < reach < np.inf else 1.0
            instead = Lams(reach if local is None else local, reach if top is None else top)
            return cls(instead, Start(instead.both, "mean", False, False))
        own = isinstance(init, str) and init == "auto" and found.pooled.mean.shape[0] <= most
        start = problem.start(found.pooled.mean + problem.shift if own else init, found.lams.both, most, budget)
        message = auto_message(found.pooled, budget)
        start = start._replace(message=message, window=found.pooled.window, n_groups=found.pooled.n_groups)
        return cls(found.lams, start, found.labels if own else None)

    @property
    def price(self) -> bool:
        """Whether penalties and start were found together."""
        return self.labels is not None

    def state(self, problem: Problem, groups: Groups, plan: Plan, budget: Budget, rng: np.random.Generator) -> Shared:
        """The state before the first pass."""
        if self.labels is not None:
            return state_of(problem.table, groups, self.labels, rng)
        given = self.start.given
        try:
            mean = problem.first_centres(self.start, plan.max_clusters, budget, rng)
        except KeyboardInterrupt:
            budget.interrupted, given, mean = True, False, global_centre(problem.table)
        state = start_state(mean, problem.table, groups, given=given, rng=rng)
        wanted = given and (self.again or plan.search == "full")
        return best_shares(problem.table, groups, state, plan.lams) if wanted else state


class SharedModel(NamedTuple):
    """Centres, and which group holds which."""

    model: Model
    names: GroupIndex | None  # None: fitted without groups, so that all rows belong to one
    held: Held
    penalty: float  # what a cluster that the group lacks costs a row more
    lams: Lams

    @classmethod
    def of(cls, problem: Problem, fitted: Fitted, names: GroupIndex | None, lams: Lams) -> "SharedModel":
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
        memory, centres = make_memory(table.n), self.model.inside()
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
    def of(cls, problem: Problem, groups: Groups, fitted: Fitted) -> "Locals":
        """Number the local clusters of each group as its global ones are."""
        held, K = fitted.held, fitted.mean.shape[0]
        slot = find_slots(groups, held, fitted.labels, K)
        weight = np.bincount(slot, problem.table.rows.weights(groups.rows), held.member.size)
        labels = np.full(problem.table.n, -1, np.int32)
        labels[groups.rows] = slot - held.start[groups.code[groups.rows]]
        shape = (groups.n_groups, K)
        return cls(labels, sp.csr_matrix((weight, held.member, held.start), shape=shape), held.member.size)
