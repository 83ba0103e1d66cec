"""What pages are made of: pictures, lines of equal height, samples, stops and their colours."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.reports.contours import contour
from kfree.reports.frame import Frame, around, round_ticks
from kfree.reports.png import encode, shaded, shrunk
from kfree.reports.sampling import draw
from kfree.reports.stops import Stop, numbers_to_try, stops_of_topics, with_colours
from kfree.reports.tree import tree_of


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (28, 28), (7, 4, 3)])
def test_pictures_are_read_as_they_were_written(shape):
    image = pytest.importorskip("matplotlib.image")
    pixels = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    read = image.imread(io.BytesIO(encode(pixels)), format="png")
    assert_array_equal(np.round(255 * read[..., : shape[2] if len(shape) == 3 else None]).astype(np.uint8), pixels)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20))
def test_small_pictures_have_the_mean_of_large_ones(h, w, side):
    picture = np.random.default_rng(h).normal(size=(h, w))
    small = shrunk(picture, side)
    assert max(small.shape) <= side or max(h, w) <= side
    if h % small.shape[0] == 0 and w % small.shape[1] == 0:
        assert_allclose(small.mean(), picture.mean(), atol=1e-12)
    assert small.min() >= picture.min() - 1e-12
    assert small.max() <= picture.max() + 1e-12


def test_shades_go_from_black_to_white():
    assert_array_equal(shaded(np.array([[-9.0, 0.0, 0.5, 1.0, 9.0]]), 0.0, 1.0), [[0, 0, 128, 255, 255]])
    assert_array_equal(shaded(np.ones((2, 2)), 1.0, 1.0), np.zeros((2, 2)))


def test_lines_of_equal_height_of_a_hill_are_circles():
    y, x = np.mgrid[-1:1:41j, -1:1:41j]
    (line,) = contour(-(x**2 + y**2), -0.25)
    assert line[0] == line[-1]  # it is closed
    assert_allclose(np.hypot(*(np.array(line).T / 20 - 1)), 0.5, atol=0.01)


@given(st.integers(0, 10_000))
def test_lines_of_equal_height_end_at_the_border_only(seed):
    heights = np.random.default_rng(seed).normal(size=(7, 9))
    for line in contour(heights, 0.0):
        places = np.array(line)
        closed = line[0] == line[-1]
        ends = places[[0, -1]]
        at_border = (ends[:, 0] == 0) | (ends[:, 0] == 8) | (ends[:, 1] == 0) | (ends[:, 1] == 6)
        assert closed or at_border.all()
        assert (np.abs(np.diff(places, axis=0)).max(axis=1) <= 1).all()  # from one side of a cell to another


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.integers(1, 500))
def test_samples_have_some_of_every_label_and_weigh_as_much(sizes, most):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    sample = draw(labels, most, 3)
    assert (np.diff(sample.rows) > 0).all()
    kept = np.bincount(labels[sample.rows], minlength=len(sizes))
    assert (kept >= np.minimum(sizes, 3)).all()
    assert_allclose(np.bincount(labels[sample.rows], sample.weight, len(sizes)), sizes)
    assert sample.rows.size <= most + 4 * len(sizes)
    assert sample.whole == (sample.rows.size == labels.size)


def test_rows_of_no_cluster_are_not_drawn():
    assert_array_equal(draw(np.array([0, -1, 0, 1, -1]), 10, 1).rows, [0, 2, 3])


@given(st.integers(1, 300), st.integers(1, 400))
def test_numbers_to_try_are_few_and_leave_out_what_was_found(found, most):
    numbers = numbers_to_try(found, most)
    assert numbers == sorted(set(numbers))
    assert found not in numbers
    assert all(1 <= K < most for K in numbers)
    assert len(numbers) <= 32


def make_stops(seed, m=60, most=9):
    rng = np.random.default_rng(seed)
    weight, stops = rng.uniform(0.5, 2.0, m), []
    for K in range(1, most + 1):
        labels = np.concatenate([np.arange(K), rng.integers(K, size=m - K)])
        names = tuple(map(str, range(K)))
        stops.append(Stop(labels, np.bincount(labels, weight, K), names, "", np.empty(0)))
    return stops, weight


@given(st.integers(0, 1000), st.integers(0, 8))
def test_clusters_of_a_stop_have_colours_of_their_own(seed, chosen):
    stops, weight = make_stops(seed)
    found = with_colours(stops, chosen, weight, "cluster")
    assert_array_equal(found.stops[chosen].shade, np.arange(chosen + 1))
    for stop in found.stops:
        assert len(set(stop.shade.tolist())) == stop.n_clusters
    for one, two in zip(found.stops, found.stops[1:]):  # of K + 1 clusters, K go on with their colours
        kept = len(set(one.shade.tolist()) & set(two.shade.tolist()))
        assert kept == one.n_clusters or found.shared(one.n_clusters - 1, two.n_clusters - 1).min() == 0


def test_clusters_keep_the_colour_of_what_they_mostly_are():
    one, two = np.array([0, 0, 0, 1, 1, 1]), np.array([2, 2, 0, 1, 1, 1])
    stops = [Stop(some, np.bincount(some), ("",) * (some.max() + 1), "", np.empty(0)) for some in (one, two)]
    found = with_colours(stops, 0, np.ones(6), "cluster")
    assert found.stops[1].shade.tolist() == [2, 1, 0]


def test_bars_of_the_tree_are_as_wide_as_clusters_are_large():
    stops, weight = make_stops(1)
    picture = tree_of(with_colours(stops, 3, weight, "cluster"))
    assert picture.drawing.count('class="stop') == 9
    assert picture.drawing.count('class="stop now"') == 1
    assert len(picture.table.rows) == 9


def test_merged_topics_are_named_by_the_largest():
    groups = [np.array([0, 0, 0]), np.array([0, 1, 0]), np.array([0, 1, 2])]
    stops = stops_of_topics(groups, np.array([1.0, 2.0, 5.0]), ["a", "b", "c"], ["", "", ""])
    assert [stop.names for stop in stops.stops] == [
        ("c and 2 more topics",),
        ("c and 1 more topic", "b"),
        ("a", "b", "c"),
    ]
    assert stops.chosen == 2


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9))
def test_ticks_are_few_and_inside(low, width):
    ticks = round_ticks(low, low + width)
    assert ticks.size <= 6
    slack = 1e-6 * width + 1e-9 * abs(low)
    assert ((ticks >= low - slack) & (ticks <= low + width + slack)).all()


def test_a_frame_has_room_for_one_value():
    frame = Frame(around([3.0, 3.0]), around([0.0]))
    assert np.isfinite([frame.across(3.0), frame.down(0.0)]).all()
