"""The kernel cache: keyed by all kernel sources, in a folder that can be written, told apart from compiling."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import leastaction as la
from leastaction.kernels import _jit, rows


def test_the_key_follows_every_kernel_source(tmp_path, monkeypatch):
    package = Path(_jit.__file__).parent.parent
    copy = tmp_path / "leastaction"
    for folder in ("kernels", "spatial/_source"):
        (copy / folder).mkdir(parents=True)
        for file in (package / folder).glob("*.py"):
            (copy / folder / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(_jit, "__file__", str(copy / "kernels" / "_jit.py"))
    _jit.source_hash.cache_clear()
    before = _jit.source_hash()
    # an edit in a helper changes the key
    helper = copy / "spatial/_source/vector.py"
    helper.write_text(helper.read_text() + "\n")
    _jit.source_hash.cache_clear()
    after = _jit.source_hash()
    monkeypatch.undo()
    _jit.source_hash.cache_clear()
    assert before != after
    assert before == _jit.source_hash()


def test_the_cache_lies_in_the_folder_of_the_key():
    assert _jit.cache_folder().name == _jit.source_hash()
    assert all(Path(entry._cache.cache_path) == _jit.cache_folder() for entry in _jit.ENTRIES)


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.delenv("LEASTACTION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_jit, "_writable", lambda folder: str(folder).startswith(str(tmp_path)))
    _jit.cache_folder.cache_clear()
    found = _jit.cache_folder()
    _jit.cache_folder.cache_clear()
    assert found == tmp_path / "leastaction" / _jit.source_hash()


def test_compiling_is_announced_once_and_reading_the_cache_is_not():
    said: list[str] = []
    tree = la.models.chain(2).build().system.tree
    zero = np.zeros(2)
    rows.rnea(tree, zero, zero, zero, zero.copy(), 1)
    with _jit.announce_compilation(said.append):
        rows.rnea(tree, zero, zero, zero, zero.copy(), 1)
    assert said == []

    @_jit.njit
    def fresh(x):
        return x + 1

    with _jit.announce_compilation(said.append):
        fresh(1.0)
    assert said == ["fresh"]


def test_the_import_touches_neither_numba_nor_scipy():
    code = "import sys, leastaction as la; la.Mechanism; la.pose(); print({'numba', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
