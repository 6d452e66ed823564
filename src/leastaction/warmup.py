"""Compiling ahead of time: small mechanisms go once through everything that has compiled code behind it.

There are two forms of every kernel: one for plain mechanisms, one for those with loops or forces on bodies
(``tree.layout.System``). ``JOBS`` lists what is run for each of them.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leastaction import models
from leastaction.dynamics import derivatives, quantities
from leastaction.model.forces import PointForce, PointSpring
from leastaction.model.mechanism import Mechanism
from leastaction.model.model import Model
from leastaction.model.pose import pose
from leastaction.model.shapes import Sphere
from leastaction.run import observe
from leastaction.run.registry import METHODS
from leastaction.run.simulate import simulate
from leastaction.run.steps import ClassicSteps
from leastaction.run.trajectory import Trajectory
from leastaction.sensitivity.linearize import lagrangian_hessian, linearize

LOOPS_ONLY = ("loop_gaps", "loop_wrenches")
"""Entry points that a mechanism without loops never reaches."""


FORMS = ("plain", "with loops and forces")
"""The two forms of the kernels."""


class Done(NamedTuple):
    """What one job did: the form of the kernels, the job, its seconds, the entry points that it had to compile."""

    variant: str
    job: str
    seconds: float
    compiled: tuple[str, ...]


@lru_cache(maxsize=1)
def variants() -> dict[str, Model]:
    """A small model for each form of the kernels."""
    plain = models.spherical_pendulum()
    full = models.four_bar()
    origin, push = np.zeros(3), np.array([0.0, 0.0, 0.1])
    full.add_force(PointForce("rocker", origin, push))
    full.add_force(PointSpring("world", origin, "coupler", origin, stiffness=1.0))
    return dict(zip(FORMS, (plain.build(), full.build()), strict=True))


def _run(model: Model, method: str, control: Any = None) -> Trajectory:
    """Two steps with a method; one that takes no loops runs a tree of the same form of the kernels."""
    if model.features - METHODS[method][0].supports:
        tree = models.chain(2)
        tree.add_force(PointForce("link2", np.zeros(3), np.array([0.0, 0.0, 0.1])))
        model = tree.build()
    return simulate(model, dt=0.001, duration=0.002, method=method, control=control)


def _linearize(model: Model) -> Any:
    """Derivative of one step; a mechanism with loops is replaced by a tree of the same form of the kernels."""
    if model.loop_names:
        tree = models.chain(2)
        tree.add_force(PointForce("link2", np.zeros(3), np.array([0.0, 0.0, 0.1])))
        model = tree.build()
    return linearize(model, "galerkin:2", model.state(), None, 0.001)


def _with_function(model: Model, method: str) -> Trajectory:
    """Two steps under a control that is a function."""
    return _run(model, method, lambda t, state: np.zeros(model.nv))


def _loops_alone(model: Model, method: str) -> Trajectory:
    """Two steps of a mechanism with loops but no forces on bodies, for which Galerkin has a smaller program."""
    return _run(model if model.loop_names else models.four_bar().build(), method)


def _touching(model: Model) -> Trajectory:
    """Two steps of a ball on the ground; in the other form, of two balls that touch each other."""
    m = Mechanism("balls")
    for k, name in enumerate("ab" if model.loop_names else "a"):
        m.add_body(name, mass=1.0, shape=Sphere(0.1))
        m.add_joint(f"root_{name}", "free", parent="world", child=name, parent_frame=pose((0.0, 0.0, 0.1 + 0.2 * k)))
    m.add_ground()
    if model.loop_names:
        m.add_contact("a", "b")
    return simulate(m.build(), dt=0.001, duration=0.002, method="maximal")


def _with_step_control(model: Model) -> Trajectory:
    """A short run that chooses its steps."""
    return simulate(model, dt=ClassicSteps(1e-3, 0.001), duration=0.002, method="rk4")


def _simulations() -> dict[str, Callable[[Model], Any]]:
    """One job for each method."""
    return {f"simulate, {name}": partial(_run, method=name) for name in METHODS}


JOBS: dict[str, Callable[[Model], Any]] = {
    **_simulations(),
    "simulate, adaptive, with a control function": partial(_with_function, method="adaptive"),
    "simulate, rk4, with a control function": partial(_with_function, method="rk4"),
    "simulate, rk4, with step control": _with_step_control,
    "simulate, galerkin:2, loops alone": partial(_loops_alone, method="galerkin:2"),
    "simulate, maximal, in contact": _touching,
    "linearize, galerkin:2": _linearize,
    "Trajectory.energy": lambda model: _run(model, "rk4").energy,
    "Trajectory.momentum": lambda model: _run(model, "rk4").momentum,
    "Trajectory.constraint_error": lambda model: _run(model, "rk4").constraint_error,
    "Trajectory.poses": lambda model: _run(model, "rk4").poses(model.body_names[0]),
    "Trajectory.joint_forces": lambda model: _run(model, "rk4").joint_forces,
    "mass_matrix": lambda model: quantities.mass_matrix(model, None),
    "inverse_dynamics": lambda model: quantities.inverse_dynamics(model, None, None, None),
    "forward_dynamics": lambda model: quantities.forward_dynamics(model, None, None),
    "bias_forces": lambda model: quantities.bias_forces(model, None, None),
    "gravity_forces": lambda model: quantities.gravity_forces(model, None),
    "energy": lambda model: quantities.energy(model, None, None),
    "momentum": lambda model: quantities.momentum(model, None, None),
    "center_of_mass": lambda model: quantities.center_of_mass(model, None),
    "centroidal_map": lambda model: quantities.centroidal_map(model, None),
    "poses": lambda model: quantities.poses(model, None),
    "jacobian": lambda model: quantities.jacobian(model, None, model.body_names[0]),
    "body_twists": lambda model: quantities.body_twists(model, None, None),
    "wrench_forces": lambda model: quantities.wrench_forces(model, None, {model.body_names[0]: np.zeros(6)}),
    "inverse_dynamics_derivatives": lambda model: derivatives.inverse_dynamics_derivatives(model, None, None, None),
    "lagrangian_hessian": lambda model: lagrangian_hessian(model, None),
    "project": lambda model: observe.project(model, model.state()),
}
"""What is run for each form of the kernels."""


def warm_up(console: Any, form: str | None = None, processes: int = 1) -> list[Done]:
    """Run every job for both forms, or for one; a line for each that compiled something, and a summary."""
    from leastaction.jit.cache import cache_folder

    begin, out = time.perf_counter(), []
    work = [(variant, name) for name in JOBS for variant in FORMS if form in (None, variant)]
    with console.status("compiling"):
        for done in _shared(work, processes) if processes > 1 else map(_do, work):
            out.append(done)
            if done.compiled:
                words = f"{done.seconds:6.1f} s  {done.variant}: {done.job} (compiled {', '.join(done.compiled)})"
                console.print(words, markup=False, soft_wrap=True)

    # what it came to
    count = sum(len(done.compiled) for done in out)
    words = f"{count} entry points compiled" if count else "every entry point was already compiled"
    words += f", {time.perf_counter() - begin:.1f} s; cache: {cache_folder()}"
    console.print(words, markup=False, soft_wrap=True)
    return out


def make_store(console: Any, path: Path | None = None, processes: int = 1) -> Path:
    """Compile everything for the baseline of this kind of machine, and pack it into a store; by default the package's.

    Raises:
        ModelError: there is no baseline for this kind of machine.
    """
    from leastaction.jit.store import baseline, store_path, write_store

    path = store_path() if path is None else path
    with tempfile.TemporaryDirectory() as folder:
        # Numba reads its settings once, so that another process compiles
        nothing = Path(folder, "no store")
        more = {"LEASTACTION_CACHE_DIR": folder, "LEASTACTION_STORE": str(nothing), **baseline()}
        command = [sys.executable, "-m", "leastaction", "warmup", "--processes", str(processes)]
        subprocess.run(command, check=True, env={**os.environ, **more})
        count = write_store(Path(folder), path)
    size = path.stat().st_size / 1e6
    console.print(f"{count} programs, {size:.1f} MB: {path}", markup=False, soft_wrap=True)
    return path


def _shared(work: list[tuple[str, str]], processes: int) -> Iterator[Done]:
    """The jobs in several processes, each of which takes the next one; what one compiles the others wait for."""
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(_do, each) for each in work]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _do(work: tuple[str, str]) -> Done:
    """One job for one form."""
    # compiling makes millions of objects that live on: looking through them again and again costs a seventh of its time
    gc.set_threshold(100_000, 10, 10)
    variant, name = work
    return _time(variant, name, JOBS[name], variants()[variant])


def compile_times() -> dict[str, float]:
    """Seconds of every job that compiles something, in a fresh process with an empty cache: "form: entry points"."""
    code = "import json, io, rich.console, leastaction.warmup as w; c = rich.console.Console(file=io.StringIO()); "
    code += "print(json.dumps([d for d in w.warm_up(c) if d.compiled]))"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LEASTACTION_CACHE_DIR": folder}
        text = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True).stdout
    return {f"{variant}: {', '.join(compiled)}": seconds for variant, _, seconds, compiled in json.loads(text)}


def _time(variant: str, name: str, job: Callable[[Model], Any], model: Model) -> Done:
    """Run one job; compare the counts of compilations before and after."""
    before = _misses()
    begin = time.perf_counter()
    job(model)
    seconds = time.perf_counter() - begin
    compiled = tuple(entry.__name__ for entry, count in _misses().items() if count > before.get(entry, 0))
    return Done(variant, name, seconds, compiled)


def _misses() -> dict[Any, int]:
    """For the function of each entry point how often it was compiled because it was not in the cache."""
    from leastaction.jit.decorators import ENTRIES

    return {entry.py_func: sum(entry.stats.cache_misses.values()) for entry in ENTRIES}


def cached() -> dict[str, list[Path]]:
    """Entry points in the cache folder of the present sources, with the file of each compiled form."""
    from leastaction.jit.cache import compiled_files

    out: dict[str, list[Path]] = {}
    for file in compiled_files():
        # module-hash/file.function-hash.python.number.nbc
        module, function = file.parent.name.rpartition("-")[0], file.name.partition("-")[0].partition(".")[2]
        out.setdefault(f"{module}.{function}", []).append(file)
    return out


def show_cache(console: Any) -> None:
    """Print what is compiled, and where it lies."""
    from rich.table import Table

    from leastaction.jit.cache import cache_folder

    found = cached()
    if found:
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("entry point")
        table.add_column("forms", justify="right")
        table.add_column("kB", justify="right")
        for name, files in found.items():
            table.add_row(name, str(len(files)), f"{sum(file.stat().st_size for file in files) / 1000:.0f}")
        console.print(table)
    console.print(f"{len(found)} entry points; cache: {cache_folder()}", markup=False, soft_wrap=True)
