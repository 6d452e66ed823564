"""Steps in contact against MuJoCo on the same scene, run by run in turns: robots and thrown boxes.

Robots are those of ``LEASTACTION_ROBOTS`` or of a folder ``../shared/robots`` beside the working folder, and are left
out where they are absent. Dry friction of joints and torsional friction are taken from both sides.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.bench import main as bench
from leastaction.io import load
from leastaction.io.convert import from_mujoco
from leastaction.maximal.method import Maximal
from leastaction.model.checks import FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.model import Model, State
from leastaction.model.shapes import Box
from leastaction.run.simulate import simulate

ROBOTS = (
    ("A1", "unitree_a1", ("standing", "random"), (0.6, 1.3)),
    ("Go2", "unitree_go2", ("standing",), (0.5,)),
    ("H1", "unitree_h1", ("standing",), (1.5,)),
)
"""Name, folder, how it is driven, and the bound of each ratio."""

BOXES = ((10, 1.5), (100, 1.5))
"""How many boxes are thrown, and the bound of the ratio."""

STEP, STEPS, TURNS = 0.002, 500, 5
"""Seconds and number of the steps of a robot, and how often both sides take their turn."""

HALF = (0.1, 0.08, 0.06)
"""Half sides of a box, metres."""


def robots_folder() -> Path | None:
    """Where the robots are, if they are there."""
    folder = Path(os.environ.get("LEASTACTION_ROBOTS", "../shared/robots")) / "mjcf"
    return folder if folder.is_dir() else None


def targets(peer: Any, how: str) -> FloatArray:
    """Inputs (steps, actuators): those of the key frame, or random ones about them every 20 ms."""
    inputs = np.tile(peer.key_ctrl[0], (STEPS, 1))
    if how == "random":
        rng, hold = np.random.default_rng(0), 10
        inputs += np.repeat(rng.normal(0.0, 0.3, (-(-STEPS // hold), peer.nu)), hold, axis=0)[:STEPS]
        limited = peer.actuator_ctrllimited.astype(bool)
        low, high = peer.actuator_ctrlrange[limited].T
        inputs[:, limited] = np.clip(inputs[:, limited], low, high)
    return inputs


def in_turns(model: Model, start: State, dt: float, inputs: FloatArray | None, peer: Any, data: Any) -> tuple[Any, ...]:
    """Microseconds of a step of ours and of MuJoCo, the smallest of turns that alternate, and our last run."""
    import mujoco
    from mujoco import rollout

    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    full, work = np.zeros(mujoco.mj_stateSize(peer, kind)), mujoco.MjData(peer)
    mujoco.mj_getState(peer, data, full, kind)
    steps = STEPS if inputs is None else len(inputs)
    control, asked = None, None if inputs is None else inputs[None]
    if inputs is not None:
        names = [mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_ACTUATOR, a) for a in range(peer.nu)]
        control = model.actuate({name: inputs[:, a] for a, name in enumerate(names)})
    ours = theirs = np.inf
    for turn in range(TURNS + 1):
        run = simulate(model, start, dt=dt, duration=steps * dt, method=Maximal(), save_every=steps, control=control)
        begin = time.perf_counter()
        rollout.rollout(peer, work, initial_state=full[None], control=asked, nstep=steps)
        # the first turn compiles
        if turn > 0:
            ours, theirs = min(ours, run.report.wall_time), min(theirs, time.perf_counter() - begin)
    return ours / steps * 1e6, theirs / steps * 1e6, run


def robot(folder: Path, name: str) -> tuple[Model, State, Any, Any]:
    """A robot at its first key frame, for us and for MuJoCo."""
    import mujoco

    path = folder / name / "scene.xml"
    peer = mujoco.MjModel.from_xml_path(str(path))
    peer.opt.timestep = STEP
    peer.dof_frictionloss[:] = 0.0
    data = mujoco.MjData(peer)
    mujoco.mj_resetDataKeyframe(peer, data, 0)
    mujoco.mj_forward(peer, data)
    mechanism = load(path, allow=("torsion",)).without("friction")
    # what is asked for is the contact itself, not when it is first looked at
    for pair in mechanism.contacts:
        pair.margin = 0.0
    model = mechanism.build()
    q, v = from_mujoco(model, data.qpos, data.qvel, peer)
    return model, model.state(q=q, v=v), peer, data


def thrown_boxes(count: int) -> tuple[Model, State, Any, Any]:
    """Boxes thrown on a plane, every pair of which may touch, for us and for MuJoCo."""
    import mujoco

    rng, side = np.random.default_rng(0), int(np.ceil(np.sqrt(count / 2)))
    m, q, v, bodies = Mechanism("boxes"), [], [], []
    for k in range(count):
        layer, cell = divmod(k, side * side)
        place = np.array([0.32 * (cell // side), 0.32 * (cell % side), 0.3 + 0.35 * layer]) + rng.uniform(
            -0.02, 0.02, 3
        )
        turn = rng.normal(size=4)
        turn /= np.linalg.norm(turn)
        m.add_body(f"box{k}", shape=Box(2.0 * np.array(HALF)), mass=1.0)
        m.add_joint(f"root{k}", "free", parent="world", child=f"box{k}")
        q.append(np.concatenate([place, turn]))
        v.append(np.concatenate([rng.normal(0.0, 2.0, 3), rng.normal(0.0, 0.5, 3)]))
        at, quat = " ".join(map(repr, place.tolist())), " ".join(map(repr, turn.tolist()))
        size = " ".join(map(str, HALF))
        bodies.append(
            f'<body name="box{k}" pos="{at}" quat="{quat}"><freejoint name="root{k}"/>'
            f'<geom type="box" size="{size}" mass="1" friction="0.6 0 0"/></body>'
        )
    m.add_ground(friction=0.6)
    m.add_contacts(friction=0.6)
    model = m.build()
    peer = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.005" cone="elliptic"/><worldbody><geom type="plane" size="50 50 1" '
        f'friction="0.6 0 0"/>{"".join(bodies)}</worldbody></mujoco>'
    )
    data = mujoco.MjData(peer)
    for k, rates in enumerate(v):
        # a free joint of MuJoCo has the velocity of its origin in world axes
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, q[k][3:])
        data.qvel[6 * k : 6 * k + 6] = np.concatenate([R.reshape(3, 3) @ rates[3:], rates[:3]])
    mujoco.mj_forward(peer, data)
    return model, model.state(np.concatenate(q), np.concatenate(v)), peer, data


def bench_contact() -> list[bench.Row]:
    """Robots that stand or are driven at random, and thrown boxes."""
    out, folder = [], robots_folder()
    for name, place, ways, bounds in ROBOTS:
        if folder is None or not (folder / place / "scene.xml").is_file():
            continue
        model, start, peer, data = robot(folder, place)
        for how, bound in zip(ways, bounds, strict=True):
            ours, theirs, run = in_turns(model, start, STEP, targets(peer, how), peer, data)
            out.append(row(f"{name} {how}", ours, theirs, bound, run))
    for count, bound in BOXES:
        model, start, peer, data = thrown_boxes(count)
        ours, theirs, run = in_turns(model, start, 0.005, None, peer, data)
        out.append(row(f"{count} thrown boxes", ours, theirs, bound, run))
    return out


def row(what: str, ours: float, theirs: float, bound: float, run: Any) -> bench.Row:
    """A measurement, with the iterations of a step."""
    each = run.report.counters["iterations"] / run.steps
    return bench.Row("contact", f"{what}, {each:.2f} iterations, MuJoCo", "us", ours, theirs, ours / theirs, bound)
