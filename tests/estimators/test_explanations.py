"""``explain``: a few true sentences, whose figures are attributes."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kfree import (
    BPMeans,
    DPMeans,
    GibbsDPMixture,
    GibbsIBP,
    HDPMeans,
    KernelDPMixture,
    KFeatures,
    StepwiseKFeatures,
    VariationalDPMixture,
)

RNG = np.random.default_rng(0)
BLOBS = np.concatenate([RNG.normal(m, 1.0, size=(50, 2)) for m in (-8, 0, 8)])
SUMS = RNG.integers(2, size=(60, 3)) @ (5 * np.eye(3, 6)) + RNG.normal(size=(60, 6)) / 5
ALL = [
    (DPMeans(n_clusters=3), BLOBS),
    (HDPMeans(10.0, 30.0), BLOBS),
    (VariationalDPMixture(), BLOBS),
    (VariationalDPMixture(max_components=2), BLOBS),
    (KernelDPMixture(random_state=0), BLOBS),
    (GibbsDPMixture(n_samples=40, burn_in=40, random_state=0), BLOBS),
    (BPMeans(10.0), SUMS),
    (BPMeans(1e9), SUMS),
    (KFeatures(3), SUMS),
    (StepwiseKFeatures(), SUMS),
    (GibbsIBP(n_samples=30, burn_in=30, random_state=0), SUMS),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "X"), ALL, ids=lambda value: type(value).__name__)
def test_every_estimator_explains_itself_in_two_to_six_sentences(model, X):
    text = model.fit(X).explain()
    assert text.startswith(str(getattr(model, "n_clusters_", getattr(model, "n_components_", None))))
    assert 2 <= len(re.findall(r"\.(?: |$)", text)) <= 6
    assert "  " not in text
    assert "nan" not in text


@pytest.mark.parametrize(("model", "X"), ALL, ids=lambda value: type(value).__name__)
def test_what_is_not_fitted_has_nothing_to_explain(model, X):
    with pytest.raises(NotFittedError):
        type(model)().explain()


def test_groups_are_told_who_uses_what():
    X = np.array([[0.0], [0.2], [5.0], [5.2], [0.1], [9.0], [9.2]])
    model = HDPMeans(1.0, 2.0).fit(X, groups=list("aaaabbb"))
    text = model.explain()
    assert "3 clusters, shared by 2 groups: a group uses 2 of them on average (4 local clusters)." in text
    assert "costs 2 once (lam_global_), and 1 in each group that uses it (lam_local_), as given." in text
    assert "Every group uses 1, and 2 are used by one group only." in text
    assert "They hold 3, 2 and 2 rows." in text
    assert "DPMeans does the same" in HDPMeans(1.0, 2.0).fit(X).explain()


def test_mixtures_tell_weights_and_what_ended_them():
    model = VariationalDPMixture().fit(BLOBS)
    text = model.explain()
    assert text.startswith("3 components: splitting any of them further")
    assert f"{model.free_energy_:.6g}" in text
    assert all(f"{100 * weight:.3g} %" in text for weight in model.weights_)
    corners = np.concatenate([RNG.normal(corner, 1.0, size=(60, 2)) for corner in ([0, 0], [12, 0], [0, 12])])
    assert "as many as max_components allows" in VariationalDPMixture(max_components=2).fit(corners).explain()
    model = KernelDPMixture(random_state=0).fit(BLOBS)
    assert f"of {model.n_candidates_} candidates" in model.explain()
    assert f"{model.mmd2_:.3g}" in model.explain()


@pytest.mark.filterwarnings("ignore")
def test_samples_tell_how_sure_the_number_is():
    X = np.concatenate([RNG.normal(size=(30, 1)), RNG.normal(size=(30, 1)) + 3.0])
    model = GibbsDPMixture(n_samples=100, burn_in=50, random_state=0).fit(X)
    K, probability = model.posterior_n_clusters_
    text = model.explain()
    own = 100 * probability[model.n_clusters_ == K].sum()
    assert f"{own:.3g} % of 200 samples from 2 chains have this number" in text
    assert f"{model.cluster_probability_.min():.2f}" in text
    assert ("The chains do not agree" in text) == (not model.converged_)


def test_features_tell_price_and_rows():
    model = BPMeans(10.0).fit(SUMS)
    text = model.explain()
    assert "3 features at a price of lam = 10 each" in text
    assert f"{100 * model.explained_:.3g} %" in text
    assert f"{np.count_nonzero(model.Z_.sum(axis=1) == 0)} of 60 rows have none" in text
    assert f"in {model.counts_.max()} rows" in text
    chosen = StepwiseKFeatures().fit(SUMS)
    assert f"from {chosen.lam_window_[0]:.4g} to {chosen.lam_window_[1]:.4g}" in chosen.explain()
    assert "as asked for" in KFeatures(2).fit(SUMS).explain()
    assert "nothing that rows share is worth its price" in BPMeans(1e9).fit(SUMS).explain()
