"""What a gradient costs: the adjoint of BDF on an arm of 20 joints and 200 steps, 4000 controls.

``leastaction bench gradient``. The peer of each row is the simulation alone, with the same method and steps.
"""

from __future__ import annotations

import numpy as np

from leastaction import models
from leastaction.bench import main as bench
from leastaction.implicit.method import BDF
from leastaction.run.simulate import simulate
from leastaction.sensitivity.gradient import gradient
from leastaction.sensitivity.objectives import Effort, Reach

JOINTS, STEPS, DT = 20, 200, 0.005
MOST = 4.0
"""A gradient may cost so many simulations."""


def bench_gradient() -> list[bench.Row]:
    """Time of a simulation and of its value with gradient, all states kept and with checkpoints only."""
    model, rng = models.chain(JOINTS, length=0.1).build(), np.random.default_rng(0)
    state = model.state(0.2 * rng.normal(size=JOINTS), 0.2 * rng.normal(size=JOINTS))
    controls = 0.3 * rng.normal(size=(STEPS, JOINTS))
    objective = Reach(f"link{JOINTS}", (0.3, 0.4, -1.0), (0.0, 0.0, -0.1)) + Effort(1e-3)
    out = []
    for order in (1, 2):
        method = BDF(order)

        def forward(method: BDF = method) -> None:
            simulate(model, state, dt=DT, duration=STEPS * DT, method=method, control=controls, save_every=STEPS)

        def backward(room: float, method: BDF = method) -> None:
            gradient(model, method, state, controls, DT, objective, memory=room)

        backward(0.0)
        alone = 1e3 * bench.best(forward)
        for words, room in (("all states kept", 2e8), ("checkpoints only", 0.0)):
            spent = 1e3 * bench.best(lambda room=room, run=backward: run(room))  # type: ignore[misc]
            what = f"gradient of bdf:{order}, {JOINTS} joints, {STEPS} steps, {words}; simulation alone"
            out.append(bench.Row("gradient", what, "ms", spent, alone, spent / alone, MOST))
    return out
