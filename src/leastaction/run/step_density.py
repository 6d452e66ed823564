"""Steps per second that a motion asks for, and how fast that number grows: what a step controller reads.

Symbols
    m     mass of the mechanism
    A     mean square acceleration udot^T M(x) udot / m, m^2/s^4
    J     mean square jerk uddot^T M(x) uddot / m, m^2/s^6
    Q     density of steps, 1/s:  Q^4 = most^-4 + A / tolerance^2 + (J / tolerance^2)^(2/3).  A step 1/Q leaves straight
          uniform motion by at most ``tolerance`` metres, so does its change of acceleration, and it is never longer
          than ``most`` seconds
    G     d(ln Q)/dt along the motion, 1/s; odd under a reversal of the velocities, as Q is even
    d     seconds between the points of the motion from which jerk and G are taken; a function of the state alone, so
          that both symmetries are kept
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.dynamics.forward import acceleration, make_work
from leastaction.jit.decorators import entry, sweep
from leastaction.jit.lanes import ld3, ld6
from leastaction.spatial._source.vector import dot6, inertia_times
from leastaction.tree.coordinates import positions_in, rates_in
from leastaction.tree.kinematics import inertias, kinematics, velocities
from leastaction.tree.layout import MASS
from leastaction.tree.retraction import retract

# Distance of the points, as a share of the step that the acceleration alone would ask for.
SHARE = 1.0e-3


@sweep
def square(tree, x, r, w):
    """r^T M(x) r / m for rates, accelerations or jerks r (nu,) of the rows."""
    kinematics(tree, x, w.P, w.S)
    inertias(tree, x, w.P, w.M)
    velocities(tree, r, w.S, w.V)
    mass, total = 0.0, 0.0
    for i in range(1, tree.rows.shape[0]):
        m = tree.const[i, MASS]
        if m > 0.0:
            s = ld6(w.V, i, 0)
            total += dot6(s, inertia_times(ld6(w.M, i, 0), ld3(w.M, i, 6), m, s))
            mass += m
    for d in range(r.size):
        total += tree.armature[d] * r[d] * r[d]
    return total / max(mass, 1.0e-300)


@sweep
def along_motion(tree, x, u, a, j, s, xi, x_there, u_there):
    """State s seconds along the motion: u + s a + s^2/2 j, and x moved by its integral."""
    for d in range(u.size):
        xi[d] = s * u[d] + s * s / 2.0 * a[d] + s * s * s / 6.0 * j[d]
        u_there[d] = u[d] + s * a[d] + s * s / 2.0 * j[d]
    retract(tree, x, xi, x_there)


@entry
def step_density(system, t, q, v, tolerance, most):
    """Q and G at the user's state q, v without control; not finite where the accelerations are not."""
    tree, nu = system.tree, v.size
    w = make_work(system, q)
    x, u, none = np.empty(q.size), np.empty(nu), np.zeros(nu)
    xi, x_there, u_there = np.empty(nu), np.empty((4, q.size)), np.empty(nu)
    a, j, there = np.empty(nu), np.zeros(nu), np.empty((4, nu))
    positions_in(system.coordinates, q, x)
    rates_in(system.coordinates, x, v, u)
    # acceleration here, and the distance of the points
    good = acceleration(system, t, x, u, none, w, a)
    scale = 1.0 / (tolerance * tolerance)
    floor = 1.0 / (most * most * most * most)
    A = scale * square(tree, x, a, w)
    d = SHARE / math.sqrt(math.sqrt(floor + A))
    # accelerations at d, -d; the jerk from them; accelerations at 2d, -2d
    for k in range(4):
        s = (1.0 + k // 2) * (1.0 - 2.0 * (k % 2)) * d
        along_motion(tree, x, u, a, j, s, xi, x_there[k], u_there)
        good = acceleration(system, t + s, x_there[k], u_there, none, w, there[k]) and good
        if k == 1:
            for e in range(nu):
                j[e] = (there[0, e] - there[1, e]) / (2.0 * d)
    if not good:
        return math.nan, math.nan
    Q4 = floor + A + math.pow(scale * square(tree, x, j, w), 2.0 / 3.0)
    # the same sum at d and at -d
    rise = 0.0
    for k in range(2):
        side = 1.0 - 2.0 * k
        for e in range(nu):
            xi[e] = (there[2 + k, e] - a[e]) / (side * 2.0 * d)
        A, J = square(tree, x_there[k], there[k], w), square(tree, x_there[k], xi, w)
        rise += side * (scale * A + math.pow(scale * J, 2.0 / 3.0))
    # d(ln Q)/dt = d(Q^4)/dt / (4 Q^4)
    return math.sqrt(math.sqrt(Q4)), rise / (2.0 * d) / (4.0 * Q4)
