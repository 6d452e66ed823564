"""Files as a stranger, a bad disk or a bad program would leave them: seeded mutations of good ones."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

import leastaction as la

Random = np.random.Generator

NUMBERS = [
    "0", "-1", "-0.0", "1e308", "-1e308", "1e999", "nan", "inf", "-inf", "1e-320", "99999999999999999999", "2147483648",
    "-9223372036854775809", "0x10", "1,5", "1e", "", "true", "null", "9" * 5000,
]  # fmt: skip
WORDS = [
    "", "world", "../../../../etc/passwd", "/etc/passwd", "/dev/zero", "file:///etc/passwd", "http://127.0.0.1:9/x",
    "package://x/../../y", "a" * 3000, "\u202e", "\x85", "nan", "mesh", "free", "revolute", "\0", "%s%n", "{}", "]]>",
]  # fmt: skip
BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;&b;"><!ENTITY x SYSTEM "file:///etc/passwd">]>'
ROBOT = """<?xml version="1.0"?>
<robot name="r"><material name="m"><color rgba="1 0 0 1"/></material>
<link name="a"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="1.5"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
<visual><geometry><mesh filename="m.stl" scale="1 1 1"/></geometry><material name="m"/></visual>
<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 1" rpy="0.1 0 0"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="3"/><dynamics damping="0.1" friction="0.2"/>
</joint></robot>"""
SCENE = """<mujoco model="s"><compiler angle="radian"/><option timestep="0.002" gravity="0 0 -9.81"/>
<default><geom density="500" friction="0.5"/></default>
<asset><mesh name="m" file="m.stl" scale="1 1 1"/></asset>
<worldbody><geom name="floor" type="plane" size="1 1 0.1"/>
<body name="a" pos="0 0 1"><freejoint name="root"/><geom type="box" size="0.1 0.2 0.3"/><geom type="mesh" mesh="m"/>
<body name="b" pos="0 0 0.5" quat="1 0 0 0"><joint name="j" type="hinge" axis="0 1 0" range="-1 1" damping="0.1"
stiffness="2" armature="0.01"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.3"/></body></body></worldbody>
<actuator><motor name="u" joint="j" gear="2"/></actuator>
<equality><connect body1="b" anchor="0 0 0.3"/></equality></mujoco>"""


def mechanism() -> la.Mechanism:
    """A small mechanism with one of everything that files hold."""
    m = la.Mechanism("m")
    m.add_body("a", mass=1.0, shape=la.Box((0.1, 0.2, 0.3)))
    m.add_body("b", mass=1.0, shape=la.Capsule(0.05, 0.3))
    m.add_joint("root", "free", parent="world", child="a")
    m.add_joint("j", "universal", parent="a", child="b", axis=(1, 0, 0), axis2=(0, 1, 0), limits=[(-1, 1), (-2, 2)])
    m.add_force(la.PointSpring("a", (0, 0, 0), "b", (0, 0, 0.1), stiffness=2.0, rest_length=0.1))
    m.add_frame("tip", "b", la.pose(xyz=(0, 0, 0.2)))
    m.add_ground(friction=0.5)
    return m


MODELS = ("m.stl", "m.obj", "m.dae", "r.urdf", "s.xml", "m.json")
RUNS = ("contact.npz", "run.npz")


def write_models(folder: Path) -> dict[str, bytes]:
    """One good file of every kind of model and mesh: the content by name."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    stl = b"\0" * 80 + np.uint32(len(faces)).tobytes()
    for face in faces:
        stl += np.concatenate([np.zeros(3), points[list(face)].ravel()]).astype("<f4").tobytes() + b"\0\0"
    obj = "".join(f"v {x} {y} {z}\n" for x, y, z in points)
    obj += "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces)
    (folder / "m.stl").write_bytes(stl)
    (folder / "m.obj").write_text(obj)
    (folder / "m.dae").write_text(_collada(points, faces))
    (folder / "r.urdf").write_text(ROBOT)
    (folder / "s.xml").write_text(SCENE)
    la.save(mechanism(), folder / "m.json")
    return {name: (folder / name).read_bytes() for name in MODELS}


def write_runs(folder: Path) -> dict[str, bytes]:
    """The files of a run with a contact, and of one with an array of controls: the content by name."""
    ball = la.Mechanism("ball")
    ball.add_body("ball", mass=1.0, shape=la.Sphere(0.1))
    ball.add_joint("root", "free", parent="world", child="ball")
    ball.add_ground(friction=0.5)
    model = ball.build()
    state = model.state(q=[0.0, 0.0, 0.11, 1.0, 0.0, 0.0, 0.0])
    la.simulate(model, state, dt=0.01, duration=0.1, method="maximal").save(folder / "contact.npz")
    model = la.models.double_pendulum().build()
    run = la.simulate(model, model.state(q=[0.8, 0.3]), dt=0.01, duration=0.05, method="bdf:2", control=np.ones((5, 2)))
    run.save(folder / "run.npz")
    return {name: (folder / name).read_bytes() for name in RUNS}


def _collada(points: np.ndarray, faces: list[tuple[int, int, int]]) -> str:
    """A surface as COLLADA."""
    values, corners = " ".join(map(str, points.ravel())), " ".join(str(c) for face in faces for c in face)
    return (
        '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>'
        '<unit meter="1"/><up_axis>Z_UP</up_axis></asset><library_geometries><geometry id="g"><mesh><source id="s">'
        f'<float_array id="f" count="12">{values}</float_array><technique_common><accessor source="#f" count="4" '
        'stride="3"><param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>'
        '</accessor></technique_common></source><vertices id="v"><input semantic="POSITION" source="#s"/></vertices>'
        f'<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>{corners}</p></triangles></mesh>'
        '</geometry></library_geometries><library_visual_scenes><visual_scene id="w"><node>'
        '<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes><scene>'
        '<instance_visual_scene url="#w"/></scene></COLLADA>'
    )


