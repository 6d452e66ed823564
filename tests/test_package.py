"""The package's face: public names, lazy loading, version, and the files beside the code that repeat them."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import leastaction as la
from leastaction import _version

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ["numba", "scipy", "matplotlib", "numpy", "rich", "click", "mujoco", "trimesh", "viser", "xarray"]


def run_python(code: str) -> str:
    """Run ``code`` in a fresh interpreter and return what it printed."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("name", sorted(la.PUBLIC))
def test_public_name_resolves_to_its_module(name: str) -> None:
    value = getattr(la, name)
    module = la.PUBLIC[name]

    # what the name gives is defined in the package, and is the object of the module in the table
    if module is None:
        assert value is importlib.import_module(f"leastaction.{name}")
    else:
        assert value is getattr(importlib.import_module(module), name)
        assert value.__module__.startswith(module)


def test_all_and_dir_list_the_table() -> None:
    assert set(la.__all__) == set(la.PUBLIC) | {"__version__"}
    assert set(la.__all__) <= set(dir(la))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Mechanizm'"):
        la.Mechanizm  # noqa: B018


def test_import_is_light() -> None:
    printed = run_python(f"import sys, leastaction; print([n for n in {HEAVY} if n in sys.modules])")
    assert printed == "[]"


def test_import_is_fast() -> None:
    # the best of three fresh interpreters, so that a busy machine does not decide; measured 0.011 s
    code = "import time; t = time.perf_counter(); import leastaction; print(time.perf_counter() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.3


def test_describing_a_mechanism_needs_no_numba() -> None:
    code = """
import sys
import leastaction as la
m = la.Mechanism("arm")
m.add_body("link", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
m.add_joint("shoulder", "revolute", parent="world", child="link", axis=(0, 1, 0))
print("numba" in sys.modules)
"""
    assert run_python(code) == "False"


def test_function_is_not_hidden_by_its_module() -> None:
    # leastaction/view is a package, la.view a function in one of its modules, in whichever order they are loaded
    code = """
import leastaction as la
import leastaction.view.page
from leastaction.view.live import view
la.resume
print(la.view is view, callable(la.view))
"""
    assert run_python(code) == "True True"


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert (ROOT / project["tool"]["hatch"]["version"]["path"]).samefile(_version.__file__)
    assert f"version: {la.__version__}" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## \[?(\d[^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == la.__version__
