"""What a reader gets from topics: names, documents, reasons; bad groups and numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from kfree import HDPTopics
from kfree.inference.loop import Budget
from kfree.inference.topics import fold_in
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.models.topic_words import name_topics
from kfree.rows import Documents
from support.small_corpora import planted, structureless

THEMES = {
    "sea": "ship sail harbour captain wave storm anchor crew",
    "court": "judge trial jury verdict witness lawyer appeal crime",
    "kitchen": "oven flour butter recipe salt dough spoon bake",
}


def stories(n=120, seed=0):
    """Texts on two themes each, one of them at length; and which."""
    rng = np.random.default_rng(seed)
    themes = rng.permuted(np.tile(list(THEMES), (n, 1)), axis=1)[:, :2]
    texts = [" ".join([*rng.choice(THEMES[a].split(), 30), *rng.choice(THEMES[b].split(), 8)]) for a, b in themes]
    return texts, themes[:, 0]


@pytest.fixture(scope="module")
def vectorizer():
    return CountVectorizer().fit(THEMES.values())


@pytest.fixture(scope="module")
def X(vectorizer):
    return vectorizer.transform(stories()[0])


@pytest.fixture
def model(X, vectorizer):
    return HDPTopics().fit(X).name_topics(vectorizer)


@pytest.fixture(scope="module")
def corpus():
    return planted(D=240, V=150, K=4)[0]


@pytest.fixture(scope="module")
def plain(corpus):
    return HDPTopics().fit(corpus)


def theme_of(words):
    """The theme that all of some words belong to."""
    (found,) = [theme for theme, own in THEMES.items() if set(words) <= set(own.split())]
    return found


# Documents


def test_main_topics_of_documents_are_the_largest_shares(corpus, plain):
    assert plain.doc_topic_.shape == (240, 4)
    assert_allclose(plain.doc_topic_.sum(axis=1), 1.0)
    assert_array_equal(plain.doc_topic_, plain.transform(corpus))
    assert_array_equal(plain.doc_labels_, plain.doc_topic_.argmax(axis=1))
    assert_array_equal(plain.doc_labels_, plain.predict(corpus))
    assert_array_equal(plain.predict(corpus[5:9]), plain.doc_labels_[5:9])
    assert_array_equal(plain.documents_per_topic_, np.bincount(plain.doc_labels_))
    assert_allclose(plain.topic_sizes_, plain.topic_word_counts_.sum(axis=1))
    assert not hasattr(plain, "labels_")


def test_main_topics_are_those_documents_were_written_from(X, model):
    wrote = stories()[1]
    names = np.array([theme_of(name.split(", ")) for name in model.topic_names_])
    assert_array_equal(names[model.doc_labels_], wrote)
    fresh, theirs = stories(40, seed=5)
    assert_array_equal(names[model.predict(CountVectorizer(vocabulary=model.vocabulary_).transform(fresh))], theirs)


def test_documents_without_words_have_no_main_topic(corpus, plain):
    assert_array_equal(plain.predict(sp.vstack([corpus[:1], 0 * corpus[:1]])), [plain.doc_labels_[0], -1])


class FewLooks(Budget):
    """Time that is up after some looks at the clock."""

    def __init__(self, looks):
        super().__init__()
        self.left = looks

    @property
    def spent(self):
        self.left -= 1
        return self.left < 0


def test_shares_for_which_there_is_no_time_are_those_of_hard_labels(corpus, plain, monkeypatch):
    monkeypatch.setattr(fold_in, "TOPICS", TOPICS._replace(fold_in_work=0.0))  # a look at the clock for each document
    documents, counts = Documents(corpus, np.empty(0)), plain._tables().hard_counts()
    shares, complete = plain._topics.shares_in_time(documents, counts, FewLooks(100))
    assert not complete
    assert_array_equal(shares[:100], plain.doc_topic_[:100])
    assert_allclose(shares[100:], (plain.doc_topic_counts_.toarray()[100:] + 0.25) / (120 + 1))
    shares, complete = plain._topics.shares_in_time(documents, counts, FewLooks(240))
    assert complete
    assert_array_equal(shares, plain.doc_topic_)


def test_fits_that_are_cut_short_have_documents(corpus):
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = HDPTopics(n_topics=3, max_time=0.0).fit(corpus)
    assert_allclose(model.doc_topic_.sum(axis=1), 1.0)
    assert_array_equal(model.doc_labels_, model.doc_topic_.argmax(axis=1))
    assert not model.converged_


def test_documents_per_topic_are_weighted(corpus):
    weight = np.random.default_rng(0).random(240)
    model = HDPTopics().fit(corpus, sample_weight=weight)
    assert_allclose(model.documents_per_topic_, np.bincount(model.doc_labels_, weights=weight))


def test_later_batches_have_their_own_documents(corpus):
    model = HDPTopics().partial_fit(corpus[:150]).partial_fit(corpus[150:])
    assert_array_equal(model.doc_labels_, model.predict(corpus[150:]))
    assert model.documents_per_topic_.sum() == 90


# Names


def test_names_are_words_of_the_topic_in_the_users_words(model):
    assert model.topic_names_.shape == (3,)
    assert {theme_of(name.split(", ")) for name in model.topic_names_} == set(THEMES)
    assert all(name.count(", ") == 2 for name in model.topic_names_)
    assert_array_equal(model.top_words(4), model.top_words(4, vocabulary=model.vocabulary_))


def test_names_come_from_columns_vectorizers_lists_or_numbers(X, vectorizer, model):
    words = vectorizer.get_feature_names_out()
    frame = HDPTopics().fit(pd.DataFrame(X.toarray(), columns=words))
    assert_array_equal(frame.topic_names_, model.topic_names_)
    assert_array_equal(HDPTopics().fit(X).name_topics(list(words)).topic_names_, model.topic_names_)
    numbers = HDPTopics().fit(X).topic_names_
    assert all(part.startswith("word ") for name in numbers for part in name.split(", "))
    assert [words[int(part[5:])] for part in numbers[0].split(", ")] == model.topic_names_[0].split(", ")


def test_a_new_fit_forgets_the_words_and_a_batch_keeps_them(X, model):
    names = set(model.topic_names_)
    model.partial_fit(X[:60])
    assert {theme_of(name.split(", ")) for name in model.topic_names_} == set(THEMES)
    model.reduce_topics(2)
    assert len(set(model.topic_names_) & names) >= 1
    model.fit(X)
    assert not hasattr(model, "vocabulary_")
    assert model.topic_names_[0].startswith("word ")


def names_of(counts, words):
    counts = np.asarray(counts, float) + 0.01
    return name_topics(counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=0) / counts.sum(), np.array(words))


def test_names_take_one_form_of_a_word_and_what_is_special():
    words = ["network", "networks", "the", "study", "studies", "cell", "policy", "politics", "spike"]
    counts = [[50, 40, 90, 0, 0, 20, 0, 0, 0], [0, 0, 90, 31, 30, 0, 21, 20, 1], [0, 0, 90, 0, 0, 8, 0, 0, 19]]
    names = names_of(counts, words)
    assert_array_equal(names, ["network, cell", "study, policy, politics", "the, spike, cell"])


def test_phrases_do_not_repeat_their_words():
    words = ["new york", "york", "new", "mayor", "goal", "team", "win", "v1", "v2"]
    names = names_of([[9, 8, 7, 5, 0, 0, 0, 2, 3], [0, 0, 0, 0, 9, 8, 7, 0, 0]], words)
    assert_array_equal(names, ["new york, mayor, v2", "goal, team, win"])


def test_names_are_different_whatever_the_words(corpus):
    assert len(set(names_of([[9, 8, 7, 6], [9, 8, 7, 5], [9, 8, 7, 6]], list("abcd")))) == 3
    assert len(set(names_of(np.ones((5, 2)), ["same", "same"]))) == 5
    assert_array_equal(names_of([[5]], ["alone"]), ["alone"])
    model = HDPTopics(n_topics=30).fit(corpus)
    assert len(set(model.topic_names_)) == 30


def test_names_survive_a_pickle(model):
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.topic_names_, model.topic_names_)
    assert again.explain() == model.explain()


# Documents that stand for topics


def test_representative_documents_have_the_largest_shares(corpus, plain):
    found, shares = plain.representative_documents(corpus, n=3), plain.doc_topic_
    assert found.shape == (4, 3)
    # all documents are equally long
    assert_array_equal(found, np.argsort(-shares, axis=0, kind="stable")[:3].T)


def test_representative_documents_are_long_enough_to_be_known_and_differ(X, model):
    sea = next(k for k, name in enumerate(model.topic_names_) if theme_of(name.split(", ")) == "sea")
    texts = ["ship", "ship sail wave " * 20, "wave sail ship " * 20, "oven flour salt " * 5 + "ship crew " * 10, ""]
    counts = CountVectorizer(vocabulary=model.vocabulary_).transform(texts)
    assert_array_equal(model.representative_documents(counts, n=4)[sea], [1, 3, 0, -1])
    assert model.representative_documents(counts, texts, n=2)[sea] == [texts[1], texts[3]]
    other = model.representative_documents(counts[:2], n=2)  # topics that are the main ones of no document
    assert all(sorted(row) == [0, 1] for row in other)
    assert_array_equal(model.representative_documents(counts[4:], n=2), np.full((3, 2), -1))
    assert model.representative_documents(counts[4:], texts[4:]) == [[], [], []]
    titles = pd.Series([f"story {j}" for j in range(120)], index=range(1000, 1120))
    found = model.representative_documents(X, titles, n=1)
    assert [int(row[0].split()[1]) for row in found] == model.representative_documents(X, n=1).ravel().tolist()


# Reasons


def test_explanations_say_how_many_at_what_price_and_what_is_next(model, X):
    said = model.explain()
    assert said.startswith(f"3 topics: each pays for itself at a price of lam_global = {model.lam_global_:.4g} nats")
    assert "5 times the root of the number of tokens" in said
    one, two = (model.topic_names_[int(k)] for k in model.topic_tree()[0, :2])
    assert f'Most alike are "{one}" and "{two}": merging them would pay from a price of' in said
    assert "differ more than by chance" in said
    assert "They are the main topics of" in said
    given = HDPTopics(n_topics=5).fit(X).explain()
    assert given.startswith("5 topics, as asked for.")
    assert "chance" not in given
    assert "times the root" not in HDPTopics(lam_global=10.0).fit(X).explain()
    assert model.reduce_topics(2).explain().startswith("2 topics, merged from the 3 of the fit.")


def test_the_price_that_is_named_merges_the_two(X, model):
    price = float(model.explain().split("from a price of ")[1].split(" on.")[0])
    assert HDPTopics(lam_global=0.9 * price).fit(X).n_topics_ == 3
    assert HDPTopics(lam_global=1.1 * price).fit(X).n_topics_ < 3


def test_explanations_of_many_topics_name_the_largest_and_the_smallest(corpus):
    said = HDPTopics(n_topics=9).fit(corpus).explain()
    assert "is the main topic of most documents (" in said
    assert "of fewest (" in said


def test_one_topic_is_explained():
    with pytest.warns(UserWarning, match="No structure"):
        model = HDPTopics().fit(structureless())
    assert "differ no more than by chance" in model.explain()
    assert "merge" not in model.explain()


# Bad input


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([0, 3], TypeError, r"groups of topics, such as \[\[0, 3\], \[1, 2\]\], but was given \[0, 3\]"),
        (["01"], TypeError, "but was given \\['01'\\]"),
        (3, TypeError, "but was given 3"),
        ([[0, 4]], ValueError, "topic 4, but there are 4 topics: 0 to 3"),
        ([[-1, 0]], ValueError, "topic -1, but there are 4 topics"),
        ([[0, 1], [1, 2]], ValueError, "topic 1 twice"),
        ([[0, 0]], ValueError, "topic 0 twice"),
        ([[]], ValueError, r"must hold their numbers, such as \[0, 3\], but one is \[\]"),
        ([[0.0, 1.0]], ValueError, "must hold their numbers"),
    ],
)
def test_bad_groups_are_named_and_change_nothing(plain, groups, error, message):
    before = vars(plain).copy()
    with pytest.raises(error, match=message):
        plain.merge_topics(groups)
    assert vars(plain) == before


def test_bad_numbers_and_names_are_errors(corpus, plain):
    with pytest.raises(ValueError, match=r"reduce_topics\(5\), but there are 4 topics. Pass at most 4"):
        plain.reduce_topics(5)
    with pytest.raises(ValueError, match="n must be >= 1"):
        plain.reduce_topics(0)
    with pytest.raises(TypeError, match="n must be an integer"):
        plain.representative_documents(corpus, n=2.5)
    with pytest.raises(ValueError, match="There are 2 texts for 240 documents"):
        plain.representative_documents(corpus, ["one", "two"])
    with pytest.raises(ValueError, match="vocabulary has shape"):
        plain.name_topics(["one", "two"])
    with pytest.raises(ValueError, match=r"149 features.*150"):
        plain.predict(corpus[:, 1:])


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.predict(np.eye(2)),
        lambda model: model.explain(),
        lambda model: model.merge_topics([[0, 1]]),
        lambda model: model.reduce_topics(1),
        lambda model: model.topic_tree(),
        lambda model: model.name_topics(["a"]),
        lambda model: model.representative_documents(np.eye(2)),
    ],
)
def test_questions_need_a_fit(ask):
    with pytest.raises(NotFittedError):
        ask(HDPTopics())
