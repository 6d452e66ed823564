"""Reduced and maximal velocities joined by a Jacobian: ``la.redmax`` (Sueda 2021).

The maximal velocities of a model are the twists (angular; linear) of the link frames of its moving bodies
(``model.row_names``: ``model.body_names``, and what was cut off at loop joints), each in its own axes; wrenches are
dual to them. J (6 nb, nv) maps the user's velocities to
them. Bodies that are fixed to another one belong to it. Derivatives by q are those by displacements of
``model.configuration.retract``: rotation vectors in child axes for balls. K = df/dq and D = df/dv, with their signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.dynamics.derivatives import passive_derivatives
from leastaction.errors import ConvergenceError, ModelError
from leastaction.model.checks import FloatArray, check_array, check_number
from leastaction.model.maximal import maximal_bodies
from leastaction.model.model import Model, check_determined, check_model
from leastaction.spatial import se3

__all__ = [
    "Forces",
    "JacobianDerivatives",
    "QuadraticVelocity",
    "acceleration",
    "inverse_inertia_product",
    "jacobian",
    "jacobian_derivatives",
    "jacobian_rate",
    "maximal_forces",
    "maximal_inertia",
    "quadratic_velocity",
    "reduced_forces",
    "reduced_inertia",
    "reduced_inertia_derivative",
    "twist_rates",
    "twists",
    "wrenches_to_forces",
]


@dataclass(frozen=True, eq=False)
class JacobianDerivatives:
    """J and Jdot (6 nb, nv), and their derivatives dJ and dJdot (6 nb, nv, nv) by q, which is the last axis.

    The derivative of Jdot by v is dJ as well.
    """

    J: FloatArray
    Jdot: FloatArray
    dJ: FloatArray
    dJdot: FloatArray


@dataclass(frozen=True, eq=False)
class QuadraticVelocity:
    """The quadratic velocity vector -J^T M Jdot v (nv,), and its derivatives K by q and D by v (nv, nv)."""

    force: FloatArray
    K: FloatArray
    D: FloatArray


@dataclass(frozen=True, eq=False)
class Forces:
    """Wrenches (6 nb,) on the bodies, and their derivatives K and D (6 nb, 6 nb) by poses and twists.

    Poses are displaced as E exp(xi), xi in link axes.
    """

    force: FloatArray
    K: FloatArray
    D: FloatArray


# --- the Jacobian and its products -----------------------------------------------------------------------------------
def jacobian(model: Model, q: Any) -> FloatArray:
    """J (6 nb, nv): twists of all bodies, in their own axes, from v (Algorithm 1)."""
    return _jacobians(model, q, None)[0]


def jacobian_rate(model: Model, q: Any, v: Any) -> FloatArray:
    """Jdot (6 nb, nv), the time derivative of J (Algorithm 2)."""
    return _jacobians(model, q, v)[1]


def jacobian_derivatives(model: Model, q: Any, v: Any = None) -> JacobianDerivatives:
    """J, Jdot and their derivatives by q (Algorithm 11)."""
    from leastaction.dynamics import redmax_jacobian

    J, Jdot = _jacobians(model, q, v)
    bodies, n = maximal_bodies(model), model.nv
    dJ, dJdot = np.zeros((len(bodies.rows), 6, n, n)), np.zeros((len(bodies.rows), 6, n, n))
    redmax_jacobian.jacobian_derivatives(
        model.system, bodies.carrier, *model.check_motion(q, v), bodies.rows, bodies.frames, dJ, dJdot
    )
    shape = (6 * len(bodies.rows), n, n)
    return JacobianDerivatives(J, Jdot, _finite(dJ.reshape(shape), "dJ/dq"), _finite(dJdot.reshape(shape), "dJdot/dq"))


def twists(model: Model, q: Any, x: Any) -> FloatArray:
    """J x (nb, 6) without forming J, in O(n) (Algorithm 5). With x (m, nv) the result is (m, nb, 6)."""
    return _products(model, q, None, x)[0]


def twist_rates(model: Model, q: Any, v: Any, x: Any) -> FloatArray:
    """Jdot x (nb, 6) without forming Jdot, in O(n) (Algorithm 5). With x (m, nv) the result is (m, nb, 6)."""
    return _products(model, q, v, x)[1]


def wrenches_to_forces(model: Model, q: Any, wrenches: Any) -> FloatArray:
    """J^T w (nv,) of wrenches (nb, 6) in link axes, in O(n) (Algorithm 6). With (m, nb, 6) the result is (m, nv)."""
    from leastaction.dynamics import redmax_jacobian

    check_model(model)
    bodies = maximal_bodies(model)
    given = check_array(wrenches, "wrenches")
    single = given.ndim == 2
    if given.shape[-2:] != (len(bodies.rows), 6) or given.ndim not in (2, 3):
        raise ModelError(f"wrenches have shape {given.shape}, expected ({len(bodies.rows)}, 6): one for each body.")
    rows = np.ascontiguousarray(given.reshape(-1, len(bodies.rows), 6))
    out = np.zeros((len(rows), model.nv))
    redmax_jacobian.transposed(model.system, bodies.carrier, model.check_q(q), bodies.rows, bodies.frames, rows, out)
    out = _finite(out, "forces of wrenches")
    return np.asarray(out[0]) if single else out


# --- inertia and forces ----------------------------------------------------------------------------------------------
def maximal_inertia(model: Model) -> FloatArray:
    """Inertias (nb, 6, 6) of the bodies about their link origins, link axes: constant in these coordinates."""
    check_model(model)
    return maximal_bodies(model).inertia.copy()


def reduced_inertia(model: Model, q: Any) -> FloatArray:
    """J^T M J, and rotor inertia (nv, nv): the mass matrix, through the Jacobian."""
    J = _blocks(model, jacobian(model, q))
    return np.asarray(np.einsum("bij,bik,bkl->jl", J, maximal_inertia(model), J) + np.diag(_armature(model)))


def reduced_inertia_derivative(model: Model, q: Any) -> FloatArray:
    """Derivative (nv, nv, nv) of the reduced inertia by q, the last axis that of q (3.54)."""
    found = jacobian_derivatives(model, q)
    half = np.einsum("mi,mjk->ijk", _weighted(model, found.J), found.dJ)
    return np.asarray(half + half.transpose(1, 0, 2))


def quadratic_velocity(model: Model, q: Any, v: Any) -> QuadraticVelocity:
    """Force -J^T M Jdot v that the change of coordinates brings, with K and D (3.56)."""
    found, (_, v) = jacobian_derivatives(model, q, v), model.check_motion(q, v)
    MJ, push = _weighted(model, found.J), _weighted(model, (found.Jdot @ v)[:, None])[:, 0]
    K = -np.einsum("mik,m->ik", found.dJ, push) - MJ.T @ np.einsum("mjk,j->mk", found.dJdot, v)
    D = -MJ.T @ (np.einsum("mjk,j->mk", found.dJ, v) + found.Jdot)
    return QuadraticVelocity(-found.J.T @ push, K, D)


def maximal_forces(model: Model, q: Any, v: Any, *, t: float = 0.0) -> Forces:
    """Gravity, the Coriolis force ad(phi)^T M phi and the forces of the mechanism on its bodies, with K and D."""
    check_model(model)
    return _maximal_forces(model, *model.check_motion(q, v), check_number(t, "time"), True)


def _maximal_forces(model: Model, q: FloatArray, v: FloatArray, t: float, derivatives: bool) -> Forces:
    """Forces on the bodies; K and D of the mechanism's own forces only if they are asked for."""
    bodies = maximal_bodies(model)
    poses, phi = quantities.frame_poses(model, q[None], list(bodies.names))[0], twists(model, q, v)
    n = 6 * len(bodies.names)
    f, K, D = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    for b, M in enumerate(bodies.inertia):
        own = slice(6 * b, 6 * b + 6)
        # weight: the wrench of a uniform acceleration field, M (0; R^T g)
        g = poses[b, :3, :3].T @ model.system.tree.gravity
        f[own] = M[:, 3:] @ g + se3.ad(phi[b]).T @ M @ phi[b]
        K[own, 6 * b : 6 * b + 3] = M[:, 3:] @ _hat(g)
        D[own, own] = se3.ad(phi[b]).T @ M + _ad_dual(M @ phi[b])
    _add_forces(model, t, poses, phi, derivatives, f, K, D)
    model.raise_pending()
    return Forces(_finite(f, "forces"), _finite(K, "K"), _finite(D, "D"))


