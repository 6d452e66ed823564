"""Functions of the user that return the wrong shape: an error that names the function and both shapes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import leastaction as la
from leastaction.jit.callbacks import FORCE_TYPE


class Push(la.Force):
    """A force whose wrenches or derivatives have a shape of the test's choice."""

    def __init__(self, wrench=(1, 6), K=(6, 6)):
        self.name, self.bodies, self.wrench, self.K = "push", ("box",), wrench, K

    conservative = False

    def wrenches(self, t, poses, twists):
        return np.zeros(self.wrench)

    def derivatives(self, t, poses, twists):
        return np.zeros(self.K), np.zeros((6, 6))


def model_with(*constraints, forces=()):
    m = la.Mechanism("box")
    m.add_body("box", shape=la.Box((0.2, 0.2, 0.2)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="box")
    for constraint in constraints:
        m.add_constraint(constraint)
    for force in forces:
        m.add_force(force)
    return m.build()


def call(callback, value=0.0, outputs=72):
    """What compiled code does: numbers in, numbers out."""
    given, out = np.full(18, value), np.zeros(outputs)
    pointers = [array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (given, out)]
    FORCE_TYPE(callback.address)(0.0, *pointers)
    return out


@pytest.mark.parametrize("kind", ["equality", "velocity", "inequality"])
def test_constraints_name_both_shapes(kind):
    """Also where numbers that follow from the wrong shape are asked for next."""
    wrong = la.Constraint(
        ("box",), lambda poses, *_: [poses[0, 0, 3]], lambda *_: np.zeros((1, 5)), kind=kind, name="mine"
    )
    model = model_with(wrong)
    for value in (1.0, np.nan):
        assert np.isnan(call(model.callbacks[0], value, 7)).all()
    expected = r"Constraint 'mine': jacobian: the function must return shape \(1, 6\), it returned \(1, 5\)"
    with pytest.raises(la.ModelError, match=expected):
        model.raise_pending()
    model.raise_pending()


def test_the_first_of_several_errors_is_raised():
    """Forces come before constraints in the list, and here after them in time."""
    wrong = la.Constraint(("box",), lambda poses: [0.0, 0.0], lambda poses: np.zeros((1, 6)), name="mine")
    model = model_with(wrong, forces=[Push(wrench=(6,))])
    force, _, constraint = model.callbacks
    call(constraint, 1.0, 7)
    call(force, 1.0, 6)
    with pytest.raises(la.ModelError, match=r"function: the function must return shape \(1,\), it returned \(2,\)"):
        model.raise_pending()
    # none is left behind
    model.raise_pending()


def test_forces_name_both_shapes():
    force, derivatives = model_with(forces=[Push(wrench=(1, 1), K=(3, 3))]).callbacks
    call(force, 1.0, 6)
    assert str(force.error) == "Push 'push': wrenches: the function must return shape (1, 6), it returned (1, 1)."
    call(derivatives, 1.0)
    assert "derivatives, K: the function must return shape (6, 6), it returned (3, 3)" in str(derivatives.error)
