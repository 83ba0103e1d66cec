"""Pictures of clusters show what the models say."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal

from kfree import (
    CentersDisplay,
    ClusterMapDisplay,
    ClusterTreeDisplay,
    DPMeans,
    HDPMeans,
    LamPathDisplay,
    ObjectiveTraceDisplay,
    VariationalDPMixture,
    lam_path,
)
from kfree.displays.flatten import SCALES, flatten
from kfree.displays.palette import GREY, colours
from kfree.displays.placing import spread
from kfree.displays.reading import numbered
from support.pictures import collisions

# -- the path --------------------------------------------------------------------------------------------------------


def test_a_path_marks_what_was_chosen_and_its_window_of_prices(path, clusters, customers):
    display = LamPathDisplay.from_path(path)
    assert path.best == 4
    assert display.mark_.get_xdata()[0] == 4
    assert display.ax_.get_title(loc="left").startswith("4 clusters are")
    assert_allclose(display.line_.get_ydata(), path.score[1:])
    priced = LamPathDisplay.from_path(path, kind="price")
    assert_allclose(
        priced.mark_.get_extents().intervalx,
        priced.ax_.transData.transform(np.column_stack([path.window[3], [0, 0]]))[:, 0],
    )
    xs, ks = priced.line_.get_data()
    assert (np.diff(xs) >= 0).all()
    assert (np.diff(ks) <= 0).all()
    assert set(ks) == set(path.n_clusters[np.isfinite(path.window[:, 0])])


def test_a_path_of_a_model_marks_the_number_of_the_model(customers):
    model = DPMeans(n_clusters=3).fit(customers)
    display = LamPathDisplay.from_estimator(model, customers, max_clusters=6)
    assert display.ax_.get_title(loc="left") == "3 clusters; the choice would be 4"
    far = LamPathDisplay.from_path(display.path, n_clusters=10**6, kind="price")
    assert far.mark_ is None
    assert "best for no price" in far.ax_.get_title(loc="left")


def test_a_path_that_chooses_nothing_says_so():
    X = np.random.default_rng(0).normal(size=(150, 2))
    noise = LamPathDisplay.from_path(lam_path(X, max_clusters=4))
    assert noise.ax_.get_title(loc="left") == "No number of clusters stands out"
    assert noise.mark_ is None


# -- the tree --------------------------------------------------------------------------------------------------------


def test_widths_of_a_tree_are_shares_and_bands_fill_them(path):
    display = ClusterTreeDisplay.from_path(path, levels=range(1, 7))
    unit = display.levels_[0].width.sum()
    for labels, level, bars in zip(display.labels, display.levels_, display.bars_):
        assert_allclose(level.width, unit * np.bincount(labels) / len(labels))
        assert_allclose([bar.get_width() for bar in bars], level.width)
        left = np.sort(level.left)
        assert (np.diff(left) > level.width[level.order][:-1] - 1e-12).all()  # side by side
    pairs = [np.unique(np.stack([a, b]), axis=1).shape[1] for a, b in zip(display.labels, display.labels[1:])]
    assert 0 < len(display.bands_) <= sum(pairs)


def test_children_stand_below_their_parents_in_the_same_order(path):
    display = ClusterTreeDisplay.from_path(path, levels=range(1, 7))
    for upper, lower, here, before in zip(display.levels_, display.levels_[1:], display.labels[1:], display.labels):
        parent = [np.bincount(before[here == k]).argmax() for k in lower.order]
        places = [list(upper.order).index(k) for k in parent]
        assert places == sorted(places)


def test_the_chosen_level_has_the_colours_of_the_map_and_the_names(path, clusters, customers):
    names = ["a", "b", "c", "d"]
    display = ClusterTreeDisplay.from_estimator(clusters, customers, names=names, max_clusters=6)
    assert display._count(display.chosen) == 4
    assert [to_hex(bar.get_facecolor()) for bar in display.bars_[display.chosen]] == colours(4)
    assert [text.get_text() for text in display.names_] == ["0: a", "1: b", "2: c", "3: d"]
    assert "4 clusters of 210 rows" in display.ax_.get_title(loc="left").replace("\n", " ")
    assert_array_equal(display.labels[display.chosen], clusters.labels_)


def test_a_tree_of_any_labels_with_weights_and_rows_without_a_cluster():
    coarse, fine = np.array([0, 0, 0, 1, 1, -1]), np.array([0, 0, 1, 2, 2, 2])
    weight = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 2.0])
    display = ClusterTreeDisplay.from_predictions([coarse, fine], sample_weight=weight)
    first, second = (level.width / level.width.sum() for level in display.levels_)
    assert_allclose(first, [4 / 6, 2 / 6])
    assert_allclose(second, [2 / 8, 2 / 8, 4 / 8])
    corners = [band.get_path().vertices for band in display.bands_]
    widths = [corner[-2, 0] - corner[0, 0] for corner in corners]
    assert_allclose(
        np.sort(widths) / display.levels_[1].width.sum(), [2 / 8, 2 / 8, 2 / 8]
    )  # one row comes from nowhere
    with pytest.raises(ValueError, match="two or more arrays of whole numbers"):
        ClusterTreeDisplay.from_predictions([coarse])
    with pytest.raises(ValueError, match="two or more arrays of whole numbers"):
        ClusterTreeDisplay.from_predictions([coarse, fine[:3]])
    with pytest.raises(ValueError, match=r"labels\[1\] has no row in a cluster"):
        ClusterTreeDisplay.from_predictions([coarse, np.full(6, -1)])


def test_a_tree_of_twenty_levels_is_readable():
    rng = np.random.default_rng(0)
    finest = rng.integers(20, size=2000)
    display = ClusterTreeDisplay.from_predictions([finest % K for K in (*range(1, 20), 20)], chosen=8)
    assert not collisions(display.figure_)
    assert len(display.levels_[-1].left) == 20
    assert display.levels_[-1].left.min() >= 0
    assert (display.levels_[-1].left + display.levels_[-1].width).max() <= 1 + 1e-12


# -- the map ---------------------------------------------------------------------------------------------------------


def test_rows_of_a_map_have_the_colours_of_their_clusters(clusters, customers):
    display = ClusterMapDisplay.from_estimator(clusters, customers, noun="customers")
    shades = [to_hex(colour) for colour in display.points_.get_facecolors()]
    assert shades == [colours(4)[k] for k in clusters.labels_]
    assert display.ax_.get_title(loc="left") == "4 clusters of 210 customers"
    assert len(display.points_.get_offsets()) == 210
    assert display.ax_.get_xlabel().startswith("principal component 1 (")


def test_rows_without_a_cluster_are_grey_and_below_the_others():
    X = np.random.default_rng(0).normal(size=(30, 2))
    labels = np.array([-1, 0, 1] * 10)
    display = ClusterMapDisplay.from_predictions(X, labels)
    shades = [to_hex(colour) for colour in display.points_.get_facecolors()]
    assert shades[:10] == [GREY] * 10
    assert "2 clusters of 30 rows, 10 rows in none (grey)" in display.ax_.get_title(loc="left").replace("\n", " ")
    assert_allclose(display.points_.get_offsets()[:10], X[labels < 0])


def test_two_columns_are_drawn_as_they_are_under_their_names(customers):
    X = customers[["Milk", "Fresh"]]
    display = ClusterMapDisplay.from_estimator(DPMeans(n_clusters=2).fit(X), X)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Milk", "Fresh")
    assert_allclose(display.xy, X.to_numpy())
    one = ClusterMapDisplay.from_predictions(X[["Milk"]], np.zeros(len(X), int))
    assert_allclose(one.xy[:, 0], X["Milk"])
    assert (one.ax_.get_xlabel(), one.ax_.get_ylabel()) == ("Milk", "")


def test_of_many_rows_a_sample_is_drawn_that_keeps_its_place():
    X = np.random.default_rng(0).normal(size=(900, 3))
    labels = (X[:, 0] > 0).astype(int)
    display = ClusterMapDisplay.from_predictions(X, labels, coordinates=X[:, :2], max_rows=200)
    assert len(display.xy) == 200
    assert_array_equal(display.labels, (display.xy[:, 0] > 0).astype(int))
    assert display.sizes.sum() == 900
    assert display.ax_.get_title(loc="left") == "2 clusters of 900 rows; 200 rows drawn"
    again = ClusterMapDisplay.from_predictions(X, labels, coordinates=X[:, :2], max_rows=200)
    assert_array_equal(again.xy, display.xy)


def test_names_of_many_clusters_do_not_overlap():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(40), 5)
    X = rng.normal(size=(40, 2))[labels] + 0.05 * rng.normal(size=(200, 2))
    names = [f"a name of cluster {k}" for k in range(40)]
    display = ClusterMapDisplay.from_predictions(X, labels, names=names)
    assert not collisions(display.figure_)
    shown = [text for text in display.names_ if text.get_visible()]
    assert len(shown) > 20
    ax = display.ax_.get_window_extent()
    for text in shown:
        box = text.get_window_extent()
        assert ax.x0 <= box.x0 < box.x1 <= ax.x1
        assert ax.y0 <= box.y0 < box.y1 <= ax.y1


def test_names_stand_beside_points_if_there_is_room():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 0.3, (400, 2)), [[9.0, 9.0], [-9.0, -9.0]]])
    display = ClusterMapDisplay.from_predictions(X, np.zeros(402, int), names=["a name that would hide the points"])
    box = display.names_[0].get_window_extent()
    dots = display.ax_.transData.transform(X)
    hidden = (dots > [box.x0, box.y0]) & (dots < [box.x1, box.y1])
    assert hidden.all(axis=1).sum() < 20
    assert len(display.lines_) == 1


@pytest.mark.parametrize("Model", [DPMeans, VariationalDPMixture])
def test_names_come_from_the_profile_if_the_columns_have_names(Model, customers):
    model = Model().fit(customers)
    names = [f"{k}: {name}" for k, name in enumerate(model._profile(customers).names)]
    assert numbered(ClusterMapDisplay.from_estimator(model, customers).names) == names
    assert numbered(CentersDisplay.from_estimator(model, customers).names) == names
    X = customers.to_numpy()
    assert ClusterMapDisplay.from_estimator(Model().fit(X), X).names == [str(k) for k in range(len(names))]


@pytest.mark.parametrize("scale", SCALES)
def test_rows_are_flat_in_every_scale(scale):
    X = np.random.default_rng(0).gamma(2.0, size=(50, 6)) + 0.1
    plane = flatten(X, list("abcdef"), scale)
    assert plane.xy.shape == (50, 2)
    assert np.isfinite(plane.xy).all()
    if scale in ("plain", "shares", "roots", "directions"):
        sparse = flatten(sp.csr_matrix(X), list("abcdef"), scale)
        assert_allclose(np.abs(sparse.xy), np.abs(plane.xy), atol=1e-6)


def test_tables_without_spread_and_single_rows_are_drawn():
    ClusterMapDisplay.from_predictions(np.ones((5, 4)), np.zeros(5, int))
    ClusterMapDisplay.from_predictions(np.ones((1, 4)), np.zeros(1, int))
    CentersDisplay(centres=np.ones((1, 3)), sizes=[4]).plot()
    with pytest.raises(ValueError, match="one whole number for each of 5 rows"):
        ClusterMapDisplay.from_predictions(np.ones((5, 4)), np.zeros(5))


def test_sparse_rows_frames_of_polars_and_clusters_of_groups_are_drawn(customers):
    rng = np.random.default_rng(0)
    counts = sp.csr_matrix(rng.poisson(np.repeat([[1, 9, 1], [9, 1, 1]], 30, axis=0)).astype(float) + 0.0)
    model = DPMeans(n_clusters=2, divergence="kl", smoothing=0.1).fit(counts)
    ClusterMapDisplay.from_estimator(model, counts)
    CentersDisplay.from_estimator(model, counts)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: customers[name].to_numpy() for name in customers})
    assert len(ClusterMapDisplay.from_estimator(DPMeans(n_clusters=2).fit(frame), frame).names_) == 2
    X = customers.to_numpy()
    shared = HDPMeans(2000.0, 2000.0).fit(X, groups=np.arange(len(X)) % 3)
    ClusterMapDisplay.from_estimator(shared, X)


# -- centres ---------------------------------------------------------------------------------------------------------


def test_a_heat_map_shows_standard_deviations_and_writes_the_users_units(clusters, customers):
    display = CentersDisplay.from_estimator(clusters, customers)
    X = customers.to_numpy()
    expected = (clusters.cluster_centers_ - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(display.image_.get_array(), expected[:, display.columns_], rtol=1e-6)
    assert sorted(display.columns_) == list(range(6))
    ticks = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert [
        tick.rstrip("…") == customers.columns[j][: len(tick.rstrip("…"))] for tick, j in zip(ticks, display.columns_)
    ]
    first = clusters.cluster_centers_[0, display.columns_[0]]
    assert float(display.texts_[0].get_text()) == pytest.approx(first, rel=0.01)


def test_steps_of_a_heat_map_are_those_of_rows_in_the_units_of_the_centres():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([[10, 90, 20], [90, 10, 20]], 30, axis=0)).astype(float)
    model = DPMeans(n_clusters=2, divergence="kl").fit(X)
    display = CentersDisplay.from_estimator(model, X, columns=["a", "b", "c"])
    assert_allclose(display.scale, (X / X.sum(axis=1, keepdims=True)).std(axis=0))
    assert {label.get_text() for label in display.ax_.get_xticklabels()} == {"a", "b", "c"}


def test_columns_that_differ_most_are_shown_similar_ones_side_by_side():
    rng = np.random.default_rng(0)
    kind = rng.normal(size=(6, 2))
    centres = np.hstack([kind[:, [0, 1, 0, 1, 0, 1]], 0.01 * rng.normal(size=(6, 20))])
    display = CentersDisplay(centres=centres, sizes=np.ones(6), scale=np.ones(26)).plot(max_columns=6)
    assert sorted(display.columns_) == list(range(6))
    assert len(set(display.columns_[:3] % 2)) == 1  # the three of one kind, then those of the other
    assert "6 of 26 columns" in display.ax_.get_title(loc="left").replace("\n", " ")


def test_profiles_are_lines_of_the_same_numbers_with_names_at_their_ends(clusters, customers):
    display = CentersDisplay.from_estimator(clusters, customers, kind="profiles")
    heat = CentersDisplay.from_estimator(clusters, customers)
    for line, row, shade in zip(display.lines_, heat.image_.get_array(), colours(4)):
        assert_allclose(line.get_ydata(), row)
        assert line.get_color() == shade


def test_centres_as_images_are_the_centres(clusters):
    display = CentersDisplay.from_estimator(clusters, kind="images", image_shape=(2, 3))
    assert len(display.images_) == 4
    for image, centre in zip(display.images_, clusters.cluster_centers_):
        assert_allclose(image.get_array(), centre.reshape(2, 3))
    assert len({image.get_clim() for image in display.images_}) == 1


def test_means_of_a_mixture_are_centres(mixture):
    display = CentersDisplay.from_estimator(mixture)
    assert display.image_.get_array().shape == (mixture.n_components_, 6)


# -- traces ----------------------------------------------------------------------------------------------------------


def test_a_trace_is_that_of_the_model(mixture, sampler, clusters):
    display = ObjectiveTraceDisplay.from_estimator(mixture)
    assert_allclose(display.lines_[0].get_ydata(), mixture.free_energy_trace_)
    assert display.ax_.get_title(loc="left").startswith("Free energy fell from")
    chains = ObjectiveTraceDisplay.from_estimator(sampler)
    assert len(chains.lines_) == 2
    assert chains.burn_in_ is not None
    assert "2 chains" in chains.ax_.get_title(loc="left")
    assert ObjectiveTraceDisplay.from_estimator(clusters).quantity == "objective"
    one = ObjectiveTraceDisplay(traces=[[3.0]], converged=False).plot()
    assert one.ax_.get_title(loc="left") == "Objective 3 after 1 pass, and could fall further"


# -- helpers ---------------------------------------------------------------------------------------------------------


def test_values_are_spread_by_a_gap_in_their_order_and_no_further():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, gap = rng.normal(size=12), rng.uniform(0, 0.6)
        apart = spread(values, gap)
        assert_array_equal(np.argsort(apart), np.argsort(values))
        assert (np.diff(np.sort(apart)) > gap - 1e-9).all()
        assert_allclose(apart.mean(), values.mean(), atol=1e-9)  # pushed to both sides alike
    assert_allclose(spread(np.array([0.0, 5.0, 2.0]), 1.0), [0.0, 5.0, 2.0])


def test_frames_keep_their_columns_in_predictions():
    X = pd.DataFrame({"width": [0.0, 1.0, 5.0], "height": [0.0, 1.0, 5.0]})
    display = ClusterMapDisplay.from_predictions(X, [0, 0, 1], ax=plt.subplots()[1])
    assert display.ax_.get_ylabel() == "height"
