"""Deformable strands: point masses joined by springs, between bodies of a mechanism (Sueda 2021, section 2.7)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_number, check_vector
from leastaction.model.forces import PointSpring
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.models.parts import check_count


def add_strand(
    m: Mechanism,
    name: str,
    start: tuple[str, Any],
    end: tuple[str, Any],
    *,
    nodes: int,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    rest_length: float | None = None,
) -> list[str]:
    """Add a strand to a mechanism; returns the names of its nodes: ``rope1``, ``rope2``, ... of a strand ``rope``.

    Nodes are bodies with mass and no inertia on joints of three translations, so every method takes them; at q = 0 they
    lie on the line between the two ends, where the mechanism has them at its neutral coordinates. The ends are points
    of bodies, to which the first and the last spring are attached. Tetrahedral elements are out of scope.

    Args:
        m: the mechanism.
        name: of the strand.
        start: (body or "world", point (3,) in its link frame).
        end: likewise.
        nodes: number of free nodes.
        mass: of all of them together, kg.
        stiffness: force at a strain of 1, newtons: every spring has stiffness / (its rest length).
        damping: of every spring, N s/m.
        rest_length: of the whole strand, metres; the distance of its ends by default.
    """
    from leastaction.dynamics.quantities import poses

    where = f"strand '{name}'"
    count = check_count(nodes, f"{where}: nodes")
    mass = check_number(mass, f"{where}: mass", positive=True)
    stiffness = check_number(stiffness, f"{where}: stiffness", positive=True)
    # the ends in the world, at the neutral coordinates
    model = m.build()
    frames = poses(model, model.neutral())
    places: list[FloatArray] = []
    for body, point in (start, end):
        local = check_vector(point, 3, f"{where}: point on '{body}'")
        if body != "world" and body not in frames:
            raise ModelError(f"{where}: there is no body '{body}'.")
        frame = np.eye(4) if body == "world" else frames[body]
        places.append(frame[:3, :3] @ local + frame[:3, 3])
    distance = float(np.linalg.norm(places[1] - places[0]))
    length = distance if rest_length is None else check_number(rest_length, f"{where}: rest_length", positive=True)
    if length == 0 or distance == 0:
        raise ModelError(f"{where}: its ends coincide; move them apart.")
    # nodes on the line, then springs from one to the next
    names = [f"{name}{k + 1}" for k in range(count)]
    for k, node in enumerate(names):
        at = places[0] + (k + 1) / (count + 1) * (places[1] - places[0])
        m.add_body(node, mass=mass / count, inertia=(0.0, 0.0, 0.0))
        m.add_joint(node, "translational", parent="world", child=node, parent_frame=pose(at))
    piece = length / (count + 1)
    chain = [start, *((node, np.zeros(3)) for node in names), end]
    for (a, point_a), (b, point_b) in itertools.pairwise(chain):
        m.add_force(
            PointSpring(a, point_a, b, point_b, stiffness=stiffness / piece, damping=damping, rest_length=piece)
        )
    return names
