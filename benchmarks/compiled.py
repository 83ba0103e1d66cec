"""Loops of rivals are compiled by numba; quick runs, which only prove that everything works, do without it."""

try:
    from numba import njit
except ImportError:

    def njit(**_):
        """The function as it is."""
        return lambda function: function
