"""Linkages with loops; every loop is closed at q = 0.

Bars are uniform thin rods, and link frames are parallel to the world at q = 0. The planar ones lie in the x-z plane:
angles turn x towards z (the axis of the hinges is -y).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_number, check_vector
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box
from leastaction.models.parts import BLUE, DARK, ORANGE, STEEL, bar, check_count, thin_rod

_AXIS = (0.0, -1.0, 0.0)


def four_bar(
    ground: float = 0.25,
    crank: float = 0.10,
    coupler: float = 0.25,
    rocker: float = 0.20,
    angle: float = np.pi / 2,
    line_density: float = 1.0,
) -> Mechanism:
    """A four-bar linkage: bodies ``crank``, ``coupler``, ``rocker``; the revolute joint ``loop`` closes it.

    Joints ``crank_hinge`` at the origin, ``rocker_hinge`` at (ground, 0, 0), ``coupler_hinge`` at the crank's end. The
    default lengths, this library's own, make a crank-rocker: the crank turns without end (Grashof: 0.10 + 0.25 <
    0.25 + 0.20).

    Args:
        ground: distance of the two fixed hinges, metres.
        crank: length, metres.
        coupler: length, metres.
        rocker: length, metres.
        angle: of the crank from x towards z in the position that is q = 0, radians. Coupler and rocker then meet on
            the left of the line from the crank's end to the rocker's hinge.
        line_density: of the bars, kg per metre.
    """
    numbers = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker, "line_density": line_density}
    for name, value in numbers.items():
        check_number(value, f"four_bar: {name}", positive=True)
    angle = check_number(angle, "four_bar: angle")
    # where the coupler meets the rocker: two circles
    end = crank * np.array([np.cos(angle), 0.0, np.sin(angle)])
    base = np.array([ground, 0.0, 0.0])
    pin = _meeting_point(end, coupler, base, rocker)
    # bodies from their first hinge to their second
    m = Mechanism("four_bar")
    vectors = {"crank": end, "coupler": pin - end, "rocker": pin - base}
    for (name, vector), color in zip(vectors.items(), (BLUE, STEEL, ORANGE), strict=True):
        length = float(np.linalg.norm(vector))
        m.add_body(name, **thin_rod(line_density * length, vector), shape=bar(vector, 0.03 * ground, color=color))
    m.add_joint("crank_hinge", "revolute", parent="world", child="crank", axis=_AXIS)
    m.add_joint("coupler_hinge", "revolute", parent="crank", child="coupler", axis=_AXIS, parent_frame=pose(end))
    m.add_joint("rocker_hinge", "revolute", parent="world", child="rocker", axis=_AXIS, parent_frame=pose(base))
    _close(m, "loop", "coupler", vectors["coupler"], "rocker", vectors["rocker"])
    return m


def n_four_bar(n: int, length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """The N-four-bar mechanism: n windows that share their standing rods, 2 n + 1 equal rods.

    Bodies ``rod0``..``rodN`` stand on the ground at x = 0, ``length``, 2 ``length``, ...; ``bar1``..``barN`` join
    their tops. Joints ``base0``.., ``bar1_hinge``.. and the loop joints ``loop1``... At q = 0 all rods are upright and
    the mechanism has one degree of freedom; where they all lie flat it has n + 1. Benchmark A02 of González, Dopico,
    Lugrís and Cuadrado, A benchmarking system for MBS simulation software, Multibody System Dynamics 16, 2006: 1 m,
    1 kg, start upright with the tops at 1 m/s along x, that is base rates of -1 rad/s and hinge rates of +1 rad/s
    (the bars do not turn).

    Args:
        n: number of windows.
        length: of each rod, metres.
        mass: of each rod, kg.
    """
    n = check_count(n, "n_four_bar: n")
    length = check_number(length, "n_four_bar: length", positive=True)
    mass = check_number(mass, "n_four_bar: mass", positive=True)
    m = Mechanism(f"n_four_bar{n}")
    up, right = np.array([0.0, 0.0, length]), np.array([length, 0.0, 0.0])
    radius = 0.02 * length
    for i in range(n + 1):
        m.add_body(f"rod{i}", **thin_rod(mass, up), shape=bar(up, radius, color=BLUE))
        m.add_joint(f"base{i}", "revolute", parent="world", child=f"rod{i}", axis=_AXIS, parent_frame=pose(i * right))
        if i == 0:
            continue
        # the window between this rod and the one before
        m.add_body(f"bar{i}", **thin_rod(mass, right), shape=bar(right, radius))
        m.add_joint(
            f"bar{i}_hinge", "revolute", parent=f"rod{i - 1}", child=f"bar{i}", axis=_AXIS, parent_frame=pose(up)
        )
        _close(m, f"loop{i}", f"bar{i}", right, f"rod{i}", up)
    return m


def slider_crank(
    crank: float = 0.15, rod: float = 0.30, masses: Sequence[float] = (0.36, 0.151104, 0.075552)
) -> Mechanism:
    """A slider-crank: bodies ``crank``, ``rod``, ``slider``; the revolute joint ``loop`` holds rod and slider.

    Joints ``crank_hinge`` at the origin, ``rod_hinge`` at the crank's end and the prismatic ``slide`` along x. At
    q = 0 crank and rod are stretched along x; the slider's coordinate is its displacement from there. Lengths and
    masses are those of the slider crank of the Test Set for IVP Solvers (Simeon, Modelling a flexible slider crank
    mechanism by a mixed system of DAEs and PDEs, Mathematical Modelling of Systems 2, 1996), with a rigid rod and
    uniform bars; there the crank turns at 150 rad/s and gravity is absent.

    Args:
        crank: length, metres.
        rod: length, metres; longer than the crank.
        masses: of crank, rod and slider, kg.
    """
    crank = check_number(crank, "slider_crank: crank", positive=True)
    rod = check_number(rod, "slider_crank: rod", positive=True)
    if rod <= crank:
        raise ModelError(f"slider_crank: the rod ({rod} m) must be longer than the crank ({crank} m).")
    crank_mass, rod_mass, slider_mass = check_vector(masses, 3, "slider_crank: masses").tolist()
    for name, value in {"crank": crank_mass, "rod": rod_mass, "slider": slider_mass}.items():
        check_number(value, f"slider_crank: mass of the {name}", positive=True)
    # stretched along x
    m = Mechanism("slider_crank")
    end, pin = np.array([crank, 0.0, 0.0]), np.array([rod, 0.0, 0.0])
    block = np.array([0.3, 0.3, 0.2]) * crank
    m.add_body("crank", **thin_rod(crank_mass, end), shape=bar(end, 0.08 * crank, color=BLUE))
    m.add_body("rod", **thin_rod(rod_mass, pin), shape=bar(pin, 0.05 * crank))
    m.add_body("slider", mass=slider_mass, shape=Box(block, color=DARK))
    m.add_joint("crank_hinge", "revolute", parent="world", child="crank", axis=_AXIS)
    m.add_joint("rod_hinge", "revolute", parent="crank", child="rod", axis=_AXIS, parent_frame=pose(end))
    m.add_joint(
        "slide", "prismatic", parent="world", child="slider", axis=(1.0, 0.0, 0.0), parent_frame=pose(end + pin)
    )
    _close(m, "loop", "rod", pin, "slider", np.zeros(3))
    return m


def bricard(length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Bricard's mechanism: five equal rods and the ground along six edges of a cube, one degree of freedom.

    Bodies ``rod1``..``rod5``, revolute joints ``hinge1``..``hinge5`` and ``loop``; each axis is perpendicular to both
    rods that it joins. Counting joints gives no freedom at all: the loop is redundant in every position, by one row.
    Benchmark A04 of González, Dopico, Lugrís and Cuadrado, A benchmarking system for MBS simulation software, Multibody
    System Dynamics 16, 2006: 1 m, 1 kg, at rest, gravity along the second edge (there -y, here -z).

    Args:
        length: of each rod, metres.
        mass: of each rod, kg.
    """
    length = check_number(length, "bricard: length", positive=True)
    mass = check_number(mass, "bricard: mass", positive=True)
    # the corners in order, and the axis of the hinge at the start of each rod
    steps = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0], [-1, 0, 0], [0, 0, 1]]) * length
    axes = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0)]
    m = Mechanism("bricard")
    parent, at = "world", np.zeros(3)
    for i, (vector, axis) in enumerate(zip(steps, axes, strict=True), start=1):
        color = (BLUE, STEEL, ORANGE)[i % 3]
        m.add_body(f"rod{i}", **thin_rod(mass, vector), shape=bar(vector, 0.03 * length, color=color))
        m.add_joint(f"hinge{i}", "revolute", parent=parent, child=f"rod{i}", axis=axis, parent_frame=pose(at))
        parent, at = f"rod{i}", vector
    end = pose(steps.sum(axis=0))
    m.add_joint(
        "loop", "revolute", parent="world", child="rod5", axis=(1, 0, 0), parent_frame=end, child_frame=pose(at)
    )
    return m


def _close(m: Mechanism, name: str, parent: str, parent_point: Any, child: str, child_point: Any) -> None:
    """A hinge between points of two links that are already carried: it closes a loop."""
    m.add_joint(
        name,
        "revolute",
        parent=parent,
        child=child,
        axis=_AXIS,
        parent_frame=pose(parent_point),
        child_frame=pose(child_point),
    )


def _meeting_point(a: FloatArray, a_radius: float, b: FloatArray, b_radius: float) -> FloatArray:
    """The point at given distances from a and b in the x-z plane, on the left of the way from a to b."""
    line = b - a
    d = float(np.linalg.norm(line))
    if d == 0 or not abs(a_radius - b_radius) <= d <= a_radius + b_radius:
        raise ModelError(
            f"four_bar: coupler ({a_radius} m) and rocker ({b_radius} m) cannot meet when the crank's end is {d:.6g} m "
            "from the rocker's hinge; change the lengths or the angle."
        )
    # along the line, then across it
    x = (d * d + a_radius**2 - b_radius**2) / (2 * d)
    y = np.sqrt(max(a_radius**2 - x * x, 0.0))
    u = line / d
    point: FloatArray = a + x * u + y * np.array([-u[2], 0.0, u[0]])
    return point
