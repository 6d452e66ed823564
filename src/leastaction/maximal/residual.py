"""Residual of a step of ``Maximal``: everything that acts, at one iterate.

``touch`` is None, or (T, limits, number of contacts) of ``maximal.contact`` and whether iterations need their
variables inside their cones.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.dynamics.legendre import to_child_axes
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.maximal.bodies import clear_blocks, own_residuals, place_bodies, start_bodies
from leastaction.maximal.contact import contact_forces, rows_at_end, stay_inside
from leastaction.maximal.forces import joint_terms, spring_impulses, start_forces
from leastaction.maximal.loops import end_loops, start_loops
from leastaction.maximal.tendons import tendon_impulses
from leastaction.tree.kinematics import kinematics
from leastaction.tree.layout import BALL, IU, IX, KIND, PRISMATIC


@sweep
def begin(system, t, h, x, p, B, f, L, pc):
    """Poses, axes, momenta along child axes and weights at the start of a step."""
    tree = system.tree
    kinematics(tree, x, B.P0, B.S0)
    for e in range(12):
        B.P1[0, e] = B.P0[0, e]
    start_bodies(tree, B)
    to_child_axes(tree, x, p, pc)
    start_loops(system.loops, system, t, h, x, B, f, L)


@sweep
def evaluate(touch, system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua):
    """Momenta, impulses and residuals at B.x1 and the poses B.P1.

    Returns the largest residual beyond what rounding leaves in stiff joints, sum of squares, largest term, widest gap,
    sum of their squares, and the reach; all as angular momenta and angles (``Bodies.unit``).
    """
    gap, gaps, reach = evaluate_smooth(system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua)
    touch_forces(touch, h, B)
    return *worst_residuals(system, B, h), gap, gaps, reach


@sweep
def evaluate_smooth(system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua):
    """Momenta and impulses without those of contacts and limits; widest gap, sum of squares of gaps, and the reach."""
    tree = system.tree
    widest, reach = place_bodies(tree, B, closed, h)
    joint_terms(system, B, x, pc, control, active, rate_of, h, f, ua)
    clear_blocks(tree, B)
    start_forces(system.forces, system, t, B, h, f)
    spring_impulses(system.forces, B, h)
    tendon_impulses(system.forces, B, h, control, f)
    gap, squares_of_gaps = end_loops(system.loops, system, t, h, B, f, L)
    return max(widest, gap), squares_of_gaps + widest * widest, reach


@sweep
def worst_residuals(system, B, h):
    """Residuals; the largest beyond what rounding leaves in stiff joints, sum of squares, and the largest term."""
    floor = rounding_of_joints(system, B, h)
    largest, squares, scale = own_residuals(system.tree, B, h)
    if largest <= floor:
        largest = 0.0
    elif largest > floor:
        largest -= floor
    return largest, squares, scale


@kernel
def rounding_of_joints(system, B, h):
    """Residual that rounding of its own coordinate leaves in a joint with a stiff spring or damper."""
    tree, p, floor = system.tree, system.passive, 0.0
    for i in range(1, tree.rows.shape[0]):
        arm, d = B.unit[0] if tree.rows[i, KIND] == PRISMATIC else 1.0, tree.rows[i, IU]
        for e in range(3 if tree.rows[i, KIND] == BALL else 1):
            floor = max(floor, 4.0e-16 * arm * B.K[d + e, e] * (1.0 + abs(B.x1[tree.rows[i, IX]])))
    # translations of free joints have theirs on the blocks of bodies
    for j in range(p.free.shape[0]):
        for e in range(3):
            K = 0.25 * h * p.free_data[j, e] + 0.5 * p.free_data[j, 6 + e]
            floor = max(floor, 4.0e-16 * B.unit[0] * K * (1.0 + abs(B.q[p.free[j, 0] + e])))
    return floor


@kernel
def rounding_of(B, reach, h, nu):
    """Residual that rounding leaves: of positions, over the step, with their arms."""
    return 1.0e-16 * B.unit[1] * (1.0 + reach * reach) / h * math.sqrt(float(nu)) + 1.0e-300


@kernel
def tolerances(B, rtol, scale, reach, farthest, h, nu):
    """Bounds of a residual and of a gap, and coarser ones of both, within which only rounding can be to blame.

    A gap counts as much as the momentum of closing it in a step; never below the rounding of positions.
    """
    rounding = rounding_of(B, reach, h, nu)
    far, near = 1.0e-15 * farthest, min(rtol, rtol * scale * h / B.unit[1])
    widest, coarse = (max(1.0e-15, near) + far) * (1.0 + reach), (max(1.0e-13, near) + far) * (1.0 + reach)
    return rtol * scale + rounding, widest, 100.0 * rounding, coarse


@optional(None)
def touch_forces(touch, h, B):
    """Gaps and slips at the end of the step, and forces of contacts and limits."""
    T, limits, count, inside = touch
    rows_at_end(count, B, T)
    if inside:
        stay_inside(count, T)
    contact_forces(count, T, limits, h, B)
