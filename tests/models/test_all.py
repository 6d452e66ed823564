"""What holds for every built-in mechanism: sizes, masses, closed loops, shapes, and the registry."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import leastaction as la
from leastaction import models
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict

# text for by_name: nq, nv, loops, mass of what moves in kg
EXPECTED = {
    "arm": (7, 7, 0, 16.062132),
    "bricard": (5, 5, 1, 5.0),
    "cart_pole": (2, 2, 0, 1.1),
    "chain:1": (1, 1, 0, 1.0),
    "chain:10": (10, 10, 0, 10.0),
    "chain:10:spherical": (40, 30, 0, 10.0),
    "double_pendulum": (2, 2, 0, 2.0),
    "four_bar": (3, 3, 1, 0.55),
    "free_body": (7, 6, 0, 1.0),
    "minitaur": (23, 22, 4, 6.0),
    "n_four_bar:1": (3, 3, 1, 3.0),
    "n_four_bar:4": (9, 9, 4, 9.0),
    "pendulum": (1, 1, 0, 1.0),
    "pendulum:0.5": (1, 1, 0, 1.0),
    "quadruped": (19, 18, 0, 12.453),
    "slider_crank": (3, 3, 1, 0.586656),
    "spherical_pendulum": (4, 3, 0, 1.0),
    "spinning_top": (4, 3, 0, 15.0),
    "strandbeest": (13, 13, 6, 9.738),
}

everyone = pytest.mark.parametrize("text", EXPECTED)


@everyone
def test_sizes_and_mass(text):
    nq, nv, loops, mass = EXPECTED[text]
    model = models.by_name(text).build()
    assert (model.nq, model.nv, len(model.loop_names)) == (nq, nv, loops)
    assert model.total_mass == pytest.approx(mass, rel=1e-14)  # measured 2e-16


@everyone
def test_mass_matrix_is_positive_definite(text):
    model = models.by_name(text).build()
    M = la.mass_matrix(model, model.neutral())
    assert np.abs(M - M.T).max() <= 1e-15 * np.abs(M).max()  # measured 0
    # least eigenvalue of the matrix scaled to a unit diagonal; measured 2e-4, ten spherical joints
    d = 1 / np.sqrt(np.diag(M))
    assert np.linalg.eigvalsh(M * np.outer(d, d)).min() > 1e-5


@everyone
def test_loops_are_closed_at_neutral(text, loop_gap):
    model = models.by_name(text).build()
    assert loop_gap(model, model.neutral()) < 1e-15  # measured 0


@everyone
def test_bodies_can_be_drawn_and_written(text):
    m = models.by_name(text)
    for body in m.bodies.values():
        assert any(shape.visual for shape in body.shapes), body.name
    again = mechanism_from_dict(mechanism_to_dict(m))
    assert mechanism_to_dict(again) == mechanism_to_dict(m)
    assert m.notes == []


def test_every_function_is_registered_and_described():
    functions = {name for name in models.__all__ if name not in ("REGISTRY", "add_strand", "by_name")}
    assert set(models.REGISTRY) == functions
    assert {text.partition(":")[0] for text in EXPECTED} == functions
    for name, (function, parameter) in models.REGISTRY.items():
        assert getattr(models, name) is function
        assert function.__doc__
        # a parameter's description shows how to write it
        assert name + ":" in parameter or parameter == ""


def test_each_call_gives_its_own_mechanism():
    first, second = models.pendulum(), models.pendulum()
    first.lock("hinge")
    assert second.build().nv == 1


def test_parameters_reach_the_function():
    assert models.by_name("pendulum:0.5").bodies["bob"].com[2] == -0.5
    assert models.by_name("spherical_pendulum:2").bodies["bob"].com[2] == -2.0
    assert list(models.by_name("chain:3").joints) == ["joint1", "joint2", "joint3"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no built-in mechanism ''", "arm, bricard, cart_pole, chain", "spinning_top"]),
        ("pendulm", ["no built-in mechanism 'pendulm'", "Did you mean 'pendulum'?"]),
        ("chain", ["chain: a parameter is missing", "number of links", "chain:10"]),
        ("n_four_bar", ["n_four_bar: a parameter is missing", "number of windows"]),
        ("chain:", ["chain: cannot read ''", "number of links"]),
        ("chain:ten", ["chain: cannot read 'ten'", "number of links"]),
        ("chain:1.5", ["chain: cannot read '1.5'"]),
        ("chain:-3", ["chain: cannot read '-3'"]),
        ("chain:²", ["chain: cannot read '²'"]),
        ("chain:" + "9" * 5000, ["chain: cannot read"]),
        ("chain:0", ["chain: n", "from 1 to 100000", "got 0"]),
        ("chain:1000000", ["chain: n", "from 1 to 100000"]),
        ("chain:4:prismatic", ["'revolute' or 'spherical'", "'prismatic'"]),
        ("n_four_bar:x", ["n_four_bar: cannot read 'x'", "number of windows"]),
        ("pendulum:long", ["pendulum: cannot read 'long'", "length in metres"]),
        ("pendulum:nan", ["pendulum: length", "finite"]),
        ("pendulum:-1", ["pendulum: length", "positive"]),
        ("minitaur:2", ["minitaur: takes no parameter", "write 'minitaur'"]),
        (7, ["expected a name such as 'chain:10'", "7"]),
    ],
)
def test_by_name_says_what_is_wrong(text, words):
    with pytest.raises(la.ModelError) as caught:
        models.by_name(text)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: models.chain(True), "chain: n"),
        (lambda: models.chain(2.0), "chain: n"),
        (lambda: models.chain(2, length=0.0), "chain: length"),
        (lambda: models.chain(2, mass=float("nan")), "chain: mass"),
        (lambda: models.pendulum(mass=-1.0), "pendulum: mass"),
        (lambda: models.double_pendulum(lengths=(1.0, 0.0)), "double_pendulum: length 2"),
        (lambda: models.double_pendulum(masses=(1.0,)), "double_pendulum: masses"),
        (lambda: models.spherical_pendulum(radius=0.0), "spherical_pendulum: radius"),
        (lambda: models.spinning_top(inertia=(1.0, 1.0, 3.0)), "spinning_top: inertia"),
        (lambda: models.free_body(inertia=(1.0, 1.0, 3.0)), "free_body: inertia"),
        (lambda: models.free_body(mass=0.0), "free_body: mass"),
        (lambda: models.cart_pole(pole_length=-1.0), "cart_pole: pole_length"),
        (lambda: models.four_bar(crank=0.0), "four_bar: crank"),
        (lambda: models.four_bar(coupler=0.01), "cannot meet"),
        (lambda: models.four_bar(ground=0.2, crank=0.2, coupler=0.1, rocker=0.1, angle=0.0), "cannot meet"),
        (lambda: models.n_four_bar(0), "n_four_bar: n"),
        (lambda: models.slider_crank(crank=0.4), "longer than the crank"),
        (lambda: models.slider_crank(masses=(1.0, 0.0, 1.0)), "mass of the rod"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises(la.ModelError, match=words):
        make()


def test_building_needs_no_compiler():
    code = "import sys, leastaction as la; la.models.minitaur().build(); print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "False"
