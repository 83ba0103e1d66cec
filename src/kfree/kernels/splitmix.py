"""Splitmix64 (Steele, Lea & Flood 2014): numbers that look like chance and are functions of numbers."""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: Factors and shifts of the finaliser.
FACTOR_1, FACTOR_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def mix(v):
    """The finaliser: spreads the bits of a number, or of each number of an array, over all 64."""
    v = (v ^ (v >> SHIFT_1)) * FACTOR_1
    v = (v ^ (v >> SHIFT_2)) * FACTOR_2
    return v ^ (v >> SHIFT_3)
