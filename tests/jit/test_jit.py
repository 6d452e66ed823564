"""The kernel cache: keyed by the sources that an entry point reaches, in a folder that can be written."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import leastaction as la
from leastaction.jit import cache as jit_cache
from leastaction.jit import decorators
from leastaction.tree import entries


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the kernel sources that a test may edit; the hash of a module in it."""
    for file in jit_cache.PACKAGE.rglob("*.py"):
        mine = tmp_path / file.relative_to(jit_cache.PACKAGE)
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.write_bytes(file.read_bytes())

    def forget():
        for function in (jit_cache._imports, jit_cache.sources, jit_cache.source_hash):
            function.cache_clear()

    monkeypatch.setattr(jit_cache, "PACKAGE", tmp_path)
    yield SimpleNamespace(folder=tmp_path, forget=forget)
    monkeypatch.undo()
    forget()


def test_the_key_follows_every_source_that_is_reached(sources):
    sources.forget()
    before = jit_cache.source_hash("explicit.step"), jit_cache.source_hash("solve.graph")
    # an edit in a helper, two imports away, changes the key
    helper = sources.folder / "loops/rows.py"
    helper.write_text(helper.read_text() + "\n")
    sources.forget()
    after = jit_cache.source_hash("explicit.step"), jit_cache.source_hash("solve.graph")
    assert before[0] != after[0]
    # the solver of graphs uses no loops of mechanisms
    assert before[1] == after[1]
    # what decides how everything is compiled changes every key
    helper = sources.folder / "jit/decorators.py"
    helper.write_text(helper.read_text() + "\n")
    sources.forget()
    assert jit_cache.source_hash("solve.graph") != after[1]


REACHED = sorted({name for module in jit_cache.entry_modules() for name in jit_cache.sources(module)})


@pytest.mark.parametrize("name", [name for name in REACHED if not name.startswith(("jit.", "spatial."))])
def test_imports_found_in_the_text_are_those_of_the_module(name):
    module = importlib.import_module(f"leastaction.{name}")
    used = {getattr(value, "__module__", None) for value in vars(module).values() if callable(value)}
    used |= {value.__name__ for value in vars(module).values() if inspect.ismodule(value)}
    used = {text.partition(".")[2] for text in used if text and text.startswith("leastaction.")}
    assert {text for text in used if jit_cache._source_of(text)} <= set(jit_cache.sources(name))


def test_compiled_code_is_made_of_compiled_modules():
    # rooms of methods hold Python objects too; no entry may reach them
    assert len(REACHED) > 100
    assert [name for name in REACHED if name.startswith(("errors", "model.", "methods."))] == []


