"""Four lanes and one environment come from one source, and the source is the Python one of spatial/."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import leastaction as la
from leastaction.jit.lanes import ld1, st1, vector
from leastaction.model.configuration import retract
from leastaction.spatial._source import scalar, so3
from leastaction.tree import entries


def mixed_tree(seed: int) -> la.Model:
    """A branching tree with every kind of row: revolute, prismatic, helical, ball, free, massless between."""
    rng = np.random.default_rng(seed)
    m = la.Mechanism("mixed")
    kinds = ("free", "revolute", "spherical", "universal", "prismatic", "helical", "planar_free", "revolute")
    parents = ("world", "b0", "b1", "b0", "b3", "b3", "b4", "b6")
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        A = rng.normal(size=(3, 3)) * 0.2
        J = A @ A.T + 0.01 * np.eye(3)
        m.add_body(f"b{i}", mass=rng.uniform(0.5, 2), com=rng.normal(size=3) * 0.2, inertia=np.trace(J) * np.eye(3) - J)
        more = {"axis2": rng.normal(size=3)} if kind == "universal" else {"pitch": 0.1} if kind == "helical" else {}
        m.add_joint(
            f"j{i}",
            kind,
            parent=parent,
            child=f"b{i}",
            axis=rng.normal(size=3),
            parent_frame=la.pose(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            armature=0.0 if kind == "free" else 0.05,
            **more,
        )
    return m.build()


def lanes(columns: list[np.ndarray]) -> np.ndarray:
    return np.ascontiguousarray(np.stack(columns, axis=-1))


@pytest.fixture(scope="module")
def four() -> tuple:
    """A tree and four states of it: x, u, udot as lists."""
    model = mixed_tree(3)
    rng = np.random.default_rng(4)
    c = model.system.coordinates
    states = []
    for _ in range(4):
        q = retract(model, model.neutral(), rng.normal(size=model.nv))
        states.append((q[c.q], rng.normal(size=model.nv), rng.normal(size=model.nv)))
    return model.system.tree, *([state[k] for state in states] for k in range(3))


def test_rnea_and_aba_of_lanes_equal_those_of_one(four):
    tree, x, u, a = four
    n = len(u[0])
    for function in (entries.rnea, entries.aba):
        wide = np.zeros((n, 4))
        function(tree, lanes(x), lanes(u), lanes(a), wide, 1)
        for k in range(4):
            one = np.zeros(n)
            function(tree, x[k], u[k], a[k], one, 1)
            # measured 3e-15: the same operations in the same order, but products may be fused with other sums
            assert np.abs(wide[:, k] - one).max() < 1e-13 * np.abs(one).max()


def test_mass_matrix_and_derivatives_of_lanes_equal_those_of_one(four):
    tree, x, u, a = four
    n = len(u[0])
    H = np.zeros((n, n, 4))
    entries.crba(tree, lanes(x), H, 1)
    wide = [np.zeros((n, n, 4)) for _ in range(3)] + [np.zeros((n, 6, 4))]
    entries.tree_derivatives(tree, lanes(x), lanes(u), lanes(a), *wide, 1)
    for k in range(4):
        one = [np.zeros((n, n)) for _ in range(3)] + [np.zeros((n, 6))]
        entries.tree_derivatives(tree, x[k], u[k], a[k], *one, 1)
        # measured 3e-16
        assert np.abs(H[:, :, k] - one[2]).max() < 1e-14 * np.abs(one[2]).max()
        for left, right in zip(wide, one, strict=True):
            # measured 6e-16
            assert np.abs(left[..., k] - right).max() < 1e-14 * np.abs(right).max()


def test_every_source_compiles_to_the_python_values():
    @njit(error_model="numpy")
    def compiled(w, out):
        q = so3.quat_exp(w)
        back = so3.quat_log(q)
        J = so3.dexp(w)
        K = so3.dexp_inv(w)
        for i in range(3):
            out[i] = back[i]
        for i in range(9):
            out[3 + i] = J[i]
            out[12 + i] = K[i]

    rng = np.random.default_rng(0)
    for scale in (1e-9, 1e-3, 0.5, 1.0, 3.0):
        w = tuple(rng.normal(size=3) * scale)
        out = np.zeros(21)
        compiled(w, out)
        expected = [*so3.quat_log(so3.quat_exp(w)), *so3.dexp(w), *so3.dexp_inv(w)]
        # measured 2.5e-16 of the largest entry
        assert np.abs(out - expected).max() < 1e-14 * max(1.0, np.abs(expected).max())


@njit(error_model="numpy")
def _sincos(x, s, c):
    for k in range(x.shape[0]):
        a, b = scalar.sincos(ld1(x, k))
        st1(s, k, a)
        st1(c, k, b)


@pytest.mark.parametrize("size", [1e-8, 1.0, 100.0, 9e4, 2e5, 1e12])
def test_sine_and_cosine_are_accurate_to_the_last_bits(size):
    rng = np.random.default_rng(5)
    x = rng.uniform(-size, size, 4000)
    s, c = np.zeros_like(x), np.zeros_like(x)
    _sincos(x, s, c)
    # measured 2.2e-16 at most below 1e5, where the own reduction works; 1.1e-16 above, where the C library is asked
    assert np.abs(s - np.sin(x)).max() < 3e-16
    assert np.abs(c - np.cos(x)).max() < 3e-16
    wide = x.reshape(-1, 4)
    sw, cw = np.zeros_like(wide), np.zeros_like(wide)
    _sincos(wide, sw, cw)
    assert np.abs(sw - np.sin(wide)).max() < 3e-16
    assert np.abs(cw - np.cos(wide)).max() < 3e-16


def test_scratch_follows_the_shape_of_its_model():
    assert vector(np.zeros(3), 5).shape == (5,)
    assert vector(np.zeros((3, 4)), 5).shape == (5, 4)
