"""Where the rows are: tables in memory or mapped from disk, dense or sparse, read in spans."""

from kfree.rows.base import SPAN, Nearest, Norms, Rows
from kfree.rows.csr import CsrRows
from kfree.rows.dense import DenseRows
from kfree.rows.documents import Documents
from kfree.rows.threads import n_threads, set_span_threads

__all__ = [
    "SPAN",
    "CsrRows",
    "DenseRows",
    "Documents",
    "Nearest",
    "Norms",
    "Rows",
    "n_threads",
    "set_span_threads",
]
