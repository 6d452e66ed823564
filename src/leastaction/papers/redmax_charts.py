"""The twelve charts of Euler angles of Sueda 2021: its tables against SymPy, and both against the kernels.

A chart such as XYZ is a composite joint of three hinges along x, y and z through one point. Its R, S and Sdot are read
off the body's pose, the rows of J for its rotation, and those of Jdot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.papers.registry import Claim, Context, Result, experiment

_PAPER = "Sueda 2021, Table {}"
_TOLERANCE = 1e-12

# R, S and Sdot as printed, rows between semicolons; R of XYZ is not in the text and is equation (2.33) there
_PRINTED = {
    "XYX": (
        "c2,s2*s3,c3*s2;s1*s2,c1*c3-c2*s1*s3,-c1*s3-c2*c3*s1;-c1*s2,c3*s1+c1*c2*s3,c1*c2*c3-s1*s3",
        "c2,0,1;s2*s3,c3,0;c3*s2,-s3,0",
        "-d2*s2,0,0;d2*c2*s3+d3*c3*s2,-d3*s3,0;d2*c2*c3-d3*s2*s3,-d3*c3,0",
    ),
    "XZX": (
        "c2,-c3*s2,s2*s3;c1*s2,c1*c2*c3-s1*s3,-c3*s1-c1*c2*s3;s1*s2,c1*s3+c2*c3*s1,c1*c3-c2*s1*s3",
        "c2,0,1;-c3*s2,s3,0;s2*s3,c3,0",
        "-d2*s2,0,0;d3*s2*s3-d2*c2*c3,d3*c3,0;d2*c2*s3+d3*c3*s2,-d3*s3,0",
    ),
    "YZY": (
        "c1*c2*c3-s1*s3,-c1*s2,c3*s1+c1*c2*s3;c3*s2,c2,s2*s3;-c1*s3-c2*c3*s1,s1*s2,c1*c3-c2*s1*s3",
        "c3*s2,-s3,0;c2,0,1;s2*s3,c3,0",
        "d2*c2*c3-d3*s2*s3,-d3*c3,0;-d2*s2,0,0;d2*c2*s3+d3*c3*s2,-d3*s3,0",
    ),
    "YXY": (
        "c1*c3-c2*s1*s3,s1*s2,c1*s3+c2*c3*s1;s2*s3,c2,-c3*s2;-c3*s1-c1*c2*s3,c1*s2,c1*c2*c3-s1*s3",
        "s2*s3,c3,0;c2,0,1;-c3*s2,s3,0",
        "d2*c2*s3+d3*c3*s2,-d3*s3,0;-d2*s2,0,0;d3*s2*s3-d2*c2*c3,d3*c3,0",
    ),
    "ZXZ": (
        "c1*c3-c2*s1*s3,-c1*s3-c2*c3*s1,s1*s2;c3*s1+c1*c2*s3,c1*c2*c3-s1*s3,-c1*s2;s2*s3,c3*s2,c2",
        "s2*s3,c3,0;c3*s2,-s3,0;c2,0,1",
        "d2*c2*s3+d3*c3*s2,-d3*s3,0;d2*c2*c3-d3*s2*s3,-d3*c3,0;-d2*s2,0,0",
    ),
    "ZYZ": (
        "c1*c2*c3-s1*s3,-c3*s1-c1*c2*s3,c1*s2;c1*s3+c2*c3*s1,c1*c3-c2*s1*s3,s1*s2;-c3*s2,s2*s3,c2",
        "-c3*s2,s3,0;s2*s3,c3,0;c2,0,1",
        "d3*s2*s3-d2*c2*c3,d3*c3,0;d2*c2*s3+d3*c3*s2,-d3*s3,0;-d2*s2,0,0",
    ),
    "XYZ": (
        "",
        "c2*c3,s3,0;-c2*s3,c3,0;s2,0,1",
        "-d2*c3*s2-d3*c2*s3,d3*c3,0;d2*s2*s3-d3*c2*c3,-d3*s3,0;d2*c2,0,0",
    ),
    "XZY": (
        "c2*c3,-s2,c2*s3;s1*s3+c1*c3*s2,c1*c2,c1*s2*s3-c3*s1;c3*s1*s2-c1*s3,c2*s1,c1*c3+s1*s2*s3",
        "c2*c3,-s3,0;-s2,0,1;c2*s3,c3,0",
        "-d2*c3*s2-d3*c2*s3,-d3*c3,0;-d2*c2,0,0;d3*c2*c3-d2*s2*s3,-d3*s3,0",
    ),
    "YZX": (
        "c1*c2,s1*s3-c1*c3*s2,c3*s1+c1*s2*s3;s2,c2*c3,-c2*s3;-c2*s1,c1*s3+c3*s1*s2,c1*c3-s1*s2*s3",
        "s2,0,1;c2*c3,s3,0;-c2*s3,c3,0",
        "d2*c2,0,0;-d2*c3*s2-d3*c2*s3,d3*c3,0;d2*s2*s3-d3*c2*c3,-d3*s3,0",
    ),
    "YXZ": (
        "c1*c3+s1*s2*s3,c3*s1*s2-c1*s3,c2*s1;c2*s3,c2*c3,-s2;c1*s2*s3-c3*s1,s1*s3+c1*c3*s2,c1*c2",
        "c2*s3,c3,0;c2*c3,-s3,0;-s2,0,1",
        "d3*c2*c3-d2*s2*s3,-d3*s3,0;-d2*c3*s2-d3*c2*s3,-d3*c3,0;-d2*c2,0,0",
    ),
    "ZXY": (
        "c1*c3-s1*s2*s3,-c2*s1,c1*s3+c3*s1*s2;c3*s1+c1*s2*s3,c1*c2,s1*s3-c1*c3*s2;-c2*s3,s2,c2*c3",
        "-c2*s3,c3,0;s2,0,1;c2*c3,s3,0",
        "d2*s2*s3-d3*c2*c3,-d3*s3,0;d2*c2,0,0;-d2*c3*s2-d3*c2*s3,d3*c3,0",
    ),
    "ZYX": (
        "c1*c2,c1*s2*s3-c3*s1,s1*s3+c1*c3*s2;c2*s1,c1*c3+s1*s2*s3,c3*s1*s2-c1*s3;-s2,c2*s3,c2*c3",
        "-s2,0,1;c2*s3,c3,0;c2*c3,-s3,0",
        "-d2*c2,0,0;d3*c2*c3-d2*s2*s3,-d3*s3,0;-d2*c3*s2-d3*c2*s3,-d3*c3,0",
    ),
}

# det S, and q_1, q_2, q_3 from R, as printed
_INVERSE = {
    "XYX": ("-sin(q2)", "atan2(R21,-R31)", "acos(R11)", "atan2(R12,R13)"),
    "XZX": ("-sin(q2)", "atan2(R31,R21)", "acos(R11)", "atan2(R13,-R12)"),
    "YZY": ("-sin(q2)", "atan2(R32,-R12)", "acos(R22)", "atan2(R23,R21)"),
    "YXY": ("-sin(q2)", "atan2(R12,R32)", "acos(R22)", "atan2(R21,-R23)"),
    "ZXZ": ("-sin(q2)", "atan2(R13,-R23)", "acos(R33)", "atan2(R31,R32)"),
    "ZYZ": ("-sin(q2)", "atan2(R23,R13)", "acos(R33)", "atan2(R32,-R31)"),
    "XYZ": ("cos(q2)", "atan2(-R23,R33)", "asin(R13)", "atan2(-R12,R11)"),
    "XZY": ("-cos(q2)", "atan2(R32,R22)", "asin(-R12)", "atan2(R13,R11)"),
    "YZX": ("cos(q2)", "atan2(-R31,R11)", "asin(R21)", "atan2(-R23,R22)"),
    "YXZ": ("-cos(q2)", "atan2(R13,R33)", "asin(-R23)", "atan2(R21,R22)"),
    "ZXY": ("cos(q2)", "atan2(-R12,R22)", "asin(R32)", "atan2(-R31,R33)"),
    "ZYX": ("-cos(q2)", "atan2(R21,R11)", "asin(-R31)", "atan2(R32,R33)"),
}

_PROPER = tuple(name for name in _PRINTED if name[0] == name[2])
_TAIT_BRYAN = tuple(name for name in _PRINTED if name[0] != name[2])


@experiment(
    "redmax-table1", paper=_PAPER.format(1), title="Proper Euler angles: R, S and Sdot against SymPy and kernels"
)
def table1(context: Context) -> Result:
    """The six charts that turn about one axis twice."""
    return _chart_table(_PROPER, context)


@experiment("redmax-table2", paper=_PAPER.format(2), title="Tait-Bryan angles: R, S and Sdot against SymPy and kernels")
def table2(context: Context) -> Result:
    """The six charts that turn about three axes."""
    return _chart_table(_TAIT_BRYAN, context)


@experiment("redmax-table3", paper=_PAPER.format(3), title="det S of all twelve charts, and angles from a rotation")
def table3(context: Context) -> Result:
    """Symbolic determinants, and angles that give random rotations back."""
    sp = _sympy()
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(3)
    for name, (det, *angles) in _INVERSE.items():
        context.progress(name)
        q, _, R, S, _ = symbols(name)
        right = sp.simplify(S.det() - sp.sympify(det, {"q2": q[1]})) == 0
        from_rotation = sp.lambdify(
            [sp.Symbol(f"R{i + 1}{j + 1}") for i in range(3) for j in range(3)], [sp.sympify(each) for each in angles]
        )
        worst = 0.0
        for _ in range(5 if context.quick else 50):
            # acos gives angles between 0 and pi
            given = rng.uniform(-1.5, 1.5, 3) + (np.array([0.0, 1.6, 0.0]) if name in _PROPER else 0.0)
            turned = np.array(R.subs(dict(zip(q, given, strict=True))), dtype=float)
            worst = max(worst, float(np.abs(np.array(from_rotation(*turned.ravel())) - given).max()))
        rows.append({"chart": name, "det S": det, "det S by SymPy": str(right), "q from R, largest error": worst})
    equal = sum(row["det S by SymPy"] == "True" for row in rows)
    claims = [
        Claim("det S of all charts", "as printed", f"{equal} of 12 equal", equal == 12),
        Claim("q from R gives q back", "as printed", max(row["q from R, largest error"] for row in rows),
              max(row["q from R, largest error"] for row in rows) < 1e-9),
    ]  # fmt: skip
    return Result(claims, {"": rows})


def _chart_table(names: tuple[str, ...], context: Context) -> Result:
    """Printed formulas against SymPy, and SymPy against the kernels at random angles and rates."""
    sp = _sympy()
    rows: list[dict[str, Any]] = []
    for name in names:
        context.progress(name)
        q, rate, *found = symbols(name)
        words = {
            f"{letter}{i + 1}": function(q[i]) for i in range(3) for letter, function in (("c", sp.cos), ("s", sp.sin))
        }
        words |= {f"d{i + 1}": rate[i] for i in range(3)}
        row: dict[str, Any] = {"chart": name}
        for what, matrix, text in zip(("R", "S", "Sdot"), found, _PRINTED[name], strict=True):
            if not text:
                row[f"{what} as printed"] = "not in the text"
                continue
            printed = sp.Matrix([[sp.sympify(cell, words) for cell in line.split(",")] for line in text.split(";")])
            row[f"{what} as printed"] = "equal" if sp.simplify(matrix - printed).is_zero_matrix else "DIFFERENT"
        row |= _against_kernels(name, q, rate, found)
        rows.append(row)
    claims = []
    for what in ("R", "S", "Sdot"):
        said = [row[f"{what} as printed"] for row in rows]
        claims.append(
            Claim(f"{what} as printed is what SymPy finds", "6 charts", f"{said.count('equal')} of 6 equal"
                  + (", one is not in the text" if "not in the text" in said else ""), "DIFFERENT" not in said)
        )  # fmt: skip
        worst = max(row[f"{what}, kernels"] for row in rows)
        claims.append(Claim(f"{what} of the kernels is what SymPy finds", 0.0, worst, worst < _TOLERANCE))
    return Result(claims, {"": rows})


def _sympy() -> Any:
    """SymPy, or an error that says how to get it."""
    try:
        import sympy
    except ImportError as error:
        raise ModelError("the tables of Euler angles need SymPy: pip install 'leastaction[peers]'.") from error
    return sympy


def symbols(name: str) -> tuple[Any, Any, Any, Any, Any]:
    """Angles, rates, R, S and Sdot of a chart by SymPy (Appendix A): columns of S from R^T dR/dq."""
    sp = _sympy()
    q, rate = sp.symbols("q1:4", real=True), sp.symbols("d1:4", real=True)
    R = sp.eye(3)
    for letter, angle in zip(name, q, strict=True):
        c, s = sp.cos(angle), sp.sin(angle)
        i = "XYZ".index(letter)
        turn = sp.eye(3)
        a, b = (i + 1) % 3, (i + 2) % 3
        turn[a, a] = turn[b, b] = c
        turn[a, b], turn[b, a] = -s, s
        R = R * turn
    S = sp.zeros(3, 3)
    for k in range(3):
        spin = R.T * R.diff(q[k])
        S[:, k] = sp.Matrix([spin[2, 1], spin[0, 2], spin[1, 0]])
    S = sp.simplify(S)
    Sdot = sum((S.diff(q[k]) * rate[k] for k in range(3)), sp.zeros(3, 3))
    return q, rate, R, S, Sdot


def _against_kernels(name: str, q: Any, rate: Any, found: Any) -> dict[str, float]:
    """Largest differences of R, S and Sdot between SymPy and the kernels."""
    from leastaction.dynamics import quantities, redmax
    from leastaction.model.mechanism import Mechanism

    sp = _sympy()
    m = Mechanism(name)
    m.add_body("body", mass=1.0, inertia=(0.1, 0.2, 0.3))
    axes = [("revolute", {"axis": np.eye(3)["XYZ".index(letter)]}) for letter in name]
    m.add_joint("joint", "composite", parent="world", child="body", parts=axes)
    model, rng = m.build(), np.random.default_rng(1)
    functions = [sp.lambdify([*q, *rate], matrix) for matrix in found]
    worst = np.zeros(3)
    for _ in range(10):
        angles, rates = rng.uniform(-1.5, 1.5, 3), rng.normal(size=3)
        ours: list[FloatArray] = [
            quantities.poses(model, angles)["body"][:3, :3],
            redmax.jacobian(model, angles)[:3],
            redmax.jacobian_rate(model, angles, rates)[:3],
        ]
        theirs = [np.array(function(*angles, *rates), dtype=float) for function in functions]
        worst = np.maximum(worst, [float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True)])
    return dict(zip(("R, kernels", "S, kernels", "Sdot, kernels"), worst.tolist(), strict=True))
