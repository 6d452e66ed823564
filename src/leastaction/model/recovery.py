"""From the pose and twist of a joint's child side in its parent side to the coordinates and rates of the joint.

The kinds of the table have closed forms: translations are projections, an angle is the turn of the relative rotation
about the axis. Composite joints and splines are solved by Gauss-Newton steps, from several starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.joints import Ball, JointGeometry, Screw, SplineFactor, factors, neutral
from leastaction.model.motion import factor_motion, joint_motion
from leastaction.model.spline import Spline, SplineCurve
from leastaction.spatial import quaternion, se3

_TURN = 2.0 * np.pi

# Gauss-Newton: most steps from one start, halvings of one step, starts, and a residual that is rounding.
_STEPS, _HALVINGS, _STARTS, _ROUNDING = 60, 12, 200, 1e-13

# Starts on each segment of a spline.
_PER_SEGMENT = 8


def joint_coordinates(joint: JointGeometry, Q: FloatArray, near: FloatArray | None = None) -> FloatArray:
    """Coordinates (nq,) whose motion is nearest to the pose Q (4, 4) of the child side in the parent side.

    Args:
        joint: the joint.
        Q: relative pose; where the joint cannot reach it, ``motion_gap`` says by how much.
        near: coordinates (nq,) whose turns are counted on and whose signs of quaternions are kept; without them angles
            are within (-pi, pi], closed splines begin at 0, and quaternions have w >= 0.
    """
    kind = joint.kind
    q = _solved(joint, Q, near) if kind in ("composite", "spline") else _closed_form(joint, Q)
    return _counted(joint, q, near)


def motion_gap(joint: JointGeometry, q: FloatArray, Q: FloatArray) -> tuple[float, float]:
    """How far Q (4, 4) lies from the motion at q: metres, and radians."""
    there = joint_motion(joint, q)
    return float(np.linalg.norm(Q[:3, 3] - there[:3, 3])), _angle(there[:3, :3].T @ Q[:3, :3])


def joint_screws(joint: JointGeometry, q: FloatArray) -> FloatArray:
    """Twists (6, nv) of the child side in its axes for unit rates, at coordinates q (nq,); rates in public order."""
    if joint.kind == "free":
        return np.eye(6)
    return _screws(joint, q)


# --- closed forms ---------------------------------------------------------------------------------------------------
def _closed_form(joint: JointGeometry, Q: FloatArray) -> FloatArray:
    """Coordinates of a kind of the table: translations first, then one rotation, or two of a universal joint."""
    out: list[float] = []
    R, p = Q[:3, :3], Q[:3, 3]
    for factor in factors(joint):
        if isinstance(factor, Ball):
            out += quaternion.from_matrix(R).tolist()
        elif isinstance(factor, Screw) and factor.kind == "prismatic":
            # directions of one joint are orthonormal
            out.append(float(factor.axis @ p))
        elif isinstance(factor, Screw):
            out.append(_first_angle(joint, R) if joint.kind == "universal" and not out else _turn(factor.axis, R))
            if factor.pitch:
                # the displacement knows how many turns there were
                out[-1] += _TURN * round((float(factor.axis @ p) / factor.pitch - out[-1]) / _TURN)
            R = factor_motion(factor, np.array(out[-1:]))[:3, :3].T @ R
    return np.array(out)


def _turn(axis: FloatArray, R: FloatArray) -> float:
    """The angle about an axis of which the rotation R is nearest."""
    w, *s = quaternion.from_matrix(R)
    return 2.0 * float(np.arctan2(np.dot(s, axis), w))


def _first_angle(joint: JointGeometry, R: FloatArray) -> float:
    """The angle about ``axis`` that takes ``axis2`` to where the rotation R of a universal joint has it."""
    axis, axis2 = joint.axis, np.asarray(joint.axis2)
    ahead = R @ axis2
    return float(np.arctan2(axis @ np.cross(axis2, ahead), axis2 @ ahead - (axis @ axis2) * (axis @ ahead)))


def _angle(R: FloatArray) -> float:
    """Angle of a rotation (3, 3), accurate near zero."""
    w, *s = quaternion.from_matrix(R)
    return 2.0 * float(np.arctan2(np.linalg.norm(s), abs(w)))


# --- composite joints and splines -----------------------------------------------------------------------------------
def _solved(joint: JointGeometry, Q: FloatArray, near: FloatArray | None) -> FloatArray:
    """Coordinates of a product of any factors: the first start that reaches Q, or the one that comes nearest."""
    best, least = neutral(joint), np.inf
    for start in _starts(joint, Q, near):
        q, left = _descend(joint, Q, start)
        if left < least:
            best, least = q, left
        if least <= _ROUNDING * (1.0 + float(np.abs(Q[:3, 3]).max())):
            break
    return best


def _starts(joint: JointGeometry, Q: FloatArray, near: FloatArray | None) -> Iterator[FloatArray]:
    """Where to start: near, then neutral and seeded turns of angles and balls, or the nearest points of a spline."""
    if near is not None:
        yield near
    if joint.spline is not None:
        grid = _grid(joint.spline)
        misses = [np.linalg.norm(_residual(joint, q, Q)) for q in grid]
        for k in np.argsort(misses)[:_PER_SEGMENT]:
            yield grid[k]
        return
    yield neutral(joint)
    rng = np.random.default_rng(0)
    for _ in range(_STARTS):
        start = []
        for factor in factors(joint):
            if isinstance(factor, Ball):
                start += quaternion.normalize(rng.normal(size=4)).tolist()
            else:
                start.append(rng.uniform(-np.pi, np.pi) if _turns(factor) else 0.0)
        yield np.array(start)


def _grid(spline: Spline) -> FloatArray:
    """Coordinates (points, size) all over a spline."""
    sizes = (len(spline.frames),) if isinstance(spline, SplineCurve) else spline.values.shape[:2]
    ends = [end if np.isfinite(end) else float(n) for end, n in zip(spline.ends, sizes, strict=True)]
    axes = [np.linspace(0.0, end, _PER_SEGMENT * int(end) + 1) for end in ends]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(ends))


def _descend(joint: JointGeometry, Q: FloatArray, q: FloatArray) -> tuple[FloatArray, float]:
    """Gauss-Newton steps from q, each halved until it helps; the last coordinates, and the residual there."""
    r = _residual(joint, q, Q)
    left = float(np.linalg.norm(r))
    for _ in range(_STEPS):
        step = np.linalg.lstsq(_screws(joint, q), r, rcond=1e-10)[0]
        tried = (_moved(joint, q, step / 2**half) for half in range(_HALVINGS))
        found = next(((there, _residual(joint, there, Q)) for there in tried if _helps(joint, there, Q, left)), None)
        if found is None:
            break
        q, r = found
        left = float(np.linalg.norm(r))
    return q, left


def _helps(joint: JointGeometry, q: FloatArray, Q: FloatArray, left: float) -> bool:
    """Whether the residual at q is smaller."""
    return float(np.linalg.norm(_residual(joint, q, Q))) < left


def _residual(joint: JointGeometry, q: FloatArray, Q: FloatArray) -> FloatArray:
    """The motion (6,) that is left from q to Q, in child axes."""
    return np.asarray(se3.log(se3.inverse(joint_motion(joint, q)) @ Q))


def _moved(joint: JointGeometry, q: FloatArray, xi: FloatArray) -> FloatArray:
    """Coordinates displaced by xi (nv,), in the order of the factors; on a spline not beyond its ends."""
    out, i, d = q.copy(), 0, 0
    for factor in factors(joint):
        if isinstance(factor, Ball):
            out[i : i + 4] = quaternion.retract(q[i : i + 4], xi[d : d + 3])
        else:
            out[i : i + factor.nq] += xi[d : d + factor.nv]
        i, d = i + factor.nq, d + factor.nv
    if joint.spline is not None:
        open_ends = np.isfinite(joint.spline.ends)
        out[open_ends] = np.clip(out, 0.0, joint.spline.ends)[open_ends]
    return out


def _screws(joint: JointGeometry, q: FloatArray) -> FloatArray:
    """Twists (6, nv) for unit rates, in the order of the factors."""
    S, i = np.zeros((6, 0)), 0
    for factor in factors(joint):
        here = q[i : i + factor.nq]
        motion = factor.before @ factor_motion(factor, here)
        if isinstance(factor, SplineFactor):
            own = factor.spline.motion(here)[1]
        elif isinstance(factor, Ball):
            own = np.eye(6)[:, :3]
        else:
            own = factor.twist[:, None]
        S, i = np.hstack([np.asarray(se3.Ad_inv(motion)) @ S, own]), i + factor.nq
    return S


# --- turns and signs ------------------------------------------------------------------------------------------------
def _turns(factor: Screw | Ball | SplineFactor) -> bool:
    """Whether a factor comes back to the same pose after a turn."""
    return isinstance(factor, Screw) and factor.kind != "prismatic" and factor.pitch == 0.0


def _counted(joint: JointGeometry, q: FloatArray, near: FloatArray | None) -> FloatArray:
    """The same pose with turns counted from ``near``, and with its signs of quaternions."""
    out, i = q.copy(), 0
    for factor in factors(joint):
        here = slice(i, i + factor.nq)
        if isinstance(factor, Ball):
            back = q[i] < 0.0 if near is None else float(q[here] @ near[here]) < 0.0
            out[here] = -q[here] if back else q[here]
        elif _turns(factor):
            out[i] = _wound(q[i], _TURN, None if near is None else near[i])
        elif isinstance(factor, SplineFactor):
            for k, n in _periods(factor.spline):
                out[i + k] = _wound(q[i + k], float(n), 0.5 * n if near is None else near[i + k])
        i += factor.nq
    return out


def _periods(spline: Spline) -> list[tuple[int, int]]:
    """Number and period of the coordinates of a spline that are closed."""
    sizes = (len(spline.frames),) if isinstance(spline, SplineCurve) else spline.values.shape[:2]
    return [(k, n) for k, (end, n) in enumerate(zip(spline.ends, sizes, strict=True)) if not np.isfinite(end)]


def _wound(value: float, period: float, near: float | None) -> float:
    """The value, with whole periods added so that it is nearest to ``near``; within (-pi, pi] without."""
    if near is not None:
        return value + period * round((near - value) / period)
    # a half turn is positive
    return value - period * math.ceil(value / period - 0.5)
