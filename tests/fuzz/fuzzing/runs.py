"""Properties of runs: many at once against each alone, files, resumed runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import leastaction as la
from fuzzing.case import Case, apart, simulate
from leastaction.model.configuration import retract

_STEPS, _DT = 12, 0.005


def many(case: Case) -> None:
    """Many environments do what each does alone, in lanes, with threads and with arrays of controls."""
    model, rng = case.model, case.rng
    states = []
    for _ in range(6):
        q = retract(model, case.state.q, 0.02 * rng.normal(size=model.nv) * (case.plan.smooth and not case.plan.loops))
        state = model.state(q, case.state.v * rng.uniform(0.9, 1.1))
        states.append(la.project(model, state) if case.plan.loops else state)
    controls = np.round(0.5 * rng.normal(size=(6, _STEPS, model.nv)), 3)
    named = ("galerkin:2", "maximal") if rng.random() < 0.6 else None
    for name in case.methods(2, named) if named else case.methods(2):
        given = controls if rng.random() < 0.7 else None
        options = {"dt": _DT, "duration": _STEPS * _DT, "method": name, "control": given}
        found = la.simulate_many(model, states, on_failure="raise", **options)
        show = (
            f"states = [model.state(q, v) for q, v in zip(np.array({found.q[:, 0].tolist()}), "
            f"np.array({found.v[:, 0].tolist()}))]\n"
            f"u = {'None' if given is None else f'np.array({given.tolist()})'}\n"
            f"found = la.simulate_many(model, states, dt={_DT}, duration={_STEPS * _DT}, method={name!r}, control=u)\n"
        )
        for e, state in enumerate(states):
            alone = simulate(model, state, _DT, _STEPS, name, None if given is None else given[e])
            away = max(np.abs(alone.q - found.q[e]).max(initial=0.0), np.abs(alone.v - found.v[e]).max(initial=0.0))
            # lanes round in another order; measured: at most 1e-11
            if not away < (1e-8 if found.lanes else 1e-15) * (1 + np.abs(alone.v).max(initial=0.0)):
                show += (
                    f"alone = la.simulate(model, states[{e}], dt={_DT}, duration={_STEPS * _DT}, method={name!r}, "
                    f"control=None if u is None else u[{e}])\nprint(alone.v[-1], found.v[{e}, -1])\n"
                )
                case.fail(f"{name}: environment {e} is apart by {away:.3g} from it alone, lanes {found.lanes}", show)
        if not model.callbacks:
            again = la.simulate_many(model, states, threads=2, on_failure="raise", **options)
            if not (np.array_equal(again.q, found.q) and np.array_equal(again.v, found.v)):
                case.fail(f"{name}: two threads give other numbers than one", show.replace("u)\n", "u, threads=2)\n"))


def files(case: Case) -> None:
    """A mechanism and a run that are written and read do the same; a resumed run is that of the whole length."""
    model, state = case.model, case.state
    name = case.methods(1)[0]
    whole = simulate(model, state, _DT, _STEPS, name)
    half = simulate(model, state, _DT, _STEPS // 2, name)
    run = f"la.simulate(model, x0, dt={_DT}, duration={_STEPS // 2 * _DT}, method={name!r})"
    show = f"run = {run}\nrun.save('run.npz')\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        half.save(path)
        read = la.Trajectory.load(path, model=model if case.plan.functions else None)
        if not (np.array_equal(read.q, half.q) and np.array_equal(read.v, half.v) and np.array_equal(read.t, half.t)):
            case.fail(f"{name}: a run reads back other rows", show + "print(la.Trajectory.load('run.npz').q - run.q)\n")
        further = la.resume(read, _STEPS // 2 * _DT)
        if not (np.array_equal(further.q, whole.q) and np.array_equal(further.v, whole.v)):
            show += f"print(la.resume('run.npz', {_STEPS // 2 * _DT}).q[-1])\n"
            show += f"print(la.simulate(model, x0, dt={_DT}, duration={_STEPS * _DT}, method={name!r}).q[-1])\n"
            away = max(np.abs(further.q - whole.q).max(), np.abs(further.v - whole.v).max())
            case.fail(f"{name}: a resumed run is apart by {away:.3g} from the whole one", show)
        if case.plan.functions:
            return
        path = Path(folder) / "mechanism.json"
        la.save(model.mechanism, path)
        again = la.load(path).build()
        same = simulate(again, again.state(state.q, state.v), _DT, _STEPS, name)
        if apart(case.plan, whole, same) > 0:
            case.fail(
                f"{name}: a mechanism reads back as another one, apart by {apart(case.plan, whole, same):.3g}",
                "la.save(model.mechanism, 'm.json')\nagain = la.load('m.json').build()\n"
                f"for each in (model, again):\n    print(la.simulate(each, each.state(x0.q, x0.v), dt={_DT}, "
                f"duration={_STEPS * _DT}, method={name!r}).q[-1])\n",
            )
