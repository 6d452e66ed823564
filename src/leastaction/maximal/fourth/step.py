"""Steps of ``Maximal(4)``: guess, Newton with a line search, rollouts.

Joints are closed at the nodes by their coordinates; loops and constraints by impulses at nodes 0 and 1, which close
the gaps at nodes 1 and 2 (``loops.nodes``). Symbols are those of ``maximal.fourth.bodies``.

    past (4, nx)  coordinates at the nodes of the last two steps, latest first; lengths (2,) of these steps
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.legendre import rates_of, to_child_axes, to_parent_axes
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import entry, kernel, optional, sweep
from leastaction.jit.lanes import ld6, st6
from leastaction.jit.status import DONE, NO_RATES, NOT_CONVERGED, NOT_FINITE, TURNED_TOO_FAR
from leastaction.loops.nodes import (
    add_multipliers,
    balanced,
    clear_multipliers,
    keep_multipliers,
    make_loop_nodes,
    solve_loops,
    take_loops_care,
    trust_loops,
)
from leastaction.maximal.bodies import get4, out_of_hand, put4, shift_of, shifted
from leastaction.maximal.fourth.bodies import body_blocks, body_wrenches, make_nodes, place_node
from leastaction.maximal.fourth.joints import force_nodes, joint_nodes, loop_nodes
from leastaction.maximal.fourth.recursion import direction_nodes, factor_nodes
from leastaction.maximal.residual import tolerances
from leastaction.solve.clock import tick
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST, TOTALS
from leastaction.spatial._source.so3 import mrp_to_quat, quat_mul, quat_normalize
from leastaction.spatial._source.vector import add6, dot6
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.kinematics import farthest, set_origin
from leastaction.tree.layout import BALL, IU, IX, KIND, MASS, PARENT, PRISMATIC, Floats

# Cosine of half the largest rotation of a body between neighbouring nodes: 90 degrees.
LEAST_COSINE = 0.7071067811865476


class Scheme(NamedTuple):
    """What ``solve_loops`` wants to know: weights of the nodes, how their rows combine (2, 2, 2), and the step."""

    w: tuple
    balance: Floats
    h: float


# --- residual -------------------------------------------------------------------------------------------------------
@sweep
def begin_nodes(tree, x, p, w, pc):
    """Tables of node 0, with one origin for the whole step, and momenta along child axes."""
    set_origin(tree, x, w.P)
    for e in range(12):
        w.P[0, 12 + e], w.P[0, 24 + e] = w.P[0, e], w.P[0, e]
    copy(x, w.x[0])
    place_node(tree, w, 0)
    to_child_axes(tree, x, p, pc)


@sweep
def own_equations(tree, w):
    """Equations from W and c: largest residual, sum of squares, and largest term, as angular momenta (``unit``)."""
    largest, squares, scale = 0.0, 0.0, 0.0
    for i in range(tree.rows.shape[0]):
        for e in range(18):
            w.sum[i, e] = w.W[i, e]
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        d, j = tree.rows[i, IU], tree.rows[i, PARENT]
        arm = w.unit[0] if tree.rows[i, KIND] == PRISMATIC else 1.0
        for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            for a in range(2):
                force = dot6(ld6(w.S, e, 6 * a), ld6(w.sum, i, 6 * a))
                r = arm * (force + w.c[e, a])
                largest = max(largest, abs(r))
                squares += r * r
                scale = max(scale, arm * abs(force), arm * abs(w.c[e, a]))
        for a in range(3):
            st6(w.sum, j, 6 * a, add6(ld6(w.sum, j, 6 * a), ld6(w.sum, i, 6 * a)))
    return largest, squares, scale


@sweep
def evaluate_nodes(system, t, h, pc, control, active, rate_of, w, f, L):
    """Everything at the coordinates w.x of nodes 1 and 2.

    Returns the largest residual, sum of squares, largest term, widest gap, sum of its squares, and the reach.
    """
    tree = system.tree
    place_node(tree, w, 1)
    place_node(tree, w, 2)
    for i in range(tree.rows.shape[0]):
        for e in range(18):
            w.W[i, e] = 0.0
    reach = body_wrenches(tree, w, h)
    force_nodes(system.forces, tree, t, h, w, f)
    gap, gaps = loop_nodes(system.loops, system, t, h, w, f, L)
    joint_nodes(system, w, pc, control, active, rate_of, h, f)
    largest, squares, scale = own_equations(tree, w)
    return largest, squares, scale, gap, gaps, reach


# --- direction ------------------------------------------------------------------------------------------------------
@kernel
def gap_changes(w, L, out):
    """Changes of all rows at nodes 1 and 2 by the motion w.eta."""
    m = L.kind.size
    for c in range(1, 3):
        for k in range(m):
            change = 0.0
            for e in range(L.ends.shape[1]):
                i = L.ends[k, e]
                if i > 0:
                    change += dot6(ld6(L.G, c * m + k, 6 * e), ld6(w.eta, i, 6 * (c - 1)))
            out[(c - 1) * m + k] = change


@optional(True)
def close_nodes(loops, tree, scheme, w, L):
    """Add to the step w.y what keeps the constraints, and find that of the multipliers: eq. (9) of the links."""
    m = L.kind.size
    gap_changes(w, L, L.rhs)
    for c in range(2):
        for k in range(m):
            L.rhs[c * m + k] = -(L.g[c + 1, k] + L.rhs[c * m + k])
    for d in range(L.R.shape[0]):
        L.R[d, 0], L.R[d, 1] = 0.0, 0.0
    # one column for each impulse
    for a in range(2):
        for k in range(m):
            for i in range(tree.rows.shape[0]):
                for e in range(12):
                    w.l[i, e] = 0.0
            for e in range(L.ends.shape[1]):
                i = L.ends[k, e]
                if i > 0:
                    st6(w.l, i, 6 * a, add6(ld6(w.l, i, 6 * a), ld6(L.G, a * m + k, 6 * e)))
            direction_nodes(tree, w, L.R, L.Y[a * m + k])
            gap_changes(w, L, L.dlam)
            balanced(scheme, L, L.dlam, L.rest)
            for i in range(2 * m):
                L.Sc[i, a * m + k] = L.rest[i]
    return solve_loops(scheme, w, L, w.y)


@sweep
def newton_direction(system, scheme, h, w, L):
    """w.y and the step of the multipliers; False where something is singular."""
    tree = system.tree
    body_blocks(tree, w, h)
    if not factor_nodes(tree, w):
        return False
    for i in range(tree.rows.shape[0]):
        for e in range(12):
            w.l[i, e] = w.W[i, e]
    direction_nodes(tree, w, w.c, w.y)
    return close_nodes(system.loops, tree, scheme, w, L)


@sweep
def move_nodes(tree, w, alpha):
    """Coordinates of nodes 1 and 2 after a part alpha of the direction from w.old."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        for a in range(1, 3):
            if tree.rows[i, KIND] == BALL:
                z = (
                    alpha * w.y[2 * d + a - 1],
                    alpha * w.y[2 * (d + 1) + a - 1],
                    alpha * w.y[2 * (d + 2) + a - 1],
                )
                put4(w.x[a], k, quat_normalize(quat_mul(get4(w.old[a], k), mrp_to_quat(z))))
            else:
                w.x[a, k] = w.old[a, k] + alpha * w.y[2 * d + a - 1]