def reduced_forces(model: Model, q: Any, v: Any, tau: Any = None, *, t: float = 0.0) -> Forces:
    """The right-hand side f (nv,) of M a = f, with K and D (nv, nv): equations (2.19) and (3.58).

    Control, springs and dampers of joints, forces on bodies, gravity, Coriolis and quadratic velocity forces. Loops are
    open here.
    """
    check_model(model)
    (q, v), tau = model.check_motion(q, v), model.check_v(tau, "tau")
    found, qvv = jacobian_derivatives(model, q, v), quadratic_velocity(model, q, v)
    body = maximal_forces(model, q, v, t=t)
    spring = _passive(model, q, v)
    K_r, D_r = passive_derivatives(model, q, v)
    turned = np.einsum("mjk,j->mk", found.dJ, v)
    K = K_r + found.J.T @ (body.K @ found.J + body.D @ turned) + np.einsum("mik,m->ik", found.dJ, body.force) + qvv.K
    D = D_r + found.J.T @ body.D @ found.J + qvv.D
    return Forces(tau + spring + found.J.T @ body.force + qvv.force, K, D)


def acceleration(model: Model, q: Any, v: Any, tau: Any = None, *, t: float = 0.0) -> FloatArray:
    """Accelerations (nv,) by the RedMax equations (2.19): J^T M J formed and solved, O(n^3).

    ``la.forward_dynamics`` finds the same in O(n) for trees; loops are open here.
    """
    check_model(model)
    check_determined(model, "redmax.acceleration")
    (q, v), tau = model.check_motion(q, v), model.check_v(tau, "tau")
    J, Jdot = _jacobians(model, q, v)
    body = _maximal_forces(model, q, v, check_number(t, "time"), False).force
    f = tau + _passive(model, q, v) + J.T @ (body - _weighted(model, (Jdot @ v)[:, None])[:, 0])
    return np.asarray(np.linalg.solve(reduced_inertia(model, q), f))


