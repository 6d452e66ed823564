"""Newton's method and rollouts as templates, on a particle in one dimension."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from leastaction.jit.decorators import ENTRY_OPTIONS, kernel
from leastaction.jit.status import DONE, NOT_CONVERGED, Status
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, LAST, MOST, TOTALS
from leastaction.solve.newton import newton
from leastaction.solve.rollout import Drive, Out, rollout

LINE, BEND, HUMP, STAIRS = 0, 1, 2, 3


class Options(NamedTuple):
    """Which equation, the most iterations, and the largest iterate."""

    which: int
    most: int
    widest: float


class Scratch(NamedTuple):
    """User's state for a control function."""

    q: np.ndarray
    v: np.ndarray


class Step(NamedTuple):
    """x (3,): iterate, the one kept, direction; state (2,) place and velocity."""

    solver: Options
    x: np.ndarray
    count: np.ndarray
    state: np.ndarray
    control: np.ndarray
    f: Scratch
    t: float
    h: float


@kernel
def prepare(step):
    return abs(step.x[0]) < step.solver.widest


@kernel
def function(which, x):
    if which == LINE:
        return 2.0 * x - 6.0, 2.0
    if which == BEND:
        return x * x - 2.0, 2.0 * x
    if which == HUMP:
        return np.arctan(x), 1.0 / (1.0 + x * x)
    # never below 1e-3
    return 1.0e-3 + x * x, 2.0 * x


@kernel
def evaluate(step, first):
    r = function(step.solver.which, step.x[0])[0]
    return abs(r) / 1.0e-12, abs(r) / 1.0e-15, r * r


@kernel
def direction(step, steps, alpha):
    r, slope = function(step.solver.which, step.x[0])
    step.x[2] = -r / slope
    return slope != 0.0


@kernel
def keep(step):
    step.x[1] = step.x[0]


@kernel
def move(step, alpha):
    step.x[0] = step.x[1] + alpha * step.x[2]
    return prepare(step)


solve_guarded = newton(prepare=prepare, evaluate=evaluate, direction=direction, keep=keep, move=move)
solve_in_full = newton(prepare=prepare, evaluate=evaluate, direction=direction, keep=keep, move=move, guarded=False)


@njit(**ENTRY_OPTIONS)
def guarded(step):
    return solve_guarded(step)


@njit(**ENTRY_OPTIONS)
def full(step):
    return solve_in_full(step)


def a_step(which=LINE, most=20, widest=1e9, x=1.0, state=(0.0, 0.0), rows=0):
    return Step(
        Options(which, most, widest), np.array([x, 0.0, 0.0]), np.zeros(TOTALS + rows, int), np.array(state),
        np.zeros((1, 1)), Scratch(np.zeros(1), np.zeros(1)), 0.0, 0.0,
    )  # fmt: skip


class TestNewton:
    def test_a_line_takes_one_step(self):
        step = a_step()
        assert guarded(step) == Status.DONE
        assert step.x[0] == 3.0
        assert step.count[[ITERATIONS, EVALUATIONS, CUTS, MOST, LAST]].tolist() == [1, 2, 0, 1, 1]

    def test_a_root_takes_none(self):
        step = a_step(x=3.0)
        assert guarded(step) == Status.DONE
        assert step.count[[ITERATIONS, EVALUATIONS]].tolist() == [0, 1]

    def test_quadratic_convergence(self):
        step = a_step(BEND)
        assert guarded(step) == Status.DONE
        assert abs(step.x[0] - np.sqrt(2.0)) < 1e-12
        assert step.count[ITERATIONS] == 5

    def test_backtracking_where_full_steps_diverge(self):
        step = a_step(HUMP, x=3.0)
        assert guarded(step) == Status.DONE
        assert abs(step.x[0]) < 1e-12
        assert step.count[CUTS] > 0
        # in full the iterates grow, until there is no slope, or none are left
        assert full(a_step(HUMP, x=3.0, most=5)) == Status.NOT_CONVERGED

    def test_a_step_outside_is_shortened(self):
        step = a_step(HUMP, x=2.0, widest=2.5)
        assert guarded(step) == Status.DONE
        assert step.count[CUTS] > 0

    def test_too_few_iterations(self):
        step = a_step(BEND, most=2)
        assert guarded(step) == Status.NOT_CONVERGED
        assert step.count[ITERATIONS] == step.count[MOST] == step.count[LAST] == 2

    def test_no_root(self):
        assert guarded(a_step(STAIRS, most=50)) == Status.NOT_CONVERGED

    def test_a_guess_outside(self):
        step = a_step(x=5.0, widest=4.0)
        assert guarded(step) == Status.BAD_GUESS
        assert step.count[EVALUATIONS] == 0

    def test_nothing_is_found_from_a_number_that_is_none(self):
        assert guarded(a_step(x=np.nan, widest=np.inf)) != Status.DONE


