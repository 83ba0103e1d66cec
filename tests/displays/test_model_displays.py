"""Pictures of topics, latent features and mixtures show what the models say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kfree import (
    BPMeans,
    FeaturePathDisplay,
    FeaturesDisplay,
    KernelDPMixture,
    MixtureDisplay,
    TopicsDisplay,
    VariationalDPMixture,
)

# -- topics ----------------------------------------------------------------------------------------------------------


def test_bars_are_the_first_words_of_the_topics(topics):
    display = TopicsDisplay.from_estimator(topics, n_words=5, max_topics=3)
    assert len(display.bars_) == len(display.axes_) == 3
    for k, (ax, bars) in enumerate(zip(display.axes_, display.bars_)):
        assert [label.get_text() for label in ax.get_yticklabels()] == list(topics.top_words(5)[k])
        assert_allclose([bar.get_width() for bar in bars], np.sort(topics.components_[k])[::-1][:5])
    assert display.title_.get_text().replace("\n", " ").startswith("5 topics in 120 documents; the 3 largest")


def test_similar_topics_are_near_each_other_on_the_map(topics):
    close = np.vstack([topics.components_, 0.5 * (topics.components_[:1] + topics.components_[1:2])])
    words = topics.feature_names_in_
    display = TopicsDisplay(components=close, words=words, sizes=np.ones(6)).plot(kind="map")
    xy = display.points_.get_offsets()
    far = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    assert far[5, :2].max() < far[5, 2:5].min()
    assert len(display.names_) == 6


def test_circles_of_the_map_have_the_areas_of_the_topics_and_their_names(topics):
    display = TopicsDisplay.from_estimator(topics, kind="map")
    sizes = display.points_.get_sizes()
    assert_allclose(sizes / sizes.sum(), topics.topic_word_counts_.sum(axis=1) / topics.topic_word_counts_.sum())
    shown = {text.get_text().replace("\n", " ") for text in display.names_}
    assert shown == set(topics.topic_names_)


def test_words_may_be_given_by_a_vocabulary(topics):
    vocabulary = [f"w{j}" for j in range(60)]
    display = TopicsDisplay.from_estimator(topics, vocabulary=vocabulary, n_words=3)
    assert all(label.get_text().startswith("w") for label in display.axes_[0].get_yticklabels())
    assert all(name.startswith("w") for name in display.names)
    with pytest.raises(ValueError, match="vocabulary has shape"):
        TopicsDisplay.from_estimator(topics, vocabulary=vocabulary[:3])


def test_one_topic_has_a_map():
    display = TopicsDisplay(components=[[0.5, 0.5]], words=["a", "b"], sizes=[10]).plot(kind="map")
    assert len(display.names_) == 1


# -- features --------------------------------------------------------------------------------------------------------


def test_components_as_images_are_the_components(features):
    display = FeaturesDisplay.from_estimator(features, image_shape=(6, 8))
    for image, row in zip(display.images_, features.components_):
        assert_allclose(image.get_array(), row.reshape(6, 8))
        low, high = image.get_clim()
        assert low == -high


def test_examples_are_rows_with_a_feature_and_without_what_it_adds(features, parts):
    display = FeaturesDisplay.from_estimator(features, parts, kind="examples", image_shape=(6, 8))
    rows, without = (np.array([i.get_array().ravel() for i in display.images_[start::2]]) for start in (0, 1))
    assert_allclose(rows - without, features.components_, atol=1e-6)
    for k, row in enumerate(rows):
        (place,) = np.flatnonzero((parts == row).all(axis=1))
        assert features.Z_[place, k] == 1


def test_bars_are_the_columns_that_a_feature_changes_most(features):
    display = FeaturesDisplay.from_estimator(features, n_columns=4)
    for bars, row in zip(display.bars_, features.components_):
        assert_allclose(np.abs([bar.get_width() for bar in bars]), np.sort(np.abs(row))[::-1][:4])


def test_together_is_the_share_of_the_rows_of_one_feature_that_have_another(features):
    display = FeaturesDisplay.from_estimator(features, kind="together")
    shares, Z = display.image_.get_array(), features.Z_.astype(bool)
    for i, j in np.ndindex(shares.shape):
        assert_allclose(shares[i, j], Z[Z[:, i], j].mean())


def test_features_of_turned_rows_are_seen_where_they_come_from(parts):
    mean = parts.mean(axis=0)
    _, _, turn = np.linalg.svd(parts - mean, full_matrices=False)
    scores = (parts - mean) @ turn.T
    model = BPMeans(20.0, n_init=1).fit(scores)

    def inverse(rows):
        return rows @ turn + mean

    display = FeaturesDisplay.from_estimator(model, scores, inverse=inverse, image_shape=(6, 8))
    assert_allclose(display.components, model.components_ @ turn, atol=1e-8)
    example = FeaturesDisplay.from_estimator(model, scores, inverse=inverse, kind="examples", image_shape=(6, 8))
    first = example.images_[0].get_array().ravel()
    assert np.abs(parts - first).max(axis=1).min() < 1e-8


def test_coloured_pictures_keep_their_colours():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(2, size=(30, 2)), 12, axis=1) * 200.0
    model = BPMeans(1e4, n_init=1).fit(X)
    display = FeaturesDisplay.from_estimator(model, X, kind="examples", image_shape=(2, 4, 3))
    shown = display.images_[0].get_array()
    assert shown.shape == (2, 4, 3)
    assert 0 <= shown.min() <= shown.max() <= 1


def test_no_features_are_nothing_to_draw(parts):
    with pytest.raises(ValueError, match="no features"):
        FeaturesDisplay.from_estimator(BPMeans(1e9, n_init=1, base=False).fit(parts))


def test_a_path_of_features_marks_the_number_of_the_model(features):
    display = FeaturePathDisplay.from_estimator(features)
    assert_allclose(display.line_.get_ydata(), features.path_.inertia)
    held = [K for K, (_, high) in enumerate(features.path_.window) if K and np.isfinite(high)]
    assert [line.get_ydata()[0] for line in display.windows_] == held
    K = features.n_components_
    assert display.axes_[0].get_title(loc="left").startswith(f"{K} features leave")


# -- mixtures --------------------------------------------------------------------------------------------------------


def test_ellipses_and_contours_are_those_of_the_density():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.multivariate_normal([0, 0], [[2, 1.2], [1.2, 1]], 200), rng.normal([8, 0], 0.7, (100, 2))])
    model = VariationalDPMixture().fit(X)
    display = MixtureDisplay.from_estimator(model, X)
    for ellipse, mean, covariance in zip(display.ellipses_, model.means_, model.covariances_):
        assert_allclose(ellipse.center, mean)
        angle = np.linspace(0, 2 * np.pi, 20)
        edge = ellipse.get_patch_transform().transform(np.stack([np.cos(angle), np.sin(angle)], axis=1)) - mean
        far = np.einsum("ij,jk,ik->i", edge, np.linalg.inv(covariance), edge)
        assert_allclose(far, 4.0)  # two standard deviations in every direction
    near = np.abs(display.density(X) - np.exp(model.score_samples(X)))
    assert near.max() < 0.05 * display.density(model.means_).max()
    relative = display.density(X) / display.density(np.vstack([X, model.means_])).max()
    inside = [(relative > level).mean() for level in display.contours_.levels]
    assert_allclose(inside, [0.95, 0.8, 0.6, 0.4, 0.2, 0.05], atol=0.08)


@pytest.mark.parametrize("family", ["gaussian", "diag", "spherical"])
def test_other_directions_are_integrated_out(family, customers):
    model = VariationalDPMixture(family=family).fit(customers)
    display = MixtureDisplay.from_estimator(model, customers, columns=("Milk", 3))
    chosen = [1, 3]
    assert_allclose(display.means, model.means_[:, chosen])
    covariances = {
        "gaussian": lambda c: c[:, chosen][:, :, chosen],
        "diag": lambda c: c[:, chosen, None] * np.eye(2),
        "spherical": lambda c: c[:, None, None] * np.eye(2),
    }[family](model.covariances_)
    assert_allclose(display.covariances, covariances)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Milk", "Frozen")


def test_columns_of_a_mixture_that_are_not_there_are_refused(mixture, customers):
    with pytest.raises(ValueError, match="no column 'Cheese'"):
        MixtureDisplay.from_estimator(mixture, customers, columns=("Milk", "Cheese"))
    with pytest.raises(ValueError, match="no column 9"):
        MixtureDisplay.from_estimator(mixture, customers, columns=(0, 9))
    with pytest.raises(ValueError, match="two different columns"):
        MixtureDisplay.from_estimator(mixture, customers, columns=("Milk", "Milk"))
    model = VariationalDPMixture().fit(customers[["Milk"]])
    with pytest.raises(ValueError, match="needs two columns"):
        MixtureDisplay.from_estimator(model, customers[["Milk"]])


def test_a_sample_of_many_rows_has_the_labels_of_the_model(mixture, customers):
    display = MixtureDisplay.from_estimator(mixture, customers, max_rows=50)
    assert len(display.xy) == 50
    assert "210 rows" in display.ax_.get_title(loc="left")
    kept = np.sort(np.random.default_rng(0).choice(210, 50, replace=False))
    assert_array_equal(display.labels, mixture.predict(customers)[kept])


def test_mixtures_of_all_estimators_are_drawn(customers, sampler):
    two = customers.iloc[:, :2]
    assert len(MixtureDisplay.from_estimator(sampler, two).ellipses_) == sampler.n_components_
    kernel = KernelDPMixture(random_state=0).fit(two)
    assert len(MixtureDisplay.from_estimator(kernel, two).ellipses_) == kernel.n_components_
