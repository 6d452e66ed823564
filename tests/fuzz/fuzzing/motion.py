"""Properties of smooth motion: one trajectory for all methods, and the balance of work and energy."""

from __future__ import annotations

import numpy as np

import leastaction as la
from fuzzing.case import Case, apart, simulate
from leastaction.dynamics import quantities
from leastaction.model.joints import Law
from leastaction.run.registry import method_by_name

_SPAN = 0.1
_REFERENCE = 800
_FLOOR = 2e-8


def converges(case: Case) -> None:
    """Every method comes to one trajectory, with its order."""
    model, state, plan = case.model, case.state, case.plan
    row = case.controls(1)
    exact = simulate(model, state, _SPAN / _REFERENCE, _REFERENCE, "rk4", np.tile(row, (_REFERENCE, 1)))
    scale = 1.0 + float(np.abs(exact.v).max(initial=0.0))
    for name in case.methods(4):
        if name == "rk4":
            continue
        order, errors = method_by_name(name).order, []
        for steps in (16, 32, 64, 128, 256):
            run = simulate(model, state, _SPAN / steps, steps, name, np.tile(row, (steps, 1)))
            errors.append(apart(plan, run, exact, rows=(-1, -1)) / scale)
            slope = np.log2(errors[-2] / errors[-1]) if len(errors) > 1 and errors[-1] > 0 else 0.0
            if len(errors) > 2 and (errors[-1] < _FLOOR or slope > order - 0.35):
                break
        else:
            case.fail(
                f"{name} of order {order}: errors {', '.join(f'{e:.3g}' for e in errors)} at 16, 32, ... steps",
                f"u = np.array({row[0].tolist()})\n"
                f"exact = la.simulate(model, x0, dt={_SPAN / _REFERENCE!r}, duration={_SPAN}, method='rk4', "
                f"control=lambda t, x: u)\n"
                "for steps in (16, 32, 64, 128, 256):\n"
                f"    run = la.simulate(model, x0, dt={_SPAN} / steps, duration={_SPAN}, method={name!r}, "
                "control=lambda t, x: u)\n"
                "    print(steps, np.abs(run.q[-1] - exact.q[-1]).max(), np.abs(run.v[-1] - exact.v[-1]).max())\n",
            )


def energy(case: Case) -> None:
    """What the energy of a run gains is the work of controls, dampers and forces without energy."""
    model, state, steps, dt = case.model, case.state, 200, 5e-4
    row = case.controls(1)
    name = str(case.rng.choice(["rk4", "galerkin:4", "galerkin:6"]))
    run = simulate(model, state, dt, steps, name, np.tile(row, (steps, 1)))
    power = (run.v * row).sum(axis=1) + _joint_power(model, run)
    work = float(_simpson(power, dt))
    for force in model.mechanism.forces:
        names = list(force.bodies)
        poses = quantities.frame_poses(model, run.q, names)
        twists = quantities.body_twists(model, run.q, run.v, names)
        turns = np.swapaxes(poses[..., :3, :3], -1, -2)
        local = np.concatenate([(turns @ part[..., None])[..., 0] for part in (twists[..., :3], twists[..., 3:])], -1)
        given = np.array([(force.wrenches(float(t), poses[k], local[k]) * local[k]).sum() for k, t in enumerate(run.t)])
        work += float(_simpson(given, dt)) + force.energy(0.0, poses[-1]) - force.energy(0.0, poses[0])
    gain = float(run.energy.total[-1] - run.energy.total[0])
    scale = 1.0 + float(np.abs(run.energy.kinetic).max()) + float(np.ptp(run.energy.potential))
    # measured: at most 1e-9
    if not abs(gain - work) < 1e-7 * scale:
        case.fail(
            f"{name}: the energy gains {gain!r} J, the work is {work!r} J",
            f"u = np.tile({row[0].tolist()}, ({steps}, 1))\n"
            f"run = la.simulate(model, x0, dt={dt}, duration={steps * dt}, method={name!r}, control=u)\n"
            f"print(run.energy.total[-1] - run.energy.total[0], 'against work', {work!r})\n",
        )


def _joint_power(model: la.Model, run: la.Trajectory) -> np.ndarray:
    """Power (rows,) of dampers in joints and of servos."""
    out = np.zeros(len(run.t))
    m = model.mechanism
    for name, view in model.joints.items():
        rates = run.v[:, view.v]
        for i, damping in enumerate(m.joints[name].damping):
            if isinstance(damping, Law):
                out += [damping.force(float(x)) * x for x in rates[:, i]]
            else:
                out -= damping * rates[:, i] ** 2
    for servo in m.actuators.values():
        if servo.joint in model.joints:
            rate = run.v[:, model.joints[servo.joint].v][:, servo.coordinate]
            out -= servo.kd * (servo.gear * rate) ** 2
    return out


def _simpson(values: np.ndarray, dt: float) -> float:
    """Integral over an even number of steps."""
    return dt / 3 * (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum())


def static(case: Case) -> None:
    """Forward and inverse dynamics undo each other, with loops up to their forces; energies fit the mass matrix."""
    model, state = case.model, case.state
    tau = np.round(case.rng.normal(size=model.nv), 3)
    a = la.forward_dynamics(model, state.q, state.v, tau)
    back = la.inverse_dynamics(model, state.q, state.v, a)
    scale = 1.0 + np.abs(back).max(initial=0.0)
    off = np.abs(back - tau)
    if model.constraint_size:
        from leastaction.run.observe import _constraints

        G = _constraints(model, state.q, state.v)[1]
        off = np.abs(back - tau - G.T @ np.linalg.lstsq(G.T, back - tau, rcond=None)[0])
    show = f"tau = np.array({tau.tolist()})\na = la.forward_dynamics(model, x0.q, x0.v, tau)\n"
    # measured: at most 1e-12
    if not off.max(initial=0.0) < 1e-8 * scale:
        show += "print(la.inverse_dynamics(model, x0.q, x0.v, a) - tau)\n"
        case.fail(f"inverse dynamics of forward dynamics is off by {off.max():.3g}", show)
    M = la.mass_matrix(model, state.q)
    kinetic, twice = la.energy(model, state.q, state.v).kinetic, float(state.v @ M @ state.v)
    if not abs(2 * kinetic - twice) < 1e-11 * (1 + twice):
        case.fail(
            f"kinetic energy {kinetic!r}, v M v / 2 = {twice / 2!r}",
            "print(la.energy(model, x0.q, x0.v).kinetic, x0.v @ la.mass_matrix(model, x0.q) @ x0.v / 2)\n",
        )
