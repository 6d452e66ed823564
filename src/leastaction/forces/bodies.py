"""Forces on bodies: springs between points, point forces, wrenches, forces of the user.

Poses P and twists V are those of ``tree/kinematics.py``, about the origin o = -P[0]. A force is taken off F, the force
that each row needs.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.calls import call_force
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st6
from leastaction.spatial._source.force_laws import point_spring, spring_energy
from leastaction.spatial._source.vector import add3, ang, cross, join, lin, matmul, matvec, sub3, sub6, tmatvec
from leastaction.tree.layout import POINT_FORCE, POINT_SPRING, TENDON, USER_FORCE, WRENCH


@kernel
def row3(a, i, k):
    """Three constants."""
    return (a[i, k], a[i, k + 1], a[i, k + 2])


@kernel
def row9(a, i, k):
    """Nine constants."""
    return (
        a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3], a[i, k + 4], a[i, k + 5],
        a[i, k + 6], a[i, k + 7], a[i, k + 8],
    )  # fmt: skip


@kernel
def world_point(P, i, point):
    """A point fixed in row i, about the origin."""
    return add3(ld3(P, i, 9), matvec(ld9(P, i, 0), point))


@kernel
def push(F, i, point, f):
    """A force f at a point of row i."""
    st6(F, i, 0, sub6(ld6(F, i, 0), join(cross(point, f), f)))


@kernel
def link_frame(table, b, P):
    """Rotation and position of the link frame of the b-th body of a table of forces or constraints."""
    i = table.bodies[b]
    R = ld9(P, i, 0)
    return matmul(R, row9(table.frames, b, 0)), world_point(P, i, row3(table.frames, b, 9))


@kernel
def given_force(forces, k, t, out):
    """Numbers of a prescribed force: constant, or from the user's function of time."""
    if forces.address[k, 0] != 0:
        call_force(forces.address[k, 0], t, out, out)
    else:
        for c in range(6):
            out[c] = forces.data[k, c]


@optional(None)
def body_forces(forces, t, P, V, F, given, result):
    """Take all forces off F. ``given`` and ``result`` are scratch vectors for the user's functions."""
    data = forces.data
    for k in range(forces.kind.shape[0]):
        if forces.kind[k, 0] == POINT_SPRING:
            b = forces.kind[k, 1]
            i, j = forces.bodies[b], forces.bodies[b + 1]
            pa, pb = world_point(P, i, row3(data, k, 0)), world_point(P, j, row3(data, k, 3))
            va = add3(ld3(V, i, 3), cross(ld3(V, i, 0), pa))
            vb = add3(ld3(V, j, 3), cross(ld3(V, j, 0), pb))
            f = point_spring(pa, va, pb, vb, data[k, 6], data[k, 7], data[k, 8])
            push(F, i, pa, f)
            push(F, j, pb, (-f[0], -f[1], -f[2]))
        elif forces.kind[k, 0] == TENDON:
            user_force(forces, k, forces.kind[k, 1], forces.kind[k, 2], t, P, V, F, given, result)
    other_forces(forces, t, P, V, F, given, result)


@optional(None)
def other_forces(forces, t, P, V, F, given, result):
    """Take all forces but springs between points and tendons off F."""
    data = forces.data
    for k in range(forces.kind.shape[0]):
        kind, b, count = forces.kind[k, 0], forces.kind[k, 1], forces.kind[k, 2]
        if kind == POINT_FORCE:
            # data: force (3), unused (3), point in the link frame (3), 1 if in link axes
            R, p = link_frame(forces, b, P)
            given_force(forces, k, t, result)
            f = (result[0], result[1], result[2])
            if data[k, 9] != 0.0:
                f = matvec(R, f)
            push(F, forces.bodies[b], add3(p, matvec(R, row3(data, k, 6))), f)
        elif kind == WRENCH:
            R, p = link_frame(forces, b, P)
            given_force(forces, k, t, result)
            torque, f = (result[0], result[1], result[2]), (result[3], result[4], result[5])
            if data[k, 9] != 0.0:
                torque, f = matvec(R, torque), matvec(R, f)
            i = forces.bodies[b]
            st6(F, i, 0, sub6(ld6(F, i, 0), join(add3(torque, cross(p, f)), f)))
        elif kind == USER_FORCE:
            user_force(forces, k, b, count, t, P, V, F, given, result)


@sweep
def user_force(forces, k, b, count, t, P, V, F, given, result):
    """A force by a function on ``count`` bodies: link poses in the world and body twists in, body wrenches out."""
    give_force(forces, k, P, V, given)
    call_force(forces.address[k, 0], t, given, result)
    for c in range(count):
        i = forces.bodies[b + c]
        R, p = link_frame(forces, b + c, P)
        torque = matvec(R, (result[6 * c], result[6 * c + 1], result[6 * c + 2]))
        f = matvec(R, (result[6 * c + 3], result[6 * c + 4], result[6 * c + 5]))
        st6(F, i, 0, sub6(ld6(F, i, 0), join(add3(torque, cross(p, f)), f)))


@sweep
def give_bodies(table, b, count, P, V, given):
    """What a function of the user gets: rotation, position and twist (18 numbers) of each body from the b-th on."""
    for c in range(count):
        R, p = link_frame(table, b + c, P)
        v = ld6(V, table.bodies[b + c], 0)
        for e in range(9):
            given[18 * c + e] = R[e]
        x = sub3(p, ld3(P, 0, 9))
        w, s = tmatvec(R, ang(v)), tmatvec(R, add3(lin(v), cross(ang(v), p)))
        for e in range(3):
            given[18 * c + 9 + e] = x[e]
            given[18 * c + 12 + e] = w[e]
            given[18 * c + 15 + e] = s[e]


@sweep
def give_force(forces, k, P, V, given):
    """What the function of force k gets: 18 numbers of each body, then its own numbers; of a tendon its own first."""
    b, count = forces.kind[k, 1], forces.kind[k, 2]
    first, size = int(forces.data[k, 0]), int(forces.data[k, 1])
    at, behind = (0, size) if forces.kind[k, 0] == TENDON else (18 * count, 0)
    give_bodies(forces, b, count, P, V, given[behind:])
    for e in range(size):
        given[at + e] = forces.numbers[first + e]


@optional(0.0)
def force_energy(forces, P):
    """Potential energy of the springs between points; the user's potentials are asked in Python."""
    e = 0.0
    for k in range(forces.kind.shape[0]):
        if forces.kind[k, 0] == POINT_SPRING:
            b = forces.kind[k, 1]
            pa = world_point(P, forces.bodies[b], row3(forces.data, k, 0))
            pb = world_point(P, forces.bodies[b + 1], row3(forces.data, k, 3))
            e += spring_energy(pa, pb, forces.data[k, 6], forces.data[k, 8])
    return e


@optional(1)
def most_bodies(forces):
    """Largest number of bodies that one force touches."""
    most = 1
    for k in range(forces.kind.shape[0]):
        most = max(most, forces.kind[k, 2])
    return most


@optional(18)
def given_size(forces):
    """Room for what the function of any one force gets."""
    most = 18
    for k in range(forces.kind.shape[0]):
        most = max(most, 18 * forces.kind[k, 2] + (int(forces.data[k, 1]) if forces.kind[k, 0] >= USER_FORCE else 0))
    return most


@optional(False)
def has_forces(forces):
    """Whether forces act on bodies."""
    return forces.kind.shape[0] > 0
