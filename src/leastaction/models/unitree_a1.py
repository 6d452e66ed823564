"""The quadruped Unitree A1, described by its published masses and lengths."""

from __future__ import annotations

import numpy as np

from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Cylinder, Sphere
from leastaction.models.parts import BLUE, DARK, ORANGE, STEEL

# masses, kg: first published revision of the manufacturer's a1_description
TRUNK, HIP, THIGH, CALF, FOOT = 4.713, 0.696, 1.013, 0.166, 0.06

# lengths, metres: hips from the trunk's centre (forward, sideways), hip to thigh, thigh and calf, foot radius
HIP_X, HIP_Y, THIGH_OFFSET, LEG_LENGTH, FOOT_RADIUS = 0.183, 0.047, 0.0838, 0.2, 0.02

# sizes of the simple shapes in the same description, metres
TRUNK_SIZE = np.array([0.267, 0.194, 0.114])
HIP_RADIUS, HIP_LENGTH = 0.046, 0.04
MOTOR_RADIUS, MOTOR_LENGTH = 0.041, 0.032
THIGH_SIZE, CALF_SIZE = np.array([0.034, 0.0245, LEG_LENGTH]), np.array([0.016, 0.016, LEG_LENGTH])

# joint limits in degrees, torque in N m, speed in rad/s
HIP_LIMITS, THIGH_LIMITS, CALF_LIMITS = (-46.0, 46.0), (-60.0, 240.0), (-154.5, -52.5)
TORQUE, SPEED = 33.5, 21.0

# prefix of each leg, and where its hip is: forward and to the left are positive
LEGS = {"FR": (1, -1), "FL": (1, 1), "RR": (-1, -1), "RL": (-1, 1)}


def quadruped() -> Mechanism:
    """Unitree A1: free joint ``root`` and twelve hinges ``FR_hip_joint``, ``FR_thigh_joint``, ``FR_calf_joint``, ...

    Legs are FR, FL, RR, RL (front or rear, right or left); x is forward, y to the left. Bodies ``trunk`` and for each
    leg ``FR_hip``, ``FR_thigh``, ``FR_calf``, ``FR_foot`` (fixed to the calf); motors ``FR_hip_motor``, ...

    Masses, lengths, limits and sizes are those of the manufacturer's ``a1_description`` (unitree_ros): trunk 4.713 kg
    (its first revision; later ones have 6 kg), hip 0.696, thigh 1.013, calf 0.166, foot 0.06 kg, 12.453 kg in all;
    hips at 0.183 m and 0.047 m from the centre, thighs 0.0838 m further out, thigh and calf 0.2 m, foot radius 0.02 m.
    Inertias and centres of mass are not the published ones: each body is a uniform solid of the published simple
    shapes, scaled to its mass; the thigh's includes the motor at its top.

    At q = 0 the legs hang straight down, which is outside the limits of the calves. A usual stance is hip 0, thigh
    0.9, calf -1.8 rad with the trunk's centre at z = 0.02 + 0.4 cos(0.9) = 0.2686 m.
    """
    m = Mechanism("quadruped")
    m.add_body("trunk", mass=TRUNK, shape=Box(TRUNK_SIZE, color=DARK))
    m.add_joint("root", "free", parent="world", child="trunk")
    for leg, (forward, left) in LEGS.items():
        _add_leg(m, leg, forward, left)
    return m


def _add_leg(m: Mechanism, leg: str, forward: int, left: int) -> None:
    """One leg with its three motors; ``forward`` and ``left`` are signs."""
    hip, thigh, calf, foot = (f"{leg}_{part}" for part in ("hip", "thigh", "calf", "foot"))
    # bodies, each hanging from its joint
    sideways, middle = pose(rpy=(np.pi / 2, 0.0, 0.0)), pose((0.0, 0.0, -LEG_LENGTH / 2))
    m.add_body(hip, mass=HIP, shape=Cylinder(HIP_RADIUS, HIP_LENGTH, at=sideways, color=STEEL, collision=False))
    motor = Cylinder(MOTOR_RADIUS, MOTOR_LENGTH, at=sideways, color=STEEL, collision=False)
    m.add_body(thigh, mass=THIGH, shapes=[motor, Box(THIGH_SIZE, at=middle, color=BLUE)])
    m.add_body(calf, mass=CALF, shape=Box(CALF_SIZE, at=middle, color=DARK, collision=False))
    m.add_body(foot, mass=FOOT, shape=Sphere(FOOT_RADIUS, color=ORANGE))
    # joints from the trunk down: axis, place in the parent, limits
    x, y, down = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -LEG_LENGTH)
    joints = (
        ("trunk", hip, x, (forward * HIP_X, left * HIP_Y, 0.0), HIP_LIMITS),
        (hip, thigh, y, (0.0, left * THIGH_OFFSET, 0.0), THIGH_LIMITS),
        (thigh, calf, y, down, CALF_LIMITS),
    )
    for parent, child, axis, place, limits in joints:
        m.add_joint(
            f"{child}_joint",
            "revolute",
            parent=parent,
            child=child,
            axis=axis,
            parent_frame=pose(place),
            limits=np.radians(limits),
            effort=TORQUE,
            speed=SPEED,
        )
        m.add_actuator(f"{child}_motor", f"{child}_joint", effort=TORQUE)
    m.add_joint(f"{foot}_joint", "fixed", parent=calf, child=foot, parent_frame=pose(down))
