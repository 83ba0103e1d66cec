"""Constants of the library, replaced for a test."""

import sys


def set_numbers(patch, record, **values):
    """Replace constants of a record ("CLUSTERS", "HDP", ...) in every module that reads it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kfree.") and hasattr(module, record):
            patch.setattr(module, record, getattr(module, record)._replace(**values))
