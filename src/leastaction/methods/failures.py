"""Why a step was not taken, in words: the one table, by status."""

from __future__ import annotations

from leastaction.jit.status import Status

_WORDS = {
    Status.NOT_CONVERGED: "{solver} did not converge{where}; take a smaller dt",
    Status.NOT_FINITE: "the state is no longer finite, or grows without bound; take a smaller dt, or check forces and "
    "control",
    Status.NO_RATES: "the constraints leave no velocity; they contradict each other here",
    Status.TURNED_TOO_FAR: "body '{body}' turns by 90 degrees or more in {part}; take a smaller dt",
    Status.STRIKES: "something strikes",
    Status.NO_DERIVATIVE: "the step has a solution, but its derivative was not found: the linear equations for it are "
    "singular here, or so stiff that their residual does not become small; take a smaller dt",
    Status.SINGULAR_LOOPS: "the equations of the closed loops are singular; take a smaller dt, or check the "
    "mechanism's position",
    Status.SINGULAR_CHART: "joint '{joint}' is at a singularity of its Euler chart '{chart}'; "
    'chart="euler" changes to another one in time, chart="exp" has none',
    Status.LEFT_SPLINE: "a joint left its spline at an open end",
    Status.NO_ROOM: "there are more contacts at a time than there is room for",
    Status.BAD_GUESS: "the first guess already turns too far: no joint and no body may turn by half a turn within one "
    "step; take a smaller dt",
}


def failure_of(status: int, *, solver: str = "the root finder", iterations: int = 0, where: str = "", body: str = "",
               part: str = "one step", joint: str = "", chart: str = "") -> str | None:  # fmt: skip
    """Words for a status, or None where all went well.

    Args:
        status: of a rollout.
        solver: what did not converge.
        iterations: how many it may take, or 0 where that is not said.
        where: more about what did not converge, as ", worst at the contact of 'a' and 'b'".
        body: that turned too far.
        part: in which it did, as "half a step".
        joint: at a singularity of its chart.
        chart: by name.
    """
    if status == Status.DONE:
        return None
    where = f" ({iterations} iterations allowed){where}" if iterations else where
    return _WORDS[Status(status)].format(solver=solver, where=where, body=body, part=part, joint=joint, chart=chart)
