"""scikit-learn's own checks, for every divergence; what is expected to fail is listed, strictly, with the reason."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfree import Binomial, DPMeans, HDPMeans, ItakuraSaito

OUTSIDE = "the check's data lie outside the domain of the divergence, which is an error that says so"
EMPTY = "the check's data have rows without content, which is an error that says so"

ONE_BY_ONE = "rows move one at a time: a weighted row moves whole, its copies would move singly"

ITS_NUMBER = "the check reads the number of clusters that it has set; see test_clusterings_are_sound"

_BY_NAME = {
    "kl": {
        EMPTY: "estimators_dtypes sample_weights_pandas_series sample_weights_not_an_array estimator_sparse_tag "
        "estimator_sparse_array estimator_sparse_matrix fit2d_1feature",
        OUTSIDE: "clustering",
    },
    "cosine": {EMPTY: "estimators_dtypes estimator_sparse_tag estimator_sparse_array estimator_sparse_matrix"},
    "poisson": {OUTSIDE: "clustering"},
    "binomial": {OUTSIDE: "clustering"},
    "negative_binomial": {OUTSIDE: "clustering"},
    "shifted_gamma": {OUTSIDE: "clustering"},
    # Binomial(n) and ShiftedGamma below are the same families on a domain that holds the checks' data
    "bernoulli": {
        OUTSIDE: "clustering dict_unchanged dont_overwrite_parameters estimators_dtypes "
        "estimators_fit_returns_self estimators_overwrite_params estimators_partial_fit_n_features estimators_pickle "
        "f_contiguous_array_estimator fit2d_1feature fit2d_1sample fit2d_predict1d fit_check_is_fitted "
        "fit_idempotent methods_sample_order_invariance methods_subset_invariance n_features_in "
        "n_features_in_after_fitting pipeline_consistency positive_only_tag_during_fit readonly_memmap_input "
        "sample_weights_not_an_array sample_weights_not_overwritten sample_weights_pandas_series "
        "sample_weights_shape transformer_data_not_an_array transformer_general transformer_n_iter "
        "transformer_preserve_dtypes"
    },
    "itakura_saito": {
        OUTSIDE: "clustering dict_unchanged dont_overwrite_parameters dtype_object "
        "estimators_dtypes estimators_fit_returns_self estimators_nan_inf estimators_overwrite_params "
        "estimators_partial_fit_n_features estimators_pickle f_contiguous_array_estimator fit2d_1feature "
        "fit2d_1sample fit2d_predict1d fit_check_is_fitted fit_idempotent fit_score_takes_y "
        "methods_sample_order_invariance methods_subset_invariance n_features_in n_features_in_after_fitting "
        "pipeline_consistency readonly_memmap_input sample_weights_list sample_weights_not_an_array "
        "sample_weights_pandas_series transformer_data_not_an_array transformer_general transformer_n_iter "
        "transformer_preserve_dtypes"
    },
}


class ShiftedGamma(ItakuraSaito):
    """Itakura-Saito of x + 1: a family of one's own whose domain holds zeros."""

    name = "shifted_gamma"
    lower_open = False

    def phi(self, stats):
        return super().phi(stats + 1)

    def psi(self, theta):
        return super().psi(theta) - theta.sum(axis=-1)

    def natural(self, mean):
        return super().natural(mean + 1)

    def mean(self, theta):
        return super().mean(theta) - 1

    def terms(self, stats, mean):
        return super().terms(stats + 1, mean + 1)


class NumberFree(DPMeans):
    """DPMeans that a number of clusters cannot be set for: the checks do, whatever else says how many there are."""

    def __setattr__(self, name, value):
        of_a_check = name == "n_clusters" and isinstance(value, int) and 1 <= value <= 3
        super().__setattr__(name, None if of_a_check else value)


def expected(estimator):
    family = estimator.divergence
    name = family if isinstance(family, str) else family.name
    checks = {f"check_{check}": why for why, some in _BY_NAME.get(name, {}).items() for check in some.split()}
    if isinstance(estimator, DPMeans) and estimator.algorithm == "collapsed":
        checks |= {f"check_sample_weight_equivalence_on_{kind}_data": ONE_BY_ONE for kind in ("dense", "sparse")}
    if isinstance(estimator, NumberFree):
        checks["check_clustering"] = ITS_NUMBER
    return checks


ESTIMATORS = [
    DPMeans(),
    DPMeans(n_clusters=2),
    DPMeans(n_clusters=2, algorithm="serial", random_state=0),
    DPMeans(n_clusters=2, divergence="mahalanobis"),
    DPMeans(n_clusters=2, divergence="kl"),
    DPMeans(n_clusters=2, divergence="cosine"),
    DPMeans(n_clusters=2, divergence=ShiftedGamma()),
    NumberFree(lam=20.0),
    NumberFree(lam=20.0, algorithm="delayed", search="points"),
    NumberFree(lam=2.0, divergence="poisson"),
    NumberFree(radius=2.0),
    NumberFree(radius=2.0, algorithm="serial", random_state=0),
    NumberFree(radius=2.0, algorithm="collapsed", random_state=0),
    NumberFree(radius=2.0, algorithm="delayed", search="full", random_state=0),
    NumberFree(radius=1.0, divergence="mahalanobis"),
    NumberFree(radius=0.5, divergence="kl"),
    NumberFree(radius=1.0, divergence="poisson"),
    NumberFree(radius=1.0, divergence="binomial"),
    NumberFree(radius=1.0, divergence=Binomial(1000)),
    NumberFree(radius=0.5, divergence="negative_binomial"),
    NumberFree(radius=0.3, divergence="cosine"),
    NumberFree(radius=0.5, divergence="bernoulli"),
    NumberFree(radius=1.0, divergence="itakura_saito"),
    NumberFree(radius=1.0, divergence=ShiftedGamma()),
    HDPMeans(),
    HDPMeans(1.0, 2.0, random_state=0),
    HDPMeans(1.0, 2.0, search="full"),
    HDPMeans(0.3, 0.5, divergence="poisson", random_state=0),
    HDPMeans(0.2, 0.3, divergence="cosine", random_state=0),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", [model for model in ESTIMATORS if isinstance(model, NumberFree)], ids=str)
def test_clusterings_are_sound(estimator, dtype):
    """What check_clustering looks at, where a radius or a price says how many clusters there are."""
    X, y = make_blobs(n_samples=50, random_state=1)
    X = StandardScaler().fit_transform(X).astype(dtype)
    X = X if OUTSIDE not in _BY_NAME.get(getattr(estimator.divergence, "name", estimator.divergence), {}) else expit(X)
    model = clone(estimator)
    model.fit(X.tolist())
    model.fit(X)
    assert model.labels_.shape == (50,)
    assert adjusted_rand_score(model.labels_, y) > 0.4 or model.divergence != "sqeuclidean"
    again = clone(estimator).fit_predict(X)
    np.testing.assert_array_equal(again, model.labels_)
    assert again.dtype == np.dtype("int32")
    np.testing.assert_array_equal(np.unique(again), np.arange(model.n_clusters_))


def test_shifted_gamma_is_a_family():
    family, x = ShiftedGamma(), np.array([[0.0, 2.0], [1.0, 0.5]])
    theta = family.natural(x)
    assert np.allclose(family.mean(theta), x)
    assert np.allclose(family.phi(x) + family.psi(theta), (x * theta).sum(axis=1))
