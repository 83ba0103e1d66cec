"""The public classes: check, fit, publish."""

from kfree.estimators.dp_means import DPMeans
from kfree.estimators.hdp_means import HDPMeans
from kfree.estimators.lam import LamPath, lam_for_k, lam_path

__all__ = ["DPMeans", "HDPMeans", "LamPath", "lam_for_k", "lam_path"]
