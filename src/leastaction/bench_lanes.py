"""Speed of many environments on one core: four lanes against a loop over environments, and against mujoco.rollout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastaction import bench
from leastaction.ensemble.run import simulate_many
from leastaction.methods.base import Clock, Control
from leastaction.methods.galerkin import Galerkin
from leastaction.solve.solvers import Newton


def bench_ensembles(environments: int = 256, links: int = 10, steps: int = 500) -> list[bench.Row]:
    """Chains under ``Galerkin(2)``, dt = 1 ms, tolerance 1e-10, cubic guess: microseconds of a step of one environment.

    Ours is all of ``simulate_many``, with its checks; the loop is the compiled rollout alone, from ready memories.
    Lanes must take at most half the time of the loop, and be 1.8 times as fast as MuJoCo's Euler on one thread.
    """
    import mujoco
    from mujoco import rollout

    dt, model = 0.001, bench._chain(links)
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-0.6, 0.6, (environments, links)), rng.uniform(-1.0, 1.0, (environments, links))
    method, idle = Galerkin(2, solver=Newton(tolerance=1e-10), guess="cubic"), Control(np.zeros((0, links)))
    starts = [method.start(model, model.state(*pair)) for pair in zip(q, v, strict=True)]

    def lanes() -> None:
        simulate_many(model, (q, v), dt=dt, duration=steps * dt, method=method, save_every=steps, on_failure="raise")

    def loop() -> None:
        for start in starts:
            memory = {name: array.copy() for name, array in start.items()}
            method.rollout(model, memory, Clock(0.0, dt), 0, steps, steps, idle)

    peer = bench._mujoco_chain(model, dt, "Euler")
    data, full = mujoco.MjData(peer), np.concatenate([np.zeros((environments, 1)), q, v], axis=1)
    # once for the compiler, then in turns, so that all three meet the same machine
    work: dict[str, Callable[[], Any]] = {
        "lanes": lanes,
        "loop": loop,
        "MuJoCo": lambda: rollout.rollout(peer, data, initial_state=full, nstep=steps),
    }
    fastest = {name: np.inf for name in work}
    for function in work.values():
        function()
    for _ in range(8):
        for name, function in work.items():
            fastest[name] = min(fastest[name], bench.best(function, seconds=0.0, least=1))
    ours, one, other = (float(fastest[name]) / steps / environments * 1e6 for name in work)
    what = f"galerkin:2 step of one of {environments} chains n={links}"
    return [
        bench.Row("lanes", f"{what}, loop over environments", "us", ours, one, ours / one, 1 / 2),
        bench.Row("lanes", f"{what}, mujoco.rollout Euler", "us", ours, other, ours / other, 1 / 1.8),
    ]
