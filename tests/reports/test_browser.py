"""Reports in a real browser: slider, cards and search work; nothing is asked for; nothing hinders anybody."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("jinja2")

from kfree import DPMeans, VariationalDPMixture, report
from support.browser import find_axe, start_browser
from support.report_rows import pictures

#: Widths of a phone and of a desk.
WIDTHS = (360, 1200)


@pytest.fixture(scope="module")
def chromium():
    browser = start_browser()
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    return find_axe(tmp_path_factory.mktemp("axe"))


@pytest.fixture
def visit(chromium):
    """Open a file, in some width, light or dark."""

    def go(file, width=1200, dark=False):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        chromium.get(file.absolute().as_uri())
        return chromium

    yield go
    assert chromium.get_log("browser") == []  # no error, no warning, nothing that the policy refused


@pytest.fixture(scope="module")
def more_pages(every_model, tmp_path_factory):
    """Files of other kinds of models."""
    folder = tmp_path_factory.mktemp("more")
    files = {name: report(*every_model[name], folder / f"{name}.html") for name in ("HDPMeans", "GibbsDPMixture")}
    files["features"] = report(*every_model["BPMeans"], folder / "features.html", images=(6, 8))
    return files


def seen(browser):
    """What the slider moves: colours of points, lines of sizes, the line of the tree, the number, the sentence."""
    return browser.execute_script(
        """const all = (some) => [...document.querySelectorAll(some)];
        return {points: all(".points circle").map((p) => getComputedStyle(p).fill),
                sizes: all("#sizes li").map((l) => l.textContent),
                line: all(".tree .stop").findIndex((l) => l.classList.contains("now")),
                number: document.getElementById("count").textContent,
                said: document.getElementById("said").textContent};"""
    )


def test_the_slider_moves_map_sizes_and_tree_by_keyboard(visit, clusters_page):
    from selenium.webdriver.common.keys import Keys

    browser = visit(clusters_page)
    slider, first = browser.find_element("id", "number"), seen(browser)
    assert (first["number"], first["line"], len(first["sizes"])) == ("4", 3, 4)
    slider.send_keys(Keys.ARROW_RIGHT)
    more = seen(browser)
    assert (more["number"], more["line"], len(more["sizes"])) == ("5", 4, 5)
    assert more["points"] != first["points"]
    assert more["said"].startswith("5 clusters")
    assert slider.get_attribute("aria-valuetext") == "5"
    slider.send_keys(Keys.HOME)
    assert len(set(seen(browser)["points"])) == 1
    slider.send_keys(Keys.END)
    assert seen(browser)["number"] == "12"
    browser.find_element("id", "back").click()
    assert seen(browser) == first
    assert not browser.find_element("id", "back").is_displayed()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_slider_moves_by_mouse_and_so_does_a_click_on_the_tree(visit, clusters_page, width):
    from selenium.webdriver import ActionChains

    browser = visit(clusters_page, width)
    slider, first = browser.find_element("id", "number"), seen(browser)
    ActionChains(browser).move_to_element_with_offset(slider, slider.size["width"] // 4, 0).click().perform()
    moved = seen(browser)
    assert int(moved["number"]) > 6
    assert len(moved["sizes"]) == int(moved["number"])
    assert moved["points"] != first["points"]
    line = browser.find_elements("css selector", ".tree .stop")[1]
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", line)
    assert seen(browser)["number"] == "2"
    assert browser.find_element("id", "number").get_attribute("value") == "1"


def test_topics_merge_as_the_slider_moves(visit, topics, topics_page):
    from selenium.webdriver.common.keys import Keys

    browser = visit(topics_page)
    assert seen(browser)["number"] == str(topics.n_topics_)
    browser.find_element("id", "number").send_keys(Keys.ARROW_LEFT)
    assert len(set(seen(browser)["points"])) == topics.n_topics_ - 1


def shown_cards(browser):
    return [card for card in browser.find_elements("class name", "card") if card.is_displayed()]


def test_search_shows_the_topics_that_have_the_words(visit, topics, topics_page):
    browser = visit(topics_page)
    search = browser.find_element("id", "search")
    word = str(topics.top_words(1)[2, 0])
    search.send_keys(word.upper())
    cards = shown_cards(browser)
    assert 1 <= len(cards) < topics.n_topics_
    assert all(word in card.text for card in cards)
    assert browser.find_element("id", "found").text == f"{len(cards)} of {topics.n_topics_} topics"
    search.send_keys(" nosuchword")
    assert not shown_cards(browser)
    search.clear()
    search.send_keys(" ")
    assert len(shown_cards(browser)) == topics.n_topics_


def test_folded_rows_unfold_and_are_printed(visit, clusters_page):
    browser = visit(clusters_page)
    folded = browser.find_element("css selector", ".card details")
    assert folded.get_attribute("open") is None
    folded.find_element("tag name", "summary").click()
    assert folded.get_attribute("open") is not None
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert not browser.find_elements("css selector", "details:not([open])")
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.find_elements("css selector", "details:not([open])")


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_as_wide_as_the_screen_and_ask_for_nothing(visit, clusters_page, topics_page, more_pages, width):
    for file in (clusters_page, topics_page, *more_pages.values()):
        browser = visit(file, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        entries = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
        assert all(name.startswith("data:") for name in entries)
        assert browser.execute_script("return [...document.images].every((i) => i.complete && i.naturalWidth > 0)")


def test_the_policy_refuses_what_a_page_does_not_need(chromium, clusters_page):
    chromium.get(clusters_page.absolute().as_uri())
    refused = chromium.execute_async_script(
        """const done = arguments[0];
        document.addEventListener("securitypolicyviolation", (e) => done(e.violatedDirective));
        const image = new Image(); image.src = "https://example.org/x.png"; document.body.append(image);
        setTimeout(() => done("nothing"), 3000);"""
    )
    assert refused == "img-src"
    chromium.get_log("browser")  # which says so


def test_hostile_names_and_texts_do_not_run(visit, tmp_path):
    bad = [
        "<img src=x onerror='window.broken=1'>",
        "</script><script>window.broken=1</script>",
        "</svg><svg onload='window.broken=1'>",
        "\"><input autofocus onfocus='window.broken=1'>",
    ]
    X = np.random.default_rng(0).normal(size=(24, 4)) + 9 * np.repeat(np.eye(4)[:3], 8, axis=0)
    X = pd.DataFrame(X, columns=bad, index=[f"{bad[i % 4]}{i}" for i in range(24)])
    for model in (DPMeans(n_clusters=3).fit(X), VariationalDPMixture(family="diag").fit(X)):
        for texts in (None, bad * 6):
            browser = visit(report(model, X, tmp_path / "page.html", texts=texts))
            assert browser.execute_script("return window.broken === undefined")
            assert "window.broken=1" in browser.find_element("tag name", "main").text


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1200, True)])
def test_axe_finds_nothing_serious(visit, axe, clusters_page, topics_page, more_pages, width, dark):
    for file in (clusters_page, topics_page, *more_pages.values()):
        browser = visit(file, width, dark)
        browser.execute_script("document.querySelectorAll('details').forEach((some) => (some.open = true))")
        browser.execute_script(axe)
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run().then((r) => done([r.violations, r.passes.length]))"
        )
        told = [(some["id"], some["impact"], some["nodes"][0]["html"][:200]) for some in found[0]]
        assert found[1] > 10  # it looked
        assert not [some for some in told if some[1] in ("serious", "critical")], file.name


def test_dark_pages_are_dark(visit, clusters_page):
    ground = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert min(visit(clusters_page).execute_script(ground)) > 200
    assert max(visit(clusters_page, dark=True).execute_script(ground)) < 60


def test_pictures_of_rows_are_drawn(visit, tmp_path):
    X = pictures()
    browser = visit(report(DPMeans(n_clusters=3).fit(X), X, tmp_path / "page.html", images=(6, 8)))
    size = "return [document.images[0].naturalWidth, document.images[0].naturalHeight]"
    assert browser.execute_script(size) == [8, 6]
