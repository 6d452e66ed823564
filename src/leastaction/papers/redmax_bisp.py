"""Friction inside joints: bilateral staggered projections against plain ones (Sueda 2021, section 2.11).

The plain ones know no joints: every point around a joint is a contact that pushes, one for each side, and the bodies
are held together by the contact program alone. Both have the same points, coefficients and tolerances. They need not
agree exactly: where joints are contacts, how the load is spread over the points is not unique, and friction may carry
a part of it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.papers.registry import Claim, Context, Result, experiment

_DT, _COEFFICIENT, _RADIUS, _LENGTH = 0.005, 0.1, 0.02, 0.1
_TOLERANCE, _MOST = 1e-5, 2000


@experiment(
    "redmax-bisp",
    paper="Sueda 2021, section 2.11",
    title="Joint friction by bilateral and by plain staggered projections: time and agreement",
)
def bisp(context: Context) -> Result:
    """Chains that swing with friction in all hinges; the same steps by both, each from the other's start."""
    from leastaction import models
    from leastaction.comparators.maximal_euler.method import MaximalEuler
    from leastaction.model.bearing import Bearing

    rows: list[dict[str, Any]] = []
    for n in (1, 2, 4) if context.quick else (1, 2, 4, 6):
        context.progress(f"{n} links")
        mechanism = models.chain(n)
        for joint in mechanism.joints.values():
            joint.friction = Bearing(_COEFFICIENT, _RADIUS, _LENGTH)
        model = mechanism.build()
        method = MaximalEuler(tolerance=_TOLERANCE, iterations=_MOST)
        memory = method.start(model, model.state(q=np.full(n, 0.6), v=np.full(n, 1.0)))
        spent, worst, programs, failures, start = np.zeros(2), 0.0, np.zeros(2), 0, np.zeros(0)
        for k in range(3 if context.quick else 5):
            plain, seconds = _plain(model, method, memory, k * _DT, start)
            start = plain.tangent
            began = time.process_time()
            found, step = method._advance(model, memory, k * _DT, _DT, np.zeros(n))
            spent += time.process_time() - began, seconds
            programs += found.programs, plain.programs
            # both velocities by the rates of the joints, against what friction changes
            free = _frictionless(model, step)
            size = float(np.abs(step.R @ (found.phi - free)).max())
            worst = max(worst, float(np.abs(step.R @ (found.phi - plain.phi)).max()) / size)
            failures += plain.failure is not None
        rows.append(
            {
                "links": n, "ms, bilateral": 1e3 * spent[0] / (k + 1), "ms, plain": 1e3 * spent[1] / (k + 1),
                "ratio": float(spent[1] / spent[0]), "programs, bilateral": programs[0] / (k + 1),
                "programs, plain": programs[1] / (k + 1), "difference": worst, "plain did not converge": failures,
            }
        )  # fmt: skip
    ratio, difference = rows[-1]["ratio"], max(row["difference"] for row in rows)
    missed = sum(row["plain did not converge"] for row in rows)
    claims = [
        Claim(f"bilateral projections are faster, {rows[-1]['links']} links", "10 times", ratio, ratio >= 10),
        Claim(
            "the change of the rates by friction agrees, relative difference", "agree", difference, difference < 0.03
        ),
        Claim("steps in which the plain ones did not converge", 0, missed, missed == 0),
    ]
    return Result(claims, {"": rows})


def _frictionless(model: Any, step: Any) -> FloatArray:
    """Velocities of a step without friction."""
    p = step.problem
    return np.asarray(p.equalities.solve(p.F[:, None], p.b[:, None])[0][:, 0])


def _plain(model: Any, method: Any, memory: Any, t: float, start: FloatArray) -> tuple[Any, float]:
    """One step by plain staggered projections on all points, and the processor time."""
    from dataclasses import replace

    from leastaction.comparators.maximal_euler.method import assemble
    from leastaction.comparators.maximal_euler.rows import Rows, adjoint, inverse, mobility, plan_of
    from leastaction.comparators.maximal_euler.solve import Equalities, solve_step

    began = time.process_time()
    plan, bearings = plan_of(model), method._bearings(model)
    step = assemble(model, memory, t, _DT, np.zeros(model.nv), 0.0)
    E = memory["E"]
    C, T, mu = Rows(len(plan.limbs)), Rows(len(plan.limbs)), []
    for bearing in bearings:
        b, parent = bearing.body, plan.limbs[bearing.body].parent
        X = None if parent is None else -adjoint(inverse(E[b]) @ E[parent])
        for sign in (1.0, -1.0):
            for rows, out, flip in ((bearing.normals, C, sign), (bearing.tangents, T, 1.0)):
                blocks: list[tuple[int | None, FloatArray]] = [(b, flip * rows)]
                if X is not None:
                    blocks.append((parent, flip * rows @ X))
                out.add(blocks, np.zeros(len(rows)), bearing.joint)
            mu += [bearing.coefficient] * len(bearing.normals)
    # the bodies without their joints
    p = step.problem
    M = np.zeros((6 * len(plan.limbs), 6 * len(plan.limbs)))
    for b, block in enumerate(plan.bodies.inertia):
        M[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = block
    problem = replace(
        p, equalities=Equalities(M, mobility(plan), np.zeros((0, len(M)))), b=np.zeros(0), C=C.matrix(), c=C.values,
        names=C.names, T=T.matrix(), mu=np.array(mu), B=np.zeros((0, len(M))), carry=np.zeros((0, 0)),
        share=np.zeros((0, 0)), soft=1e-8,
    )  # fmt: skip
    begin = start if len(start) == len(T.rhs) else np.zeros(len(T.rhs))
    found = solve_step(problem, "staggered", begin, method.tolerance, method.iterations)
    return found, time.process_time() - began
