"""Tendons in a maximal step: their springs, dampers and servos at the middle of it, and so implicit.

With the lengths l0, l1 at both ends and g0, g1 their derivatives by the motion of the bodies there (wrenches about the
origin),

    p = spring((l0 + l1)/2) - d (l1 - l0)/h      half of h p acts along g0 at k, and half along g1 at k+1
    dW = -h/2 p' g0 (g1 . eta),    p' = spring'/2 - d/h

with the spring of ``forces/laws/tendon.py``. A servo whose force has a range adds to its input u, which acts in the
joints, only what does not take both beyond it: p + u is cut.

    T (forces, 2 + 12 B)   p, p', g0 and g1 of tendons, by number of the force; B bodies at most
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import give_force, link_frame
from leastaction.forces.laws.tendon import DAMPING, ENTRY, LEAST, MOST, SHARE, spring
from leastaction.jit.calls import call_force
from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.jit.lanes import ld6, st6
from leastaction.maximal.graph import rank_one
from leastaction.maximal.recursion import scaled6
from leastaction.spatial._source.vector import add3, axpy6, cross, join, matvec
from leastaction.tree.layout import TENDON


@optional((0, 0), MEMORY_OPTIONS)
def tendon_room(forces):
    """Shape of T."""
    most, found = 0, False
    for k in range(forces.kind.shape[0]):
        if forces.kind[k, 0] == TENDON:
            found = True
            most = max(most, forces.kind[k, 2])
    return (forces.kind.shape[0], 2 + 12 * most) if found else (0, 0)


@sweep
def measure_tendon(forces, k, P, B, f, o):
    """Length of tendon k at poses P; g of its bodies into T, from column o on."""
    b, count = forces.kind[k, 1], forces.kind[k, 2]
    give_force(forces, k, P, f.V, f.given)
    call_force(forces.address[k, 2], 0.0, f.given, f.result)
    length = f.result[0]
    for c in range(count):
        R, p = link_frame(forces, b + c, P)
        at = 1 + 6 * c
        turn = matvec(R, (f.result[at], f.result[at + 1], f.result[at + 2]))
        push = matvec(R, (f.result[at + 3], f.result[at + 4], f.result[at + 5]))
        st6(B.T, k, o + 6 * c, join(add3(turn, cross(p, push)), push))
    return length


@sweep
def pull_tendon(forces, k, B, h, control, f):
    """Row k of T."""
    own, count = int(forces.data[k, 0]), forces.kind[k, 2]
    l0 = measure_tendon(forces, k, B.P0, B, f, 2)
    l1 = measure_tendon(forces, k, B.P1, B, f, 2 + 6 * count)
    a = forces.numbers
    p, slope = spring(a, own, 0.5 * (l0 + l1))
    p -= a[own + DAMPING] * (l1 - l0) / h
    slope, entry = 0.5 * slope - a[own + DAMPING] / h, int(a[own + ENTRY])
    if entry >= 0:
        u = a[own + SHARE] * control[entry]
        if p + u > a[own + MOST]:
            p, slope = a[own + MOST] - u, 0.0
        elif p + u < a[own + LEAST]:
            p, slope = a[own + LEAST] - u, 0.0
    B.T[k, 0], B.T[k, 1] = p, slope


@kernel
def push_tendon(forces, k, B, o, s, F):
    """Add s times g, from column o of T on, to the wrenches F."""
    b = forces.kind[k, 1]
    for c in range(forces.kind[k, 2]):
        i = forces.bodies[b + c]
        st6(F, i, 0, axpy6(s, ld6(B.T, k, o + 6 * c), ld6(F, i, 0)))


@optional(None)
def tendon_impulses(forces, B, h, control, f):
    """Take half the impulses of tendons off B.W."""
    for k in range(B.T.shape[0]):
        if forces.kind[k, 0] == TENDON:
            pull_tendon(forces, k, B, h, control, f)
            push_tendon(forces, k, B, 2, -0.5 * h * B.T[k, 0], B.W)


@optional(None)
def tendon_blocks(forces, plan, B, E, h):
    """Derivatives of the tendons: terms of rank one on their bodies and between them."""
    for k in range(B.T.shape[0]):
        if forces.kind[k, 0] == TENDON and B.T[k, 1] != 0.0:
            b, count = forces.kind[k, 1], forces.kind[k, 2]
            for c in range(count):
                column = scaled6(0.5 * h * B.T[k, 1], ld6(B.T, k, 2 + 6 * c))
                for e in range(count):
                    i, j = forces.bodies[b + c], forces.bodies[b + e]
                    rank_one(plan, E, B.D, i, j, column, ld6(B.T, k, 2 + 6 * (count + e)))


@optional(None)
def tendon_ends(forces, B, h, control, f, F1):
    """Add the forces of tendons at the end of the step to F1."""
    for k in range(B.T.shape[0]):
        if forces.kind[k, 0] == TENDON:
            pull_tendon(forces, k, B, h, control, f)
            push_tendon(forces, k, B, 2 + 6 * forces.kind[k, 2], B.T[k, 0], F1)
