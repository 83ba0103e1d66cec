"""How many clusters: what the user asks for, where it is looked for, and what was found."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.fit import Fitted
from kfree.inference.clusters.how_many.choose import Choice, choose_lam
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.price_path import PricePath, Window, with_new_centres
from kfree.inference.goal import Goal, Start
from kfree.inference.loop import Budget
from kfree.models.clusters import Problem
from kfree.models.ranges import check_lam_range

Seeds = Callable[[Goal], Iterable[int]]


class Ask(NamedTuple):
    """How many clusters a user wants: one of the three is given, or lam is "auto"."""

    lam: Any = "auto"  # price of a cluster, or "auto"
    n_clusters: int | None = None
    radius: float | None = None
    init: Any = "auto"

    @property
    def word(self) -> str:
        """What was given, as it is written."""
        if self.n_clusters is not None:
            return f"n_clusters={self.n_clusters}"
        return f"radius={self.radius:g}" if self.radius is not None else f"lam={self.lam!r}"


class Answer(NamedTuple):
    """Clusters, and the prices for which there are as many."""

    fitted: Fitted
    lam: float | None  # None: a radius was given, or that number of clusters is best for no price
    window: tuple[float, float] | None
    choice: Choice | None = None  # if it was chosen from the rows


def find_clusters(problem: Problem, ask: Ask, wish: dict[str, Any], budget: Budget, seeds: Seeds) -> Answer:
    """Clusters by a price, a number, a radius, or the choice; ``wish`` holds the other fields of the goal."""
    if ask.radius is not None:
        goal = problem.goal(wish, float(ask.radius), ask.init, "radius")
        return Answer(problem.fit(goal, budget, seeds(goal)), None, None)
    if ask.n_clusters is not None:
        _check_number(problem, ask.n_clusters, wish["max_clusters"])
    elif not isinstance(ask.lam, str):
        check_lam_range(float(ask.lam), problem.n)
    start = problem.check_start(ask.init, wish["max_clusters"], ask.n_clusters)
    problem.check_reach(ask.word)
    if ask.n_clusters is None and isinstance(ask.lam, str):
        found = choose_lam(problem.labelling(), budget)
        return Search(problem, found.path, ask, start, wish, budget, seeds).at_price(found.lam, found.choice)
    path = PricePath(problem.labelling().pilot(), budget).trace("path, step")
    search = Search(problem, path, ask, start, wish, budget, seeds)
    return search.at_price(float(ask.lam)) if ask.n_clusters is None else search.of_number(ask.n_clusters)


def _check_number(problem: Problem, number: int, most: float) -> None:
    """As many clusters need as many different rows."""
    if number > most:
        raise ValueError(f"n_clusters={number} is more than max_clusters={most:g}. Pass one of them.")
    different = problem.count_different(number)
    if number > different:
        raise ValueError(too_few(number, different))


def too_few(number: int, different: int) -> str:
    """What to tell a user who wants more clusters than there can be."""
    return (
        f"n_clusters={number}, but X has only {different} different row{'s' if different > 1 else ''} "
        f"(with weight, as the divergence sees them). Pass n_clusters <= {different}."
    )


class Search(NamedTuple):
    """A path, and what is needed to fit all rows from it."""

    problem: Problem
    path: PricePath
    ask: Ask
    start: Any  # where the user wants to start; that of the path if ``ask.init`` is "auto"
    wish: dict[str, Any]
    budget: Budget
    seeds: Seeds

    @property
    def own(self) -> bool:
        """Whether fits start from the path."""
        return isinstance(self.ask.init, str) and self.ask.init == "auto"

    def at_price(self, lam: float, choice: Choice | None = None) -> Answer:
        """Clusters at a price."""
        window = self.path.best_at(lam)
        start, most = self.start, self.wish["max_clusters"]
        if self.own:
            if window.n_clusters > most:
                self.path.look([int(most)])
                window = window._replace(n_clusters=max(K for K in self.path.ks if most >= K))
            start = self.path.centres(window.n_clusters)
        goal = Goal(lam, start=start, paired=self.own, samples=start is Start.MEAN, **self.wish)
        fitted = self.problem.fit(goal, self.budget, self.seeds(goal))
        return Answer(fitted, lam, window[1:], choice)

    def of_number(self, number: int) -> Answer:
        """Exactly so many clusters; with a price if it gives the same ones."""
        window = self.path.window_of(number) if self.own else None
        if window is not None:
            found = self.at_price(window.middle)
            if found.fitted.mass.size == number:
                return found
        fitted = self._exactly(number)
        if fitted.mass.size < number and not self.budget.spent:
            raise ValueError(self._too_many(number, fitted.mass.size))
        return Answer(fitted, None, None)

    def _exactly(self, number: int) -> Fitted:
        """So many clusters, or fewer if they do not all keep rows."""
        goal = Goal(0.0, start=self._first(number), paired=True, **self.wish | {"max_clusters": number})
        return self.problem.fit(goal, self.budget, self.seeds(goal))

    def _too_many(self, number: int, most: int) -> str:
        """What to tell a user who wants more clusters than there can be, at most so many."""
        eta = self.problem.geometry.eta
        if not eta:
            return too_few(number, most)
        while (found := self._exactly(most).mass.size) < most:
            most = found
        return (
            f"With smoothing={eta:g} centres are drawn to the mean of all rows, and not all of n_clusters={number} "
            f"clusters keep rows. Pass less smoothing, or n_clusters <= {most}."
        )

    def _first(self, number: int) -> Any:
        """Where a fit of so many clusters starts."""
        if not self.own:
            return self.start
        self.path.look([number])
        if number in self.path.ks:
            return self.path.centres(number)
        # the time is up, or rows are too few of the sample: others open as they are needed
        below = max(K for K in self.path.ks if number >= K)
        return with_new_centres(self.path.pilot, self.path[below], min(number, self.path.pilot.n_distinct))


class EveryNumber(NamedTuple):
    """All numbers of clusters up to some: see ``LamPath``."""

    n_clusters: Array
    window: Array
    inertia: Array
    score: Array
    score_without_groups: Array
    spread_without_groups: Array
    choice: Choice


def find_path(problem: Problem, most: int, budget: Budget) -> EveryNumber:
    """Solutions for 1, 2, 3, ... clusters, up to ``most`` or twice the number chosen, as far as there are any."""
    problem.check_reach("lam_path")
    found = choose_lam(problem.labelling(), budget)
    if budget.interrupted:
        raise KeyboardInterrupt  # part of a path would pass for the whole
    path, choice = found.path, found.choice
    most = max(most, 2 * choice.best)
    path.look(range(1, most + 1))
    path.look_beyond(most)
    ks = [K for place, K in enumerate(path.ks, start=1) if place == K <= most]  # with a prior some may be missing
    windows = path.windows()
    found.evidence.look(ks)
    known = np.isfinite(choice.score_without_groups)

    def at_all(curve: Array) -> Array:
        return np.interp(np.log(ks), np.log(choice.n_clusters[known]), curve[known])

    return EveryNumber(
        np.array(ks),
        np.array([windows[K][1:] if K in windows else (np.nan, np.nan) for K in ks]),
        np.array([path.cost(K) for K in ks]),
        np.array([0.0 if K == 1 else found.evidence.scores.get(K, np.nan) for K in ks]),
        at_all(choice.score_without_groups),
        at_all(choice.spread_without_groups),
        choice,
    )


def find_price(problem: Problem, number: int) -> float:
    """A price for which so many clusters are best, or the nearest number that is for some."""
    problem.check_reach("lam_for_k")
    _check_number(problem, number, np.inf)
    path = PricePath(problem.labelling().pilot(), Budget()).trace()
    window = path.window_of(number)
    if window is None:
        near = sorted(path.windows().values(), key=lambda w: abs(np.log(w.n_clusters / number)))
        window = next(found for w in near if (found := path.window_of(w.n_clusters)) is not None)
    return window.middle


def choice_message(choice: Choice | None, alternative: Callable[[int, float], str]) -> str:
    """What a user should know of a choice; ``alternative`` writes the code for a number of clusters and its price."""
    if choice is None or (choice.best > 1 and choice.complete):
        return ""
    if not choice.complete:
        found = f"{choice.best} clusters are" if choice.best > 1 else "one cluster is"
        return (
            f"The fit ended while the number of clusters was chosen: {found} the best of what had been looked at. "
            "Raise max_time, or pass n_clusters."
        )
    few = sorted(choice.suggestions[: HOW_MANY.shown])
    price = {K: Window(K, *ends).middle for K, ends in zip(choice.n_clusters.tolist(), choice.window.tolist())}
    text = "No number of clusters stands out from what tables without groups show, so all rows are one cluster."
    if few:
        text += " To look at some all the same: " + ", ".join(alternative(K, price[K]) for K in few) + "."
    return text
