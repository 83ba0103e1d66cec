"""Tables in files: what reads them for estimators, and what writes predictions beside their rows."""

from kfree.files.read import read
from kfree.files.write import write

__all__ = ["read", "write"]
