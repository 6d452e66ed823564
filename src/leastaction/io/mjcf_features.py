"""What acts on the bodies of a compiled MuJoCo model: equality constraints, actuators, contact, tendons."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.mjcf_joints import Settings
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_shapes import WORLD_GEOMS, collides, geom_label, geom_pose
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose


def add_equalities(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> None:
    """Connect and weld constraints as joints that close loops; the others are refused unless allowed."""
    import mujoco

    mj = source.mj
    if "equality" in settings.off:
        return
    for e in range(mj.neq):
        name, element = source.named("equality", e)
        kind = mujoco.mjtEq(int(mj.eq_type[e]))
        if not mj.eq_active0[e]:
            notes.add(f"{element.where}: the equality constraint {name!r} is not active; not kept.")
        elif kind in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
            _add_loop(m, source, notes, e, name, element, weld=kind == mujoco.mjtEq.mjEQ_WELD)
        else:
            word = kind.name.removeprefix("mjEQ_").lower()
            notes.unless_allowed("equality", element.error(f"the {word} constraint {name!r} is not supported."))


def _add_loop(m: Mechanism, source: Source, notes: Notes, e: int, name: str, element: Element, *, weld: bool) -> None:
    """One connect or weld: a spherical or fixed joint between two bodies, exact where MuJoCo's is a stiff spring."""
    (parent, parent_frame), (child, child_frame) = _loop_ends(source, e, weld=weld)
    # the world cannot be a child
    if child == WORLD:
        parent, parent_frame, child, child_frame = child, child_frame, parent, parent_frame
    if parent == child:
        raise element.error(f"the equality constraint {name!r} connects {parent!r} to itself.")
    label = unused(name, {*m.joints})
    if label != name:
        notes.add(f"the equality constraint {name!r} is the joint {label!r}, since there is a joint of its name.")
    with located(element):
        m.add_joint(
            label,
            "fixed" if weld else "spherical",
            parent=parent,
            child=child,
            parent_frame=parent_frame,
            child_frame=child_frame,
        )
    notes.add("connect and weld constraints are loop joints and hold exactly; solref and solimp are not read.")


def _loop_ends(source: Source, e: int, *, weld: bool) -> tuple[tuple[str, FloatArray], tuple[str, FloatArray]]:
    """The two (body, frame) that an equality constraint holds together."""
    import mujoco

    mj = source.mj
    first, second = int(mj.eq_obj1id[e]), int(mj.eq_obj2id[e])
    # two sites: their frames coincide
    if int(mj.eq_objtype[e]) == int(mujoco.mjtObj.mjOBJ_SITE):
        ends = [
            (source.bodies[mj.site_bodyid[s]], pose(xyz=mj.site_pos[s], quat=mj.site_quat[s])) for s in (first, second)
        ]
        return ends[0], ends[1]
    data = mj.eq_data[e]
    bodies = source.bodies[first], source.bodies[second]
    # weld: anchor in the second body, then that point and the second body's axes seen from the first
    if weld:
        return (bodies[0], pose(xyz=data[3:6], quat=data[6:10])), (bodies[1], pose(xyz=data[0:3]))
    # connect: the anchor in the first and in the second body
    return (bodies[0], pose(xyz=data[0:3])), (bodies[1], pose(xyz=data[3:6]))


def add_actuators(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> None:
    """Actuators on one coordinate of a joint as data; muscles and the like are refused unless allowed."""
    if "actuation" in settings.off:
        return
    for a in range(source.mj.nactuator):
        name, element = source.named("actuator", a)
        if _refused(source, notes, a, name, element):
            continue
        target = _joint_coordinate(source, a)
        if target is None:
            notes.add(f"{element.where}: the actuator {name!r} does not act on one coordinate of a joint; not kept.")
            continue
        joint, coordinate, gear = target
        gains = _servo(source, a) or {}
        if gains and source.mj.actuator_ctrllimited[a]:
            notes.add(f"{element.where}: the range of the targets of the servo {name!r} is not kept.")
        with located(element):
            m.add_actuator(
                unused(name, m.actuators), joint, gear=gear, coordinate=coordinate, effort=_effort(source, a), **gains
            )


def _refused(source: Source, notes: Notes, a: int, name: str, element: Element) -> bool:
    """Whether an actuator is left out since it acts without being driven, in a way that is not supported."""
    import mujoco

    mj = source.mj
    gain, bias, dyn = int(mj.actuator_gaintype[a]), int(mj.actuator_biastype[a]), int(mj.actuator_dyntype[a])
    if int(mujoco.mjtGain.mjGAIN_MUSCLE) == gain or int(mujoco.mjtDyn.mjDYN_MUSCLE) == dyn:
        notes.unless_allowed("muscle", element.error(f"the muscle {name!r} is not supported."))
        return True
    # inertia and damping that the actuator puts on its joint, and laws with a state of their own
    passive = mj.actuator_armature[a] or mj.actuator_damping[a] or np.any(mj.actuator_dampingpoly[a])
    simple = gain in (int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)) and bias in (
        int(mujoco.mjtBias.mjBIAS_NONE),
        int(mujoco.mjtBias.mjBIAS_AFFINE),
    )
    if passive or not simple:
        what = "armature or damping of its own" if passive else "a law that is not supported"
        notes.unless_allowed("actuators", element.error(f"the actuator {name!r} has {what}."))
        return True
    # a servo pulls on its joint also at zero input
    servo = bias == int(mujoco.mjtBias.mjBIAS_AFFINE) and np.any(mj.actuator_biasprm[a])
    if servo and _joint_coordinate(source, a) is None:
        notes.unless_allowed("actuators", element.error(f"the servo {name!r} does not act on one joint coordinate."))
        return True
    if (servo and _servo(source, a) is None) or gain == int(mujoco.mjtGain.mjGAIN_AFFINE):
        notes.add(
            f"{element.where}: the actuator {name!r} is a servo with a law of its own; only its joint, gear and effort "
            "are kept, its gains are to be given as a control."
        )
    elif dyn != int(mujoco.mjtDyn.mjDYN_NONE):
        notes.add(f"{element.where}: the dynamics of the actuator {name!r} are not kept; its force follows at once.")
    return False


