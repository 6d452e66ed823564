"""Hybrid dynamics: some joints move as prescribed, the others as forces make them (Sueda 2021, sections 2.9, 2.12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics.quantities import leaning, pushed
from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.model.checks import FloatArray, check_number, quoted
from leastaction.model.maximal import maximal_bodies
from leastaction.model.model import Model, State, check_determined, check_model

# Loops that open at more than this, relative to the accelerations, are contradicted by what is prescribed.
_OPENING = 1e-6


@dataclass(frozen=True, eq=False)
class HybridDynamics:
    """What ``hybrid_dynamics`` finds.

    Attributes:
        acceleration: (nv,) the component derivatives of v; the prescribed ones are as given.
        force: (nv,) generalised forces of the actuators in N and N m: the control at free joints, and at prescribed
            ones what holds them to their motion.
        forces: the same for the prescribed joints, by name.
        multipliers: (m,) of the loop joints, N and N m.
    """

    acceleration: FloatArray
    force: FloatArray
    forces: dict[str, FloatArray]
    multipliers: FloatArray


def hybrid_dynamics(
    model: Model,
    state: State,
    prescribed: Mapping[str, Any] | None = None,
    control: Any = None,
    *,
    velocities: Mapping[str, Any] | None = None,
    dt: float | None = None,
) -> HybridDynamics:
    """Accelerations of the free joints and forces of the prescribed ones, in O(n), and O(mn + m^3) with m loop rows.

    Args:
        model: the model; springs, dampers, forces on bodies and loops act.
        state: where it is and how it moves.
        prescribed: joint name -> acceleration, one number or (nv of the joint,).
        control: generalised forces (nv,) or a dict by joint name; what it has at prescribed joints does not count.
        velocities: joint name -> velocity that the joint is to have after ``dt``: the acceleration (v+ - v) / dt.
        dt: seconds, with ``velocities``.

    Raises:
        ModelError: a joint that does not move or is prescribed twice.
        UnsupportedError: the mechanism has joint friction, contact or constraints, which do not count here.
        ConvergenceError: the prescribed motion contradicts the loops, or the state is singular.
    """
    from leastaction.dynamics import redmax_solve

    check_model(model)
    check_determined(model, "hybrid_dynamics")
    for feature in sorted(model.features - {"loops", "couplings", "enforced limits", "spline joints"}):
        raise UnsupportedError(
            f"hybrid_dynamics: '{model.name}' has {feature}, which does not count here; "
            "mechanism.without(...) drops it."
        )
    given, mask, names = _prescribed(model, state, prescribed or {}, velocities or {}, dt)
    tau = np.clip(model.check_v(control, "tau"), -model.efforts, model.efforts)
    tau[mask > 0] = 0.0
    bodies = maximal_bodies(model)
    a, force = np.zeros(model.nv), np.zeros(model.nv)
    lam, opening = np.zeros(model.constraint_size), np.zeros(model.constraint_size)
    good = redmax_solve.hybrid(
        model.system, bodies.spans, state.t, state.q.copy(), state.v.copy(), tau, given, mask, a, force, lam, opening
    )
    model.raise_pending()
    if not good or not all(np.isfinite(each).all() for each in (a, force, lam)):
        raise ConvergenceError("hybrid dynamics: the accelerations are not finite; the state may be singular.")
    # limits that would have to hold a free joint
    reached = [lean for lean in leaning(model, state.q[None])[0] if lean.rate < 0 or not mask[lean.rate]]
    held = pushed("hybrid_dynamics", reached, state.v, a)
    if held:
        raise UnsupportedError(
            f"hybrid_dynamics: joint '{held[0].joint}' leans on its enforced limit, with a force that does not count "
            'here; forward_dynamics and simulate with method="maximal" have it.'
        )
    # loops that open faster than rounding explains: more is prescribed than they allow
    scale = 1.0 + float(np.abs(a).max(initial=0.0)) + float(np.abs(state.v).max(initial=0.0)) ** 2
    if np.abs(opening).max(initial=0.0) > _OPENING * scale:
        raise ConvergenceError(
            f"hybrid dynamics: the prescribed motion of {quoted(names)} contradicts the closed loops or couplings; "
            "prescribe fewer joints."
        )
    forces = {name: force[model.joint(name).v].copy() for name in names}
    return HybridDynamics(a, force, forces, lam)


def _prescribed(
    model: Model, state: State, accelerations: Mapping[str, Any], velocities: Mapping[str, Any], dt: float | None
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Prescribed accelerations (nv,), where they are (nv,), and the joints."""
    both = sorted(set(accelerations) & set(velocities))
    if both:
        raise ModelError(f"hybrid_dynamics: {quoted(both)} prescribed twice, in acceleration and in velocity.")
    given, mask = model.check_v(dict(accelerations), "prescribed"), np.zeros(model.nv)
    if velocities:
        if dt is None:
            raise ModelError("hybrid_dynamics: velocities= needs dt=, the seconds in which they are reached.")
        step = check_number(dt, "hybrid_dynamics: dt", positive=True)
        target = model.check_v(dict(velocities), "velocities")
        for name in velocities:
            where = model.joint(name).v
            given[where] = (target[where] - state.v[where]) / step
    names = [*accelerations, *velocities]
    for name in names:
        mask[model.joint(name).v] = 1.0
    return given, mask, names
