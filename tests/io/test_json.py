"""The package's own files: read back to the last bit, strict about everything else."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leastaction as la
from leastaction.model.serialize import mechanism_to_dict

TETRA = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def mechanism(seed=0):
    rng = np.random.default_rng(seed)
    m = la.Mechanism("name \u00fc \"'", gravity=rng.normal(size=3))
    vertices, faces = np.vstack([np.zeros(3), rng.normal(size=(3, 3))]), [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    shapes = [la.Ellipsoid(rng.uniform(1, 2, 3), color=rng.uniform(0, 1, 4)), la.Mesh(vertices=vertices, faces=faces)]
    m.add_body("a", mass=rng.uniform(), com=rng.normal(size=3), inertia=np.eye(3) * rng.uniform(), shapes=shapes)
    m.add_body("b", mass=1 / 3, inertia=(0.1, 0.2, 0.3 - 1e-17))
    m.add_body("c")
    frame = la.pose(xyz=rng.normal(size=3), quat=rng.normal(size=4))
    m.add_joint("free", "free", parent="world", child="a")
    m.add_joint("ball", "spherical", parent="a", child="b", parent_frame=frame, stiffness=0.1, damping=1 / 3)
    m.add_joint("turn", "universal", parent="b", child="c", axis=rng.normal(size=3), axis2=(0, 1e-3, 1), armature=0.1)
    m.add_joint("loop", "helical", parent="a", child="c", pitch=0.1, limits=(None, 1 / 7), effort=1e-300)
    m.add_force(la.PointSpring("a", (0, 0, 1 / 3), "world", (1, 2, 3), stiffness=0.7))
    m.add_frame("tip", "c", frame)
    m.add_ground(friction=0.3)
    m.add_contact("a", "b", friction=1 / 9)
    m.exclude_contact("a", "c")
    m.add_actuator("motor", "turn", gear=1 / 11, coordinate=1)
    m.enforce_limits()
    m.lock("turn", (0.1, 0.2))
    m.notes.append("a note")
    return m


@pytest.mark.parametrize("seed", range(5))
def test_round_trip_to_the_last_bit(tmp_path, seed):
    m = mechanism(seed)
    la.save(m, tmp_path / "m.json")
    back = la.load(tmp_path / "m.json")
    # repr tells every two different floats apart
    assert repr(mechanism_to_dict(back)) == repr(mechanism_to_dict(m))
    la.save(back, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_name_can_be_given(tmp_path):
    la.save(mechanism(), tmp_path / "m.json")
    assert la.load(tmp_path / "m.json", name="other").name == "other"


def test_functions_cannot_be_written(tmp_path):
    m = mechanism()
    m.joints["turn"].locked = None
    m.add_force(la.PointForce("a", force=lambda t: (0, 0, t), name="push"))
    with pytest.raises(la.ModelError, match="push"):
        la.save(m, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_mesh_files_move_with_the_model(write, tmp_path):
    mesh = write("out/meshes/t.obj", TETRA)
    m = la.Mechanism("m")
    m.add_body("a", shape=la.Mesh(mesh), mass=1.0)
    m.add_joint("j", "free", parent="world", child="a")
    la.save(m, tmp_path / "out" / "m.json")
    assert '"meshes/t.obj"' in (tmp_path / "out" / "m.json").read_text()
    (tmp_path / "out").rename(tmp_path / "moved")
    assert la.load(tmp_path / "moved" / "m.json").bodies["a"].shapes[0].volume == pytest.approx(1 / 6, rel=1e-12)


@pytest.mark.parametrize("how", ["dots", "absolute", "link"])
def test_mesh_outside_the_folder(write, tmp_path, how):
    secret = write("secret.obj", TETRA)
    inside = write("out/t.obj", TETRA)
    m = la.Mechanism("m")
    m.add_body("a", shape=la.Mesh(inside), mass=1.0)
    m.add_joint("j", "free", parent="world", child="a")
    path = tmp_path / "out" / "m.json"
    la.save(m, path)
    if how == "link":
        inside.unlink()
        inside.symlink_to(secret)
    else:
        name = "../secret.obj" if how == "dots" else secret.as_posix()
        path.write_text(path.read_text().replace('"t.obj"', json.dumps(name)))
    with pytest.raises(la.ModelError, match=r"m\.json: .*bodies\[0\]"):
        la.load(path)
    # allowed by the user's own word
    assert la.load(path, package_dirs=[tmp_path]).bodies["a"].shapes[0].kind == "mesh"


class TestStrict:
    def text(self, tmp_path):
        la.save(mechanism(), tmp_path / "m.json")
        return (tmp_path / "m.json").read_text()

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("{", r":1: not well-formed JSON"),
            ('{\n"a": 1,\n}', r":3: not well-formed JSON"),
            ("[]", "expected an object"),
            ("3", "expected an object"),
            ("{}", "format: expected 'leastaction mechanism'"),
            ('{"format": "leastaction mechanism", "version": 99}', "version: 99 is not known"),
            ('{"a": NaN}', "NaN is not a number"),
            ('{"a": -Infinity}', "-Infinity is not a number"),
            ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
            ("[" * 100_000, "nested too deep"),
            ('{"a":' * 100_000, "nested too deep"),
            ('{"a": ' + "9" * 10_000 + "}", "cannot be read as JSON"),
        ],
    )
    def test_refused(self, write, text, reason):
        path = write("bad.json", text)
        with pytest.raises(la.ModelError, match=reason) as caught:
            la.load(path)
        assert str(caught.value).startswith(f"{path}")
        assert len(str(caught.value)) < 500

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda d: d.update(extra=1), "extra: unknown key"),
            (lambda d: d["joints"][1].update(axis=[0, 0]), r"joints\[1\]\.axis"),
            (lambda d: d["joints"][1].update(axis=[0, 0, 0]), r"joints\[1\].*axis is zero"),
            (lambda d: d["joints"][1].pop("kind"), r"joints\[1\]\.kind: missing"),
            (lambda d: d["bodies"][0].update(mass=-1), r"bodies\[0\].*must not be negative"),
            (lambda d: d["bodies"][0].update(mass="1"), r"bodies\[0\]\.mass"),
            (lambda d: d["bodies"][0].update(mass=1e999), r"m\.json"),
            (lambda d: d["bodies"][1].update(name="a"), r"bodies\[1\].*already a body"),
        ],
    )
    def test_names_the_entry(self, tmp_path, change, reason):
        data = json.loads(self.text(tmp_path))
        change(data)
        (tmp_path / "m.json").write_text(json.dumps(data))
        with pytest.raises(la.ModelError, match=reason) as caught:
            la.load(tmp_path / "m.json")
        assert "m.json: " in str(caught.value)
