"""Properties of contact and limits: forces, impulses, cones, energy, rest."""

from __future__ import annotations

from typing import Any

import numpy as np

import leastaction as la
from fuzzing.case import Case, simulate

_DT = 0.005


def impulses(case: Case) -> None:
    """Momentum of each body changes by gravity and the reported forces; cones hold; nothing pulls."""
    model, plan, steps = case.model, case.plan, 60
    run = _run(case, steps)
    c, m = run.contacts, model.mechanism
    show = _show(steps) + "c = run.contacts\n"
    # a normal force pushes, and friction stays in its cone
    if not c.normal_force.min(initial=0.0) >= -1e-9:
        case.fail(f"a contact pulls with {c.normal_force.min():.3g} N", show + "print(c.normal_force.min())\n")
    rough = {frozenset((pair.a, pair.b)): pair.friction for pair in m.contacts}
    for k, names in enumerate(c.names):
        mu = rough.get(frozenset(names), m.ground.friction)
        over = float(np.where(c.pair == k, c.friction - mu * c.normal_force, 0.0).max(initial=0.0))
        if not over < 1e-6 * (1.0 + float(c.normal_force.max(initial=0.0))):
            case.fail(f"friction between {names} is {over:.3g} N outside of its cone", show)
    if plan.ground["restitution"] > 0:
        return
    # momentum of each body, and of all of them: forces between bodies cancel
    for name, body in m.bodies.items():
        J = [la.jacobian(model, q, name, body.com)[3:] for q in run.q]
        p = body.mass * np.array([each @ v for each, v in zip(J, run.v, strict=True)])
        push = _DT * (body.mass * m.gravity + c.wrench(name)[:-1, 3:])
        off = np.abs(np.diff(p, axis=0) - push)
        size = float(np.abs(np.diff(p, axis=0)).max()) + float(body.mass * np.linalg.norm(m.gravity) * _DT)
        # measured: 1e-7 of the largest impulse
        if not off.max() < 1e-4 * size:
            k = int(off.max(axis=1).argmax())
            case.fail(
                f"step {k}: the momentum of {name} changes by {np.diff(p, axis=0)[k]}, by its forces {push[k]}",
                show + f"k, body = {k}, model.mechanism.bodies[{name!r}]\n"
                f"J = [la.jacobian(model, run.q[i], {name!r}, body.com)[3:] for i in (k, k + 1)]\n"
                "p = [body.mass * J[i] @ run.v[k + i] for i in (0, 1)]\n"
                f"print(p[1] - p[0], {_DT} * (body.mass * model.mechanism.gravity + c.wrench({name!r})[k, 3:]))\n",
            )


def dissipates(case: Case) -> None:
    """Contact never gives energy, and bodies do not sink in."""
    steps = 100
    run = _run(case, steps)
    total, scale = run.energy.total, 1.0 + float(run.energy.kinetic.max())
    gain = float(np.diff(total).max())
    # measured: at most 1e-6 of the kinetic energy, from rolling corners that are frozen in a step
    if not gain < 1e-3 * scale:
        k = int(np.diff(total).argmax())
        case.fail(f"step {k} gains {gain:.3g} J", _show(steps) + f"print(run.energy.total[{k}:{k + 2}])\n")
    for name, body in case.plan.bodies.items():
        height = _lowest(*body["shape"], run.poses(name))
        # measured: 6e-6 m where one body strikes another that stands
        if not height.min() > -1e-4:
            k = int(height.argmin())
            show = _show(steps) + f"print(run.poses({name!r})[{k}])\n"
            case.fail(f"{name} is {-height[k]:.3g} m in the ground at row {k}", show)


def _lowest(kind: str, sizes: list[Any], poses: np.ndarray) -> np.ndarray:
    """Height (rows,) of the lowest point of a shape, metres."""
    up = np.abs(poses[:, 2, :3])
    if kind == "Box":
        below = 0.5 * up @ np.asarray(sizes[0])
    elif kind == "Sphere":
        below = np.full(len(up), sizes[0])
    elif kind == "Capsule":
        below = 0.5 * sizes[1] * up[:, 2] + sizes[0]
    else:
        below = 0.5 * sizes[1] * up[:, 2] + sizes[0] * np.hypot(up[:, 0], up[:, 1])
    return poses[:, 2, 3] - below


def rests(case: Case) -> None:
    """What stands on the ground has no velocity and no kinetic energy, and stays where it is."""
    plan = case.plan
    plan.gravity, plan.contacts = np.array([0.0, 0.0, -9.81]), []
    plan.ground["friction"] = max(plan.ground["friction"], 0.3)
    for k, joint in enumerate(plan.joints):
        kind, sizes = plan.bodies[joint.child]["shape"]
        if kind == "Capsule":
            # a capsule does not stand on its end
            plan.bodies[joint.child]["shape"] = kind, sizes = "Box", [[0.2, 0.1, 0.1 + 0.02 * k]]
        height = sizes[0] if kind == "Sphere" else 0.5 * (sizes[0][2] if kind == "Box" else sizes[1])
        joint.q, joint.v = [0.6 * k, 0.0, height, 1.0, 0.0, 0.0, 0.0], [0.0] * 6
    steps = 60
    run = _run(case, steps)
    speed, moved = float(np.abs(run.v).max()), float(np.abs(run.q - run.q[0]).max())
    if not (speed < 1e-5 and moved < 1e-6):
        case.fail(
            f"bodies at rest move by {moved:.3g}, with a velocity of {speed:.3g}",
            _show(steps) + "print(np.abs(run.v).max(), np.abs(run.q - run.q[0]).max(), run.energy.kinetic.max())\n",
        )


def limits(case: Case) -> None:
    """Joints stay within limits that are in force; what leans on one has no velocity.

    Where another joint strikes its limit, one that leans may hop within a step: away from its limit, not into it.
    """
    model, steps = case.model, 60
    run = _run(case, steps)
    bounds = [
        (name, view.q.start + i, view.v.start + i, bound, side)
        for name, view in model.joints.items()
        for i, pair in enumerate(model.mechanism.joints[name].limits)
        for bound, side in zip(pair, (1.0, -1.0), strict=True)
        if view.nq == view.nv and np.isfinite(pair).all()
    ]
    near = [np.abs(run.q[:, i] - bound) < 1e-7 for _, i, _, bound, _ in bounds]
    at = np.array(near, dtype=bool).reshape(-1, steps + 1)
    strikes = (at[:, 1:] & ~at[:, :-1]).any(axis=0)
    for (name, i, k, bound, side), touching in zip(bounds, at, strict=True):
        q, v = run.q[:, i], run.v[:, k]
        show = _show(steps) + f"print(run.q[:, {i}], run.v[:, {k}])\n"
        beyond = float((side * (bound - q)).max())
        if not beyond < 1e-6:
            case.fail(f"joint {name} is {beyond:.3g} beyond its limit {bound}", show)
        # leaning for three rows: it has not moved, so it has no velocity
        leaning, away = touching[2:] & touching[1:-1] & touching[:-2], side * v[1:-1]
        fast = float(np.where(leaning & (~strikes[:-1] | (away < 0)), np.abs(away), 0.0).max(initial=0.0))
        # measured: 5e-6 one row after another joint has struck
        if not fast < 1e-4:
            case.fail(f"joint {name} leans on its limit {bound} with a velocity of {fast:.3g}", show)


def _run(case: Case, steps: int) -> la.Trajectory:
    return simulate(case.model, case.state, _DT, steps, "maximal")


def _show(steps: int) -> str:
    return f"run = la.simulate(model, x0, dt={_DT}, duration={steps * _DT!r}, method='maximal')\n"
