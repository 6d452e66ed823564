"""What the derivative of a step is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from leastaction.model.checks import FloatArray
from leastaction.model.model import State


@dataclass(frozen=True, eq=False)
class StepDerivative:
    """Derivative of one step on the tangent space.

    A small change of a state is (displacement of q; change of v), 2 nv numbers, with the displacements of
    ``model.configuration.retract``: plain differences for single coordinates, a rotation vector in child axes for a
    ball, (rotation vector; displacement) in child axes for a free joint.

    Attributes:
        A: (2 nv, 2 nv) by the state at the start of the step.
        B: (2 nv, nv) by the generalised forces, which are held over the step.
        state: the state at the end of the step.
        C: by parameters of the mechanism that were asked for: "mass" by body (2 nv,), "inertia" by body (2 nv, 3, 3)
            (about the centre of mass, link axes), "friction" by pair of bodies (2 nv,) and by joint (2 nv, nv of the
            joint), "placement" by joint (2 nv, 3),
            "stiffness" and "damping" by joint (2 nv, nv of the joint).
    """

    A: FloatArray
    B: FloatArray
    state: State
    C: dict[str, dict[Any, FloatArray]] = field(default_factory=dict)
