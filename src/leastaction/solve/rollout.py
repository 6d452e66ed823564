"""Whole rollouts as a template: clock, control, step after step, saved rows.

    at(base, t, h, active)   the step at a time: base with what changes from step to step; ``active``: joint forces
    begin(step)              tables and first iterate              solve(step)   the step itself
    end(step)                takes the step                        undo(step)    takes it back
    see(step, t, q, v)       the user's state, by which control and output see it; False if there are no rates

begin, solve and end return a status, DONE or why the rollout ends before this step. A step has ``control`` (points,
nv), the user's forces, and ``f.q``, ``f.v`` as scratch for the user's state. Parts must not return arrays to an entry,
which counts references, so a part puts the first step together and calls ``roll``.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

from leastaction.jit.calls import call_control
from leastaction.jit.decorators import kernel
from leastaction.jit.status import DONE, NO_RATES
from leastaction.solve.clock import tick
from leastaction.solve.counts import ITERATIONS, TOTALS
from leastaction.tree.arrays import copy
from leastaction.tree.layout import Floats


class Drive(NamedTuple):
    """How far, and under which control.

    uniform, clock  as ``tick`` takes them              k0     number of the first step in the run
    steps, every    how many, and which are saved       active whether joints have springs, dampers or laws
    controls        (steps, points, nv), or no rows     address of a control function, or 0
    """

    uniform: bool
    clock: Floats
    k0: int
    steps: int
    every: int
    active: bool
    controls: Floats
    address: int


class Out(NamedTuple):
    """Saved rows of the user's state (rows, nq), (rows, nv)."""

    q: Floats
    v: Floats


def rollout(*, at, begin, solve, end, see, undo):
    """``roll(base, drive, out)``: (steps done, status); after a failure the state is that of the last good step."""

    @kernel
    def roll(base, drive, out):
        saved = 0
        for k in range(drive.steps):
            t, h = tick(drive.uniform, drive.clock, drive.k0, k)
            active = drive.active
            # control of this step
            if drive.address != 0:
                if not see(base, t, base.f.q, base.f.v):
                    return k, NO_RATES
                call_control(drive.address, t, base.f.q, base.f.v, base.control[0])
                active = True
            elif drive.controls.shape[0] > 0:
                for a in range(drive.controls.shape[1]):
                    copy(drive.controls[k, a], base.control[a])
                active = True
            step = at(base, t, h, active)
            status = begin(step)
            if status == DONE:
                status = solve(step)
            if status == DONE:
                status = end(step)
            if status != DONE:
                return k, status
            if (drive.k0 + k + 1) % drive.every == 0:
                if not see(step, t + h, out.q[saved], out.v[saved]):
                    undo(step)
                    return k, NO_RATES
                base.count[TOTALS + saved] = base.count[ITERATIONS]
                saved += 1
        return drive.steps, DONE

    return roll


@kernel
def never_undone(step):
    """Of a family whose rates are always found."""
