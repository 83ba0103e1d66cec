"""Names, texts and numbers that want to break a page, or to run in it."""

import random
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("jinja2")

from hypothesis import given
from hypothesis import strategies as st

from kfree import HDPTopics, KFeatures, VariationalDPMixture
from kfree.reports.svg import element, text
from kfree.reports.wording import clean, count, number, percent
from support.pages import Page

HOSTILE = [
    "<script>window.broken=1</script>",
    "</script><script>window.broken=1</script>",
    "</title><img src=x onerror=window.broken=1>",
    "</style></svg><svg onload=window.broken=1>",
    "<!--",
    "]]>",
    "--><b>",
    '"><input autofocus onfocus=window.broken=1>',
    "' onmouseover='window.broken=1",
    "javascript:window.broken=1",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{#",
    "${7*7}",
    "&lt;script&gt;",
    "&#x3C;script>",
    "\\u003cscript>",
    "\u2028\u2029",
    "\x00\x01\x1f\x7f\x9f",
    "\ud800",
    "\udfff\ud800",
    "\u202eright to left",
    "\u2066\u2067",
    "\ufeff\ufffe\uffff",
    "a\u0301" * 200,
    "😀" * 500,
    "",
    " ",
    "\n\t\r",
    "nan",
    "null",
    "x" * 10_000,
    "long word " * 2_000,
    "../../etc/passwd",
    "__proto__",
    "</script",
    "<",
    ">",
    "&",
    "=cmd|' /C calc'!A0",
]


def hostile_texts(n, seed):
    """Texts made of hostile pieces, all different."""
    rng = random.Random(seed)
    return [
        "".join(rng.choice(HOSTILE) if rng.random() < 0.7 else chr(rng.randrange(1, 0x3000)) for _ in range(1 + i % 4))
        + str(i)
        for i in range(n)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_hostile_columns_rows_and_texts_break_nothing(seed, page):
    names = hostile_texts(100, seed)
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        rng.normal(size=(60, 100)) + 9 * np.repeat([[0], [1]], 30, axis=0),
        columns=pd.Index(names, dtype=object),  # strings of its own kind do not hold all that Python's do
        index=pd.Index(hostile_texts(60, seed), dtype=object),
    )
    model = KFeatures(3, n_init=1, random_state=0).fit(X)
    for more in ({}, {"texts": hostile_texts(60, seed + 50)}):
        made = page(model, X, **more)  # which is read: only elements and attributes of ours, closed in order
        assert "broken=1" in made.text  # it is shown, as words
    few = X.iloc[:, :5]
    assert page(VariationalDPMixture(family="diag").fit(few), few).text


def test_hostile_words_and_documents_break_nothing(page):
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(4), 30, axis=1) / 30
    X = sp.csr_matrix(np.array([rng.multinomial(60, topics[j % 4]) for j in range(80)]))
    for seed in range(5):
        model = HDPTopics().fit(X).name_topics(hostile_texts(120, seed))
        made = page(model, X, texts=hostile_texts(80, seed + 9))
        assert len(made.stops) == model.n_topics_


def test_ten_thousand_hostile_words_stay_words():
    """The two doors through which users' words come into a page: templates, and drawings of ours."""
    from kfree.reports.write import _environment

    template = _environment().from_string('<p title="{{ word }}">{{ word }}</p>')
    for word in hostile_texts(10_000, 0):
        shown = clean(word)
        shown.encode("utf-8")
        assert len(shown) <= 60
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown)
        for html in (template.render(word=shown), element("g", text(shown, class_=shown))):
            found = Page(html)
            assert len(found.found) == (1 if html.startswith("<p") else 2)
            assert "".join(found.words).strip() == shown.strip()


@given(st.floats() | st.integers(-(10**30), 10**30))
def test_numbers_are_short_and_never_nan(value):
    assert 0 < len(number(value)) <= 40
    assert not re.search(r"nan|inf|None", number(value) + percent(value))
    if np.isfinite(float(value)):
        told = number(value).replace("\u202f", "").replace("−", "-")
        assert float(told) == pytest.approx(float(value), rel=1e-3)


def test_numbers_as_people_write_them():
    assert [number(x) for x in (0, -0.0, 1234, 12345.6, 0.00012345, -3.14159, 1e20, float("nan"))] == [
        *("0", "0", "1\u202f234", "12\u202f346", "0.0001234", "−3.142", "1e20", "–")
    ]
    shares = [percent(x).replace("\u00a0", " ") for x in (0, 1, 0.123, 0.0456, 0.0001)]
    assert shares == ["0 %", "100 %", "12 %", "4.6 %", "< 0.1 %"]
    assert [count(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]


@given(st.text(), st.integers(2, 80))
def test_words_are_cut_to_length_on_one_line(word, most):
    shown = clean(word, most)
    assert len(shown) <= most
    assert "\n" not in shown
