"""The seven-joint arm Franka Emika Panda, described by its published kinematics and identified masses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Shape
from leastaction.models.parts import BLUE, DARK, STEEL, bar, tube

Triple = tuple[float, float, float]


class _Link(NamedTuple):
    """A link: place of its joint (position, roll) in the link before, mass, com, inertia, limits of its joint."""

    xyz: Triple
    roll: float
    mass: float
    com: Triple
    inertia: tuple[float, float, float, float, float, float]
    limits: tuple[float, float]


_Q = np.pi / 2

# metres, radians, kg, kg m^2 (ixx, ixy, ixz, iyy, iyz, izz about the centre of mass)
LINKS = (
    _Link(
        (0.0, 0.0, 0.333), 0.0, 4.970684,
        (3.875e-03, 2.081e-03, -4.762e-02),
        (7.0337e-01, -1.3900e-04, 6.7720e-03, 7.0661e-01, 1.9169e-02, 9.1170e-03),
        (-2.8973, 2.8973),
    ),
    _Link(
        (0.0, 0.0, 0.0), -_Q, 0.646926,
        (-3.141e-03, -2.872e-02, 3.495e-03),
        (7.9620e-03, -3.9250e-03, 1.0254e-02, 2.8110e-02, 7.0400e-04, 2.5995e-02),
        (-1.7628, 1.7628),
    ),
    _Link(
        (0.0, -0.316, 0.0), _Q, 3.228604,
        (2.7518e-02, 3.9252e-02, -6.6502e-02),
        (3.7242e-02, -4.7610e-03, -1.1396e-02, 3.6155e-02, -1.2805e-02, 1.0830e-02),
        (-2.8973, 2.8973),
    ),
    _Link(
        (0.0825, 0.0, 0.0), _Q, 3.587895,
        (-5.317e-02, 1.04419e-01, 2.7454e-02),
        (2.5853e-02, 7.7960e-03, -1.3320e-03, 1.9552e-02, 8.6410e-03, 2.8323e-02),
        (-3.0718, -0.0698),
    ),
    _Link(
        (-0.0825, 0.384, 0.0), -_Q, 1.225946,
        (-1.1953e-02, 4.1065e-02, -3.8437e-02),
        (3.5549e-02, -2.1170e-03, -4.0370e-03, 2.9474e-02, 2.2900e-04, 8.6270e-03),
        (-2.8973, 2.8973),
    ),
    _Link(
        (0.0, 0.0, 0.0), _Q, 1.666555,
        (6.0149e-02, -1.4117e-02, -1.0517e-02),
        (1.9640e-03, 1.0900e-04, -1.1580e-03, 4.3540e-03, 3.4100e-04, 5.4330e-03),
        (-0.0175, 3.7525),
    ),
    _Link(
        (0.088, 0.0, 0.0), _Q, 0.735522,
        (1.0517e-02, -4.252e-03, 6.1597e-02),
        (1.2516e-02, -4.2800e-04, -1.1960e-03, 1.0027e-02, -7.4100e-04, 4.8150e-03),
        (-2.8973, 2.8973),
    ),
)  # fmt: skip

# N m and rad/s of the four large and the three small motors
TORQUES = (87.0,) * 4 + (12.0,) * 3
SPEEDS = (2.175,) * 4 + (2.61,) * 3

# from the last joint to the flange, metres
FLANGE = 0.107


def arm() -> Mechanism:
    """Franka Emika Panda without a hand: joints ``joint1``..``joint7``, bodies ``link1``..``link7``, frame ``flange``.

    The body ``link0`` is fixed to the world; every joint has a motor ``motor1``.. with its published torque.
    Kinematics, limits, torques and speeds are the manufacturer's (Franka Control Interface documentation, Robot and
    interface specifications). Masses, centres of mass and inertias of the moving links, 16.062 kg in all, are the
    physically feasible set identified by Gaz, Cognetti, Oliva, Robuffo Giordano and De Luca, Dynamic identification of
    the Franka Emika Panda robot with retrieval of feasible parameters using penalty-based optimization, IEEE Robotics
    and Automation Letters 4(4), 2019, as the manufacturer's franka_description lists them. Their friction model is
    left out. The shapes are simple ones of our own and do not enter the inertias.

    q = 0 is the arm stretched upwards, outside the limits of ``joint4``; the manufacturer's ready position is
    (0, -pi/4, 0, -3 pi/4, 0, pi/2, pi/4).
    """
    m = Mechanism("arm")
    foot = Box(np.array([0.24, 0.19, 0.14]), at=pose((-0.04, 0.0, 0.07)), color=DARK, collision=False)
    m.add_body("link0", shape=foot)
    m.add_joint("base", "fixed", parent="world", child="link0")
    shapes = _shapes()
    for i, link in enumerate(LINKS, start=1):
        m.add_body(f"link{i}", mass=link.mass, com=link.com, inertia=link.inertia, shapes=shapes[i - 1])
        m.add_joint(
            f"joint{i}",
            "revolute",
            parent=f"link{i - 1}",
            child=f"link{i}",
            parent_frame=pose(link.xyz, rpy=(link.roll, 0.0, 0.0)),
            limits=link.limits,
            effort=TORQUES[i - 1],
            speed=SPEEDS[i - 1],
        )
        m.add_actuator(f"motor{i}", f"joint{i}", effort=TORQUES[i - 1])
    m.add_frame("flange", "link7", pose((0.0, 0.0, FLANGE)))
    return m


def _shapes() -> list[list[Shape]]:
    """Bars along the links, each in its link frame."""
    return [
        [bar((0.0, 0.0, 0.0), 0.06, start=(0.0, 0.0, -0.19), color=STEEL)],
        [bar((0.0, -0.19, 0.0), 0.06, color=BLUE)],
        [bar((0.0, 0.0, -0.12), 0.06, color=STEEL), bar((0.0825, 0.0, 0.0), 0.06, color=STEEL)],
        [
            bar((-0.0825, 0.0, 0.0), 0.055, color=BLUE),
            bar((-0.0825, 0.13, 0.0), 0.055, start=(-0.0825, 0.0, 0.0), color=BLUE),
        ],
        [bar((0.0, 0.0, -0.25), 0.05, color=STEEL)],
        [bar((0.088, 0.0, 0.0), 0.05, color=BLUE)],
        [tube((0.0, 0.0, FLANGE), 0.045, color=DARK)],
    ]
