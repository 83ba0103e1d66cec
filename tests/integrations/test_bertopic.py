"""BERTopic with DPMeans in the place of HDBSCAN, documents and embeddings made up."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score

from kfree import DPMeans

bertopic = pytest.importorskip("bertopic", reason="pip install --no-deps bertopic")
pytest.importorskip("hdbscan", reason="BERTopic needs hdbscan")

from bertopic.dimensionality import BaseDimensionalityReduction  # noqa: E402
from bertopic.vectorizers import OnlineCountVectorizer  # noqa: E402

WORDS = [[f"topic{k}word{j}" for j in range(12)] for k in range(8)]


def corpus(n, n_topics, seed=0, noise=0):
    """Documents, embeddings of unit length and the topic of each; the last ``noise`` are of no topic."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_topics, size=n)
    centres = np.random.default_rng(1).normal(size=(8, 32))
    embeddings = np.vstack(
        [0.08 * rng.normal(size=(n, 32)) + centres[truth] / np.sqrt(32), rng.normal(size=(noise, 32))]
    )
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    documents = [" ".join(rng.choice(WORDS[k], 8)) for k in [*truth, *rng.integers(n_topics, size=noise)]]
    return documents, embeddings, truth


def topic_model(clusters, vectorizer):
    """BERTopic without a model of language, and with embeddings as they are."""
    return bertopic.BERTopic(
        embedding_model=None,
        umap_model=BaseDimensionalityReduction(),
        hdbscan_model=clusters,
        vectorizer_model=vectorizer,
    )


def named_topics(model):
    """Which of the made-up topics the first words of each topic come from; none where they are mixed."""
    words = {k: {word.split("word")[0] for word, _ in model.get_topic(k)} for k in model.get_topics() if k >= 0}
    return {k: found.pop() if len(found) == 1 else None for k, found in words.items()}


@pytest.mark.parametrize("divergence", ["sqeuclidean", "cosine"])
def test_topics_of_embeddings_are_found(divergence):
    documents, embeddings, truth = corpus(400, 6)
    model = topic_model(DPMeans(divergence=divergence), CountVectorizer())
    topics, _ = model.fit_transform(documents, embeddings)
    assert adjusted_rand_score(truth, topics) == 1.0
    assert sorted(named_topics(model).values()) == [f"topic{k}" for k in range(6)]
    again, _ = model.transform(documents, embeddings)
    assert list(again) == list(topics)


def test_topics_are_joined_by_bertopic():
    documents, embeddings, _ = corpus(400, 6)
    model = topic_model(DPMeans(), CountVectorizer())
    model.fit(documents, embeddings)
    model.reduce_topics(documents, nr_topics=4)
    assert set(model.topics_) == set(range(4))


def test_a_stream_of_documents_finds_new_topics_and_keeps_the_numbers_of_old_ones():
    model = topic_model(DPMeans(), OnlineCountVectorizer())
    before = {}
    for batch, n_topics in enumerate((4, 6, 8)):
        documents, embeddings, truth = corpus(400, n_topics, seed=batch)
        model.partial_fit(documents, embeddings)
        assert adjusted_rand_score(truth, model.topics_) == 1.0
        names = named_topics(model)
        assert sorted(names.values()) == [f"topic{k}" for k in range(n_topics)]
        assert before.items() <= names.items()
        before = names


def test_documents_of_no_topic_are_outliers_that_bertopic_reduces():
    documents, embeddings, truth = corpus(400, 6, noise=12)
    model = topic_model(DPMeans(n_clusters=6, outliers=True), CountVectorizer())
    topics, probabilities = model.fit_transform(documents, embeddings)
    assert adjusted_rand_score(truth, topics[:400]) > 0.99
    assert set(topics[400:]) == {-1}
    assert probabilities.shape == (412,)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert probabilities[:400].min() > probabilities[400:].max()
    for strategy in ("distributions", "c-tf-idf", "embeddings"):
        reduced = model.reduce_outliers(documents, topics, strategy=strategy, embeddings=embeddings)
        assert -1 not in reduced
        assert reduced[:400] == topics[:400]
