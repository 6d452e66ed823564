"""The gap of each kind of contact, its derivative and its degenerate poses, against ``leastaction.reference``."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.contact import gap as contact_gap
from leastaction.contact import layout as cl
from leastaction.contact import points as contact_points
from leastaction.reference import contact_geometry as reference
from leastaction.reference.contact_samples import random_poses

KINDS = {
    "plane": cl.PLANE,
    "points": cl.POINTS,
    "lines": cl.LINES,
    "line": cl.LINE,
    "disc": cl.DISC,
    "ellipsoid": cl.ELLIPSOID,
    "rim": cl.RIM,
    "rim and ball": cl.RIM,
    "oval and ball": cl.OVAL_GAP,
    "oval and line": cl.OVAL_GAP,
}


def measured(kind, row, pose_a, pose_b):
    """Gap, normal, both derivatives and both points of one contact between rows 0 and 1."""
    P = np.array([np.concatenate([T[:3, :3].ravel(), T[:3, 3]]) for T in (pose_a, pose_b)])
    ints = np.array([[kind, 0, 1, 0]])
    out = [np.full(shape, np.nan) for shape in (1, (1, 3), (1, 6), (1, 6), (1, 3), (1, 3))]
    contact_gap.contact_gaps(ints, row[None], 1, P, *out)
    return [value[0] for value in out]


def random_row(rng, kind):
    """A contact with random points, directions and radii."""
    row = rng.normal(size=cl.FLOAT_WIDTH)
    row[[cl.RA, cl.RB]] = rng.uniform(0.1, 0.3, size=2)
    for k in (cl.DA, cl.DB):
        row[k : k + 3] /= np.linalg.norm(row[k : k + 3])
    if KINDS[kind] == cl.LINES:
        row[cl.SIGN] = 1.0
    if KINDS[kind] == cl.RIM:
        start = np.cross(row[cl.DA : cl.DA + 3], row[cl.START : cl.START + 3])
        row[cl.START : cl.START + 3] = start / np.linalg.norm(start)
        row[cl.SIGN] = float(kind == "rim")
    if KINDS[kind] == cl.OVAL_GAP:
        # half axes of 0.1 to 0.4 m in random directions
        turn = random_poses(1, rng)[0][:3, :3]
        row[cl.MATRIX : cl.MATRIX + 9] = (turn * rng.uniform(0.1, 0.4, size=3)).ravel()
    if kind in ("rim and ball", "oval and ball"):
        row[cl.DB : cl.DB + 3] = 0.0
    return row


@pytest.mark.parametrize("kind", KINDS)
def test_gap_and_derivative_are_those_of_the_definition(kind):
    rng = np.random.default_rng(1)
    worst = np.zeros(4)
    for _ in range(20):
        row, (a, b) = random_row(rng, kind), random_poses(2, rng, 1.0)
        if kind in ("lines", "rim"):
            row[cl.SIGN] = np.sign(reference.gap(KINDS[kind], np.where(np.arange(24) == cl.RB, 0.0, row), a, b))
        phi, n, ga, gb, ca, cb = measured(KINDS[kind], row, a, b)
        da, db = reference.gap_derivative(KINDS[kind], row, a, b)
        errors = (
            abs(phi - reference.gap(KINDS[kind], row, a, b)),
            np.abs(ga - da).max(),
            np.abs(gb - db).max(),
            np.abs(ca - cb - phi * n).max(),
        )
        worst = np.maximum(worst, errors)
    assert worst[0] < 1e-14  # measured 1.8e-15
    assert worst[1] < 1e-9  # measured 1.5e-10
    assert worst[2] < 1e-9  # measured 1.4e-10
    # the search on a rim ends at 1e-14 rad
    assert worst[3] < (1e-13 if KINDS[kind] == cl.RIM else 1e-14)  # measured 1.7e-14 and 2e-15


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_touch_move_as_their_rows_say(kind):
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(20):
        row, poses, f = random_row(rng, kind), random_poses(2, rng, 1.0), rng.normal(size=(2, 3))

        def number(a, b, row=row, f=f):
            *_, ca, cb = measured(KINDS[kind], row, a, b)
            return f[0] @ ca + f[1] @ cb

        P = np.array([np.concatenate([T[:3, :3].ravel(), T[:3, 3]]) for T in poses])
        found, expected = np.full((2, 6), np.nan), np.zeros((2, 6))
        contact_points.touching_rows(np.array([[KINDS[kind], 0, 1, 0]]), row[None], 0, P, f, found)
        for side, c in np.ndindex(2, 6):
            for sign in (1.0, -1.0):
                moved = list(poses)
                moved[side] = reference.moved(poses[side], sign * 1e-6 * np.eye(6)[c])
                expected[side, c] += sign * number(*moved) / 2e-6
        worst = max(worst, np.abs(found - expected).max() / (1.0 + np.abs(expected).max()))
    assert worst < 3e-9  # measured 3e-10


def row_of(xa=(0, 0, 0), ra=0.0, xb=(0, 0, 0), rb=0.0, da=(0, 0, 0), db=(0, 0, 0), sign=1.0):
    return np.array([*xa, ra, *xb, rb, *da, *db, sign, *[0.0] * 9], dtype=float)


def test_centres_that_coincide_take_the_normal_of_the_start():
    row = row_of(ra=0.2, rb=0.1, da=(0, 1, 0))
    turned = random_poses(1, np.random.default_rng(0))[0]
    phi, n, ga, *rest = measured(cl.POINTS, row, turned, np.eye(4))
    assert phi == pytest.approx(-0.3, abs=1e-15)
    assert np.allclose(n, turned[:3, 1], atol=1e-15)
    assert np.isfinite(np.concatenate([ga, *rest])).all()
    # without one the normal is up
    phi, n, *_ = measured(cl.POINTS, row_of(ra=0.2), turned, np.eye(4))
    assert n.tolist() == [0, 0, 1]


def test_a_centre_on_a_line_takes_the_normal_of_the_start():
    row = row_of(xa=(0, 0, 0.4), ra=0.2, rb=0.1, da=(1, 0, 0), db=(0, 0, 1))
    phi, n, ga, gb, ca, cb = measured(cl.LINE, row, np.eye(4), np.eye(4))
    assert phi == pytest.approx(-0.3, abs=1e-15)
    assert n.tolist() == [1, 0, 0]
    assert np.allclose(cb, (0.1, 0, 0.4), atol=1e-15)
    assert np.isfinite(np.concatenate([ga, gb, ca])).all()


@pytest.mark.parametrize("apart", [0.5, 0.0])
def test_parallel_lines_are_as_far_apart_as_they_are(apart):
    row = row_of(xa=(apart, 0, 0.3), ra=0.1, rb=0.1, da=(0, 0, 1), db=(0, 0, 1))
    phi, n, *rest = measured(cl.LINES, row, np.eye(4), np.eye(4))
    assert phi == pytest.approx(apart - 0.2, abs=1e-15)
    assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-15)
    assert abs(n[2]) < 1e-15
    assert np.isfinite(np.concatenate(rest)).all()


def test_a_disc_flat_on_a_plane_touches_with_its_centre():
    row = row_of(xa=(0.1, 0.2, 0.3), ra=0.25, da=(0, 0, 1), db=(0, 0, 1))
    phi, _, ga, gb, ca, cb = measured(cl.DISC, row, np.eye(4), np.eye(4))
    assert phi == pytest.approx(0.3, abs=1e-15)
    assert np.allclose(ca, (0.1, 0.2, 0.3), atol=1e-15)
    assert np.isfinite(np.concatenate([ga, gb, cb])).all()
