"""Why a rollout, a step or its derivative ended: the one table. Compiled code has numbers, ``methods.failures`` words.

No Numba here.
"""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """How it ended; DONE is 0."""

    DONE = 0
    NOT_CONVERGED = 1
    NOT_FINITE = 2
    # loops and constraints contradict each other
    NO_RATES = 3
    # a body turned so far that its discrete momentum has no solution
    TURNED_TOO_FAR = 4
    # something with restitution strikes within the step
    STRIKES = 5
    # the step has a solution, its derivative was not found
    NO_DERIVATIVE = 6
    SINGULAR_LOOPS = 7
    SINGULAR_CHART = 8
    LEFT_SPLINE = 9
    # the first guess already turns too far
    BAD_GUESS = 10
    # more contacts at a time than the tables have rows; the state is that of the last good step
    NO_ROOM = 11


# Plain numbers, as compiled code takes them.
(
    DONE, NOT_CONVERGED, NOT_FINITE, NO_RATES, TURNED_TOO_FAR, STRIKES, NO_DERIVATIVE, SINGULAR_LOOPS, SINGULAR_CHART,
    LEFT_SPLINE, BAD_GUESS, NO_ROOM,
) = (int(each) for each in Status)  # fmt: skip
