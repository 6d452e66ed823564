"""Properties of the world: where it is, how it is turned, how fast it flies, its units; order and company of bodies."""

from __future__ import annotations

import numpy as np

import leastaction as la
from fuzzing.case import INVARIANT, NAMES, Case, apart, simulate
from fuzzing.generator import SMOOTH, draw
from fuzzing.plan import Plan
from fuzzing.program import Program
from fuzzing.writing import SI, Setting, write
from leastaction.spatial import quaternion, se3

_STEPS, _DT = 20, 0.005


def moved(case: Case) -> None:
    """The world is moved by some metres and turned."""
    turn = quaternion.to_matrix(quaternion.normalize(case.rng.normal(size=4)))
    _same(case, Setting(world=se3.pose(turn, np.round(3 * case.rng.normal(size=3), 2))), 1e-9)


def far(case: Case) -> None:
    """The world is moved by a kilometre."""
    _same(case, Setting(world=se3.pose(np.eye(3), np.array([800.0, -600.0, 100.0]))), 1e-7)


def flying(case: Case) -> None:
    """Everything flies by; only where nothing holds on to the world."""
    _same(case, Setting(flight=np.round(20 * case.rng.normal(size=3), 2)), 1e-8, INVARIANT)


def units(case: Case) -> None:
    """Millimetres and grams, or kilometres and tonnes."""
    length, mass = ((1e3, 1e3), (1e-3, 1e-3), (1.0, 1e3), (1e2, 1.0))[int(case.rng.integers(4))]
    _same(case, Setting(length=length, mass=mass), 1e-9)


def order(case: Case) -> None:
    """Bodies, joints and forces are added in another order."""
    _same(case, Setting(order=int(case.rng.integers(1000))), 1e-9)


def together(case: Case) -> None:
    """Two mechanisms in one do what each does alone."""
    recipe = SMOOTH[int(case.rng.integers(len(SMOOTH)))]
    other = draw(case.seed + 100_000, recipe)
    other.gravity = case.plan.gravity
    a, b = Setting(prefix="a"), Setting(prefix="z")
    first, second = write(case.plan, a), write(other, b)
    # ground, limits and contacts belong to the first; the second has no shapes and no limits
    joint = Program(
        [*first.lines, *second.lines[1:]], {**first.q, **second.q}, {**first.v, **second.v}, first.close or second.close
    )
    for name in case.methods(2, model=joint.model):
        both = simulate(joint.model, joint.state, _DT, _STEPS, name)
        for plan, alone, setting in ((case.plan, first, a), (other, second, b)):
            one = simulate(alone.model, alone.state, _DT, _STEPS, name)
            _compare(case, plan, name, one, both, setting, setting, _tolerance(case, 1e-9), alone, joint)


def _tolerance(case: Case, tolerance: float) -> float:
    """Contact and limits end where their barrier does, not at rounding."""
    return tolerance if case.plan.smooth else max(tolerance, 1e-6)


def _same(case: Case, setting: Setting, tolerance: float, names: tuple[str, ...] = NAMES) -> None:
    """The motion under a setting is that of the plan."""
    here, there = write(case.plan), write(case.plan, setting)
    for name in case.methods(3, names, here.model):
        one = simulate(here.model, here.state, _DT, _STEPS, name)
        other = simulate(there.model, there.state, _DT, _STEPS, _scaled(name, setting))
        _compare(case, case.plan, name, one, other, SI, setting, _tolerance(case, tolerance), here, there)


def _scaled(name: str, setting: Setting) -> str | la.Maximal:
    """The method of a name in units of a setting: the barrier of contacts and limits is a length."""
    if name != "maximal" or setting.length == 1.0:
        return name
    usual = la.InteriorPoint()
    barrier, warm, friction = (setting.length * x for x in (usual.barrier, usual.warm, usual.creep))
    return la.Maximal(solver=la.InteriorPoint(barrier=barrier, warm=warm, friction=friction))


def _compare(
    case: Case, plan: Plan, name: str, one: object, other: object, at: Setting, to: Setting, tolerance: float,
    here: Program, there: Program,
) -> None:  # fmt: skip
    """Fail where two runs are apart."""
    # a row in which joints strike limits is as near to its barrier as that step ends: measured 7e-4 rad/s, once
    away = apart(plan, one, other, at, to, rates=1.0 if plan.smooth else 1e-3)
    scale = 1.0 + float(np.abs(one.v).max(initial=0.0))  # type: ignore[attr-defined]
    if not away < tolerance * scale:
        run = f"dt={_DT}, duration={_STEPS * _DT}, method={name!r})\n"
        case.program = here
        case.fail(
            f"{name}: apart by {away:.3g} under {_words(to)}",
            f"one = la.simulate(model, x0, {run}other = la.simulate(changed, x1, {run}"
            "print(one.q[-1], one.v[-1])\nprint(other.q[-1], other.v[-1])\n",
            there.text("other", "changed", "x1"),
        )


def _words(setting: Setting) -> str:
    """A setting in words."""
    shift, flight = setting.world[:3, 3].tolist(), setting.flight.tolist()
    return f"length {setting.length:g}, mass {setting.mass:g}, shift {shift}, flight {flight}, order {setting.order}"
