"""What is on a page, by the kind of the model."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import cut_tree

from kfree.displays.flatten import flatten, scale_of
from kfree.estimators._base import HardClusters
from kfree.estimators._mixture import MixtureEstimator
from kfree.estimators.dp_means import DPMeans
from kfree.estimators.hdp_topics import HDPTopics
from kfree.families import Array
from kfree.reports.asked import Asked
from kfree.reports.cards import MOST, Card, cluster_cards, feature_cards, topic_cards
from kfree.reports.charts import bars, clearness_chart, curve, together
from kfree.reports.densities import density_chart, log_density_of
from kfree.reports.facts import Facts, facts_of
from kfree.reports.sampling import Sample, draw
from kfree.reports.scatter import Plane, density_lines, draw_map, frame_of
from kfree.reports.stops import (
    Look,
    Stop,
    Stops,
    choice_of,
    numbers_to_try,
    price_words,
    stops_of_rows,
    stops_of_topics,
    with_colours,
)
from kfree.reports.svg import SHADES, Markup, Picture, Table
from kfree.reports.tree import tree_of
from kfree.reports.wording import NAME, clean, count, number, percent

#: Rows of a sample that other numbers of clusters are found in, and of these the points of the map.
_ROWS, _POINTS = 1000, 450
#: Characters of what is said first.
_LEAD = 3000
#: Most groups of HDPMeans that are told, and features whose company is drawn.
_GROUPS, _TOGETHER = 40, 40
#: Values beyond this, or below one over it, have no squares; rows below which sparse ones are made dense.
_SMALL, _FEW = 1e-100, 4


class Size(NamedTuple):
    """A line of the list of sizes."""

    name: str
    shade: int
    share: float  # percent of the largest
    words: str


class Explorer(NamedTuple):
    """Map and sizes; with a slider and a tree if there is more than one stop."""

    stops: Stops
    points: Array  # (m,) things of the stops that are points of the map
    map: Markup
    tree: Picture | None
    note: str  # what the points are

    @property
    def said(self) -> list[str]:
        """What is said at each stop."""
        return [f"{count(stop.n_clusters, self.stops.noun)}. {stop.price}" for stop in self.stops.stops]

    @property
    def sizes(self) -> list[list[Size]]:
        """The sizes at each stop."""
        total = self.stops.weight.sum()
        return [
            [
                Size(name, int(shade) % SHADES, round(100 * size / stop.sizes.max(), 1), percent(size / total))
                for name, shade, size in zip(stop.names, stop.shade, stop.sizes.tolist())
            ]
            for stop in self.stops.stops
        ]


class Page(NamedTuple):
    """All that a page shows, from top to bottom."""

    title: str
    lead: str
    heading: str  # of map and charts
    explorer: Explorer | None
    evidence: tuple[Picture, ...]  # why so many
    thing: str  # what the cards are about: "cluster"
    cards: tuple[Card, ...]
    left_out: int  # cards that there is no room for
    tables: tuple[tuple[str, Table], ...]
    facts: Facts


def page_of(asked: Asked) -> Page:
    """The page of a model."""
    model = asked.model
    if isinstance(model, HDPTopics):
        return _topics(asked)
    if isinstance(model, HardClusters | MixtureEstimator):
        return _clusters(asked)
    return _features(asked)


def _clusters(asked: Asked) -> Page:
    """Clusters, or components of a mixture."""
    model = asked.model
    thing = "component" if isinstance(model, MixtureEstimator) and not hasattr(model, "n_clusters_") else "cluster"
    labels, profile = (
        np.asarray(model.predict(asked.given)),
        model._profile(asked.given, spoken=asked.spoken, called=asked.in_short),
    )
    K = len(profile.names)
    names = tuple("" if asked.of_pixels else clean(name, NAME) for name in profile.names)
    sample = draw(labels, _ROWS, least=3)
    evidence: list[Picture] = []
    note = ""
    if isinstance(model, DPMeans):
        look = Look(asked, sample)
        note = _said_of_look(look, sample)
        stops = stops_of_rows(look, sample, labels[sample.rows], names)
        evidence += clearness_chart(choice_of(look), model.n_clusters_)
    else:
        stops = _one_stop(labels[sample.rows], sample.weight, names, thing)
    if hasattr(model, "posterior_n_clusters_"):
        evidence.append(_posterior("clusters", *model.posterior_n_clusters_))
    if isinstance(model, MixtureEstimator):
        evidence += density_chart(asked)
    return Page(
        f"{count(K, thing)} in {count(asked.n, 'row')}",
        clean(model.explain(), _LEAD),
        f"How many {thing}s" if len(stops.stops) > 1 or evidence else "Map",
        _explore(asked, stops, sample, thing, note) if sample.rows.size else None,
        tuple(evidence),
        thing,
        cluster_cards(asked, profile, thing),
        max(0, K - MOST),
        _tables(model),
        facts_of(asked),
    )


def _one_stop(labels: Array, weight: Array, names: tuple[str, ...], thing: str) -> Stops:
    """What was found, and nothing else: a stop whose clusters have the numbers of the labels."""
    sizes = np.bincount(labels, weights=weight, minlength=len(names))
    stop = Stop(labels, sizes, names, "", np.empty(0))
    return with_colours([stop], 0, weight, thing)


def _explore(asked: Asked, stops: Stops, sample: Sample, thing: str, note: str) -> Explorer:
    """The map of some rows of a sample; ``note`` says more of the stops."""
    chosen = stops.stops[stops.chosen]
    points = draw(chosen.labels, _POINTS, least=1).rows
    X = asked.X[sample.rows[points]]
    plane = _plane(asked, X)
    density = log_density_of(asked, X, plane.xy) if isinstance(asked.model, MixtureEstimator) else None
    lines = [] if density is None else density_lines(frame_of(plane), density)
    title = f"Map of {count(points.size, 'row')} in the colours of their {thing}s"
    drawing = draw_map(plane, chosen.labels[points], chosen.shade, title, lines)
    said = [_said_of_points(asked.n - round(float(stops.weight.sum())), points.size, asked.n, thing)]
    if lines:
        said.append(f"Lines enclose {percent(0.5)}, {percent(0.8)} and {percent(0.95)} of the density.")
    return Explorer(stops, points, drawing, None if len(stops.stops) == 1 else tree_of(stops), " ".join([*said, note]))


def _said_of_points(outside: int, shown: int, n: int, thing: str) -> str:
    """Which rows are the points of a map."""
    if shown < n - outside:
        return f"Points are {number(shown)} of {number(n)} rows, drawn at random, some of every {thing}."
    return (
        f"Points are all rows of {thing}s; {number(outside)} rows are in none." if outside else "Points are all rows."
    )


def _said_of_look(look: Look, sample: Sample) -> str:
    """Where other numbers of clusters were looked for, if not everywhere."""
    where = [] if sample.whole else [f"{number(sample.rows.size)} rows that stand for all"]
    if not look.whole:
        where.append(f"the {number(look.columns.size)} columns that vary most")
    return f"Other numbers of clusters are found in {' and '.join(where)}." if where else ""


def _plane(asked: Asked, X: Any) -> Plane:
    """Rows as one or two columns, whose numbers are told, or in the plane of their principal components."""
    names = [clean(name, 40) for name in asked.columns]
    flat = flatten(_moderate(X), names, scale_of(asked.model))
    radius = np.full(X.shape[0], 4.0)
    if X.shape[1] > 2:
        return Plane(flat.xy, flat.labels, (False, False), radius)
    return Plane(flat.xy, (names[0], names[1] if len(names) > 1 else ""), (True, len(names) > 1), radius)


def _moderate(X: Any) -> Any:
    """Rows whose squares neither overflow nor vanish; dense if they are few."""
    X = X.toarray() if sp.issparse(X) and min(X.shape) < _FEW else X
    largest = float(abs(X).max())
    if X.shape[1] <= 2 or _SMALL < largest < 1 / _SMALL or largest == 0:
        return X
    return X * (1 / largest) if 1 / largest < np.inf else X * (1 / _SMALL)


def _posterior(things: str, values: Any, chances: Any) -> Picture:
    """How probable each number is."""
    best = int(np.argmax(chances))
    caption = f"{number(values[best])} {things} in {percent(chances[best])} of the samples"
    return bars(caption, f"number of {things}", np.asarray(values), np.asarray(chances))


def _tables(model: Any) -> tuple[tuple[str, Table], ...]:
    """Groups of HDPMeans, and how far chains agree."""
    found = []
    if hasattr(model, "group_clusters_") and len(model.groups_) > 1:
        shares = model.group_clusters_.toarray()
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        rows = tuple(
            (clean(group, 30), *(percent(s) if s > 0 else "" for s in row[:MOST]))
            for group, row in zip(model.groups_[:_GROUPS].tolist(), shares)
        )
        table = Table(("group", *(str(k) for k in range(min(MOST, shares.shape[1])))), rows)
        left = len(model.groups_) - len(rows)
        found.append(("Groups and their clusters" + (f" ({left} more groups)" if left else ""), table))
    if hasattr(model, "diagnostics_"):
        rows = tuple((clean(name), number(some.rhat), number(some.ess)) for name, some in model.diagnostics_.items())
        found.append(("How far the chains agree", Table(("", "R-hat (1 is best)", "effective sample size"), rows)))
    return tuple(found)


def _topics(asked: Asked) -> Page:
    """Topics of documents."""
    model, G = asked.model, asked.model.n_topics_
    names = [clean(name, 60) for name in model.topic_names_]
    return Page(
        f"{count(G, 'topic')} in {count(asked.n, 'document')}",
        clean(model.explain(), _LEAD),
        "How many topics",
        _explore_topics(model, names) if G > 1 else None,
        (),
        "topic",
        topic_cards(asked),
        max(0, G - MOST),
        (),
        facts_of(asked),
    )


def _explore_topics(model: Any, names: list[str]) -> Explorer:
    """Topics as circles, which merge as the slider goes to the left."""
    G, sizes, tree = model.n_topics_, np.asarray(model.topic_sizes_, dtype=np.float64), model.topic_tree()
    numbers = sorted({*numbers_to_try(G, G), G})
    every = cut_tree(tree)  # (G, G), from all topics apart to all in one
    groups = [every[:, G - K] for K in numbers]
    heights = [0.0, *tree[:, 2], np.inf]  # at heights[i] the i-th merge pays
    prices = [price_words((heights[G - K], heights[G - K + 1]), "topic") for K in numbers]
    stops = stops_of_topics(groups, sizes, names, prices)
    flat = flatten(np.asarray(model.components_), [""] * model.components_.shape[1], "shares")
    radius = 4 + 26 * np.sqrt(sizes / sizes.max()) * min(1.0, 6 / np.sqrt(G))
    plane = Plane(flat.xy, ("", ""), (False, False), radius, each=True)
    title = f"Map of {count(G, 'topic')}, larger where they have more words"
    drawing = draw_map(plane, np.arange(G), stops.stops[stops.chosen].shade, title, [])
    note = "Topics that use the same words lie near each other (principal components of the roots of word shares)."
    return Explorer(stops, np.arange(G), drawing, tree_of(stops), note)


def _features(asked: Asked) -> Page:
    """Features, of which a row has none, one or many."""
    model = asked.model
    Z = np.asarray(model.transform(asked.given))
    K = Z.shape[1]
    evidence = []
    path = getattr(model, "path_", None)
    if path is not None and path.n_components.size > 1:
        names = ("number of features", "sum of squares that is left")
        caption = f"What is left unexplained, and {count(K, 'feature')} as found"
        evidence.append(curve(caption, names, path.n_components, path.inertia, marked=K))
    if hasattr(model, "posterior_n_components_"):
        evidence.append(_posterior("features", *model.posterior_n_components_))
    if 1 < K <= _TOGETHER:
        counts = Z.T.astype(np.float64) @ Z
        shares = counts / np.maximum(np.diag(counts)[:, None], 1.0)
        evidence.append(together("Which features come together", shares, [f"feature {k}" for k in range(K)]))
    return Page(
        f"{count(K, 'feature')} in {count(asked.n, 'row')}",
        clean(model.explain(), _LEAD),
        "How many features" if len(evidence) > 1 or K > _TOGETHER else "Features together",
        None,
        tuple(evidence),
        "feature",
        feature_cards(asked, Z),
        max(0, K - MOST),
        _tables(model),
        facts_of(asked),
    )
