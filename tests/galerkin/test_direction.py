"""The Newton direction in linear time is the solution of the dense system: all joints, all forces, s = 1 to 4."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.reference.galerkin_action import Probe
from leastaction.reference.samples import MOVING_KINDS, add_springs, random_tree
from leastaction.tree.layout import BALL, IU, KIND

# each number of stages compiles a program of its own
pytestmark = pytest.mark.slow


class Drag(la.Force):
    """Resistance to the motion of a body, in its own axes."""

    name, conservative = "drag", False
    D = -np.diag([0.3, 0.2, 0.1, 2.0, 1.0, 3.0])

    def __init__(self, body):
        self.bodies = (body,)

    def wrenches(self, t, poses, twists):
        return twists @ self.D

    def derivatives(self, t, poses, twists):
        return np.zeros((6, 6)), self.D


class Pull(la.Force):
    """Wrenches on two bodies by the twists of both, with a matrix that is not symmetric."""

    name, conservative = "pull", False
    D = -np.eye(12) + 0.3 * np.random.default_rng(1).normal(size=(12, 12))

    def __init__(self, a, b):
        self.bodies = (a, b)

    def wrenches(self, t, poses, twists):
        return (self.D @ twists.ravel()).reshape(2, 6)

    def derivatives(self, t, poses, twists):
        return np.zeros((12, 12)), self.D


def loaded_tree(seed: int) -> la.Model:
    """A branching tree of every kind of joint, in random order, with springs and forces on and between bodies."""
    rng = np.random.default_rng(seed)
    # the free joint first: the forces of its translation are not in the direction, so it has none
    kinds = ["free", *rng.permutation([kind for kind in MOVING_KINDS if kind != "free"]).tolist()]
    m = random_tree(kinds, rng)
    for k in range(1, len(kinds)):
        add_springs(m, f"j{k}", rng)
    a, b, c = (f"b{k}" for k in rng.permutation(np.arange(1, len(kinds)))[:3])
    point = 0.3 * rng.normal(size=(6, 3))
    spring = {"stiffness": 40.0, "damping": 3.0, "rest_length": 0.2}
    m.add_force(la.PointSpring(a, point[0], b, point[1], **spring))
    m.add_force(la.PointSpring("world", point[2], c, point[3], **spring))
    m.add_force(la.PointForce(a, point[4], (3.0, -2.0, 1.0)))
    m.add_force(la.PointForce(b, point[5], (1.0, 2.0, -1.0), frame="body"))
    m.add_force(la.Wrench(c, (0.5, -0.4, 0.3, 1.0, 2.0, 3.0)))
    m.add_force(Drag(a))
    m.add_force(Pull(b, c))
    return m.build()


def dense_direction(probe: Probe) -> tuple[np.ndarray, np.ndarray]:
    """The direction of the kernels and that of a dense solve (nu s,); the matrix by differences of fourth order."""
    s = probe.s
    places = []
    for row in probe.model.system.tree.rows[1:]:
        d, n = row[IU], 3 if row[KIND] == BALL else 1
        places += [(d * s + n * a + j, d + j, a) for a in range(s) for j in range(n)]
    where, rates, nodes = np.array(sorted(places)).T
    J = np.zeros((len(where), len(where)))

    def slope(d: int, a: int, eps: float) -> np.ndarray:
        up, down = probe.xi.copy(), probe.xi.copy()
        up[d, a + 1] += eps
        down[d, a + 1] -= eps
        return (probe(up)[0] - probe(down)[0]) / (2 * eps)

    for c, d, a in zip(where, rates, nodes, strict=True):
        change = (4.0 * slope(d, a, 5e-4) - slope(d, a, 1e-3)) / 3.0
        J[:, c] = change[rates, nodes]
    r, _, y = probe(probe.xi)
    return y, -np.linalg.solve(J, r[rates, nodes])


@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_the_direction_is_that_of_the_dense_system(s):
    for seed in range(3):
        y, dense = dense_direction(Probe(loaded_tree(seed), s, 0.05, seed, control=True))
        # measured 6e-12, 1.1e-11, 1.1e-11, 1.5e-10
        assert np.abs(y - dense).max() < 1e-9 * np.abs(dense).max()
