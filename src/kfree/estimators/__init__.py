"""The public classes: check, fit, publish."""

from kfree.estimators.dp_means import DPMeans
from kfree.estimators.lam import LamPath, lam_for_k, lam_path

__all__ = ["DPMeans", "LamPath", "lam_for_k", "lam_path"]
