"""How many clusters there are and who shares them: priors over weights."""

from kfree.structures.dp import StickBreaking, by_size

__all__ = ["StickBreaking", "by_size"]
