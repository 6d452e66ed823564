"""Simulation of mechanisms: describe one once, compute its dynamics, move it through time.

Use it as ``import leastaction as la``. Every public name is ``la.<name>`` and is loaded on first use, so that the
import itself touches neither Numba nor SciPy. ``PUBLIC`` below says in which module each name lives.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from leastaction._version import __version__

if TYPE_CHECKING:
    from leastaction import jax, models, redmax, torch
    from leastaction.comparators.hermite_simpson.method import HermiteSimpson
    from leastaction.comparators.maximal_euler.method import MaximalEuler
    from leastaction.dynamics.coordinates import to_maximal, to_minimal
    from leastaction.dynamics.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
    from leastaction.dynamics.hybrid import hybrid_dynamics
    from leastaction.dynamics.quantities import (
        bias_forces,
        center_of_mass,
        centroidal_map,
        energy,
        forward_dynamics,
        gravity_forces,
        inverse_dynamics,
        jacobian,
        mass_matrix,
        momentum,
        poses,
    )
    from leastaction.dynamics.reduction import Reduction, constrained_dynamics
    from leastaction.dynamics.tendon_arms import moment_arms
    from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
    from leastaction.explicit.adaptive import Adaptive
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.explicit.semi_implicit_euler import SemiImplicitEuler
    from leastaction.galerkin.method import Galerkin
    from leastaction.implicit.method import BDF, SDIRK2, LinearlyImplicitEuler
    from leastaction.io import load, save
    from leastaction.io.convert import from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
    from leastaction.maximal.method import Maximal
    from leastaction.model.bearing import Bearing
    from leastaction.model.body_damping import BodyDamping
    from leastaction.model.constraints import Constraint
    from leastaction.model.fluid import FluidDrag
    from leastaction.model.force_base import Force
    from leastaction.model.forces import PointForce, PointSpring, Potential, Wrench
    from leastaction.model.joints import Law
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.model import Model, State
    from leastaction.model.numba_force import NumbaForce
    from leastaction.model.path_forces import Cable, PathSpring
    from leastaction.model.penalty import PenaltyContact
    from leastaction.model.pose import pose
    from leastaction.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere
    from leastaction.model.spline import SplineCurve, SplineSurface
    from leastaction.model.tendon import Pulley, Wrap
    from leastaction.model.terrain import Heights, Plane
    from leastaction.run.compare import compare
    from leastaction.run.ensemble import simulate_many
    from leastaction.run.inverse_kinematics import inverse_kinematics
    from leastaction.run.observe import project
    from leastaction.run.sensors import read_sensors
    from leastaction.run.simulate import resume, simulate
    from leastaction.run.steps import ClassicSteps, ReversibleSteps
    from leastaction.run.trajectory import Trajectory
    from leastaction.sensitivity.gradient import Gradient, gradient
    from leastaction.sensitivity.linearize import lagrangian_hessian, linearize
    from leastaction.sensitivity.objectives import Effort, Objective, Reach, Track
    from leastaction.solve.graph_system import GraphSystem
    from leastaction.solve.solvers import RIQN, Broyden, DenseNewton, InteriorPoint, Newton
    from leastaction.trapezoid.method import LieTrapezoid
    from leastaction.view.live import view

# Public name -> module that defines it; None means that the name is itself a submodule of the package.
PUBLIC: dict[str, str | None] = {
    # describing a mechanism
    "Mechanism": "leastaction.model.mechanism",
    "Law": "leastaction.model.joints",
    "Bearing": "leastaction.model.bearing",
    "SplineCurve": "leastaction.model.spline",
    "SplineSurface": "leastaction.model.spline",
    "pose": "leastaction.model.pose",
    "Box": "leastaction.model.shapes",
    "Sphere": "leastaction.model.shapes",
    "Cylinder": "leastaction.model.shapes",
    "Capsule": "leastaction.model.shapes",
    "Ellipsoid": "leastaction.model.shapes",
    "Heights": "leastaction.model.terrain",
    "Plane": "leastaction.model.terrain",
    "Mesh": "leastaction.model.shapes",
    "Force": "leastaction.model.force_base",
    "BodyDamping": "leastaction.model.body_damping",
    "FluidDrag": "leastaction.model.fluid",
    "NumbaForce": "leastaction.model.numba_force",
    "PointSpring": "leastaction.model.forces",
    "Pulley": "leastaction.model.tendon",
    "PointForce": "leastaction.model.forces",
    "Wrap": "leastaction.model.tendon",
    "Wrench": "leastaction.model.forces",
    "Potential": "leastaction.model.forces",
    "PathSpring": "leastaction.model.path_forces",
    "Cable": "leastaction.model.path_forces",
    "PenaltyContact": "leastaction.model.penalty",
    "Constraint": "leastaction.model.constraints",
    "models": None,
    # the built model and its state
    "Model": "leastaction.model.model",
    "State": "leastaction.model.model",
    "moment_arms": "leastaction.dynamics.tendon_arms",
    "project": "leastaction.run.observe",
    "read_sensors": "leastaction.run.sensors",
    "inverse_kinematics": "leastaction.run.inverse_kinematics",
    "to_maximal": "leastaction.dynamics.coordinates",
    "to_minimal": "leastaction.dynamics.coordinates",
    # files and the conventions of other libraries
    "load": "leastaction.io",
    "save": "leastaction.io",
    "to_pinocchio": "leastaction.io.convert",
    "from_pinocchio": "leastaction.io.convert",
    "to_mujoco": "leastaction.io.convert",
    "from_mujoco": "leastaction.io.convert",
    # dynamics
    "mass_matrix": "leastaction.dynamics.quantities",
    "inverse_dynamics": "leastaction.dynamics.quantities",
    "forward_dynamics": "leastaction.dynamics.quantities",
    "bias_forces": "leastaction.dynamics.quantities",
    "gravity_forces": "leastaction.dynamics.quantities",
    "energy": "leastaction.dynamics.quantities",
    "momentum": "leastaction.dynamics.quantities",
    "poses": "leastaction.dynamics.quantities",
    "jacobian": "leastaction.dynamics.quantities",
    "center_of_mass": "leastaction.dynamics.quantities",
    "centroidal_map": "leastaction.dynamics.quantities",
    "inverse_dynamics_derivatives": "leastaction.dynamics.derivatives",
    "forward_dynamics_derivatives": "leastaction.dynamics.derivatives",
    "hybrid_dynamics": "leastaction.dynamics.hybrid",
    "redmax": None,
    "Reduction": "leastaction.dynamics.reduction",
    "constrained_dynamics": "leastaction.dynamics.reduction",
    "lagrangian_hessian": "leastaction.sensitivity.linearize",
    "linearize": "leastaction.sensitivity.linearize",
    "gradient": "leastaction.sensitivity.gradient",
    "jax": None,
    "torch": None,
    "Gradient": "leastaction.sensitivity.gradient",
    "Objective": "leastaction.sensitivity.objectives",
    "Reach": "leastaction.sensitivity.objectives",
    "Track": "leastaction.sensitivity.objectives",
    "Effort": "leastaction.sensitivity.objectives",
    # motion through time
    "simulate": "leastaction.run.simulate",
    "resume": "leastaction.run.simulate",
    "simulate_many": "leastaction.run.ensemble",
    "Trajectory": "leastaction.run.trajectory",
    "ClassicSteps": "leastaction.run.steps",
    "ReversibleSteps": "leastaction.run.steps",
    "SemiImplicitEuler": "leastaction.explicit.semi_implicit_euler",
    "RungeKutta": "leastaction.explicit.runge_kutta",
    "Adaptive": "leastaction.explicit.adaptive",
    "Galerkin": "leastaction.galerkin.method",
    "HermiteSimpson": "leastaction.comparators.hermite_simpson.method",
    "BDF": "leastaction.implicit.method",
    "SDIRK2": "leastaction.implicit.method",
    "LinearlyImplicitEuler": "leastaction.implicit.method",
    "LieTrapezoid": "leastaction.trapezoid.method",
    "Maximal": "leastaction.maximal.method",
    "MaximalEuler": "leastaction.comparators.maximal_euler.method",
    # to look at
    "view": "leastaction.view.live",
    "compare": "leastaction.run.compare",
    # root finders
    "Newton": "leastaction.solve.solvers",
    "RIQN": "leastaction.solve.solvers",
    "Broyden": "leastaction.solve.solvers",
    "DenseNewton": "leastaction.solve.solvers",
    # linear systems
    "GraphSystem": "leastaction.solve.graph_system",
    "InteriorPoint": "leastaction.solve.solvers",
    # errors
    "ModelError": "leastaction.errors",
    "ConvergenceError": "leastaction.errors",
    "UnsupportedError": "leastaction.errors",
}

__all__ = [
    "BDF",
    "RIQN",
    "SDIRK2",
    "Adaptive",
    "Bearing",
    "BodyDamping",
    "Box",
    "Broyden",
    "Cable",
    "Capsule",
    "ClassicSteps",
    "Constraint",
    "ConvergenceError",
    "Cylinder",
    "DenseNewton",
    "Effort",
    "Ellipsoid",
    "FluidDrag",
    "Force",
    "Galerkin",
    "Gradient",
    "GraphSystem",
    "Heights",
    "HermiteSimpson",
    "InteriorPoint",
    "Law",
    "LieTrapezoid",
    "LinearlyImplicitEuler",
    "Maximal",
    "MaximalEuler",
    "Mechanism",
    "Mesh",
    "Model",
    "ModelError",
    "Newton",
    "NumbaForce",
    "Objective",
    "PathSpring",
    "PenaltyContact",
    "Plane",
    "PointForce",
    "PointSpring",
    "Potential",
    "Pulley",
    "Reach",
    "Reduction",
    "ReversibleSteps",
    "RungeKutta",
    "SemiImplicitEuler",
    "Sphere",
    "SplineCurve",
    "SplineSurface",
    "State",
    "Track",
    "Trajectory",
    "UnsupportedError",
    "Wrap",
    "Wrench",
    "__version__",
    "bias_forces",
    "center_of_mass",
    "centroidal_map",
    "compare",
    "constrained_dynamics",
    "energy",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "from_mujoco",
    "from_pinocchio",
    "gradient",
    "gravity_forces",
    "hybrid_dynamics",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_kinematics",
    "jacobian",
    "jax",
    "lagrangian_hessian",
    "linearize",
    "load",
    "mass_matrix",
    "models",
    "moment_arms",
    "momentum",
    "pose",
    "poses",
    "project",
    "read_sensors",
    "redmax",
    "resume",
    "save",
    "simulate",
    "simulate_many",
    "to_maximal",
    "to_minimal",
    "to_mujoco",
    "to_pinocchio",
    "torch",
    "view",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in PUBLIC:
        raise AttributeError(f"module 'leastaction' has no attribute {name!r}")
    module = PUBLIC[name]

    # a public submodule is its own value; anything else is an attribute of the module in the table
    if module is None:
        return importlib.import_module(f"leastaction.{name}")
    value = getattr(importlib.import_module(module), name)

    # keep it, so that the next use is an ordinary attribute
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not, for ``dir`` and for completion."""
    return sorted(set(globals()) | set(PUBLIC))


class _Package(ModuleType):
    """The package's own module type, which keeps a public name from being hidden by a submodule.

    Python binds every imported submodule as an attribute of its package. Where both have one name
    (``leastaction.view`` is a package and ``la.view`` is a function in one of its modules) the public name wins.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        target = PUBLIC.get(name)
        if isinstance(value, ModuleType) and target is not None and target.startswith(f"leastaction.{name}."):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