@optional(0.0)
def impulse_rounding(loops, L, reach, arm):
    """Rounding of the impulses of the constraints: of their torques about the origin, and of forces with ``arm``."""
    largest, m = 0.0, L.kind.size
    for a in range(L.lam.shape[0]):
        for k in range(m):
            turn, push = 0.0, 0.0
            for e in range(0, L.G.shape[1], 6):
                for c in range(e, e + 3):
                    turn, push = max(turn, abs(L.G[a * m + k, c])), max(push, abs(L.G[a * m + k, c + 3]))
            largest = max(largest, abs(L.lam[a, k]) * (turn + (arm + reach) * push))
    return 1.0e-15 * largest


@sweep
def solve_nodes(system, scheme, t, h, pc, control, active, rate_of, rtol, most, w, f, L, count):
    """Newton with backtracking from the coordinates w.x of nodes 1 and 2; True if the residual is within tolerance.

    One iteration at least, as in ``maximal.step``.
    """
    tree, before, size_before, gap_before, alpha, steps = system.tree, math.inf, math.inf, math.inf, 1.0, 0
    weight, far = (w.unit[1] / h) * (w.unit[1] / h), farthest(tree, w.x[0])
    clear_multipliers(system.loops, L)
    trust_loops(system.loops, L)
    while True:
        largest, squares, scale, gap, gaps, reach = evaluate_nodes(system, t, h, pc, control, active, rate_of, w, f, L)
        count[EVALUATIONS] += 1
        limit, widest, floor, coarse = tolerances(w, rtol, scale, reach, far, h, pc.size)
        # angles that have turned far are rounded more coarsely, and with them every pose; and so are impulses of loops
        rough = 0.01 * far * floor + impulse_rounding(system.loops, L, w.unit[0] * reach, w.unit[0])
        limit, floor = limit + rough, floor + 100.0 * rough
        small, apart = size_before <= floor and largest <= floor, max(gap, gap_before)
        if steps > 0 and largest <= limit and gap <= widest:
            break
        merit = squares + weight * gaps
        if math.isfinite(merit) and merit <= (1.0 - 1.0e-4 * alpha) * before:
            if steps == most or not newton_direction(system, scheme, h, w, L):
                break
            steps += 1
            copy(w.x[1], w.old[1])
            copy(w.x[2], w.old[2])
            keep_multipliers(system.loops, L)
            before, size_before, gap_before, alpha = merit, largest, gap, 1.0
        else:
            # backtrack, until only rounding can be to blame
            if steps == 0 or alpha < 1.0e-3 or (small and apart <= coarse):
                break
            count[CUTS] += 1
            if take_loops_care(system.loops, L):
                # once more from the iterate before
                alpha, before = 0.0, math.inf
            else:
                alpha *= 0.5
        move_nodes(tree, w, alpha)
        add_multipliers(system.loops, L, alpha)
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    return (largest <= limit and gap <= widest) or (small and apart <= 100.0 * coarse)


