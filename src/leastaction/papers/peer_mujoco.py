"""MuJoCo with its default parameters, to compare contacts and loops with (extra ``peers``)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from leastaction.model.checks import FloatArray

MISSING = "not compared: MuJoCo is missing, pip install 'leastaction[peers]'"
"""What a claim says where MuJoCo is not installed."""


def available() -> bool:
    """Whether MuJoCo is installed."""
    return find_spec("mujoco") is not None


def drop_box(height: float, edge: float, mass: float, dt: float, steps: int) -> FloatArray:
    """Height (steps + 1,) of the bottom of a box over the ground that falls from a height, metres."""
    body = (
        f'<body pos="0 0 {edge / 2 + height!r}"><freejoint/>'
        f'<geom type="box" size="{edge / 2!r} {edge / 2!r} {edge / 2!r}" mass="{mass!r}"/></body>'
    )
    heights, _ = _lowest(body, dt, steps, edge / 2)
    return heights


def drop_chain(
    n: int, radius: float, mass: float, height: float, angle: float, dt: float, steps: int
) -> tuple[FloatArray, bool]:
    """A straight chain of spheres on ball joints that falls on the ground; spheres do not touch each other.

    Args:
        n: number of spheres.
        radius: of each, metres.
        mass: of each, kg.
        height: of the centre of the first sphere, metres.
        angle: of the chain over the horizontal, radians.
        dt: step, seconds.
        steps: number of steps.

    Returns:
        Height of the bottom of the lowest sphere after each step, up to the step that MuJoCo calls unstable, metres;
        and whether there was none.
    """
    turn = f"{float(np.cos(angle / 2))!r} 0 {float(-np.sin(angle / 2))!r} 0"
    # ground and spheres touch, spheres and spheres do not
    geom = f'<geom type="sphere" size="{radius!r}" mass="{mass!r}" contype="2" conaffinity="1"/>'
    first = f'<body pos="0 0 {height!r}" quat="{turn}"><freejoint/>{geom}'
    other = f'<body pos="{2 * radius!r} 0 0"><joint type="ball" pos="{-radius!r} 0 0"/>{geom}'
    return _lowest(first + (n - 1) * other + n * "</body>", dt, steps, radius)


def segments_model(n: int, opening: float, tilt: float, size: tuple[float, float, float], dt: float) -> Any:
    """MuJoCo's model of a hanging chain of four-link segments (``bruedigam_chains.segments``), loops by ``connect``.

    Args:
        n: number of segments.
        opening: angle of the links to the line of the chain, radians.
        tilt: angle of the chain to the vertical, radians.
        size: length (m), mass (kg) and width (m) of a link.
        dt: step, seconds.
    """
    import mujoco

    length, mass, width = size
    across, own = mass * (length**2 + width**2) / 12, mass * width**2 / 6

    def link(name: str, angle: float, parent: float, top: bool, inside: str) -> str:
        # turned about y against its parent, at whose end it hangs
        half = (parent - angle) / 2
        return (
            f'<body name="{name}" pos="0 0 {0.0 if top else -length!r}" '
            f'quat="{float(np.cos(half))!r} 0 {float(np.sin(half))!r} 0"><joint type="hinge" axis="0 1 0"/>'
            f'<inertial pos="0 0 {-length / 2!r}" mass="{mass!r}" diaginertia="{across!r} {across!r} {own!r}"/>'
            f'<site name="{name}" pos="0 0 {-length!r}"/>{inside}</body>'
        )

    below, wide, narrow = "", tilt + opening, tilt - opening
    for k in range(n, 0, -1):
        # the corner above is the end of the link "low" before, or the world
        above = 0.0 if k == 1 else wide
        left = link(f"left_{k}", narrow, above, k == 1, link(f"low_{k}", wide, narrow, False, below))
        below = left + link(f"right_{k}", wide, above, k == 1, link(f"back_{k}", narrow, wide, False, ""))
    loops = "".join(f'<connect site1="low_{k}" site2="back_{k}"/>' for k in range(1, n + 1))
    xml = (
        f'<mujoco><option timestep="{dt!r}"><flag energy="enable"/></option><compiler angle="radian"/>'
        f"<worldbody>{below}</worldbody><equality>{loops}</equality></mujoco>"
    )
    return mujoco.MjModel.from_xml_string(xml)


def swing_segments(model: Any, steps: int) -> tuple[FloatArray, FloatArray, bool]:
    """Steps of a chain of segments from its start.

    Returns:
        Total energy, joules, and largest gap of a loop, metres, after each step; and whether MuJoCo did not warn.
    """
    import mujoco

    data = mujoco.MjData(model)
    names = [(data.site(f"low_{k}"), data.site(f"back_{k}")) for k in range(1, model.neq + 1)]
    energy, gaps = np.zeros(steps + 1), np.zeros(steps + 1)
    mujoco.set_mju_user_warning(lambda words: None)
    try:
        for k in range(steps + 1):
            # energy and places of this state, then the step
            mujoco.mj_forward(model, data)
            energy[k] = float(data.energy.sum())
            gaps[k] = max(float(np.linalg.norm(a.xpos - b.xpos)) for a, b in names)
            mujoco.mj_step(model, data)
            if any(warning.number for warning in data.warning):
                return energy[: k + 1], gaps[: k + 1], False
    finally:
        mujoco.set_mju_user_warning(None)
    return energy, gaps, True


def _lowest(bodies: str, dt: float, steps: int, below: float) -> tuple[FloatArray, bool]:
    """Height of the lowest body, ``below`` its origin, at every step; False with it where MuJoCo warns."""
    import mujoco

    xml = (
        f'<mujoco><option timestep="{dt!r}"/><worldbody><geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    heights = [float(data.xpos[1:, 2].min()) - below]
    # its warnings are counted here instead of written to a file
    mujoco.set_mju_user_warning(lambda words: None)
    try:
        for _ in range(steps):
            mujoco.mj_step(model, data)
            if any(warning.number for warning in data.warning):
                return np.array(heights), False
            # positions of bodies are those of the start of a step until then
            mujoco.mj_kinematics(model, data)
            heights.append(float(data.xpos[1:, 2].min()) - below)
    finally:
        mujoco.set_mju_user_warning(None)
    return np.array(heights), True
