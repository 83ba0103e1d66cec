"""The public classes: check, fit, publish."""

from kfree.estimators.dp_means import DPMeans
from kfree.estimators.hdp_means import HDPMeans
from kfree.estimators.hdp_topics import HDPTopics
from kfree.estimators.lam import LamPath, lam_for_k, lam_path
from kfree.estimators.variational import VariationalDPMixture

__all__ = ["DPMeans", "HDPMeans", "HDPTopics", "LamPath", "VariationalDPMixture", "lam_for_k", "lam_path"]
