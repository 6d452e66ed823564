"""What can be seen of a state or a run: loop gaps, limits crossed, reaction forces; and projection onto the loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.model.actuation import servo_bound, servo_forces, servo_rates
from leastaction.model.checks import FloatArray, quoted
from leastaction.model.configuration import retract
from leastaction.model.joints import layout
from leastaction.model.mechanism import LEFT_OUT
from leastaction.model.model import Model, State, check_determined, check_model
from leastaction.model.tables import flat_pose
from leastaction.model.tendon import Tendon
from leastaction.model.tendon_force import course_of
from leastaction.spatial import quaternion
from leastaction.tree.layout import PARENT


def loop_gaps(model: Model, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gaps of the loop joints and their rates, each (rows, m), in metres and radians, for rows of q and v."""
    from leastaction.dynamics import entries

    gaps, rates = np.zeros((len(q), model.constraint_size)), np.zeros((len(q), model.constraint_size))
    if model.constraint_size == 0:
        return gaps, rates
    entries.loop_gaps(model.system, q, v, gaps, rates, np.zeros((0, 0, model.nv)))
    return gaps, rates


def constraint_error(model: Model, q: FloatArray) -> FloatArray:
    """Largest gap (rows,) of loops and equality constraints for rows of q; zero where there are none."""
    out = np.zeros(len(q))
    if model.constraint_size:
        out = np.abs(loop_gaps(model, q, np.zeros((len(q), model.nv)))[0]).max(axis=1)
    for constraint in model.mechanism.constraints:
        if constraint.kind == "equality":
            at = quantities.frame_poses(model, q, list(constraint.bodies))
            out = np.maximum(out, [np.abs(constraint.value(at[r])).max() for r in range(len(q))])
    return out


def left_out(model: Model) -> list[str]:
    """Notes on what the file of a mechanism says of contact and its model does not have."""
    return [note for note in model.mechanism.notes if note.startswith(LEFT_OUT)] if "contact" in model.features else []


def untouched(model: Model) -> list[str]:
    """Words for bodies that are to touch something and whose collision shapes could not be read."""
    m = model.mechanism
    touching = {name for pair in m.contacts for name in (pair.a, pair.b)}
    unread = [body.name for body in m.bodies.values() if body.unread_shapes]
    lacking = [name for name in unread if m.ground is not None or name in touching]
    if not lacking:
        return []
    more = f" and {len(lacking) - 10} more" if len(lacking) > 10 else ""
    return [
        f"collision shapes of {quoted(lacking[:10])}{more} could not be read, so nothing touches the bodies there; the "
        "notes of the mechanism say why"
    ]


def opened(model: Model, q: FloatArray) -> tuple[float | None, float]:
    """Largest gap of loops and equality constraints over rows of q, None without any; and the size of the mechanism.

    The size is the largest distance of a body's frame from the first one at the first row, metres.
    """
    if not model.constraint_size and all(c.kind != "equality" for c in model.mechanism.constraints):
        return None, 0.0
    at = quantities.frame_poses(model, q[:1], list(model.body_names))[0, :, :3, 3]
    return float(constraint_error(model, q).max()), float(np.linalg.norm(at - at[0], axis=1).max(initial=0.0))