@kernel
def at(b, t, h, active):
    return Step(b.solver, b.x, b.count, b.state, b.control, b.f, t, h)


@kernel
def begin(step):
    return DONE


@kernel
def advance(step):
    """A free particle that is pushed; it must stay below ``widest``."""
    step.count[ITERATIONS] += 2
    v = step.state[1] + step.h * step.control[0, 0]
    if abs(step.state[0] + step.h * v) > step.solver.widest:
        return NOT_CONVERGED
    step.x[1] = step.state[0]
    step.x[2] = step.state[1]
    step.state[0] += step.h * v
    step.state[1] = v
    return DONE


@kernel
def undo(step):
    step.state[0], step.state[1] = step.x[1], step.x[2]


@kernel
def see(step, t, q, v):
    q[0], v[0] = step.state[0], step.state[1]
    return step.state[0] < 10.0


roll_part = rollout(at=at, begin=begin, solve=advance, end=begin, see=see, undo=undo)


@njit(**ENTRY_OPTIONS)
def roll(base, drive, out):
    return roll_part(base, drive, out)


def go(steps, every=1, k0=0, controls=np.zeros((0, 1, 1)), **options):  # noqa: B008
    rows = (k0 + steps) // every - k0 // every
    step, q, v = a_step(state=(0.0, 1.0), rows=rows, **options), np.zeros((rows, 1)), np.zeros((rows, 1))
    drive = Drive(True, np.array([[0.0, 0.5]]), k0, steps, every, False, controls, 0)
    return (*roll(step, drive, Out(q, v)), q[:, 0].tolist(), v[:, 0].tolist(), step)


class TestRollout:
    def test_rows_and_counts(self):
        done, status, q, v, step = go(4)
        assert (done, status) == (4, Status.DONE)
        assert q == [0.5, 1.0, 1.5, 2.0]
        assert v == [1.0] * 4
        assert step.count[TOTALS:].tolist() == [2, 4, 6, 8]

    @pytest.mark.parametrize(("k0", "rows"), [(0, [1.0, 2.0]), (1, [0.5, 1.5, 2.5])])
    def test_which_rows_are_saved_is_counted_from_the_start_of_the_run(self, k0, rows):
        assert go(5, every=2, k0=k0)[2] == rows

    def test_control_is_held_over_a_step(self):
        controls = np.array([2.0, 0.0, -4.0]).reshape(3, 1, 1)
        _, _, q, v, _ = go(3, controls=controls)
        assert v == [2.0, 2.0, 0.0]
        assert q == [1.0, 2.0, 2.0]

    def test_a_failure_leaves_the_last_good_state(self):
        done, status, q, _, step = go(4, widest=1.2)
        assert (done, status) == (2, Status.NOT_CONVERGED)
        assert q[:2] == [0.5, 1.0]
        assert step.state.tolist() == [1.0, 1.0]

    def test_a_row_without_rates_is_taken_back(self):
        done, status, _, _, step = go(30)
        assert (done, status) == (19, Status.NO_RATES)
        assert step.state.tolist() == [9.5, 1.0]