def _joint_coordinate(source: Source, a: int) -> tuple[str, int, float] | None:
    """Joint, velocity coordinate and gear that an actuator acts on; None for any other transmission."""
    import mujoco

    mj = source.mj
    on_joint = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    if int(mj.actuator_trntype[a]) not in on_joint:
        return None
    j = int(mj.actuator_trnid[a, 0])
    gear = np.array(mj.actuator_gear[a], dtype=float)
    kind = int(mj.jnt_type[j])
    # one coordinate
    if kind in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)):
        return source.joints[j], 0, float(gear[0])
    # a ball turned about one axis of its child frame
    if kind == int(mujoco.mjtJoint.mjJNT_BALL) and int(mj.actuator_trntype[a]) == on_joint[0]:
        used = np.flatnonzero(gear[:3])
        return (source.joints[j], int(used[0]), float(gear[used[0]])) if len(used) == 1 else None
    return None


def _servo(source: Source, a: int) -> dict[str, float] | None:
    """Gains and target of a position or velocity servo on a hinge or slide; None for any other actuator.

    MuJoCo's force is gain * input + b0 + b1 * length + b2 * rate, its length the gear times qpos, which counts ref.
    """
    import mujoco

    mj, j = source.mj, int(source.mj.actuator_trnid[a, 0])
    affine = int(mj.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
    fixed = int(mj.actuator_gaintype[a]) == int(mujoco.mjtGain.mjGAIN_FIXED)
    if not (affine and fixed) or _joint_coordinate(source, a) is None:
        return None
    if int(mj.jnt_type[j]) not in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)):
        return None
    gain, (b0, b1, b2) = float(mj.actuator_gainprm[a, 0]), (float(b) for b in mj.actuator_biasprm[a, :3])
    kp, kd, gear = -b1, -b2, float(mj.actuator_gear[a, 0])
    # the input is the target itself: of a place, or without a spring of a rate
    if kp < 0 or kd < 0 or gear == 0 or gain != (kp or kd) or gain == 0 or (kp == 0 and b0 != 0):
        return None
    if kp == 0:
        return {"kd": kd}
    return {"kp": kp, "kd": kd, "target": b0 / kp - gear * float(mj.qpos0[mj.jnt_qposadr[j]])}


def _effort(source: Source, a: int) -> float | None:
    """Largest force of an actuator before its gear, where the model bounds it."""
    import mujoco

    mj = source.mj
    bounds = []
    if mj.actuator_forcelimited[a]:
        bounds.append(float(np.abs(mj.actuator_forcerange[a]).max()))
    # a plain motor: force = gain times input
    plain = int(mj.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_NONE)
    plain = plain and int(mj.actuator_gaintype[a]) == int(mujoco.mjtGain.mjGAIN_FIXED)
    if plain and mj.actuator_ctrllimited[a]:
        bounds.append(float(np.abs(mj.actuator_ctrlrange[a]).max() * abs(mj.actuator_gainprm[a, 0])))
    return min((bound for bound in bounds if bound > 0), default=None)