def _constraints(model: Model, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Position gaps (m,) with rows (m, nv), and velocity gaps (k,) with rows (k, nv), at one state."""
    from leastaction.dynamics import entries

    m = model.constraint_size
    gaps, rates, J = np.zeros((1, m)), np.zeros((1, m)), np.zeros((1, m, model.nv))
    if m:
        entries.loop_gaps(model.system, q[None], v[None], gaps, rates, J)
    g, G, h, H = [gaps[0]], [J[0]], [J[0] @ v], [J[0]]
    # constraints of the user: rows on body twists become rows on v
    for constraint in model.mechanism.constraints:
        names = list(constraint.bodies)
        if constraint.kind == "inequality":
            continue
        at = quantities.frame_poses(model, q[None], names)[0]
        bodies = np.vstack([body_jacobian(model, q, name, at[k]) for k, name in enumerate(names)])
        twists = (bodies @ v).reshape(len(names), 6)
        if constraint.kind == "equality":
            rows = constraint.matrix(at) @ bodies
            g.append(constraint.value(at))
            G.append(rows)
            h.append(rows @ v)
            H.append(rows)
        else:
            h.append(constraint.value(at, twists))
            H.append(constraint.matrix(at, twists) @ bodies)
    return np.concatenate(g), np.vstack(G), np.concatenate(h), np.vstack(H)


def constraint_rows(model: Model, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Position gaps (m,) of loops and equality constraints at q, and their derivative (m, nv) by a displacement."""
    if not model.constraint_size and not model.mechanism.constraints:
        return np.zeros(0), np.zeros((0, model.nv))
    gaps, rows, _, _ = _constraints(model, q, np.zeros(model.nv))
    return gaps, rows


def body_jacobian(model: Model, q: FloatArray, name: str, pose: FloatArray) -> FloatArray:
    """Jacobian (6, nv) of a frame's twist in its own axes."""
    if name == "world":
        return np.zeros((6, model.nv))
    J = quantities.jacobian(model, q, name)
    R = pose[:3, :3]
    return np.vstack([R.T @ J[:3], R.T @ J[3:]])


def project(model: Model, state: State, *, tolerance: float = 1e-12, iterations: int = 50) -> State:
    """The nearest state, in the mass metric, that satisfies loops and constraints: position first, then velocity.

    The displacement xi from q minimises xi^T M xi / 2 in local coordinates around q, with M at q. Redundant constraints
    need no special care: multipliers are the smallest ones that do. From far away the nearest position is approached
    slowly; after ``iterations`` steps towards it, the gap that is left is closed by the shortest way from there, so
    the position is closed to ``tolerance`` but the nearest one only to about the square root of that gap.

    Args:
        model: the model.
        state: where to start.
        tolerance: largest gap that is left: radians, and along translations a part of the arm of the bodies, their
            radius of gyration; never less than the rounding of positions.
        iterations: most steps towards the nearest position.

    Raises:
        ConvergenceError: no such position was found.
        ModelError: this is no model, or no state of it.
    """
    check_model(model)
    if not isinstance(state, State):
        raise ModelError(f"project: expected a state, got {type(state).__name__}; make one by model.state(q, v).")
    state = model.state(state.q, state.v, state.t)
    from leastaction.methods.closing import row_count

    if row_count(model) == 0:
        return state
    check_determined(model, "project, which measures by mass")
    sizes = _Sizes(model, state)
    q, gap = _nearest_closed(model, state, sizes, tolerance, iterations)
    q, gap = _close(model, q, sizes, gap, tolerance)
    if not gap <= tolerance:
        left = float(np.abs(_constraints(model, q, state.v)[0]).max())
        raise ConvergenceError(
            f"project: no position that closes the loops was found; the largest gap is still {left:.3g}. "
            "Start from a position closer to a closed one.",
            state=model.state(q, state.v, state.t),
        )
    _, _, h, H = _constraints(model, q, state.v)
    v = state.v - _least(quantities.mass_matrix(model, q), H, h, _Sizes(model, model.state(q, state.v, state.t)).rates)
    return model.state(q, v, state.t)


CLOSABLE = 5e-3
"""Loops that a key frame leaves open by less than this part of the size of the mechanism are closed at the start."""


def closed_key(model: Model, state: State) -> tuple[State, str]:
    """A state of a key frame with loops closed that were open by little, and words about it; any other as it is.

    Files write key frames with few digits, and often from a simulator whose loops are springs.
    """
    gap, size = opened(model, state.q[None]) if state.key else (None, 0.0)
    if not gap or gap > CLOSABLE * size:
        return state, ""
    out = project(model, state)
    moved = float(np.abs(out.q - state.q).max())
    if moved == 0.0 and np.array_equal(out.v, state.v):
        return state, ""
    return out, (
        f"the loops of the key frame '{state.key}' were open by {gap:.2g} m or rad and are closed by projection; a "
        f"coordinate moved by {moved:.2g} at most"
    )


class _Sizes:
    """What rows of loops and constraints are compared with at a state.

    gaps, rounding (m,): what makes angles of position gaps, and their rounding; places (m,), rates (k,): roots of the
    sizes of their rows, and of those of velocities.
    """

    def __init__(self, model: Model, state: State) -> None:
        from leastaction.dynamics import entries
        from leastaction.methods.closing import row_sizes

        x, u = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
        rows = row_sizes(model, state.t, x, u)
        users = [c for c in model.mechanism.constraints if c.kind != "inequality"]
        kinds = [np.full(c.size, c.kind == "equality") for c in users]
        placed = np.concatenate([np.ones(model.constraint_size, dtype=bool), *kinds])
        self.gaps, self.rounding = rows[placed, 0], rows[placed, 1]
        self.rates = np.sqrt(rows[:, 2])
        self.places = self.rates[placed]

    def widest(self, g: FloatArray) -> float:
        """The largest of position gaps (m,), as an angle."""
        return float(np.maximum((np.abs(g) - self.rounding) / self.gaps, 0.0).max(initial=0.0))


def _nearest_closed(
    model: Model, state: State, sizes: _Sizes, tolerance: float, iterations: int
) -> tuple[FloatArray, float]:
    """Position towards the nearest closed one, the one with the smallest gap on the way, and that gap."""
    q, xi, M = state.q.copy(), np.zeros(model.nv), quantities.mass_matrix(model, state.q)
    best, smallest = q, np.inf
    for _ in range(iterations + 1):
        g, G, _, _ = _constraints(model, q, state.v)
        gap = sizes.widest(g)
        if gap < smallest:
            best, smallest = q, gap
        if gap <= tolerance:
            break
        # Gauss-Newton: the smallest total displacement that satisfies the linearised constraints
        xi = _least(M, G, G @ xi - g, sizes.places)
        q = retract(model, state.q, xi)
        if not np.isfinite(q).all():
            break
    return best, smallest


# Steps that close a gap, and how often one may be halved: near the end they converge quadratically.
_CLOSING_STEPS, _HALVINGS = 20, 8


def _close(model: Model, q: FloatArray, sizes: _Sizes, gap: float, tolerance: float) -> tuple[FloatArray, float]:
    """Close a gap by Newton's method, with the smallest step from where it stands each time."""
    at_rest = np.zeros(model.nv)
    for _ in range(_CLOSING_STEPS):
        if gap <= tolerance:
            break
        g, G, _, _ = _constraints(model, q, at_rest)
        step = -_least(quantities.mass_matrix(model, q), G, g, sizes.places)
        # the largest part of the step that helps; the last step is one that no longer does
        tried = (retract(model, q, step / 2**half) for half in range(_HALVINGS))
        gaps = ((there, sizes.widest(_constraints(model, there, at_rest)[0])) for there in tried)
        found = next(((there, left) for there, left in gaps if left < gap), None)
        if found is None:
            break
        q, gap = found
    return q, gap


def _least(M: FloatArray, G: FloatArray, b: FloatArray, sizes: FloatArray) -> FloatArray:
    """The x of least x^T M x with G x = b; least squares, in units of ``sizes``, where rows contradict each other."""
    L = np.linalg.cholesky(M)
    W = np.linalg.solve(L, G.T) / sizes
    y, *_ = np.linalg.lstsq(W.T, b / sizes, rcond=1e-10)
    return np.asarray(np.linalg.solve(L.T, y))


def limits_crossed(
    model: Model, t: FloatArray, q: FloatArray, v: FloatArray, tau: FloatArray | None = None
) -> dict[str, str]:
    """Joints whose limits, speeds or efforts were crossed in rows of a run: name -> words, one part per crossing.

    Args:
        model: the model.
        t: times (rows,), seconds.
        q: coordinates (rows, nq).
        v: velocities (rows, nv).
        tau: generalised forces (rows, nv) of the control, newtons and newton metres; without them efforts are not
            looked at.
    """
    out: dict[str, str] = {}
    efforts = np.concatenate([np.zeros(0), *(view.joint.effort for view in model.joints.values())])
    # a servo's force is what it does by itself, and what its input adds; where efforts are enforced it has no more
    for d, servo in servo_rates(model).items():
        bound = servo_bound(servo, model.mechanism.joints[servo.joint])
        efforts[d] = np.inf if model.mechanism.limits_enforced else bound
    if tau is not None:
        tau = tau + servo_forces(model, q, v)
    for name, view in model.joints.items():
        joint = view.joint
        found: list[str] = []
        # positions: by coordinate, a rotation by its angle
        for piece in layout(joint):
            low, high = joint.limits[piece.limit]
            if not np.isfinite([low, high]).any():
                continue
            here, label = q[:, view.q][:, piece.q], joint.coordinate_names[piece.q.start]
            if piece.factor == "ball":
                value = np.linalg.norm(np.atleast_2d(quaternion.log(here)), axis=1)
                label = f"{label.removesuffix('qw')}rotation"
            else:
                value = here[:, 0]
            found += _crossing(label, np.maximum(low - value, value - high), t)
        # rates and forces, by velocity
        for k, label in enumerate(joint.velocity_names):
            found += _crossing(f"speed of {label}", np.abs(v[:, view.v][:, k]) - joint.speed[k], t)
            if tau is not None:
                found += _crossing(f"effort of {label}", np.abs(tau[:, view.v][:, k]) - efforts[view.v][k], t)
        if found:
            out[name] = "; ".join(found)
    for tendon in model.mechanism.tendons.values():
        if tendon.has_limits:
            length, (low, high) = _lengths(model, tendon, q), tendon.limits
            found = _crossing("length", np.maximum(low - length, length - high), t)
            out |= {tendon.label: found[0]} if found else {}
    return out


def _lengths(model: Model, tendon: Tendon, q: FloatArray) -> FloatArray:
    """Lengths (rows,) of a tendon."""
    if tendon.path:
        course = course_of(tendon, {})
        return np.array([course.length(poses) for poses in quantities.frame_poses(model, q, list(tendon.bodies))])
    out = np.zeros(len(q))
    for name, weight in tendon.joints.items():
        held = model.mechanism.joints[name].locked
        out += weight * (q[:, model.joint(name).q.start] if held is None else float(held[0]))
    return out


def _crossing(label: str, over: FloatArray, t: FloatArray) -> list[str]:
    """Words for a bound that was crossed by ``over`` (rows,) where that is above zero; none where it was not."""
    if not (over > 0).any():
        return []
    first = int(np.flatnonzero(over > 0)[0])
    return [f"{label} crossed by {over.max():.3g}, first at t = {t[first]:.4g} s"]


def joint_forces(
    model: Model,
    t: FloatArray,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    pushes: dict[str, FloatArray] | None = None,
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Wrenches (rows, 6) that every joint passes to its child, and the loop multipliers (rows, m).

    A wrench is (torque; force) at the origin of the joint's child frame, in its axes. Loop joints are included.

    Args:
        model: the model.
        t: times (rows,), seconds.
        q: coordinates (rows, nq).
        v: velocities (rows, nv).
        tau: generalised forces (rows, nv) of the control.
        pushes: wrenches (rows, 6) of contacts by body, torque about its link origin and force, world axes; None where
            they are not known.
    """
    from leastaction.dynamics import entries

    a, lam = accelerations(model, t, q, v, tau, pushes)
    pushes = pushes or {}
    # the tree joints: their child frames on their last rows
    names = list(model.joints)
    places = [model.places[model.joints[name].joint.child] for name in names]
    ends = [place.pose @ model.joints[name].joint.child_frame for name, place in zip(names, places, strict=True)]
    rows = np.array([place.row for place in places], dtype=np.int64)
    frames = np.array([flat_pose(end) for end in ends]).reshape(-1, 12)
    loads = _loop_wrenches(model, q, lam)
    out = np.zeros((len(q), len(names), 6))
    entries.joint_reactions(model.system, t, q, v, a, rows, frames, loads, out)
    model.raise_pending()
    for k, name in enumerate(names):
        out[:, k] -= _pushes_behind(model, q, name, pushes)
    if not np.isfinite(out).all():
        raise ConvergenceError("joint forces: the numbers are not finite; check the states, laws and forces.")
    return {name: out[:, k] for k, name in enumerate(names)}, lam


def accelerations(
    model: Model,
    t: FloatArray,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    pushes: dict[str, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """dv/dt (rows, nv) and the loop multipliers (rows, m) along a run; arguments as in ``joint_forces``."""
    known = _refuse_unknown(model, pushes is not None)
    _refuse_limits(model, t, q)
    forces = np.clip(tau, -model.efforts, model.efforts) + _push_forces(model, q, pushes or {})
    return quantities.held(model, q, v, forces, t, [[] for _ in q], known)


# Features whose forces are those of the contacts of a run.
_TOUCHING = frozenset({"contact", "restitution"})


def _refuse_unknown(model: Model, touching: bool) -> frozenset[str]:
    """Features whose forces are known, or raise for the first one whose forces are not."""
    known = _TOUCHING if touching else frozenset()
    for feature in sorted(model.features - quantities.COUNTED - known):
        raise UnsupportedError(
            f"joint forces and multipliers: '{model.name}' has {feature}, whose forces a run does not keep; they are "
            "not available. Take a run of mechanism.without(...), in which they do not act."
        )
    return known


def _push_forces(model: Model, q: FloatArray, pushes: dict[str, FloatArray]) -> FloatArray:
    """Generalised forces (rows, nv) of wrenches on bodies."""
    from leastaction.dynamics import entries

    out = np.zeros((len(q), model.nv))
    if pushes:
        places = [model.places[name] for name in pushes]
        rows = np.array([place.row for place in places], dtype=np.int64)
        frames = np.array([flat_pose(place.pose) for place in places])
        entries.wrench_forces(model.system, q, rows, frames, np.stack(list(pushes.values()), axis=1), out)
    return out


def _pushes_behind(model: Model, q: FloatArray, name: str, pushes: dict[str, FloatArray]) -> FloatArray:
    """Wrench (rows, 6) of what pushes bodies behind a tree joint, at its child frame in its axes."""
    joint, parents = model.joints[name].joint, model.system.tree.rows[:, PARENT]
    at = quantities.frame_poses(model, q, [joint.child])[:, 0] @ joint.child_frame
    out = np.zeros((len(q), 2, 3))
    for body, wrench in pushes.items():
        # rows from the body to the root
        row = model.places[body].row
        while row > model.places[joint.child].row:
            row = int(parents[row])
        if row == model.places[joint.child].row:
            arm = quantities.frame_poses(model, q, [body])[:, 0, :3, 3] - at[:, :3, 3]
            out[:, 0] += wrench[:, :3] + np.cross(arm, wrench[:, 3:])
            out[:, 1] += wrench[:, 3:]
    return np.asarray(np.einsum("nij,nki->nkj", at[:, :3, :3], out).reshape(len(q), 6))


def _refuse_limits(model: Model, t: FloatArray, q: FloatArray) -> None:
    """Raise where an enforced limit holds a joint, with a force that is not known here."""
    for row, reached in enumerate(quantities.leaning(model, q)):
        if reached:
            raise UnsupportedError(
                f"joint forces: the enforced limit of joint '{reached[0].joint}' holds it at t = {t[row]:g} s, with a "
                "force that does not count here; look at rows before, or run without limits."
            )


def _loop_wrenches(model: Model, q: FloatArray, lam: FloatArray) -> Any:
    """Wrenches (rows, loops, 6) of the loop joints on their child bodies, about the kernels' origin."""
    from leastaction.dynamics import entries

    out = np.zeros((len(q), len(model.loop_names), 6))
    starts = np.array([rows.start for rows in model.loop_rows.values()], dtype=np.int64)
    stops = np.array([rows.stop for rows in model.loop_rows.values()], dtype=np.int64)
    if len(starts):
        entries.loop_wrenches(model.system, q, lam, starts, stops, out)
    return out