def inverse_inertia_product(model: Model, q: Any, x: Any, *, reduced: Any = None, maximal: Any = None) -> FloatArray:
    """(M + diag(reduced) + J^T blkdiag(maximal) J)^-1 x in O(n), without forming M (Algorithm 10).

    Args:
        model: the model; rotor inertia is a part of M.
        q: coordinates.
        x: (nv,), or several (m, nv).
        reduced: (nv,) to be added for the joints, such as -h D - h^2 K of springs and dampers.
        maximal: (nb, 6, 6) likewise for the bodies, in link axes; blocks need not be symmetric.

    Raises:
        ConvergenceError: a pivot is zero, so that the matrix cannot be inverted in this order.
    """
    from leastaction.dynamics import redmax_solve

    check_model(model)
    bodies = maximal_bodies(model)
    rows, single = _vectors(model, x, "x")
    diagonal = np.zeros(model.nv) if reduced is None else model.check_v(reduced, "reduced")
    blocks = np.zeros((0, 6, 6)) if maximal is None else check_array(maximal, "maximal")
    if maximal is not None and blocks.shape != (len(bodies.rows), 6, 6):
        raise ModelError(f"maximal has shape {blocks.shape}, expected ({len(bodies.rows)}, 6, 6): one for each body.")
    out = np.zeros_like(rows)
    good = redmax_solve.inverse_products(
        model.system, bodies.spans, model.check_q(q), bodies.rows, bodies.frames, diagonal, blocks, rows, out
    )
    if not good or not np.isfinite(out).all():
        raise ConvergenceError("inverse inertia product: the matrix is singular; check reduced and maximal.")
    return np.asarray(out[0]) if single else out


# --- parts -----------------------------------------------------------------------------------------------------------
def _jacobians(model: Model, q: Any, v: Any) -> tuple[FloatArray, FloatArray]:
    """J and Jdot (6 nb, nv)."""
    from leastaction.dynamics import redmax_jacobian

    check_model(model)
    bodies = maximal_bodies(model)
    J, Jdot = np.zeros((len(bodies.rows), 6, model.nv)), np.zeros((len(bodies.rows), 6, model.nv))
    q, v = model.check_motion(q, v)
    redmax_jacobian.jacobians(model.system, bodies.carrier, q, v, bodies.rows, bodies.frames, J, Jdot)
    return _finite(J.reshape(-1, model.nv), "J"), _finite(Jdot.reshape(-1, model.nv), "Jdot")


