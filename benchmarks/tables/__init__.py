"""One module per table; each has ``make(settings) -> Table``."""

from importlib import import_module

NAMES = (
    "convergence",
    "overlap",
    "passes",
    "serial",
    "sparse",
    "stream",
    "scaling",
    "memory",
    "spread",
    "beyond",
    "startup",
    "constants",
    "auto",
    "preparer",
    "hdp",
    "hdp_quality",
    "topics_speed",
    "topics_quality",
    "topics_prices",
    "topics_paper",
    "variational",
    "variational_quality",
    "gibbs",
    "gibbs_quality",
    "kernel",
    "features",
)


def make(name, settings):
    """Measure one table."""
    return import_module(f"benchmarks.tables.{name}").make(settings)
