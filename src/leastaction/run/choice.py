"""The method of a run that names none: the first of a short list that honours the mechanism and suits the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh

from leastaction.comparators.maximal_euler.method import MaximalEuler
from leastaction.dynamics.quantities import mass_matrix
from leastaction.errors import ModelError
from leastaction.explicit.runge_kutta import RungeKutta
from leastaction.galerkin.method import Galerkin
from leastaction.implicit.method import SDIRK2
from leastaction.maximal.method import Maximal
from leastaction.methods.base import Method
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State, check_determined
from leastaction.run.registry import check_supported, method_by_name

_LARGEST_PHASE = 1.5
"""Angle by which a joint spring may swing in a step of a method with explicit springs, unstable from 2.8 on."""

_LARGEST_DECAY = 1.0
"""Part of a velocity that a damper may take in a step of an explicit method; it is unstable from 2.8 on."""


def method_for(model: Model, state: State, dt: float | None, method: Any, where: str) -> tuple[Method, str | None]:
    """The method that is asked for, by name or not, or one that suits; and why that one, in words.

    Args:
        model: what it must honour, or an UnsupportedError is raised.
        state: first state.
        dt: a step, seconds; None where it is not known.
        method: a method, its name, or None.
        where: who asks, for errors.
    """
    check_determined(model, where)
    if method is None:
        return _choose(model, state, dt)
    chosen = method_by_name(method) if isinstance(method, str) else method
    if not isinstance(chosen, Method):
        raise ModelError(f"{where}: expected a method such as leastaction.Galerkin(4), got {method!r}.")
    check_supported(chosen, model)
    return chosen, None


def _choose(model: Model, state: State, dt: float | None) -> tuple[Method, str]:
    """The first method of the list that honours the model and takes its springs and dampers with this step."""
    able = [each for each in _CHOICES if model.features <= each[0].supports]
    if not able:
        # says which feature no method has
        check_supported(_CHOICES[1][0], model)
        raise ModelError(f"no method takes all of {', '.join(sorted(model.features))}; leave one of them out.")
    first = able[0]
    for method, why, stable in able:
        if stable is None or dt is None or stable(model, state, dt):
            needs = sorted(model.features - _PLAIN)
            because = f"for {', '.join(needs)}" if needs and method is not _CHOICES[0][0] else why
            return method, because if method is first[0] else f"{because}, as joint springs are stiff for this step"
    return first[0], first[1]


def _springs_resolved(model: Model, state: State, dt: float) -> bool:
    """Whether joint springs and servos turn by less than ``_LARGEST_PHASE`` in a step."""
    stiffness, _ = joint_rates(model)
    return bool(dt * np.sqrt(_largest(model, state, stiffness)) < _LARGEST_PHASE)


def _all_resolved(model: Model, state: State, dt: float) -> bool:
    """The same for an explicit method, which needs small dampers too."""
    _, damping = joint_rates(model)
    return _springs_resolved(model, state, dt) and bool(dt * _largest(model, state, damping) < _LARGEST_DECAY)


def _largest(model: Model, state: State, diagonal: FloatArray) -> float:
    """Largest eigenvalue of M^-1 D with D (nv,) a diagonal matrix."""
    if not diagonal.any():
        return 0.0
    M, last = mass_matrix(model, state.q), model.nv - 1
    return float(eigh(np.diag(diagonal), M, eigvals_only=True, subset_by_index=(last, last))[0])


def joint_rates(model: Model) -> tuple[FloatArray, FloatArray]:
    """Stiffness and damping (nv,) of joints and servos by velocity coordinate; laws of the user do not count."""
    table = model.system.passive
    stiffness, damping = np.zeros(model.nv), np.zeros(model.nv)
    np.add.at(stiffness, table.screw[:, 1], table.spring[:, 0])
    np.add.at(damping, table.screw[:, 1], table.spring[:, 2])
    for data, first, k, d in ((table.ball_data, table.ball, 0, 7), (table.free_data, table.free, 0, 6)):
        for axis in range(3):
            np.add.at(stiffness, first[:, 1] + axis, data[:, k + axis])
            np.add.at(damping, first[:, 1] + axis, data[:, d + axis])
    return stiffness, damping


_PLAIN = frozenset({"loops", "couplings", "equality constraints", "velocity constraints"})
"""Features that are no reason to leave the first choice."""

_Stable = Callable[[Model, State, float], bool]

# method, why, and what must hold with the step (None: nothing)
_CHOICES: tuple[tuple[Method, str, _Stable | None], ...] = (
    (Galerkin(4), "for smooth motion", _springs_resolved),
    (Maximal(), "springs of joints are implicit", None),
    (RungeKutta(4), "for joints along splines", _all_resolved),
    (SDIRK2(), "springs and dampers are implicit", None),
    (MaximalEuler(), "no faster method has all of it", None),
)