def _products(model: Model, q: Any, v: Any, x: Any) -> tuple[FloatArray, FloatArray]:
    """J x and Jdot x."""
    from leastaction.dynamics import redmax_jacobian

    check_model(model)
    bodies = maximal_bodies(model)
    rows, single = _vectors(model, x, "x")
    y, z = np.zeros((len(rows), len(bodies.rows), 6)), np.zeros((len(rows), len(bodies.rows), 6))
    q, v = model.check_motion(q, v)
    redmax_jacobian.jacobian_products(model.system, bodies.carrier, q, v, bodies.rows, bodies.frames, rows, y, z)
    y, z = _finite(y, "J x"), _finite(z, "Jdot x")
    return (y[0], z[0]) if single else (y, z)


def _vectors(model: Model, x: Any, what: str) -> tuple[FloatArray, bool]:
    """Rows (m, nv) of vectors, and whether one was given."""
    if isinstance(x, dict) or np.ndim(x) == 1:
        return model.check_v(x, what)[None], True
    rows = check_array(x, what)
    if rows.ndim != 2 or rows.shape[1] != model.nv:
        raise ModelError(f"{what} has shape {rows.shape}, expected ({model.nv},) or (m, {model.nv}).")
    return np.ascontiguousarray(rows), False


def _blocks(model: Model, matrix: FloatArray) -> FloatArray:
    """A matrix (6 nb, k) as (nb, 6, k)."""
    return matrix.reshape(-1, 6, matrix.shape[1])


def _weighted(model: Model, matrix: FloatArray) -> FloatArray:
    """M times a matrix (6 nb, k)."""
    product = maximal_bodies(model).inertia @ _blocks(model, matrix)
    return np.asarray(product.reshape(matrix.shape))


def _armature(model: Model) -> FloatArray:
    """Rotor inertias (nv,)."""
    return np.concatenate([np.zeros(0), *(view.joint.armature for view in model.joints.values())])


def _passive(model: Model, q: FloatArray, v: FloatArray) -> FloatArray:
    """Generalised forces (nv,) of springs and dampers in the joints."""
    from leastaction.dynamics import redmax_solve

    out = np.zeros(model.nv)
    redmax_solve.spring_forces(model.system, q, v, out)
    return out


def _add_forces(
    model: Model, t: float, poses: FloatArray, phi: FloatArray, derivatives: bool,
    f: FloatArray, K: FloatArray, D: FloatArray,
) -> None:  # fmt: skip
    """Add the forces of the mechanism on its bodies; a force on a fixed body counts for the one that carries it."""
    bodies = maximal_bodies(model)
    number = {int(row): b for b, row in enumerate(bodies.rows)}
    for force in model.mechanism.forces:
        places = [model.place(name) for name in force.bodies]
        own = [number.get(place.row) for place in places]
        # the force's link frames, from the frames of the bodies that carry them
        at, moving = np.tile(np.eye(4), (len(own), 1, 1)), np.zeros((len(own), 6))
        maps: list[FloatArray] = []
        for k, (b, place) in enumerate(zip(own, places, strict=True)):
            if b is None:
                at[k] = place.pose
                maps.append(np.zeros((6, 6)))
                continue
            offset = np.linalg.inv(model.place(bodies.names[b]).pose) @ place.pose
            at[k] = poses[b] @ offset
            maps.append(np.asarray(se3.Ad(se3.inverse(offset))))
            moving[k] = maps[k] @ phi[b]
        wrenches = force.wrenches(t, at, moving)
        k = 6 * len(own)
        K_f, D_f = force.derivatives(t, at, moving) if derivatives else (np.zeros((k, k)), np.zeros((k, k)))
        for i, a in enumerate(own):
            if a is None:
                continue
            f[6 * a : 6 * a + 6] += maps[i].T @ wrenches[i]
            for j, b in enumerate(own):
                if b is not None:
                    part = np.ix_(range(6 * i, 6 * i + 6), range(6 * j, 6 * j + 6))
                    where = np.ix_(range(6 * a, 6 * a + 6), range(6 * b, 6 * b + 6))
                    K[where] += maps[i].T @ K_f[part] @ maps[j]
                    D[where] += maps[i].T @ D_f[part] @ maps[j]


def _hat(a: FloatArray) -> FloatArray:
    """Cross product matrix (3, 3)."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def _ad_dual(F: FloatArray) -> FloatArray:
    """The matrix (6, 6) of x -> ad(x)^T F."""
    return np.block([[_hat(F[:3]), _hat(F[3:])], [_hat(F[3:]), np.zeros((3, 3))]])


def _finite(array: FloatArray, what: str) -> FloatArray:
    """The array, if every number is finite."""
    if not np.isfinite(array).all():
        raise ConvergenceError(f"redmax: {what} is not finite; a number of the state is too large.")
    return array
