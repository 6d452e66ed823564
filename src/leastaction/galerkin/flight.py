"""Galerkin steps of floating mechanisms in the frame that flies along with their centre of mass.

Kinetic energies at the nodes see a common velocity: the path of the centre of mass is not of the degree of the curves.
So a step of a group of floating trees, on which nothing from the world acts but what is uniform, is taken relative to
V = P / M + h a / 2, the mean velocity of its centre of mass, with P the momentum, M the mass and a the acceleration of
gravity and of constant forces. The motion of the centre of mass is known, and replaces that of the relative step:

    p' = p - S . (M V)    relative momenta, of which those of the translation are -h M a / 2
    x+ = x'+ + h V + (h / M) sum_a (1 - c_a) tau^a - (X'+ - X)
    p+ = p'+ + S+ . (M V)
with tau the impulses of the control on the translations, and X the centre of mass. The relative step is symplectic in
what is left after the translations, and the motion of (X, P) is so too: their product is the step.

    joints (k, 3)  first coordinate x and first rate u of the translation of a floating tree, and its group
    axes   (k, 9)  the three axes of that translation in the world, row by row
    group  (n+1,)  group of each row, or -1          below (n+1,)  mass of the subtree of each row
    mass   (m,)    of each group                     fall  (m, 3)  its acceleration
    V      (m, 3)  velocity of its frame             X     (m, 3)  its centre of mass at the start
    c      (n+1, 3) first moments of subtrees
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

from leastaction.galerkin.residual import gravity_on
from leastaction.jit.decorators import either, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, st3
from leastaction.spatial._source.vector import add3, cross, dot3, join
from leastaction.tree.kinematics import inertias, joint_frame, kinematics
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, Floats, Ints


class Flight(NamedTuple):
    """Groups of floating trees, and scratch memory; see the symbol table of this file."""

    joints: Ints
    axes: Floats
    group: Ints
    below: Floats
    mass: Floats
    fall: Floats
    V: Floats
    X: Floats
    c: Floats


@sweep
def first_moments(tree, x, flight, f):
    """flight.c at x, and the tables of f that belong to it."""
    kinematics(tree, x, f.P, f.S)
    inertias(tree, x, f.P, f.M)
    for i in range(tree.rows.shape[0]):
        st3(flight.c, i, 0, ld3(f.M, i, 6) if i > 0 and tree.const[i, MASS] > 0.0 else (0.0, 0.0, 0.0))
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par = tree.rows[i, PARENT]
        st3(flight.c, par, 0, add3(ld3(flight.c, par, 0), ld3(flight.c, i, 0)))


@sweep
def add_momentum(tree, sign, flight, f, p):
    """Add to p the momenta of a group that moves with V, after ``first_moments``."""
    for i in range(1, tree.rows.shape[0]):
        g, d = flight.group[i], tree.rows[i, IU]
        if g < 0:
            continue
        V, c, m = ld3(flight.V, g, 0), ld3(flight.c, i, 0), flight.below[i]
        if tree.rows[i, KIND] == BALL:
            R, o = joint_frame(tree.const, i, f.P, tree.rows[i, PARENT], 0)
            for k in range(3):
                axis = (R[k], R[3 + k], R[6 + k])
                p[d + k] += sign * gravity_on(V, m, c, join(axis, cross(o, axis)))
        else:
            p[d] += sign * gravity_on(V, m, c, ld6(f.S, d, 0))


@kernel
def center(tree, flight, f, g):
    """Centre of mass of group g in the world, after ``first_moments``."""
    c = (0.0, 0.0, 0.0)
    for j in range(flight.joints.shape[0]):
        if flight.joints[j, 2] == g:
            c = add3(c, ld3(flight.c, tree.rates[flight.joints[j, 1], 0], 0))
    m, o = flight.mass[g], ld3(f.P, 0, 9)
    return (c[0] / m - o[0], c[1] / m - o[1], c[2] / m - o[2])


def _stay(flight, tree, h, x, p, f, pr):
    for d in range(p.size):
        pr[d] = p[d]


@either(_stay)
def fly_along(flight, tree, h, x, p, f, pr):
    """pr, the momenta that a step of length h begins with: seen from frames that fly along, or p if nothing flies."""
    first_moments(tree, x, flight, f)
    for g in range(flight.mass.size):
        st3(flight.X, g, 0, center(tree, flight, f, g))
        for e in range(3):
            flight.V[g, e] = 0.5 * h * flight.fall[g, e]
    for j in range(flight.joints.shape[0]):
        d, g = flight.joints[j, 1], flight.joints[j, 2]
        for k in range(3):
            for e in range(3):
                flight.V[g, e] += p[d + k] * flight.axes[j, 3 * k + e] / flight.mass[g]
    for d in range(p.size):
        pr[d] = p[d]
    add_momentum(tree, -1.0, flight, f, pr)


@optional(None)
def relative_guess(flight, nodes, w):
    """A first iterate that was made with the true rates, seen from the frames that fly along."""
    for j in range(flight.joints.shape[0]):
        d, V = flight.joints[j, 1], ld3(flight.V, flight.joints[j, 2], 0)
        for k in range(3):
            along = dot3(ld3(flight.axes, j, 3 * k), V)
            for a in range(1, w.xi.shape[1]):
                w.xi[d + k, a] -= nodes.c[a] * nodes.h * along


@optional(None)
def fly_back(flight, tree, nodes, x, p, w, f):
    """x and p at the end of a step in the world, from those of the relative step; nodes and w of the quadrature."""
    first_moments(tree, x, flight, f)
    add_momentum(tree, 1.0, flight, f, p)
    h = nodes.h
    # what the relative step has to be shifted by, in flight.X
    for g in range(flight.mass.size):
        X = center(tree, flight, f, g)
        for e in range(3):
            flight.X[g, e] += h * flight.V[g, e] - X[e]
    for j in range(flight.joints.shape[0]):
        d, g = flight.joints[j, 1], flight.joints[j, 2]
        for a in range(len(nodes.w)):
            for k in range(3):
                for e in range(3):
                    push = (1.0 - nodes.c[a]) * w.tau[d + k, a] * flight.axes[j, 3 * k + e]
                    flight.X[g, e] += h * push / flight.mass[g]
    for j in range(flight.joints.shape[0]):
        shift = ld3(flight.X, flight.joints[j, 2], 0)
        for k in range(3):
            x[flight.joints[j, 0] + k] += dot3(ld3(flight.axes, j, 3 * k), shift)
