"""Speed of ``Maximal``: chains against ``Galerkin(2)``, loops, contact against MuJoCo; ``GraphSystem`` against splu."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.bench import main as bench
from leastaction.galerkin.method import Galerkin
from leastaction.maximal.method import Maximal
from leastaction.methods.base import Clock, Control, Method
from leastaction.model.mechanism import Mechanism
from leastaction.model.model import Model, State
from leastaction.model.pose import pose
from leastaction.model.shapes import Sphere
from leastaction.run.simulate import simulate
from leastaction.solve.solvers import InteriorPoint, Newton

LENGTHS = (10, 100, 1000)
RADIUS = 0.25
"""Of the spheres of Bruedigam et al. 2023, Fig. 8, metres."""

STIFFNESS = 60.0
"""Springs in the legs of the standing quadruped, N m/rad."""


def step_time(model: Model, state: State, method: Method, dt: float, steps: int, skip: int = 0) -> tuple[float, float]:
    """Microseconds and iterations of a step, the smallest over repeats; ``skip`` steps come before."""
    idle, clock = Control(np.zeros((0, model.nv))), Clock(0.0, dt)
    memory = method.start(model, state)
    bench.whole(method.rollout(model, memory, clock, 0, skip, max(skip, 1), idle))
    found: list[Any] = []

    def roll() -> None:
        fresh = {name: array.copy() for name, array in memory.items()}
        found.append(bench.whole(method.rollout(model, fresh, clock, skip, steps, steps, idle)))

    roll()
    seconds = bench.best(roll, least=3) / steps
    return 1e6 * seconds, found[-1].counters["iterations"] / max(found[-1].steps, 1)


def sphere_chain(n: int) -> Mechanism:
    """Spheres on ball joints over the ground (Bruedigam et al. 2023, Fig. 8)."""
    m = Mechanism("spheres")
    for i in range(n):
        m.add_body(f"s{i}", mass=1.0, shape=Sphere(RADIUS))
        if i == 0:
            m.add_joint("root", "free", parent="world", child="s0")
        else:
            here, there = pose((RADIUS, 0, 0)), pose((-RADIUS, 0, 0))
            before, name = f"s{i - 1}", f"s{i}"
            m.add_joint(f"j{i}", "spherical", parent=before, child=name, parent_frame=here, child_frame=there)
    m.add_ground(friction=0.3)
    return m


def mujoco_spheres(n: int, dt: float) -> Any:
    """The same chain in MuJoCo with its default parameters of contact; neighbours do not collide."""
    import mujoco

    parts = []
    for i in range(n):
        place = "0 0 0.5" if i == 0 else f"{2 * RADIUS} 0 0"
        joint = "<freejoint/>" if i == 0 else f'<joint type="ball" pos="{-RADIUS} 0 0"/>'
        ball = f'<geom type="sphere" size="{RADIUS}" mass="1" friction="0.3" contype="1" conaffinity="2"/>'
        parts.append(f'<body pos="{place}">{joint}{ball}')
    ground = '<geom type="plane" size="100 100 1" friction="0.3" contype="2" conaffinity="1"/>'
    xml = f'<mujoco><option timestep="{dt}"/><worldbody>{ground}{"".join(parts)}{"</body>" * n}</worldbody></mujoco>'
    return mujoco.MjModel.from_xml_string(xml)


def mujoco_step_time(peer: Any, skip: int, steps: int) -> tuple[float, float]:
    """Microseconds of a step after ``skip`` steps, the smallest over repeats, and the lowest height of a body."""
    import mujoco

    data = mujoco.MjData(peer)
    data.qvel[0], data.qvel[1] = 1.0, 0.5
    for _ in range(skip):
        mujoco.mj_step(peer, data)
    q, v, lowest = data.qpos.copy(), data.qvel.copy(), [np.inf]

    def roll() -> None:
        data.qpos[:], data.qvel[:] = q, v
        for _ in range(steps):
            mujoco.mj_step(peer, data)
            lowest[0] = min(lowest[0], float(data.xpos[1:, 2].min()))

    return 1e6 * bench.best(roll, least=3) / steps, lowest[0]


def standing_quadruped() -> tuple[Model, State]:
    """The A1 on four points under each foot, with its 24 joint limits enforced and springs that hold its stance."""
    from leastaction import models

    m = models.quadruped()
    points = 0.01 * np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]) - [0, 0, 0.02]
    stance = {"hip": 0.0, "thigh": 0.8, "calf": -1.6}
    for name in m.bodies:
        if name.endswith("_foot"):
            m.add_contact(name, "world", friction=0.8, points=points)
        else:
            m.exclude_contact(name, "world")
    m.add_ground(friction=0.8)
    start = {}
    for name, joint in m.joints.items():
        part = next((part for part in stance if f"_{part}" in name), None)
        if part is not None and joint.nv == 1:
            joint.stiffness, joint.damping, joint.rest = (
                np.array([STIFFNESS]),
                np.array([2.0]),
                np.array([stance[part]]),
            )
            start[name] = stance[part]
    m.enforce_limits()
    model = m.build()
    start["root"] = [0, 0, 0.32, 1, 0, 0, 0]  # type: ignore[assignment]
    return model, model.state(start)


def bench_maximal() -> list[bench.Row]:
    """Steps of ``Maximal``: smooth chains, loops, contact; and the block-sparse solver beside SciPy's splu."""
    return [*_chains(), *_loops(), *_contacts(), *_graphs()]


