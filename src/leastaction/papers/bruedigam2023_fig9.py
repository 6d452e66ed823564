"""Linear systems of ladders, nets and crystals of nodes: elimination along the graph against a dense solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from leastaction.papers.bruedigam2020_fig6 import segment_run
from leastaction.papers.common import columns, few_ticks, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

_ROWS = 6

Rows = list[dict[str, Any]]
Shape = tuple[int, ...]


@experiment(
    "bruedigam2023-fig9",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 9",
    title="Cyclic structures: chains of segments; linear systems of ladders, nets and crystals, sparse and dense",
    aliases=("bruedigam2023-fig9b", "bruedigam2023-fig9c", "bruedigam2023-fig9d"),
)
def figure9(context: Context) -> Result:
    """Ladders and nets of up to 256 nodes (64 if quick), crystals of up to 6^3, six rows each; 1 to 16 segments (4).

    Sparse is ``GraphSystem`` in its own order, with scaling and refinement off as in the paper; dense is LAPACK by
    NumPy. Times are those of factorisation and solution, with the blocks in place.
    """
    context.progress("segments")
    chains = [segment_run(n, "maximal") for n in ((1, 2, 4) if context.quick else (1, 2, 4, 8, 16))]
    large = (2, 4, 8, 16, 32) if context.quick else (2, 4, 8, 16, 32, 64, 128)
    graphs: dict[str, list[Shape]] = {
        "ladder": [(k, 2) for k in large],
        "net": [(k, k) for k in ((2, 3, 5, 8) if context.quick else (2, 3, 5, 8, 11, 16))],
        "crystal": [(k, k, k) for k in (2, 3, 4, 5, 6)],
    }
    rows: Rows = []
    for name, shapes in graphs.items():
        for shape in shapes:
            context.progress(f"{name} {shape}")
            rows.append({"graph": name, **_solve(shape)})
    return Result(_claims(rows, chains), {"": rows, "segments": chains}, {"": _figure(rows, chains)})


def lattice(shape: Shape) -> tuple[int, list[tuple[int, int]]]:
    """Nodes of a rectangular lattice of one to three dimensions, and its edges between neighbours."""
    number = np.arange(int(np.prod(shape))).reshape(shape)
    edges = []
    for place in product(*(range(n) for n in shape)):
        for axis in range(len(shape)):
            beside = (*place[:axis], place[axis] + 1, *place[axis + 1 :])
            if beside[axis] < shape[axis]:
                edges.append((int(number[place]), int(number[beside])))
    return number.size, edges


def _solve(shape: Shape) -> dict[str, Any]:
    """A random well-conditioned system of this graph: times of both solvers, fill-in and difference."""
    from leastaction.solve.graph import factor_graph, solve_graph
    from leastaction.solve.graph_system import GraphSystem

    rng = np.random.default_rng(0)
    n, edges = lattice(shape)
    system = GraphSystem([_ROWS] * n, edges)
    blocks: dict[tuple[int, int], Any] = {}
    for k in range(n):
        blocks[k, k] = 20.0 * np.eye(_ROWS) + rng.normal(size=(_ROWS, _ROWS))
    for a, b in edges:
        blocks[a, b], blocks[b, a] = rng.normal(size=(_ROWS, _ROWS)), rng.normal(size=(_ROWS, _ROWS))
    F, rhs = system.dense(blocks), rng.normal(size=system.size)
    expected, found = np.linalg.solve(F, rhs), system.solve(blocks, rhs)
    # the compiled parts alone
    A = system.pack(blocks)
    factors, pivot = np.empty_like(A), np.empty(system.size, dtype=np.int64)
    r, c = np.empty(system.size), np.empty(system.size)
    sides, x, work = rhs[None].copy(), np.empty((1, system.size)), np.empty((2, system.size))

    def sparse() -> None:
        factor_graph(system.plan, A, factors, pivot, r, c, False)
        solve_graph(system.plan, A, factors, pivot, r, c, sides, x, work, 0)

    return {
        "nodes": n,
        "fill-in blocks": 2 * len(system.fill_in),
        "sparse (s)": _best(sparse),
        "dense (s)": _best(lambda: np.linalg.solve(F, rhs)),
        "difference": float(np.abs(found - expected).max() / np.abs(expected).max()),
    }


def _best(call: Callable[[], Any], repeats: int = 5) -> float:
    """Smallest time of a call, seconds, by the clock: a dense solver may use several threads."""
    call()
    times = []
    for _ in range(repeats):
        begin, count = time.perf_counter(), 0
        while count == 0 or time.perf_counter() - begin < 0.005:
            call()
            count += 1
        times.append((time.perf_counter() - begin) / count)
    return min(times)


def _claims(rows: Rows, chains: Rows) -> list[Claim]:
    """Statements of the text on Fig. 9."""
    ratio = {(row["graph"], row["nodes"]): row["dense (s)"] / row["sparse (s)"] for row in rows}
    better = sum(value > 1 for value in ratio.values())
    most = {name: max(value for (graph, _), value in ratio.items() if graph == name) for name in _names(rows)}
    crystal = {n: value for (name, n), value in ratio.items() if name == "crystal"}
    worst = max(row["difference"] for row in rows)
    whole = [row for row in chains if not row["stopped"]]
    n, seconds = columns([row for row in whole if row["segments"] > 1], "segments", "time (s)")
    power = slope(n.tolist(), seconds.tolist())
    return [
        Claim(
            "(a) chains of four-link segments, 1000 steps: runs that come to the end; exponent of the time",
            "all; above 1, modest",
            f"{len(whole)} of {len(chains)}; {power:.2f}",
            len(whole) == len(chains) and power < 1.5,
        ),
        Claim(
            "(b-d) sparse outperforms dense in most cases",
            "most",
            f"{better} of {len(rows)}",
            better > len(rows) / 2,
        ),
        Claim(
            "(b-d) often by more than two orders of magnitude: largest factor of each graph",
            "more than 100",
            ", ".join(f"{value:.0f} ({name})" for name, value in most.items()),
            max(most.values()) > 100,
        ),
        Claim(
            "(d) the advantage decreases with the size of a crystal: dense over sparse (nodes)",
            "decreases",
            ", ".join(f"{value:.1f} ({nodes})" for nodes, value in crystal.items()),
            crystal[216] < max(crystal.values()),
        ),
        Claim("(d) dense is slightly better at 216 nodes", "yes", f"{crystal[216]:.2f}", crystal[216] < 1),
        Claim("(b-d) largest relative difference of the solutions", "not given", f"{worst:.0e}", worst < 1e-10),
    ]


def _names(rows: Rows) -> list[str]:
    """Names of the graphs in order."""
    return list(dict.fromkeys(row["graph"] for row in rows))


def _figure(rows: Rows, chains: Rows) -> Any:
    """Segments, and the three graphs."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        (a, b), (c, d) = figure.subplots(2, 2)
        mark = {"marker": "o", "markersize": 3.5}
        n, seconds = columns(chains, "segments", "time (s)")
        a.loglog(n, 1e3 * seconds, label="maximal", **mark, **colour_of(0))
        a.set(title="(a) 1000 steps of segments", xlabel="segments", ylabel="processor time  (ms)")
        for axes, name, letter in zip((b, c, d), _names(rows), "bcd", strict=True):
            for index, solver in enumerate(("sparse", "dense")):
                n, seconds = columns(rows, "nodes", f"{solver} (s)", graph=name)
                axes.loglog(n, 1e6 * seconds, label=solver, **mark, **colour_of(index))
            axes.set(title=f"({letter}) {name}", xlabel="nodes", ylabel="time  (µs)")
        for axes in (a, b, c, d):
            few_ticks(axes)
            axes.legend(loc="upper left")

    return styled(draw, 10.5, 6.4)
