"""Inverse kinematics: coordinates at which frames have given poses, within limits and with closed loops.

Levenberg's damped least squares on the errors of all frames and the gaps of loops together (Nocedal and Wright,
*Numerical Optimization*, 2006, section 10.3), with bounds on each step for coordinates that have limits. Where it ends
in a local minimum it starts again from random configurations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ConvergenceError, ModelError
from leastaction.model.checks import FloatArray, check_number, check_vector
from leastaction.model.configuration import retract
from leastaction.model.joints import layout
from leastaction.model.model import Model, State, check_model
from leastaction.model.pose import check_pose
from leastaction.run.observe import constraint_rows
from leastaction.spatial import quaternion, so3

_ITERATIONS = 100
"""Most steps from one start."""

_STALLED, _LARGEST_DAMPING = 1e-6, 1e12
"""A step that lowers the sum of squares by less than this part ends a start, and so does this damping."""


@dataclass(frozen=True, eq=False)
class Posture:
    """Coordinates at which frames are where they were asked to be.

    Attributes:
        state: coordinates, at rest.
        errors: by frame what is left: metres and radians (0 where no rotation was asked for).
        gap: what loops and constraints are open by, metres or radians.
        iterations: steps of least squares, over all starts.
        starts: configurations that were started from; 0 where the first one is an answer.
    """

    state: State
    errors: dict[str, tuple[float, float]]
    gap: float
    iterations: int
    starts: int

    @property
    def q(self) -> FloatArray:
        """Coordinates (nq,)."""
        return self.state.q


def inverse_kinematics(
    model: Model,
    targets: Mapping[str, Any],
    q: Any = None,
    *,
    limits: bool = True,
    tolerance: float = 1e-9,
    starts: int = 20,
    seed: int = 0,
) -> Posture:
    """Coordinates at which bodies and frames have given poses.

    Args:
        model: the model; no inertia is needed, loops and equality constraints hold.
        targets: by name of a body or frame its pose (4, 4) in the world, or only the position (3,) of its origin.
        q: where to start, as for ``model.state``; by default the default state. The answer is near it where it can be.
        limits: whether limits of joints hold.
        tolerance: largest error: radians, and metres as a part of the size of the mechanism.
        starts: most configurations to start from: q, then random ones.
        seed: of the random ones.

    Raises:
        ConvergenceError: no such coordinates were found; it says how far each frame is from its pose in the nearest
            configuration, which is its ``state``.
    """
    check_model(model)
    problem = _Problem(model, _checked(model, targets), limits)
    tolerance = check_number(tolerance, "inverse_kinematics: tolerance", positive=True)
    if isinstance(starts, bool) or not isinstance(starts, int) or starts < 1:
        raise ModelError(f"inverse_kinematics: starts must be a whole number from 1 on, got {starts!r}.")
    rng, here = np.random.default_rng(seed), problem.within(model.check_q(q))
    best, smallest, count, tried = here, np.inf, 0, 0
    while tried < starts and problem.largest(best) > tolerance:
        if tried:
            here = problem.within(model.random(rng).q)
        found, cost, steps = problem.solve(here, tolerance)
        tried, count = tried + 1, count + steps
        if cost < smallest:
            best, smallest = found, cost
    errors, gap = problem.errors(best)
    if problem.largest(best) > tolerance:
        raise ConvergenceError(_words(errors, gap, tried, limits), state=model.state(best))
    return Posture(model.state(best), errors, gap, count, tried)


def _checked(model: Model, targets: Any) -> dict[str, FloatArray]:
    """Poses (4, 4) or positions (3,) by name."""
    if not isinstance(targets, Mapping) or not targets:
        raise ModelError("inverse_kinematics: targets must be a dict of poses by name of a body or frame.")
    out: dict[str, FloatArray] = {}
    for name, value in targets.items():
        where = f"inverse_kinematics: pose of '{name}'"
        model.place(name)
        flat = np.ndim(value) == 1
        out[name] = check_vector(value, 3, where) if flat else check_pose(value, where)
    return out


def _words(errors: Mapping[str, tuple[float, float]], gap: float, tried: int, limits: bool) -> str:
    """How far the nearest configuration is from what was asked for."""
    parts = [f"'{name}' is {place:.3g} m and {turn:.3g} rad away" for name, (place, turn) in errors.items()]
    loops = f"; loops are open by {gap:.3g} m or rad" if gap > 0 else ""
    within = " within the limits" if limits else ""
    return (
        f"inverse_kinematics: no configuration was found{within} from {tried} starts; in the nearest one "
        f"{', '.join(parts)}{loops}. The target may be out of reach; else start closer, or give more starts."
    )


class _Problem:
    """Errors of frames and gaps of loops, as one least-squares problem."""

    def __init__(self, model: Model, targets: dict[str, FloatArray], limits: bool) -> None:
        self.model, self.targets = model, targets
        # metres are counted in the size of the mechanism
        at = quantities.frame_poses(model, model.neutral()[None], [*model.frame_names])[0, :, :3, 3]
        self.size = float(np.linalg.norm(at - at.mean(axis=0), axis=1).max(initial=0.0)) or 1.0
        self.low, self.high = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
        self.place = np.zeros(model.nv, dtype=np.int64)
        self.pieces: list[tuple[str, slice, float, float]] = []
        for view in model.joints.values() if limits else ():
            for piece in layout(view.joint):
                low, high = (float(x) for x in np.reshape(view.joint.limits[piece.limit], 2))
                where = slice(view.q.start + piece.q.start, view.q.start + piece.q.stop)
                self.pieces.append((piece.factor, where, low, high))
                # screws of a free joint do not move with single velocities
                if piece.factor == "screw" and view.kind != "free":
                    k = view.v.start + piece.v.start
                    self.low[k], self.high[k], self.place[k] = low, high, where.start

    def within(self, q: FloatArray) -> FloatArray:
        """The nearest coordinates within the limits."""
        out = q.copy()
        for factor, where, low, high in self.pieces:
            if factor == "screw":
                out[where] = np.clip(out[where], low, high)
                continue
            turn = np.asarray(quaternion.log(out[where]))
            angle = float(np.linalg.norm(turn))
            if angle > high:
                out[where] = quaternion.exp(turn * (high / angle))
        return out

    def residual(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Errors (m,) and their derivative (m, nv) by a displacement of q."""
        parts, rows = [], []
        at = quantities.frame_poses(self.model, q[None], [*self.targets])[0]
        for pose, (name, target) in zip(at, self.targets.items(), strict=True):
            J = quantities.jacobian(self.model, q, name)
            wanted = target if target.ndim == 1 else target[:3, 3]
            parts.append((wanted - pose[:3, 3]) / self.size)
            rows.append(-J[3:] / self.size)
            if target.ndim == 2:
                # log(R_target R^T exp(-w)), w a turn of the frame in world axes
                turn = so3.log(target[:3, :3] @ pose[:3, :3].T)
                parts.append(turn)
                rows.append(-so3.dlog_right(turn) @ J[:3])
        gaps, G = constraint_rows(self.model, q)
        return np.concatenate([*parts, gaps]), np.vstack([*rows, G])

    def largest(self, q: FloatArray) -> float:
        """The largest error: radians, and parts of the size."""
        return float(np.abs(self.residual(q)[0]).max())

    def errors(self, q: FloatArray) -> tuple[dict[str, tuple[float, float]], float]:
        """Distance and angle by frame, and the largest gap."""
        r, _ = self.residual(q)
        out, k = {}, 0
        for name, target in self.targets.items():
            place = float(np.linalg.norm(r[k : k + 3])) * self.size
            turn = float(np.linalg.norm(r[k + 3 : k + 6])) if target.ndim == 2 else 0.0
            out[name], k = (place, turn), k + (6 if target.ndim == 2 else 3)
        return out, float(np.abs(r[k:]).max(initial=0.0))

    def solve(self, q: FloatArray, tolerance: float) -> tuple[FloatArray, float, int]:
        """The local minimum near q, its sum of squares, and the number of steps."""
        damping, (r, J) = 1e-4, self.residual(q)
        cost = float(r @ r)
        for k in range(_ITERATIONS):
            if float(np.abs(r).max()) <= 0.01 * tolerance:
                return q, cost, k
            moved = self.within(retract(self.model, q, self._step(q, r, J, damping)))
            new, J_new = self.residual(moved)
            after = float(new @ new)
            if not after < cost:
                damping *= 10.0
                if damping > _LARGEST_DAMPING:
                    return q, cost, k
                continue
            stalled = after > (1.0 - _STALLED) * cost
            q, r, J, cost, damping = moved, new, J_new, after, max(0.1 * damping, 1e-15)
            if stalled:
                return q, cost, k
        return q, cost, _ITERATIONS

    def _step(self, q: FloatArray, r: FloatArray, J: FloatArray, damping: float) -> FloatArray:
        """The displacement (nv,) that minimises |J xi + r|^2 + damping |xi|^2 within the limits, or nearly so.

        Coordinates that leave are put on their limits one round after the other, and the rest is solved again.
        """
        n = self.model.nv
        A, b = np.vstack([J, np.sqrt(damping) * np.eye(n)]), np.concatenate([-r, np.zeros(n)])
        low, high = self.low - q[self.place], self.high - q[self.place]
        xi, free = np.zeros(n), np.ones(n, dtype=bool)
        while free.any():
            xi[free] = np.linalg.lstsq(A[:, free], b - A[:, ~free] @ xi[~free], rcond=None)[0]
            out = free & ((xi < low) | (xi > high))
            if not out.any():
                break
            xi[out] = np.clip(xi[out], low[out], high[out])
            free &= ~out
        return xi
