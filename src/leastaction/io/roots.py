"""Where a model file may read: its own folder, the package roots found upward from it, and ``package_dirs``.

A model from a stranger names other files (meshes, includes). Every such name is resolved here, symbolic links
included, and must end inside one of the allowed roots and at a regular file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from leastaction.errors import ModelError
from leastaction.io.xml import Element
from leastaction.model.files import check_path, check_regular_file

_PACKAGE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

# a neighbouring folder this many levels up is taken for a package without a package.xml inside
_NEAR_LEVELS = 3


class Roots:
    """The allowed roots of one model file, and the resolution of file names in it.

    Args:
        model_file: the model file.
        package_dirs: folders that the user allows; each holds packages (or is one) and may be read whole.
    """

    def __init__(self, model_file: Path, package_dirs: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.folder = Path(os.path.abspath(model_file)).parent
        if isinstance(package_dirs, (str, os.PathLike)):
            package_dirs = (package_dirs,)
        self.package_dirs = [Path(os.path.abspath(check_path(folder))) for folder in package_dirs]
        # a folder that is not there is a typing mistake of the user
        for folder in self.package_dirs:
            if not folder.is_dir():
                raise ModelError(f"{folder}: package_dirs names a folder that does not exist.")
        self.allowed = [_resolved(folder) for folder in (self.folder, *self.package_dirs)]
        self.packages: dict[str, Path | None] = {}

    def resolve(self, element: Element, name: str, folder: Path | None = None, what: str = "mesh") -> Path | None:
        """The file that ``name`` means in ``element``: an allowed regular file, None if nothing is there.

        ``name`` is a path relative to ``folder`` (the model's folder by default), an absolute path, ``file://`` with
        an absolute path, or ``package://package/path``. A place outside the allowed roots is an error whether
        something is there or not, so that a model cannot ask what other files exist.
        """
        path = self._locate(element, name, folder or self.folder, what)
        if path is None:
            return None
        self.check_inside(element, path, name, what)
        if not os.path.exists(path):
            return None
        try:
            check_regular_file(path, what)
        except ModelError as error:
            raise element.error(str(error)) from error
        return path

    def check_inside(self, element: Element, path: Path, name: str, what: str) -> None:
        """Refuse a path that leaves the allowed roots after symbolic links are followed."""
        real = _resolved(path)
        if not any(real.is_relative_to(root) for root in self.allowed):
            raise element.error(
                f'the {what} "{name}" lies outside the folders this model may read (its own folder, its packages); '
                "give package_dirs= if it is to be trusted."
            )

    def _locate(self, element: Element, name: str, folder: Path, what: str) -> Path | None:
        """The path that a name means, not yet checked; None if its package is not found."""
        if not name.strip() or any(ord(c) < 32 for c in name):
            raise element.error(f"the file name of the {what} is empty or has control characters.")
        # a package: the folder of that name, then the rest
        if name.startswith("package://"):
            package, _, rest = name.removeprefix("package://").lstrip("/").partition("/")
            if not _PACKAGE_NAME.fullmatch(package) or not rest:
                raise element.error(f'"{name}" is not of the form package://package/path.')
            root = self._package(package)
            return None if root is None else root / rest
        # a local address; any other scheme would need a network
        if name.startswith("file:"):
            return folder / unquote(name.removeprefix("file:").removeprefix("//"))
        if _SCHEME.match(name):
            raise element.error(f'the {what} "{name}" is not a local file; only package:// and file:// are read.')
        return folder / name

    def _package(self, package: str) -> Path | None:
        """Folder of a package, or None; it becomes an allowed root."""
        if package not in self.packages:
            root = next((path for path in self._candidates(package) if path.is_dir()), None)
            self.packages[package] = root
            if root is not None:
                self.allowed.append(_resolved(root))
        return self.packages[package]

    def _candidates(self, package: str) -> Iterable[Path]:
        """Folders that may be the package: what the user named, then upward from the model's folder.

        An ancestor of the model file with that name always counts. A folder of that name inside an ancestor counts
        if it has a ``package.xml``, or is near the model (three levels) and neither at the top of the file system
        nor in the user's home: otherwise ``package://etc/...`` would open /etc. A symbolic link that leads out of
        the ancestor is not followed, for the same reason.
        """
        # folders named by the user are trusted whole
        for folder in self.package_dirs:
            yield folder / package
            if folder.name == package:
                yield folder
        # upward from the model
        home = Path(os.path.abspath(os.path.expanduser("~")))
        for level, ancestor in enumerate((self.folder, *self.folder.parents)):
            if ancestor.name == package:
                yield ancestor
            inside = ancestor / package
            near = level <= _NEAR_LEVELS and ancestor not in (home, Path(ancestor.anchor))
            if (near or (inside / "package.xml").is_file()) and _resolved(inside).is_relative_to(_resolved(ancestor)):
                yield inside


def _resolved(path: Path) -> Path:
    """The path with every symbolic link followed; a loop of links counts as itself."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return Path(os.path.abspath(path))
