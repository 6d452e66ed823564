"""Where machine code is kept, and when it is made anew.

Numba looks only at the file of the cached function, not at the files of the functions it calls, so an edit in a
helper would silently run old code. The machine code of each module with entry points therefore lies in a folder named
by the module and by a hash of its own source and of all kernel sources it imports, directly or not: an edit compiles
again what it can reach, and nothing else. The folders lie in the user's cache folder, so that a second environment or
checkout with the same sources compiles nothing; beside the package where that cannot be written; or where
``LEASTACTION_CACHE_DIR`` says. What is not there is looked for in the store that an installed package may bring along
(``jit.store``). Of several processes that need the same code at the same time one compiles it, and the others wait for
the file.

Every file begins with a checksum of the rest, which is looked at before anything of it is used: a damaged one counts as
missing and is replaced. Machine code is trusted, so folders that others may write to are not used. Where nothing can be
written the program runs all the same, and says once that its code is not kept.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import pickle
import re
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # only POSIX has it; elsewhere each process compiles for itself
    fcntl = None  # type: ignore[assignment]

from numba.core.caching import Cache, CompileResultCacheImpl, IndexDataCacheFile, _CacheLocator

from leastaction.jit.notice import compiling
from leastaction.jit.store import open_store

PACKAGE = Path(__file__).resolve().parent.parent
ALWAYS = ("jit.decorators", "jit.compiler")  # how everything is compiled
NEVER = ("jit.cache",)  # where it is kept is no part of it
WEEKS = 14 * 86400.0
# an import from the package, on one line or in parentheses; parsing all sources would take most of a second
_IMPORT = re.compile(r"^[ \t]*from leastaction\.([\w.]+) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)
PATIENCE = 300.0  # seconds to wait for another process that compiles; one that hangs must not stop all


def _source_of(module: str) -> Path | None:
    """The file of a module of the package, if there is one; compiled code imports only what it is made of."""
    file = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    return file if file.is_file() else None


@cache
def _imports(module: str) -> tuple[str, ...]:
    """Modules of the package that the source of a module imports, without the package's own name."""
    file = _source_of(module)
    found = []
    for start, names in _IMPORT.findall(file.read_text(encoding="utf-8")) if file else ():
        found += [start, *(f"{start}.{name}" for name in re.findall(r"(?:^|[(,])\s*(\w+)", names))]
    return tuple(name for name in found if _source_of(name) and name not in NEVER)


@cache
def sources(module: str) -> tuple[str, ...]:
    """A module and all kernel sources that it reaches by imports, sorted."""
    reached: set[str] = set()
    ahead = [module, *ALWAYS]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += _imports(name)
    return tuple(sorted(reached))


@cache
def source_hash(module: str) -> str:
    """Hash of every source file that the compiled code of a module, such as ``explicit.step``, is made of."""
    digest = hashlib.sha256()
    for name in sources(module):
        digest.update(name.encode())
        digest.update((_source_of(name) or Path(os.devnull)).read_bytes())
    return digest.hexdigest()[:16]


