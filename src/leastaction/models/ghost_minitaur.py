"""The direct-drive quadruped Minitaur with its closed five-bar legs."""

from __future__ import annotations

import numpy as np

from leastaction.model.inertia import combine
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Cylinder, Shape, Sphere
from leastaction.models.parts import BLUE, DARK, ORANGE, STEEL, bar, thin_rod

# masses, kg: frame without motors, one motor, one upper and one lower link
FRAME, MOTOR, UPPER, LOWER = 3.2, 0.25, 0.05, 0.05

# lengths, metres: upper and lower links, hips from the centre
UPPER_LENGTH, LOWER_LENGTH, HIP_X, HIP_Y = 0.1, 0.2, 0.21, 0.10

# sizes, metres
FRAME_SIZE = np.array([0.33, 0.14, 0.07])
MOTOR_RADIUS, MOTOR_LENGTH, LINK_RADIUS, TOE_RADIUS = 0.0434, 0.026, 0.006, 0.012

# the two motors of a leg sit side by side on one axis, this far from its plane
MOTOR_GAP = 0.02

# torque of a motor, N m
TORQUE = 3.5

# each leg, and where its hip is: forward and to the left are positive
LEGS = {"front_left": (1, 1), "back_left": (-1, 1), "front_right": (1, -1), "back_right": (-1, -1)}


def minitaur() -> Mechanism:
    """Minitaur: free joint ``root``, eight motors, four legs that are each closed at the toe by a revolute joint.

    A leg is a planar five-bar linkage whose two motors share an axis along y: an upper and a lower link towards the
    front (``fore``) and towards the back (``aft``), joined at the toe. For the leg ``front_left``: bodies
    ``front_left_upper_fore``, ``front_left_lower_fore``, ``front_left_upper_aft``, ``front_left_lower_aft``; joints
    ``front_left_motor_fore``, ``front_left_knee_fore``, the same with ``aft``, and the loop joint ``front_left_toe``;
    the frame ``front_left_foot`` is at the toe. The other legs are ``back_left``, ``front_right``, ``back_right``.
    Actuators are named as the motor joints.

    At q = 0 the upper links are level, one to the front and one to the back, and the toe is sqrt(0.2^2 - 0.1^2) =
    0.1732 m straight below the hip: a closed position, and the usual stance. Positive angles follow the right hand
    about y (to the left): a fore link turns down, an aft link turns up.

    The robot is that of Kenneally, De and Koditschek, Design principles for a family of direct-drive legged robots,
    IEEE Robotics and Automation Letters 1(2), 2016. Published figures of it are the links of 0.1 m and 0.2 m and the
    two coaxial motors of a leg, 0.25 kg and 3.5 N m each. The split of the 6.0 kg and the other sizes follow the
    description of the robot that comes with the Bullet physics library: frame 3.2 kg (box 0.33 x 0.14 x 0.07 m), every
    link 0.05 kg, hips at 0.21 m and 0.10 m from the centre. Inertias are our own: uniform box and cylinders for frame
    and motors, thin rods for links. Motors belong to the base, the links of a leg lie in one plane, and there is no
    rotor inertia; set ``armature`` to add it.
    """
    m = Mechanism("minitaur")
    # the base: every shape has its own mass
    solids: list[tuple[float, Shape]] = [(FRAME, Box(FRAME_SIZE, color=DARK))]
    sideways = (np.pi / 2, 0.0, 0.0)
    for forward, left in LEGS.values():
        for side in (-1, 1):
            at = pose((forward * HIP_X, left * HIP_Y + side * MOTOR_GAP, 0.0), rpy=sideways)
            solids.append((MOTOR, Cylinder(MOTOR_RADIUS, MOTOR_LENGTH, at=at, color=STEEL)))
    base = combine(shape.mass_properties(mass=mass) for mass, shape in solids)
    m.add_body("base", mass=base.mass, com=base.com, inertia=base.inertia, shapes=[shape for _, shape in solids])
    m.add_joint("root", "free", parent="world", child="base")
    for leg, (forward, left) in LEGS.items():
        _add_leg(m, leg, forward * HIP_X, left * HIP_Y)
    return m


def _add_leg(m: Mechanism, leg: str, x: float, y: float) -> None:
    """One five-bar leg below the hip at (x, y, 0)."""
    axis, hip = (0.0, 1.0, 0.0), pose((x, y, 0.0))
    depth = float(np.sqrt(LOWER_LENGTH**2 - UPPER_LENGTH**2))
    ends = {}
    for side, sign, color in (("fore", 1.0, BLUE), ("aft", -1.0, STEEL)):
        # the knee from the hip, and the toe from the knee
        upper, lower = (f"{leg}_{part}_{side}" for part in ("upper", "lower"))
        knee = np.array([sign * UPPER_LENGTH, 0.0, 0.0])
        toe = np.array([-sign * UPPER_LENGTH, 0.0, -depth])
        ends[lower] = toe
        # only the toe touches the ground, once
        shapes: list[Shape] = [bar(toe, LINK_RADIUS, color=color, collision=False)]
        if side == "fore":
            shapes.append(Sphere(TOE_RADIUS, at=pose(toe), color=ORANGE))
        m.add_body(upper, **thin_rod(UPPER, knee), shape=bar(knee, LINK_RADIUS, color=color, collision=False))
        m.add_body(lower, **thin_rod(LOWER, toe), shapes=shapes)
        motor = f"{leg}_motor_{side}"
        m.add_joint(motor, "revolute", parent="base", child=upper, axis=axis, parent_frame=hip, effort=TORQUE)
        m.add_joint(f"{leg}_knee_{side}", "revolute", parent=upper, child=lower, axis=axis, parent_frame=pose(knee))
        m.add_actuator(motor, motor, effort=TORQUE)
    # the two lower links meet at the toe
    (fore, fore_toe), (aft, aft_toe) = ends.items()
    m.add_joint(
        f"{leg}_toe",
        "revolute",
        parent=fore,
        child=aft,
        axis=axis,
        parent_frame=pose(fore_toe),
        child_frame=pose(aft_toe),
    )
    m.add_frame(f"{leg}_foot", fore, pose(fore_toe))
