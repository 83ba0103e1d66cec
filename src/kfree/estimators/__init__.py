"""The public classes: check, fit, publish."""

from kfree.estimators._saving import load
from kfree.estimators.bp_means import BPMeans, lam_for_n_components
from kfree.estimators.dp_means import DPMeans
from kfree.estimators.gibbs_ibp import GibbsIBP
from kfree.estimators.gibbs_mixture import GibbsDPMixture
from kfree.estimators.hdp_means import HDPMeans
from kfree.estimators.hdp_topics import HDPTopics
from kfree.estimators.k_features import KFeatures
from kfree.estimators.kernel_mixture import KernelDPMixture, MMDTest
from kfree.estimators.lam import LamPath, lam_for_k, lam_path, radius_for_k
from kfree.estimators.stepwise_k_features import StepwiseKFeatures
from kfree.estimators.table_preparer import TablePreparer
from kfree.estimators.truncation import truncation_level
from kfree.estimators.variational import VariationalDPMixture
from kfree.models.features import FeaturePath

__all__ = [
    "BPMeans",
    "DPMeans",
    "FeaturePath",
    "GibbsDPMixture",
    "GibbsIBP",
    "HDPMeans",
    "HDPTopics",
    "KFeatures",
    "KernelDPMixture",
    "LamPath",
    "MMDTest",
    "StepwiseKFeatures",
    "TablePreparer",
    "VariationalDPMixture",
    "lam_for_k",
    "lam_for_n_components",
    "lam_path",
    "load",
    "radius_for_k",
    "truncation_level",
]
