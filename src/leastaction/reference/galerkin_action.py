"""The discrete action of a Galerkin step, slow and plain, and the residual of the kernels, which is its gradient.

A step starts at the rows' coordinates x; xi (nu, s+1) are local coordinates at the Lobatto nodes, xi[:, 0] = 0. A screw
moves by its local coordinate, a ball is mrp(z) R at the start. Points of the quadrature have places c and weights w.
"""

from __future__ import annotations

import numpy as np

from leastaction.dynamics import entries
from leastaction.dynamics.quantities import energy
from leastaction.galerkin import probe as galerkin_probe
from leastaction.galerkin.gauss import Points
from leastaction.galerkin.method import across, balance, couplings, gauss, lobatto, with_body_forces
from leastaction.model.checks import FloatArray
from leastaction.model.configuration import retract
from leastaction.model.model import Model
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import BALL, IU, IX, KIND


def curve(xi: FloatArray, c: float) -> tuple[FloatArray, FloatArray]:
    """The polynomial through the nodes and its derivative on the unit interval, at c: each (nu,)."""
    nodes = lobatto(xi.shape[1] - 1)[0]
    coefficients = np.linalg.solve(np.vander(nodes, increasing=True), xi.T)
    powers = np.arange(len(nodes))
    value = c**powers @ coefficients
    return value, (powers[1:] * c ** (powers[1:] - 1)) @ coefficients[1:]


def lagrangian(model: Model, x: FloatArray, z: FloatArray, u: FloatArray) -> float:
    """Kinetic less potential energy, joules, at local coordinates z and their rates u (nu,)."""
    xa, ua = x.copy(), u.copy()
    for row in model.system.tree.rows[1:]:
        k, d = row[IX], row[IU]
        if row[KIND] == BALL:
            turn = quaternion.multiply(quaternion.from_mrp(z[d : d + 3]), x[k : k + 4])
            xa[k : k + 4] = turn
            spin = so3.mrp_dexp(z[d : d + 3]) @ u[d : d + 3]
            ua[d : d + 3] = quaternion.rotate(quaternion.conjugate(turn), spin)
        else:
            xa[k] += z[d]
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    entries.leave(model.system, xa, ua, q, v)
    found = energy(model, q, v)
    return float(found.kinetic - found.potential)


def discrete_action(model: Model, x: FloatArray, xi: FloatArray, h: float, c: FloatArray, w: FloatArray) -> float:
    """sum_j w_j h L at the points c_j of the curve, joule-seconds."""
    total = 0.0
    for place, weight in zip(c, w, strict=True):
        z, rate = curve(xi, float(place))
        total += float(weight) * h * lagrangian(model, x, z, rate / h)
    return total


def start_moved(model: Model, x: FloatArray, xi: FloatArray, d: int, eps: float) -> tuple[FloatArray, FloatArray]:
    """x and xi when node 0 of rate d moves by eps along its parent's axes and all other nodes stay."""
    x, xi = x.copy(), xi.copy()
    row = model.system.tree.rows[model.system.tree.rates[d, 0]]
    k, first = row[IX], row[IU]
    if row[KIND] != BALL:
        x[k] += eps
        xi[d, 1:] -= eps
        return x, xi
    turn = np.zeros(3)
    turn[d - first] = eps
    step = quaternion.exp(turn)
    x[k : k + 4] = quaternion.multiply(step, x[k : k + 4])
    for a in range(1, xi.shape[1]):
        moved = quaternion.multiply(quaternion.from_mrp(xi[first : first + 3, a]), quaternion.conjugate(step))
        xi[first : first + 3, a] = quaternion.to_mrp(moved)
    return x, xi


class Probe:
    """One step from a random start: residual, next momentum and Newton direction of the kernels by local coordinates.

    Args:
        model: a tree.
        s: half the order.
        h: length of the step, seconds.
        seed: of the start and of the local coordinates ``xi`` (nu, s+1).
        quadrature: "lobatto" or "gauss".
        control: whether random forces act in all joints but the first six rates.
    """

    def __init__(
        self, model: Model, s: int, h: float, seed: int, quadrature: str = "lobatto", control: bool = False
    ) -> None:
        rng = np.random.default_rng(seed)
        self.model, self.s, self.h, self.quadrature = model, s, h, quadrature
        q = retract(model, model.neutral(), rng.normal(size=model.nv) * 0.4)
        self.x = np.zeros(model.nq)
        entries.enter(model.system, q, np.zeros(model.nv), self.x, np.zeros(model.nv))
        self.xi = np.zeros((model.nv, s + 1))
        self.xi[:, 1:] = h * rng.normal(size=(model.nv, s))
        self.p = rng.normal(size=model.nv) * 0.1
        self.control = np.zeros(model.nv)
        if control:
            self.control[6:] = rng.normal(size=model.nv - 6)
        passive = model.system.passive
        self.active = control or bool(len(passive.screw) or len(passive.ball))

    def __call__(self, xi: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Residual (nu, s), next momentum (nu,), direction (nu s,)."""
        n, s, system = self.model.nv, self.s, self.model.system
        c, w, b, ahead = lobatto(s)
        points = None
        if self.quadrature == "gauss":
            places, weights, values, rates = gauss(s)
            points = Points(tuple(weights.tolist()), places, values, rates)
        r, pn, y = np.zeros((n, s)), np.zeros(n), np.zeros(n * s)
        galerkin_probe.galerkin_probe(
            system, tuple(w.tolist()), with_body_forces(self.model), points, couplings(self.model, s, self.quadrature),
            (b, c, ahead, balance(s)), across(system.tree.gravity), 0.0, self.h, self.x, self.p, self.control[None],
            self.active, xi, np.zeros((s, 0)), r, pn, y,
        )  # fmt: skip
        return r, pn, y

    def left(self) -> float:
        """Largest entry of J y + r over that of r; J y by differences along the Newton direction y."""
        r, _, y = self(self.xi)
        step = np.zeros(self.xi.shape)
        for row in self.model.system.tree.rows[1:]:
            d, n = row[IU], 3 if row[KIND] == BALL else 1
            step[d : d + n, 1:] = y[d * self.s : (d + n) * self.s].reshape(self.s, n).T
        t = 1e-3 / np.abs(step).max()

        def slope(eps: float) -> FloatArray:
            return np.asarray((self(self.xi + eps * step)[0] - self(self.xi - eps * step)[0]) / (2 * eps))

        along = (4.0 * slope(t) - slope(2.0 * t)) / 3.0
        return float(np.abs(along + r).max() / np.abs(r).max())
