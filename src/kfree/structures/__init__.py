"""How many clusters there are and who shares them: priors over weights."""

from kfree.structures.dp import StickBreaking, by_size
from kfree.structures.ibp import IndianBuffet
from kfree.structures.truncation import KINDS, enough_pieces

__all__ = ["KINDS", "IndianBuffet", "StickBreaking", "by_size", "enough_pieces"]
