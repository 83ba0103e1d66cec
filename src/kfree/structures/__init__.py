"""How many clusters there are and who shares them: priors over weights."""

from kfree.structures.dp import StickBreaking, by_size
from kfree.structures.truncation import KINDS, truncation

__all__ = ["KINDS", "StickBreaking", "by_size", "truncation"]
