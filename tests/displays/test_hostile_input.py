"""Words that are formulas elsewhere, tables without spread, numbers at the ends of the domain: all are drawn."""

import warnings

import numpy as np
import pandas as pd
import pytest

from kfree import (
    CentersDisplay,
    ClusterMapDisplay,
    ClusterTreeDisplay,
    DPMeans,
    FeaturesDisplay,
    KFeatures,
    MixtureDisplay,
    ObjectiveTraceDisplay,
    TopicsDisplay,
)
from support.pictures import texts

HOSTILE = ("$100 to $200", r"$\frac{$", "a\nb\tc", "x" * 300, "", "_^{}%&#~\\", "<b>é</b>", "$", r"\$", "0", "a $ b")


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings():
        for kind in (UserWarning, RuntimeWarning, FutureWarning):
            warnings.simplefilter("error", kind)
        yield


def drawn(display):
    """The texts of a picture, drawn without complaint."""
    return [text.get_text() for text, _ in texts(display.figure_)]


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 4))
def test_words_of_users_are_shown_as_they_are(start):
    words = [HOSTILE[(start + i) % len(HOSTILE)] for i in range(4)]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 4)) + 8 * np.repeat(np.eye(4)[:3], [20, 10, 10], axis=0), columns=words)
    model, names = DPMeans(n_clusters=3).fit(X), words[:3]
    drawn(ClusterMapDisplay.from_estimator(model, X, names=names, noun=words[0]))
    drawn(ClusterMapDisplay.from_predictions(X.iloc[:, :2], model.labels_, names=names))
    drawn(ClusterTreeDisplay.from_predictions([0 * model.labels_, model.labels_], names=names, noun=words[0]))
    for kind in ("heatmap", "profiles", "images"):
        drawn(CentersDisplay.from_estimator(model, X, names=names, kind=kind, image_shape=(2, 2)))
    features = KFeatures(3, n_init=1).fit(X)
    drawn(FeaturesDisplay.from_estimator(features, names=names, noun=words[0]))
    drawn(FeaturesDisplay.from_estimator(features, names=names, kind="together", noun=words[0]))
    topics = TopicsDisplay(components=rng.dirichlet(np.ones(4), size=4), words=words, sizes=np.ones(4))
    drawn(topics.plot())
    drawn(topics.plot(kind="map"))


def test_prices_in_dollars_are_no_formulas():
    display = ClusterMapDisplay.from_predictions(np.eye(2), [0, 1], names=["$5 to $9", "above $9"])
    assert {r"0: \$5 to \$9", r"1: above \$9"} == {text.get_text() for text in display.names_}


@pytest.mark.parametrize(
    ("n", "p", "scale"), [(1, 1, 1), (2, 2, 1), (3, 5, 1e150), (5, 3, 1e-150), (50, 3, 0), (30, 400, 1)]
)
def test_tables_of_any_shape_and_size_are_drawn(n, p, scale):
    rng = np.random.default_rng(0)
    X, labels = scale * rng.normal(size=(n, p)), rng.integers(0, max(1, n // 2), size=n)
    drawn(ClusterMapDisplay.from_predictions(X, labels))
    drawn(ClusterMapDisplay.from_predictions(X, np.full(n, -1)))
    drawn(ClusterTreeDisplay.from_predictions([0 * labels, labels]))
    for kind in ("heatmap", "profiles"):
        drawn(CentersDisplay(centres=X[:5], sizes=np.ones(min(n, 5))).plot(kind=kind))


@pytest.mark.parametrize("scale", [0.0, 1e-150, 1.0, 1e140])
def test_mixtures_without_spread_in_some_direction_are_drawn(scale):
    rng = np.random.default_rng(0)
    shapes = np.array([np.eye(2), np.zeros((2, 2)), np.diag([1.0, 0.0])]) * scale**2
    display = MixtureDisplay(
        means=scale * rng.normal(size=(3, 2)),
        covariances=shapes,
        weights=[0.5, 0.3, 0.2],
        xy=scale * rng.normal(size=(20, 2)),
        labels=np.zeros(20, int),
        n_rows=20,
    )
    drawn(display.plot())
    assert len(display.ellipses_) == 3


def test_a_hundred_clusters_are_drawn():
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 100
    drawn(ClusterMapDisplay.from_predictions(rng.normal(size=(300, 2)), labels))
    tree = ClusterTreeDisplay.from_predictions([labels // 10, labels])
    drawn(tree)
    assert tree.levels_[1].width.min() > 0
    for kind in ("heatmap", "profiles", "images"):
        display = CentersDisplay(centres=rng.normal(size=(100, 49)), sizes=np.ones(100))
        drawn(display.plot(kind=kind, image_shape=(7, 7)))


def test_traces_that_stand_still_or_are_not_finite_are_drawn():
    for trace in ([5.0, 5.0, 5.0], [np.nan, 5.0, -5.0], [1e300, 5.0, -5.0]):
        drawn(ObjectiveTraceDisplay(traces=[trace]).plot())
