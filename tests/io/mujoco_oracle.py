"""MuJoCo's own answers about a compiled model, in the coordinates and names of a mechanism."""

from __future__ import annotations

import copy

import numpy as np

import leastaction as la
from leastaction.io.mjcf_names import body_names, joint_names

SOLID = ("SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX", "MESH")


def touches(mujoco, mj):
    """Friction of every two geoms that MuJoCo's collision detection pairs, by their numbers."""
    # so wide a margin that all that may touch does; spheres, as the distance of far boxes is not always found
    wide = copy.copy(mj)
    solid = [int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")) for kind in SOLID]
    wide.geom_type[np.isin(wide.geom_type, solid)] = int(mujoco.mjtGeom.mjGEOM_SPHERE)
    wide.geom_margin[:], wide.pair_margin[:], wide.opt.o_margin = 1e3, 1e3, 1e3
    wide.body_margin[:] = 1e3
    data = mujoco.MjData(wide)
    mujoco.mj_kinematics(wide, data)
    mujoco.mj_comPos(wide, data)
    mujoco.mj_collision(wide, data)
    out = {}
    for contact in data.contact:
        pair = tuple(sorted(int(g) for g in contact.geom))
        out[pair] = float(contact.friction[0]) if contact.dim > 1 else 0.0
    return out


def shape_of(mujoco, mj):
    """Body and place of the shape of every geom; the planes are ("world", None), what is no shape is missing."""
    names, counts, out = body_names(mj), {}, {}
    for g in range(mj.ngeom):
        kind = mujoco.mjtGeom(int(mj.geom_type[g])).name.removeprefix("mjGEOM_")
        b = int(mj.geom_bodyid[g])
        if kind == "PLANE":
            out[g] = ("world", None)
        elif kind in SOLID:
            out[g] = ("world/geoms" if b == 0 else names[b], counts.get(b, 0))
            counts[b] = counts.get(b, 0) + 1
    return out


def our_touches(m):
    """Friction and margin of every two shapes of a mechanism that may touch, by body and place."""
    out = {}
    solid = {name: [i for i, s in enumerate(body.shapes) if s.collision] for name, body in m.bodies.items()}
    by_hand = set()
    for pair in m.contacts:
        ends = []
        for name, chosen in zip((pair.a, pair.b), pair.shapes, strict=True):
            places = [None] if name == "world" else solid[name] if chosen is None else [chosen]
            ends.append([(name, i) for i in places])
        by_hand |= {pair.a, pair.b} if "world" in (pair.a, pair.b) else set()
        for one in ends[0]:
            for two in ends[1]:
                out[frozenset((one, two))] = (pair.friction, pair.margin)
    # every other shape on the ground
    for name in m.bodies if m.ground is not None else ():
        if name in by_hand or frozenset((name, "world")) in m.contact_excludes or is_fixed(m, name):
            continue
        for i in solid[name]:
            out[frozenset(((name, i), ("world", None)))] = (m.ground.friction, 0.0)
    return out


def is_fixed(m, name):
    """Whether a body is fixed to the world."""
    above = {joint.child: joint for joint in m.joints.values()}
    while name != "world":
        if above[name].kind != "fixed":
            return False
        name = above[name].parent
    return True


def check_dynamics(mujoco, mj, model, seed):
    """Poses, mass matrix, bias and gravity forces at a random state; the largest relative errors."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(mj)
    dq = rng.normal(size=mj.nv)
    qpos = np.array(mj.qpos0)
    mujoco.mj_integratePos(mj, qpos, dq, 0.3)
    # contact, friction and limits are not asked here
    mj = copy.copy(mj)
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data.qpos[:], data.qvel[:] = qpos, rng.normal(size=mj.nv)
    mujoco.mj_forward(mj, data)
    q, v = la.from_mujoco(model, qpos, data.qvel, mj)
    names = body_names(mj)
    poses = la.poses(model, q)
    size = 1.0 + np.abs(data.xpos).max()
    errors = {}
    errors["pose"] = max(np.abs(poses[names[b]][:3, 3] - data.xpos[b]).max() for b in range(1, mj.nbody)) / size
    errors["turn"] = max(np.abs(poses[names[b]][:3, :3] - data.xmat[b].reshape(3, 3)).max() for b in range(1, mj.nbody))
    # velocities are linear in MuJoCo's
    T = np.column_stack([la.from_mujoco(model, qpos, e, mj)[1] for e in np.eye(mj.nv)])
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, M)
    ours = la.mass_matrix(model, q)
    errors["mass matrix"] = np.abs(T.T @ ours @ T - M).max() / np.abs(M).max()
    # the linear velocity of a free joint turns with its body here
    rate = np.zeros(model.nv)
    for view in model.joints.values():
        if view.kind == "free":
            w, u = v[view.v][:3], v[view.v][3:]
            rate[view.v] = np.concatenate([np.zeros(3), -np.cross(w, u)])
    bias = T.T @ (la.bias_forces(model, q, v) + ours @ rate)
    errors["bias"] = np.abs(bias - data.qfrc_bias).max() / max(np.abs(data.qfrc_bias).max(), np.abs(M).max())
    data.qvel[:] = 0
    mujoco.mj_forward(mj, data)
    gravity = T.T @ la.gravity_forces(model, q)
    scale = max(np.abs(data.qfrc_bias).max(), np.abs(M).max())
    errors["gravity"] = np.abs(gravity - data.qfrc_bias).max() / scale
    return errors


def check_actuators(mujoco, mj, m, model, seed):
    """Forces of the actuators that were kept, one by one, against MuJoCo's at the same input; the largest error."""
    rng = np.random.default_rng(seed)
    mj = copy.copy(mj)
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    worst = 0.0
    # forces turn with what carries them
    T = np.column_stack([la.from_mujoco(model, data.qpos, e, mj)[1] for e in np.eye(mj.nv)])
    for a in range(mj.nactuator):
        name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_ACTUATOR, a) or f"actuator_{a}"
        if name not in m.actuators:
            continue
        on_site = mj.actuator_trntype[a] == int(mujoco.mjtTrn.mjTRN_SITE)
        on_tendon = mj.actuator_trntype[a] == int(mujoco.mjtTrn.mjTRN_TENDON)
        at = int(mj.actuator_trnid[a, 0])
        j = int(mj.body_jntadr[mj.body_rootid[mj.site_bodyid[at]]]) if on_site else at
        zero = mj.tendon_length0[at] if on_tendon else mj.qpos0[mj.jnt_qposadr[j]]
        gain, b0, b1, b2 = mj.actuator_gainprm[a, 0], *mj.actuator_biasprm[a, :3]
        shift = b0 / -b1 - mj.actuator_gear[mj.actuator_outadr[a], 0] * zero if b1 else 0.0
        slope = gain / (-b1 or -b2 or gain or 1.0)
        for u in (3.0 * rng.normal(), 100.0):
            data.ctrl[:], data.act[:] = 0.0, 0.0
            # what the input adds, MuJoCo's own bounds of the force left aside for servos
            mj.actuator_forcelimited[a] &= not m.actuators[name].is_servo
            mj.jnt_actfrclimited[:] = False
            mujoco.mj_forward(mj, data)
            before = np.array(data.qfrc_actuator)
            place = mj.actuator_ctrladr[a]
            data.ctrl[place] = u
            if mj.actuator_dyntype[a]:
                low, high = mj.actuator_ctrlrange[place] if mj.actuator_ctrllimited[place] else (-np.inf, np.inf)
                u = data.act[mj.actuator_actadr[a]] = np.clip(u, low, high)
            mujoco.mj_forward(mj, data)
            theirs = data.qfrc_actuator - before
            ours = T.T @ (model.actuate({name: slope * u + shift}) - model.actuate({name: shift}))
            worst = max(worst, np.abs(ours - theirs).max() / (1.0 + np.abs(theirs).max()))
        if on_tendon:
            assert mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_TENDON, at) == m.actuators[name].tendon
        else:
            assert joint_names(mj)[j] == m.actuators[name].joint
    return worst
