"""Sueda 2021: orders of the implicit integrators, the adjoint gradient, a stiff cable. Its figures are drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers.common import few_ticks, legend_outside, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.model import Model, State

_PAPER = "Sueda 2021, Analytically Differentiable Articulated Rigid Body Dynamics"
_ORDERS = {"bdf:1": 1, "bdf:2": 2, "sdirk2": 2, "linearly-implicit-euler": 1}


def tree() -> tuple[Model, State]:
    """Five bodies with hinges, a ball joint, a slider and a universal joint, with springs and dampers, in motion."""
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    rng, m = np.random.default_rng(2), Mechanism("branching tree")
    kinds = {"revolute": "world", "spherical": "b0", "prismatic": "b1", "universal": "b0", "revolute 2": "b3"}
    for k, (kind, parent) in enumerate(kinds.items()):
        A = 0.2 * rng.normal(size=(3, 3))
        J = A @ A.T + 0.02 * np.eye(3)
        inertia = np.trace(J) * np.eye(3) - J
        m.add_body(f"b{k}", mass=rng.uniform(0.5, 2.0), com=0.2 * rng.normal(size=3), inertia=inertia)
        axes = {"axis": rng.normal(size=3)} | ({"axis2": rng.normal(size=3)} if kind == "universal" else {})
        frame = pose(xyz=0.3 * rng.normal(size=3), rpy=rng.normal(size=3))
        data: dict[str, Any] = {"stiffness": 2.0, "damping": 0.1, "parent_frame": frame, **axes}
        m.add_joint(f"j{k}", kind.split()[0], parent=parent, child=f"b{k}", **data)
    model = m.build()
    return model, model.state(v=rng.normal(size=model.nv))


@experiment("redmax-orders", paper=f"{_PAPER}, section 3.4", title="Orders of BDF1, BDF2, SDIRK2 on a branching tree")
def orders(context: Context) -> Result:
    """Errors of positions and velocities after half a second against an accurate solution."""
    from leastaction.explicit.adaptive import Adaptive
    from leastaction.model.configuration import difference
    from leastaction.run.simulate import simulate

    model, state = tree()
    exact = simulate(model, state, dt=0.5, duration=0.5, method=Adaptive(1e-12, 1e-12)).final
    counts = (50, 100, 200) if context.quick else (50, 100, 200, 400, 800, 1600)
    rows: list[dict[str, Any]] = []
    for name in _ORDERS:
        context.progress(name)
        for n in counts:
            run = simulate(model, state, dt=0.5 / n, duration=0.5, method=name, save_every=n)
            q = float(np.linalg.norm(difference(model, exact.q, run.q[-1])))
            v = float(np.linalg.norm(run.v[-1] - exact.v))
            rows.append({"method": name, "dt": 0.5 / n, "error of q": q, "error of v": v})
    claims = []
    for name, order in _ORDERS.items():
        own = [row for row in rows if row["method"] == name]
        found = [slope([row["dt"] for row in own], [row[what] for row in own]) for what in ("error of q", "error of v")]
        words = f"{found[0]:.2f} in q, {found[1]:.2f} in v"
        claims.append(Claim(f"order of {name}", order, words, max(abs(each - order) for each in found) < 0.2))
    return Result(claims, {"": rows}, {"": _order_figure(rows)})


def _order_figure(rows: list[dict[str, Any]]) -> Any:
    """Error of q against the step."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for index, name in enumerate(_ORDERS):
            own = [row for row in rows if row["method"] == name]
            x, y = [row["dt"] for row in own], [row["error of q"] for row in own]
            axes.loglog(x, y, marker="o", markersize=3.5, label=name, **colour_of(index))
        axes.set_xlabel("dt  (s)")
        axes.set_ylabel("error of q")
        few_ticks(axes, "x")
        legend_outside(axes)

    return styled(draw, 7.0, 3.4)


