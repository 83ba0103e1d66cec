"""Tables and figures of the papers, done again: ``python -m benchmarks.papers``."""

PAGES = ("images", "topics", "table1", "variational", "embedding", "features")
