"""Files of runs from strangers: refused with words, within bounds, and never a crash in compiled code."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leastaction as la
from leastaction.run import run_file
from leastaction.run.registry import METHODS, method_by_name

Arrays = dict[str, Any]


def _contact() -> la.Trajectory:
    """A ball that has come to the ground, so that the memory holds a contact."""
    m = la.Mechanism("ball")
    m.add_body("ball", mass=1.0, shape=la.Sphere(0.1))
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(friction=0.5)
    model = m.build()
    state = model.state(q=[0.0, 0.0, 0.11, 1.0, 0.0, 0.0, 0.0])
    return la.simulate(model, state, dt=0.01, duration=0.1, method="maximal")


def _run(name: str) -> la.Trajectory:
    """A short run of a method."""
    if name == "maximal contact":
        return _contact()
    model = la.models.double_pendulum().build()
    return la.simulate(model, model.state(q=[0.8, 0.3]), dt=0.01, duration=0.05, method=method_by_name(name))


def _arrays(run: la.Trajectory, path: Path) -> Arrays:
    """What the file of a run holds."""
    run.save(path)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("name", [*METHODS, "maximal:4", "galerkin:2:gauss", "maximal contact"])
def test_a_memory_is_of_the_layout_that_its_method_declares(name: str) -> None:
    run = _run(name)
    layout = run.method.layout(run.model)
    for memory in (run.memory, run.method.start(run.model, run.state(0))):
        assert {key: (a.shape, a.dtype) for key, a in memory.items()} == {
            key: (field.shape, field.dtype) for key, field in layout.items()
        }
        for key, field in layout.items():
            assert (memory[key] >= field.low).all()
            assert (memory[key] <= field.high).all()


@pytest.mark.parametrize(
    "name", ["galerkin:2", "lie-trapezoid", "bdf:2", "maximal:4", "hermite-simpson", "maximal contact"]
)
def test_numbers_that_kernels_count_or_index_with_stay_in_their_ranges(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    arrays = _arrays(_run(name), path)
    whole = [key for key, a in arrays.items() if key.startswith("memory.") and a.dtype.kind == "i"]
    assert whole
    for key in whole:
        columns = arrays[key].size if arrays[key].ndim == 1 else arrays[key].shape[1]
        for column in range(min(columns, 4)):
            for value in (-2, 10**6, 2**40, -(2**40)):
                changed = arrays[key].copy()
                changed.reshape(-1)[column] = value
                np.savez(path, **{**arrays, key: changed})
                with pytest.raises(la.ModelError, match=f"memory '{key[7:]}'"):
                    la.Trajectory.load(path)


def test_memories_of_other_names_types_and_values_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    arrays = _arrays(_run("galerkin:2"), path)
    past, lengths = arrays["memory.past"], arrays["memory.lengths"]
    wrong = {
        "arrays of the method's memory": {"memory.more": np.zeros(2)},
        "'past' is float64 of shape": {"memory.past": past[:1]},
        "has shape": {"memory.past": np.zeros((50, 50))},
        "'known' is float64": {"memory.known": arrays["memory.known"].astype(float)},
        "'past' is not finite": {"memory.past": past * np.nan},
        "'lengths' has 0.0": {"memory.lengths": 0.0 * lengths},
    }
    for words, changes in wrong.items():
        np.savez(path, **{**arrays, **changes})
        with pytest.raises(la.ModelError, match=words):
            la.Trajectory.load(path)


def test_poses_of_maximal_euler_are_poses(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    arrays = _arrays(_run("maximal-euler"), path)
    np.savez(path, **{**arrays, "memory.E": 2.0 * arrays["memory.E"]})
    with pytest.raises(la.ModelError, match="does not hold poses"):
        la.Trajectory.load(path)


def test_a_file_that_unpacks_to_much_more_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_file, "UNPACKED", 2**20)
    path = tmp_path / "run.npz"
    arrays = _arrays(_run("rk4"), path)
    meta = json.loads(str(arrays["meta"]))
    # 16 MB of zeros each: unknown, in the memory, as rows that the description promises
    large = np.zeros((1_000_000, 2))
    meta["steps"] = len(large) - 1
    for changes in (
        {"other": large},
        {"memory.x": large},
        {"q": large},
        {"q": large, "v": large, "meta": np.array(json.dumps(meta))},
    ):
        np.savez_compressed(path, **{**arrays, **changes})
        tracemalloc.start()
        if "other" in changes:
            la.Trajectory.load(path)
        else:
            with pytest.raises(la.ModelError, match=r"has shape|too large"):
                la.Trajectory.load(path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # measured: 0.1 to 0.6 MB
        assert most < 5e6


def test_a_limit_allows_more_or_less(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run = _run("rk4")
    run.save(path)
    with pytest.raises(la.ModelError, match="give limit="):
        la.Trajectory.load(path, limit=1000)
    assert (la.Trajectory.load(path, limit=2**20).q == run.q).all()
    with pytest.raises(la.ModelError, match="limit must be a whole number"):
        la.Trajectory.load(path, limit=-1)


def test_archives_that_no_run_writes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run = _run("rk4")
    run.save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}

    def write(changes: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> None:
        with zipfile.ZipFile(path, "w", packing) as archive:
            for name, data in {**entries, **changes}.items():
                archive.writestr(name, data)

    short = entries["q.npy"][:-8]
    longer = entries["q.npy"].replace(b"(6, 2)", b"(9, 2)")
    objects = entries["q.npy"].replace(b"<f8", b"|O8")
    for changes in ({"q.npy": short}, {"q.npy": longer}, {"q.npy": objects}, {"meta.npy": entries["q.npy"]}):
        write(changes)
        with pytest.raises(la.ModelError):
            la.Trajectory.load(path)
    write({}, zipfile.ZIP_BZIP2)
    with pytest.raises(la.ModelError, match="packed in a way"):
        la.Trajectory.load(path)
    write({})
    assert (la.Trajectory.load(path).q == run.q).all()


def test_a_control_that_is_longer_than_the_run_is_read_as_far_as_it_was_used(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    model = la.models.pendulum().build()
    run = la.simulate(model, model.state(), dt=0.01, duration=0.05, method="rk4", control=np.ones((5, 1)))
    arrays = _arrays(run, path)
    np.savez(path, **{**arrays, "control.0": np.ones((1000, 1))})
    again = la.Trajectory.load(path)
    assert len(again.controls[0].control) == 6
    assert (again.tau == 1.0).all()
