"""Velocity-level Euler in maximal coordinates (Sueda 2021, sections 1.8 to 1.13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from leastaction.comparators.maximal_euler.bearings import (
    Points,
    bearing_bounds,
    bearing_rows,
    bearings_of,
)
from leastaction.comparators.maximal_euler.rows import (
    Rows,
    Touching,
    body_forces,
    body_poses,
    contact_rows,
    inverse,
    joint_axes,
    joint_rows,
    limit_rows,
    loop_equalities,
    mobility,
    plan_of,
    row_poses,
    tangents,
    user_rows,
)
from leastaction.comparators.maximal_euler.solve import Equalities, Problem, Solution, solve_step
from leastaction.contact.layout import CONTACT_COLUMNS
from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.explicit.rows import enter_rows
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.methods.closing import check_closed
from leastaction.methods.memory import Field
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.configuration import retract
from leastaction.model.model import Model, State
from leastaction.spatial import se3

FRICTION = ("qp", "staggered")

# The nearest q is found where one more correction is smaller than this part of the step's motion.
_NEAR = 1e-12

# Bodies of a first state that interpenetrate by more than this, in metres, are refused.
_DEEP = 1e-9


@final
class MaximalEuler(Method):
    """Euler's method on poses and twists: M phi+ = M phi + h f with joints as equalities, then E+ = E exp(h phi+).

    Joints hold at the level of velocities, so they drift apart; ``drift`` says by how much. q and v of a run are those
    of the nearest state of the joints, in the metric of mass. A plain Python program, to compare with.

    Args:
        friction: "qp", one program for contact and friction, whose cone is relaxed, so that what slides is lifted
            (Anitescu and Hart 2004); or "staggered", contact and friction in turn until both hold (Kaufman et al.
            2008). Friction cones have four sides. Both need the extra ``qp``. A joint's ``friction=`` in N m or N is of
            fixed size; a ``Bearing`` rubs by the reaction of its joint (bilateral staggered projections) and needs
            "staggered".
        baumgarte: gain in 1/s with which joints, loops, constraints and contacts close what has opened; 0 is off.
        tolerance: relative change of the contact force at which staggered projections end.
        iterations: most staggered projections in a step.
    """

    name: ClassVar[str] = "maximal-euler"
    supports: ClassVar[frozenset[str]] = frozenset(
        {
            "loops",
            "contact",
            "joint friction",
            "bearings",
            "spline joints",
            "enforced limits",
            "equality constraints",
            "velocity constraints",
            "inequality constraints",
        }
    )

    def __init__(
        self,
        friction: str = "staggered",
        *,
        baumgarte: float = 0.0,
        tolerance: float = 1e-8,
        iterations: int = 500,
    ) -> None:
        if friction not in FRICTION:
            raise ModelError(f'MaximalEuler: friction must be "qp" or "staggered", got {friction!r}.')
        self.friction = friction
        self.baumgarte = check_number(baumgarte, "MaximalEuler: baumgarte")
        if self.baumgarte < 0:
            raise ModelError(f"MaximalEuler: baumgarte must not be negative, got {baumgarte!r}.")
        self.tolerance = check_number(tolerance, "MaximalEuler: tolerance", positive=True)
        if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
            raise ModelError(f"MaximalEuler: iterations must be a positive whole number, got {iterations!r}.")
        self.iterations = iterations

    @property
    def order(self) -> int:
        """1."""
        return 1

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {
            "friction": self.friction, "baumgarte": self.baumgarte,
            "tolerance": self.tolerance, "iterations": self.iterations,
        }  # fmt: skip

    def start(self, model: Model, state: State) -> Memory:
        """Poses E and twists phi of the bodies, the joints' q and v, and friction impulses to begin with."""
        rows = enter_rows(model, state)
        check_closed(model, state.t, rows["x"], rows["u"])
        memory = self._begin(model, state)
        _check_start(model, memory)
        return memory

    def check_memory(self, model: Model, state: State, memory: Memory) -> None:
        """Raise ModelError unless the memory has what a step needs; bodies that have drifted apart are allowed."""
        super().check_memory(model, state, memory)
        R = memory["E"][:, :3, :3]
        square = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(initial=0.0)
        if not square < 1e-6 or not (memory["E"][:, 3] == (0.0, 0.0, 0.0, 1.0)).all():
            raise ModelError(f"{self.label}: memory 'E' does not hold poses.")

    def layout(self, model: Model) -> dict[str, Field]:
        """Poses and twists of the bodies, coordinates and velocities, and the impulses of the last step."""
        plan = plan_of(model)
        nb, capacity = len(plan.limbs), plan.contacts.capacity if plan.contacts else 0
        points = sum(len(bearing.rows) for bearing in self._bearings(model))
        return {
            "E": Field((nb, 4, 4)), "phi": Field((nb, 6)), "q": Field((model.nq,)), "v": Field((model.nv,)),
            "rates": Field((model.nv,)), "impulses": Field((capacity, 4)), "bearings": Field((points,)),
        }  # fmt: skip

    def _begin(self, model: Model, state: State) -> Memory:
        """Memory at a state, whether or not it can be a first one."""
        plan = plan_of(model)
        q, v = state.q.copy(), state.v.copy()
        E = body_poses(model, plan, q)
        phi = joint_axes(model, plan, q) @ v
        capacity = plan.contacts.capacity if plan.contacts else 0
        # pair and feature of each contact of the last step, and its two impulses; unused rows have pair -1
        impulses = np.zeros((capacity, 4))
        impulses[:, 0] = -1.0
        points = sum(len(bearing.rows) for bearing in self._bearings(model))
        return {
            "E": E, "phi": phi, "q": q, "v": v, "rates": v.copy(), "impulses": impulses, "bearings": np.zeros(points),
        }  # fmt: skip

    def _bearings(self, model: Model) -> tuple[Points, ...]:
        """Points of the joints with bearings."""
        found = bearings_of(model, plan_of(model))
        if found and self.friction == "qp":
            raise UnsupportedError(
                f"'{model.name}': joint '{found[0].joint}' has a bearing, which needs MaximalEuler(\"staggered\")."
            )
        return found

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The nearest q and v."""
        return memory["q"].copy(), memory["v"].copy()

    def drift(self, model: Model, memory: Memory) -> FloatArray:
        """How far each body (nb, 6) is from where the joints' q has it: rotation vector, displacement, body axes."""
        return _drift(model, memory["q"], memory["E"])

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """One step after the other, in Python."""
        # a function of the user that raises leaves the memory as it was
        before = {name: array.copy() for name, array in memory.items()}
        try:
            return self._roll(model, memory, clock, k, steps, every, control)
        except BaseException:
            memory.update(before)
            raise

    def _roll(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """The steps of a rollout."""
        rows = saved_rows(k, steps, every)
        q, v = np.zeros((rows, model.nq)), np.zeros((rows, model.nv))
        saved = programs = 0
        for i in range(k, k + steps):
            tau = _sample(model, memory, clock.at(i), i, control)
            failure: str | None = "the control is not finite"
            if np.isfinite(tau).all():
                found, _ = self._advance(model, memory, clock.at(i), clock.length(i), tau)
                programs, failure = programs + found.programs, found.failure
            if failure:
                return Chunk(i - k, failure, q[:saved], v[:saved], {"programs": programs})
            if (i + 1) % every == 0:
                q[saved], v[saved] = memory["q"], memory["v"]
                saved += 1
        return Chunk(steps, None, q, v, {"programs": programs})

    def contacts(self, model: Model, state: State, control: Any, dt: float) -> FloatArray:
        """Contacts of the step that begins at a state: see ``contact.layout``."""
        tau = np.zeros(model.nv) if control is None else model.check_v(control, "control")
        memory = self._begin(model, state)
        found, step = self._advance(model, memory, state.t, dt, tau)
        model.raise_pending()
        if found.failure:
            raise ConvergenceError(f"{self.label}: {found.failure}", state=state)
        if step.touching is None:
            return np.zeros((0, CONTACT_COLUMNS))
        touch, out = step.touching, np.zeros((len(step.touching.gap), CONTACT_COLUMNS))
        rate, slip = (step.C @ found.phi)[: len(out)], (step.T @ found.phi).reshape(-1, 2)
        tangent = found.tangent[: 2 * len(out)].reshape(-1, 2)
        for i in range(len(out)):
            force = found.normal[i] * touch.normal[i] + tangent[i] @ tangents(touch.normal[i])
            out[i, :3] = touch.pair[i], touch.feature[i], touch.gap[i] + dt * rate[i]
            out[i, 3], out[i, 4:7], out[i, 7:10] = found.normal[i] / dt, force / dt, touch.point[i]
            out[i, 10:] = dt * np.linalg.norm(slip[i]), touch.row[i], np.linalg.norm(tangent[i]) / dt
        return out

    def contact_pairs(self, model: Model) -> tuple[tuple[str, str], ...]:
        """Names of the two bodies of every pair that may touch; the ground is "world"."""
        table = plan_of(model).contacts
        return () if table is None else table.names

    def _advance(self, model: Model, memory: Memory, t: float, h: float, tau: FloatArray) -> tuple[Solution, _Step]:
        """Solve one step and, if it succeeds, advance the memory."""
        step = assemble(model, memory, t, h, tau, self.baumgarte, self._bearings(model))
        if not np.isfinite(step.problem.F).all():
            none = np.zeros(0)
            return Solution(none, none, none, none, 0, "the forces are not finite; check forces and control"), step
        start = np.concatenate([_warm(step.touching, memory["impulses"]), memory["bearings"]])
        found = solve_step(step.problem, self.friction, start, self.tolerance, self.iterations)
        if found.failure is None and not _move(model, memory, step, found, h):
            found = replace(found, failure="a joint left its spline at an open end")
        return found, step


@dataclass(frozen=True, eq=False)
class _Step:
    """A step before it is solved: its problem, the Jacobians (nb, 6, nv), contacts and rows."""

    problem: Problem
    J: FloatArray
    R: FloatArray
    C: FloatArray
    T: FloatArray
    touching: Touching | None


def assemble(
    model: Model, memory: Memory, t: float, h: float, tau: FloatArray, gain: float, bearings: tuple[Points, ...] = ()
) -> _Step:
    """Everything that a step of length h solves; ``tau`` (nv,) is the control and ``gain`` Baumgarte's."""
    plan = plan_of(model)
    E, phi, q, v = (memory[name] for name in ("E", "phi", "q", "v"))
    J = joint_axes(model, plan, q)
    drift = _drift(model, q, E) if gain > 0 else None
    # joints, loops and constraints
    G, R_rows = joint_rows(plan, E, J, model.nv, drift, gain)
    R = R_rows.matrix()
    C, T = Rows(len(plan.limbs)), Rows(len(plan.limbs))
    P = row_poses(plan, len(model.system.tree.rows), E)
    touching = contact_rows(model, plan, E, phi, P, gain, h, C, T)
    loop_equalities(model, plan, E, P, gain, G)
    user_rows(model, plan, E, phi, gain, h, G, C)
    limit_rows(plan, q, R, gain, h, C)
    # momentum: forces on bodies, control, springs and rotors of the joints
    forces = np.clip(tau, -plan.effort, plan.effort) + _passive(model, q, v)
    M = np.zeros((6 * len(plan.limbs), 6 * len(plan.limbs)))
    for b, block in enumerate(plan.bodies.inertia):
        M[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = block
    F = (np.einsum("bij,bj->bi", plan.bodies.inertia, phi) + h * body_forces(model, plan, t, E, phi, P)).ravel()
    F = F + h * (R.T @ forces)
    if plan.armature.any():
        # rotors keep the rates of their joints, whatever these do to the twists of the bodies
        M += R.T @ (plan.armature[:, None] * R)
        F = F + R.T @ (plan.armature * memory["rates"])
    dry = np.flatnonzero(plan.friction > 0)
    C_matrix, T_matrix = C.matrix(), T.matrix()
    problem = Problem(
        Equalities(M, mobility(plan), G.matrix()), F, G.values, C_matrix, C.values, C.names,
        T_matrix, touching.mu if touching else np.zeros(0), R[dry], h * plan.friction[dry],
        bearing_rows(plan, bearings, E).matrix(),
        *(bearing_bounds(bearings, G) if bearings else (np.zeros((0, len(G.rhs))), np.zeros((0, 0)))),
    )  # fmt: skip
    return _Step(problem, J, R, C_matrix, T_matrix, touching)


def _move(model: Model, memory: Memory, step: _Step, found: Solution, h: float) -> bool:
    """Poses by (1.29), then the nearest q and v in the metric of mass. False if a joint leaves its spline."""
    plan = plan_of(model)
    phi = found.phi.reshape(-1, 6)
    E = memory["E"] @ se3.exp(h * phi)
    # start where the joints' own rates lead, then Gauss and Newton
    q = retract(model, memory["q"], h * (step.R @ found.phi))
    if not model.on_splines(q):
        return False
    J, M = joint_axes(model, plan, q), plan.bodies.inertia
    moved = h * h * float(np.einsum("bi,bij,bj->", phi, M, phi))
    for _ in range(6):
        change = _nearest(model, J, _drift(model, q, E), np.zeros(model.nv))
        q = retract(model, q, change)
        if not model.on_splines(q):
            return False
        J = joint_axes(model, plan, q)
        # relative to the motion of the step, both in the metric of mass
        twists = J @ change
        if np.einsum("bi,bij,bj->", twists, M, twists) <= _NEAR**2 * moved:
            break
    memory["E"], memory["phi"], memory["q"] = E, phi, model.check_q(q)
    memory["rates"] = step.R @ found.phi
    memory["v"] = _nearest(model, J, phi, plan.armature * memory["rates"])
    if step.touching is not None:
        kept = memory["impulses"]
        kept[:] = 0.0
        kept[:, 0] = -1.0
        n = len(step.touching.gap)
        kept[:n, 0], kept[:n, 1] = step.touching.pair, step.touching.feature
        kept[:n, 2:] = found.tangent[: 2 * n].reshape(-1, 2)
    memory["bearings"] = found.tangent[len(step.T) :] if len(memory["bearings"]) else memory["bearings"]
    return True


def _nearest(model: Model, J: FloatArray, twists: FloatArray, momentum: FloatArray) -> FloatArray:
    """v (nv,) whose twists are nearest to the given ones (nb, 6) in the metric of mass."""
    if model.nv == 0:
        return np.zeros(0)
    plan = plan_of(model)
    MJ = plan.bodies.inertia @ J
    H = np.einsum("bij,bik->jk", J, MJ) + np.diag(plan.armature)
    return np.asarray(np.linalg.solve(H, np.einsum("bij,bi->j", MJ, twists) + momentum))


def _drift(model: Model, q: FloatArray, E: FloatArray) -> FloatArray:
    """log(E(q)^-1 E) of every body, (nb, 6)."""
    there = body_poses(model, plan_of(model), q)
    return np.asarray(se3.log(inverse(there) @ E)).reshape(-1, 6)


def _warm(touching: Touching | None, kept: FloatArray) -> FloatArray:
    """Friction impulses of the last step for the contacts that are still there."""
    if touching is None:
        return np.zeros(0)
    known = {(row[0], row[1]): row[2:] for row in kept if row[0] >= 0}
    none = np.zeros(2)
    pairs = zip(touching.pair.tolist(), touching.feature.tolist(), strict=True)
    return np.concatenate([np.zeros(0), *(known.get(pair, none) for pair in pairs)])


def _passive(model: Model, q: FloatArray, v: FloatArray) -> FloatArray:
    """Generalised forces (nv,) of springs and dampers in the joints."""
    from leastaction.dynamics import redmax_solve

    out = np.zeros(model.nv)
    redmax_solve.spring_forces(model.system, q, v, out)
    return out


def _sample(model: Model, memory: Memory, t: float, k: int, control: Control) -> FloatArray:
    """Control of the step that starts at k."""
    tau = np.zeros(model.nv)
    if control.callback is not None:
        from leastaction.explicit import step as explicit_step

        rows = enter_rows(model, State(t, memory["q"], memory["v"]))
        explicit_step.sample_control(model.system, control.callback.address, t, rows["x"], rows["u"], tau)
    elif len(control.array):
        tau[:] = control.array[k]
    return tau


def _check_start(model: Model, memory: Memory) -> None:
    """Raise ModelError if a first state interpenetrates or lies beyond an enforced limit."""
    plan = plan_of(model)
    for limit in plan.limits:
        if limit.sign * (memory["q"][limit.q] - limit.bound) < 0:
            raise ModelError(
                f"'{model.name}': joint '{limit.joint}' starts at {memory['q'][limit.q]:.6g}, beyond its enforced "
                f"limit {limit.bound:g}; start inside, or enforce_limits(False)."
            )
    C, T = Rows(len(plan.limbs)), Rows(len(plan.limbs))
    P = row_poses(plan, len(model.system.tree.rows), memory["E"])
    touching = contact_rows(model, plan, memory["E"], 0.0 * memory["phi"], P, 0.0, 1e-6, C, T)
    if touching is not None and len(touching.gap) and touching.gap.min() < -_DEEP:
        worst = int(touching.gap.argmin())
        deep = f"{-touching.gap[worst]:.3g} m deep at the first state"
        raise ModelError(f"'{model.name}': {C.names[worst]} is {deep}; move them apart.")
