"""Names for MuJoCo's bodies and joints, also for those that have none in the file.

The reader and the converters use the same names, so that a state finds its joint again.
"""

from __future__ import annotations

from typing import Any

WORLD = "world"


def object_name(mj: Any, kind: str, index: int) -> str:
    """Name of an object of a compiled model, "" if it has none; kind is "body", "joint", "geom" and so on."""
    import mujoco

    kinds = {
        "body": mujoco.mjtObj.mjOBJ_BODY,
        "joint": mujoco.mjtObj.mjOBJ_JOINT,
        "geom": mujoco.mjtObj.mjOBJ_GEOM,
        "site": mujoco.mjtObj.mjOBJ_SITE,
        "tendon": mujoco.mjtObj.mjOBJ_TENDON,
        "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
        "equality": mujoco.mjtObj.mjOBJ_EQUALITY,
        "key": mujoco.mjtObj.mjOBJ_KEY,
        "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
    }
    return mujoco.mj_id2name(mj, kinds[kind], index) or ""


def body_names(mj: Any) -> list[str]:
    """A name for every body: its own, else ``body_3``; the first is "world"."""
    own = [object_name(mj, "body", i) for i in range(mj.nbody)]
    own[0] = WORLD
    return _filled(own, [f"body_{i}" for i in range(mj.nbody)])


def joint_names(mj: Any) -> list[str]:
    """A name for every joint: its own, else ``<body>/joint``; the only free joint is "root" if it has none."""
    import mujoco

    bodies = body_names(mj)
    own = [object_name(mj, "joint", i) for i in range(mj.njnt)]
    free = [i for i in range(mj.njnt) if mj.jnt_type[i] == int(mujoco.mjtJoint.mjJNT_FREE)]
    if len(free) == 1 and not own[free[0]] and "root" not in own:
        own[free[0]] = "root"
    # number the others within their body
    wanted = []
    for i in range(mj.njnt):
        place = i - int(mj.body_jntadr[mj.jnt_bodyid[i]])
        wanted.append(f"{bodies[mj.jnt_bodyid[i]]}/joint{'' if place == 0 else place + 1}")
    return _filled(own, wanted)


def unused(name: str, taken: Any) -> str:
    """The name itself, or with the first number that makes it new."""
    if name not in taken:
        return name
    return next(f"{name}_{i}" for i in range(2, len(taken) + 3) if f"{name}_{i}" not in taken)


def _filled(own: list[str], wanted: list[str]) -> list[str]:
    """Own names, and the wanted ones where there is none, all different."""
    taken = {name for name in own if name}
    out = []
    for name, wish in zip(own, wanted, strict=True):
        if not name:
            name = unused(wish, taken)
            taken.add(name)
        out.append(name)
    return out
