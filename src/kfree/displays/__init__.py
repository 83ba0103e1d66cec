"""Pictures of fitted estimators, after scikit-learn's conventions for displays."""

from kfree.displays.centers import CentersDisplay
from kfree.displays.cluster_map import ClusterMapDisplay
from kfree.displays.cluster_tree import ClusterTreeDisplay
from kfree.displays.feature_path import FeaturePathDisplay
from kfree.displays.features import FeaturesDisplay
from kfree.displays.lam_path import LamPathDisplay
from kfree.displays.mixture import MixtureDisplay
from kfree.displays.objective_trace import ObjectiveTraceDisplay
from kfree.displays.topics import TopicsDisplay

__all__ = [
    "CentersDisplay",
    "ClusterMapDisplay",
    "ClusterTreeDisplay",
    "FeaturePathDisplay",
    "FeaturesDisplay",
    "LamPathDisplay",
    "MixtureDisplay",
    "ObjectiveTraceDisplay",
    "TopicsDisplay",
]
