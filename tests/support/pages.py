"""A page as a browser would read it: its elements, checked against those that pages of ours have."""

import json
from html.parser import HTMLParser

VOID = {"meta", "input", "img"}
#: All elements of a page, and their attributes.
ELEMENTS = """
    a article b body button circle code dd details div dl dt figcaption figure footer g h1 h2 h3 h4 head header html i
    img input label li line main meta nav ol output p path polygon polyline q rect script section small span style
    summary svg table tbody td text th thead title tr ul
"""
ATTRIBUTES = """
    alt aria-describedby aria-label aria-labelledby aria-live aria-valuetext autocomplete charset class content cx cy d
    data-each data-stop for height hidden href http-equiv id lang max min name placeholder points r role scope
    spellcheck src step style text-anchor title type value viewbox width x x1 x2 y y1 y2
"""


class Page(HTMLParser):
    """What is on a page; reading fails where elements are not closed in order, or are none of ours."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.data = ""
        self.feed(html)
        self.close()
        assert not self.open, f"{self.open} are not closed"

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS.split(), f"<{tag}> is no element of a page"
        strange = {name for name, _ in attrs} - set(ATTRIBUTES.split())
        assert not strange, f"<{tag}> has {strange}"
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        _, attributes = self.found[-1] if self.found else ("", {})
        if self.open and self.open[-1] == "script" and attributes.get("type") == "application/json":
            self.data += data
        elif self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """Attributes of all elements of a kind; ``class_`` is one of its classes."""
        kind = wanted.pop("class_", None)
        return [
            attributes
            for name, attributes in self.found
            if name == tag
            and all(attributes.get(key) == value for key, value in wanted.items())
            and (kind is None or kind in (attributes.get("class") or "").split())
        ]

    @property
    def text(self) -> str:
        """All words."""
        return " ".join(" ".join(self.words).split())

    @property
    def stops(self) -> list[dict]:
        """What the slider knows."""
        return json.loads(self.data)


def read(path) -> Page:
    """The page in a file; it has two scripts, asks for nothing, and says nothing that is no number."""
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert len(page.all("script")) == 2
    assert all(some["href"].startswith("#") for some in page.all("a"))
    assert all(some["src"].startswith("data:image/png;base64,") for some in page.all("img"))
    assert not page.all("link")
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")  # the name of a language, not an address
    assert "https://" not in html
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    return page
