"""Derivatives of forces on bodies at the nodes of a step, for the Newton direction (Fan et al. 2018: D1F, D2F).

Seen in its own frame, the impulse on a body varies by K eta + C dv, with eta the spatial variation of its pose and dv
that of its twist. A force law in link axes with derivatives K_b, D_b has K = Ad^-T K_b Ad^-1 and the same for C. With
L = [-p^, 1] of a point p, a force f there that is fixed in the world has K = L^T f^ [1 0].

    KC   (n+1, 72 s)  K of nodes 0..s-1 and then C of them, by rows, already times w_a h

Of a force on several bodies that move, only the turning of the bodies under it is here; ``galerkin.couplings`` has the
rest. A potential of the user without its second derivative counts as constant.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import give_force, given_force, link_frame, row3, world_point
from leastaction.jit.calls import call_force
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld3
from leastaction.spatial._source.force_laws import E2, point_spring
from leastaction.spatial._source.mrp import add9, scale9, spread
from leastaction.spatial._source.scalar import sqrt
from leastaction.spatial._source.vector import (
    add3,
    axpy3,
    cross,
    dot3,
    matmul,
    matvec,
    scale3,
    sub3,
    transpose,
)
from leastaction.tree.layout import POINT_FORCE, POINT_SPRING, WRENCH


@kernel
def outer(a, b):
    """``a b^T``, nine numbers."""
    return (
        a[0] * b[0], a[0] * b[1], a[0] * b[2],
        a[1] * b[0], a[1] * b[1], a[1] * b[2],
        a[2] * b[0], a[2] * b[1], a[2] * b[2],
    )  # fmt: skip


@kernel
def spring_derivatives(r, w, k, d, l0):
    """Derivatives of the force on end a of a spring by r = pb - pa and by its rate w."""
    l2 = dot3(r, r) + E2
    l = sqrt(l2)
    rate = dot3(r, w)
    c = k * (1.0 - l0 / l) + d * rate / l2
    dc = axpy3(d / l2, w, scale3(k * l0 / (l2 * l) - 2.0 * d * rate / (l2 * l2), r))
    return add9(spread(c, (0.0, 0.0, 0.0)), outer(r, dc)), scale9(d / l2, outer(r, r))


@kernel
def add_quarter(K, i, o, r, c, M):
    """Add nine numbers to the 6x6 matrix at column o of row i of a table, at its row r and column c."""
    for a in range(3):
        for b in range(3):
            K[i, o + 6 * (r + a) + c + b] += M[3 * a + b]


@kernel
def add_arm(K, i, o, p, by_turn, by_shift):
    """Add L^T [by_turn, by_shift]: a force at p that varies by by_turn theta + by_shift rho in the body's frame."""
    arm = spread(0.0, p)
    add_quarter(K, i, o, 0, 0, matmul(arm, by_turn))
    add_quarter(K, i, o, 0, 3, matmul(arm, by_shift))
    add_quarter(K, i, o, 3, 0, by_turn)
    add_quarter(K, i, o, 3, 3, by_shift)


@sweep
def spring_end(KC, i, k, c, wh, p, v, f, P, Q):
    """One end of a spring, force f (on this end) at p with velocity v; P, Q by displacement and rate of this end."""
    # df = -P L eta - Q L dv - Q (theta x v), and the frame turns: - theta x f
    hat = spread(0.0, p)
    turning = add9(matmul(Q, spread(0.0, v)), spread(0.0, f))
    add_arm(KC, i, k, p, scale9(wh, add9(matmul(P, hat), turning)), scale9(-wh, P))
    add_arm(KC, i, c, p, scale9(wh, matmul(Q, hat)), scale9(-wh, Q))


