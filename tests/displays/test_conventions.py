"""What all displays promise: scikit-learn's conventions, nothing overlaps, at three sizes, on white and on black."""

import builtins
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import kfree
import kfree.displays
from kfree.displays import (
    CentersDisplay,
    ClusterMapDisplay,
    ClusterTreeDisplay,
    FeaturePathDisplay,
    FeaturesDisplay,
    LamPathDisplay,
    MixtureDisplay,
    ObjectiveTraceDisplay,
    TopicsDisplay,
)
from support.pictures import LOOKS, collisions, outside

NAMES = ["much fresh, little grocery", "detergents_paper and milk, little else", "little of all", "frozen"]

#: Each picture: a function of a place to find fitted models in (a fixture by its name), and of the axes.
DRAWN = {
    "lam path": lambda get, ax: LamPathDisplay.from_path(get("path"), ax=ax),
    "prices": lambda get, ax: LamPathDisplay.from_path(get("path"), kind="price", ax=ax),
    "tree": lambda get, ax: ClusterTreeDisplay.from_path(
        get("path"), n_clusters=4, levels=range(1, 9), names=NAMES, noun="customers", ax=ax
    ),
    "map": lambda get, ax: ClusterMapDisplay.from_estimator(
        get("clusters"), get("customers"), names=NAMES, noun="customers", ax=ax
    ),
    "heatmap": lambda get, ax: CentersDisplay.from_estimator(get("clusters"), get("customers"), names=NAMES, ax=ax),
    "profiles": lambda get, ax: CentersDisplay.from_estimator(get("clusters"), kind="profiles", names=NAMES, ax=ax),
    "centres as images": lambda get, ax: CentersDisplay.from_estimator(
        get("clusters"), kind="images", image_shape=(2, 3), names=NAMES, ax=ax
    ),
    "trace": lambda get, ax: ObjectiveTraceDisplay.from_estimator(get("mixture"), ax=ax),
    "chains": lambda get, ax: ObjectiveTraceDisplay.from_estimator(get("sampler"), ax=ax),
    "topics": lambda get, ax: TopicsDisplay.from_estimator(get("topics"), ax=ax),
    "map of topics": lambda get, ax: TopicsDisplay.from_estimator(get("topics"), kind="map", ax=ax),
    "feature path": lambda get, ax: FeaturePathDisplay.from_estimator(get("features"), ax=ax),
    "components": lambda get, ax: FeaturesDisplay.from_estimator(get("features"), image_shape=(6, 8), ax=ax),
    "bars": lambda get, ax: FeaturesDisplay.from_estimator(get("features"), ax=ax),
    "examples": lambda get, ax: FeaturesDisplay.from_estimator(
        get("features"), get("parts"), kind="examples", image_shape=(6, 8), ax=ax
    ),
    "together": lambda get, ax: FeaturesDisplay.from_estimator(get("features"), kind="together", ax=ax),
    "mixture": lambda get, ax: MixtureDisplay.from_estimator(get("mixture"), get("customers"), ax=ax),
}
PAIRS = ("feature path",)


