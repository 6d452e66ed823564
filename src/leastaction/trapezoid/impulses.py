"""Impulses of a step of the Lie trapezoid: forces on bodies, control, springs and dampers.

Half of every impulse acts at each end of a step. At the start of step k it is h/2 times the force at q^k, at its end
h/2 times the force at q^(k+1); what depends on velocity takes the average velocity of the step, W or xi / h, at both
ends. The control is held over the step. Symbols as in ``trapezoid.residual``; a step is that of ``trapezoid.step``.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import body_forces
from leastaction.forces.joints import joint_forces, turned_matrix
from leastaction.jit.calls import call_law
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import st6
from leastaction.spatial._source.so3 import quat_conj, quat_normalize, quat_rotate, quat_to_matrix
from leastaction.spatial._source.vector import sub3
from leastaction.trapezoid.residual import average_twists, origin_of, project_loads
from leastaction.tree.arrays import copy
from leastaction.tree.coordinates import forces_in, get3, positions_out, put3, quat_at, rates_out
from leastaction.tree.layout import BALL, IU, IX, KIND


@kernel
def origin_at_start(step):
    """Origin of the tables when the step began; those of w.P may have another since."""
    return get3(step.scratch.start, 0)


@optional(None)
def load_bodies(forces, step, t, ahead):
    """w.load = half impulses of the forces on bodies, with the average twists of the step; ``ahead`` at its end."""
    tree, h, w, f = step.system.tree, step.h, step.work, step.f
    average_twists(tree, h, w, sub3(origin_of(w.P), origin_at_start(step)), ahead, f.V)
    for i in range(tree.rows.shape[0]):
        st6(f.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    body_forces(forces, t, w.P, f.V, f.F, f.given, f.result)
    for i in range(tree.rows.shape[0]):
        for e in range(6):
            w.load[i, e] = -0.5 * h * f.F[i, e]


@kernel
def average_rates(tree, h, x, xi, u):
    """u = xi / h as rates of the rows at x: balls in child axes, the same at both ends of the step."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            back = quat_conj(quat_normalize(quat_at(x, tree.rows[i, IX])))
            z = quat_rotate(back, get3(xi, d))
            put3(u, d, (z[0] / h, z[1] / h, z[2] / h))
        else:
            u[d] = xi[d] / h


@sweep
def load_joints(step, x):
    """Add to w.G the half impulses of control, springs and dampers at x, along parent axes."""
    system, h, w, f, u = step.system, step.h, step.work, step.f, step.scratch.u
    tree = system.tree
    average_rates(tree, h, x, w.xi, u)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    copy(step.control[0], f.tau)
    joint_forces(system.passive, f.q, f.v, f.tau)
    forces_in(system.coordinates, x, f.tau, f.f)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            v = quat_rotate(quat_normalize(quat_at(x, tree.rows[i, IX])), get3(f.f, d))
            for e in range(3):
                w.G[d + e] += 0.5 * h * v[e]
        else:
            w.G[d] += 0.5 * h * f.f[d]


@sweep
def damping(step):
    """w.damp, derivative of w.G by xi. The damper of a free joint's translation counts along parent axes only."""
    system, h, x, w, f, u = step.system, step.h, step.state.x, step.work, step.f, step.scratch.u
    tree, p = system.tree, system.passive
    for d in range(w.damp.shape[0]):
        for e in range(3):
            w.damp[d, e] = 0.0
    average_rates(tree, h, x, w.xi, u)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    # half an impulse h f/2, rates xi / h
    for j in range(p.screw.shape[0]):
        d = w.rate[p.screw[j, 1]]
        w.damp[d, 0] -= 0.5 * p.spring[j, 2]
        if p.law[j, 4] != 0:
            w.damp[d, 0] += 0.5 * call_law(p.law[j, 4], f.v[p.screw[j, 1]])
    for j in range(p.free.shape[0]):
        for e in range(3):
            w.damp[w.rate[p.free[j, 1] + e], 0] -= 0.5 * p.free_data[j, 6 + e]
    for j in range(p.ball.shape[0]):
        d, b = w.rate[p.ball[j, 1]], p.ball_data
        R = quat_to_matrix(quat_normalize(quat_at(f.q, p.ball[j, 0])))
        A = turned_matrix(R, (-0.5 * b[j, 7], 0.0, 0.0, 0.0, -0.5 * b[j, 8], 0.0, 0.0, 0.0, -0.5 * b[j, 9]))
        for r in range(3):
            for e in range(3):
                w.damp[d + r, e] += A[3 * r + e]


@sweep
def load(step, t, x, ahead):
    """w.G at x: all half impulses of one end of the step, the second one where ``ahead``."""
    tree, w = step.system.tree, step.work
    for i in range(tree.rows.shape[0]):
        st6(w.load, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    load_bodies(step.system.forces, step, t, ahead)
    project_loads(tree, step.h, w)
    if step.active:
        load_joints(step, x)
