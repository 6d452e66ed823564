"""Speed, measured against Pinocchio and MuJoCo in the same run: ``leastaction bench``.

Every figure is a minimum over repeats, one thread. Ratios are ours over theirs: below one is faster.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.files import write_beside
from leastaction.model.model import Model


@dataclass(frozen=True)
class Row:
    """One measurement: microseconds or seconds of ours and of the peer, and the bound that the ratio must keep."""

    group: str
    what: str
    unit: str
    ours: float
    theirs: float | None
    ratio: float
    bound: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None where there is none."""
        return None if self.bound is None else self.ratio <= self.bound


def best(function: Callable[[], Any], seconds: float = 0.5, least: int = 5) -> float:
    """Smallest time of a call, repeated for about so many seconds."""
    fastest, end, count = math.inf, time.perf_counter() + seconds, 0
    while count < least or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        fastest = min(fastest, time.perf_counter() - start)
        count += 1
    return fastest


def per_call(function: Callable[[], Any], calls: int) -> float:
    """Smallest time of one of ``calls`` calls in a Python loop, microseconds."""

    def many() -> None:
        for _ in range(calls):
            function()

    return best(many) / calls * 1e6


def _chain(n: int) -> Model:
    from leastaction import models

    return models.chain(n).build()


def _pinocchio_chain(model: Model) -> Any:
    """The same chain in Pinocchio, from the rows of our tree."""
    import pinocchio as pin

    out, tree = pin.Model(), model.system.tree
    for i in range(1, len(tree.rows)):
        c = tree.const[i]
        placement = pin.SE3(c[:9].reshape(3, 3), c[9:12])
        joint = out.addJoint(int(tree.rows[i, 0]), pin.JointModelRZ(), placement, f"joint{i}")
        I = np.array([[c[16], c[17], c[18]], [c[17], c[19], c[20]], [c[18], c[20], c[21]]])
        out.appendBodyToJoint(joint, pin.Inertia(float(c[12]), c[13:16], I), pin.SE3.Identity())
    return out


def _mujoco_chain(model: Model, dt: float, integrator: str) -> Any:
    """The same chain in MuJoCo, without contact."""
    import mujoco

    lines, mechanism = [], model.mechanism
    for name in model.joint_names:
        joint = mechanism.joints[name]
        body = mechanism.bodies[joint.child]
        I = body.inertia
        numbers = " ".join(repr(float(x)) for x in (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
        at = " ".join(repr(float(x)) for x in joint.parent_frame[:3, 3])
        com = " ".join(repr(float(x)) for x in body.com)
        axis = " ".join(repr(float(x)) for x in joint.axis)
        lines.append(
            f'<body pos="{at}"><inertial mass="{body.mass}" pos="{com}" fullinertia="{numbers}"/>'
            f'<joint type="hinge" axis="{axis}"/>'
        )
    xml = (
        f'<mujoco><option timestep="{dt}" integrator="{integrator}" gravity="0 0 -9.81"><flag contact="disable"/>'
        f"</option><worldbody>{''.join(lines)}{'</body>' * len(lines)}</worldbody></mujoco>"
    )
    return mujoco.MjModel.from_xml_string(xml)


def whole(chunk: Any) -> Any:
    """What a rollout gave, which must have done all its steps: the time of a run that fails says nothing."""
    from leastaction.errors import ConvergenceError

    if chunk.failure is not None:
        raise ConvergenceError(f"bench: after {chunk.steps} steps: {chunk.failure}")
    return chunk


def start_of_chain(n: int) -> tuple[Any, Any]:
    """Seeded positions and velocities that a chain of n links can have at dt = 1 ms."""
    rng, scale = np.random.default_rng(1), 10.0 / max(n, 10)
    return rng.uniform(-0.6, 0.6, n) * scale, rng.uniform(-1.0, 1.0, n) * scale


def bench_kernels() -> list[Row]:
    """RNEA, ABA and CRBA against Pinocchio, whose call overhead (an empty model) is taken off."""
    import pinocchio as pin

    from leastaction.tree import entries as kernels

    out, repeats, empty = [], 500, pin.Model()
    no_data, none = empty.createData(), np.zeros(0)
    overhead = {
        "RNEA": per_call(lambda: pin.rnea(empty, no_data, none, none, none), repeats),
        "ABA": per_call(lambda: pin.aba(empty, no_data, none, none, none), repeats),
        "CRBA": per_call(lambda: pin.crba(empty, no_data, none), repeats),
    }
    for n in (10, 32, 100):
        model = _chain(n)
        tree, peer = model.system.tree, _pinocchio_chain(model)
        data = peer.createData()
        (x, u), a, tau, H = start_of_chain(n), np.random.default_rng(2).normal(size=n), np.zeros(n), np.zeros((n, n))
        pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any], float]] = {
            "RNEA": (
                lambda: kernels.rnea(tree, x, u, a, tau, repeats),  # noqa: B023
                lambda: pin.rnea(peer, data, x, u, a),  # noqa: B023
                0.75,
            ),
            "ABA": (
                lambda: kernels.aba(tree, x, u, a, tau, repeats),  # noqa: B023
                lambda: pin.aba(peer, data, x, u, a),  # noqa: B023
                0.75,
            ),
            "CRBA": (
                lambda: kernels.crba(tree, x, H, repeats),  # noqa: B023
                lambda: pin.crba(peer, data, x),  # noqa: B023
                1.2,
            ),
        }
        for name, (ours, theirs, bound) in pairs.items():
            ours()
            mine, peers = best(ours) / repeats * 1e6, per_call(theirs, repeats) - overhead[name]
            out.append(Row("kernels", f"{name} n={n}, Pinocchio", "us", mine, peers, mine / peers, bound))
    return out


