"""Where the rows are: tables in memory or mapped from disk, dense or sparse, read in spans."""

from kfree.rows.base import SPAN, Assigned, Descent, Nearest, Norms, Rows
from kfree.rows.csr import CsrRows, cells_of
from kfree.rows.dense import DenseRows
from kfree.rows.documents import Documents
from kfree.rows.threads import n_threads, set_span_threads
from kfree.rows.tied import TIED_SPAN, Summable, Tied

__all__ = [
    "SPAN",
    "TIED_SPAN",
    "Assigned",
    "CsrRows",
    "DenseRows",
    "Descent",
    "Documents",
    "Nearest",
    "Norms",
    "Rows",
    "Summable",
    "Tied",
    "cells_of",
    "n_threads",
    "set_span_threads",
]
