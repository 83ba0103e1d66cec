"""Hostile tables, weights and parameters against every public estimator: ``make fuzz``."""
