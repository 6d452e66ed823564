"""How the derivative of a Galerkin step grows: with the order, with the number of loops, and on a humanoid.

``leastaction bench linearize`` shows these after the growth with the number of coordinates. The humanoid is Talos if
the package example-robot-data is installed, else a floating tree of the same size and branching, which its row says.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.bench import main as bench
from leastaction.galerkin.method import Galerkin
from leastaction.model.checks import FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.model import Model, State
from leastaction.model.pose import pose
from leastaction.sensitivity.linearize import linearize

ORDERS = (2, 4, 6, 8)
LINKS = 16
"""The growth with the order is that of a chain of so many links."""

WINDOWS = (2, 4, 8, 16)
"""Numbers of four-bars in series; each has 2 coordinates and 5 constraint rows, and one more rod stands at the end."""

TALOS = "cmeel.prefix/share/example-robot-data/robots/talos_data/robots/talos_reduced.urdf"

LIMBS = {"leg1": 6, "leg2": 6, "torso": 2, "arm1": 8, "arm2": 8, "head": 2}
"""Hinges of the limbs of a humanoid of Talos' size; arms and head hang on the torso, the rest on the floating base."""


def exponent(sizes: Any, times: Any) -> float:
    """Slope of the times in the sizes, both logarithmic."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def humanoid() -> Mechanism:
    """A floating tree with 32 hinges in limbs as those of Talos: 38 coordinates."""
    m, rng = Mechanism("humanoid"), np.random.default_rng(3)
    m.add_body("base", mass=15.0, inertia=(0.2, 0.2, 0.2))
    m.add_joint("root", "free", parent="world", child="base")
    for limb, count in LIMBS.items():
        parent = "torso2" if limb.startswith(("arm", "head")) else "base"
        for k in range(1, count + 1):
            at, axis = rng.uniform(-0.2, 0.2, 3), np.eye(3)[rng.integers(3)]
            m.add_body(f"{limb}{k}", mass=2.0, com=rng.uniform(-0.1, 0.1, 3), inertia=(0.02, 0.02, 0.02))
            m.add_joint(f"{limb}{k}", "revolute", parent=parent, child=f"{limb}{k}", axis=axis, parent_frame=pose(at))
            parent = f"{limb}{k}"
    return m


def talos() -> tuple[str, Mechanism]:
    """What to call the humanoid, and the humanoid."""
    from leastaction.io import load

    try:
        path = Path(str(importlib.metadata.distribution("example-robot-data").locate_file(TALOS)))
    except importlib.metadata.PackageNotFoundError:
        return "floating tree of Talos' size", humanoid()
    return "Talos", load(path, floating=True, allow=("mimic",))


def still(model: Model) -> State:
    """A floating robot with its hinges bent a little, at small rates."""
    rng, q = np.random.default_rng(1), model.neutral()
    q[7:] = rng.uniform(-0.3, 0.3, len(q) - 7)
    return model.state(q, rng.uniform(-0.3, 0.3, model.nv))


def pinocchio_model(m: Mechanism) -> Any:
    """The same mechanism in Pinocchio, through a URDF."""
    import pinocchio as pin

    from leastaction.io import save

    with tempfile.TemporaryDirectory() as folder:
        save(m, Path(folder) / "robot.urdf")
        return pin.buildModelFromUrdf(str(Path(folder) / "robot.urdf"))


def pinocchio_derivatives(m: Mechanism) -> Callable[[], Any]:
    """A call of Pinocchio's derivatives of forward dynamics of the same mechanism."""
    import pinocchio as pin

    peer = pinocchio_model(m)
    data, q, v = peer.createData(), pin.neutral(peer), np.full(peer.nv, 0.1)
    return lambda: pin.computeABADerivatives(peer, data, q, v, v)


def bench_humanoid(overhead: float) -> list[bench.Row]:
    """A step of Galerkin(2) and its derivative on 38 coordinates; ``overhead``: of a call of the peer, microseconds."""
    name, m = talos()
    model = m.build()
    theirs = bench.per_call(pinocchio_derivatives(m), 50) - overhead
    step, derivative = bench.derivative_time(model, still(model), 2, 0.001)
    both = step + derivative
    what = f"galerkin:2 step and derivative, {name} (n={model.nv}), Pinocchio ABA derivatives"
    return [bench.Row("linearize", what, "us", both, theirs, both / theirs, None)]


def bench_orders() -> list[bench.Row]:
    """How the derivative grows with the order."""
    from leastaction import models

    model, times = models.chain(LINKS).build(), []
    state, out = model.state(*bench.start_of_chain(LINKS)), []
    for order in ORDERS:
        times.append(bench.derivative_time(model, state, order, 0.001)[1])
        what = f"derivative of galerkin:{order}, chain n={LINKS}, that of galerkin:2"
        out.append(bench.Row("linearize", what, "us", times[-1], times[0], times[-1] / times[0], None))
    slope = exponent([order // 2 for order in ORDERS], times)
    what = f"exponent of the derivative in s, s = 1 to {ORDERS[-1] // 2}, chain n={LINKS}"
    return [*out, bench.Row("linearize", what, "", slope, None, slope, None)]


def bench_loops() -> list[bench.Row]:
    """How the derivative grows with the number of loops, as dense matrices; whole calls of ``linearize``."""
    from leastaction import models

    out, times = [], []
    for n in WINDOWS:
        model = models.n_four_bar(n).build()
        rates: FloatArray = np.array([-1.0 if name.startswith("base") else 1.0 for name in model.joint_names])
        state = model.state(v=rates)
        linearize(model, Galerkin(2), state, None, 0.001)
        seconds = bench.best(lambda: linearize(model, Galerkin(2), state, None, 0.001), least=3)  # noqa: B023
        times.append(seconds)
        what = f"derivative of galerkin:2, {n} four-bars, {model.constraint_size} rows"
        out.append(bench.Row("linearize", what, "ms", 1e3 * seconds, None, 1e3 * seconds, None))
    slope = exponent(WINDOWS[1:], times[1:])
    what = f"exponent of the derivative in the number of loops, {WINDOWS[1]} to {WINDOWS[-1]}"
    return [*out, bench.Row("linearize", what, "", slope, None, slope, None)]
