"""The import contracts of pyproject.toml hold: a module imports only from the layers below its own."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leastaction.jit.status import Status
from leastaction.methods.failures import failure_of

ROOT = Path(__file__).resolve().parents[1]
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"


def run_import_linter(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter in its own process on ``folder`` (a pyproject.toml and a src folder)."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_layers_hold() -> None:
    result = run_import_linter(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def test_statuses_stand_in_one_table() -> None:
    names = {status.name for status in Status}
    package, found = ROOT / "src" / "leastaction", []
    for file in sorted(package.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Assign) and file != package / "jit" / "status.py":
                told = {each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name)}
                found += [f"{file.relative_to(package)}: {name}" for name in sorted(told & names)]
    assert found == []
    # each has words, but for what is no failure
    assert failure_of(Status.DONE) is None
    assert all(failure_of(status) for status in Status if status != Status.DONE)


def test_every_folder_is_a_package() -> None:
    # a folder without __init__.py is invisible to the linter, so its imports would go unchecked
    package = ROOT / "src" / "leastaction"
    folders = {file.parent for file in package.rglob("*.py")}
    assert [str(f.relative_to(package)) for f in sorted(folders) if not (f / "__init__.py").exists()] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("spatial/upward.py", "import leastaction.model"),
        ("dynamics/quantities.py", "import leastaction.reference"),
        ("explicit/runge_kutta.py", "import leastaction.explicit.adaptive"),
        ("maximal/step.py", "import leastaction.implicit.step"),
        ("stranger.py", "import math"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, module: str, line: str) -> None:
    # a small copy of the package that holds empty modules and one bad line
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "src" / "leastaction"
    for name in ["", "spatial", "model", "dynamics", "explicit", "implicit", "maximal", "reference"]:
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").touch()
    for name in ["errors.py", "_version.py", "explicit/adaptive.py", "explicit/runge_kutta.py", "implicit/step.py"]:
        (package / name).touch()
    clean = run_import_linter(tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr

    # the linter names the module
    (package / module).write_text(line + "\n")
    result = run_import_linter(tmp_path)
    assert result.returncode != 0
    assert "leastaction." + module.removesuffix(".py").replace("/", ".") in result.stdout