def _writable(folder: Path) -> bool:
    """Whether a file can be made in the folder (made if missing), and not by everybody."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return _trusted(folder)
    except OSError:
        return False


def _trusted(folder: Path) -> bool:
    """Whether only this user (or the system's) can put machine code into the folder; elsewhere than on POSIX yes."""
    if not hasattr(os, "getuid"):
        return True
    info = folder.stat()
    return info.st_uid in (os.getuid(), 0) and not info.st_mode & stat.S_IWOTH


@cache
def say_once(words: str) -> None:
    """Warn of what is not kept, once in a process."""
    warnings.warn(f"leastaction: {words}", RuntimeWarning, stacklevel=2)


@cache
def cache_folder() -> Path:
    """The folder of compiled code; in it one folder for each module and version of its sources."""
    asked = os.environ.get("LEASTACTION_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leastaction"
    # The first folder that can be written wins; a temporary one is the last resort.
    folders = [Path(asked)] if asked else [user, PACKAGE / "jit" / "__kernelcache__"]
    for folder in folders:
        if _writable(folder):
            return folder
    say_once(
        f"no folder for compiled code can be written by this user alone ({', '.join(map(str, folders))}), so it is "
        "compiled anew in every process; set LEASTACTION_CACHE_DIR to a folder of your own."
    )
    folder = Path(tempfile.mkdtemp(prefix="leastaction-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def module_folder(module: str) -> Path:
    """The folder of one module's compiled code. A new one takes the place of those that nobody used lately."""
    folder = cache_folder() / f"{module}-{source_hash(module)}"
    if folder.exists():
        # another version's user sees by this time that it is in use
        with contextlib.suppress(OSError):
            os.utime(folder)
        return folder
    for other in cache_folder().glob(f"{module}-*"):
        if time.time() - other.stat().st_mtime > WEEKS:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def entry_modules() -> list[str]:
    """Modules with entry points, found by their text, so that none has to be imported."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if "\n@entry\n" in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(PACKAGE).with_suffix("").parts) for file in files]


def compiled_files() -> list[Path]:
    """The files of machine code made from the present sources."""
    return [file for module in entry_modules() for file in sorted(module_folder(module).glob("*.nbc"))]


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Numba's question where a function is cached, answered for this package."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._module = py_func.__module__.partition(".")[2]

    def get_cache_path(self) -> str:
        return str(module_folder(self._module))

    def get_source_stamp(self) -> str:
        return source_hash(self._module)

    def get_disambiguator(self) -> str:
        return ""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and files of machine code, each with a checksum before it, and each code with its own key."""

    def save(self, key: Any, data: Any) -> None:
        """Write machine code, and the index if it is new there."""
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """Machine code of a key, or None where there is none that is whole."""
        found = super().load(key)
        # two processes may have given the same number to different code
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> Any:
        content = _whole(self._read(self._index_path))
        if content is None:
            return {}
        version, stamp, overloads = content
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return _whole(self._read(self._data_path(name)))

    def _read(self, path: str) -> bytes | None:
        """Content of a file, or None."""
        try:
            return Path(path).read_bytes()
        except OSError:
            return None

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(data).digest())
            file.write(data)


class _StoredFile(_CheckedFile):
    """The same of a store that came with the package, which nobody writes to."""

    def save(self, key: Any, data: Any) -> None:
        raise AssertionError("a store is read only")

    def _read(self, path: str) -> bytes | None:
        store, _ = open_store()
        return store.read("/".join(Path(path).parts[-2:])) if store else None


def _whole(data: bytes | None) -> Any:
    """What was written into a file of the cache; None if it is missing or is not what was written."""
    size = hashlib.sha256().digest_size
    if data is None or hashlib.sha256(data[size:]).digest() != data[:size]:
        return None
    return pickle.loads(data[size:])


def _names_alone(library: Any) -> bytes:
    """LLVM code that defines the public names of a library, and nothing else."""
    import llvmlite.binding as llvm

    module = library._get_module_for_linking()
    public = [each for each in module.functions if not each.is_declaration and each.linkage != llvm.Linkage.internal]
    lines = [f'define void @"{each.name}"() {{ unreachable }}' for each in public]
    lines += [f'@"{each.name}" = global i8 0' for each in module.global_variables if not each.is_declaration]
    return bytes(llvm.parse_assembly("\n".join(lines)).as_bitcode())


def _not_to_link() -> Any:
    """In place of the LLVM code of an entry."""
    raise RuntimeError("entries are called from Python, not from compiled code")


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012  (the name and form are Numba's)

    def reduce(self, result: Any) -> Any:
        """Machine code alone: nothing links an entry, so its LLVM code and its annotations stay out.

        They are three quarters of the bytes, and reading them takes as long as all the rest.
        """
        names = _names_alone(result.library)
        (name, kind, (code, _)), *rest = super().reduce(result)
        rest[5] = ""
        return ((name, kind, (code, names)), *rest)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """A compiled function from machine code."""
        found = super().rebuild(target_context, payload)
        found.library._get_module_for_linking = _not_to_link
        return found


class KernelCache(Cache):  # type: ignore[misc]
    """Numba's cache of one entry point, kept where this package says."""

    _impl_class = _CacheImpl
    _lock: Any = None

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        where = self._impl.locator
        self._cache_file = _CheckedFile(self._cache_path, self._impl.filename_base, where.get_source_stamp())
        self._stored_file = _StoredFile(self._cache_path, self._impl.filename_base, where.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code from the disk, or None: then this process compiles it, and others that need it wait."""
        found = super().load_overload(sig, target_context)
        if found is None and fcntl is not None and self._wait(sig):
            found = super().load_overload(sig, target_context)
            if found is not None:
                self._release()
        if found is None:
            compiling(f"{self._py_func.__module__}.{self._py_func.__qualname__}")
        return found

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for this processor from the cache, else from the store."""
        key = self._index_key(sig, target_context.codegen())
        data = self._cache_file.load(key)
        if data is None:
            store, reason = open_store()
            if store is not None:
                data = self._stored_file.load((key[0], tuple(store.target), key[2]))
            elif reason:
                say_once(f"{reason}; it is compiled here instead.")
        return None if data is None else self._impl.rebuild(target_context, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write machine code to the disk; who waits for it goes on. A disk that is full stops no run."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            why = error.strerror or error
            say_once(f"compiled code cannot be kept in {self.cache_path} ({why}); the next process compiles it again.")
        finally:
            self._release()

    def _wait(self, sig: Any) -> bool:
        """Take the lock of this code; True if another process had it."""
        self._release()
        file = self._lock_file(sig)
        if not _writable(file.parent):
            return False
        try:
            self._lock = file.open("w")
        except OSError:
            return False
        end, waited = time.monotonic() + PATIENCE, False
        while time.monotonic() < end:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return waited
            except BlockingIOError:
                waited = True
                time.sleep(0.1)
        return waited

    def _lock_file(self, sig: Any) -> Path:
        """The file by whose lock processes agree on who compiles this code."""
        name = f"{self._py_func.__qualname__}{sig}"
        return Path(self.cache_path) / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.lock"

    def _release(self) -> None:
        """Let go of the lock, if there is one."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
