"""Everything a user reads: code in the pages runs, links lead somewhere, docstring examples are true."""

import ast
import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import kfree

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: Packages of others that pages are about: where they are not installed, such a page is not run.
OTHERS = {"anndata", "bertopic", "pyLDAvis"}
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)?(?:#([^)\s]+))?\)")


@pytest.fixture(autouse=True)
def closed():
    """No pictures are left open: matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def page_id(page):
    return str(page.relative_to(ROOT))


def anchors(page):
    """The anchors of the headings of a page, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def imported(code):
    """Packages that a piece of code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            yield from (name.split(".")[0] for name in names)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    text, names = page.read_text(), {"__name__": "page"}
    blocks = [found for found in BLOCK.finditer(text) if not found.group(1).startswith("# not run")]
    for package in OTHERS & {name for found in blocks for name in imported(found.group(1))}:
        pytest.importorskip(package)
    for found in blocks:
        code = found.group(1)
        above = text[: found.start(1)].count("\n")  # so that a traceback shows the line of the page
        exec(compile("\n" * above + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_between_pages_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page_id(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(file), f"{page_id(page)} links to {target}#{anchor}, which has no such heading"


@pytest.mark.parametrize(
    "name",
    [
        "DPMeans",
        "HDPMeans",
        "HDPTopics",
        "BPMeans",
        "KFeatures",
        "StepwiseKFeatures",
        "VariationalDPMixture",
        "KernelDPMixture",
        "truncation_level",
        "lam_for_k",
        "radius_for_k",
        "lam_for_n_components",
        "lam_path",
        "load",
        "read",
        "report",
        "write",
        "CentersDisplay",
        "ClusterMapDisplay",
        "ClusterTreeDisplay",
        "FeaturePathDisplay",
        "FeaturesDisplay",
        "LamPathDisplay",
        "MixtureDisplay",
        "ObjectiveTraceDisplay",
        "TopicsDisplay",
        "TablePreparer",
    ],
)
def test_examples_of_docstrings_are_true(name):
    if name.endswith("Display"):
        pytest.importorskip("matplotlib").use("Agg")
    thing = getattr(kfree, name)
    module = importlib.import_module(thing.__module__)
    tests = [test for test in doctest.DocTestFinder().find(thing, name, globs=vars(module).copy()) if test.examples]
    assert tests, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        assert runner.run(test).failed == 0


def test_every_public_name_has_a_page_of_the_api():
    listed = set(re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api" / "index.rst").read_text(), re.MULTILINE))
    assert set(kfree.__all__) - {"__version__"} <= listed


@pytest.mark.parametrize("name", sorted(set(kfree.__all__) - {"__version__"}))
def test_the_site_takes_no_name_of_a_docstring_for_a_link(name):
    text = inspect.getdoc(getattr(kfree, name)) or ""
    text = re.sub(r"^\.\. math::.*\n(\n|[ ].*\n)+", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*(>>>|\.\.\. ).*$|``[^`]*``|`[^`]*`", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\w+(, \w+)*( :|,?$)", "", text, flags=re.MULTILINE)  # what is described
    assert not re.findall(r"(?<![\w.])[A-Za-z]\w*_(?!\w)", text)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
