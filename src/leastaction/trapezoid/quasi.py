"""Other root finders for a step of the Lie trapezoid: RIQN, Broyden, and Newton with a dense matrix (Lee et al. 2016).

steps, updates  (ranks, nu)  Broyden: H_(j+1) = (1 + updates_j steps_j^T) H_j, from H_0 = h M(q^k)^-1     (9)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import entry, kernel, sweep
from leastaction.jit.lanes import st6
from leastaction.jit.status import BAD_GUESS, DONE, NOT_CONVERGED
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, LAST, MOST
from leastaction.solve.newton import SHORTEST, STALLED, newton
from leastaction.solve.rollout import never_undone, rollout
from leastaction.trapezoid.impulses import damping
from leastaction.trapezoid.newton import direction_by_jacobian
from leastaction.trapezoid.step import at, begin, end, evaluate, keep, make_tables, move, prepare, see, step_from
from leastaction.tree.arrays import copy, scalar_product
from leastaction.tree.articulated import eliminate, expand, reduce

# Root finders; NEWTON is ``trapezoid.step``.
NEWTON, RIQN, BROYDEN, DENSE = 0, 1, 2, 3


@sweep
def impulse_solve(tree, h, fresh, w, f, y):
    """y = -h M(q^k)^-1 r; ``fresh`` factorises M first (Lee et al. 2016, eq. 25)."""
    for i in range(tree.rows.shape[0]):
        st6(f.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for d in range(y.size):
        f.f[d] = -h * w.r[d]
    if fresh:
        eliminate(tree, w.S0, w.M, f.A, f.F, f.f, f.U, f.y)
    else:
        reduce(tree, w.S0, f.F, f.f, f.U, f.y)
    expand(tree, w.S0, f.U, f.y, f.Z, y)


@kernel
def by_impulses(step, steps, alpha):
    """Algorithm 3: the mass matrix at the start, factored once."""
    impulse_solve(step.system.tree, step.h, steps == 0, step.work, step.f, step.work.y)
    return True


@kernel
def by_matrix(step, steps, alpha):
    """Algorithm 4: the whole Jacobian."""
    if step.active:
        damping(step)
    direction_by_jacobian(step.system.tree, step.h, step.work.xi, step.work)
    return True


solve_riqn = newton(prepare=prepare, evaluate=evaluate, direction=by_impulses, keep=keep, move=move, guarded=False)
solve_dense_newton = newton(prepare=prepare, evaluate=evaluate, direction=by_matrix, keep=keep, move=move)


@sweep
def broyden_direction(tree, h, fresh, rank, alpha, w, f, z):
    """w.y = -H r after the rank-one update for the step alpha w.y taken last, eq. (9). Returns the new rank.

    A negative rank means that there is no step to learn from.
    """
    impulse_solve(tree, h, fresh, w, f, z)
    if rank < 0:
        copy(z, w.y)
        return 0
    for j in range(rank):
        c = scalar_product(w.steps[j], z)
        for k in range(z.size):
            z[k] += c * w.updates[j, k]
    # z = -H r; the change of H r is d - z with d the last direction, and s = alpha d
    s, v = w.steps[rank], w.updates[rank]
    for k in range(z.size):
        s[k] = alpha * w.y[k]
        v[k] = w.y[k] - z[k]
    c = scalar_product(s, v)
    if abs(c) <= 1.0e-10 * scalar_product(s, s):
        copy(z, w.y)
        return rank
    for k in range(z.size):
        v[k] = (s[k] - v[k]) / c
    c = scalar_product(s, z)
    for k in range(z.size):
        w.y[k] = z[k] + c * v[k]
    return rank + 1


@sweep
def solve_broyden(step):
    """Broyden's method, which needs a loop of its own, as its direction need not descend.

    It goes back until the sum of squares is below the largest of the last three; where that fails it forgets what it
    learned, and goes a step of RIQN.
    """
    tree, w, most, count = step.system.tree, step.work, step.solver.most, step.count
    before, rough_before, recent = math.inf, math.inf, (0.0, 0.0)
    alpha, steps, rank, first = 1.0, 0, -1, True
    inside = prepare(step)
    while True:
        largest, rough, squares = math.inf, math.inf, math.inf
        if inside:
            largest, rough, squares = evaluate(step, first)
            count[EVALUATIONS] += 1
            first = False
        finite = math.isfinite(squares)
        if largest <= 1.0 and finite:
            break
        if finite and squares <= (1.0 - 1.0e-4 * alpha) * before:
            # a point to go on from
            if steps == most:
                break
            rank = broyden_direction(tree, step.h, steps == 0, rank, alpha, w, step.f, step.scratch.z)
            keep(step)
            steps += 1
            rough_before, alpha = rough, 1.0
            before = max(squares, recent[0], recent[1]) if rank > 0 else math.inf
            recent = (squares, recent[0])
        elif steps == 0:
            break
        elif alpha < SHORTEST:
            # backtracking did not help: only rounding can be to blame, or what was learned
            if rank <= 0:
                break
            rank, alpha, before = -1, 0.0, math.inf
        else:
            alpha *= 0.5
            count[CUTS] += 1
        inside = move(step, alpha)
    count[ITERATIONS] += steps
    count[MOST], count[LAST] = max(count[MOST], steps), steps
    if finite and (largest <= 1.0 or (rough_before <= STALLED and rough <= STALLED)):
        return DONE
    return NOT_CONVERGED if steps > 0 or inside else BAD_GUESS


@kernel
def solve_by(step):
    """The root finder asked for."""
    if step.solver.kind == RIQN:
        return solve_riqn(step)
    if step.solver.kind == DENSE:
        return solve_dense_newton(step)
    return solve_broyden(step)


roll_by = rollout(at=at, begin=begin, solve=solve_by, end=end, see=see, undo=never_undone)


@kernel
def roll_by_from(system, state, solver, tables, drive, out):
    """The rollout; the tuple is put together where references are not counted."""
    return roll_by(step_from(system, state, solver, tables), drive, out)


@entry
def trapezoid_rollout_by(system, printed, state, solver, drive, out, count):
    """As ``trapezoid.step.trapezoid_rollout``, by the root finder solver.kind."""
    dense, ranks = solver.kind == DENSE, solver.most if solver.kind == BROYDEN else 0
    return roll_by_from(system, state, solver, make_tables(system, printed, dense, ranks, state.x, count), drive, out)
