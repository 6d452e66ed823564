"""Machine code that comes with a package: what is in the store runs without compiling, what does not fit is said."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import zipfile

import pytest

from leastaction.jit import cache, store

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
import leastaction as la
model = la.models.chain(2).build()
print("energy", repr(la.energy(model, [0.1, 0.2], [1.0, -1.0]).total))
"""


def run(folder, archive, **more):
    """Words of the program with a cache folder and a store."""
    environment = {**os.environ, "LEASTACTION_CACHE_DIR": str(folder), "LEASTACTION_STORE": str(archive), **more}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with the one program of PROGRAM, and what that printed."""
    if platform.machine() not in store.BASELINES:
        pytest.skip(f"no baseline for {platform.machine()}")
    folder = tmp_path_factory.mktemp("made")
    said, _ = run(folder / "cache", folder / "none", **store.baseline())
    assert store.write_store(folder / "cache", folder / "store.zip") == 1
    return folder / "store.zip", said


def changed(archive, path, **about):
    """A copy of a store with another note on what it needs."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            new.writestr(member, json.dumps({**json.loads(data), **about}) if member == "about.json" else data)
    return path


def test_what_is_in_the_store_is_not_compiled(made, tmp_path):
    archive, compiled = made
    said, errors = run(tmp_path, archive)
    assert compiled.count("compiling leastaction.") == 1
    assert "compiling" not in said + errors
    assert said.splitlines()[-1] == compiled.splitlines()[-1]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"numba": "0.1"}, "is for Numba 0.1, and this is"),
        ({"triple": "z80-unknown-cpm"}, "is for z80-unknown-cpm, and this is"),
        ({"features": "+avx9000,+sse2"}, "is for processors with avx9000, which this one lacks"),
    ],
)
def test_a_store_for_something_else_is_said_and_the_code_is_compiled(made, tmp_path, about, words):
    other = changed(made[0], tmp_path / "other.zip", **about)
    said, errors = run(tmp_path, other)
    assert words in errors
    assert errors.count("RuntimeWarning") == 1
    assert "compiling leastaction." in said


def test_a_damaged_store_is_said_and_the_code_is_compiled(made, tmp_path):
    bad = tmp_path / "bad.zip"
    bad.write_bytes(made[0].read_bytes()[:500])
    said, errors = run(tmp_path, bad)
    assert "that came with the package cannot be read" in errors
    assert "compiling leastaction." in said
    # a program of which a bit is wrong counts as missing
    flipped = tmp_path / "flipped.zip"
    with zipfile.ZipFile(made[0]) as old, zipfile.ZipFile(flipped, "w") as new:
        for member in old.namelist():
            data = bytearray(old.read(member))
            if member.endswith(".nbc"):
                data[-100] ^= 1
            new.writestr(member, bytes(data))
    said, errors = run(tmp_path / "other cache", flipped)
    assert "compiling leastaction." in said
    assert errors == ""


def test_a_store_is_never_written_to(made):
    file = cache._StoredFile("folder", "name", "stamp")
    with pytest.raises(AssertionError, match="read only"):
        file.save(None, None)


def test_one_line_says_that_something_is_compiled():
    from leastaction.jit import notice

    said: list[str] = []
    with notice.spoken_by(said.append):
        notice.compiling("one")
        notice.compiling("two")
    assert len(said) == 1
    assert "warmup" in said[0]
