"""The tables of methods and of what they support say what the code does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.run.registry import METHODS, check_supported

DOCS = Path(__file__).resolve().parents[2] / "docs"


def table(page: str, corner: str) -> list[dict[str, str]]:
    """Rows of the table of a page whose first heading is ``corner``, by heading, without code marks."""
    lines = (DOCS / page).read_text(encoding="utf-8").replace("`", "").splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith(f"| {corner} |"))
    cells = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def words(text: str) -> frozenset[str]:
    """A list in a cell; a dash is an empty one."""
    return frozenset() if text == "-" else frozenset(text.split(", "))


def arm() -> la.Mechanism:
    m = la.Mechanism("arm")
    m.add_body("link", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("hinge", "revolute", parent="world", child="link", limits=(-1.0, 1.0))
    return m


def with_loop() -> la.Mechanism:
    return la.models.four_bar()


def with_coupling() -> la.Mechanism:
    m = arm()
    m.add_body("other", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("second", "revolute", parent="world", child="other")
    m.add_coupling("gear", {"hinge": 1.0, "second": 2.0})
    return m


def with_friction() -> la.Mechanism:
    m = arm()
    m.joints["hinge"].friction = np.array([0.1])
    return m


def with_bearing() -> la.Mechanism:
    m = arm()
    m.joints["hinge"].friction = la.Bearing(0.3, 0.02, 0.1)
    return m


def with_spline() -> la.Mechanism:
    m = la.Mechanism("rail")
    m.add_body("car", mass=1.0, inertia=(0.1, 0.1, 0.1))
    curve = la.SplineCurve([la.pose((k, k * k, 0.0)) for k in range(5)])
    m.add_joint("rail", "spline", parent="world", child="car", spline=curve)
    return m


def with_ground() -> la.Mechanism:
    m = arm()
    m.add_ground()
    return m


def with_restitution() -> la.Mechanism:
    m = arm()
    m.add_ground(restitution=0.5)
    return m


def with_limits() -> la.Mechanism:
    m = arm()
    m.enforce_limits()
    return m


def with_bounded_servo() -> la.Mechanism:
    m = arm()
    m.add_actuator("servo", "hinge", kp=1.0, effort=1.0)
    m.joints["hinge"].limits = np.array([[-np.inf, np.inf]])
    m.enforce_limits()
    return m


def with_constraint(kind: str) -> Callable[[], la.Mechanism]:
    def make() -> la.Mechanism:
        m = arm()
        m.add_constraint(la.Constraint(("link",), lambda *_: [0.0], lambda *_: [[0.0] * 6], kind=kind))
        return m

    return make


MECHANISMS: dict[str, Callable[[], la.Mechanism]] = {
    "loops": with_loop,
    "couplings": with_coupling,
    "joint friction": with_friction,
    "bearings": with_bearing,
    "spline joints": with_spline,
    "contact": with_ground,
    "restitution": with_restitution,
    "enforced limits": with_limits,
    "bounded servos": with_bounded_servo,
    **{f"{kind} constraints": with_constraint(kind) for kind in ("equality", "velocity", "inequality")},
}


def test_the_matrix_has_every_feature_and_method() -> None:
    rows = table("envelope.md", "feature")
    assert {row["feature"] for row in rows} == set(MECHANISMS)
    assert list(rows[0]) == ["feature", *METHODS]


@pytest.mark.parametrize("feature", list(MECHANISMS))
def test_the_matrix_is_what_methods_do(feature: str) -> None:
    row = next(row for row in table("envelope.md", "feature") if row["feature"] == feature)
    model = MECHANISMS[feature]().build()
    assert feature in model.features
    for name, (method, _) in METHODS.items():
        assert row[name] == ("yes" if feature in method.supports else "no"), name
        if row[name] == "no":
            with pytest.raises(la.UnsupportedError):
                check_supported(method, model)
        else:
            check_supported(method, model)


def test_the_table_of_methods_is_what_classes_declare() -> None:
    rows = table("methods.md", "short name")
    assert [row["short name"] for row in rows] == list(METHODS)
    for row in rows:
        method = METHODS[row["short name"]][0]
        assert repr(eval(row["method"], {"la": la})) == repr(method)
        assert int(row["order"]) == method.order
        assert row["symplectic"] == ("yes" if method.symplectic else "no")
        assert words(row["conserves"]) == method.conserves
        assert words(row["supports"]) == method.supports
        assert method.symmetric == (row["short name"] in ("lie-trapezoid", "maximal"))


def test_equations_of_the_theory_are_numbered_as_in_the_kernels() -> None:
    for page, last in {"galerkin.md": 14, "lie_trapezoid.md": 9}.items():
        text = (DOCS / "theory" / page).read_text(encoding="utf-8")
        assert sorted(int(number) for number in re.findall(r"\\tag\{(\d+)\}", text)) == list(range(1, last + 1))
