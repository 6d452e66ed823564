"""Which step of a rollout holds an impact with restitution: it stops there, and ``maximal/impacts.py`` goes on.

The same test as ``maximal.impacts.bouncing``, on the contacts of a plastic step that has just been solved.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import gap
from leastaction.contact.layout import TOUCH_LEAST, TOUCH_SHARE
from leastaction.jit.decorators import optional
from leastaction.jit.lanes import ld3, ld6, ld9
from leastaction.maximal.dry import take_back_dry
from leastaction.maximal.rates import coupled_rates
from leastaction.spatial._source.vector import dot6, sub6
from leastaction.tree.kinematics import velocities


@optional(False)
def strikes(contacts, plan, system, t, h, x, p, mass, rest, M, E, f, L, u, B, T, count):
    """Whether a pair with restitution closes in the step from x, p faster than it may rest.

    rest: (speed, speed for each second of a step); u (nu,): scratch for the rates at the start of the step.
    """
    slowest, lively = rest[0] + rest[1] * h, False
    for k in range(count):
        lively = lively or contacts.numbers[T.ints[k, 3], 1] > 0.0
    if not lively or not math.isfinite(slowest):
        return False
    if not coupled_rates(plan, system, t, x, p, mass, M, E, f, L, u):
        return True
    velocities(system.tree, u, f.S, f.V)
    for k in range(count):
        a, b = T.ints[k, 1], T.ints[k, 2]
        speed = -dot6(ld6(T.G, k, 0), sub6(ld6(f.V, a, 0), ld6(f.V, b, 0)))
        near = max(TOUCH_LEAST, TOUCH_SHARE * h * abs(speed))
        if contacts.numbers[T.ints[k, 3], 1] > 0.0 and T.g[k, 0] <= near and T.V[k, 1] > 0.0:
            before = gap(T.ints[k, 0], T.F, k, ld9(B.P0, a, 0), ld3(B.P0, a, 9), ld9(B.P0, b, 0), ld3(B.P0, b, 9))[0]
            if max(speed, before / h if before > near else speed) > slowest:
                return True
    return False


@optional(None)
def take_back(contacts, T, count):
    """Contacts, and forces of contacts and limits, as they were before a step that is not taken."""
    take_back_dry(T.dry, T.drag)
    for k in range(T.U.shape[0]):
        T.U[k, 0], T.U[k, 1] = T.old_U[k, 0], T.old_U[k, 1]
    for k in range(count):
        for e in range(4):
            T.ints[k, e] = T.old_ints[k, e]
        for e in range(24):
            T.F[k, e] = T.old_F[k, e]
        for e in range(T.V.shape[1]):
            T.V[k, e] = T.old_V[k, e]
