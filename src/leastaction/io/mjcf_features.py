"""Equality constraints of a compiled MuJoCo model, and what is left over."""

from __future__ import annotations

import numpy as np

from leastaction.io.mjcf_joints import Settings
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose


def add_equalities(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> None:
    """Connect and weld constraints as joints that close loops, those of joints and fixed tendons as couplings."""
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
        elif kind in (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON):
            _add_coupling(m, source, notes, e, name, element, tendons=kind == mujoco.mjtEq.mjEQ_TENDON)
        else:
            word = kind.name.removeprefix("mjEQ_").lower()
            notes.unless_allowed("equality", element.error(f"the {word} constraint {name!r} is not supported."))


def _add_loop(m: Mechanism, source: Source, notes: Notes, e: int, name: str, element: Element, *, weld: bool) -> None:
    """One connect or weld: a spherical or fixed joint between two bodies, exact where MuJoCo's is a stiff spring."""
    # a weld that does not count rotations holds a point only
    turns = weld and bool(source.mj.eq_data[e, 10])
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
            "fixed" if turns else "spherical",
            parent=parent,
            child=child,
            parent_frame=parent_frame,
            child_frame=child_frame,
        )
    if weld and not turns:
        notes.add(f"{element.where}: the weld {name!r} has torquescale 0 and leaves rotations free, as a connect does.")
    notes.add("connect and weld constraints are loop joints and hold exactly; solref and solimp are not read.")


def _add_coupling(
    m: Mechanism, source: Source, notes: Notes, e: int, name: str, element: Element, *, tendons: bool
) -> None:
    """One joint or tendon constraint: q1 = polynomial of q2, both from where the file puts them, or q1 constant."""
    mj, what = source.mj, "tendon" if tendons else "joint"
    ends = int(mj.eq_obj1id[e]), int(mj.eq_obj2id[e])
    total, *powers = (float(c) for c in mj.eq_data[e, :5])
    if ends[0] == ends[1]:
        raise element.error(f"the {what} constraint {name!r} couples its first {what} to itself.")
    sums = [sum_of(source, end, tendons) if end >= 0 else {} for end in ends]
    # a power of a sum of several coordinates is none of single ones
    if any(each is None for each in sums) or (len(sums[1] or {}) > 1 and any(powers[1:])):
        why = "not supported: its tendons run through space, or it has powers of a sum of joints."
        notes.unless_allowed("equality", element.error(f"the tendon constraint {name!r} is {why}"))
        return
    terms = {joint: np.array([c, 0.0, 0.0, 0.0]) for joint, c in (sums[0] or {}).items()}
    for joint, c in (sums[1] or {}).items():
        terms[joint] = terms.get(joint, 0.0) - np.array(powers) * c ** np.arange(1, 5)
    label = unused(name, {*m.joints, *m.couplings})
    if label != name:
        notes.add(f"the equality constraint {name!r} is the coupling {label!r}, since there is a joint of its name.")
    with located(element):
        m.add_coupling(label, {joint: row for joint, row in terms.items() if np.any(row)}, total)
    notes.add("joint and tendon constraints are couplings and hold exactly; solref and solimp are not read.")


def sum_of(source: Source, index: int, tendon: bool) -> dict[str, float] | None:
    """Coefficients of joints in the length of a fixed tendon, or 1 of a joint; None for a tendon through space."""
    import mujoco

    mj = source.mj
    if not tendon:
        return {source.joints[index]: 1.0}
    out: dict[str, float] = {}
    for w in range(int(mj.tendon_adr[index]), int(mj.tendon_adr[index] + mj.tendon_num[index])):
        if int(mj.wrap_type[w]) != int(mujoco.mjtWrap.mjWRAP_JOINT):
            return None
        joint = source.joints[int(mj.wrap_objid[w])]
        out[joint] = out.get(joint, 0.0) + float(mj.wrap_prm[w])
    return out


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


def note_the_rest(source: Source, notes: Notes) -> None:
    """One line for everything that is not read and does not change the motion."""
    mj = source.mj
    counts = {
        "cameras": mj.ncam,
        "lights": mj.nlight,
        "skins": mj.nskin,
        "textures": mj.ntex,
        "custom data": mj.nnumeric + mj.ntext + mj.ntuple,
    }
    listed = [f"{count} {what}" for what, count in counts.items() if count]
    if listed:
        notes.add(f"not read, they do not change the motion: {', '.join(listed)}.")