@pytest.mark.parametrize(("size", "style"), LOOKS, ids=str)
@pytest.mark.parametrize("name", DRAWN)
def test_texts_are_inside_and_apart_at_all_sizes_on_white_and_on_black(name, size, style, request):
    with plt.style.context(style), warnings.catch_warnings():
        for kind in (UserWarning, RuntimeWarning, FutureWarning):
            warnings.simplefilter("error", kind)
        pair = name in PAIRS
        figure, ax = plt.subplots(1, 2 if pair else 1, figsize=(size[0] * (1 + pair), size[1]), layout="constrained")
        DRAWN[name](request.getfixturevalue, ax)
        assert not collisions(figure)
        assert not outside(figure)


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_makes_a_figure_of_its_own_or_draws_where_it_is_told(name, request):
    own = DRAWN[name](request.getfixturevalue, None)
    assert own.figure_.number in plt.get_fignums()
    assert not collisions(own.figure_)
    figure, axes = plt.subplots(1, 4, figsize=(24, 4))
    given = axes[:2] if name in PAIRS else axes[0]
    told = DRAWN[name](request.getfixturevalue, given)
    assert told.figure_ is figure
    if name in PAIRS:
        assert told.axes_ is given
    else:
        assert told.ax_ is given
    assert not axes[-1].has_data()


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_can_be_drawn_again_and_saved(name, request, tmp_path):
    display = DRAWN[name](request.getfixturevalue, None)
    first = display.figure_
    if name == "examples":
        display.plot(X=request.getfixturevalue("parts"), kind="examples", image_shape=(6, 8))
    else:
        display.plot()
    assert display.figure_ is not first
    first.savefig(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


@pytest.mark.parametrize("name", ["topics", "bars"])
def test_small_axes_stand_in_axes_that_have_no_place_in_a_grid(name, request):
    figure = plt.figure(figsize=(9, 6))
    display = DRAWN[name](request.getfixturevalue, figure.add_axes((0.1, 0.1, 0.8, 0.8)))
    assert len(display.axes_) == len(display.bars_) > 1


@pytest.mark.parametrize("name", kfree.displays.__all__)
def test_a_display_is_public_and_follows_the_conventions_of_scikit_learn(name):
    display = getattr(kfree, name)
    assert display is getattr(kfree.displays, name)
    assert all(p.kind is p.KEYWORD_ONLY for p in list(inspect.signature(display).parameters.values()))
    assert next(iter(inspect.signature(display.from_estimator).parameters)) == "estimator"
    assert "ax" in inspect.signature(display.plot).parameters
    for method in (display.from_estimator, display.plot):
        assert "Returns" in method.__doc__


def test_without_matplotlib_an_error_says_how_to_get_it(clusters, customers, monkeypatch):
    find = builtins.__import__

    def fail(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return find(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(ImportError, match=r'pip install "kfree\[plot\]"'):
        ClusterMapDisplay.from_estimator(clusters, customers)


def test_models_that_are_not_fitted_or_of_another_kind_are_refused(clusters, topics, customers):
    from sklearn.exceptions import NotFittedError

    for draw in (
        lambda m: ClusterMapDisplay.from_estimator(m, customers),
        lambda m: CentersDisplay.from_estimator(m),
        lambda m: LamPathDisplay.from_estimator(m, customers),
        lambda m: ClusterTreeDisplay.from_estimator(m, customers),
        ObjectiveTraceDisplay.from_estimator,
        TopicsDisplay.from_estimator,
    ):
        with pytest.raises(NotFittedError):
            draw(kfree.DPMeans())
    with pytest.raises(TypeError, match="no centres"):
        CentersDisplay.from_estimator(topics)
    with pytest.raises(TypeError, match="has no topics"):
        TopicsDisplay.from_estimator(clusters)
    with pytest.raises(TypeError, match="has no latent features"):
        FeaturesDisplay.from_estimator(clusters)
    with pytest.raises(TypeError, match="no covariances_"):
        MixtureDisplay.from_estimator(clusters, customers)
    with pytest.raises(TypeError, match="has no path"):
        FeaturePathDisplay.from_estimator(clusters)
    with pytest.raises(TypeError, match="one of DPMeans"):
        LamPathDisplay.from_estimator(topics, customers)


def test_wrong_words_and_shapes_say_what_to_do(clusters, customers, features, path):
    with pytest.raises(ValueError, match="Unknown kind 'pie'"):
        CentersDisplay.from_estimator(clusters, kind="pie")
    with pytest.raises(ValueError, match="needs image_shape"):
        CentersDisplay.from_estimator(clusters, kind="images")
    with pytest.raises(ValueError, match=r"image_shape=\(5, 5\) does not fit rows of 6 numbers"):
        CentersDisplay.from_estimator(clusters, kind="images", image_shape=(5, 5))
    with pytest.raises(ValueError, match="2 names were given for 4 clusters"):
        ClusterMapDisplay.from_estimator(clusters, customers, names=["a", "b"])
    with pytest.raises(ValueError, match="2 names of columns were given for 6 columns"):
        CentersDisplay.from_estimator(clusters, columns=["a", "b"])
    with pytest.raises(ValueError, match="needs X"):
        FeaturesDisplay.from_estimator(features, kind="examples", image_shape=(6, 8))
    with pytest.raises(ValueError, match="takes two axes, got 1"):
        FeaturePathDisplay.from_estimator(features, ax=plt.subplots()[1])
    with pytest.raises(ValueError, match="n_clusters must be >= 1"):
        LamPathDisplay.from_path(path, n_clusters=0)
    with pytest.raises(ValueError, match="max_rows must be >= 1"):
        ClusterMapDisplay.from_estimator(clusters, customers, max_rows=0)
    with pytest.raises(ValueError, match="coordinates must be 210 finite rows"):
        ClusterMapDisplay.from_estimator(clusters, customers, coordinates=np.zeros((3, 2)))
