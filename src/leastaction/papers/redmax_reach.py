"""Sueda 2021, equation 3.82: torques that bring the end of an arm to a target, by L-BFGS with the adjoint gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.model import Model

_TARGET = (0.9, 0.0, 0.5)
_POSITION, _EFFORT = 1e3, 1e-3

# largest torques of the joints, N m
_TORQUES = (20.0, 12.0, 6.0, 3.0, 1.0)


def arm(links: int = 5) -> Model:
    """A planar arm of rods of 0.3 m and 0.5 kg with dampers, hanging down."""
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    m, length = Mechanism("arm"), 0.3
    for k in range(1, links + 1):
        m.add_body(f"link{k}", mass=0.5, com=(0, 0, -length / 2), inertia=(0.00375, 0.00375, 1e-4))
        parent, at = ("world", (0, 0, 0)) if k == 1 else (f"link{k - 1}", (0, 0, -length))
        frame = pose(xyz=at)
        axis = (0.0, 1.0, 0.0)
        m.add_joint(f"j{k}", "revolute", parent=parent, child=f"link{k}", axis=axis, parent_frame=frame, damping=0.5)
    return m.build()


@experiment(
    "redmax-reach",
    paper="Sueda 2021, Analytically Differentiable Articulated Rigid Body Dynamics, eq. 3.82",
    title="Reaching: torques by L-BFGS with the adjoint gradient",
)
def reach(context: Context) -> Result:
    """Objective (3.82): end of the arm to a target after one second, with a small weight on the torques."""
    from scipy.optimize import minimize

    from leastaction.implicit.method import BDF
    from leastaction.run.simulate import simulate
    from leastaction.sensitivity.gradient import gradient
    from leastaction.sensitivity.objectives import Effort, Reach

    model, method, dt, steps = arm(), BDF(2), 0.01, 100
    state = model.state()
    tip = (0.0, 0.0, -0.3)
    objective = Reach("link5", _TARGET, tip, weight=_POSITION) + Effort(_EFFORT)
    values: list[float] = []

    def both(p: FloatArray) -> tuple[float, FloatArray]:
        found = gradient(model, method, state, p.reshape(steps, -1), dt, objective, ["controls"])
        values.append(found.value)
        return found.value, found["controls"].ravel()

    context.progress("L-BFGS")
    most = 40 if context.quick else 200
    bounds = [(-torque, torque) for _ in range(steps) for torque in _TORQUES]
    start = np.zeros(steps * model.nv)
    done = minimize(both, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": most})
    controls = done.x.reshape(steps, -1)
    run = simulate(model, state, dt=dt, duration=steps * dt, method=method, control=controls)
    end = run.poses("link5")[-1] @ np.array([*tip, 1.0])
    distance = float(np.linalg.norm(end[:3] - _TARGET))
    first, last, history = values[0], float(done.fun), values[: done.nfev]
    rows = [{"evaluation": k, "objective": value} for k, value in enumerate(history)]
    claims = [
        Claim(
            "the objective falls", "-", f"{first:.4g} to {last:.4g} in {len(history)} evaluations", last < 0.05 * first
        ),
        Claim("the end reaches the target", "reaches", f"{1e3 * distance:.2f} mm away", distance < 0.02),
        Claim("size of the gradient at the end, of that at the start", "small", _ratio(both, controls), None),
    ]
    return Result(claims, {"": rows}, {"": _figure(model, run, tip, history)})


def _ratio(both: Any, controls: FloatArray) -> str:
    """How far the gradient has fallen, in words."""
    ends = [float(np.linalg.norm(both(p)[1])) for p in (controls.ravel(), np.zeros(controls.size))]
    return f"{ends[0] / ends[1]:.1e}"


def _figure(model: Model, run: Any, tip: Any, history: list[float]) -> Any:
    """The arm at ten instants with the path of its end, and the objective."""
    from leastaction.plot import colour_of, styled

    names = [f"link{k}" for k in range(1, model.nv + 1)]
    poses = {name: run.poses(name) for name in names}
    ends = poses[names[-1]] @ np.array([*tip, 1.0])

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        shown = np.linspace(0, len(run.t) - 1, 10).astype(int)
        for i, k in enumerate(shown):
            x = [*(poses[name][k, 0, 3] for name in names), ends[k, 0]]
            z = [*(poses[name][k, 2, 3] for name in names), ends[k, 2]]
            left.plot(
                x, z, color="0.2", alpha=0.15 + 0.85 * i / (len(shown) - 1), linewidth=1.5, marker="o", markersize=2
            )
        left.plot(ends[:, 0], ends[:, 2], label="path of the end", **colour_of(0))
        left.scatter(
            [_TARGET[0]], [_TARGET[2]], marker="x", s=80, zorder=5, color=colour_of(1)["color"], label="target"
        )
        left.set_aspect("equal")
        left.set_xlabel("x  (m)")
        left.set_ylabel("z  (m)")
        left.legend(loc="lower right")
        right.semilogy(history, **colour_of(0))
        right.set_xlabel("evaluation of objective and gradient")
        right.set_ylabel("objective")

    return styled(draw, 9.5, 4.2)
