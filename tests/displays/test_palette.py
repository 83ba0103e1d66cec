"""The colours of clusters: apart from each other for all eyes, visible on white and black."""

import re

import pytest

from kfree.displays.palette import GREY, colours
from support.colour_vision import EYES, contrast, lab, least_distance

#: Least distance in CIELAB of so many colours, as normal eyes and as others see them. Below 2.3 they look the same.
LEAST = {8: (40, 25), 12: (25, 18), 20: (15, 10), 60: (12, 8)}


@pytest.mark.parametrize("K", LEAST)
@pytest.mark.parametrize("eyes", EYES)
def test_colours_are_apart_for_all_eyes(K, eyes):
    assert least_distance(colours(K), eyes) > LEAST[K][eyes != "normal"]


def test_colours_are_seen_on_white_and_on_black():
    for ground in ("#ffffff", "#000000"):
        assert contrast([*colours(60), GREY], ground).min() > 1.9


def test_rows_without_a_cluster_have_a_colour_of_their_own():
    hue = lab([GREY])[0, 1:]
    assert abs(hue).max() < 6
    assert least_distance([GREY, *colours(20)]) > 10


def test_fewer_colours_are_the_first_of_more_and_repeat_beyond_sixty_only():
    assert colours(0) == []
    assert colours(60)[:7] == colours(7)
    assert len(set(colours(60))) == 60
    assert colours(61)[60] == colours(1)[0]
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours(60))
