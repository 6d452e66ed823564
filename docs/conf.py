"""Sphinx configuration: furo theme, pages in MyST Markdown, docstrings in Google style."""

from __future__ import annotations

import re

import leastaction

project = "leastaction"
author = "leastaction contributors"
copyright = "2026, leastaction contributors"
release = version = leastaction.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"leastaction {release}"


def escape_bars(app, what, name, obj, options, lines):
    """Keep ``|w|`` in a docstring a magnitude: reStructuredText would read it as a substitution."""
    lines[:] = [re.sub(r"(``.*?``)|\|(\w+)\|", lambda m: m[1] or rf"\|{m[2]}\|", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
