"""Speed of many environments on one core: four lanes against a loop over environments, and against mujoco.rollout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastaction.bench import main as bench
from leastaction.galerkin.method import Galerkin
from leastaction.maximal.method import Maximal
from leastaction.methods.base import Clock, Control, Method
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.run.ensemble import simulate_many
from leastaction.solve.solvers import Newton


def bench_ensembles(environments: int = 256, links: int = 10, steps: int = 500) -> list[bench.Row]:
    """Chains under ``Galerkin(2)`` and ``Maximal()``, dt = 1 ms, tolerance 1e-10: microseconds of a step of one.

    Ours is all of ``simulate_many``, with its checks; the loop is the compiled rollout alone, from ready memories.
    Lanes must take at most half the time of the loop, and be 1.8 times as fast as MuJoCo's Euler on one thread.
    """
    import mujoco
    from mujoco import rollout

    dt, model = 0.001, bench._chain(links)
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-0.6, 0.6, (environments, links)), rng.uniform(-1.0, 1.0, (environments, links))
    peer = bench._mujoco_chain(model, dt, "Euler")
    data, full = mujoco.MjData(peer), np.concatenate([np.zeros((environments, 1)), q, v], axis=1)
    solver = Newton(tolerance=1e-10)
    galerkin, maximal = Galerkin(2, solver=solver, guess="cubic"), Maximal(solver=solver)
    # once for the compiler, then in turns, so that all meet the same machine
    work: dict[str, Callable[[], Any]] = {
        **_both("galerkin:2", model, galerkin, q, v, dt, steps),
        **_both("maximal", model, maximal, q, v, dt, steps),
        "MuJoCo": lambda: rollout.rollout(peer, data, initial_state=full, nstep=steps),
    }
    fastest = {name: np.inf for name in work}
    for function in work.values():
        function()
    for _ in range(8):
        for name, function in work.items():
            fastest[name] = min(fastest[name], bench.best(function, seconds=0.0, least=1))
    time = {name: float(found) / steps / environments * 1e6 for name, found in fastest.items()}
    rows = []
    for name in ("galerkin:2", "maximal"):
        what, ours = f"{name} step of one of {environments} chains n={links}", time[f"{name} lanes"]
        for peer_name, words, bound in (
            (f"{name} loop", "loop over environments", 1 / 2),
            ("MuJoCo", "mujoco.rollout Euler", 1 / 1.8),
        ):
            other = time[peer_name]
            rows.append(bench.Row("lanes", f"{what}, {words}", "us", ours, other, ours / other, bound))
    return rows


def _both(
    name: str, model: Model, method: Method, q: FloatArray, v: FloatArray, dt: float, steps: int
) -> dict[str, Callable[[], Any]]:
    """All environments in lanes, and one after the other."""
    starts = [method.start(model, model.state(*pair)) for pair in zip(q, v, strict=True)]
    idle = Control(np.zeros((0, model.nv)))

    def lanes() -> None:
        simulate_many(model, (q, v), dt=dt, duration=steps * dt, method=method, save_every=steps, on_failure="raise")

    def loop() -> None:
        for start in starts:
            memory = {key: array.copy() for key, array in start.items()}
            bench.whole(method.rollout(model, memory, Clock(0.0, dt), 0, steps, steps, idle))

    return {f"{name} lanes": lanes, f"{name} loop": loop}
