"""Pages about fitted estimators: one HTML file, complete in itself."""

from kfree.reports.write import report

__all__ = ["report"]
