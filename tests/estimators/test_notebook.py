"""What a notebook shows of a model: a card and scikit-learn's diagram, without surprises."""

import inspect
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from kfree import DPMeans, GibbsDPMixture, GibbsIBP
from kfree.estimators._card import Parts, card
from support.short_fits import FITS, ShortFit, clouds, features

MODELS = {name: FITS[name] for name in ("auto", "topics", "price", "features", "stepwise", "mixture", "kernel")} | {
    "partitions": ShortFit(GibbsDPMixture(n_samples=20, burn_in=10, random_state=0), clouds(40, 2, 3, 6.0)),
    "allocations": ShortFit(GibbsIBP(n_samples=20, burn_in=10, random_state=0, init="empty"), features(40, 5, 2)),
}


class Shown(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("name", MODELS)
def test_no_public_attribute_raises_and_the_diagram_is_there(name):
    fit = MODELS[name]
    for model, fitted in ((type(fit.estimator)(), False), (fit.run(), True)):
        inspect.getmembers(model)
        shown = model._repr_html_()
        assert type(model).__name__ in shown
        assert shown.startswith('<div class="kfree-card"') == fitted
        assert model._repr_mimebundle_()["text/plain"] == repr(model)
        assert "kfree-card" not in repr(model)
        assert ("kfree-card" in model._repr_mimebundle_()["text/html"]) == fitted


@pytest.mark.parametrize("name", MODELS)
def test_a_card_says_how_many_and_how_large(name):
    model = MODELS[name].run()
    K = getattr(model, "n_clusters_", getattr(model, "n_components_", None))
    shown = Shown(model._card())
    assert str(K) in shown.texts[1]
    assert sum(tag == "tr" for tag, _ in shown.tags) == min(K, 12)
    widths = [float(width) for width in re.findall(r'"width:([\d.]+)%', model._card())]
    assert max(widths, default=100.0) == 100.0
    shares = [float(text[:-2]) for text in shown.texts if text.endswith(" %")]
    if name in ("auto", "topics"):
        assert sum(shares) == pytest.approx(100, abs=0.5)
    assert all(0 <= share <= 100 for share in shares)


def test_a_card_has_the_first_sentences_of_an_explanation():
    model = DPMeans(n_clusters=3).fit(clouds(100, 2, 3, 6.0))
    first, second = model.explain().split(". ")[:2]
    assert f": {first}. {second.rstrip('.')}." in "".join(Shown(model._card()).texts)


def test_many_parts_are_cut_short():
    shown = Shown(card("Some", Parts("clusters", np.arange(40.0)[::-1], 780.0)))
    assert shown.texts[-1] == "and 28 more"
    assert "1 cluster." in card("Some", Parts("clusters", np.ones(1), 1.0))
    assert "0 features." in card("Some", Parts("features", np.zeros(0), 5.0))


hostile = st.text(max_size=40) | st.sampled_from(
    ["<script>alert(1)</script>", '"><img src=x onerror=y>', "&lt;", "</div>"]
)


@settings(max_examples=300, deadline=None)
@given(title=hostile, names=st.lists(hostile, min_size=1, max_size=5), explanation=hostile)
def test_whatever_comes_from_data_is_text(title, names, explanation):
    size = np.ones(len(names))
    shown = Shown(card(title, Parts("topics", size, size.sum(), names), explanation))
    plain = Shown(card("a", Parts("topics", size, size.sum(), ["b"] * len(names)), "c"))
    assert shown.tags == plain.tags


def test_a_look_at_a_model_does_not_make_what_is_large():
    fit = MODELS["partitions"]
    model = fit.run()
    model._repr_html_()
    estimator_html_repr(make_pipeline(StandardScaler(), model))
    assert "coclustering_" not in vars(model)
    assert model.coclustering_.shape == (40, 40)
    assert "coclustering_" in vars(model)
    model.samples_ = np.zeros((2, 5001), np.uint8)
    del model.coclustering_
    with pytest.raises(AttributeError, match="Ask for some rows"):
        model.coclustering_  # noqa: B018
    model._repr_html_()


def test_who_wants_text_gets_text():
    with warnings.catch_warnings(), config_context(display="text"):
        warnings.simplefilter("ignore")
        model = FITS["auto"].run()
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}
