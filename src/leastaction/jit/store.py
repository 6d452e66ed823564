"""Machine code that comes with an installed package, so that a first run on a common processor compiles nothing.

A store is one archive beside this file. It holds a cache folder (``jit.cache``) full of programs that were compiled for
a common baseline of processors, and a note on what they need: the system, the processor's features, and the version of
Numba. Entries are found by the hash of their sources, so that code from an archive never runs for other sources.
``make wheel`` writes it; a checkout has none, and compiles for its own processor.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from leastaction.errors import ModelError

FOLDER = Path(__file__).resolve().parent

BASELINES = {
    # processors since about 2013 (AVX2 and FMA)
    "x86_64": ("x86-64-v3", "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2,+xsave"),
    "aarch64": ("generic", "+neon"),
}
"""By machine, the processor and features that stored code is compiled for."""

_ABOUT = "about.json"


class Target(NamedTuple):
    """What stored code was compiled for, in Numba's words: system, processor, features."""

    triple: str
    processor: str
    features: str


class Store:
    """An archive of machine code that this machine can run."""

    def __init__(self, archive: zipfile.ZipFile, target: Target) -> None:
        self._archive, self.target = archive, target

    def read(self, name: str) -> bytes | None:
        """A file of the cache folder, by its path in it; None where there is none."""
        try:
            return self._archive.read(name)
        except KeyError:
            return None


def store_path() -> Path:
    """Where the store of this version of Python and this kind of machine lies; ``LEASTACTION_STORE`` names another."""
    if other := os.environ.get("LEASTACTION_STORE"):
        return Path(other)
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return FOLDER / f"store-py{sys.version_info[0]}{sys.version_info[1]}-{system}.zip"


@cache
def open_store() -> tuple[Store | None, str | None]:
    """The store that came with the package, if this machine can run it; else None, and why in words if there is one."""
    if not store_path().is_file():
        return None, None
    try:
        archive = zipfile.ZipFile(store_path())
        about = json.loads(archive.read(_ABOUT))
        target = Target(about["triple"], about["processor"], about["features"])
        reason = _unfit(target, about["numba"])
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        return None, f"the compiled code that came with the package cannot be read ({error})"
    return (None, reason) if reason else (Store(archive, target), None)


def _unfit(target: Target, version: str) -> str | None:
    """Why this machine does not run code of a store, or None."""
    import llvmlite.binding as llvm
    import numba

    what = "the compiled code that came with the package is for"
    if version != numba.__version__:
        return f"{what} Numba {version}, and this is {numba.__version__}"
    if target.triple != llvm.get_process_triple():
        return f"{what} {target.triple}, and this is {llvm.get_process_triple()}"
    have = llvm.get_host_cpu_features()
    missing = [name for name in target.features.replace("+", "").split(",") if name and not have.get(name, False)]
    return f"{what} processors with {', '.join(missing)}, which this one lacks" if missing else None


def baseline() -> dict[str, str]:
    """Settings of the environment under which Numba compiles for the baseline of this kind of machine."""
    if platform.machine() not in BASELINES:
        raise ModelError(f"there is no baseline of processors for machines of the kind {platform.machine()!r}.")
    processor, features = BASELINES[platform.machine()]
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}


def write_store(folder: Path, path: Path) -> int:
    """Pack a cache folder, filled under ``baseline``, into a store; returns the number of programs."""
    import llvmlite.binding as llvm
    import numba

    processor, features = BASELINES[platform.machine()]
    about: dict[str, Any] = {
        "triple": llvm.get_process_triple(),
        "processor": processor,
        "features": features,
        "numba": numba.__version__,
    }
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".nbi", ".nbc"))
    beside = path.with_suffix(".part")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr(_ABOUT, json.dumps(about))
            for file in files:
                # no times of files, so that the same programs make the same archive
                member = zipfile.ZipInfo(file.relative_to(folder).as_posix())
                archive.writestr(member, file.read_bytes(), zipfile.ZIP_LZMA)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return sum(file.suffix == ".nbc" for file in files)
