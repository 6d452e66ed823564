"""Dry friction in joints in a step of ``Maximal``: one force tau for each coordinate that has it, |tau| <= F.

With d the slip of the coordinate in the step, friction is the force of largest dissipation within its bound,

    d + l1 - l2 = 0        l1 (F - tau) = l2 (F + tau) = kappa

so tau = -F where it slips forwards, F where it slips backwards, and what sticks creeps by 2 kappa tau/(F^2 - tau^2) a
step. As contacts do, friction acts at the start of a step and once more at its end, in the velocities alone
(``maximal.arrival``), where d is h times a rate; F is half of the friction of the joint, and what sticks has no rate.
Solved for the force, with a = F - tau and b = F + tau,

    dtau = -(d + dd + kappa/a - kappa/b)/w        w = l1/a + l2/b

so a row is a number on the diagonal of its coordinate, or a row of the block of a ball. A row takes as much of a
direction as keeps it inside, whatever the others take; then the larger one of l1 and l2 follows the slip. Rows begin
where the last step ended, next to their own kappa, which is F times a length: that of the solver, but not below what
rounding leaves of a slip.

    where (nd, 3), F (nd,)    rate; first rate of its ball, or -1; coordinate; half of the friction
    lengths (2,)              largest of kappa/F; the same for each second of a step
    V (nd, 4), dV, old        l1, a, l2, b; and their directions; those of the last step, or of the other end
    tau, slip, kappa, aim     each (nd,); aim: product that is aimed at
    J (nd, 3)                 change of the slip by the motion of its coordinate, or of its ball
    end (nd,)                 tau at the end of the step, for reports
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional
from leastaction.tree.layout import Floats, Ints

# Rounding of a slip, over its coordinate; products to begin with, over those at the end, after a step and without one.
ROUNDING, WARM, COLD = 2.0e-15, 10.0, 1.0e4

# How far to its bound a force may go in one iteration.
SHORT = 0.99


class Dry(NamedTuple):
    """Coordinates with dry friction; see the symbol table of this file."""

    where: Ints
    F: Floats
    lengths: Floats


class DryRows(NamedTuple):
    """Scratch memory of dry friction; see the symbol table of this file."""

    V: Floats
    dV: Floats
    old: Floats
    tau: Floats
    slip: Floats
    kappa: Floats
    aim: Floats
    J: Floats
    end: Floats


@optional(None, MEMORY_OPTIONS)
def make_dry(dry, V):
    """Scratch memory around the variables V of the last step."""
    n = dry.F.size
    return DryRows(
        V, np.zeros((n, 4)), np.zeros((n, 4)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((n, 3)),
        np.zeros(n),
    )  # fmt: skip


# --- one row --------------------------------------------------------------------------------------------------------
@kernel
def dry_force(dry, D, k):
    """tau of row k, from the smaller one of a and b."""
    return D.V[k, 3] - dry.F[k] if D.V[k, 3] < D.V[k, 1] else dry.F[k] - D.V[k, 1]


@kernel
def dry_width(D, k):
    """w of row k."""
    return D.V[k, 0] / D.V[k, 1] + D.V[k, 2] / D.V[k, 3]


@kernel
def dry_change(dry, D, k, dq):
    """Change of the slip of row k along dq."""
    first = dry.where[k, 1]
    if first < 0:
        return D.J[k, 0] * dq[dry.where[k, 0]]
    return D.J[k, 0] * dq[first] + D.J[k, 1] * dq[first + 1] + D.J[k, 2] * dq[first + 2]


@kernel
def within(alpha, value, change):
    """A positive number after a part alpha of its change, or after as much of it as leaves some."""
    return value + min(alpha, SHORT * value / -change) * change if change < 0.0 else value + alpha * change


@kernel
def follow_slip(D, k):
    """The larger one of l1 and l2 follows the slip, on d + l1 = l2."""
    if D.slip[k] >= 0.0:
        D.V[k, 2] = D.V[k, 0] + D.slip[k]
    else:
        D.V[k, 0] = D.V[k, 2] - D.slip[k]


# --- a step ---------------------------------------------------------------------------------------------------------
@optional(None)
def dry_at_start(dry, D, x, h):
    """Products of a step that begins at coordinates x."""
    length = 0.5 * min(dry.lengths[0], dry.lengths[1] * h)
    for k in range(dry.F.size):
        at = 1.0 if dry.where[k, 1] >= 0 else abs(x[dry.where[k, 2]])
        D.kappa[k] = dry.F[k] * max(length, ROUNDING * at)


@optional(None)
def keep_dry(dry, D):
    """Remember all variables."""
    for k in range(dry.F.size):
        for e in range(4):
            D.old[k, e] = D.V[k, e]


@optional(None)
def take_back_dry(dry, D):
    """The variables that were remembered."""
    for k in range(dry.F.size):
        for e in range(4):
            D.V[k, e] = D.old[k, e]


@optional(None)
def swap_dry(dry, D):
    """The variables that were remembered, and the present ones to remember."""
    for k in range(dry.F.size):
        for e in range(4):
            D.V[k, e], D.old[k, e] = D.old[k, e], D.V[k, e]
        D.tau[k] = dry_force(dry, D, k)


@optional(None)
def start_dry(dry, D, cold):
    """First variables: from the last step, or none of it (cold)."""
    for k in range(dry.F.size):
        kappa = WARM * D.kappa[k]
        if cold:
            D.V[k, 1], D.V[k, 3], kappa = dry.F[k], dry.F[k], COLD * D.kappa[k]
        D.V[k, 0], D.V[k, 2] = kappa / D.V[k, 1], kappa / D.V[k, 3]
        D.tau[k] = dry_force(dry, D, k)
        follow_slip(D, k)


@optional(None)
def dry_slips(dry, D, xi):
    """Slips, and how they change, from the displacements xi (nu,) of the step."""
    for k in range(dry.F.size):
        d, first = dry.where[k, 0], dry.where[k, 1]
        D.slip[k] = xi[d]
        if first < 0:
            D.J[k, 0] = 1.0
        else:
            # with m = xi/4, a turn dq behind: (1 - m.m) dq + 2 m x dq + 2 m (m.dq)
            a, b, c, e = 0.25 * xi[first], 0.25 * xi[first + 1], 0.25 * xi[first + 2], d - first
            own, m = 1.0 - a * a - b * b - c * c, a if e == 0 else b if e == 1 else c
            D.J[k, 0], D.J[k, 1], D.J[k, 2] = 2.0 * m * a, 2.0 * m * b, 2.0 * m * c
            D.J[k, e] += own
            D.J[k, (e + 1) % 3] -= 2.0 * (c if e == 0 else a if e == 1 else b)
            D.J[k, (e + 2) % 3] += 2.0 * (b if e == 0 else c if e == 1 else a)


@optional(None)
def rates_for_slips(dry, D, xi):
    """The same at the end of a step, where xi is h times the rates."""
    for k in range(dry.F.size):
        d, first = dry.where[k, 0], dry.where[k, 1]
        D.slip[k] = xi[d]
        for e in range(3):
            D.J[k, e] = 1.0 if first < 0 or d == first + e else 0.0


@optional(None)
def settle_dry(dry, D):
    """l1 and l2 after a motion."""
    for k in range(dry.F.size):
        follow_slip(D, k)


@optional(None)
def dry_impulses(dry, D, h, c):
    """Impulses of friction, taken off c (nu,)."""
    for k in range(dry.F.size):
        c[dry.where[k, 0]] -= h * D.tau[k]


@optional(None)
def aim_dry(dry, D, sigma):
    """Products to aim at: a part sigma^3 of those of each row, as it may run ahead, and its own kappa at least."""
    part = sigma * sigma * sigma
    for k in range(dry.F.size):
        mean = 0.5 * (D.V[k, 0] * D.V[k, 1] + D.V[k, 2] * D.V[k, 3])
        D.aim[k] = max(D.kappa[k], part * mean)


@optional(0.0)
def dry_excess(dry, D):
    """The largest product over the one that it ends at."""
    most = 0.0
    for k in range(dry.F.size):
        most = max(most, max(D.V[k, 0] * D.V[k, 1], D.V[k, 2] * D.V[k, 3]) / D.kappa[k])
    return most


@optional(True)
def dry_is_close(dry, D, close):
    """Whether all products are those that they end at, but for a part ``close``."""
    good = True
    for k in range(dry.F.size):
        most = close * D.kappa[k]
        good = good and abs(D.V[k, 0] * D.V[k, 1] - D.kappa[k]) <= most
        good = good and abs(D.V[k, 2] * D.V[k, 3] - D.kappa[k]) <= most
    return good


@optional(None)
def dry_blocks(dry, D, h, B):
    """Eliminated rows: into B.c and B.K."""
    for k in range(dry.F.size):
        d, slope = dry.where[k, 0], h / dry_width(D, k)
        B.c[d] += slope * (D.slip[k] + D.aim[k] / D.V[k, 1] - D.aim[k] / D.V[k, 3])
        for e in range(1 if dry.where[k, 1] < 0 else 3):
            B.K[d, e] += slope * D.J[k, e]


@optional(None)
def dry_directions(dry, D, dq):
    """Directions of all variables from the motion dq."""
    for k in range(dry.F.size):
        l1, a, l2, b, aim = D.V[k, 0], D.V[k, 1], D.V[k, 2], D.V[k, 3], D.aim[k]
        dtau = -(D.slip[k] + dry_change(dry, D, k, dq) + aim / a - aim / b) / dry_width(D, k)
        D.dV[k, 0], D.dV[k, 1] = (aim + l1 * dtau) / a - l1, -dtau
        D.dV[k, 2], D.dV[k, 3] = (aim - l2 * dtau) / b - l2, dtau


@optional(None)
def move_dry(dry, D, alpha):
    """A part alpha of the directions, or as much of each as stays inside."""
    for k in range(dry.F.size):
        F, a, b = dry.F[k], within(alpha, D.V[k, 1], D.dV[k, 1]), within(alpha, D.V[k, 3], D.dV[k, 3])
        # the bound that is nearer says where the force is
        if a < b:
            D.V[k, 1], D.V[k, 3] = a, 2.0 * F - a
        else:
            D.V[k, 1], D.V[k, 3] = 2.0 * F - b, b
        D.V[k, 0] = within(alpha, D.V[k, 0], D.dV[k, 0])
        D.V[k, 2] = within(alpha, D.V[k, 2], D.dV[k, 2])
        D.tau[k] = dry_force(dry, D, k)


@optional(0)
def dry_count(dry):
    """Number of rows."""
    return dry.F.size


@optional(None)
def note_dry(dry, D):
    """Forces at the end of the step, for reports."""
    for k in range(dry.F.size):
        D.end[k] = D.tau[k]


# --- for the derivative of a step -----------------------------------------------------------------------------------
@optional(None)
def keep_dry_forces(dry, D, force):
    """Remember the forces of the solution."""
    for k in range(dry.F.size):
        force[k] = D.tau[k]


@optional(None)
def put_dry_forces(dry, D, base, e, direction):
    """Forces ``base`` moved by e times their direction."""
    for k in range(dry.F.size):
        D.tau[k] = base[k] + e * direction[k]


@optional(None)
def note_slips(dry, D, slips, side):
    """Slips at one end of a direction."""
    for k in range(dry.F.size):
        slips[k, side] = D.slip[k]


@optional(None)
def copy_dry(dry, D, V, back):
    """Variables into V, or back from it."""
    for k in range(dry.F.size):
        for e in range(4):
            if back:
                D.V[k, e] = V[k, e]
            else:
                V[k, e] = D.V[k, e]


@optional(None)
def dry_replies(dry, D, slips, eps, changes, force, h, c):
    """Forces that answer the slopes of slips and changes of F; what is new in them is taken off c.

    slips (nd, 2): at both ends of a direction, each as far as eps. changes: dF behind those of other coefficients.
    """
    for k in range(dry.F.size):
        l1, a, l2, b = D.V[k, 0], D.V[k, 1], D.V[k, 2], D.V[k, 3]
        by_bound = (l1 / a - l2 / b) - D.kappa[k] / dry.F[k] * (1.0 / a - 1.0 / b)
        slope = (slips[k, 0] - slips[k, 1]) / (2.0 * eps)
        f = (by_bound * changes[changes.size - dry.F.size + k] - slope) / dry_width(D, k)
        c[dry.where[k, 0]] -= h * (f - force[k])
        force[k] = f


@optional(None)
def dry_answers(dry, D, dq, force):
    """Change of the forces along a motion."""
    for k in range(dry.F.size):
        force[k] -= dry_change(dry, D, k, dq) / dry_width(D, k)
