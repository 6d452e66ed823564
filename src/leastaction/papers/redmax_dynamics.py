"""Statements of Sueda 2021 about reduced dynamics: the recursion, exact derivatives, the four-bar's closure."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.papers.registry import Claim, Context, Result, experiment


@experiment(
    "redmax-equivalence",
    paper="Sueda 2021, section 2.3",
    title="RedMax with adaptive steps against recursive forward dynamics with adaptive steps",
)
def equivalence(context: Context) -> Result:
    """The same solver of differential equations on J^T M J a = f, solved densely, and on the O(n) recursion."""
    from scipy.integrate import solve_ivp

    from leastaction import models
    from leastaction.dynamics import redmax
    from leastaction.explicit.adaptive import Adaptive
    from leastaction.run.simulate import simulate

    rows: list[dict[str, Any]] = []
    for n in (2, 5) if context.quick else (2, 5, 10):
        context.progress(f"{n} links")
        model = models.chain(n).build()
        rng = np.random.default_rng(n)
        x0 = model.state(rng.uniform(-0.5, 0.5, n), rng.uniform(-1.0, 1.0, n))
        run = simulate(model, x0, dt=1.0, duration=1.0, method=Adaptive(1e-11, 1e-11))

        def rates(t: float, y: FloatArray, model: Any = model, n: int = n) -> FloatArray:
            return np.concatenate([y[n:], redmax.acceleration(model, y[:n], y[n:], t=t)])

        found = solve_ivp(
            rates, (0.0, 1.0), np.concatenate([x0.q, x0.v]), method="DOP853", rtol=1e-11, atol=1e-11, t_eval=[1.0]
        ).y[:, -1]
        # both at one state, and at the end of a second
        direct = redmax.acceleration(model, x0.q, x0.v)
        a = _recursive(model, x0.q, x0.v)
        rows.append(
            {
                "links": n,
                "accelerations, relative": float(np.abs(direct - a).max() / np.abs(a).max()),
                "motion after 1 s": float(np.abs(found - np.concatenate([run.q[-1], run.v[-1]])).max()),
            }
        )
    near, far = (max(row[key] for row in rows) for key in ("accelerations, relative", "motion after 1 s"))
    claims = [
        Claim("accelerations of both", "numerically the same", near, near < 1e-11),
        Claim("motion of both, at tolerances of 1e-11", "numerically the same", far, far < 1e-7),
    ]
    return Result(claims, {"": rows})


def _recursive(model: Any, q: FloatArray, v: FloatArray) -> FloatArray:
    """Accelerations by the O(n) recursion."""
    from leastaction.dynamics.quantities import forward_dynamics

    return forward_dynamics(model, q, v)


@experiment(
    "redmax-derivatives",
    paper="Sueda 2021, sections 1.9, 3.1 and 3.3",
    title="Every derivative of the Jacobian layer and of the forces against central differences",
)
def derivatives(context: Context) -> Result:
    """A random tree with joints of several kinds, springs, rotors and forces on bodies."""
    from leastaction.dynamics import redmax
    from leastaction.model.configuration import retract

    model, q, v = _tree()
    tau = np.random.default_rng(2).normal(size=model.nv)
    found, square = redmax.jacobian_derivatives(model, q, v), redmax.quadratic_velocity(model, q, v)
    forces, inertia = redmax.reduced_forces(model, q, v, tau), redmax.maximal_inertia(model)

    def quadratic(q: FloatArray, v: FloatArray) -> FloatArray:
        push = (redmax.jacobian_rate(model, q, v) @ v).reshape(-1, 6, 1)
        return np.asarray(-redmax.jacobian(model, q).T @ (inertia @ push).ravel())

    def right_hand_side(q: FloatArray, v: FloatArray) -> FloatArray:
        return np.asarray(redmax.reduced_inertia(model, q) @ redmax.acceleration(model, q, v, tau))

    pairs: list[tuple[str, FloatArray, Any, str]] = [
        ("dJ/dq", found.dJ, lambda q, v: redmax.jacobian(model, q), "q"),
        ("dJdot/dq", found.dJdot, lambda q, v: redmax.jacobian_rate(model, q, v), "q"),
        ("dJdot/dqdot = dJ/dq", found.dJ, lambda q, v: redmax.jacobian_rate(model, q, v), "v"),
        ("dM/dq", redmax.reduced_inertia_derivative(model, q), lambda q, v: redmax.reduced_inertia(model, q), "q"),
        ("K of the quadratic velocity vector", square.K, quadratic, "q"),
        ("D of the quadratic velocity vector", square.D, quadratic, "v"),
        ("K of all forces", forces.K, right_hand_side, "q"),
        ("D of all forces", forces.D, right_hand_side, "v"),
    ]
    rows: list[dict[str, Any]] = []
    h = 1e-6
    for name, matrix, function, by in pairs:
        context.progress(name)
        columns = []
        for e in h * np.eye(model.nv):
            one, two = (retract(model, q, e), retract(model, q, -e)) if by == "q" else (q, q)
            ahead, behind = (v, v) if by == "q" else (v + e, v - e)
            columns.append((function(one, ahead) - function(two, behind)) / (2 * h))
        expected = np.stack(columns, axis=-1)
        error = float(np.abs(matrix - expected).max() / np.abs(expected).max())
        rows.append({"derivative": name, "relative error": error, "size": "x".join(str(k) for k in matrix.shape)})
    worst = max(row["relative error"] for row in rows)
    return Result([Claim("largest relative error of any derivative", "exact", worst, worst < 1e-7)], {"": rows})


def _tree() -> tuple[Any, FloatArray, FloatArray]:
    """A branching tree with joints of many kinds, springs and forces, and a state of it."""
    from leastaction.model.forces import PointForce, PointSpring
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose
    from leastaction.spatial import quaternion

    rng, m = np.random.default_rng(4), Mechanism("tree")
    kinds = ("free", "revolute", "spherical", "prismatic", "universal", "helical", "planar", "cylindrical")
    for k, kind in enumerate(kinds):
        m.add_body(f"b{k}", mass=1.0 + k, com=0.1 * rng.normal(size=3), inertia=(0.03, 0.04, 0.05))
        turn = rng.normal(size=4)
        frame = pose(xyz=0.3 * rng.normal(size=3), quat=turn / np.linalg.norm(turn))
        extra: dict[str, Any] = {"axis2": (0.0, 1.0, 0.0), "axis": (1.0, 0.0, 0.0)} if kind == "universal" else {}
        extra |= {"pitch": 0.1} if kind == "helical" else {}
        parent = "world" if k == 0 else f"b{rng.integers(k)}"
        m.add_joint(
            f"j{k}", kind, parent=parent, child=f"b{k}", parent_frame=frame, stiffness=2.0, damping=0.3, **extra
        )
    m.add_force(PointSpring("b2", (0.1, 0.0, 0.0), "b5", (0.0, 0.2, 0.0), stiffness=8.0, damping=0.5, rest_length=0.2))
    m.add_force(PointForce("b3", (0.0, 0.1, 0.0), (1.0, 2.0, -1.0)))
    model = m.build()
    q = rng.normal(size=model.nq)
    for name in ("j0", "j2"):
        where = slice(model.joint(name).q.stop - 4, model.joint(name).q.stop)
        q[where] = quaternion.normalize(q[where])
    return model, q, rng.normal(size=model.nv)


@experiment(
    "redmax-fourbar",
    paper="Sueda 2021, section 2.8",
    title="Closing a four-bar linkage: three equations for a point are singular, two in the plane are not",
)
def fourbar(context: Context) -> Result:
    """Ranks and condition numbers of the KKT matrix (2.105) with the rows of a point in space and in the plane."""
    from leastaction import models
    from leastaction.dynamics import quantities

    context.progress("matrices")
    m = models.four_bar()
    model = m.build()
    q, v = model.neutral(), np.zeros(model.nv)
    # the point that closes the loop, on both sides, and the axis of its hinge
    loop = m.joints["loop"]
    G = (
        quantities.jacobian(model, q, loop.child, loop.child_frame[:3, 3])
        - quantities.jacobian(model, q, loop.parent, loop.parent_frame[:3, 3])
    )[3:]
    axis = quantities.poses(model, q)[loop.parent][:3, :3] @ loop.parent_frame[:3, :3] @ loop.axis
    first = np.eye(3)[int(np.abs(axis).argmin())]
    two = np.cross(axis, first)
    two /= np.linalg.norm(two)
    one = np.cross(two, axis)
    M, f = quantities.mass_matrix(model, q), -quantities.bias_forces(model, q, v)
    rows: list[dict[str, Any]] = []
    found = {}
    for name, rows_of in (("three in space", G), ("two in the plane", np.vstack([one, two]) @ G)):
        k = len(rows_of)
        matrix = np.block([[M, rows_of.T], [rows_of, np.zeros((k, k))]])
        found[name] = int(np.linalg.matrix_rank(matrix)), model.nv + k, float(np.linalg.cond(matrix))
        rows.append({"closure": name, "unknowns": found[name][1], "rank": found[name][0], "condition": found[name][2]})
    # with two rows: the accelerations at rest, against the library, which closes a hinge with five redundant rows
    a = np.linalg.solve(matrix, np.concatenate([f, np.zeros(2)]))[: model.nv]
    error = float(np.abs(a - _recursive(model, q, v)).max() / np.abs(a).max())
    space, plane = found["three in space"], found["two in the plane"]
    claims = [
        Claim("three rows in space: the matrix is singular", "1-D null space", f"rank {space[0]} of {space[1]}",
              space[0] == space[1] - 1),
        Claim("two rows in the plane: it is not", "regular", f"rank {plane[0]} of {plane[1]}", plane[0] == plane[1]),
        Claim("one freedom is left", 1, model.nv - 2, model.nv - 2 == 1),
        Claim("the accelerations are those of the library's own closure", 0.0, error, error < 1e-9),
    ]  # fmt: skip
    return Result(claims, {"": rows})
