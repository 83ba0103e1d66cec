"""pyLDAvis draws the topics of HDPTopics, as it draws scikit-learn's."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from kfree import HDPTopics

pyldavis = pytest.importorskip("pyLDAvis")
pytest.importorskip("pyLDAvis.lda_model")

WORDS = [[f"topic{k}word{j}" for j in range(20)] for k in range(4)]


@pytest.fixture(scope="module")
def fitted():
    """Documents of four topics, one of them in four of ten documents, and what was found in them."""
    rng = np.random.default_rng(0)
    topics = rng.choice(4, size=150, p=[0.4, 0.2, 0.2, 0.2])
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform([" ".join(rng.choice(WORDS[k], 60)) for k in topics])
    return HDPTopics().fit(X), X, vectorizer


def test_the_picture_has_our_topics_sizes_and_words(fitted):
    model, X, vectorizer = fitted
    picture = pyldavis.lda_model.prepare(model, X, vectorizer, R=10, sort_topics=False, start_index=0, n_jobs=1)
    assert model.n_topics_ == 4
    shares = np.asarray(X.sum(axis=1)).ravel() @ model.transform(X) / X.sum()
    assert np.allclose(picture.topic_coordinates["Freq"].sort_index(), 100 * shares)
    for k in range(4):
        shown = set(picture.topic_info.query(f"Category == 'Topic{k}'")["Term"])
        assert set(model.top_words(5, vocabulary=vectorizer)[k]) <= shown
        assert len({word.split("word")[0] for word in shown}) == 1


def test_the_page_is_written(fitted, tmp_path):
    pyldavis.save_html(pyldavis.lda_model.prepare(*fitted, n_jobs=1), str(tmp_path / "topics.html"))
    page = (tmp_path / "topics.html").read_text()
    assert all(f"topic{k}word" in page for k in range(4))
