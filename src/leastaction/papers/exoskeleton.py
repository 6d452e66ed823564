"""An arm in an exoskeleton: two loops, attachments with springs and dampers, a patient with and without spasticity.

Bruedigam et al. 2023, Sect. 5.4, do not give masses and lengths. Those of the arm are from Winter, Biomechanics and
Motor Control of Human Movement (4th ed., 2009), Table 4.1, for a person of 75 kg and 1.75 m: upper arm 2.8 % of the
mass and 18.6 % of the height, forearm and hand 2.2 %, forearm 14.6 %. Those of the exoskeleton, of the attachments and
of the muscle are this library's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from leastaction.model.model import Model

# arm: masses (kg), lengths (m), centres of mass from the upper joint as parts of the length, radii of gyration about
# the centre of mass likewise
UPPER_MASS, LOWER_MASS = 0.028 * 75, 0.022 * 75
UPPER, FOREARM = 0.186 * 1.75, 0.146 * 1.75
UPPER_CENTRE, LOWER_CENTRE = 0.436, 0.682
UPPER_GYRATION, LOWER_GYRATION = 0.322, 0.468
THICKNESS = 0.04

# exoskeleton beside the arm: distance (m), masses of its four links (kg)
BESIDE, LINKS = 0.09, (0.6, 0.6, 1.2, 0.6)

# attachments: N/m, N s/m along and across the arm, N m/rad and N m s/rad about the axis of the elbow
CUFF_STIFFNESS, CUFF_DAMPING = (3000.0, 3000.0, 30.0), (60.0, 60.0, 0.6)

# abduction and rotation of the shoulder are held by their motors
HOLD, HOLD_DAMPING = 100.0, 10.0

# a spastic extensor of the elbow: spring and damper from the upper arm to a point of the forearm behind the elbow
MUSCLE_STIFFNESS, MUSCLE_DAMPING, MUSCLE_ARM, MUSCLE_TOP = 4000.0, 400.0, 0.03, 0.05

_Y = (0.0, 1.0, 0.0)


def exoskeleton(spastic: bool) -> Model:
    """The arm hangs down along -z at q = 0 with its shoulder at the origin, the exoskeleton beside it along y.

    Actuated joints of the exoskeleton: ``abduction``, ``rotation``, ``shoulder`` (flexion, positive forwards to x) and
    ``elbow`` (negative when it flexes). ``upper_cuff`` and ``lower_cuff`` hold the arm with two translations and a
    rotation, each with a spring and a damper. The joints of the arm itself, ``arm_shoulder`` (a ball) and ``arm_elbow``
    (a hinge), close the two loops, which share the upper arm.

    Args:
        spastic: whether the extensor of the elbow resists as a spring and damper, relaxed when the arm is straight.
    """
    from leastaction.model.forces import PointSpring
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    m = Mechanism("arm in an exoskeleton, " + ("spastic" if spastic else "healthy"))
    beside = np.array([0.0, BESIDE, 0.0])
    # exoskeleton: two links about the shoulder, one along the upper arm and one along the forearm
    for name, mass, length in zip(
        ("yoke", "ring", "upper_exo", "lower_exo"), LINKS, (0, 0, UPPER, FOREARM), strict=True
    ):
        middle = beside + np.array([0.0, 0.0, -length / 2])
        m.add_body(name, mass=mass, com=middle, inertia=_rod(mass, max(length, 0.1), 0.03))
    # the arm; its joints are at the origins of its bodies
    for name, mass, length, centre, gyration in (
        ("upper_arm", UPPER_MASS, UPPER, UPPER_CENTRE, UPPER_GYRATION),
        ("forearm", LOWER_MASS, FOREARM, LOWER_CENTRE, LOWER_GYRATION),
    ):
        across, own = mass * (gyration * length) ** 2, mass * THICKNESS**2 / 2
        m.add_body(name, mass=mass, com=(0.0, 0.0, -centre * length), inertia=(across, across, own))
    hold: dict[str, Any] = {"stiffness": HOLD, "damping": HOLD_DAMPING}
    elbow = pose((0.0, 0.0, -UPPER))
    m.add_joint("abduction", "revolute", parent="world", child="yoke", axis=(1.0, 0.0, 0.0), **hold)
    m.add_joint("rotation", "revolute", parent="yoke", child="ring", axis=(0.0, 0.0, 1.0), **hold)
    # flexion turns -z towards x: about -y
    m.add_joint("shoulder", "revolute", parent="ring", child="upper_exo", axis=(0.0, -1.0, 0.0))
    m.add_joint("elbow", "revolute", parent="upper_exo", child="lower_exo", axis=_Y, parent_frame=elbow)
    cuffs = {"upper_cuff": ("upper_exo", "upper_arm", UPPER), "lower_cuff": ("lower_exo", "forearm", FOREARM)}
    for name, (parent, child, length) in cuffs.items():
        middle = np.array([0.0, 0.0, -length / 2])
        m.add_joint(
            name, "planar", parent=parent, child=child, axis=_Y, parent_frame=pose(middle), child_frame=pose(middle),
            stiffness=CUFF_STIFFNESS, damping=CUFF_DAMPING,
        )  # fmt: skip
    m.add_joint("arm_shoulder", "spherical", parent="world", child="upper_arm")
    m.add_joint("arm_elbow", "revolute", parent="upper_arm", child="forearm", axis=_Y, parent_frame=elbow)
    if spastic:
        top, behind, rest = (0.0, 0.0, -MUSCLE_TOP), (0.0, 0.0, MUSCLE_ARM), UPPER - MUSCLE_TOP - MUSCLE_ARM
        m.add_force(
            PointSpring(
                "upper_arm", np.array(top), "forearm", np.array(behind), stiffness=MUSCLE_STIFFNESS,
                damping=MUSCLE_DAMPING, rest_length=rest,
            )
        )  # fmt: skip
    return m.build()


def _rod(mass: float, length: float, width: float) -> tuple[float, float, float]:
    """Principal moments of a uniform rod of square section along z."""
    across = mass * (length**2 + width**2) / 12
    return across, across, mass * width**2 / 6
