"""The site: `make docs` builds it in docs/_build/html. Nothing in it asks another machine, when built or when read."""

import re
from dataclasses import is_dataclass

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import kfree

project = "kfree"
author = "The kfree developers"
copyright = "the kfree developers, BSD 3-Clause"
version = release = kfree.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build", "images/*.md"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # functions in sphinx_gallery_conf: it is not a reason to build all again
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"sklearn\..*")
]  # names of others stay names: looking them up would ask another machine

# pages: Markdown as code hosts read it, with their anchors of headings
myst_heading_anchors = 4
myst_links_external_new_tab = False

# API: types stand in the docstrings, in words
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,  # times differ from machine to machine
    "write_computation_times": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),
}

# looks
html_theme = "pydata_sphinx_theme"
html_title = "kfree"
html_static_path = ["_static"]
html_css_files = ["kfree.css"]
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "kfree"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

#: What every estimator has from scikit-learn and is described there.
FROM_SKLEARN = re.compile("get_params|set_params|set_output|get_metadata_routing|set_\\w+_request")


def leave_out(app, what, name, thing, skip, options):
    """Methods that are scikit-learn's are not told again on every page, nor fields of tuples, which docstrings list."""
    return True if FROM_SKLEARN.fullmatch(name) or type(thing).__name__ == "_tuplegetter" else None


def without_call(app, what, name, thing, options, signature, returns):
    """Records are handed out, never made by hand: how they are made is not shown."""
    return ("", None) if what == "class" and (issubclass(thing, tuple) or is_dataclass(thing)) else None


def list_tables(app, docname, source):
    """The page of benchmarks is written by `make bench` for readers of Markdown: its tables join the site here."""
    if docname == "benchmarks/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def formula(self, node):
    """Formulas as MathML: browsers draw it themselves, so that no script and no font is fetched."""
    block = isinstance(node, nodes.math_block)
    self.body.append(tex2mathml(node.astext(), as_block=block))
    raise nodes.SkipNode


def setup(app):
    """Join the above to Sphinx."""
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-signature", without_call)
    app.connect("source-read", list_tables)
    app.add_html_math_renderer("mathml", inline_renderers=(formula, None), block_renderers=(formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


html_math_renderer = "mathml"
