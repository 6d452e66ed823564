"""Smooth impulses of a step of ``Maximal``: in the joints, on bodies, and their derivatives.

Half of an impulse acts at each end of the step. Springs in joints (``maximal.springs``) and between points are taken
at the midpoint, dampers at the mean rate, so both are implicit and stiff ones are stable; all other forces are taken at
the ends. For a conservative force each choice is the gradient of a discrete potential.

    xi   (nu,)     displacement of the joints over the step; xi / h is the mean rate
    V    (n+1, 12) mean twist of each row over the step, with its spatial linear part at the origin
    N    (3, 3)    derivative of the force between two points by their relative displacement at k+1
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import other_forces, row3, world_point
from leastaction.forces.derivatives import spring_derivatives
from leastaction.forces.joints import screw_forces
from leastaction.jit.calls import call_law
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, ld9, number, st, st1, st6
from leastaction.maximal.bodies import get4, shift_of
from leastaction.maximal.springs import add_block_to, ball_slope, between, couple, middle_forces
from leastaction.maximal.tendons import tendon_blocks, tendon_ends
from leastaction.spatial._source.force_laws import point_spring
from leastaction.spatial._source.mrp import add9, outer, scale9, spread
from leastaction.spatial._source.scalar import pick
from leastaction.spatial._source.so3 import log, quat_conj, quat_mul
from leastaction.spatial._source.vector import (
    add3,
    add6,
    axpy6,
    cross,
    join,
    matmul,
    matvec,
    scale3,
    sub3,
    transpose,
)
from leastaction.tree.coordinates import forces_in, get3, positions_out, put3, rates_out
from leastaction.tree.layout import BALL, COM, IU, IX, KIND, MASS, POINT_SPRING, TENDON


# --- in the joints --------------------------------------------------------------------------------------------------
@kernel
def rotor(tree, B, x, i, d, h, end):
    """Momentum of the rotors of a ball at one end of the step, in child axes there, added to B.c or ``end``.

    The discrete Lagrangian is sum_j a_j xi_j^2 / (2 h) with xi = 2 s, (c, s) the relative quaternion.
    """
    k = tree.rows[i, IX]
    q = quat_mul(quat_conj(get4(x, k)), get4(B.x1, k))
    one = number(x, 1.0)
    sign = pick(q[0], 0.0, one, -one)
    c, s = sign * q[0], (sign * q[1], sign * q[2], sign * q[3])
    a = (2.0 / h * tree.armature[d], 2.0 / h * tree.armature[d + 1], 2.0 / h * tree.armature[d + 2])
    m = (a[0] * s[0], a[1] * s[1], a[2] * s[2])
    t = cross(s, m)
    if end is None:
        put3(B.c, d, add3(get3(B.c, d), add3(scale3(c, m), t)))
    else:
        put3(end, d, add3(get3(end, d), sub3(scale3(c, m), t)))
    if end is None:
        # d(c m + s x m) by dq, with ds = (c dq + s x dq)/2 and dc = -s . dq / 2
        turn, turned = spread(0.5 * c, scale3(0.5, s)), scale3(-1.0, m)
        by_s = add9(
            (c * a[0], 0.0, 0.0, 0.0, c * a[1], 0.0, 0.0, 0.0, c * a[2]),
            add9(matmul(spread(0.0, s), (a[0], 0.0, 0.0, 0.0, a[1], 0.0, 0.0, 0.0, a[2])), spread(0.0, turned)),
        )
        M = matmul(by_s, turn)
        M = add9(M, scale9(-0.5, outer(m, s)))
        for r in range(3):
            for e in range(3):
                st(B.K, d + r, e, ld(B.K, d + r, e) + M[3 * r + e])


@sweep
def joint_terms(system, B, x, pc, control, active, rate_of, h, f, ua):
    """B.xi, and B.c and B.K of the start of the step: rotors, minus momenta pc, springs, dampers, control."""
    tree = system.tree
    shift_of(tree, x, B.x1, B.xi)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            for e in range(d, d + 3):
                st1(B.c, e, -ld1(pc, e))
                for j in range(3):
                    st(B.K, e, j, number(pc, 0.0))
            if tree.armature[d] > 0.0 or tree.armature[d + 1] > 0.0 or tree.armature[d + 2] > 0.0:
                rotor(tree, B, x, i, d, h, None)
        else:
            st1(B.c, d, tree.armature[d] * ld1(B.xi, d) / h - ld1(pc, d))
            st(B.K, d, 0, number(pc, tree.armature[d] / h))
    if active:
        joint_forces_at(system, B, x, False, control, h, f, ua)
        for d in range(tree.rates.shape[0]):
            st1(B.c, d, ld1(B.c, d) - 0.5 * h * ld1(f.f, d))
        joint_derivatives(system, B, h, f, rate_of)


@sweep
def joint_forces_at(system, B, x, at_end, control, h, f, ua):
    """f.f: forces in the joints at the start x of the step or at its end; f.q has coordinates and positions halfway."""
    c, p = system.coordinates, system.passive
    here, there = (B.x1, x) if at_end else (x, B.x1)
    for d in range(c.v.size):
        st1(ua, d, ld1(B.xi, d) / h)
        st1(f.tau, d, ld1(control, d))
    positions_out(c, here, f.q)
    rates_out(c, here, ua, f.v)
    # single coordinates: from this end halfway to the other
    to_middle = -0.5 * h if at_end else 0.5 * h
    for j in range(p.screw.shape[0]):
        st1(f.q, p.screw[j, 0], ld1(f.q, p.screw[j, 0]) + to_middle * ld1(f.v, p.screw[j, 1]))
    screw_forces(p, f.q, f.v, f.tau)
    if p.ball.shape[0] > 0 or p.free.shape[0] > 0:
        positions_out(c, there, B.q)
        middle_forces(p, B.q, f.q, f.v, f.tau)
    forces_in(c, here, f.tau, f.f)


@sweep
def joint_derivatives(system, B, h, f, rate_of):
    """Add the derivatives of springs and dampers to B.K; for the translation of free joints see ``free_blocks``."""
    p = system.passive
    for j in range(p.screw.shape[0]):
        d = rate_of[p.screw[j, 1]]
        K = ld(B.K, d, 0) + (0.25 * h * p.spring[j, 0] + 0.5 * p.spring[j, 2])
        if p.law[j, 3] != 0:
            K = K - 0.25 * h * call_law(p.law[j, 3], ld1(f.q, p.screw[j, 0]))
        if p.law[j, 4] != 0:
            K = K - 0.5 * call_law(p.law[j, 4], ld1(f.v, p.screw[j, 1]))
        st(B.K, d, 0, K)
    for j in range(p.ball.shape[0]):
        d = rate_of[p.ball[j, 1]]
        K = ball_slope(p, j, f.q, B.q, h)
        for r in range(3):
            for e in range(3):
                st(B.K, d + r, e, ld(B.K, d + r, e) + K[3 * r + e])


@sweep
def joint_end(system, B, x, control, active, h, f, ua, c1):
    """c1 (nu,): rotors and half the impulses in the joints at the end of the step."""
    tree = system.tree
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            for e in range(d, d + 3):
                st1(c1, e, number(c1, 0.0))
            if tree.armature[d] > 0.0 or tree.armature[d + 1] > 0.0 or tree.armature[d + 2] > 0.0:
                rotor(tree, B, x, i, d, h, c1)
        else:
            st1(c1, d, tree.armature[d] * ld1(B.xi, d) / h)
    if active:
        joint_forces_at(system, B, x, True, control, h, f, ua)
        for d in range(tree.rates.shape[0]):
            st1(c1, d, ld1(c1, d) + 0.5 * h * ld1(f.f, d))


# --- on bodies ------------------------------------------------------------------------------------------------------
@sweep
def mean_twists(tree, B, h, middle, V):
    """V: mean twist of each row over the step; its linear part about the origin is that of the row at k, or halfway."""
    for i in range(1, tree.rows.shape[0]):
        w = scale3(1.0 / h, log(matmul(ld9(B.P1, i, 0), transpose(ld9(B.P0, i, 0)))))
        p0, p1 = ld3(B.P0, i, 9), ld3(B.P1, i, 9)
        at = scale3(0.5, add3(p0, p1)) if middle else p0
        st6(V, i, 0, join(w, sub3(scale3(1.0 / h, sub3(p1, p0)), cross(w, at))))


@optional(None)
def start_forces(forces, system, t, B, h, f):
    """Add all forces on bodies but springs to B.F0, with the mean twists; B.F0 holds gravity already."""
    tree = system.tree
    if only_springs(forces):
        return
    mean_twists(tree, B, h, False, f.V)
    forces_at(forces, system, t, B.P0, f, B.F0)


@kernel
def only_springs(forces):
    """Whether no force on bodies is anything but a spring between points or a tendon."""
    found = False
    for k in range(forces.kind.shape[0]):
        found = found or not (forces.kind[k, 0] == POINT_SPRING or forces.kind[k, 0] == TENDON)
    return not found


@optional(None)
def forces_at(forces, system, t, P, f, F):
    """F: gravity and the forces on bodies but springs, at poses P and the twists in f.V."""
    tree = system.tree
    for i in range(tree.rows.shape[0]):
        st6(f.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    other_forces(forces, t, P, f.V, f.F, f.given, f.result)
    weights(tree, P, F)
    for i in range(1, tree.rows.shape[0]):
        st6(F, i, 0, axpy6(-1.0, ld6(f.F, i, 0), ld6(F, i, 0)))


@sweep
def weights(tree, P, F):
    """F: weight of every body at poses P, about the origin."""
    C, g = tree.const, (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for i in range(1, tree.rows.shape[0]):
        m = C[i, MASS]
        x = add3(ld3(P, i, 9), matvec(ld9(P, i, 0), (C[i, COM], C[i, COM + 1], C[i, COM + 2])))
        f = scale3(m, g)
        st6(F, i, 0, join(cross(x, f), f))


@kernel
def spring_at_middle(forces, k, B, h):
    """Rows, points at both ends of the step, force on the first body and N of spring k."""
    b = forces.kind[k, 1]
    i, j, data = forces.bodies[b], forces.bodies[b + 1], forces.data
    a0, a1 = world_point(B.P0, i, row3(data, k, 0)), world_point(B.P1, i, row3(data, k, 0))
    b0, b1 = world_point(B.P0, j, row3(data, k, 3)), world_point(B.P1, j, row3(data, k, 3))
    pa, pb = scale3(0.5, add3(a0, a1)), scale3(0.5, add3(b0, b1))
    va, vb = scale3(1.0 / h, sub3(a1, a0)), scale3(1.0 / h, sub3(b1, b0))
    f = point_spring(pa, va, pb, vb, data[k, 6], data[k, 7], data[k, 8])
    by_r, by_w = spring_derivatives(sub3(pb, pa), sub3(vb, va), data[k, 6], data[k, 7], data[k, 8])
    return i, j, a0, a1, b0, b1, f, add9(scale9(0.5, by_r), scale9(1.0 / h, by_w))


@optional(None)
def spring_impulses(forces, B, h):
    """Take half the impulses of springs between points off B.W."""
    for k in range(forces.kind.shape[0]):
        if forces.kind[k, 0] == POINT_SPRING:
            i, j, a0, _, b0, _, f, _ = spring_at_middle(forces, k, B, h)
            f = scale3(0.5 * h, f)
            st6(B.W, i, 0, axpy6(-1.0, join(cross(a0, f), f), ld6(B.W, i, 0)))
            st6(B.W, j, 0, add6(join(cross(b0, f), f), ld6(B.W, j, 0)))


@optional(None)
def spring_blocks(forces, plan, B, E, h):
    """Derivatives of springs between points and tendons: on the diagonal, and between bodies that both move."""
    for k in range(forces.kind.shape[0]):
        if forces.kind[k, 0] == POINT_SPRING:
            i, j, a0, a1, b0, b1, _, N = spring_at_middle(forces, k, B, h)
            N = scale9(0.5 * h, N)
            minus = scale9(-1.0, N)
            if i > 0:
                add_block_to(B.D, i, between(N, a0, a1))
            if j > 0:
                add_block_to(B.D, j, between(N, b0, b1))
            couple(plan, E, B.D, i, j, between(minus, a0, b1))
            couple(plan, E, B.D, j, i, between(minus, b0, a1))
    tendon_blocks(forces, plan, B, E, h)


@optional(None)
def end_forces(forces, system, t, B, h, control, f, F1):
    """Add all forces at the end of the step to F1, springs and tendons included; it holds gravity already."""
    tree = system.tree
    if not only_springs(forces):
        mean_twists(tree, B, h, False, f.V)
        # the same twist, seen at the end: its linear part belongs to the row at k+1
        for i in range(1, tree.rows.shape[0]):
            w, p0, p1 = ld3(f.V, i, 0), ld3(B.P0, i, 9), ld3(B.P1, i, 9)
            st6(f.V, i, 0, join(w, sub3(ld3(f.V, i, 3), cross(w, sub3(p1, p0)))))
        forces_at(forces, system, t, B.P1, f, F1)
    for k in range(forces.kind.shape[0]):
        if forces.kind[k, 0] == POINT_SPRING:
            i, j, _, a1, _, b1, g, _ = spring_at_middle(forces, k, B, h)
            st6(F1, i, 0, add6(join(cross(a1, g), g), ld6(F1, i, 0)))
            st6(F1, j, 0, axpy6(-1.0, join(cross(b1, g), g), ld6(F1, j, 0)))
    tendon_ends(forces, B, h, control, f, F1)
