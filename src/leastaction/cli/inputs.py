"""What commands read: a mechanism by file or name, and numbers by joint."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leastaction.errors import ModelError

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.model import Model

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def mechanism_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and the options that describe the mechanism, the same for every command that takes one."""
    options: list[Decorator] = [
        click.argument("source", metavar="FILE_OR_MODEL"),
        click.option("--floating", is_flag=True, help="URDF: let the root link move freely, by a free joint 'root'."),
        click.option(
            "--package-dir",
            "package_dirs",
            metavar="DIR",
            multiple=True,
            help="Folder that holds the packages of package:// names; may be repeated.",
        ),
        click.option(
            "--allow",
            metavar="NAME",
            multiple=True,
            help="Load the file although this changes the motion and cannot be honoured, such as mimic; the error "
            "that asks for it names it. May be repeated.",
        ),
        click.option(
            "--inertia",
            type=click.Choice(["file", "repair", "shapes"]),
            default="file",
            help="Mass and inertia as in the file; with those that no body has repaired; or what lacks computed from "
            "the shapes.",
        ),
        click.option(
            "--limits",
            type=click.Choice(["enforce", "report"]),
            help="Limits and efforts of a URDF or MJCF file in force, the default; or only reported on.",
        ),
        click.option(
            "--without",
            metavar="FEATURE",
            multiple=True,
            help="Drop friction, damping, stiffness, armature, limits, contacts, constraints, couplings, forces, "
            "actuators or tendons of the mechanism; may be repeated.",
        ),
        click.option(
            "--gravity", metavar="X,Y,Z", help="Acceleration of gravity in m/s^2, instead of the model's own."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_mechanism(
    source: str,
    *,
    floating: bool = False,
    package_dirs: Sequence[str] = (),
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    gravity: str | None = None,
    inertia: str = "file",
    limits: str | None = None,
) -> Mechanism:
    """The mechanism that the words of the command line describe."""
    from leastaction import models

    # the name of a built-in mechanism comes first: no file that can be loaded has such a name
    if source.partition(":")[0] in models.REGISTRY:
        given = {
            "--floating": floating,
            "--package-dir": package_dirs,
            "--allow": allow,
            "--inertia": inertia != "file",
            "--limits": limits is not None,
        }
        for option, value in given.items():
            if value:
                raise ModelError(f"{option} is for files; '{source}' is a built-in mechanism.")
        mechanism = models.by_name(source)
    else:
        mechanism = _from_file(source, floating, package_dirs, allow, inertia, limits)

    # what was asked to be changed
    if without:
        mechanism = mechanism.without(*without)
    if gravity is not None:
        mechanism.gravity = read_numbers(gravity, "--gravity", 3)
    return mechanism


def _from_file(
    source: str,
    floating: bool,
    package_dirs: Sequence[str],
    allow: Sequence[str],
    inertia: str,
    limits: str | None,
) -> Mechanism:
    """A mechanism from a file; a word that can only be a misspelt name says so."""
    from leastaction import io, models

    path = Path(source)
    if not path.suffix and len(path.parts) < 2 and not os.path.exists(source):
        try:
            return models.by_name(source)
        except ModelError as error:
            raise ModelError(f"there is no file '{source}', and {error}") from error
    try:
        return io.load(
            source, floating=floating, package_dirs=package_dirs, allow=allow, inertia=inertia, limits=limits
        )
    except ModelError as error:
        raise ModelError(as_options(str(error))) from error


def as_options(text: str) -> str:
    """A message of the library with its arguments as options of the command line."""
    text = re.sub(r'allow=\("(\w+)",\)', r"--allow \1", text)
    text = re.sub(r'la\.load\(\.\.\., inertia="(\w+)"\)', r"--inertia \1", text)
    text = re.sub(r'(?:la\.load\(\.\.\., )?limits="(\w+)"\)?', r"--limits \1", text)
    return text.replace("package_dirs=", "--package-dir").replace("floating=True", "--floating")


def build_model(mechanism: Mechanism, source: str) -> Model:
    """The model; an error that shows only in the whole mechanism names where it came from."""
    try:
        return mechanism.build()
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from error


def check_motion(model: Model, source: str) -> None:
    """Refuse a model whose inertias determine no motion, in words of the command line."""
    if model.undetermined:
        raise ModelError(f"{source}: {as_options(model.undetermined)}")


def read_numbers(text: str, where: str, count: int | None = None) -> Any:
    """Numbers separated by commas, as an array; finite ones only."""
    import numpy as np

    # float() reads more than a user means, such as 1_000
    try:
        if "_" in text:
            raise ValueError("underscore")
        numbers = np.array([float(word) for word in text.split(",")])
    except ValueError as error:
        raise ModelError(f"{where}: expected numbers separated by commas, got '{text}'.") from error
    if count is not None and len(numbers) != count:
        raise ModelError(f"{where}: expected {count} numbers separated by commas, got '{text}'.")
    if not np.isfinite(numbers).all():
        raise ModelError(f"{where}: every number must be finite, got '{text}'.")
    return numbers


def read_settings(settings: Sequence[str], option: str) -> dict[str, Any]:
    """Joint names with their numbers, from words such as ``shoulder=0.3`` or ``ball=1,0,0,0``."""
    out: dict[str, Any] = {}
    for text in settings:
        # the name may hold an equals sign, the numbers do not
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise ModelError(f"{option} {text}: expected joint=value, such as {option} shoulder=0.3.")
        if name in out:
            raise ModelError(f"{option} {text}: joint '{name}' is set twice.")
        out[name] = read_numbers(value, f"{option} {text}")
    return out