def test_the_cache_lies_in_the_folder_of_the_key():
    for entry in decorators.ENTRIES:
        module = entry.py_func.__module__.partition(".")[2]
        key = jit_cache.source_hash(module)
        assert Path(entry._cache.cache_path) == jit_cache.cache_folder() / f"{module}-{key}"


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.delenv("LEASTACTION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package, user = jit_cache.PACKAGE / "jit" / "__kernelcache__", tmp_path / "leastaction"
    # the user's folder first, which all environments share
    for can, wanted in (((user, package), user), ((package,), package)):
        monkeypatch.setattr(jit_cache, "_writable", lambda folder, can=can: folder in can)
        jit_cache.cache_folder.cache_clear()
        found = jit_cache.cache_folder()
        jit_cache.cache_folder.cache_clear()
        assert found == wanted


def test_a_version_in_use_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(jit_cache, "cache_folder", lambda: tmp_path)
    old = time.time() - 2 * jit_cache.WEEKS
    monkeypatch.setattr(jit_cache, "source_hash", lambda module: "used")
    used, unused = tmp_path / "dynamics.forward-used", tmp_path / "dynamics.forward-unused"
    for folder in (used, unused):
        folder.mkdir()
        os.utime(folder, (old, old))
    assert jit_cache.module_folder("dynamics.forward") == used
    monkeypatch.setattr(jit_cache, "source_hash", lambda module: "new")
    assert jit_cache.module_folder("dynamics.forward") == tmp_path / "dynamics.forward-new"
    assert used.exists()
    assert not unused.exists()


def test_compiling_is_announced_once_and_reading_the_cache_is_not():
    said: list[str] = []
    tree = la.models.chain(2).build().system.tree
    zero = np.zeros(2)
    entries.rnea(tree, zero, zero, zero, zero.copy(), 1)
    with decorators.announce_compilation(said.append):
        entries.rnea(tree, zero, zero, zero, zero.copy(), 1)
    assert said == []

    @decorators.njit
    def fresh(x):
        return x + 1

    with decorators.announce_compilation(said.append):
        fresh(1.0)
    assert said == ["fresh"]


def test_the_import_touches_neither_numba_nor_scipy():
    code = "import sys, leastaction as la; la.Mechanism; la.pose(); print({'numba', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_who_needs_code_that_another_process_compiles_waits_for_it(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="locks of files exist on POSIX only")
    monkeypatch.setattr(jit_cache, "cache_folder", lambda: tmp_path)
    cache = jit_cache.KernelCache(decorators.ENTRIES[0].py_func)
    # nobody compiles it: this process does, and has the lock until it has saved
    assert not cache._wait("first")
    with cache._lock_file("first").open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    cache._release()
    # another one does, for a moment, and then for too long
    with cache._lock_file("second").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr(jit_cache, "PATIENCE", 0.3)
        assert cache._wait("second")
        cache._release()
        monkeypatch.setattr(jit_cache, "PATIENCE", 60.0)
        threading.Timer(0.2, fcntl.flock, (other, fcntl.LOCK_UN)).start()
        assert cache._wait("second")
    cache._release()


def test_what_an_entry_links_is_its_own():
    """A sweep that two places call stays a function, but one that nobody else can call, so LLVM may change its form."""
    from numba import njit

    from leastaction.jit.decorators import ENTRY_OPTIONS, sweep

    @sweep
    def total(table, unused):
        out = 0.0
        for i in range(table.shape[0]):
            for j in range(table.shape[1]):
                out += np.sqrt(table[i, j] + out)
        return out

    def twice(table, other):
        return total(table, other) + 2.0 * total(other, table)

    compiled = njit(**ENTRY_OPTIONS)(twice)
    table = np.arange(6.0).reshape(2, 3)
    assert compiled(table, 2.0 * table) == pytest.approx(twice(table, 2.0 * table), rel=1e-14)
    (text,) = compiled.inspect_llvm().values()
    assert "linkonce_odr" not in text


def test_where_code_is_kept_is_no_part_of_its_key(sources):
    sources.forget()
    before = jit_cache.source_hash("solve.graph")
    keeper = sources.folder / "jit/cache.py"
    keeper.write_text(keeper.read_text() + "\n")
    sources.forget()
    assert jit_cache.source_hash("solve.graph") == before


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A function that makes a small entry anew, as another process would, with a cache in a folder of its own."""
    monkeypatch.setattr(jit_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(jit_cache, "source_hash", lambda module: "0123")

    def halves(x):
        return 0.5 * x

    def make():
        dispatcher = decorators.njit(cache=False)(halves)
        dispatcher._cache = jit_cache.KernelCache(halves)
        return dispatcher

    assert make()(3.0) == 1.5
    return make


def _hits(dispatcher):
    """How many codes came from the disk after a call."""
    assert dispatcher(3.0) == 1.5
    return sum(dispatcher.stats.cache_hits.values())


def _cut(data):
    return data[:100]


def _empty(data):
    return b""


def _flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def _random(data):
    return np.random.default_rng(3).bytes(300)


@pytest.mark.parametrize("damage", [_cut, _empty, _flipped, _random])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_made_anew(small, tmp_path, damage, ending):
    assert _hits(small()) == 1
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    # compiled again, and the damaged file replaced
    assert _hits(small()) == 0
    assert _hits(small()) == 1


def test_a_pickle_of_a_stranger_is_not_opened(small, tmp_path):
    mark = tmp_path / "opened"
    (file,) = tmp_path.rglob("*.nbi")
    file.write_bytes(f"cos\nsystem\n(S'touch {mark}'\ntR.".encode())
    assert _hits(small()) == 0
    assert not mark.exists()


def test_code_under_the_number_of_another_is_not_taken(small, tmp_path):
    assert small()(3) == 1.5
    one, other = sorted(tmp_path.rglob("*.nbc"))
    one.write_bytes(other.read_bytes())
    again = small()
    assert (again(3.0), again(3)) == (1.5, 1.5)
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_full_disk_stops_no_run(small, tmp_path, monkeypatch):
    def full(self, path, content):
        raise OSError(28, "No space left on device")

    for file in tmp_path.rglob("*.nb?"):
        file.unlink()
    monkeypatch.setattr(jit_cache._CheckedFile, "_write", full)
    jit_cache.say_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="No space left on device") as said:
        assert _hits(small()) == 0
    assert _hits(small()) == 0
    assert len(said) == 1
    jit_cache.say_once.cache_clear()


def test_a_folder_that_others_write_to_is_not_used(tmp_path, monkeypatch):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    file = tmp_path / "file"
    file.write_text("no folder")
    for asked in (open_to_all, file):
        monkeypatch.setenv("LEASTACTION_CACHE_DIR", str(asked))
        jit_cache.cache_folder.cache_clear()
        jit_cache.say_once.cache_clear()
        with pytest.warns(RuntimeWarning, match="set LEASTACTION_CACHE_DIR"):
            found = jit_cache.cache_folder()
        assert asked not in (found, *found.parents)
        assert found.stat().st_mode & 0o077 == 0
    jit_cache.cache_folder.cache_clear()
    jit_cache.say_once.cache_clear()
