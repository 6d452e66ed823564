"""Mutated files of every kind: each is read, or refused with an error of the package; never anything else."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import leastaction as la
from leastaction.errors import LeastActionError

_spec = importlib.util.spec_from_file_location("mutations", Path(__file__).with_name("mutations.py"))
assert _spec is not None
assert _spec.loader is not None
mutations = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = mutations
_spec.loader.exec_module(mutations)

SECONDS = 20.0


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The content of one good file of every kind of model and mesh, by name."""
    found: dict[str, bytes] = mutations.write_models(tmp_path_factory.mktemp("models"))
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The content of good files of runs, by name."""
    found: dict[str, bytes] = mutations.write_runs(tmp_path_factory.mktemp("runs"))
    return found


def use(path: Path) -> Any:
    """What a user would do with a file: read it and go on with it; None where it is refused."""
    try:
        if path.suffix == ".npz":
            run = la.Trajectory.load(path)
            # a control, where there was one, is not in question here
            run.controls = ()
            return la.resume(run, 0.02) if run.pace is None and run.clock.uniform and run.dt < 0.1 else run
        if path.suffix in (".stl", ".obj", ".dae"):
            m = la.Mechanism("mesh")
            m.add_body("a", density=1.0, shape=la.Mesh(path))
            m.add_joint("root", "free", parent="world", child="a")
            return m.build()
        return la.load(path).build()
    except LeastActionError:
        return None


def check(seed: int, name: str, good: dict[str, bytes], folder: Path) -> None:
    """One case; what goes wrong names the seed and the file."""
    for other, data in good.items():
        (folder / other).write_bytes(data)
    path = folder / name
    path.write_bytes(mutations.mutated(seed, name, good[name]))
    start = time.monotonic()
    try:
        use(path)
    except Exception as error:
        raise AssertionError(f"mutated({seed}, {name!r}) ended with {type(error).__name__}: {error}") from error
    assert time.monotonic() - start < SECONDS, f"mutated({seed}, {name!r}) took too long"


def all_good(good: dict[str, bytes], folder: Path) -> bool:
    """Whether each of the files is read as it is."""
    for name, data in good.items():
        (folder / name).write_bytes(data)
    return all(use(folder / name) is not None for name in good)


def test_the_good_files_are_good(models: dict[str, bytes], runs: dict[str, bytes], tmp_path: Path) -> None:
    assert all_good(models, tmp_path)
    assert all_good(runs, tmp_path)


@pytest.mark.parametrize("name", mutations.MODELS)
def test_mutated_models(name: str, models: dict[str, bytes], tmp_path: Path) -> None:
    for seed in range(15):
        check(seed, name, models, tmp_path)


@pytest.mark.parametrize("name", mutations.RUNS)
def test_mutated_runs(name: str, runs: dict[str, bytes], tmp_path: Path) -> None:
    for seed in range(15):
        check(seed, name, runs, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("name", mutations.MODELS)
def test_many_mutated_models(name: str, block: int, models: dict[str, bytes], tmp_path: Path) -> None:
    for seed in range(15 + 50 * block, 65 + 50 * block):
        check(seed, name, models, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("name", mutations.RUNS)
def test_many_mutated_runs(name: str, block: int, runs: dict[str, bytes], tmp_path: Path) -> None:
    for seed in range(15 + 50 * block, 65 + 50 * block):
        check(seed, name, runs, tmp_path)


def test_a_quaternion_too_large_to_be_squared_is_refused() -> None:
    model = mutations.mechanism().build()
    with pytest.raises(la.ModelError, match="joint 'root': its quaternion is beyond"):
        model.state(q=[0.0, 0.0, 1.0, 1e200, 0.0, 0.0, 0.0, 0.0, 0.0])
