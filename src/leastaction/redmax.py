"""The public names of ``leastaction.dynamics.redmax``, as ``la.redmax``."""

from __future__ import annotations

from leastaction.dynamics import redmax as _redmax
from leastaction.dynamics.redmax import (
    Forces,
    JacobianDerivatives,
    QuadraticVelocity,
    acceleration,
    inverse_inertia_product,
    jacobian,
    jacobian_derivatives,
    jacobian_rate,
    maximal_forces,
    maximal_inertia,
    quadratic_velocity,
    reduced_forces,
    reduced_inertia,
    reduced_inertia_derivative,
    twist_rates,
    twists,
    wrenches_to_forces,
)

__all__ = [
    "Forces",
    "JacobianDerivatives",
    "QuadraticVelocity",
    "acceleration",
    "inverse_inertia_product",
    "jacobian",
    "jacobian_derivatives",
    "jacobian_rate",
    "maximal_forces",
    "maximal_inertia",
    "quadratic_velocity",
    "reduced_forces",
    "reduced_inertia",
    "reduced_inertia_derivative",
    "twist_rates",
    "twists",
    "wrenches_to_forces",
]

__doc__ = _redmax.__doc__