# --- steps ----------------------------------------------------------------------------------------------------------
@kernel
def guess_nodes(tree, h, x, u, known, past, lengths, w, xi, near):
    """Coordinates of nodes 1 and 2: the polynomial through the nodes of up to two last steps, or the rates u.

    xi, near (nu,): scratch.
    """
    count = 2 * min(known, 2)
    for a in range(1, 3):
        at = 0.5 * a * h
        for d in range(xi.size):
            xi[d] = at * u[d] if known == 0 else 0.0
        for j in range(count):
            # Lagrange's polynomial of past node j, which is zero at the present one
            mine, weight = past_time(lengths, j), 1.0
            weight *= at / mine
            for i in range(count):
                if i != j:
                    other = past_time(lengths, i)
                    weight *= (at - other) / (mine - other)
            shift_of(tree, x, past[j], near)
            for d in range(xi.size):
                xi[d] += weight * near[d]
        shifted(tree, x, xi, w.x[a])


@kernel
def past_time(lengths, j):
    """Time of past node j, counted from the present one."""
    if j < 2:
        return -0.5 * (j + 1) * lengths[0]
    return -lengths[0] - 0.5 * (j - 1) * lengths[1]


@sweep
def turned_too_far(tree, w, h):
    """Row of a body that turned by 90 degrees or more between two nodes, or 0."""
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            for a in range(2):
                cosine = 0.0
                for e in range(4):
                    cosine += w.Q[i, 4 * a + e] * w.Q[i, 4 * a + 4 + e]
                if not cosine > LEAST_COSINE:
                    return i
    return 0


@sweep
def end_nodes(tree, w, ua, pn):
    """pn (nu,): momenta along parent axes at node 2, without what constraints do there."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            ua[e] = dot6(ld6(w.S, e, 12), ld6(w.sum, i, 12)) + w.c[e, 2]
    to_parent_axes(tree, w.x[2], ua, pn)


@entry
def rollout(
    system, balance, effort, uniform, clock, k0, steps, x, p, past, lengths, known, every, controls, address, passive,
    rtol, most, out_q, out_v, count,
):  # fmt: skip
    """Advance x, p in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    known (1,): number of past steps, at most 2. effort (nv,): bounds of the control. count: see ``solve.counts``.
    Returns (steps done, status, row); after a failure x, p are those of the last good step.
    """
    tree, nu = system.tree, p.size
    f, L, w = make_work(system, x), make_loop_nodes(system.loops, system.constraints, tree, 2), make_nodes(tree, x.size)
    pc, ua, u, pn, control = np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu)
    xi, rate_of, saved = np.zeros(nu), np.zeros(nu, np.int64), 0
    for d in range(nu):
        rate_of[system.coordinates.v[d]] = d
    for k in range(steps):
        t, h = tick(uniform, clock, k0, k)
        scheme, active = Scheme((1.0, 1.0, 1.0), balance, h), passive
        # control of this step
        if address != 0:
            if not rates_of(system, t, x, p, f, L, u):
                return k, NO_RATES, 0
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control)
            active = True
        elif controls.shape[0] > 0:
            copy(controls[k], control)
            active = True
        for d in range(nu):
            control[d] = min(max(control[d], -effort[d]), effort[d])
        # step, once more from the rates where the last steps mislead
        begin_nodes(tree, x, p, w, pc)
        good, memory = False, known[0]
        for attempt in range(2):
            if attempt == 1 and (good or memory == 0):
                break
            if attempt == 1:
                memory = 0
            if memory == 0 and not rates_of(system, t, x, p, f, L, u):
                return k, NO_RATES, 0
            guess_nodes(tree, h, x, u, memory, past, lengths, w, xi, ua)
            good = solve_nodes(system, scheme, t, h, pc, control, active, rate_of, rtol, most, w, f, L, count)
        if not good:
            return k, NOT_CONVERGED, 0
        far = turned_too_far(tree, w, h)
        if far > 0:
            return k, TURNED_TOO_FAR, far
        end_nodes(tree, w, ua, pn)
        if not all_finite(pn) or out_of_hand(w.x[2], w.unit):
            return k, NOT_FINITE, 0
        # the last two nodes become the past
        copy(past[1], past[3])
        copy(past[0], past[2])
        copy(w.x[1], past[0])
        copy(x, past[1])
        copy(w.x[2], x)
        copy(pn, p)
        lengths[1], lengths[0] = lengths[0], h
        known[0] = min(known[0] + 1, 2)
        if (k0 + k + 1) % every == 0:
            if not rates_of(system, t + h, x, p, f, L, u):
                return k, NO_RATES, 0
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE, 0
