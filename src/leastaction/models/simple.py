"""Small mechanisms: chains, pendulums, a top, a free body, a cart with a pole.

Pendulums and chains hang along -z at q = 0; the axis of their hinges is y where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import check_number, check_vector
from leastaction.model.inertia import check_inertia, inertia_matrix
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Cylinder, Ellipsoid, Sphere
from leastaction.models.parts import BLUE, DARK, ORANGE, STEEL, check_count, thin_rod, tube

_Y = (0.0, 1.0, 0.0)


def chain(n: int, joint: str = "revolute", length: float = 0.2, mass: float = 1.0) -> Mechanism:
    """A hanging chain of n equal links: bodies ``link1``.., joints ``joint1``...

    Each link is a uniform box of 0.04 m (x) by 0.03 m (y) by ``length`` that hangs along -z from its joint at q = 0.
    Hinge axes alternate y, x, y, ... in the link frames, which are parallel to the world at q = 0. The speed figures
    of the documentation refer to this chain with its default values, which are this library's own.

    Args:
        n: number of links.
        joint: "revolute" or "spherical".
        length: of each link, metres.
        mass: of each link, kg.
    """
    n = check_count(n, "chain: n")
    if joint not in ("revolute", "spherical"):
        raise ModelError(f"chain: joint must be 'revolute' or 'spherical', got {joint!r}.")
    length = check_number(length, "chain: length", positive=True)
    mass = check_number(mass, "chain: mass", positive=True)
    # links one below the other
    m = Mechanism(f"chain{n}")
    size, middle = np.array([0.04, 0.03, length]), pose(xyz=(0.0, 0.0, -length / 2))
    for i in range(1, n + 1):
        m.add_body(f"link{i}", mass=mass, shape=Box(size, at=middle, color=STEEL if i % 2 else BLUE))
        m.add_joint(
            f"joint{i}",
            joint,
            parent="world" if i == 1 else f"link{i - 1}",
            child=f"link{i}",
            axis=(0.0, 0.0, 1.0) if joint == "spherical" else _Y if i % 2 else (1.0, 0.0, 0.0),
            parent_frame=None if i == 1 else pose(xyz=(0.0, 0.0, -length)),
        )
    return m


def pendulum(length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """A point mass on a massless rod: body ``bob``, joint ``hinge`` with axis y.

    The angle q from the vertical obeys q'' = -(g / length) sin q, whose solution by elliptic functions is exact.

    Args:
        length: from the hinge to the point mass, metres.
        mass: of the point, kg.
    """
    length = check_number(length, "pendulum: length", positive=True)
    mass = check_number(mass, "pendulum: mass", positive=True)
    m = Mechanism("pendulum")
    _add_bob(m, "bob", length, mass)
    m.add_joint("hinge", "revolute", parent="world", child="bob", axis=_Y)
    return m


def double_pendulum(lengths: Sequence[float] = (1.0, 1.0), masses: Sequence[float] = (1.0, 1.0)) -> Mechanism:
    """Two point masses on massless rods: bodies ``bob1``, ``bob2``, joints ``hinge1``, ``hinge2`` with axis y.

    The second angle is relative to the first rod.

    Args:
        lengths: of the two rods, metres.
        masses: of the two points, kg.
    """
    lengths = check_vector(lengths, 2, "double_pendulum: lengths").tolist()
    masses = check_vector(masses, 2, "double_pendulum: masses").tolist()
    m = Mechanism("double_pendulum")
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True), start=1):
        check_number(length, f"double_pendulum: length {i}", positive=True)
        check_number(mass, f"double_pendulum: mass {i}", positive=True)
        _add_bob(m, f"bob{i}", length, mass, BLUE if i == 1 else ORANGE)
    m.add_joint("hinge1", "revolute", parent="world", child="bob1", axis=_Y)
    below = pose(xyz=(0.0, 0.0, -lengths[0]))
    m.add_joint("hinge2", "revolute", parent="bob1", child="bob2", axis=_Y, parent_frame=below)
    return m


def spherical_pendulum(length: float = 1.0, mass: float = 1.0, radius: float = 0.05) -> Mechanism:
    """A uniform ball on a massless rod that turns about a point: body ``bob``, spherical joint ``pivot``.

    A point mass would leave the spin about the rod undetermined, hence the ball. Without spin about the rod it moves
    exactly as a point mass on a rod of length ``length + 2 radius^2 / (5 length)``, and there is no singular
    direction, as there would be with two hinges.

    Args:
        length: from the pivot to the centre of the ball, metres.
        mass: kg.
        radius: of the ball, metres.
    """
    length = check_number(length, "spherical_pendulum: length", positive=True)
    mass = check_number(mass, "spherical_pendulum: mass", positive=True)
    radius = check_number(radius, "spherical_pendulum: radius", positive=True)
    m = Mechanism("spherical_pendulum")
    centre = (0.0, 0.0, -length)
    rod = tube(centre, 0.01 * length, collision=False)
    ball = Sphere(radius, at=pose(xyz=centre), color=BLUE)
    m.add_body("bob", mass=mass, com=centre, inertia=[0.4 * mass * radius**2] * 3, shapes=[rod, ball])
    m.add_joint("pivot", "spherical", parent="world", child="bob")
    return m


def spinning_top(
    mass: float = 15.0, length: float = 1.0, inertia: Sequence[float] = (0.234375, 0.234375, 0.46875)
) -> Mechanism:
    """A heavy symmetric top: body ``top``, spherical joint ``tip``; upright along +z at q = 0.

    The default is the heavy top benchmark, a thin disc of 15 kg and 0.25 m radius whose centre is 1 m from the fixed
    point (Brüls, Cardona and Arnold, Lie group generalized-alpha time integration of constrained flexible multibody
    systems, Mechanism and Machine Theory 48, 2012); its symmetry axis y is z here. The benchmark starts with the axis
    horizontal along the world's y, spin 150 rad/s about it and -4.61538 rad/s about the vertical: here
    ``model.state(q={"tip": (sqrt(0.5), -sqrt(0.5), 0, 0)}, v={"tip": (0, 4.61538, 150)})``.

    Args:
        mass: kg.
        length: from the tip to the centre of mass, metres.
        inertia: three principal moments about the centre of mass, the last about the symmetry axis, kg m^2.
    """
    mass = check_number(mass, "spinning_top: mass", positive=True)
    length = check_number(length, "spinning_top: length", positive=True)
    moments = check_vector(inertia, 3, "spinning_top: inertia")
    check_inertia(mass, np.diag(moments), "spinning_top: inertia")
    m = Mechanism("spinning_top")
    # a disc with the moment about the axis, and its stick
    centre = (0.0, 0.0, length)
    radius = max(float(np.sqrt(2 * moments[2] / mass)), 0.02 * length)
    disc = Cylinder(radius, 0.1 * radius, at=pose(xyz=centre), color=ORANGE)
    stick = tube((0.0, 0.0, 1.2 * length), 0.02 * length, color=DARK, collision=False)
    m.add_body("top", mass=mass, com=centre, inertia=moments, shapes=[stick, disc])
    m.add_joint("tip", "spherical", parent="world", child="top")
    return m


def free_body(mass: float = 1.0, inertia: Any = (0.010, 0.020, 0.025)) -> Mechanism:
    """A free rigid body: body ``body``, free joint ``root``; its link frame is at the centre of mass.

    The default moments, this library's own, are all different, so rotation about the middle axis is unstable. It is
    drawn as the uniform ellipsoid of the same inertia.

    Args:
        mass: kg.
        inertia: about the centre of mass, kg m^2: 3 principal moments, 6 numbers ixx, ixy, ixz, iyy, iyz, izz, or
            (3, 3).
    """
    mass = check_number(mass, "free_body: mass", positive=True)
    matrix = check_inertia(mass, inertia_matrix(inertia, "free_body: inertia"), "free_body: inertia")
    # half axes from the moments: I_x = m (b^2 + c^2) / 5 and so on; flat bodies keep a little thickness
    moments, axes = np.linalg.eigh(matrix)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    squares = 2.5 / mass * (moments.sum() - 2 * moments)
    floor = max(1e-3, 1e-2 * float(np.sqrt(max(squares.max(), 0.0))))
    radii = np.sqrt(np.maximum(squares, floor**2))
    m = Mechanism("free_body")
    shape = Ellipsoid(radii, at=pose(matrix=axes), color=BLUE)
    m.add_body("body", mass=mass, inertia=matrix, shape=shape)
    m.add_joint("root", "free", parent="world", child="body")
    return m


def cart_pole(cart_mass: float = 1.0, pole_mass: float = 0.1, pole_length: float = 1.0) -> Mechanism:
    """A pole on a cart: joints ``slider`` (along x, limits 2.4 m, motor ``cart_motor``) and ``hinge`` (axis y).

    The pole is a uniform thin rod and stands upright at q = 0. Masses, pole length (twice their half length of
    0.5 m), track and force of 10 N are those of Barto, Sutton and Anderson, Neuronlike adaptive elements that can
    solve difficult learning control problems, IEEE Trans. SMC 13(5), 1983; they have g = 9.8 and friction, here there
    is none.

    Args:
        cart_mass: kg.
        pole_mass: kg.
        pole_length: whole length, metres.
    """
    cart_mass = check_number(cart_mass, "cart_pole: cart_mass", positive=True)
    pole_mass = check_number(pole_mass, "cart_pole: pole_mass", positive=True)
    pole_length = check_number(pole_length, "cart_pole: pole_length", positive=True)
    m = Mechanism("cart_pole")
    m.add_body("cart", mass=cart_mass, shape=Box(np.array([0.4, 0.25, 0.2]), color=BLUE))
    top = (0.0, 0.0, pole_length)
    m.add_body("pole", **thin_rod(pole_mass, top), shape=tube(top, 0.02 * pole_length, color=ORANGE))
    m.add_joint(
        "slider", "prismatic", parent="world", child="cart", axis=(1.0, 0.0, 0.0), limits=(-2.4, 2.4), effort=10.0
    )
    m.add_joint("hinge", "revolute", parent="cart", child="pole", axis=_Y)
    m.add_actuator("cart_motor", "slider", effort=10.0)
    return m


def _add_bob(m: Mechanism, name: str, length: float, mass: float, color: Any = BLUE) -> None:
    """A point mass at (0, 0, -length), drawn as a ball on a rod."""
    centre = (0.0, 0.0, -length)
    rod = tube(centre, 0.01 * length, collision=False)
    ball = Sphere(0.05 * length, at=pose(xyz=centre), color=color)
    m.add_body(name, mass=mass, com=centre, inertia=np.zeros(3), shapes=[rod, ball])
