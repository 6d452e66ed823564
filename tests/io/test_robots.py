"""Real robots from the package example-robot-data: loaded, with Pinocchio's total mass."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

import leastaction as la

pin = pytest.importorskip("pinocchio")

# file, what must be allowed, whether its root link is called "world"
ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", ("mimic",), False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", (), True),
    "a1": ("a1_description/urdf/a1.urdf", (), False),
    "solo12": ("solo_description/robots/solo12.urdf", (), False),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", (), False),
    "talos": ("talos_data/robots/talos_full_v2.urdf", ("mimic",), False),
}


def path_of(name: str) -> Path:
    try:
        data = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots"))) / ROBOTS[name][0]


@pytest.mark.parametrize("name", ROBOTS)
def test_total_mass(name):
    path, (_, allow, world) = path_of(name), ROBOTS[name]
    m = la.load(path, floating=not world, allow=allow)
    root = None if world else pin.JointModelFreeFlyer()
    other = pin.buildModelFromUrdf(str(path), root) if root else pin.buildModelFromUrdf(str(path))
    moving = sum(body.mass for body in m.bodies.values() if body.name in moving_bodies(m))
    expected = pin.computeTotalMass(other)
    assert moving == pytest.approx(expected, rel=1e-13)  # measured 4e-16
    # joints, by name, with their limits
    names = {n for n, joint in zip(other.names[1:], other.joints[1:], strict=True) if joint.nv < 6}
    assert {joint.name for joint in m.joints.values() if 0 < joint.nv < 6} == names
    for label in names:
        joint = other.joints[other.getJointId(label)]
        if joint.nq == 1 and m.joints[label].has_limits:
            assert m.joints[label].limits[0, 0] == other.lowerPositionLimit[joint.idx_q]
            assert m.joints[label].limits[0, 1] == other.upperPositionLimit[joint.idx_q]


def moving_bodies(m):
    """Bodies that are not fixed to the world."""
    leading = {joint.child: joint for joint in m.joints.values()}

    def moves(name):
        return name != "world" and (leading[name].kind != "fixed" or moves(leading[name].parent))

    return {name for name in m.bodies if moves(name)}


@pytest.mark.parametrize("name", ROBOTS)
def test_meshes_are_found(name):
    path, (_, allow, _) = path_of(name), ROBOTS[name]
    files = [s.file for b in la.load(path, allow=allow).bodies.values() for s in b.shapes if s.kind == "mesh"]
    assert files
    assert all(file.is_file() for file in files)


@pytest.mark.parametrize("name", ["panda", "talos"])
def test_mimics_are_couplings(name):
    m = la.load(path_of(name))
    count = path_of(name).read_text().count("<mimic ")
    assert len(m.couplings) == count > 0
    assert m.build().constraint_size == count


def test_talos_through_our_own_file_and_through_urdf(tmp_path):
    m = la.load(path_of("talos"), floating=True, allow=("mimic",))
    model = m.build()
    q = model.neutral()
    for ending in (".json", ".urdf"):
        la.save(m, tmp_path / f"talos{ending}")
        back = la.load(tmp_path / f"talos{ending}", package_dirs=[path_of("talos").parents[3]]).build()
        assert back.joint_names == model.joint_names
        assert back.total_mass == pytest.approx(model.total_mass, rel=1e-14)  # measured 0
        assert np.array_equal(back.neutral(), q)