@sweep
def turned_derivatives(table, b, P, D, k, n, K, i, o, wh):
    """Add wh Ad^-T D_b Ad^-1 of the k-th of n bodies; D starts at the 6n x 6n matrix D_b in link axes."""
    R, p = link_frame(table, b + k, P)
    hat, back = spread(0.0, p), transpose(R)
    # Ad^-1 = [R^T, 0; -R^T p^, R^T]
    for half in range(2):
        top = block_of(D, k, n, 3 * half, 0)
        right = block_of(D, k, n, 3 * half, 3)
        by_shift = scale9(wh, matmul(R, matmul(right, back)))
        by_turn = add9(scale9(wh, matmul(R, matmul(top, back))), scale9(-1.0, matmul(by_shift, hat)))
        # Ad^-T = [R, p^ R; 0, R]: torque rows come in as they are, force rows with their arm
        if half == 0:
            add_quarter(K, i, o, 0, 0, by_turn)
            add_quarter(K, i, o, 0, 3, by_shift)
        else:
            add_arm(K, i, o, p, by_turn, by_shift)


@kernel
def block_of(D, k, n, r, c):
    """3x3 block at row r and column c of the k-th diagonal 6x6 block of a 6n x 6n matrix, by rows in a vector."""
    w = 6 * n
    q = (6 * k + r) * w + 6 * k + c
    return (
        D[q], D[q + 1], D[q + 2],
        D[q + w], D[q + w + 1], D[q + w + 2],
        D[q + 2 * w], D[q + 2 * w + 1], D[q + 2 * w + 2],
    )  # fmt: skip


@kernel
def moving(forces, b, count):
    """How many bodies of a force are not fixed to the world."""
    n = 0
    for c in range(b, b + count):
        if forces.bodies[c] > 0:
            n += 1
    return n


@optional(None)
def force_derivatives(forces, t, wh, P, V, KC, o, o2, given, result, square):
    """Add the derivatives of all forces at one node to the table KC: K from column o on, C from o2 on."""
    data = forces.data
    for k in range(forces.kind.shape[0]):
        kind, b, count = forces.kind[k, 0], forces.kind[k, 1], forces.kind[k, 2]
        i = forces.bodies[b]
        if kind == POINT_SPRING:
            j = forces.bodies[b + 1]
            pa, pb = world_point(P, i, row3(data, k, 0)), world_point(P, j, row3(data, k, 3))
            va = add3(ld3(V, i, 3), cross(ld3(V, i, 0), pa))
            vb = add3(ld3(V, j, 3), cross(ld3(V, j, 0), pb))
            f = point_spring(pa, va, pb, vb, data[k, 6], data[k, 7], data[k, 8])
            zero = spread(0.0, (0.0, 0.0, 0.0))
            by_r, by_w = zero, zero
            if i == 0 or j == 0:
                by_r, by_w = spring_derivatives(sub3(pb, pa), sub3(vb, va), data[k, 6], data[k, 7], data[k, 8])
            spring_end(KC, i, o, o2, wh, pa, va, f, by_r, by_w)
            spring_end(KC, j, o, o2, wh, pb, vb, (-f[0], -f[1], -f[2]), by_r, by_w)
        elif kind == POINT_FORCE:
            # in link axes nothing changes; in world axes the body turns under the force
            if data[k, 9] == 0.0:
                R, p = link_frame(forces, b, P)
                given_force(forces, k, t, result)
                f = scale3(wh, (result[0], result[1], result[2]))
                point = add3(p, matvec(R, row3(data, k, 6)))
                add_arm(KC, i, o, point, spread(0.0, f), spread(0.0, (0.0, 0.0, 0.0)))
        elif kind == WRENCH:
            if data[k, 9] == 0.0:
                R, p = link_frame(forces, b, P)
                given_force(forces, k, t, result)
                add_quarter(KC, i, o, 0, 0, spread(0.0, scale3(wh, (result[0], result[1], result[2]))))
                f = scale3(wh, (result[3], result[4], result[5]))
                add_arm(KC, i, o, p, spread(0.0, f), spread(0.0, (0.0, 0.0, 0.0)))
        elif forces.address[k, 1] != 0 and moving(forces, b, count) < 2:
            give_force(forces, k, P, V, given)
            call_force(forces.address[k, 1], t, given, square)
            for c in range(count):
                j, second = forces.bodies[b + c], square[36 * count * count :]
                turned_derivatives(forces, b, P, square, c, count, KC, j, o, wh)
                turned_derivatives(forces, b, P, second, c, count, KC, j, o2, wh)