def bench_lanes() -> list[Row]:
    """Four lanes against four single environments: the bare sweeps, and whole rollouts of many environments."""
    from leastaction.bench.lanes import bench_ensembles
    from leastaction.tree import entries as kernels

    out, repeats = [], 500
    for n in (10, 100):
        tree = _chain(n).system.tree
        x, u = start_of_chain(n)
        a, tau = np.zeros(n), np.zeros(n)
        wide = [np.repeat(vector[:, None], 4, axis=1) for vector in (x, u, a, tau)]
        for name, function in (("RNEA", kernels.rnea), ("ABA", kernels.aba)):
            function(tree, x, u, a, tau, 1)
            function(tree, *wide, 1)
            one = best(lambda: function(tree, x, u, a, tau, repeats)) / repeats * 1e6  # noqa: B023
            four = best(lambda: function(tree, *wide, repeats)) / repeats * 1e6 / 4  # noqa: B023
            out.append(Row("lanes", f"{name} n={n}, four lanes against one", "us", four, one, four / one, None))
    return [*out, *bench_ensembles()]


def bench_growth() -> list[Row]:
    """How the time of ABA grows from n = 32 to 1024: the exponent must stay under 1.1."""
    from leastaction.tree import entries as kernels

    sizes, times = (32, 64, 128, 256, 512, 1024), []
    for n in sizes:
        tree = _chain(n).system.tree
        x, u = start_of_chain(n)
        tau, a = np.zeros(n), np.zeros(n)
        kernels.aba(tree, x, u, tau, a, 1)
        times.append(best(lambda: kernels.aba(tree, x, u, tau, a, 50)) / 50)  # noqa: B023
    exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return [Row("growth", "exponent of ABA, n = 32 to 1024", "", exponent, None, exponent, 1.1)]


