"""Variational integrator in maximal coordinates (Bruedigam et al. 2020, 2023), solved at the price of minimal ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, cast, final

import numpy as np
from numpy.typing import NDArray

from leastaction.contact.layout import CONTACT_COLUMNS
from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.jit.callbacks import control_at
from leastaction.jit.status import Status
from leastaction.maximal.checks import RISE, check_apart, failure_words, overlap_notes, recovery_speed, too_fast
from leastaction.maximal.derivative import PARAMETERS, NoStepError, Problem, step_derivative
from leastaction.maximal.fourth.method import SUPPORTS as FOURTH
from leastaction.maximal.fourth.method import past_fields, past_of, roll
from leastaction.maximal.full_system.method import chosen, refuse, rollout
from leastaction.maximal.impacts import bouncing, step_with_impacts, touch_at
from leastaction.maximal.limits import (
    bound_rows,
    dry_table,
    inequality_count,
    inequality_pairs,
    limit_table,
    pyramid,
)
from leastaction.maximal.servos import bounded_servos
from leastaction.maximal.step_contacts import mean_contacts, step_fields
from leastaction.methods.base import (
    Chunk,
    Clock,
    Control,
    Memory,
    Method,
    counted_chunk,
    joined,
    new_counts,
    saved_rows,
)
from leastaction.methods.closing import check_closed
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.contacts import ContactTable, contact_table
from leastaction.model.couplings import elimination, outline_of, spring_pairs
from leastaction.model.model import Model, State
from leastaction.solve.solvers import InteriorPoint, Newton, solver_from

# A step with contacts that finds no solution is taken again in so many parts.
_PARTS = (2, 4, 8, 16)

# What the memory holds of contacts, limits and dry friction, as kernels take it.
_KEPT = ("contacts", "features", "contact_forces", "limit_forces", "pace", "dry_friction")

# Largest barrier of a warm start over that at the end, where joints have dry friction.
_NEAR = 10.0

# Contacts that a replay looks at in one call, at most, where all that may be are there.
_ROOM = 1 << 16


@final
class Maximal(Method):
    """Variational integrator on the poses of the bodies: symplectic, symmetric, and it keeps momenta.

    Args:
        order: 2, or 4 for smooth motion: joints and loops are closed at the middle of a step too, and there is no
            contact, no enforced limit, no velocity constraint and no ``linearize``.
        solver: ``Newton()`` for smooth motion and ``InteriorPoint()`` for contacts, enforced limits and inequalities.
            Where the other one is given, its tolerance and iterations count: all of an ``InteriorPoint``, and of a
            ``Newton`` those that are not its defaults, as these are not meant for contacts.
        cone: "exact", or an even number of sides from 4 on: friction in the pyramid of the papers, whose corners lie on
            the cone, two of them along the first tangent.
        start: "legendre" (order 2), or "seed": the first step moves by dt times the rates, order 1, as the papers do.
        rest_speed: contacts with restitution that close more slowly than this, in m/s, do not bounce; None is what
            gravity adds in two steps, 2 |g| dt.
        linear: "nullspace", the compiled recursion; "graph", the block elimination of the papers along the graph of
            bodies, joints, loops and contacts; "dense" (LAPACK) and "scipy" (SuperLU) of the same system. All give the
            same step; the last three run step by step in Python, to compare with.
        loops: with linear="graph", "graph" eliminates loops and constraints where they close, "last" as one dense node
            at the end.
    """

    name: ClassVar[str] = "maximal"
    symplectic: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    conserves: ClassVar[frozenset[str]] = frozenset({"linear momentum", "angular momentum", "constraints"})
    has_derivative: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = PARAMETERS
    supports: ClassVar[frozenset[str]] = frozenset(
        {
            "loops",
            "couplings",
            "equality constraints",
            "velocity constraints",
            "inequality constraints",
            "contact",
            "restitution",
            "enforced limits",
            "bounded servos",
            "joint friction",
        }
    )

    def __init__(
        self,
        order: int = 2,
        *,
        solver: Any = None,
        cone: str | int = "exact",
        start: str = "legendre",
        rest_speed: float | None = None,
        linear: str = "nullspace",
        loops: str = "graph",
    ) -> None:
        if isinstance(order, bool) or not isinstance(order, int | float | np.integer) or order not in (2, 4):
            raise ModelError(f"Maximal: order must be 2 or 4, got {order!r}.")
        if not isinstance(start, str) or start not in ("legendre", "seed"):
            raise ModelError(f'Maximal: start must be "legendre" or "seed", got {start!r}.')
        if rest_speed is not None:
            rest_speed = check_number(rest_speed, "Maximal: rest_speed", nonnegative=True)
        self.first_step, self.rest_speed, self.cone, self._order = start, rest_speed, _check_cone(cone), int(order)
        self.solver = solver_from(solver, (Newton,) if order == 4 else (Newton, InteriorPoint), "Maximal")
        self.choice = chosen(linear, loops, self.solver, self.cone)
        if linear != "nullspace":
            # what the whole system has no rows for
            vars(self)["supports"] = type(self).supports - {"joint friction"}
        if order == 4:
            if (start, rest_speed, self.cone, linear) != ("legendre", None, "exact", "nullspace"):
                raise UnsupportedError(
                    "Maximal: start, cone, rest_speed and linear belong to order 2; order 4 has none."
                )
            # less than the class
            vars(self)["supports"], vars(self)["parameters"] = FOURTH, ()

    @property
    def order(self) -> int:
        """2 or 4; 1 with the start of the papers."""
        return self._order if self.first_step == "legendre" else 1

    @property
    def label(self) -> str:
        """``maximal`` or ``maximal:4``."""
        return self.name if self._order == 2 else f"{self.name}:{self._order}"

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {
            "order": self._order, "solver": self.solver.options(), "cone": self.cone, "start": self.first_step,
            "rest_speed": self.rest_speed, "linear": self.choice.linear, "loops": self.choice.loops,
        }  # fmt: skip

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and momenta of the tree's rows (discrete Legendre transform), and no past."""
        memory, touching = self._begin(model, state), touch_of(model)
        if touching is not None and self._order == 2:
            check_apart(model, touching, state.q, memory["x"])
            memory["pace"][0] = recovery_speed(model, touching, state.q, memory["x"])
        return memory

    def notes(self, model: Model, state: State) -> tuple[str, ...]:
        """Bodies that interpenetrate at a first state."""
        touching = touch_of(model)
        if touching is None or self._order == 4:
            return ()
        return overlap_notes(model, touching, state.q, self._begin(model, state)["x"])

    def _begin(self, model: Model, state: State) -> Memory:
        """The memory at a state of a run, in which frozen features may have let bodies overlap a little."""
        from leastaction.dynamics import legendre

        refuse(self.choice, model)
        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        legendre.enter_momenta(model.system, state.q.copy(), state.v.copy(), x, u, p)
        check_closed(model, state.t, x, u)
        known: Any = np.zeros(4, dtype=np.int64)
        known[3] = self.first_step == "seed"
        if self._order == 4:
            return {"x": x, "p": p, **past_of(model)}
        memory: Memory = {"x": x, "p": p, "past": np.zeros((model.nv, 3)), "lengths": np.ones(3), "known": known}
        touching = touch_of(model)
        if touching is not None:
            if "bounded servos" in model.features and self.first_step == "seed":
                raise UnsupportedError(f'{self.label}: servos with an enforced effort know start="legendre" only.')
            if "restitution" in model.features and self.cone != "exact":
                raise UnsupportedError(f'{self.label}: impacts with restitution know cone="exact" only.')
            n, sides = touching.table.room, 0 if isinstance(self.cone, str) else self.cone
            bounds = len(touching.limits.where) + inequality_count(model)
            memory |= {
                "contacts": np.zeros((n, 4), dtype=np.int64), "features": np.zeros((n, 24)),
                "contact_forces": np.zeros((n, 5 + sides)), "limit_forces": np.zeros((bounds, 2)),
                "pace": np.array([RISE, 1.0]), "dry_friction": np.zeros((len(dry_table(model)[1]), 4)),
            }  # fmt: skip
        return memory

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates, momenta, the last steps, and the contacts and limits of the last one."""
        refuse(self.choice, model)
        past = past_fields(model) if self._order == 4 else step_fields(model, touch_of(model), self.cone)
        return {"x": Field((model.nq,)), "p": Field((model.nv,)), **past}

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q, and v = M^-1 p."""
        from leastaction.dynamics import legendre

        q, v = np.zeros(model.nq), np.zeros(model.nv)
        if not legendre.leave_momenta(model.system, 0.0, memory["x"], memory["p"], q, v):
            raise ConvergenceError(f"{self.label}: {failure_of(Status.NO_RATES)}")
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call, up to a step that needs care.

        A step in which something bounces is cut there; one with contacts that finds no solution, cut or not, is
        taken in parts.
        """
        if self._order == 4:
            return roll(model, memory, clock, k, steps, every, control, efforts(model), self.solver)
        return self._roll_on(model, memory, clock, k, steps, every, control, None)

    def replay(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> tuple[Chunk, list[FloatArray]]:
        """``rollout``, with the contacts (n, 13) of every step that begins at a saved row."""
        if touch_of(model) is None or self._order == 4:
            return super().replay(model, memory, clock, k, steps, every, control)
        room = max(cast(Touching, touch_of(model)).table.room, 1)
        log: list[FloatArray] = []
        parts: list[Chunk] = []
        done = 0
        while not parts or (done < steps and parts[-1].failure is None):
            # so many at once as there is room for
            some = min(steps - done, max(1, _ROOM // room) * every)
            parts.append(self._roll_on(model, memory, clock, k + done, some, every, control, log))
            done += parts[-1].steps
        return joined(parts), log

    def _roll_on(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control,
        log: list[FloatArray] | None,
    ) -> Chunk:  # fmt: skip
        """Rollouts and steps that need care, one after the other; their contacts into the log, if there is one."""
        seen: bool = log is not None

        def note(found: list[FloatArray]) -> None:
            if log is not None:
                log.extend(found)

        chunk, found = self._roll(model, memory, clock, k, steps, every, control, logged=seen)
        parts, done = [chunk], chunk.steps
        note(found)
        while parts[-1].failure is not None and touch_of(model) is not None:
            more: FloatArray | None = None
            if parts[-1].status == Status.STRIKES:
                chunk, more = self._impact_step(model, memory, clock, k + done, every, control)
                parts.append(chunk)
            if parts[-1].failure is not None:
                finer = self._finer_step(model, memory, clock, k + done, every, control)
                if finer is None:
                    break
                chunk, more = finer
                parts.append(chunk)
            if more is not None and (k + done) % every == 0:
                note([more])
            done += parts[-1].steps
            if done == steps:
                break
            chunk, found = self._roll(model, memory, clock, k + done, steps - done, every, control, logged=seen)
            parts.append(chunk)
            note(found)
            done += chunk.steps
        return joined(parts)

    def contacts(self, model: Model, state: State, control: Any, dt: float) -> FloatArray:
        """Contacts of the step that begins at a state, (contacts, 13): see ``maximal.contact``."""
        if self._order == 4:
            return super().contacts(model, state, control, dt)
        found, strikes = self._touching(model, state, control, dt)
        # what bounces in this step is no force
        return found[~strikes]

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Derivative of the step by the implicit function theorem, O(n^2), through contacts and limits.

        It is that of the step with the barrier of the solver: ``InteriorPoint(barrier=...)`` chooses how smooth.
        """
        if self._order == 4:
            raise UnsupportedError(f"{self.label} has no derivative of its step; order 2 has one.")
        if self.first_step != "legendre":
            raise UnsupportedError(f'{self.label} has no derivative of its step with start="seed".')
        if self.choice.variant == "seed":
            raise UnsupportedError(f'{self.label} has no derivative of its step with InteriorPoint(variant="seed").')
        memory = self._begin(model, state)
        if touch_of(model) is not None:
            check_apart(model, touch_of(model), state.q, memory["x"], True)
        if "restitution" in model.features:
            found, strikes = self._touching(model, state, control, dt)
            if strikes.any():
                a, b = self.contact_pairs(model)[int(found[strikes][0, 0])]
                raise UnsupportedError(
                    f"{self.label} has no derivative of a step through an impact with restitution: '{a}' strikes '{b}' "
                    f"between t = {state.t:g} and {state.t + dt:g} s. Steps without an impact have one."
                )
        bounds = efforts(model)
        tau = np.clip(np.zeros(model.nv) if control is None else model.check_v(control, "control"), -bounds, bounds)
        touching, kept, numbers, iterations = self._contact_numbers(model, memory)
        rest, more = self._rest(model)
        plan, slowest = plan_of(model), rest + more * dt
        names = dry_table(model)[2]
        problem = Problem(model, state, tau, dt, memory, plan, touching, kept, numbers, iterations, slowest, names)
        try:
            while True:
                try:
                    return step_derivative(problem, bounds, parameters)
                except NoStepError as error:
                    if error.status != Status.NO_ROOM:
                        raise
                    more_rows = with_rows(problem.kept, 2 * len(problem.kept[0]))
                    problem = replace(problem, kept=more_rows, plan=with_room(problem.plan, 2))
        except NoStepError as error:
            fast, end = too_fast(model, state.q, state.v, dt), model.spline_end(state.q, state.v, dt)
            failure = failure_words(model, touching, error.status, error.row, iterations, fast)
            raise ConvergenceError(f"{self.label}: {failure}{end}", state=state) from error

    def _touching(self, model: Model, state: State, control: Any, dt: float) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Contacts (n, 13) of a plastic step from a state, and which of them bounce (n,)."""
        tau = np.zeros((0, model.nv)) if control is None else model.check_v(control, "control")[None]
        for parts in (1, *_PARTS):
            # a run takes a step without a solution in parts, too
            memory, each, struck = self._begin(model, state), [], []
            memory["known"][3] = 0
            for i in range(parts):
                clock = Clock(state.t + i * dt / parts, dt / parts)
                q, v = (state.q, state.v) if i == 0 else self.state(model, memory)
                chunk, rows = self._roll(model, memory, clock, 0, 1, 1, Control(tau), seen=True)
                model.raise_pending()
                if chunk.failure is not None:
                    break
                each += rows or [np.zeros((0, CONTACT_COLUMNS))]
                struck.append(self._striking(model, memory, each[-1], q, v, dt, dt / parts))
            if len(each) == parts:
                break
        else:
            raise ConvergenceError(f"{self.label}: {chunk.failure}", state=state)
        return mean_contacts(each, struck, [dt / parts] * parts)

    def _striking(
        self, model: Model, memory: Memory, found: FloatArray, q: FloatArray, v: FloatArray, dt: float, length: float
    ) -> NDArray[np.bool_]:
        """Which contacts (n,) bounce in a part of a step that began at q, v; their features are those of the memory."""
        touching = touch_of(model)
        if touching is None or "restitution" not in model.features:
            return np.zeros(len(found), dtype=bool)
        here, lively = touch_at(model, memory, q), touching.table.contacts.numbers[:, 1]
        rest, more = self._rest(model)
        return bouncing(here, found, v, lively, rest + more * dt, length)

    def _held(self, model: Model, memory: Memory, clock: Clock, k: int, control: Control) -> Control:
        """The control of step k, sampled at its start, for all of its parts."""
        if control.callback is None:
            return Control(control.array[k : k + 1])
        return Control(control_at(control.callback.address, clock.at(k), *self.state(model, memory))[None])

    def _finer_step(
        self, model: Model, memory: Memory, clock: Clock, k: int, every: int, control: Control
    ) -> tuple[Chunk, FloatArray] | None:
        """Step k in 2, 4, ... equal parts, with its contacts.

        None if no number of them has a solution; the memory is then as it was.
        """
        t, h, held = clock.at(k), clock.length(k), self._held(model, memory, clock, k, control)
        for parts in _PARTS:
            trial, each = {name: array.copy() for name, array in memory.items()}, []
            counters = {"iterations": 0, "restarts": 0, "finer steps": 1}
            for i in range(parts):
                short = Clock(t + i * h / parts, h / parts)
                part, found = self._roll(model, trial, short, 0, 1, 1, held, logged=True)
                if part.status == Status.STRIKES:
                    part, more = self._impact_step(model, trial, short, 0, 1, held)
                    found = [more]
                each += found
                for name, count in part.counters.items():
                    counters[name] = counters.get(name, 0) + count
                if part.failure is not None:
                    break
            else:
                for name, array in memory.items():
                    array[...] = trial[name]
                rows = saved_rows(k, 1, every)
                iterations = np.full(rows, counters["iterations"], dtype=np.int64)
                spent = counters["iterations"]
                none = [np.zeros(len(rows_of), dtype=bool) for rows_of in each]
                contacts = mean_contacts(each, none, [h / parts] * parts)[0]
                return Chunk(1, None, part.q[:rows], part.v[:rows], counters, iterations, spent), contacts
        return None

    def _contact_numbers(self, model: Model, memory: Memory) -> tuple[Any, Any, tuple[float, float, float, float], int]:
        """What may touch, its variables, the numbers of ``maximal.barrier.solve_contact`` and iterations."""
        from leastaction.maximal.bounds import Beside
        from leastaction.maximal.dry import Dry

        touching, solver = touch_of(model), self.solver
        if touching is None:
            return None, None, (solver.tolerance, 0.0, 0.0, 0.0), solver.iterations
        if not isinstance(solver, InteriorPoint):
            # what a user chose for Newton's method
            given = {key: getattr(solver, key) for key in ("tolerance", "iterations")}
            solver = InteriorPoint(**{key: each for key, each in given.items() if each != getattr(Newton, key)})
        rows = model.inequalities if inequality_count(model) else None
        where, half, _ = dry_table(model)
        dry = Dry(where, half, np.array([solver.barrier, solver.creep])) if len(half) else None
        beside = Beside(touching.limits, rows, None if isinstance(self.cone, str) else pyramid(self.cone), dry)
        kept = (*(memory[name] for name in _KEPT), beside)
        weight = model.total_mass * (float(np.linalg.norm(model.system.tree.gravity)) or 10.0)
        # what sticks is as rigid as a body: a step that begins farther from its end would have to move it
        warm = solver.warm if dry is None else min(solver.warm, _NEAR * solver.barrier)
        barriers = (solver.barrier * weight, warm * weight, solver.creep * weight)
        return touching, kept, (solver.tolerance, *barriers), solver.iterations

    def _rest(self, model: Model) -> tuple[float, float]:
        """Speed below which nothing bounces, m/s, and what each second of a step adds to it."""
        g = float(np.linalg.norm(model.system.tree.gravity))
        return (0.0, 2.0 * g) if self.rest_speed is None else (self.rest_speed, 0.0)

    def _impact_step(
        self, model: Model, memory: Memory, clock: Clock, k: int, every: int, control: Control
    ) -> tuple[Chunk, FloatArray]:
        """Step k, cut at its impacts, and its contacts; what bounces is no force."""
        counters, held = {"iterations": 0, "restarts": 0}, self._held(model, memory, clock, k, control)

        def advance(trial: Memory, t: float, h: float, settled: bool) -> tuple[str | None, FloatArray]:
            chunk, found = self._roll(model, trial, Clock(t, h), 0, 1, 1, held, seen=True, settled=settled)
            for name in counters:
                counters[name] += chunk.counters[name]
            return chunk.failure, found[0] if found else np.zeros((0, CONTACT_COLUMNS))

        h, (rest, more) = clock.length(k), self._rest(model)
        barrier = self._contact_numbers(model, memory)[2][1]
        failure, after, impacts, pieces = step_with_impacts(
            model, cast(Touching, touch_of(model)).table, partial(bound_rows, model), barrier,
            partial(self._begin, model), partial(self.state, model), advance, memory, clock.at(k), h, rest + more * h,
        )  # fmt: skip
        spent = counters["iterations"]
        if failure is not None:
            # impacts of a step that is not taken do not count
            none = np.zeros((0, model.nq)), np.zeros((0, model.nv)), {**counters, "impacts": 0}
            return Chunk(0, failure, *none, np.zeros(0, dtype=np.int64), spent), np.zeros((0, CONTACT_COLUMNS))
        for name, array in memory.items():
            array[...] = after[name]
        rows = saved_rows(k, 1, every)
        q, v = self.state(model, memory)
        iterations = np.full(rows, spent, dtype=np.int64)
        chunk = Chunk(1, None, q[None][:rows], v[None][:rows], {**counters, "impacts": impacts}, iterations, spent)
        none_struck = [np.zeros(len(found), dtype=bool) for _, found in pieces]
        return chunk, mean_contacts([found for _, found in pieces], none_struck, [part for part, _ in pieces])[0]

    def contact_pairs(self, model: Model) -> tuple[tuple[str, str], ...]:
        """Names of the two bodies of every pair that may touch; the ground is "world"."""
        touching = touch_of(model)
        return () if touching is None else touching.table.names

    def _roll(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control,
        seen: bool = False, settled: bool = True, logged: bool = False,
    ) -> tuple[Chunk, list[FloatArray]]:  # fmt: skip
        """The steps, up to one in which something strikes; or one plastic step with the contacts ``seen`` in it.

        ``settled``: velocities are those after what contacts do at the end of a step. ``logged``: with the contacts of
        every step that begins at a saved row. Where there are more contacts at a time than there is room for, there is
        twice as much from that step on.
        """
        parts: list[Chunk] = []
        log: list[FloatArray] = []
        done, room = 0, 1
        while not parts or parts[-1].status == Status.NO_ROOM:
            chunk, found = self._roll_within(
                model, memory, clock, k + done, steps - done, every, control, seen, settled, logged, room
            )
            parts.append(chunk)
            log += found
            done, room = done + chunk.steps, 2 * room
        return joined(parts) if len(parts) > 1 else parts[0], log

    def _roll_within(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control,
        seen: bool, settled: bool, logged: bool, room: int,
    ) -> tuple[Chunk, list[FloatArray]]:  # fmt: skip
        """``_roll`` with so many times the room for contacts that the memory has."""
        from leastaction.maximal import step as maximal_step

        nullspace, rest = self.choice.linear == "nullspace", (math.inf, 0.0)
        if "restitution" in model.features:
            if not nullspace and not seen and steps > 0:
                # what the others leave to look at is one step
                none = np.zeros((0, model.nq)), np.zeros((0, model.nv)), {"iterations": 0, "restarts": 0}
                return Chunk(0, failure_of(Status.STRIKES), *none, np.zeros(0, dtype=np.int64), 0, Status.STRIKES), []
            rest = self._rest(model)
        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
        address = control.callback.address if control.callback else 0
        passive = model.system.passive
        active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
        touching, kept, numbers, iterations = self._contact_numbers(model, memory)
        begun = -(-(k + steps) // every) - -(-k // every) if (seen or logged) and touching else 0
        kept = kept if room == 1 else with_rows(kept, room * len(kept[0]))
        found = np.zeros((begun * len(kept[0]) if touching else 0, CONTACT_COLUMNS))
        counts = np.zeros(begun, dtype=np.int64)
        roll = partial(maximal_step.rollout, model.system) if nullspace else partial(rollout, model, self.choice)
        plan = with_room(plan_of(model), room) if nullspace else couplings(model)
        done, status, row = roll(
            rest, not seen, settled, plan, touching.table.contacts if touching else None,
            touching.limits if touching else None, efforts(model), kept, clock.uniform, clock.table(k, steps), k, steps,
            memory["x"], memory["p"], memory["past"], memory["lengths"], memory["known"], every,
            control.array[k : k + steps], address, active, numbers, iterations, q, v, found, counts, count,
        )  # fmt: skip
        if room > 1:
            keep_rows(memory, kept)
        rows = saved_rows(k, done, every)
        failure = None
        if status:
            fast = ""
            if status == Status.NOT_CONVERGED and row == 0:
                fast = too_fast(model, *self.state(model, memory), clock.length(k + done))
            failure = failure_words(model, touching, status, row, iterations, fast)
        chunk = counted_chunk(done, failure, q[:rows], v[:rows], count, status)
        if touching is not None:
            # an interior point has no line search, and counts no evaluations
            chunk.counters = {"iterations": chunk.counters["iterations"], "restarts": chunk.counters["backtracks"]}
        if "restitution" in model.features and not seen:
            chunk.counters["impacts"] = 0
        begun = -(-(k + done) // every) - -(-k // every) if begun else 0
        return chunk, np.split(found[: counts[:begun].sum()], np.cumsum(counts[:begun])[:-1]) if begun else []


def _check_cone(cone: Any) -> str | int:
    """The friction cone: "exact", or its number of sides."""
    if isinstance(cone, str) and cone == "exact":
        return cone
    if isinstance(cone, bool) or not isinstance(cone, int | np.integer) or cone < 4 or cone % 2:
        raise ModelError(f'Maximal: cone must be "exact" or an even number of sides from 4 on, got {cone!r}.')
    return int(cone)


_CONTACT_ARRAYS = _KEPT[:3]


def with_rows(kept: Any, rows: int) -> Any:
    """The variables of contacts with room for so many."""
    larger = tuple(
        np.concatenate([each, np.zeros((rows - len(each), *each.shape[1:]), each.dtype)]) for each in kept[:3]
    )
    return larger + kept[3:]


def with_room(plan: Any, times: int) -> Any:
    """So many times the room for the plan that a rollout makes."""
    from leastaction.maximal.replan import Outline

    return plan._replace(size=times * plan.size) if isinstance(plan, Outline) else plan


def keep_rows(memory: Memory, kept: Any) -> None:
    """Put variables of contacts into the memory, as many as it has room for; the others begin the next step anew."""
    n = len(memory["contacts"])
    for name, each in zip(_CONTACT_ARRAYS, kept[:3], strict=True):
        memory[name][...] = each[:n]
    memory["known"][1] = min(memory["known"][1], n)


@dataclass(frozen=True, eq=False)
class Touching:
    """What may touch in a model, and the limits that are enforced, as kernels read them."""

    table: ContactTable
    limits: Any


_TOUCHING = frozenset({"contact", "enforced limits", "bounded servos", "inequality constraints", "joint friction"})


@lru_cache(maxsize=64)
def touch_of(model: Model) -> Touching | None:
    """Contacts and enforced limits of a model, or None where there is nothing that the interior point is for."""
    if not model.features & _TOUCHING:
        return None
    return Touching(contact_table(model.mechanism, model.places), limit_table(model)[0])


@lru_cache(maxsize=64)
def efforts(model: Model) -> FloatArray:
    """Largest generalised force (nv,) of the control, infinite where it is not bounded, or the input of a servo."""
    out = np.full(model.nv, np.inf)
    if model.mechanism.limits_enforced:
        for view in model.joints.values():
            out[view.v] = view.joint.effort
        out[[servo.rate for servo in bounded_servos(model)]] = np.inf
    return out


_NEIGHBOURS = 12
"""How many neighbours a node of the elimination may have in the mean before there is made more room."""


def coupled(
    model: Model,
) -> tuple[list[tuple[int, int, list[int]]], list[tuple[int, int]], list[tuple[int, int]], bool]:
    """What couples bodies beside the tree: nodes of multipliers, pairs that do always, pairs that may touch.

    A node has its first row, its number of rows and its bodies. Besides, whether there are springs.
    """
    table = model.system.constraints
    parts: list[tuple[int, int, list[int]]] = []
    for name, rows in model.loop_rows.items():
        joint = model.split.joints[name]
        ends = [model.places[joint.parent].row, model.places[joint.child].row]
        parts.append((rows.start, rows.stop - rows.start, ends))
    if model.system.loops is not None:
        ties = model.system.loops.ties
        for k, (_, _, first, bodies) in enumerate(ties.kind.tolist()):
            at = model.constraint_size - len(ties.kind) + k
            parts.append((at, 1, ties.bodies[first : first + bodies].tolist()))
    if table is not None:
        for _, first, bodies, start, size in table.kind.tolist():
            rows_of = table.bodies[first : first + bodies].tolist()
            for at in range(0, size, 6):
                parts.append((model.constraint_size + start + at, min(6, size - at), rows_of))
    pairs, springs = spring_pairs(model)
    touching = touch_of(model)
    meet = np.zeros((0, 2), dtype=np.int64)
    if touching is not None:
        contacts = touching.table.contacts
        meet = np.unique(contacts.shapes[contacts.pairs[:, :2], 1], axis=0)
    always, meeting = (
        [(a, b) for a, b in each if a > 0 and b > 0 and a != b]
        for each in (pairs + inequality_pairs(model), [(int(a), int(b)) for a, b in meet])
    )
    return parts, always, meeting, springs


def is_coupled(model: Model) -> bool:
    """Whether bodies are coupled beside the tree: one form of the kernels serves all such mechanisms."""
    parts, pairs, meet, _ = coupled(model)
    return bool(parts or pairs or meet or inequality_count(model)) or model.system.constraints is not None


@lru_cache(maxsize=64)
def couplings(model: Model) -> Any:
    """Plan of the elimination for all that may touch where bodies are coupled beside the tree, else None."""
    from leastaction.maximal.graph import Couplings

    if not is_coupled(model):
        return None
    parts, pairs, meet, springs = coupled(model)
    stiff = bool(pairs or meet or inequality_count(model)) or touch_of(model) is not None or springs
    parents = model.system.tree.rows[:, 0].tolist()
    return Couplings(**elimination(parents, pairs + meet, parts, stiff), planner=None)


@lru_cache(maxsize=64)
def plan_of(model: Model) -> Any:
    """The plan of ``couplings``; where there are contacts, limits or inequalities, what a rollout makes one from."""
    from leastaction.maximal.replan import Outline

    if touch_of(model) is None or not is_coupled(model):
        return couplings(model)
    parts, pairs, _, _ = coupled(model)
    parents = model.system.tree.rows[:, 0].tolist()
    return Outline(**outline_of(parents, pairs, parts, _NEIGHBOURS), stiff=np.ones(1, dtype=np.int64))
