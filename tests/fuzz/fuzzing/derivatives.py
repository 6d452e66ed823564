"""Properties of derivatives: linearize and gradient, every method and parameter, against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import leastaction as la
from fuzzing.case import Case, central, forward, simulate
from leastaction.model.configuration import difference, retract
from leastaction.run.registry import method_by_name

_DT, _STEPS, _H = 0.01, 4, 1e-3
_STATE = ("q", "v", "controls")
_MECHANISM = ("stiffness", "damping", "mass", "inertia", "placement", "friction")


def linearize(case: Case) -> None:
    """A and B of a step are its derivatives along random directions; C by every parameter that the method has."""
    model, x, u = case.model, case.state, case.controls(1)
    if not case.plan.smooth:
        # a step across a kink has no derivative: let the joints be free of their limits
        x = model.state(x.q, 0.1 * x.v)
    for name in case.methods(4):
        try:
            found = la.linearize(model, name, x, u[0], _DT)
        except la.UnsupportedError:
            continue
        d = np.round(case.rng.normal(size=3 * model.nv), 3)
        by_state = found.A @ d[: 2 * model.nv] + found.B @ d[2 * model.nv :]

        def end(h: float, name: str = name, d: np.ndarray = d, found: Any = found) -> np.ndarray:
            start = _state(case, model, x, h * d[: model.nv], h * d[model.nv : 2 * model.nv])
            last = simulate(model, start, _DT, 1, name, u + h * d[2 * model.nv :])
            return np.concatenate([difference(model, found.state.q, last.q[-1]), last.v[-1] - found.state.v])

        _check(
            case, f"linearize of {name}", by_state, end,
            f"from leastaction.model.configuration import difference, retract\n"
            f"u, d, n = np.array({u.tolist()}), np.array({d.tolist()}), model.nv\n"
            f"found = la.linearize(model, {name!r}, x0, u[0], {_DT})\n\n\ndef end(h):\n"
            f"    x = model.state(retract(model, x0.q, h * d[:n]), x0.v + h * d[n : 2 * n])\n"
            + ("    x = la.project(model, x)\n" if case.plan.loops else "")
            + "    w = u + h * d[2 * n :]\n"
            f"    run = la.simulate(model, x, dt={_DT}, duration={_DT}, method={name!r}, control=w)\n"
            "    return np.concatenate([difference(model, found.state.q, run.q[-1]), run.v[-1] - found.state.v])\n\n\n"
            "print(found.A @ d[: 2 * n] + found.B @ d[2 * n :])\nprint((end(1e-4) - end(-1e-4)) / 2e-4)\n",
        )  # fmt: skip
        for parameter in method_by_name(name).parameters:
            _parameter_of_step(case, name, parameter, x, u)


def _parameter_of_step(case: Case, name: str, parameter: str, x: la.State, u: np.ndarray) -> None:
    """C of one step by one parameter along a random direction."""
    model = case.model
    try:
        C = la.linearize(model, name, x, u[0], _DT, [parameter])
    except la.UnsupportedError:
        return
    change = _change(case, parameter)
    if change is None:
        return
    given = sum(
        (np.tensordot(C.C[parameter][key], d, axes=np.ndim(d)) for key, d in change.items() if key in C.C[parameter]),
        np.zeros(2 * model.nv),
    )

    def end(h: float) -> np.ndarray:
        changed = _changed(case, parameter, change, h)
        last = la.linearize(changed, name, changed.state(x.q, x.v), u[0], _DT).state
        return np.concatenate([difference(model, C.state.q, last.q), last.v - C.state.v])

    show = _show_change(parameter, change) + (
        f"u = np.array({u.tolist()})\n"
        f"print(la.linearize(model, {name!r}, x0, u[0], {_DT}, [{parameter!r}]).C[{parameter!r}])\n"
        f"ends = [changed(h) for h in {_ends(parameter)}]\n"
        f"more, less = (la.linearize(each, {name!r}, x0, u[0], {_DT}).state for each in ends)\n"
        "print((more.q - less.q) / 2e-4, (more.v - less.v) / 2e-4)\n"
    )
    _check(case, f"linearize of {name} by {parameter}", given, end, show, parameter)


def gradient(case: Case) -> None:
    """The gradient of an objective of a run by state, controls and parameters, along random directions."""
    model, x = case.model, case.state
    u = np.round(0.5 * case.rng.normal(size=(_STEPS, model.nv)), 3)
    body = str(case.rng.choice(list(case.plan.bodies)))
    goals = np.round(0.3 * case.rng.normal(size=(_STEPS + 1, model.nv)), 3)
    objective = la.Reach(body, (0.3, -0.2, 0.1), (0.05, 0.1, -0.1)) + la.Track(v=goals, weight=0.3) + la.Effort(0.2)
    text = (
        f"objective = la.Reach({body!r}, (0.3, -0.2, 0.1), (0.05, 0.1, -0.1)) + la.Effort(0.2)\n"
        f"objective += la.Track(v=np.array({goals.tolist()}), weight=0.3)\nu = np.array({u.tolist()})\n"
    )
    names = [name for name in case.methods(99) if name in _GRADIENT]
    # with loops a step and its derivative take some milliseconds
    for name in names[: 1 if case.plan.loops else 2]:
        for parameter in (*_STATE, *_MECHANISM):
            try:
                found = la.gradient(model, name, x, u, _DT, objective, [parameter])
            except la.UnsupportedError:
                continue
            _gradient_by(case, name, parameter, found, x, u, objective, text)


_GRADIENT = (
    "bdf:1", "bdf:2", "sdirk2", "galerkin:2", "galerkin:4", "galerkin:6", "lie-trapezoid", "maximal",
    "rk1", "rk2", "rk4", "euler",
)  # fmt: skip


def _gradient_by(
    case: Case, name: str, parameter: str, found: Any, x: la.State, u: np.ndarray, objective: Any, text: str
) -> None:
    """One gradient by one parameter."""
    model = case.model
    show = text + f"print(la.gradient(model, {name!r}, x0, u, {_DT}, objective, [{parameter!r}])[{parameter!r}])\n"
    if parameter in _STATE:
        d = np.round(case.rng.normal(size=found[parameter].shape), 3)
        given = float((found[parameter] * d).sum())
        still = np.zeros(model.nv)

        def value(h: float) -> float:
            start = _state(case, model, x, h * d if parameter == "q" else still, h * d if parameter == "v" else still)
            more = u + h * d if parameter == "controls" else u
            return la.gradient(model, name, start, more, _DT, objective, []).value

        lines = {
            "q": "    x, w = model.state(retract(model, x0.q, h * d), x0.v), u\n",
            "v": "    x, w = model.state(x0.q, x0.v + h * d), u\n",
            "controls": "    x, w = x0, u + h * d\n",
        }
        show += (
            f"from leastaction.model.configuration import retract\nd = np.array({d.tolist()})\n\n\ndef value(h):\n"
            + lines[parameter] + ("    x = la.project(model, x)\n" if case.plan.loops else "")
            + f"    return la.gradient(model, {name!r}, x, w, {_DT}, objective, []).value\n\n\n"
            f"print('along d', {given!r}, (value(1e-4) - value(-1e-4)) / 2e-4)\n"
        )  # fmt: skip
    else:
        change = _change(case, parameter)
        if change is None:
            return
        by = found[parameter]
        if parameter in ("stiffness", "damping"):
            by = {joint: by[view.v] for joint, view in model.joints.items()}
        given = float(sum(np.sum(np.asarray(by[key]) * d) for key, d in change.items() if key in by))

        def value(h: float) -> float:
            changed = _changed(case, parameter, change, h)
            return la.gradient(changed, name, changed.state(x.q, x.v), u, _DT, objective, []).value

        show += _show_change(parameter, change) + (
            f"ends = [changed(h) for h in {_ends(parameter)}]\n"
            f"more, less = (la.gradient(each, {name!r}, x0, u, {_DT}, objective, []).value for each in ends)\n"
            f"print('along the change', {given!r}, (more - less) / 2e-4)\n"
        )
    _check(case, f"gradient of {name} by {parameter}", given, value, show, parameter)


def _ends(parameter: str) -> str:
    """Where a printed program takes its difference."""
    return "(2e-4, 0.0)" if parameter in ("stiffness", "damping") else "(1e-4, -1e-4)"


def _check(case: Case, what: str, given: Any, function: Callable[[float], Any], show: str, parameter: str = "") -> None:
    """Compare a derivative with differences."""
    differences = forward if parameter in ("stiffness", "damping") else central
    # projected states are the nearest ones to 1e-12 only where they are near
    expected, doubt = differences(function, 0.1 * _H if case.plan.loops else _H)
    scale = 1.0 + float(np.abs(expected).max(initial=0.0))
    # a step with a kink nearby, or a stiff one, has no such difference; measured doubt: at most 1e-4 where smooth
    if doubt > 1e-2 * scale:
        return
    away = float(np.abs(given - expected).max(initial=0.0))
    # measured: at most 1e-7
    if not away < 2e-6 * scale + 0.02 * doubt:
        case.fail(f"{what}: off by {away:.3g}, {given} against differences {expected}", show)


def _state(case: Case, model: la.Model, x: la.State, move: np.ndarray, rate: np.ndarray) -> la.State:
    """A state nearby; with loops projected."""
    out = model.state(retract(model, x.q, move), x.v + rate)
    return la.project(model, out) if case.plan.loops else out


def _change(case: Case, parameter: str) -> dict[str, Any] | None:
    """A direction of a parameter, by body or joint; None where there is nothing to change."""
    rng, model, m = case.rng, case.model, case.model.mechanism
    if parameter == "mass":
        return {body: round(float(rng.normal()), 3) for body in m.bodies}
    if parameter == "inertia":
        out = {}
        for body in m.bodies:
            half = np.round(0.1 * rng.normal(size=(3, 3)), 3)
            out[body] = half + half.T
        return out
    if parameter == "placement":
        return {joint: np.round(rng.normal(size=3), 3) for joint in model.joints}
    if parameter in ("stiffness", "damping"):
        free = [name for name in model.joints if isinstance(getattr(m.joints[name], parameter), np.ndarray)]
        # upwards, as none may be negative; a spring ties what flies to the world, and its steps are then other ones
        out = {name: np.round(rng.uniform(0.2, 1.0, size=m.joints[name].nv), 3) for name in free}
        for name, d in out.items():
            if m.joints[name].kind == "free":
                d[3:] *= getattr(m.joints[name], parameter)[3:] > 0
        return out or None
    return None


def _changed(case: Case, parameter: str, change: dict[str, Any], h: float) -> la.Model:
    """The model with a parameter changed by h times a direction."""
    m = case.program.mechanism()
    for key, d in change.items():
        if parameter in ("mass", "inertia"):
            body = m.bodies[key]
            setattr(body, parameter, getattr(body, parameter) + h * d)
        elif parameter == "placement":
            frame = m.joints[key].parent_frame.copy()
            frame[:3, 3] += h * d
            m.joints[key].parent_frame = frame
        else:
            setattr(m.joints[key], parameter, getattr(m.joints[key], parameter) + h * d)
    return m.build()


def _show_change(parameter: str, change: dict[str, Any]) -> str:
    """The lines that make a changed model."""
    table = "{" + ", ".join(f"{key!r}: np.array({np.asarray(d).tolist()})" for key, d in change.items()) + "}"
    records = "bodies" if parameter in ("mass", "inertia") else "joints"
    lines = f"change = {table}\n\n\ndef changed(h):\n    m = mechanism()\n    for key, d in change.items():\n"
    if parameter == "placement":
        lines += "        frame = m.joints[key].parent_frame.copy()\n        frame[:3, 3] += h * d\n"
        lines += "        m.joints[key].parent_frame = frame\n"
    else:
        lines += f"        m.{records}[key].{parameter} = m.{records}[key].{parameter} + h * d\n"
    return lines + "    return m.build()\n\n\n"
