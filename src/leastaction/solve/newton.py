"""Newton's method with backtracking, as a template: a family hands in its parts and gets one compiled ``solve(step)``.

    prepare(step)              before the first residual; False where the guess is outside of what a step can be
    evaluate(step, first)      residual at the present iterate: its largest entry over what counts as zero, over what
                               rounding leaves of it, and a sum of squares; ``first`` in a step, where both are found
    direction(step, steps, alpha)   a direction from here; the last one was gone for alpha. False if there is none
    keep(step)                 remember the iterate
    move(step, alpha)          the iterate kept, and alpha along the direction; False if that is outside

A step has ``solver.most``, the most iterations, and ``count``, see ``solve.counts``. The parts are bound when a module
is imported: what is compiled has no function among its arguments, which the disk cache would miss.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import kernel
from leastaction.jit.status import BAD_GUESS, DONE, NOT_CONVERGED
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, LAST, MOST

# What an iteration does next.
STOP, RENEW, SHORTEN = 0, 1, 2

# Where backtracking does not help any more, and what rounding may leave of a residual then.
SHORTEST, STALLED = 1.0e-3, 100.0


@kernel
def judge(good, squares, before, alpha, steps, most, guarded):
    """Stop, take a new direction, or shorten the step: the sum of squares must descend along the direction."""
    if good:
        return STOP
    if math.isfinite(squares) and (not guarded or squares <= (1.0 - 1.0e-4 * alpha) * before):
        return STOP if steps == most else RENEW
    # only rounding can be to blame
    return STOP if steps == 0 or alpha < SHORTEST or not guarded else SHORTEN


def newton(*, prepare, evaluate, direction, keep, move, guarded=True):
    """``solve(step)``: DONE, NOT_CONVERGED, or BAD_GUESS. Without ``guarded`` every step is taken in full."""

    @kernel
    def solve(step):
        count, most = step.count, step.solver.most
        before, rough_before, alpha, steps, first = math.inf, math.inf, 1.0, 0, True
        inside = prepare(step)
        # residual and direction stand at one place each, so that they are compiled into the loop once
        while True:
            largest, rough, squares = math.inf, math.inf, math.inf
            if inside:
                largest, rough, squares = evaluate(step, first)
                count[EVALUATIONS] += 1
                first = False
            # a maximum forgets what is not a number, a sum does not
            good = largest <= 1.0 and math.isfinite(squares)
            what = judge(good, squares, before, alpha, steps, most, guarded)
            if what == STOP:
                break
            if what == RENEW:
                if not direction(step, steps, alpha):
                    break
                keep(step)
                steps += 1
                before, rough_before, alpha = squares, rough, 1.0
            else:
                alpha *= 0.5
                count[CUTS] += 1
            inside = move(step, alpha)
        count[ITERATIONS] += steps
        count[MOST], count[LAST] = max(count[MOST], steps), steps
        # rounding may stop the descent just above the tolerance
        if good or (rough_before <= STALLED and rough <= STALLED and math.isfinite(squares)):
            return DONE
        return NOT_CONVERGED if steps > 0 or inside else BAD_GUESS

    return solve