@experiment("redmax-adjoint", paper=f"{_PAPER}, section 3.5", title="Adjoint gradients against differences")
def adjoint(context: Context) -> Result:
    """Gradients by first state, controls and parameters of the tree; and by controls through other methods."""
    from leastaction.run.registry import method_by_name
    from leastaction.run.simulate import simulate
    from leastaction.sensitivity.gradient import gradient
    from leastaction.sensitivity.objectives import Effort, Reach

    model, state = tree()
    steps, dt, rng = (10 if context.quick else 50), 0.01, np.random.default_rng(3)
    controls = rng.normal(size=(steps, model.nv))
    objective = Reach("b4", (0.2, 0.1, 0.4), weight=2.0) + Effort(1e-2)

    def value(name: str, start: State, push: Any) -> float:
        run = simulate(model, start, dt=dt, duration=steps * dt, method=name, control=push)
        return objective.final(model, run.final).value + 0.5e-2 * float((push**2).sum())

    rows: list[dict[str, Any]] = []
    claims = []
    for name in ("bdf:1", "bdf:2", "sdirk2", "rk4", "galerkin:2"):
        context.progress(name)
        found = gradient(model, method_by_name(name), state, controls, dt, objective, ("v", "controls"))
        worst = 0.0
        for _ in range(5):
            a, b = rng.normal(size=model.nv), rng.normal(size=controls.shape)

            def along(e: float, name: str = name, a: Any = a, b: Any = b) -> float:
                return value(name, model.state(state.q, state.v + e * a), controls + e * b)

            e = 1e-3
            there = (8.0 * (along(e) - along(-e)) - (along(2 * e) - along(-2 * e))) / (12.0 * e)
            here = float(found["v"] @ a + (found["controls"] * b).sum())
            worst = max(worst, abs(here - there) / abs(there))
        rows.append({"method": name, "value": found.value, "largest relative difference": worst})
        claims.append(Claim(f"{name}: gradient equals central differences to 1e-6", "equal", worst, worst < 1e-6))
    # the methods agree with each other as far as their steps do
    apart = abs(rows[1]["value"] - rows[3]["value"]) / abs(rows[3]["value"])
    claims.append(Claim("the objective under bdf:2 is that under rk4", "-", apart, apart < 0.02))
    return Result(claims, {"": rows})


@experiment("redmax-cable", paper=f"{_PAPER}, section 1.10", title="A cable of 1e6 N/m at steps of 10 ms")
def cable(context: Context) -> Result:
    """Masses of 1 and 3 kg on a cable over two points: half the acceleration of gravity, whatever the stiffness."""
    from leastaction.errors import ConvergenceError
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.path_forces import Cable
    from leastaction.model.pose import pose
    from leastaction.run.simulate import simulate

    rows: list[dict[str, Any]] = []
    for stiffness in (1e3, 1e6):
        m = Mechanism("masses on a cable")
        for name, mass, at in (("light", 1.0, -0.2), ("heavy", 3.0, 0.2)):
            m.add_body(name, mass=mass, inertia=(0.01, 0.01, 0.01))
            frame = pose(xyz=(at, 0.0, 0.0))
            m.add_joint(f"{name} rail", "prismatic", parent="world", child=name, axis=(0, 0, 1), parent_frame=frame)
        over = [("world", (-0.2, 0.0, 2.0)), ("world", (0.2, 0.0, 2.0))]
        points: Any = [("light", (0, 0, 0)), *over, ("heavy", (0, 0, 0))]
        m.add_force(Cable(points, stiffness=stiffness, damping=100.0, rest_length=4.4))
        model = m.build()
        for name in ("bdf:1", "bdf:2", "sdirk2", "linearly-implicit-euler", "rk4"):
            context.progress(f"{name}, {stiffness:g} N/m")
            try:
                run = simulate(model, dt=0.01, duration=0.4, method=name)
                stretch, speed = float(np.abs(run.q.sum(axis=1)).max()), float(run.v[-1, 0])
            except ConvergenceError:
                stretch, speed = np.inf, np.inf
            rows.append({"stiffness": stiffness, "method": name, "stretch": stretch, "speed": speed})
    claims, goal = [], 0.2 * 9.81
    for row in rows:
        if row["stiffness"] == 1e6 and row["method"] in ("bdf:1", "bdf:2", "sdirk2"):
            good = abs(row["speed"] - goal) < 1e-3 * goal and row["stretch"] < 1e-4
            words = f"{row['speed']:.6f} m/s, stretched by {1e3 * row['stretch']:.3f} mm at most"
            claims.append(Claim(f"{row['method']}: speed after 0.4 s", f"{goal:.6f} m/s", words, good))
    explicit = next(row for row in rows if row["method"] == "rk4" and row["stiffness"] == 1e6)
    claims.append(Claim("rk4 fails", "stiff", f"stretched by {explicit['stretch']:.3g} m", explicit["stretch"] > 0.1))
    return Result(claims, {"": rows})
