"""Planar linkages: where their loops close, and how many degrees of freedom they leave."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction import models


def freedom(rates):
    """Degrees of freedom left by rows of rates: singular values below 1e-9 are zero (measured: below 2e-16)."""
    return rates.shape[1] - int((np.linalg.svd(rates, compute_uv=False) > 1e-9).sum())


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, 2.0, np.pi, -1.0])
def test_four_bar_is_closed_wherever_its_crank_starts(angle, loop_gap, loop_rates):
    model = models.four_bar(angle=angle).build()
    assert loop_gap(model, model.neutral()) < 1e-15  # measured 0
    assert freedom(loop_rates(model, model.neutral())) == 1
    # lengths of the bars
    pins = [model.mechanism.bodies[name].com * 2 for name in ("crank", "coupler", "rocker")]
    np.testing.assert_allclose(np.linalg.norm(pins, axis=1), [0.1, 0.25, 0.2], rtol=1e-14)  # measured 2e-16
    np.testing.assert_allclose(pins[0], [0.1 * np.cos(angle), 0, 0.1 * np.sin(angle)], rtol=0, atol=1e-16)  # measured 0


def test_four_bar_angles_turn_x_towards_z():
    model = models.four_bar(angle=0.0).build()
    end = la.poses(model, {"crank_hinge": 0.4})["crank"] @ [0.1, 0, 0, 1]
    np.testing.assert_allclose(end[:3], [0.1 * np.cos(0.4), 0, 0.1 * np.sin(0.4)], rtol=0, atol=1e-16)  # measured 2e-17


@pytest.mark.parametrize("n", [1, 2, 5])
def test_n_four_bar_gains_freedom_where_it_lies_flat(n, loop_gap, loop_rates):
    model = models.n_four_bar(n).build()
    assert freedom(loop_rates(model, model.neutral())) == 1
    # all rods along x
    flat = {f"base{i}": -np.pi / 2 for i in range(n + 1)} | {f"bar{i}_hinge": np.pi / 2 for i in range(1, n + 1)}
    q = model.check_q(flat)
    assert loop_gap(model, q) < 1e-15  # measured 0
    assert freedom(loop_rates(model, q)) == n + 1


def test_n_four_bar_starts_as_the_benchmark(loop_rates):
    n = 3
    model = models.n_four_bar(n).build()
    rates = {f"base{i}": -1.0 for i in range(n + 1)} | {f"bar{i}_hinge": 1.0 for i in range(1, n + 1)}
    x = model.state(v=rates)
    np.testing.assert_allclose(loop_rates(model, x.q) @ x.v, 0, rtol=0, atol=1e-15)  # measured 0
    # the tops move at 1 m/s along x, and so do the bars as a whole
    for i in range(n + 1):
        top = la.jacobian(model, x.q, f"rod{i}", (0, 0, 1)) @ x.v
        np.testing.assert_allclose(top[3:], [1, 0, 0], rtol=0, atol=1e-15)  # measured 0
    standing, level = (n + 1) / 3, n
    assert la.energy(model, x.q, x.v).kinetic == pytest.approx((standing + level) / 2, rel=1e-14)  # measured 2e-16
    assert la.energy(model, x.q).potential == pytest.approx(9.81 * ((n + 1) / 2 + n), rel=1e-14)  # measured 0


def test_slider_crank_follows_its_formula(loop_gap, loop_rates):
    model = models.slider_crank().build()
    assert freedom(loop_rates(model, model.neutral())) == 1
    # crank at 50 degrees
    r, l, angle = 0.15, 0.30, np.radians(50)
    tilt = -np.arcsin(r / l * np.sin(angle))
    x = r * np.cos(angle) + l * np.cos(tilt) - (r + l)
    q = model.check_q({"crank_hinge": angle, "rod_hinge": tilt - angle, "slide": x})
    assert loop_gap(model, q) < 1e-15  # measured 3e-17
    # uniform bars: the published moments about the hinges are these to 1 per cent and 2e-4
    for name, length, published, slack in (("crank", r, 0.002727, 0.011), ("rod", l, 0.0045339259, 2e-4)):
        moment = model.mechanism.bodies[name].mass * length**2 / 3
        assert moment == pytest.approx(published, rel=slack)  # measured 0.0099 and 1.8e-4


def test_strandbeest_has_one_freedom_and_walks_on_a_level_line(loop_rates):
    from leastaction.models.jansen import LENGTHS

    toes = []
    for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
        m = models.strandbeest(unit=1.0, angle=angle)
        model = m.build()
        rates = loop_rates(model, model.neutral())
        assert np.linalg.matrix_rank(rates, tol=1e-9 * np.abs(rates).max()) == model.nv - 1
        poses = la.poses(model, model.neutral())
        toes.append((poses["left_foot"] @ m.frames["left_toe"].pose)[:3, 3])
    toes = np.array(toes)
    assert np.abs(toes[:, 1]).max() == 0
    # while it stands the toe is on a line: half of the turn within 2 of his units, and it is lifted by much more
    low = np.sort(toes[:, 2]) - toes[:, 2].min()
    assert low[11] < 2  # measured 1.44
    assert low[-1] > 15  # measured 22.2
    assert LENGTHS["m"] * 2 < np.ptp(toes[:, 0]) < 100  # measured 67.8