def add_contacts(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> None:
    """The first plane of the world as ground, the excluded pairs, and the pairs that MuJoCo lets touch.

    They are data of the mechanism: a method without contact refuses it by name until ``m.without("contacts")``.
    """
    import mujoco

    mj = source.mj
    for signature in mj.exclude_signature:
        a, b = source.bodies[int(signature) >> 16], source.bodies[int(signature) & 0xFFFF]
        m.exclude_contact(a, b)
    if "contact" in settings.off:
        return
    # ground
    for g in np.flatnonzero((mj.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)) & (mj.geom_bodyid == 0)):
        if not collides(source, int(g)):
            notes.add(f"{geom_label(source, int(g))}: a plane that touches nothing; not kept.")
            continue
        if m.ground is not None:
            what = f"{notes.file}: {geom_label(source, int(g))}: a second plane cannot be kept beside the ground."
            notes.unless_allowed("contacts", ModelError(what))
            continue
        frame = geom_pose(source, int(g))
        normal = frame[:3, 2]
        m.add_ground(friction=float(mj.geom_friction[g, 0]), normal=normal, height=float(normal @ frame[:3, 3]))
        notes.add(
            f"{geom_label(source, int(g))} is the ground, with the plane's friction {mj.geom_friction[g, 0]:g}; for "
            'methods without contact take m.without("contacts").'
        )
    # pairs of bodies, each once, with the larger friction of its geoms
    for pair, friction in _touching(source).items():
        names = [_body_of(m, source, body) for body in pair]
        if frozenset(names) not in m.contact_excludes:
            m.add_contact(names[0], names[1], friction=friction)
    if m.contacts:
        count = f"{len(m.contacts)} contact pair" + ("s" if len(m.contacts) > 1 else "")
        notes.add(f'{count} as MuJoCo lets bodies touch; for methods without contact take m.without("contacts").')


def _touching(source: Source) -> dict[tuple[int, int], float]:
    """Pairs of bodies with geoms that MuJoCo lets touch, and their friction; planes of the world are the ground."""
    import mujoco

    mj = source.mj
    solid = [
        g
        for g in range(mj.ngeom)
        if collides(source, g) and not (mj.geom_bodyid[g] == 0 and mj.geom_type[g] == int(mujoco.mjtGeom.mjGEOM_PLANE))
    ]
    pairs = [(g, h) for k, g in enumerate(solid) for h in solid[k + 1 :] if _may_touch(mj, g, h)]
    pairs += [(int(mj.pair_geom1[p]), int(mj.pair_geom2[p])) for p in range(mj.npair)]
    out: dict[tuple[int, int], float] = {}
    for g, h in pairs:
        first, second = sorted((int(mj.geom_bodyid[g]), int(mj.geom_bodyid[h])))
        friction = float(max(mj.geom_friction[g, 0], mj.geom_friction[h, 0]))
        out[first, second] = max(friction, out.get((first, second), 0.0))
    return out


def _may_touch(mj: Any, g: int, h: int) -> bool:
    """MuJoCo's rules: matching bits, not fixed to each other, not parent and child (the world counts as no parent)."""
    bits = (mj.geom_contype[g] & mj.geom_conaffinity[h]) or (mj.geom_contype[h] & mj.geom_conaffinity[g])
    a, b = (int(mj.body_weldid[mj.geom_bodyid[k]]) for k in (g, h))
    above_a, above_b = (int(mj.body_weldid[mj.body_parentid[k]]) for k in (a, b))
    related = a != 0 and b != 0 and (a == above_b or b == above_a)
    return bool(bits) and a != b and not related


def _body_of(m: Mechanism, source: Source, body: int) -> str:
    """Name of a body; geoms of the world sit on a fixed body of their own."""
    return WORLD_GEOMS if body == 0 and WORLD_GEOMS in m.bodies else source.bodies[body]


def check_tendons(source: Source, notes: Notes) -> None:
    """Refuse tendons that pull by themselves; note the others."""
    mj = source.mj
    for t in range(mj.ntendon):
        name, element = source.named("tendon", t)
        pulls: list[Any] = [
            mj.tendon_stiffness[t],
            mj.tendon_stiffnesspoly[t],
            mj.tendon_damping[t],
            mj.tendon_dampingpoly[t],
            mj.tendon_frictionloss[t],
            mj.tendon_armature[t],
            mj.tendon_limited[t],
        ]
        if any(np.any(value) for value in pulls):
            notes.unless_allowed("tendon", element.error(f"the tendon {name!r} is not supported."))
        else:
            notes.add(f"{element.where}: the tendon {name!r} has no force of its own; not kept.")


def note_the_rest(source: Source, notes: Notes) -> None:
    """One line for everything that is not read and does not change the motion."""
    mj = source.mj
    counts = {
        "keyframes": mj.nkey,
        "sensors": mj.nsensor,
        "cameras": mj.ncam,
        "lights": mj.nlight,
        "skins": mj.nskin,
        "textures": mj.ntex,
        "custom data": mj.nnumeric + mj.ntext + mj.ntuple,
    }
    listed = [f"{count} {what}" for what, count in counts.items() if count]
    if listed:
        notes.add(f"not read, they do not change the motion: {', '.join(listed)}.")
