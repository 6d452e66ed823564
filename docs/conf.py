"""Sphinx configuration: furo theme, pages in MyST Markdown, docstrings in Google style."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import ModuleType

import leastaction

HERE = Path(__file__).resolve().parent

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
html_static_path = ["_static"]
html_css_files = ["gallery.css"]


def escape_bars(app, what, name, obj, options, lines):
    """Keep ``|w|`` in a docstring a magnitude: reStructuredText would read it as a substitution."""
    lines[:] = [re.sub(r"(``.*?``)|\|(\w+)\|", lambda m: m[1] or rf"\|{m[2]}\|", line) for line in lines]


def make_gallery(app):
    """Run the Python blocks of the gallery's page, which write its moving pictures beside the pages."""
    if app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_gallery"
    folder.mkdir(parents=True, exist_ok=True)
    blocks = re.findall(r"^```python\n(.*?)^```$", (HERE / "gallery.md").read_text(encoding="utf-8"), re.M | re.S)
    namespace = {"__name__": "gallery"}
    with contextlib.chdir(folder):
        for block in blocks:
            exec(compile(block, "gallery.md", "exec"), namespace)


def list_public_names(app, docname, source):
    """Write the page of the API from the table of public names."""
    if docname != "api":
        return
    lines = ["```{eval-rst}"]
    for name in leastaction.PUBLIC:
        value = getattr(leastaction, name)
        if isinstance(value, ModuleType):
            lines += [f".. automodule:: leastaction.{name}", "   :members:", "   :no-index:", ""]
        else:
            kind = "autoclass" if isinstance(value, type) else "autofunction"
            members = ["   :members:"] if kind == "autoclass" else []
            lines += [f".. {kind}:: leastaction.{name}", *members, "   :no-index:", ""]
    source[0] += "\n".join([*lines, "```", ""])


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("builder-inited", make_gallery)
    app.connect("source-read", list_public_names)
