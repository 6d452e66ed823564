"""Exact derivatives of all forces by displacements and rates of the rows, for dense Newton matrices.

A force on bodies varies in two ways: it is carried along by its bodies, which the derivatives of inverse dynamics
already count (``tree/derivatives.py``), and by its law. The law gives K and D (6k, 6k) for its k bodies: in link axes
for forces of the user, and about the origin of the kernels for the built-in ones, whose frames are then those of the
world. With J_b, Y_b (6, nu) the columns S, Y of ``tree/derivatives.py`` seen from body b, and f the force that rows
need,

    df / dx = -sum_bc J_b^T (K_bc J_c + D_bc Y_c)          df / du = -sum_bc J_b^T D_bc J_c

Symbols: L = [-p^, 1] takes a twist to the velocity of the point p. A force at p that is fixed in the world has
K = L^T [f^, 0]. A spring has by_r = df/dr and by_w = df/dw, r and w the difference of its ends and of their velocities.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.forces.bodies import give_force, given_force, link_frame, most_bodies, row3, world_point
from leastaction.forces.derivatives import spring_derivatives
from leastaction.forces.joints import ball_stiffness
from leastaction.jit.calls import call_force, call_law
from leastaction.jit.decorators import kernel, memory, optional, sweep
from leastaction.jit.lanes import ld3, ld6
from leastaction.spatial._source.force_laws import point_spring
from leastaction.spatial._source.mrp import add9, scale9
from leastaction.spatial._source.so3 import hat
from leastaction.spatial._source.vector import (
    add3,
    ang,
    cross,
    dot6,
    join,
    lin,
    matmul,
    matvec,
    sub3,
    tmatvec,
    transpose,
)
from leastaction.tree.coordinates import ball_rotation, free_rotation, get3, offset_of, turned_arm
from leastaction.tree.kinematics import last_rate
from leastaction.tree.layout import POINT_FORCE, POINT_SPRING, WRENCH, Floats, Ints


class Columns(NamedTuple):
    """Scratch memory for forces on up to m bodies.

    K, D (6m, 6m); J, Y (m, nu, 6) columns by body and rate; square (72 m^2,) results of the user; rate (nv,) row rates
    of the user's velocities.
    """

    K: Floats
    D: Floats
    J: Floats
    Y: Floats
    square: Floats
    rate: Ints


@memory
def make_columns(system):
    """Scratch memory of the derivatives."""
    m, nu = most_bodies(system.forces), system.tree.rates.shape[0]
    rate = np.zeros(nu, np.int64)
    for k in range(nu):
        rate[system.coordinates.v[k]] = k
    return Columns(
        np.zeros((6 * m, 6 * m)), np.zeros((6 * m, 6 * m)), np.zeros((m, nu, 6)), np.zeros((m, nu, 6)),
        np.zeros(72 * m * m), rate,
    )  # fmt: skip


@kernel
def add_part(K, r, c, s, M):
    """Add s times nine numbers at row r and column c."""
    for a in range(3):
        for b in range(3):
            K[r + a, c + b] += s * M[3 * a + b]


@kernel
def add_lever(K, r, c, p, s, by_turn, by_shift):
    """Add s L^T [by_turn, by_shift] to the 6x6 block at row r, column c; L is that of the point p."""
    arm = hat(p)
    add_part(K, r, c, s, matmul(arm, by_turn))
    add_part(K, r, c + 3, s, matmul(arm, by_shift))
    add_part(K, r + 3, c, s, by_turn)
    add_part(K, r + 3, c + 3, s, by_shift)


@sweep
def spring_law(forces, k, P, V, w):
    """K and D of a spring between points, world axes about the origin of the kernels."""
    data, first = forces.data, forces.kind[k, 1]
    i, j = forces.bodies[first], forces.bodies[first + 1]
    pa, pb = world_point(P, i, row3(data, k, 0)), world_point(P, j, row3(data, k, 3))
    va = add3(ld3(V, i, 3), cross(ld3(V, i, 0), pa))
    vb = add3(ld3(V, j, 3), cross(ld3(V, j, 0), pb))
    f = point_spring(pa, va, pb, vb, data[k, 6], data[k, 7], data[k, 8])
    by_r, by_w = spring_derivatives(sub3(pb, pa), sub3(vb, va), data[k, 6], data[k, 7], data[k, 8])
    # a displacement of end c moves it by L_c and turns its velocity
    for c in range(2):
        p, v, s = (pa, va, -1.0) if c == 0 else (pb, vb, 1.0)
        turn = scale9(-1.0, add9(matmul(by_r, hat(p)), matmul(by_w, hat(v))))
        spin = scale9(-1.0, matmul(by_w, hat(p)))
        add_lever(w.K, 0, 6 * c, pa, s, turn, by_r)
        add_lever(w.K, 6, 6 * c, pb, -s, turn, by_r)
        add_lever(w.D, 0, 6 * c, pa, s, spin, by_w)
        add_lever(w.D, 6, 6 * c, pb, -s, spin, by_w)
    # the body turns under its force
    zero = scale9(0.0, by_r)
    add_lever(w.K, 0, 0, pa, 1.0, hat(f), zero)
    add_lever(w.K, 6, 6, pb, -1.0, hat(f), zero)


@sweep
def load_law(forces, k, t, P, result, w):
    """K of a prescribed point force or wrench; in link axes it does not vary."""
    if forces.data[k, 9] != 0.0:
        return
    b = forces.kind[k, 1]
    R, p = link_frame(forces, b, P)
    given_force(forces, k, t, result)
    f, zero = (result[0], result[1], result[2]), (0.0, 0.0, 0.0)
    if forces.kind[k, 0] == WRENCH:
        add_part(w.K, 0, 0, 1.0, hat(f))
        f = (result[3], result[4], result[5])
    else:
        p = add3(p, matvec(R, row3(forces.data, k, 6)))
    add_lever(w.K, 0, 0, p, 1.0, hat(f), hat(zero))


@sweep
def user_law(forces, k, t, P, V, given, w):
    """K and D of a force of the user, link axes. False where it has no derivatives."""
    if forces.address[k, 1] == 0:
        return False
    give_force(forces, k, P, V, given)
    call_force(forces.address[k, 1], t, given, w.square)
    n = 6 * forces.kind[k, 2]
    for r in range(n):
        for c in range(n):
            w.K[r, c] = w.square[n * r + c]
            w.D[r, c] = w.square[n * n + n * r + c]
    return True


@kernel
def seen_from(local, R, p, s):
    """A twist about the origin of the kernels, seen from a link frame if ``local``."""
    if not local:
        return s
    return join(tmatvec(R, ang(s)), tmatvec(R, add3(lin(s), cross(ang(s), p))))


@sweep
def body_columns(forces, tree, b, count, local, P, S, T, w):
    """J and Y of the bodies of one force."""
    for c in range(count):
        R, p = link_frame(forces, b + c, P)
        d = last_rate(tree, forces.bodies[b + c])
        while d >= 0:
            s, y = seen_from(local, R, p, ld6(S, d, 0)), seen_from(local, R, p, ld6(T, d, 0))
            for e in range(6):
                w.J[c, d, e] = s[e]
                w.Y[c, d, e] = y[e]
            d = tree.rates[d, 1]


@kernel
def part_times(K, r, c, x):
    """Product of the 6x6 block at row r and column c with six numbers."""
    return (
        dot6(ld6(K, r, c), x), dot6(ld6(K, r + 1, c), x), dot6(ld6(K, r + 2, c), x),
        dot6(ld6(K, r + 3, c), x), dot6(ld6(K, r + 4, c), x), dot6(ld6(K, r + 5, c), x),
    )  # fmt: skip


@sweep
def clear_law(w, n):
    """Zero K and D of n bodies."""
    for r in range(6 * n):
        for c in range(6 * n):
            w.K[r, c] = 0.0
            w.D[r, c] = 0.0


@sweep
def force_law(forces, k, t, P, V, given, result, w):
    """K and D of force k. Returns 0 where it has none, 1 about the origin of the kernels, 2 in link axes."""
    kind, count = forces.kind[k, 0], forces.kind[k, 2]
    clear_law(w, count)
    if kind == POINT_SPRING:
        spring_law(forces, k, P, V, w)
        return 1
    if kind in (POINT_FORCE, WRENCH):
        load_law(forces, k, t, P, result, w)
        return 1
    return 2 if user_law(forces, k, t, P, V, given, w) else 0


@optional(None)
def add_body_derivatives(forces, tree, t, P, V, S, T, given, result, w, Kx, Ku):
    """Add what the laws of the forces on bodies contribute to the derivatives of the force that rows need."""
    for k in range(forces.kind.shape[0]):
        b, count = forces.kind[k, 1], forces.kind[k, 2]
        how = force_law(forces, k, t, P, V, given, result, w)
        if how == 0:
            continue
        body_columns(forces, tree, b, count, how == 2, P, S, T, w)
        for c in range(count):
            d = last_rate(tree, forces.bodies[b + c])
            while d >= 0:
                s, y = ld6(w.J[c], d, 0), ld6(w.Y[c], d, 0)
                for r in range(count):
                    g, h = part_times(w.K, 6 * r, 6 * c, s), part_times(w.D, 6 * r, 6 * c, s)
                    g2 = part_times(w.D, 6 * r, 6 * c, y)
                    i = last_rate(tree, forces.bodies[b + r])
                    while i >= 0:
                        z = ld6(w.J[r], i, 0)
                        Kx[i, d] -= dot6(z, g) + dot6(z, g2)
                        Ku[i, d] -= dot6(z, h)
                        i = tree.rates[i, 1]
                d = tree.rates[d, 1]


@sweep
def add_joint_derivatives(system, x, u, f, w, Kx, Ku):
    """Add the derivatives of -(control, springs and dampers in the joints), exact for free joints too.

    f.q, f.v are the user's state and f.tau all the user's generalised forces there.
    """
    p, c = system.passive, system.coordinates
    for j in range(p.screw.shape[0]):
        d = w.rate[p.screw[j, 1]]
        Kx[d, d] += p.spring[j, 0]
        Ku[d, d] += p.spring[j, 2]
        if p.law[j, 3] != 0:
            Kx[d, d] -= call_law(p.law[j, 3], f.q[p.screw[j, 0]])
        if p.law[j, 4] != 0:
            Ku[d, d] -= call_law(p.law[j, 4], f.v[p.screw[j, 1]])
    for j in range(p.ball.shape[0]):
        d = w.rate[p.ball[j, 1]]
        K = ball_stiffness(p, j, f.q)
        for r in range(3):
            Ku[d + r, d + r] += p.ball_data[j, 7 + r]
            for e in range(3):
                Kx[d + r, d + e] -= K[3 * r + e]
    # a free joint turns the user's force with its body
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        push = (f.tau[c.v[d]], f.tau[c.v[d + 1]], f.tau[c.v[d + 2]])
        add_part(Kx, d, d + 3, 1.0, matmul(free_rotation(x, c.free[j, 0]), hat(push)))
        for i in range(p.free.shape[0]):
            if p.free[i, 1] == c.v[d]:
                free_derivatives(system, j, i, x, u, f, Kx, Ku)
    first_turned_derivatives(c.turned, system, x, u, f, Kx, Ku)


@optional(None)
def first_turned_derivatives(turned, system, x, u, f, Kx, Ku):
    """The same for free joints that turn first: the rows feel tau and, as torque, b x tau besides.

    With the user's force tau = R^T (-k (R b - rest)) - d (bdot + w x b).
    """
    p, c = system.passive, system.coordinates
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        push = (f.tau[c.v[d + 3]], f.tau[c.v[d + 4]], f.tau[c.v[d + 5]])
        add_part(Kx, d, d + 3, 1.0, hat(push))
        for i in range(p.free.shape[0]):
            if p.free[i, 1] == c.v[d + 3]:
                turned_spring(turned, p, j, i, x, u, f, Kx, Ku)


@sweep
def turned_spring(turned, passive, j, i, x, u, f, Kx, Ku):
    """Spring and damper of the translation of turned joint j, which are number i of the passive table."""
    a, q, d = passive.free_data, passive.free[i, 0], turned.free[j, 1]
    R, b = ball_rotation(x, turned.free[j, 0]), turned_arm(turned, j, x)
    stiff = (a[i, 0], 0.0, 0.0, 0.0, a[i, 1], 0.0, 0.0, 0.0, a[i, 2])
    damp = (a[i, 6], 0.0, 0.0, 0.0, a[i, 7], 0.0, 0.0, 0.0, a[i, 8])
    spring = tmatvec(
        R, (-a[i, 0] * (f.q[q] - a[i, 3]), -a[i, 1] * (f.q[q + 1] - a[i, 4]), -a[i, 2] * (f.q[q + 2] - a[i, 5]))
    )
    inside, arm = matmul(transpose(R), matmul(stiff, R)), hat(b)
    # derivatives of tau by b, by the rotation vector and by w; by bdot it is -damp
    by_b = scale9(-1.0, add9(inside, matmul(damp, hat(get3(u, d)))))
    by_turn, by_spin = add9(hat(spring), matmul(inside, arm)), matmul(damp, arm)
    add_part(Kx, d + 3, d, -1.0, by_turn)
    add_part(Kx, d + 3, d + 3, -1.0, by_b)
    add_part(Ku, d + 3, d, -1.0, by_spin)
    add_part(Ku, d + 3, d + 3, 1.0, damp)
    # torque b x tau
    add_part(Kx, d, d, -1.0, matmul(arm, by_turn))
    add_part(Kx, d, d + 3, -1.0, matmul(arm, by_b))
    add_part(Ku, d, d, -1.0, matmul(arm, by_spin))
    add_part(Ku, d, d + 3, 1.0, matmul(arm, damp))


@sweep
def free_derivatives(system, j, i, x, u, f, Kx, Ku):
    """Spring and damper of the translation of free joint j, which are number i of the passive table.

    With the user's force tau = R^T (-k (p - rest)) - d v, p = x - R c and v = R^T xdot - w x c, the rows feel R tau and
    -c x tau; R tau with R turning is counted before.
    """
    a, co = system.passive.free_data, system.coordinates
    d, q = co.free[j, 1], system.passive.free[i, 0]
    R, o = free_rotation(x, co.free[j, 0]), offset_of(co, j)
    stiff = (a[i, 0], 0.0, 0.0, 0.0, a[i, 1], 0.0, 0.0, 0.0, a[i, 2])
    damp = (a[i, 6], 0.0, 0.0, 0.0, a[i, 7], 0.0, 0.0, 0.0, a[i, 8])
    back, arm = transpose(R), hat(o)
    spring = tmatvec(
        R, (-a[i, 0] * (f.q[q] - a[i, 3]), -a[i, 1] * (f.q[q + 1] - a[i, 4]), -a[i, 2] * (f.q[q + 2] - a[i, 5]))
    )
    # derivatives of tau by x, by the rotation vector, by xdot and by w
    by_x = scale9(-1.0, matmul(back, stiff))
    by_turn = add9(hat(spring), matmul(by_x, matmul(R, arm)))
    by_turn = add9(by_turn, scale9(-1.0, matmul(damp, hat(tmatvec(R, get3(u, d))))))
    by_rate = scale9(-1.0, matmul(damp, back))
    by_spin = scale9(-1.0, matmul(damp, arm))
    # the rows: R tau, and torque -c x tau; both are taken off
    add_part(Kx, d, d, -1.0, matmul(R, by_x))
    add_part(Kx, d, d + 3, -1.0, matmul(R, by_turn))
    add_part(Kx, d + 3, d, 1.0, matmul(arm, by_x))
    add_part(Kx, d + 3, d + 3, 1.0, matmul(arm, by_turn))
    add_part(Ku, d, d, -1.0, matmul(R, by_rate))
    add_part(Ku, d, d + 3, -1.0, matmul(R, by_spin))
    add_part(Ku, d + 3, d, 1.0, matmul(arm, by_rate))
    add_part(Ku, d + 3, d + 3, 1.0, matmul(arm, by_spin))
