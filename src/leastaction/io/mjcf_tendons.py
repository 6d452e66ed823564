"""Tendons of a compiled MuJoCo model: over joints, and through space around spheres and cylinders.

MuJoCo's length of a fixed tendon is the sum of its joints' ``qpos``; coordinates here count from ``ref``, so lengths
here are less by what the file's own pose makes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leastaction.io.mjcf_features import sum_of
from leastaction.io.mjcf_joints import Settings
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.tendon import Pulley, Wrap


class TendonMap(NamedTuple):
    """Name of a tendon here, and what MuJoCo's length is more than the length here."""

    name: str
    offset: float


def add_tendons(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> dict[int, TendonMap]:
    """Tendons that pull, have limits or are pulled by actuators, by MuJoCo's number."""
    mj, out = source.mj, {}
    for t in range(mj.ntendon):
        name, element = source.named("tendon", t)
        terms = sum_of(source, t, True)
        if not (_pulls(mj, t) or _is_driven(mj, t)):
            notes.add(f"{element.where}: the tendon {name!r} has no force of its own; not kept.")
            continue
        offset = 0.0 if terms is None else _offset(source, t)
        label = unused(name, m.tendons)
        weights = None if terms is None else {joint: c for joint, c in terms.items() if c}
        law, path = _law(source, settings, notes, t, offset), _path(source, notes, t) if terms is None else None
        if weights is None and path is None:
            continue
        with located(element):
            m.add_tendon(label, weights, path=path, **law)
        out[t] = TendonMap(label, offset)
    return out


def _is_driven(mj: Any, t: int) -> bool:
    """Whether an actuator acts on a tendon."""
    import mujoco

    on_tendons = mj.actuator_trntype == int(mujoco.mjtTrn.mjTRN_TENDON)
    return bool((mj.actuator_trnid[on_tendons, 0] == t).any())


def _pulls(mj: Any, t: int) -> bool:
    """Whether a tendon has a force or a bound of its own."""
    own: list[Any] = [
        mj.tendon_stiffness[t],
        mj.tendon_stiffnesspoly[t],
        mj.tendon_damping[t],
        mj.tendon_dampingpoly[t],
        mj.tendon_frictionloss[t],
        mj.tendon_armature[t],
        mj.tendon_limited[t],
    ]
    return any(bool(np.any(value)) for value in own)


def _path(source: Source, notes: Notes, t: int) -> list[Any] | None:
    """Points, shapes and pulleys of a tendon through space; None for one that is dropped."""
    import mujoco

    mj, out = source.mj, list[Any]()

    def site(s: int) -> tuple[str, FloatArray]:
        return source.bodies[mj.site_bodyid[s]], mj.site_pos[s]

    for w in range(int(mj.tendon_adr[t]), int(mj.tendon_adr[t] + mj.tendon_num[t])):
        kind, at, number = mujoco.mjtWrap(int(mj.wrap_type[w])), int(mj.wrap_objid[w]), float(mj.wrap_prm[w])
        if kind == mujoco.mjtWrap.mjWRAP_PULLEY:
            out.append(Pulley(number))
        elif kind == mujoco.mjtWrap.mjWRAP_SITE:
            out.append(site(at))
        else:
            frame = pose(xyz=mj.geom_pos[at], quat=mj.geom_quat[at])
            shape = "sphere" if kind == mujoco.mjtWrap.mjWRAP_SPHERE else "cylinder"
            side = site(round(number)) if number >= 0 else None
            body = source.bodies[mj.geom_bodyid[at]]
            if side is not None and side[0] == body and np.linalg.norm(side[1] - frame[:3, 3]) < mj.geom_size[at, 0]:
                element = source.named("tendon", t)[1]
                what = f"passes through a shape of {body!r}, as its side site lies inside, which is not supported."
                notes.unless_allowed("tendon", element.error(f"the tendon {source.named('tendon', t)[0]!r} {what}"))
                return None
            out.append(Wrap(body, float(mj.geom_size[at, 0]), frame, shape, side))
    return out


def _offset(source: Source, t: int) -> float:
    """MuJoCo's length of a fixed tendon where all coordinates here are zero."""
    mj = source.mj
    first, count = int(mj.tendon_adr[t]), int(mj.tendon_num[t])
    return float(sum(mj.wrap_prm[w] * mj.qpos0[mj.jnt_qposadr[mj.wrap_objid[w]]] for w in range(first, first + count)))


def _law(source: Source, settings: Settings, notes: Notes, t: int, offset: float) -> dict[str, Any]:
    """Spring, damper and limits of a tendon; refuses or notes what else it has."""
    mj, (name, element) = source.mj, source.named("tendon", t)
    curved = mj.tendon_stiffnesspoly[t], mj.tendon_dampingpoly[t], mj.tendon_springyield[t]
    if any(np.any(value) for value in curved):
        what = "polynomial or yielding springs and dampers are not supported."
        notes.unless_allowed("nonlinear", element.error(f"the tendon {name!r}: {what}"))
    if mj.tendon_actfrclimited[t] and _is_driven(mj, t):
        what = f"the tendon {name!r} has an actuatorfrcrange, which is not supported; give its actuators a forcerange."
        notes.unless_allowed("effort", element.error(what))
    if mj.tendon_armature[t]:
        notes.unless_allowed("armature", element.error(f"the tendon {name!r} has armature, which is not supported."))
    if mj.tendon_frictionloss[t] and "frictionloss" not in settings.off:
        what = f"friction {float(mj.tendon_frictionloss[t]):g} of the tendon {name!r}"
        notes.left_out("friction", f"{element.where}: {what}.")
    data: dict[str, Any] = {}
    if "spring" not in settings.off:
        data["stiffness"] = float(mj.tendon_stiffness[t])
        data["rest"] = tuple(float(end) - offset for end in mj.tendon_lengthspring[t])
    if "damper" not in settings.off:
        data["damping"] = float(mj.tendon_damping[t])
    if mj.tendon_limited[t] and "limit" not in settings.off:
        data["limits"] = _limits(mj, t, offset, element)
    return data


def _limits(mj: Any, t: int, offset: float, element: Element) -> tuple[float, float]:
    """Limits of the length; a margin makes them hold that much earlier."""
    margin = float(mj.tendon_margin[t])
    low, high = float(mj.tendon_range[t, 0]) + margin, float(mj.tendon_range[t, 1]) - margin
    if low > high:
        raise element.error(f"margin {margin:g} leaves no room between the limits; make it smaller.")
    return low - offset, high - offset
