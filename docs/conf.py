"""The documentation site: Sphinx reads these pages and the docstrings. `make docs` builds it."""

from __future__ import annotations

import re
from importlib import metadata

project = "collector"
author = copyright = "the authors of cupti-collector"  # noqa: A001 (Sphinx's name)
version = release = metadata.version("cupti-collector")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
exclude_patterns = ["images/**"]
html_theme = "furo"
html_title = f"collector {release}"
html_show_sourcelink = False
html_copy_source = False
# Single backticks in docstrings name Python objects; what is no documented object stays text.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./((?!CONTRIBUTING|CHANGELOG|RELEASING)[^)]+)\)")
"""A link from a page of this folder to another file of the repository."""


def _keep_inside(_app, name, source):
    """Name files of the repository that are not on the site, and link the pages beside this folder in it."""
    text = source[0]
    if "/" not in name:
        text = _OUTSIDE.sub(r"\1 (`\2`)", text)
        text = re.sub(r"\]\(\.\./(CONTRIBUTING|CHANGELOG|RELEASING)\.md", r"](\1.md", text).replace("](docs/", "](")
    source[0] = text


def _keep_whole(_app, what, _name, _value, _options, lines):
    """Keep colons in descriptions of attributes: napoleon takes what is before one in the first line for a type."""
    if what in ("attribute", "data", "property") and lines:
        lines.insert(0, "")


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _keep_inside)
    app.connect("autodoc-process-docstring", _keep_whole, priority=100)