def bench_rollout() -> list[Row]:
    """Whole rollouts of SemiImplicitEuler and RungeKutta(4) against MuJoCo's Euler and RK4 of the same chain."""
    import mujoco
    from mujoco import rollout

    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.explicit.semi_implicit_euler import SemiImplicitEuler
    from leastaction.methods.base import Clock, Control

    out, dt, steps = [], 0.001, 200
    for n in (10, 32, 100):
        model = _chain(n)
        x, u = start_of_chain(n)
        state = model.state(x, u)
        for method, integrator in ((SemiImplicitEuler(), "Euler"), (RungeKutta(4), "RK4")):
            peer = _mujoco_chain(model, dt, integrator)
            data = mujoco.MjData(peer)
            full = np.concatenate([[0.0], x, u])
            start = method.start(model, state)
            idle = Control(np.zeros((0, n)))

            def ours() -> None:
                memory = {name: array.copy() for name, array in start.items()}  # noqa: B023
                whole(method.rollout(model, memory, Clock(0.0, dt), 0, steps, steps, idle))  # noqa: B023

            def theirs() -> None:
                rollout.rollout(peer, data, initial_state=full, nstep=steps)  # noqa: B023

            ours()
            theirs()
            mine, peers = best(ours) / steps * 1e6, best(theirs) / steps * 1e6
            bound = None if n == 10 else 1.0
            name = f"{method.label} step n={n}, MuJoCo {integrator}"
            out.append(Row("rollout", name, "us", mine, peers, mine / peers, bound))
    return out


def bench_galerkin() -> list[Row]:
    """A converged step of Galerkin(2) against one ABA of Pinocchio and one Euler step of MuJoCo; Galerkin(4).

    Tolerance 1e-10, dt = 1 ms.
    """
    import mujoco
    import pinocchio as pin
    from mujoco import rollout

    from leastaction.galerkin.method import Galerkin
    from leastaction.methods.base import Clock, Control
    from leastaction.solve.solvers import Newton

    out, dt, steps, empty = [], 0.001, 200, pin.Model()
    no_data, none = empty.createData(), np.zeros(0)
    overhead = per_call(lambda: pin.aba(empty, no_data, none, none, none), 500)
    for n, bound in ((10, 1.6), (32, 1.6), (100, 0.8)):
        model = _chain(n)
        x, u = start_of_chain(n)
        state, idle = model.state(x, u), Control(np.zeros((0, n)))
        times = []
        for order in (2, 4):
            method = Galerkin(order, solver=Newton(1e-10))
            start = method.start(model, state)

            def ours() -> None:
                memory = {name: array.copy() for name, array in start.items()}  # noqa: B023
                whole(method.rollout(model, memory, Clock(0.0, dt), 0, steps, steps, idle))  # noqa: B023

            ours()
            times.append(best(ours) / steps * 1e6)
        peer, other = _pinocchio_chain(model), _mujoco_chain(model, dt, "Euler")
        data, mj_data, full = peer.createData(), mujoco.MjData(other), np.concatenate([[0.0], x, u])
        aba = per_call(lambda: pin.aba(peer, data, x, u, u), 500) - overhead  # noqa: B023
        euler = best(lambda: rollout.rollout(other, mj_data, initial_state=full, nstep=steps)) / steps * 1e6  # noqa: B023
        out += [
            Row("galerkin", f"galerkin:2 step n={n}, Pinocchio ABA", "us", times[0], aba, times[0] / aba, 1.5),
            Row("galerkin", f"galerkin:2 step n={n}, MuJoCo Euler", "us", times[0], euler, times[0] / euler, bound),
            Row("galerkin", f"galerkin:4 step n={n}, galerkin:2", "us", times[1], times[0], times[1] / times[0], 4.0),
        ]
    return out


