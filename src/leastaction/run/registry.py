"""All methods by name, and which features of a mechanism each supports: the one table."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from leastaction.comparators.hermite_simpson.method import HermiteSimpson
from leastaction.comparators.maximal_euler.method import MaximalEuler
from leastaction.errors import ModelError, UnsupportedError
from leastaction.explicit.adaptive import Adaptive
from leastaction.explicit.runge_kutta import RungeKutta
from leastaction.explicit.semi_implicit_euler import SemiImplicitEuler
from leastaction.galerkin.method import Galerkin
from leastaction.implicit.method import BDF, SDIRK2, LinearlyImplicitEuler
from leastaction.maximal.method import Maximal
from leastaction.methods.base import Method
from leastaction.model.model import Model, check_determined
from leastaction.trapezoid.method import LieTrapezoid

# name on the command line -> (method, what it is)
METHODS: dict[str, tuple[Method, str]] = {
    "euler": (SemiImplicitEuler(), "semi-implicit Euler, order 1"),
    "rk1": (RungeKutta(1), "explicit Euler, order 1"),
    "rk2": (RungeKutta(2), "Heun, order 2"),
    "rk4": (RungeKutta(4), "classical Runge-Kutta, order 4"),
    "galerkin:2": (
        Galerkin(2),
        "variational, symplectic, order 2; galerkin:4, galerkin:6, ... for higher orders, galerkin:2:gauss for Gauss",
    ),
    "galerkin:4": (Galerkin(4), "variational, symplectic, order 4"),
    "lie-trapezoid": (
        LieTrapezoid(),
        "variational with average velocities by the logarithm, symplectic, order 2; lie-trapezoid:riqn, :printed, ...",
    ),
    "maximal": (
        Maximal(),
        "variational on the poses of the bodies, symplectic, order 2; loops, contact, limits; maximal:4 for order 4",
    ),
    "maximal-euler": (
        MaximalEuler(),
        "Euler on the poses of the bodies, order 1, slow, to compare with; contact and friction by quadratic programs",
    ),
    "hermite-simpson": (HermiteSimpson(), "Hermite-Simpson collocation, dense Newton, order 4"),
    "bdf:1": (BDF(1), "implicit Euler on the reduced equations, exact Newton, for stiff forces, order 1"),
    "bdf:2": (BDF(2), "backward differentiation with a start by SDIRK2, for stiff forces, order 2"),
    "sdirk2": (SDIRK2(), "diagonally implicit Runge-Kutta with two stages, for stiff forces, order 2"),
    "linearly-implicit-euler": (
        LinearlyImplicitEuler(),
        "one linear solve a step, for stiff forces, order 1; linearly-implicit-euler:cg by conjugate gradients",
    ),
    "adaptive": (Adaptive(), "DOP853 with step size control; adaptive:1e-6 sets both tolerances"),
}

# how to drop a feature that a method cannot honour
_WITHOUT = {
    "joint friction": 'mechanism.without("friction") drops it (--without friction)',
    "bearings": 'mechanism.without("friction") drops them (--without friction), numbers for friction= replace them',
    "contact": 'mechanism.without("contacts") drops it (--without contacts)',
    "restitution": "mechanism.add_ground(restitution=0.0) and add_contact(..., restitution=0.0) make impacts plastic",
    "enforced limits": 'mechanism.enforce_limits(False), or la.load(..., limits="report"), makes the limits data',
    "bounded servos": "leave their efforts out, or use motors and a control function that bounds its forces, or "
    "mechanism.enforce_limits(False) makes efforts data",
    "couplings": 'mechanism.without("couplings") drops them',
    "equality constraints": 'mechanism.without("constraints") drops them',
    "velocity constraints": 'mechanism.without("constraints") drops them',
    "inequality constraints": 'mechanism.without("constraints") drops them',
}


def method_by_name(text: str) -> Method:
    """A method from its registry name, such as ``rk4`` or ``adaptive:1e-10``."""
    name, _, parameter = text.partition(":")
    if name == "adaptive" and parameter:
        try:
            tolerance = float(parameter)
        except ValueError as error:
            raise ModelError(f"method '{text}': the tolerance must be a number, got '{parameter}'.") from error
        return Adaptive(tolerance, tolerance)
    if name == "galerkin":
        order, _, quadrature = parameter.partition(":")
        try:
            return Galerkin(int(order) if order else 2, quadrature=quadrature or "lobatto")
        except ValueError as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"method '{text}': the order must be a whole number, got '{order}'.") from error
    if name == Maximal.name and parameter in ("2", "4"):
        return Maximal(int(parameter))
    if name == MaximalEuler.name and parameter:
        return MaximalEuler(parameter)
    if name == LinearlyImplicitEuler.name and parameter:
        return LinearlyImplicitEuler(parameter)
    if name == LieTrapezoid.name and parameter:
        form, _, solver = parameter.partition(":")
        return LieTrapezoid(solver or None, form=form) if form == "printed" else LieTrapezoid(parameter)
    if text not in METHODS:
        near = difflib.get_close_matches(text, METHODS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ModelError(f"there is no method '{text}'; the methods are {', '.join(METHODS)}.{hint}")
    return METHODS[text][0]


def method_from_options(kind: str, options: dict[str, Any]) -> Method:
    """A method from its class name and options, as a saved run has them."""
    classes = {type(method).__name__: type(method) for method, _ in METHODS.values()}
    if kind not in classes:
        raise ModelError(f"there is no method class '{kind}'; the classes are {', '.join(classes)}.")
    known = list(inspect.signature(classes[kind]).parameters)
    for option in options:
        if option not in known:
            raise ModelError(f"{kind} has no option {option!r}; its options are {', '.join(known)}.")
    return classes[kind](**options)


def check_supported(method: Method, model: Model) -> None:
    """Raise UnsupportedError for the first feature that the method cannot honour, ModelError where no motion is."""
    check_determined(model, f"the motion of '{model.name}'")
    for feature in sorted(model.features - method.supports):
        able = sorted({name for name, (other, _) in METHODS.items() if feature in other.supports})
        who = f"these can: {', '.join(able)}" if able else "no method of this version can"
        how = f"; {_WITHOUT[feature]}" if feature in _WITHOUT else ""
        raise UnsupportedError(f"'{model.name}' has {feature}, which {method.label} cannot honour; {who}{how}.")
