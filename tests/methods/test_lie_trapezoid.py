"""The Lie trapezoid: residual, exact Newton direction, solvers, orders, symplectic and symmetric step, momenta."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.kernels import entries, lie_trapezoid_step
from leastaction.kernels.layout import BALL
from leastaction.methods.registry import method_by_name
from leastaction.model.configuration import difference, retract
from leastaction.reference import lie_trapezoid as reference
from leastaction.reference import samples as make
from leastaction.spatial import quaternion, so3

SOLVERS = {"newton": la.Newton, "riqn": la.RIQN, "broyden": la.Broyden, "dense": la.DenseNewton}


def tree(seed: int, *, springs: bool = False, damping: bool = True, base: str = "free") -> la.Model:
    """A branching tree with every kind of joint; with ``springs`` also springs and rotors, and dampers.

    A random composite joint may be singular without rotors.
    """
    rng = np.random.default_rng(seed)
    left_out = ("free",) if springs else ("free", "composite")
    kinds = [base, *rng.permutation([kind for kind in make.MOVING_KINDS if kind not in left_out])]
    m = make.random_tree([str(kind) for kind in kinds], rng)
    if springs:
        for name in m.joints:
            if m.joints[name].kind != "free":
                make.add_springs(m, name, rng, damping)
    return m.build()


class Probe:
    """One step of a model from a random state with a random displacement."""

    def __init__(self, model: la.Model, h: float, seed: int, speed: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.model, self.h = model, h
        self.q, _ = make.random_state(model, rng)
        self.x, u = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(model.system, self.q, np.zeros(model.nv), self.x, u)
        self.xi = speed * h * rng.normal(size=model.nv)
        passive = model.system.passive
        self.active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
        self.p = rng.normal(size=model.nv)

    def __call__(self, xi: np.ndarray, p: np.ndarray | None = None) -> dict[str, np.ndarray]:
        n = self.model.nv
        out = {"r": np.zeros(n), "pn": np.zeros(n), "y": np.zeros(n), "dense": np.zeros(n), "J": np.zeros((n, n))}
        inside = lie_trapezoid_step.probe(
            self.model.system, 0.0, self.h, self.x, np.zeros(n) if p is None else p, np.zeros(n), self.active, xi,
            *out.values(),
        )  # fmt: skip
        assert inside
        return out

    def balls(self) -> list[tuple[int, int]]:
        """First coordinate and first rate of every ball."""
        return [(row[2], row[3]) for row in self.model.system.tree.rows[1:] if row[1] == BALL]

    def end(self) -> tuple[np.ndarray, np.ndarray]:
        """Row coordinates and the user's q at the end of the step."""
        moved = self.xi.copy()
        x = self.x.copy()
        for row in self.model.system.tree.rows[1:]:
            k, d = row[2], row[3]
            if row[1] == BALL:
                x[k : k + 4] = quaternion.multiply(quaternion.exp(moved[d : d + 3]), x[k : k + 4])
            else:
                x[k] += moved[d]
        q = np.zeros(self.model.nq)
        entries.leave(self.model.system, x, np.zeros(self.model.nv), q, np.zeros(self.model.nv))
        return x, q

    def along_user(self, x: np.ndarray, q: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Row components, balls along parent axes, as components along the user's velocities."""
        f = f.copy()
        for k, d in self.balls():
            f[d : d + 3] = quaternion.rotate(quaternion.conjugate(x[k : k + 4]), f[d : d + 3])
        T = np.zeros((self.model.nv, self.model.nv))
        for k, v in enumerate(np.eye(self.model.nv)):
            entries.enter(self.model.system, q, v, np.zeros(self.model.nq), T[k])
        return T @ f


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("springs", [False, True])
def test_the_residual_is_minus_the_gradient_of_the_discrete_action(seed, springs):
    probe = Probe(tree(seed, springs=springs, damping=False), 0.05, seed, 2.0)
    got = probe(probe.xi)
    x, q = probe.end()
    first, second = reference.slopes(probe.model, probe.q, q, probe.h)
    # of entries up to 300
    assert np.abs(probe.along_user(probe.x, probe.q, got["r"]) + first).max() < 1e-7  # measured @1
    assert np.abs(probe.along_user(x, q, got["pn"]) - second).max() < 1e-7  # measured @2
    # and the momenta are those of Algorithm 2 in body axes
    bare = probe.model.mechanism.copy()
    bare.gravity = np.zeros(3)
    probe.model, probe.active = bare.without("stiffness", "armature").build(), False
    got = probe(probe.xi)
    first, second = reference.momenta(probe.model, probe.q, q, probe.h)
    assert np.abs(probe.along_user(probe.x, probe.q, got["r"]) - first).max() < 1e-10  # measured @3
    assert np.abs(probe.along_user(x, q, got["pn"]) - second).max() < 1e-10  # measured @4
