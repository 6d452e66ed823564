"""How the O(n) parts of ``la.redmax`` grow with the number of links: ``leastaction bench redmax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastaction.bench import main as bench
from leastaction.model.maximal import maximal_bodies
from leastaction.models.simple import chain

SIZES = (32, 64, 128, 256, 512, 1024)
REPEATS = 50
BOUND = 1.1


def calls(n: int) -> dict[str, Callable[[], Any]]:
    """The compiled calls of a chain of n links, by name; products and solves do ``REPEATS`` vectors in one call."""
    from leastaction.dynamics import redmax_jacobian, redmax_solve

    model = chain(n).build()
    bodies, system = maximal_bodies(model), model.system
    q, v = bench.start_of_chain(n)
    rng = np.random.default_rng(2)
    X, W = rng.normal(size=(REPEATS, n)), rng.normal(size=(REPEATS, n, 6))
    Y, Z, out = np.zeros((REPEATS, n, 6)), np.zeros((REPEATS, n, 6)), np.zeros((REPEATS, n))
    nothing, none, a, force = np.zeros(n), np.zeros((0, 6, 6)), np.zeros(n), np.zeros(n)
    # every third joint is prescribed
    mask = (np.arange(n) % 3 == 0).astype(float)
    given, lam = mask * rng.normal(size=n), np.zeros(0)
    place = bodies.rows, bodies.frames
    return {
        "J x and Jdot x (Algorithm 5)": lambda: redmax_jacobian.jacobian_products(
            system, bodies.carrier, q, v, *place, X, Y, Z
        ),
        "J^T y (Algorithm 6)": lambda: redmax_jacobian.transposed(system, bodies.carrier, q, *place, W, out),
        "hybrid dynamics (Algorithm 9)": lambda: [
            redmax_solve.hybrid(system, bodies.spans, 0.0, q, v, nothing, given, mask, a, force, lam, lam)
            for _ in range(REPEATS)
        ],
        "inverse inertia product (Algorithm 10)": lambda: redmax_solve.inverse_products(
            system, bodies.spans, q, *place, nothing, none, X, out
        ),
    }


def bench_redmax() -> list[bench.Row]:
    """Time for a chain of 100 links, and the exponent of the growth from 32 to 1024 links, which has a bound."""
    times: dict[str, list[float]] = {}
    for n in SIZES:
        for name, call in calls(n).items():
            call()
            times.setdefault(name, []).append(bench.best(call) / REPEATS * 1e6)
    rows = []
    for name, spent in times.items():
        exponent = float(np.polyfit(np.log(SIZES), np.log(spent), 1)[0])
        at = SIZES.index(128)
        rows.append(bench.Row("redmax", f"{name}, n = 128", "us", spent[at], None, spent[at], None))
        rows.append(bench.Row("redmax", f"exponent of {name}, n = 32 to 1024", "", exponent, None, exponent, BOUND))
    return rows
