"""Steps of ``Maximal`` with the Newton direction from the whole system of bodies, joints, loops and contacts.

The iteration is that of ``maximal.step`` and ``maximal.barrier``, with its linear solver by name in
the middle; a loop in Python around compiled parts (``maximal.full_system.step``), to compare with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.contact.layout import FULL, no_contacts
from leastaction.errors import ModelError, UnsupportedError
from leastaction.jit.status import DONE, NO_RATES, NO_ROOM, NOT_CONVERGED
from leastaction.maximal.full_system.plan import Contact, FullPlan, planner_of
from leastaction.maximal.full_system.solvers import LINEAR, LOOPS, solve_full_system
from leastaction.maximal.limits import limit_table
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST, TOTALS

# Statuses of ``maximal.step.rollout``.

# The proximal term of ``maximal.loops``, relative to h^2 times the sizes of the rows.
RHO = 1.0e-6

# Equations of a contact and of a limit in the exact variant.
_FORCES, _ONE = 3, 1


@dataclass(frozen=True)
class Choice:
    """Which linear solver, where loops are eliminated, and which interior point method."""

    linear: str
    loops: str
    variant: str


def chosen(linear: Any, loops: Any, solver: Any, cone: str | int) -> Choice:
    """A choice from the arguments of ``Maximal``; ModelError where they do not go together."""
    if not isinstance(linear, str) or linear not in LINEAR:
        raise ModelError(f"Maximal: linear must be one of {', '.join(LINEAR)}, got {linear!r}.")
    if not isinstance(loops, str) or loops not in LOOPS:
        raise ModelError(f"Maximal: loops must be one of {', '.join(LOOPS)}, got {loops!r}.")
    if loops == "last" and linear != "graph":
        raise ModelError(f'Maximal: loops="last" is a way of linear="graph"; with linear="{linear}" leave it out.')
    variant = getattr(solver, "variant", "exact")
    if variant == "seed" and linear == "nullspace":
        raise ModelError(
            'Maximal: InteriorPoint(variant="seed") keeps the variables of contacts, which linear="nullspace" '
            'eliminates; take linear="graph", "dense" or "scipy".'
        )
    if variant == "seed" and cone not in ("exact", 4):
        raise ModelError(f'Maximal: InteriorPoint(variant="seed") has a pyramid of four sides, not cone={cone}.')
    return Choice(linear, loops, variant)


def refuse(choice: Choice, model: Model) -> None:
    """Raise UnsupportedError, by name, for what the interior point method of the paper does not know."""
    if choice.variant != "seed":
        return
    if "bounded servos" in model.features:
        raise UnsupportedError(
            f'\'{model.name}\' has bounded servos; InteriorPoint(variant="exact") honours them, variant="seed" knows '
            "contacts and limits of single coordinates."
        )
    if "inequality constraints" in model.features:
        raise UnsupportedError(
            f'\'{model.name}\' has inequality constraints; InteriorPoint(variant="exact") honours them, variant="seed" '
            "knows contacts and limits of single coordinates."
        )
    from leastaction.maximal.bounds import BALL_ANGLE

    limits, names = limit_table(model)
    for (_, _, kind, _), name in zip(limits.where.tolist(), names, strict=True):
        if kind == BALL_ANGLE:
            raise UnsupportedError(
                f"joint '{name}': the limit of a ball's angle is enforced by InteriorPoint(variant=\"exact\"), not by "
                'variant="seed".'
            )


class Stepper:
    """The tables of one rollout, and its parts of a step.

    Args:
        model: the mechanism.
        choice: what is solved how.
        plan: couplings beside the tree, or None.
        contacts: what may touch, or None.
        limits: enforced limits as kernels read them.
        kept: variables of contacts and limits that the method's memory holds.
        numbers: tolerance, barrier, barrier of a warm start, barrier of friction for each second of a step.
        most: most iterations.
        x: coordinates of the rows, for their type.
    """

    def __init__(
        self,
        model: Model,
        choice: Choice,
        plan: Any,
        contacts: Any,
        limits: Any,
        kept: Any,
        numbers: tuple[float, float, float, float],
        most: int,
        x: FloatArray,
    ) -> None:
        from leastaction.maximal.full_system import step as parts
        from leastaction.tree.layout import MASS

        self.model, self.choice, self.couplings, self.contacts = model, choice, plan, contacts
        self.system, self.limits, self.numbers, self.most, self.parts = model.system, limits, numbers, most, parts
        self.B, self.E, self.f, self.L, self.T, rates, arrival = parts.make_room(
            self.system, plan, contacts or no_contacts(), kept, x
        )
        nu = len(model.system.tree.rates)
        self.pc, self.ua, self.u, self.control = np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu)
        self.rate_of = np.argsort(model.system.coordinates.v)
        self.mass = float(model.system.tree.const[:, MASS].sum())
        self.room = (self.B, self.E, self.f, self.L, self.ua, rates, arrival)
        self.found, self.x, self.count = np.zeros(parts.FOUND), x, 0
        self.now, self.drive = (0.0, 0.0, self.mass), (self.pc, self.control, False, self.rate_of)
        self.whole: Any = None
        self.bouncing = contacts if "restitution" in model.features else None

    @property
    def is_full(self) -> bool:
        """Whether there was no room for all contacts."""
        return bool(self.T.near.number[FULL])

    def take_back(self, count: int) -> None:
        """Variables of so many contacts, and of limits, as they were before the step."""
        T = self.T
        for now, old in ((T.ints, T.old_ints), (T.F, T.old_F), (T.V, T.old_V)):
            now[:count] = old[:count]
        T.U[:] = T.old_U

    # --- parts of a step --------------------------------------------------------------------------------------------
    @property
    def touch(self) -> Any:
        """What contacts and limits are in this step."""
        return self.T, self.limits, self.count

    def compile(self, x: FloatArray, p: FloatArray, known: Any, past: FloatArray, lengths: FloatArray, address: int,
                effort: FloatArray, out: Any) -> None:  # fmt: skip
        """Compile all parts for the types of this rollout, without a call. out: out_q, out_v, out_c, out_n."""
        from numba import typeof

        parts, system, tree, plan, drive = self.parts, self.system, self.system.tree, self.couplings, self.drive
        self.prepare((), 1)
        todo: list[tuple[Any, tuple[Any, ...]]] = [
            (parts.open_step, (system, plan, self.now, x, p, False, False, known, past, lengths, address, effort,
                               self.pc, self.control, self.u, self.room)),
            (parts.put_guess, (tree, x, self.B.guess, self.B)),
            (parts.look, (self.touch, system, self.now, x, drive, True, 0, 0.0, False, 1.0, 1.0, self.room,
                          self.found)),
            (parts.assemble, (self.touch, system, plan, self.now, (0.0, 0.0), True, self.whole, self.lam, self.room,
                              self.res, self.values)),
            (parts.direct, (self.touch, system, plan, self.whole, self.res, True, self.room)),
            (parts.advance, (self.touch, system, plan, 1.0, 0.0, 1.0, 1.0, True, self.room)),
            (parts.close_step, (self.touch, self.bouncing, 0.0, True, self.numbers, system, plan, self.now, x, p, drive,
                                past, lengths, known, self.u, *out[:2], 0, self.room)),
        ]  # fmt: skip
        if self.contacts is not None:
            todo.append((parts.find_contacts, (self.contacts, tree, x, self.control, 0.1, 0, self.B, self.T)))
            todo.append((parts.is_too_far, (self.touch, tree, self.B)))
            todo.append((parts.find_more, (self.contacts, tree, x, 0.1, 0, False, self.B, self.T)))
            todo.append((parts.hold_contacts, (0.1, 0, self.B, self.T)))
            todo.append((parts.report, (self.T, 0, self.B, *out[2:], 0)))
        for function, given in todo:
            function.compile(tuple(typeof(each) for each in given))

    def look(
        self, closed: bool, what: int, warm: float = 0.0, cold: bool = False, s0: float = 1.0, g0: float = 1.0
    ) -> tuple[float, float]:
        """Residuals of the iterate into ``found``; see ``maximal.full_system.step.look``."""
        return self.parts.look(  # type: ignore[no-any-return]
            self.touch, self.system, self.now, self.x, self.drive, closed, what, warm, cold, s0, g0, self.room,
            self.found,
        )  # fmt: skip

    def put_guess(self, xi: FloatArray) -> None:
        """The first iterate: joints closed, displaced by xi."""
        self.parts.put_guess(self.system.tree, self.x, xi, self.B)

    def prepare(self, sizes: tuple[int, ...], limit_size: int) -> None:
        """Plan the system for the contacts of this step, which have so many equations each."""
        from leastaction.maximal.full_system.system import FullSystem

        ends = self.T.ints[: self.count, 1:3].tolist()
        contacts = tuple(Contact(a, b, size) for (a, b), size in zip(ends, sizes, strict=True))
        planner = planner_of(self.model, limit_size, self.choice.loops == "last")
        self.plan: FullPlan = planner.plan(self.couplings, contacts, tuple(self.limits.where[:, 0].tolist()))
        links = len(self.plan.tables["links"])
        self.whole = FullSystem(
            **self.plan.tables, r=np.zeros((len(self.system.tree.rows), 3)), X0=np.zeros((links, 36)),
            X1=np.zeros((links, 36)), M=np.zeros((6, 6)), N=np.zeros((6, 6)),
        )  # fmt: skip
        self.res, self.values = np.zeros(self.plan.size), np.zeros(len(self.plan.rows))
        self.lam = np.zeros(self.plan.size)

    def assemble(self, kappa: tuple[float, float] = (0.0, 0.0), exact: bool = True) -> None:
        """The whole system at the iterate, for barriers of gaps and of friction."""
        self.parts.assemble(
            self.touch, self.system, self.couplings, self.now, kappa, exact, self.whole, self.lam, self.room, self.res,
            self.values,
        )  # fmt: skip

    def direction(self, exact: bool = True) -> float | None:
        """Solve for the directions; the largest step inside all cones, or None where there is no solution."""
        eps = 0.0 if self.E is None else float(self.E.eps[0])
        held = None
        if eps > 0.0:
            rows = [first + np.arange(count) for _, first, count in self.couplings.parts.tolist()]
            held = self.now[1] * np.sqrt(self.L.size[np.concatenate([np.zeros(0, dtype=np.int64), *rows])])
        z = solve_full_system(self.choice.linear, self.plan, self.values, -self.res, eps, held)
        if z is None:
            return None
        self.z = z
        longest = self.parts.direct(self.touch, self.system, self.couplings, self.whole, z, exact, self.room)
        return float(longest)

    def advance(self, alpha: float, back: float = 0.0, s0: float = 1.0, g0: float = 1.0, exact: bool = True) -> None:
        """Move by a part of the direction."""
        self.parts.advance(self.touch, self.system, self.couplings, alpha, back, s0, g0, exact, self.room)

    def trust_rows(self) -> None:
        """The rows of loops and constraints are taken to be well conditioned, but for those that are redundant."""
        if self.E is not None:
            self.E.eps[0] = 0.0

    def take_care(self) -> bool:
        """From now on multipliers are found in least squares; False if this was so already, or there are none."""
        if self.E is None or self.E.eps[0] > 0.0:
            return False
        self.E.eps[0] = RHO
        return len(self.couplings.parts) > 0

    def worst(self) -> int:
        """What is off by most work: 1 + pair of a contact, or -1 - number of a limit or inequality; 0 without any."""
        T = self.T
        phi = np.concatenate([T.g[: self.count, 0], T.N[:, 3], np.zeros(0) if T.R is None else T.R.g[:, 0]])
        pairs = np.concatenate([T.V[: self.count, :2], T.U])
        if len(phi) == 0:
            return 0
        off = (np.abs(phi - pairs[:, 0]) + pairs[:, 0]) * pairs[:, 1]
        k = int(np.argmax(np.where(np.isfinite(off), off, np.inf)))
        return int(T.ints[k, 3]) + 1 if k < self.count else self.count - 1 - k


# --- smooth motion --------------------------------------------------------------------------------------------------
def solve_smooth(step: Stepper, straight: bool, count: Any) -> bool:
    """Newton from the guess in B.guess, with backtracking or ``straight``; True if the residual is within tolerance.

    One iteration at least, as in ``maximal.step``.
    """
    p, rtol, h, moment = step.parts, step.numbers[0], step.now[1], float(step.B.unit[1])
    step.put_guess(step.B.guess)
    step.trust_rows()
    before = size_before = gap_before = math.inf
    alpha, steps, closed = 1.0, 0, True
    while True:
        step.look(closed, p.PLAIN)
        largest, scale, gap, squares, gaps, reach, rounding, far = step.found[: p.MEAN].tolist()
        count[EVALUATIONS] += 1
        # bounds of residual and gap, and coarser ones, within which only rounding can be to blame
        near, floor = min(rtol, rtol * scale * h / moment), 100.0 * rounding
        limit, widest = rtol * scale + rounding, (max(1.0e-15, near) + 1.0e-15 * far) * (1.0 + reach)
        coarse = (max(1.0e-13, near) + 1.0e-15 * far) * (1.0 + reach)
        small, apart = size_before <= floor and largest <= floor, max(gap, gap_before)
        if steps > 0 and largest <= limit and gap <= widest:
            break
        merit = squares + (moment / h) ** 2 * gaps
        if math.isfinite(merit) and merit <= (1.0 - 1.0e-4 * alpha) * before:
            if steps == step.most:
                break
            step.assemble()
            if step.direction() is None:
                break
            steps += 1
            before, size_before, gap_before, alpha = merit, largest, gap, 1.0
        else:
            if steps == 0 or alpha < 1.0e-3 or (small and apart <= coarse):
                break
            count[CUTS] += 1
            if step.take_care():
                # once more from the iterate before
                alpha, before = 0.0, math.inf
            elif straight:
                break
            else:
                alpha *= 0.5
        step.advance(alpha)
        closed = False
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    return bool((largest <= limit and gap <= widest) or (small and apart <= 100.0 * coarse))


# --- contacts and limits --------------------------------------------------------------------------------------------
def iterate(step: Stepper, cold: bool, wide: bool, most: int, count: Any) -> bool:
    """Interior point iterations, one at least, from the guess in B.x1; True if all conditions hold."""
    from leastaction.maximal.barrier import ENOUGH, NEAR, friction_barrier

    p, (rtol, barrier, warm, creep) = step.parts, step.numbers
    s0, g0 = step.look(True, p.STARTING, warm, cold, 10.0 if wide else 1.0)
    if not math.isfinite(step.found[p.LARGEST]):
        return False
    closed, alpha, steps, good, near = True, 1.0, 0, False, False
    while True:
        step.look(closed, p.INSIDE)
        largest, scale, gap, _, _, reach, rounding, _, mean, product, rough, roughest, grip, off, work = (
            step.found.tolist()
        )
        if not math.isfinite(largest):
            break
        slick = friction_barrier(barrier, creep, step.now[1], reach * float(step.B.unit[0]), grip)
        tight = max(rtol, 4.0e-15) * (1.0 + reach)
        ends = (
            steps > 0
            and largest <= rtol * scale + rounding
            and gap <= tight
            and off <= min(tight * step.B.unit[0], 0.1 * barrier / max(g0, 1.0e-300) + 1.0e-14)
            and product <= NEAR * barrier
            and roughest <= NEAR * slick
        )
        if ends and (near or (product <= ENOUGH * barrier and roughest <= ENOUGH * slick)):
            good = True
            break
        near = ends
        if steps == most:
            break
        # direction for the next barrier, which must not run ahead of the gaps
        sigma = min(0.5, max(0.2 if cold else 0.02, (1.0 - alpha) ** 2))
        kappa = max(barrier, sigma * mean, 0.1 * work)
        step.assemble((kappa, max(slick, sigma * rough, 0.1 * work * slick / barrier)))
        longest = step.direction()
        if longest is None:
            break
        steps += 1
        alpha = min(1.0, max(0.99, 1.0 - mean) * longest)
        if not alpha > 0.0:
            break
        # jammed at a boundary: back to the curve of the barrier, farther out
        step.advance(alpha, 10.0 * max(mean, rough) if alpha < 0.02 and not wide else 0.0, s0, g0)
        closed = False
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    return good


def solve_contact(step: Stepper, first: bool, count: Any) -> bool:
    """A step with contacts and limits; True if one of the attempts converges."""
    from leastaction.maximal.cone import LOOSE

    for attempt in range(4):
        if attempt == 0 and first:
            continue
        if attempt > 1 or (attempt == 1 and not first):
            count[CUTS] += 1
        # the guess, or the configuration at k, which is feasible
        step.put_guess(step.B.guess if attempt < 2 else np.zeros_like(step.B.guess))
        step.T.tune[1] = LOOSE if attempt < 2 else 1.0
        good = iterate(step, attempt > 0, attempt == 3, step.most if attempt == 0 else 4 * step.most, count)
        if good and (attempt > 1 or not step.parts.is_too_far(step.touch, step.system.tree, step.B)):
            return True
    return False


def solve_looking(step: Stepper, first: bool, count: Any) -> bool:
    """The same, and once more with the contacts that were missed, as ``maximal.step.solve_step`` does it."""
    from leastaction.maximal.barrier import LOOKS, MOST_LOOKS

    sure, looks, again = step.count, 0, False
    while not step.is_full:
        step.prepare((_FORCES,) * step.count, _ONE)
        good = solve_contact(step, first and looks == 0, count)
        if not good and again:
            # there is no solution with what was missed, or without what was let go
            step.count, looks, again = sure, MOST_LOOKS, False
            step.parts.hold_contacts(step.now[1], sure, step.B, step.T)
            continue
        sure = step.count
        if not good or looks == MOST_LOOKS or step.contacts is None:
            return good
        looks += 1
        step.count, again = step.parts.find_more(
            step.contacts, step.system.tree, step.x, step.now[1], sure, looks > LOOKS, step.B, step.T
        )
        if not again:
            return True
    return False


# --- rollouts -------------------------------------------------------------------------------------------------------
def rollout(
    model: Model, choice: Choice, rest: tuple[float, float], watched: bool, settled: bool, plan: Any, contacts: Any,
    limits: Any, effort: FloatArray, kept: Any, uniform: bool, clock: FloatArray, k0: int, steps: int, x:
    FloatArray, p: FloatArray, past: FloatArray, lengths: FloatArray, known: Any, every: int, controls: FloatArray,
    address: int, passive: bool, numbers: tuple[float, float, float, float], most: int, out_q: FloatArray, out_v:
    FloatArray, out_c: FloatArray, out_n: Any, count: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """What ``maximal.step.rollout`` does, with the linear solver of ``choice``; the same arguments and answers."""
    from leastaction.maximal.bounds import Beside, Limits, relieve
    from leastaction.maximal.full_system.seed import solve_seed

    touching = contacts is not None
    if not touching:
        held = np.zeros(p.size, dtype=np.int64)
        limits = Limits(np.zeros((0, 4), dtype=np.int64), np.zeros((0, 2)), np.zeros((0, 4)), held)
        ints, beside = np.zeros((0, 4), dtype=np.int64), Beside(limits, None, None, None)
        kept = (ints, np.zeros((0, 24)), np.zeros((0, 5)), np.zeros((0, 2)), np.ones(2), np.zeros((0, 4)), beside)
    step, saved, seen = Stepper(model, choice, plan, contacts, limits, kept, numbers, most, x), 0, 0
    if steps == 0:
        step.compile(x, p, known, past, lengths, address, effort, (out_q, out_v, out_c, out_n))
    for k in range(steps):
        t, h = (clock[0, 0] + (k0 + k) * clock[0, 1], clock[0, 1]) if uniform else clock[k]
        step.now = (float(t), float(h), step.mass)
        asked = address
        if address == 0:
            step.control[:] = controls[k] if len(controls) else 0.0
        step.drive = (step.pc, step.control, passive or address != 0 or len(controls) > 0, step.rate_of)
        good = False
        for attempt in range(2):
            # once more from the rates, where the last steps mislead
            if attempt == 1 and (good or known[0] == 0 or known[3] == 1):
                break
            if not _opened(step, x, p, attempt == 1, past, lengths, known, asked, effort):
                return k, NO_RATES, 0
            asked = 0
            if known[3] == 1:
                # the first step of the papers moves by h times the rates
                step.count = 0
                step.put_guess(step.B.guess)
                step.look(True, step.parts.PLAIN)
                good = True
            elif choice.variant == "seed":
                xi = past[:, 0] * (h / lengths[0]) if known[0] > 0 and attempt == 0 else step.B.guess.copy()
                good = solve_seed(step, xi, count)
            elif touching:
                good = solve_looking(step, known[2] == 0, count)
            else:
                step.prepare((), _ONE)
                good = solve_smooth(step, attempt == 0 and known[0] > 0, count)
            if step.is_full:
                step.take_back(int(known[1]))
                return k, NO_ROOM, 0
            if touching and known[3] == 0:
                known[1], known[2] = step.count, 1
        if not good:
            return k, NOT_CONVERGED, step.worst()
        relieve(limits, step.T, step.control)
        row = saved if (k0 + k + 1) % every == 0 else -1
        status, where = step.parts.close_step(
            step.touch, step.bouncing, rest[0] + rest[1] * float(h), settled, numbers, step.system, step.couplings,
            step.now, x, p, step.drive, past, lengths, known, step.u, out_q, out_v, row, step.room,
        )  # fmt: skip
        if status != DONE:
            return k, status, where
        known[3] = 0
        if touching and (k0 + k) % every == 0 and seen < len(out_n):
            step.parts.report(step.T, step.count, step.B, out_c, out_n, seen)
            seen += 1
        if row >= 0:
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE, 0


def _opened(
    step: Stepper, x: FloatArray, p: FloatArray, rates: bool, past: FloatArray, lengths: FloatArray, known: Any,
    address: int, effort: FloatArray,
) -> bool:  # fmt: skip
    """Control, tables at k, guess and contacts of a step; False where there are no rates."""
    good = step.parts.open_step(
        step.system, step.couplings, step.now, x, p, rates, step.contacts is not None, known, past, lengths, address,
        effort, step.pc, step.control, step.u, step.room,
    )  # fmt: skip
    step.count = 0
    if good and step.contacts is not None:
        step.count = int(
            step.parts.find_contacts(
                step.contacts, step.system.tree, x, step.control, step.now[1], int(known[1]), step.B, step.T
            )
        )
    return bool(good)