def derivative_time(model: Model, state: Any, order: int, dt: float) -> tuple[float, float]:
    """Microseconds of a Galerkin step and of its derivative, both in compiled loops."""
    from leastaction.galerkin import linear as galerkin_linear
    from leastaction.galerkin.method import Galerkin, across, balance, lobatto
    from leastaction.methods.base import Clock, Control
    from leastaction.solve.solvers import Newton

    # short calls, so that other work on the machine seldom falls into the fastest
    method, n = Galerkin(order, solver=Newton(1e-10)), model.nv
    steps = max(1, min(20, 640 // n))
    # long chains whip: Newton's method in minimal coordinates loses its way after some 20 steps of 256 links
    most = max(steps, min(200, 2000 // n))
    idle, start = Control(np.zeros((0, n))), method.start(model, state)
    memory = {name: array.copy() for name, array in start.items()}
    x, p, xi = [], [], []
    for k in range(steps):
        x.append(memory["x"].copy())
        p.append(memory["p"].copy())
        whole(method.rollout(model, memory, Clock(0.0, dt), k, 1, 1, idle))
        xi.append(memory["past"][:, : order // 2 + 1].copy())
    (c, w, b, _), none = lobatto(order // 2), np.zeros((0, 0))
    arguments = (
        model.system, tuple(w.tolist()), b, c, across(model.system.tree.gravity), balance(order // 2), np.zeros(steps),
        dt, np.array(x), np.array(p), np.array(xi), np.zeros((steps, n)), False, none, none, none, none,
        np.zeros((steps, 2 * n, 2 * n)), np.zeros((steps, 2 * n, n)),
    )  # fmt: skip

    def roll() -> None:
        fresh = {name: array.copy() for name, array in start.items()}
        whole(method.rollout(model, fresh, Clock(0.0, dt), 0, most, most, idle))

    galerkin_linear.galerkin_linearize(*arguments)
    roll()
    derivative = best(lambda: galerkin_linear.galerkin_linearize(*arguments)) / steps * 1e6
    return best(roll) / most * 1e6, derivative


def bench_linearize() -> list[Row]:
    """A step of Galerkin(2) with its derivative against Pinocchio's ABA derivatives; growth of the derivative.

    It grows with the number of coordinates, with the order and with the number of loops.

    The peer's figure is the call of ``computeABADerivatives`` alone, without the integrator around it. The Euler step
    of Crocoddyl with calcDiff was reported at 12 us for Panda (7 coordinates); it is not measured here.
    """
    import pinocchio as pin

    from leastaction import models
    from leastaction.bench.linearize import bench_humanoid, bench_loops, bench_orders

    dt, empty = 0.001, pin.Model()
    no_data, none = empty.createData(), np.zeros(0)
    overhead = per_call(lambda: pin.computeABADerivatives(empty, no_data, none, none, none), 500)
    sizes, times, out = (8, 16, 32, 64, 128, 256), {2: [], 4: []}, []  # type: ignore[var-annotated]
    for name, model in [("Panda", models.arm().build()), *((f"chain n={n}", _chain(n)) for n in sizes)]:
        x, u = start_of_chain(model.nv)
        peer = _pinocchio_chain(model)
        data = peer.createData()
        theirs = per_call(lambda: pin.computeABADerivatives(peer, data, x, u, u), 100) - overhead  # noqa: B023
        step, derivative = derivative_time(model, model.state(x, u), 2, dt)
        both = step + derivative
        what = f"galerkin:2 step and derivative, {name}, Pinocchio ABA derivatives"
        out.append(Row("linearize", what, "us", both, theirs, both / theirs, None))
        if name != "Panda":
            times[2].append(derivative)
            times[4].append(derivative_time(model, model.state(x, u), 4, dt)[1])
    for order, spent in times.items():
        exponent = float(np.polyfit(np.log(sizes[2:]), np.log(spent[2:]), 1)[0])
        name = f"exponent of the derivative of galerkin:{order}, n = 32 to 256"
        out.append(Row("linearize", name, "", exponent, None, exponent, 2.2))
    return [*out, *bench_humanoid(overhead), *bench_orders(), *bench_loops()]


def bench_maximal() -> list[Row]:
    """Steps of ``Maximal``: smooth chains, loops and contact."""
    from leastaction.bench.maximal import bench_maximal as measure

    return measure()


def bench_contact() -> list[Row]:
    """Steps in contact against MuJoCo on the same scene: robots, where they are there, and thrown boxes."""
    from leastaction.bench.contact import bench_contact as measure

    return measure()


def bench_gradient() -> list[Row]:
    """Adjoint gradients of BDF against the simulation alone."""
    from leastaction.bench.gradient import bench_gradient as measure

    return measure()


def bench_precision() -> list[Row]:
    """Time to a given error of the trajectory, against MuJoCo's RK4 and DOP853 on Pinocchio's ABA."""
    from leastaction.bench import precision as bench_precision

    return bench_precision.bench_precision()


def bench_redmax() -> list[Row]:
    """Growth of the Jacobian products, of the inverse inertia product and of hybrid dynamics."""
    from leastaction.bench.redmax import bench_redmax as measure

    return measure()


def bench_cold() -> list[Row]:
    """``leastaction run pendulum`` with an empty kernel cache (bound 30 s), and again (bound 2 s)."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LEASTACTION_CACHE_DIR": folder}
        command = [sys.executable, "-m", "leastaction", "run", "pendulum", "--duration", "1", "--dt", "0.001"]
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(command, check=True, env=environment, capture_output=True, cwd=folder)
            seconds.append(time.perf_counter() - start)
    return [
        Row("cold", "first `leastaction run pendulum`, empty cache", "s", seconds[0], None, seconds[0], 30.0),
        Row("cold", "second `leastaction run pendulum`", "s", seconds[1], None, seconds[1], 2.0),
    ]


def bench_import() -> list[Row]:
    """``import leastaction`` (bound 0.3 s), the interpreter's own start taken off."""

    def seconds(code: str) -> float:
        return best(lambda: subprocess.run([sys.executable, "-c", code], check=True), seconds=2.0)

    spent = seconds("import leastaction") - seconds("pass")
    return [Row("import", "import leastaction", "s", spent, None, spent, 0.3)]


def bench_compile() -> list[Row]:
    """Seconds to compile each group of entry points in a fresh process with an empty cache (ceiling 60 s each)."""
    from leastaction.warmup import compile_times

    return [Row("compile", name, "s", seconds, None, seconds, 60.0) for name, seconds in compile_times().items()]


GROUPS: dict[str, Callable[[], list[Row]]] = {
    "import": bench_import,
    "kernels": bench_kernels,
    "lanes": bench_lanes,
    "growth": bench_growth,
    "rollout": bench_rollout,
    "galerkin": bench_galerkin,
    "linearize": bench_linearize,
    "maximal": bench_maximal,
    "contact": bench_contact,
    "gradient": bench_gradient,
    "precision": bench_precision,
    "redmax": bench_redmax,
    "cold": bench_cold,
    "compile": bench_compile,
}


def run_bench(names: Sequence[str] = (), json_path: Path | None = None) -> list[Row]:
    """Run the named groups (all by default), print a table, write JSON."""
    from rich.console import Console
    from rich.table import Table

    for name in names:
        if name not in GROUPS:
            raise ModelError(f"bench: there is no group '{name}'; the groups are {', '.join(GROUPS)}.")
    rows: list[Row] = []
    console = Console()
    for name in names or GROUPS:
        with console.status(f"measuring {name} ..."):
            try:
                rows += GROUPS[name]()
            except ImportError as error:
                raise ModelError(f"bench {name}: {error}; pip install 'leastaction[peers]' brings it.") from error
    table = Table(title="minima over repeats, one thread; ratio is ours / theirs")
    for column in ("what", "ours", "theirs", "ratio", "bound", "holds"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in rows:
        theirs = "" if row.theirs is None else f"{row.theirs:.3g} {row.unit}"
        bound = "" if row.bound is None else f"{row.bound:g}"
        verdict = {True: "yes", False: "NO", None: ""}[row.holds]
        table.add_row(row.what, f"{row.ours:.3g} {row.unit}", theirs, f"{row.ratio:.3g}", bound, verdict)
    console.print(table)
    if json_path is not None:
        text = json.dumps([{**asdict(row), "holds": row.holds} for row in rows], indent=1)
        write_beside(json_path, lambda stream: stream.write(text.encode()))
    return rows
