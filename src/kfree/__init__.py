"""kfree: clusters, topics and latent features without being told how many."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfree.displays import (
        CentersDisplay,
        ClusterMapDisplay,
        ClusterTreeDisplay,
        FeaturePathDisplay,
        FeaturesDisplay,
        LamPathDisplay,
        MixtureDisplay,
        ObjectiveTraceDisplay,
        TopicsDisplay,
    )
    from kfree.estimators import (
        BPMeans,
        DPMeans,
        FeaturePath,
        GibbsDPMixture,
        GibbsIBP,
        HDPMeans,
        HDPTopics,
        KernelDPMixture,
        KFeatures,
        LamPath,
        MMDTest,
        StepwiseKFeatures,
        TablePreparer,
        VariationalDPMixture,
        lam_for_k,
        lam_for_n_components,
        lam_path,
        load,
        radius_for_k,
        truncation_level,
    )
    from kfree.families import (
        KL,
        Bernoulli,
        Binomial,
        Cosine,
        Family,
        ItakuraSaito,
        Mahalanobis,
        NegativeBinomial,
        Poisson,
        Separable,
        SquaredEuclidean,
    )
    from kfree.files import read, write
    from kfree.reports import report
    from kfree.rows.source import Source
    from kfree.versions import show_versions

__version__ = "0.1.0"

_HOMES = {
    "kfree.displays": (
        "CentersDisplay",
        "ClusterMapDisplay",
        "ClusterTreeDisplay",
        "FeaturePathDisplay",
        "FeaturesDisplay",
        "LamPathDisplay",
        "MixtureDisplay",
        "ObjectiveTraceDisplay",
        "TopicsDisplay",
    ),
    "kfree.estimators": (
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
    ),
    "kfree.families": (
        "KL",
        "Bernoulli",
        "Binomial",
        "Cosine",
        "Family",
        "ItakuraSaito",
        "Mahalanobis",
        "NegativeBinomial",
        "Poisson",
        "Separable",
        "SquaredEuclidean",
    ),
    "kfree.files": ("read", "write"),
    "kfree.reports": ("report",),
    "kfree.rows.source": ("Source",),
    "kfree.versions": ("show_versions",),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {"anndata": "kfree.anndata"}

__all__ = [
    "KL",
    "BPMeans",
    "Bernoulli",
    "Binomial",
    "CentersDisplay",
    "ClusterMapDisplay",
    "ClusterTreeDisplay",
    "Cosine",
    "DPMeans",
    "Family",
    "FeaturePath",
    "FeaturePathDisplay",
    "FeaturesDisplay",
    "GibbsDPMixture",
    "GibbsIBP",
    "HDPMeans",
    "HDPTopics",
    "ItakuraSaito",
    "KFeatures",
    "KernelDPMixture",
    "LamPath",
    "LamPathDisplay",
    "MMDTest",
    "Mahalanobis",
    "MixtureDisplay",
    "NegativeBinomial",
    "ObjectiveTraceDisplay",
    "Poisson",
    "Separable",
    "Source",
    "SquaredEuclidean",
    "StepwiseKFeatures",
    "TablePreparer",
    "TopicsDisplay",
    "VariationalDPMixture",
    "__version__",
    "lam_for_k",
    "lam_for_n_components",
    "lam_path",
    "load",
    "radius_for_k",
    "read",
    "report",
    "show_versions",
    "truncation_level",
    "write",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import kfree`` costs nothing."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'kfree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
