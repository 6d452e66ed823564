"""The joint table: coordinates, factors and loop rows agree with each other for every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastaction.errors import ModelError
from leastaction.model.bearing import Bearing
from leastaction.model.elements import Joint
from leastaction.model.joint_data import check_joint
from leastaction.model.joints import KINDS, Ball, Law, Screw, factors, kind_of, layout, loop_rows, plane_basis
from leastaction.model.pose import pose
from leastaction.spatial import quaternion, se3, so3

# kind: nq, nv, screws, balls, rows on translation, rows on rotation, coupling rows
TABLE = {
    "fixed": (0, 0, 0, 0, 3, 3, 0),
    "revolute": (1, 1, 1, 0, 3, 2, 0),
    "continuous": (1, 1, 1, 0, 3, 2, 0),
    "prismatic": (1, 1, 1, 0, 2, 3, 0),
    "helical": (1, 1, 1, 0, 2, 2, 1),
    "cylindrical": (2, 2, 2, 0, 2, 2, 0),
    "universal": (2, 2, 2, 0, 3, 0, 1),
    "planar": (3, 3, 3, 0, 1, 2, 0),
    "planar_translation": (2, 2, 2, 0, 1, 3, 0),
    "translational": (3, 3, 3, 0, 0, 3, 0),
    "axis_rotation_free_translation": (4, 4, 4, 0, 0, 2, 0),
    "spherical": (4, 3, 0, 1, 3, 0, 0),
    "cylindrical_free": (5, 4, 1, 1, 2, 0, 0),
    "planar_free": (6, 5, 2, 1, 1, 0, 0),
    "free": (7, 6, 3, 1, 0, 0, 0),
}


def make(kind: str, **options) -> Joint:
    """A checked joint with an axis in general position."""
    defaults = {"axis": (0.3, -0.5, 0.7)}
    if kind == "universal":
        defaults["axis2"] = (1, 0.2, 0.1)
    if kind == "helical":
        defaults["pitch"] = 0.3
    joint = Joint("j", kind, "a", "b", **{**defaults, **options})
    check_joint(joint)
    return joint


def motion(joint: Joint, q: np.ndarray) -> np.ndarray:
    """Pose of the child joint frame in the parent joint frame, factor by factor."""
    out = np.eye(4)
    for factor, piece in zip(factors(joint), layout(joint), strict=True):
        out = out @ factor.before
        if isinstance(factor, Ball):
            out = out @ se3.pose(quaternion.to_matrix(q[piece.q]), np.zeros(3))
        else:
            out = out @ se3.exp(factor.twist * q[piece.q])
    return out


def random_q(joint: Joint, rng: np.random.Generator) -> np.ndarray:
    q = rng.uniform(-1, 1, joint.nq)
    for piece in layout(joint):
        if piece.factor == "ball":
            q[piece.q] /= np.linalg.norm(q[piece.q])
    return q


def test_the_table_has_every_kind():
    assert set(TABLE) | {"composite"} == set(KINDS)


@pytest.mark.parametrize("kind", TABLE)
def test_counts(kind):
    joint = make(kind)
    nq, nv, screws, balls, *_ = TABLE[kind]
    row = kind_of(kind)
    assert (joint.nq, joint.nv, row.nq, row.nv) == (nq, nv, nq, nv)
    made = factors(joint)
    assert sum(isinstance(f, Screw) for f in made) == screws
    assert sum(isinstance(f, Ball) for f in made) == balls
    assert nq == screws + 4 * balls
    assert nv == screws + 3 * balls
    assert len(set(joint.coordinate_names)) == nq
    assert len(set(joint.velocity_names)) == nv


@pytest.mark.parametrize("kind", TABLE)
def test_the_neutral_position_does_not_move(kind):
    joint = make(kind)
    np.testing.assert_array_equal(motion(joint, joint.neutral), np.eye(4))
    np.testing.assert_array_equal(joint.neutral, kind_of(kind).neutral)


@pytest.mark.parametrize("kind", TABLE)
def test_motion_satisfies_the_loop_rows(kind):
    joint, rng = make(kind), np.random.default_rng(7)
    rows = loop_rows(joint)
    for _ in range(5):
        T = motion(joint, random_q(joint, rng))
        q = quaternion.from_matrix(T[:3, :3])
        # measured 9e-17
        np.testing.assert_allclose(rows.translation @ T[:3, 3], 0, rtol=0, atol=2e-15)
        np.testing.assert_allclose(rows.rotation @ q[1:], 0, rtol=0, atol=2e-15)
        if rows.coupling is not None and rows.coupling[0] == "universal":
            _, axis, axis2 = rows.coupling
            # measured 1e-16
            np.testing.assert_allclose(axis @ T[:3, :3] @ axis2, axis @ axis2, rtol=0, atol=2e-15)
        if rows.coupling is not None and rows.coupling[0] == "helical":
            _, axis, pitch = rows.coupling
            # measured 8e-17
            np.testing.assert_allclose(axis @ T[:3, 3], pitch * (axis @ so3.log(T[:3, :3])), rtol=0, atol=2e-15)


@pytest.mark.parametrize("kind", TABLE)
def test_rows_and_velocities_add_up_to_six(kind):
    joint = make(kind)
    rows = loop_rows(joint)
    _, nv, _, _, translation, rotation, coupling = TABLE[kind]
    assert (len(rows.translation), len(rows.rotation), int(rows.coupling is not None)) == (
        translation,
        rotation,
        coupling,
    )
    assert translation + rotation + coupling == 6 - nv
    # orthonormal rows, as in Bruedigam et al. 2023, Table B.1; measured 2e-16
    for part in (rows.translation, rows.rotation):
        np.testing.assert_allclose(part @ part.T, np.eye(len(part)), rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", [k for k in TABLE if k != "fixed"])
def test_every_coordinate_moves_the_joint_its_own_way(kind):
    """The twists of the factors at the neutral position are independent."""
    joint = make(kind)
    columns = []
    for factor in factors(joint):
        columns.extend(np.eye(6)[:, :3].T if isinstance(factor, Ball) else [factor.twist])
    assert np.linalg.matrix_rank(np.array(columns)) == joint.nv


def test_a_planar_joint_about_z_uses_the_frames_axes():
    x, y, turn = factors(make("planar", axis=(0, 0, 1)))
    assert x.axis.tolist() == [1, 0, 0]
    assert y.axis.tolist() == [0, 1, 0]
    assert (turn.kind, turn.axis.tolist()) == ("revolute", [0, 0, 1])
    # x, y, then the rotation: the position is (x, y) whatever the angle
    T = motion(make("planar", axis=(0, 0, 1)), np.array([0.2, 0.3, 1.0]))
    # measured 0
    np.testing.assert_allclose(T[:3, 3], [0.2, 0.3, 0], rtol=0, atol=1e-16)


def test_a_free_joint_is_position_then_orientation():
    q = np.array([1.0, 2.0, 3.0, 0.5, 0.5, 0.5, 0.5])
    T = motion(make("free"), q)
    assert T[:3, 3].tolist() == [1, 2, 3]
    # measured 0
    np.testing.assert_allclose(T[:3, :3], quaternion.to_matrix(q[3:]), rtol=0, atol=1e-16)
    assert make("free").velocity_names == ("wx", "wy", "wz", "vx", "vy", "vz")


def test_twists_of_the_three_screws():
    revolute, prismatic, helical = (factors(make(k, axis=(0, 0, 2)))[0] for k in ("revolute", "prismatic", "helical"))
    assert revolute.twist.tolist() == [0, 0, 1, 0, 0, 0]
    assert prismatic.twist.tolist() == [0, 0, 0, 0, 0, 1]
    assert helical.twist.tolist() == [0, 0, 1, 0, 0, 0.3]


unit_vectors = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 1e-3)


@given(unit_vectors)
def test_plane_basis_is_orthonormal_and_right_handed(v):
    n = np.array(v) / np.linalg.norm(v)
    basis = np.array([*plane_basis(n), n])
    # measured 4e-16
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), rtol=0, atol=4e-15)
    np.testing.assert_allclose(np.linalg.det(basis), 1.0, rtol=0, atol=4e-15)


@pytest.mark.parametrize("z", [1.0, -1.0])
def test_plane_basis_at_the_poles(z):
    u, v = plane_basis(np.array([0.0, 0.0, z]))
    assert u.tolist() == [1, 0, 0]
    assert v.tolist() == [0, z, 0]


def composite(**options) -> Joint:
    parts = [
        ("universal", {"axis": (1, 0, 0), "axis2": (0, 1, 0)}),
        ("prismatic", {"frame": pose((0, 0, 1)), "axis": (0, 0, 1)}),
        "spherical",
    ]
    return make("composite", parts=parts, **options)


def test_composite_joints_are_their_parts_in_sequence():
    joint = composite()
    assert (joint.nq, joint.nv) == (7, 6)
    assert joint.coordinate_names == ("0.angle", "0.angle2", "1.displacement", "2.qw", "2.qx", "2.qy", "2.qz")
    assert joint.neutral.tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert [f.before[2, 3] for f in factors(joint)] == [0, 0, 1, 0]
    q = random_q(joint, np.random.default_rng(2))
    expected = (
        se3.exp([q[0], 0, 0, 0, 0, 0]) @ se3.exp([0, q[1], 0, 0, 0, 0]) @ pose((0, 0, 1 + q[2])) @ pose(quat=q[3:])
    )
    # measured 0
    np.testing.assert_allclose(motion(joint, q), expected, rtol=0, atol=4e-15)


def test_composite_joints_cannot_close_a_loop():
    with pytest.raises(ModelError, match=r"joint 'j'.*cannot close a loop"):
        loop_rows(composite())


@pytest.mark.parametrize("numbers", [(-0.1, 1.0, 1.0), (0.1, 0.0, 1.0), (0.1, 1.0, np.nan), (0.1, "wide", 1.0)])
def test_bad_bearings(numbers):
    with pytest.raises(ModelError, match=r"Bearing: (coefficient|radius|length)"):
        Bearing(*numbers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "hinge"}, "joint 'j': unknown joint kind 'hinge'; the kinds are fixed, revolute"),
        ({"kind": 3}, "unknown joint kind 3"),
        ({"axis": (0, 0, 0)}, "joint 'j': axis: the axis is zero"),
        ({"axis": (0, np.nan, 0)}, "axis.*finite"),
        ({"axis": (0, 1)}, "axis.*3 numbers"),
        ({"kind": "universal"}, "needs axis2"),
        ({"kind": "universal", "axis2": (0, 0, -2)}, "parallel"),
        ({"axis2": (1, 0, 0)}, "axis2 belongs to universal"),
        ({"pitch": 0.1}, "pitch belongs to helical"),
        ({"parts": ["revolute"]}, "parts belong to composite"),
        ({"kind": "composite"}, "needs parts"),
        ({"kind": "composite", "parts": []}, "needs parts"),
        ({"kind": "composite", "parts": ["free"]}, "free joint cannot be a part"),
        ({"kind": "composite", "parts": ["fixed"]}, "fixed joint cannot be a part"),
        ({"kind": "composite", "parts": [("revolute", {"axes": 1})]}, "parts.0.: unknown option 'axes'"),
        ({"kind": "composite", "parts": [("revolute", {"axis": (0, 0, 0)})]}, "parts.0.: axis: the axis is zero"),
        ({"kind": "composite", "parts": [3]}, "parts.0.: expected"),
        ({"parent": "b"}, "both 'b'"),
        ({"parent_frame": np.eye(3)}, "parent_frame"),
        ({"damping": -1}, "damping: must not be negative"),
        ({"damping": [0.1, 0.2]}, "damping: expected one number or 1"),
        ({"stiffness": np.nan}, "stiffness"),
        ({"stiffness": -1}, "a Law may have any sign"),
        ({"friction": -1}, "friction"),
        ({"kind": "helical", "friction": Bearing(0.1, 0.2, 0.3)}, "a Bearing belongs to revolute.*this one is helical"),
        ({"friction": Bearing(0.1, 0.2)}, "the Bearing of a revolute joint needs a length"),
        ({"armature": -1}, "armature"),
        ({"kind": "fixed", "damping": 1.0}, "no coordinates"),
        ({"kind": "free", "friction": 1.0}, "friction has no meaning on a free joint"),
        ({"kind": "free", "armature": 1.0}, "armature has no meaning on a free joint"),
        ({"kind": "spherical", "armature": [1, 2, 3]}, "the same for the three"),
        ({"kind": "spherical", "damping": Law(np.sin, np.cos)}, "a Law needs a screw"),
        ({"kind": "free", "stiffness": Law(np.sin, np.cos)}, "a Law needs a screw"),
        ({"limits": (1, -1)}, "joint 'j': limits: low 1.0 is above high -1.0"),
        ({"limits": (np.nan, 1)}, "limits"),
        ({"limits": (0, np.nan)}, "limits"),
        ({"limits": (np.inf, np.inf)}, "limits"),
        ({"limits": 3}, "limits: expected"),
        ({"limits": (1, 2, 3)}, "limits: expected one"),
        ({"limits": "ab"}, "limits: expected"),
        ({"kind": "cylindrical", "limits": (0, 1)}, "each of the 2 screw coordinates"),
        ({"kind": "spherical", "limits": (-1, 1)}, "limit of a ball"),
        ({"kind": "spherical", "limits": (0, 0)}, "limit of a ball"),
        ({"kind": "continuous", "limits": (0, 1)}, "no limits; use a revolute"),
        ({"effort": 0}, "effort.*positive"),
        ({"speed": -1}, "speed.*positive"),
        ({"effort": np.nan}, "effort"),
        ({"rest": np.inf}, "rest"),
        ({"kind": "spherical", "rest": 1.0}, "one number per position coordinate"),
        ({"kind": "spherical", "rest": (0, 0, 0, 0)}, "rest.*zero"),
        ({"rest": (1, 2)}, "rest: expected 1 numbers .angle."),
        ({"locked": (1, 2)}, "locked"),
    ],
)
def test_bad_joints(options, message):
    joint = Joint("j", **{"kind": "revolute", "parent": "a", "child": "b", **options})
    with pytest.raises(ModelError, match=message):
        check_joint(joint)


def test_data_is_spread_over_the_coordinates():
    joint = make("cylindrical", damping=0.1, effort=[5, None], limits=[(-1, 1), None], rest=0.2, armature=[1, 2])
    assert joint.damping.tolist() == [0.1, 0.1]
    assert joint.effort.tolist() == [5, np.inf]
    assert joint.limits.tolist() == [[-1, 1], [-np.inf, np.inf]]
    assert joint.rest.tolist() == [0.2, 0.2]
    assert joint.has_limits


def test_one_sided_and_infinite_limits():
    assert make("revolute", limits=(None, 1)).limits.tolist() == [[-np.inf, 1]]
    assert make("revolute", limits=[(0, None)]).limits.tolist() == [[0, np.inf]]
    assert make("revolute", limits=(-np.inf, np.inf)).limits.tolist() == [[-np.inf, np.inf]]
    assert not make("revolute", limits=(None, None)).has_limits
    assert not make("revolute", limits=[None]).has_limits
    assert make("revolute", limits=(0.5, 0.5)).limits.tolist() == [[0.5, 0.5]]
    assert make("spherical", limits=(0, 1)).limits.tolist() == [[0, 1]]
    assert make("cylindrical_free", limits=[(-1, 2), (0, 3)]).limits.tolist() == [[-1, 2], [0, 3]]


def test_rest_of_a_ball_is_normalised():
    joint = make("cylindrical_free", rest=(0.5, 2, 0, 0, 0))
    assert joint.rest.tolist() == [0.5, 1, 0, 0, 0]
    assert make("cylindrical_free").rest.tolist() == [0, 1, 0, 0, 0]


def test_laws_stand_beside_numbers():
    law = Law(lambda q: -(q**3), lambda q: -3 * q**2, lambda q: q**4 / 4)
    joint = make("cylindrical", stiffness=[2.0, law], damping=law)
    assert joint.stiffness_values.tolist() == [2, 0]
    assert joint.stiffness_laws == {1: law}
    assert joint.damping_laws == {0: law, 1: law}
    assert make("cylindrical").damping_laws == {}


@pytest.mark.parametrize("arguments", [(1, np.cos), (np.sin, None), (np.sin, np.cos, 3)])
def test_laws_are_functions(arguments):
    with pytest.raises(ModelError, match="Law"):
        Law(*arguments)


@pytest.mark.parametrize("kind", [*TABLE, "composite"])
def test_checking_twice_changes_nothing(kind):
    joint = composite() if kind == "composite" else make(kind, rest=0.0)
    before = {key: np.array(value, dtype=object).tolist() for key, value in vars(joint).items() if key != "parts"}
    check_joint(joint)
    after = {key: np.array(value, dtype=object).tolist() for key, value in vars(joint).items() if key != "parts"}
    assert before == after


@given(unit_vectors)
def test_normalising_an_axis_twice_changes_nothing(v):
    once = make("revolute", axis=v).axis
    assert np.array_equal(make("revolute", axis=once).axis, once)