# --- mutations of bytes and of text ---------------------------------------------------------------------------------
def flip(rng: Random, data: bytes) -> bytes:
    """A few bits turned."""
    out = np.frombuffer(data, np.uint8).copy()
    for k in rng.integers(len(out), size=int(rng.integers(1, 6))):
        out[k] ^= np.uint8(1 << int(rng.integers(8)))
    return out.tobytes()


def cut(rng: Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: int(rng.integers(len(data)))]


def remove(rng: Random, data: bytes) -> bytes:
    """A piece is missing."""
    a, b = sorted(int(k) for k in rng.integers(len(data), size=2))
    return data[:a] + data[min(b, a + 200) :]


def repeat(rng: Random, data: bytes) -> bytes:
    """A piece stands there many times."""
    a, b = sorted(int(k) for k in rng.integers(len(data), size=2))
    piece = data[a : min(b, a + 300)]
    return data[:a] + piece * int(rng.integers(2, 400)) + data[a:]


def number(rng: Random, data: bytes) -> bytes:
    """A number is another one, or none."""
    return _replace(rng, data, rb"-?\d+(\.\d+)?(e-?\d+)?", NUMBERS)


def word(rng: Random, data: bytes) -> bytes:
    """A text in quotes is another one."""
    return _replace(rng, data, rb'(?<=")[^"]*(?=")', WORDS)


def swap(rng: Random, data: bytes) -> bytes:
    """A text in quotes is another one of the file."""
    found = [match.group().decode("utf-8", "replace") for match in re.finditer(rb'(?<=")[^"]*(?=")', data)]
    return _replace(rng, data, rb'(?<=")[^"]*(?=")', found or [""])


def nest(rng: Random, data: bytes) -> bytes:
    """Very deep nesting somewhere."""
    k, n = int(rng.integers(len(data))), int(rng.choice([150, 3000, 100_000]))
    pairs = {0: (b"[", b"]"), 1: (b'{"a":', b"}"), 2: (b"<a>", b"</a>"), 3: (b"<body>", b"</body>")}
    opening, closing = pairs[int(rng.integers(4))]
    return data[:k] + opening * n + (closing * n if rng.integers(2) else b"") + data[k:]


def bomb(rng: Random, data: bytes) -> bytes:
    """Entities."""
    k = data.find(b"?>") + 2 if b"?>" in data else 0
    return data[:k] + BOMB.encode() + data[k:].replace(b"r", b"&c;", 3)


def _replace(rng: Random, data: bytes, pattern: bytes, choices: list[str]) -> bytes:
    found = list(re.finditer(pattern, data))
    if not found:
        return flip(rng, data)
    match = found[int(rng.integers(len(found)))]
    new = choices[int(rng.integers(len(choices)))].encode("utf-8", "replace")
    return data[: match.start()] + new + data[match.end() :]


BYTES: list[Callable[[Random, bytes], bytes]] = [flip, cut, remove, repeat]
TEXT = [*BYTES, number, number, word, word, swap, nest, bomb]


# --- mutations of runs ----------------------------------------------------------------------------------------------
def change_run(rng: Random, data: bytes) -> bytes:
    """One entry of a run is another array, or its description another text; the archive itself is whole."""
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    name = str(rng.choice(sorted(arrays)))
    if name == "meta" or rng.integers(3) == 0:
        text = str(arrays["meta"]).encode()
        for _ in range(int(rng.integers(1, 3))):
            text = TEXT[int(rng.integers(len(TEXT)))](rng, text)
        arrays["meta"] = np.array(text.decode("utf-8", "replace"))
    else:
        arrays[name] = _changed(rng, arrays[name])
    if rng.integers(10) == 0:
        del arrays[str(rng.choice(sorted(arrays)))]
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _changed(rng: Random, array: np.ndarray) -> np.ndarray:
    """An array with another number, type or shape."""
    kind = int(rng.integers(6))
    if kind < 3 and array.size:
        out = array.copy()
        large = [-1, 0, 1, 7, 10**6, 2**40, -(2**40), 2**62]
        values = large if array.dtype.kind == "i" else [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-310, 0.0, 1e12, -1.0]
        out.reshape(-1)[int(rng.integers(array.size))] = values[int(rng.integers(len(values)))]
        return out
    others = [
        lambda: array.astype(["f4", "i4", "c16", "U8", "?", ">f8"][int(rng.integers(6))]),
        lambda: np.zeros((*array.shape, 2), array.dtype),
        lambda: np.zeros(0, array.dtype),
        lambda: np.zeros((int(rng.integers(1, 3_000_000)),), array.dtype),
        lambda: np.asfortranarray(array),
        lambda: np.array(json.dumps("x")),
    ]
    return np.asarray(others[int(rng.integers(len(others)))]())


def mutated(seed: int, name: str, data: bytes) -> bytes:
    """A file of a kind after the mutations of a seed."""
    rng = np.random.default_rng([seed, *name.encode()])
    if name.endswith(".npz"):
        return change_run(rng, data) if rng.integers(4) else BYTES[int(rng.integers(4))](rng, data)
    kinds = BYTES if name == "m.stl" else TEXT
    for _ in range(int(rng.integers(1, 4))):
        data = kinds[int(rng.integers(len(kinds)))](rng, data) if data else data
    return data