def _chains() -> list[bench.Row]:
    from leastaction import models

    out, times = [], []
    for n in LENGTHS:
        # Newton's method in minimal coordinates loses its way in a chain of 1000 links with 1 ms
        model, steps, dt = models.chain(n).build(), max(20, 20_000 // n), 0.001 if n < 1000 else 0.0001
        state = model.state(*bench.start_of_chain(n))
        mine, count = step_time(model, state, Maximal(solver=Newton(1e-10)), dt, steps)
        theirs, other = step_time(model, state, Galerkin(2, solver=Newton(1e-10)), dt, steps)
        times.append(mine)
        what = f"maximal step n={n}, {1e3 * dt:g} ms, {count:.2f} iterations; galerkin:2, {other:.2f}"
        out.append(bench.Row("maximal", what, "us", mine, theirs, mine / theirs, 1.2))
    slope = float(np.polyfit(np.log(LENGTHS), np.log(times), 1)[0])
    what = f"exponent of the step, n = {LENGTHS[0]} to {LENGTHS[-1]}"
    return [*out, bench.Row("maximal", what, "", slope, None, slope, 1.05)]


def _loops() -> list[bench.Row]:
    """Ten seconds of 16 segments of four links, closed to 1e-9, also by MuJoCo; and 16 four-bars side by side."""
    from leastaction import models
    from leastaction.papers import peer_mujoco
    from leastaction.papers.bruedigam2020_fig6 import TILT
    from leastaction.papers.bruedigam_chains import LENGTH, MASS, WIDTH, segments

    chain, steps, dt = segments(16, tilt=TILT), 1000, 0.01
    method = Maximal(solver=Newton(2e-11))
    mine, count = step_time(chain, chain.state(), method, dt, steps)
    open_by = simulate(chain, dt=dt, duration=steps * dt, method=method).constraint_error.max()
    peer = peer_mujoco.segments_model(16, np.pi / 4, TILT, (LENGTH, MASS, WIDTH), dt)
    theirs, gap = mujoco_chain_time(peer, steps), peer_mujoco.swing_segments(peer, steps)[1].max()
    what = f"maximal step of 16 four-link segments, {count:.2f} iterations, gaps {open_by:.0e} m; "
    what += f"MuJoCo, gaps {gap:.0e} m"
    out = [bench.Row("maximal", what, "us", mine, theirs, mine / theirs, 1.0)]
    model = models.n_four_bar(16).build()
    rates = np.array([-1.0 if name.startswith("base") else 1.0 for name in model.joint_names])
    mine, count = step_time(model, model.state(v=rates), Maximal(solver=Newton(1e-10)), 0.01, 100)
    what = f"maximal step of 16 four-bars side by side, {count:.2f} iterations"
    return [*out, bench.Row("maximal", what, "us", mine, None, mine, None)]


def mujoco_chain_time(peer: Any, steps: int) -> float:
    """Microseconds of a step from the start, the smallest over repeats, in one call and without energies."""
    import mujoco

    peer.opt.enableflags = 0
    data = mujoco.MjData(peer)

    def roll() -> None:
        mujoco.mj_resetData(peer, data)
        mujoco.mj_step(peer, data, steps)

    seconds = bench.best(roll, least=3) / steps
    peer.opt.enableflags = int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    return 1e6 * seconds


def _contacts() -> list[bench.Row]:
    out = []
    model, state = standing_quadruped()
    mine, count = step_time(model, state, Maximal(solver=InteriorPoint(1e-9)), 0.005, 200, 200)
    what = f"maximal step of a quadruped, 16 contacts, 24 limits, {count:.1f} iterations"
    out.append(bench.Row("maximal", what, "us", mine, None, mine, 40.0))
    few, many = (_block_time(n) for n in (2, 6))
    each = (many - few) / (36 - 4)
    out.append(
        bench.Row("maximal", "one more contact in an iteration, 4 to 36 under a block", "us", each, None, each, 0.3)
    )
    for n in (10, 40):
        model = sphere_chain(n).build()
        state = model.state({"root": [0, 0, 0.5, 1, 0, 0, 0]}, {"root": [0, 0, 0, 1.0, 0.5, 0]})
        mine, count = step_time(model, state, Maximal(), 0.01, 100, 40)
        theirs, lowest = mujoco_step_time(mujoco_spheres(n, 0.01), 40, 100)
        sunk = 1e3 * (RADIUS - lowest)
        what = f"maximal step of {n} spheres, {count:.1f} iterations; MuJoCo, which sinks {sunk:.1f} mm"
        out.append(bench.Row("maximal", what, "us", mine, theirs, mine / theirs, 1.0 if n == 40 else None))
    return out


def _block_time(n: int) -> float:
    """Microseconds of an iteration for a block that slides on n^2 points."""
    side = np.linspace(-0.5, 0.5, n)
    x, y = np.meshgrid(side, side)
    m = Mechanism("block")
    m.add_body("block", mass=1.0, inertia=(0.1, 0.1, 0.15))
    m.add_joint("root", "free", parent="world", child="block")
    m.add_ground(friction=0.3)
    m.add_contact("block", "world", friction=0.3, points=np.stack([x.ravel(), y.ravel(), np.full(n * n, -0.1)], axis=1))
    model = m.build()
    state = model.state({"root": [0, 0, 0.1, 1, 0, 0, 0]}, {"root": [0, 0, 0.2, 3.0, 0.5, 0]})
    mine, count = step_time(model, state, Maximal(), 0.01, 50, 5)
    return mine / count


def _graphs() -> list[bench.Row]:
    """Chains of bodies (6 rows) and joints (5 or 3 rows): factor and solve, growth, and ball joints against hinges."""
    out, times = [], {}
    for word, rows in (("revolute", 5), ("ball", 3)):
        for n in LENGTHS:
            times[word, n], theirs = _graph_times(n, rows, n == 100)
            if n == 100:
                what = f"GraphSystem factor and solve, {n} links with {word} joints, splu"
                out.append(bench.Row("maximal", what, "us", times[word, n], theirs, times[word, n] / theirs, 0.1))
        slope = float(np.polyfit(np.log(LENGTHS), np.log([times[word, n] for n in LENGTHS]), 1)[0])
        what = f"exponent of GraphSystem with {word} joints, n = {LENGTHS[0]} to {LENGTHS[-1]}"
        out.append(bench.Row("maximal", what, "", slope, None, slope, 1.1))
    ball, hinge = times["ball", 100], times["revolute", 100]
    what = "GraphSystem, 100 links: ball joints against revolute ones"
    return [*out, bench.Row("maximal", what, "us", ball, hinge, ball / hinge, 1.0)]


def _graph_times(n: int, rows: int, peer: bool) -> tuple[float, float]:
    """Microseconds of factor and solve for n links, ours and splu's (infinite unless asked for)."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    from leastaction.solve.graph import solve_once
    from leastaction.solve.graph_system import GraphSystem

    rng = np.random.default_rng(1)
    sizes = [6, rows] * n
    edges = [(k, k + 1) for k in range(2 * n - 1)]
    system = GraphSystem(sizes, edges, constraints=range(1, 2 * n, 2))
    blocks: dict[tuple[int, int], Any] = {}
    for k, size in enumerate(sizes):
        noise = rng.normal(size=(size, size))
        blocks[k, k] = noise @ noise.T + np.eye(size) if k % 2 == 0 else np.zeros((size, size))
    for a, b in edges:
        blocks[a, b] = rng.normal(size=(sizes[a], sizes[b]))
        blocks[b, a] = blocks[a, b].T
    rhs = rng.normal(size=sum(sizes))
    packed, pivot, big = system.pack(blocks), np.zeros(system.size, dtype=np.int64), np.zeros(system.size)
    mine = 1e6 * bench.best(lambda: solve_once(system.plan, packed.copy(), pivot, big, rhs.copy()))
    if not peer:
        return mine, np.inf
    dense = csc_matrix(system.dense(blocks))
    return mine, 1e6 * bench.best(lambda: splu(dense).solve(rhs), least=20)
