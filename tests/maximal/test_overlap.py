"""Runs that begin with bodies inside the ground or each other: they come apart slowly, and rest."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.maximal import method as maximal_method
from leastaction.model.configuration import difference, retract

METHOD = la.Maximal(solver=la.InteriorPoint(tolerance=1e-12))
SHAPES = {
    "box": la.Box((0.2, 0.2, 0.2)),
    "sphere": la.Sphere(0.1),
    "capsule": la.Capsule(0.1, 0.3),
}
LYING = [np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0]


def on_ground(*names: str) -> la.Model:
    """One body, or two of which the second may touch the first, over ground."""
    m = la.Mechanism("deep")
    for k, name in enumerate(names):
        m.add_body(f"body{k}", shape=SHAPES[name], mass=1.0)
        m.add_joint(f"root{k}", "free", parent="world", child=f"body{k}")
    m.add_ground(friction=0.6)
    if len(names) == 2:
        m.add_contact("body0", "body1", friction=0.6)
    return m.build()


def stacked(model: la.Model, names: tuple[str, ...], depths: tuple[float, ...]) -> la.State:
    """Bodies of height 0.2 on each other, each so deep in what is below it."""
    q, top = [], 0.0
    for name, depth in zip(names, depths, strict=True):
        q += [0.0, 0.0, top - depth + 0.1, *(LYING if name == "capsule" else [1.0, 0.0, 0.0, 0.0])]
        top += 0.2 - depth
    return model.state(np.array(q))


@pytest.mark.parametrize("dt", [0.001, 0.01])
@pytest.mark.parametrize("depth", [0.001, 0.009, 0.02])
@pytest.mark.parametrize("name", SHAPES)
def test_what_begins_in_the_ground_rises_slowly_and_rests(name: str, depth: float, dt: float) -> None:
    model = on_ground(name)
    run = la.simulate(model, stacked(model, (name,), (depth,)), dt=dt, duration=0.6, method="maximal")
    z, rate = run.q[:, 2], np.diff(run.q[:, 2]) / dt
    assert rate.min() > -1e-7  # -2e-9
    # 2 cm/s, or half a second
    assert rate.max() < max(0.02, depth / 0.45) + 1e-5  # 4e-7 above
    assert np.abs(run.v).max() < max(0.02, depth / 0.45)
    assert abs(z[run.t >= 0.5 - 1e-9] - 0.1).max() < 1e-4  # 1e-7
    assert abs(z[-1] - 0.1) < 1e-8  # 8e-10
    assert np.abs(run.v[-1]).max() < 1e-6  # 1e-12
    assert f"'body0' and the ground interpenetrate by {depth:.3g} m" in run.report.notes[0]
    # what gravity takes for the way up, and the motion there
    gained = run.energy.total.max() - run.energy.total[0]
    assert gained < 9.81 * depth + 0.5 * rate.max() ** 2 + 1e-6


@pytest.mark.parametrize("names", [("box", "box"), ("sphere", "box"), ("box", "sphere"), ("sphere", "capsule")])
def test_what_begins_in_another_body_comes_apart(names: tuple[str, ...]) -> None:
    model = on_ground(*names)
    run = la.simulate(model, stacked(model, names, (0.003, 0.018)), dt=0.002, duration=0.6, method="maximal")
    z = run.q[:, [2, 9]]
    rate = np.diff(z, axis=0) / 0.002
    assert rate.min() > -1e-6  # -2e-8
    assert rate.max() < 0.0805  # 0.0800006: each rises by 4 cm/s on what is below it
    assert np.abs(z[-1] - [0.1, 0.3]).max() < 1e-7  # 3e-9
    assert np.abs(run.v[-1]).max() < 1e-6
    assert len(run.report.notes) == 2
    notes = [note.replace("'body1' and 'body0'", "'body0' and 'body1'") for note in run.report.notes]
    assert "'body0' and 'body1' interpenetrate by 0.018 m" in " ".join(notes)


def test_a_robot_that_begins_in_the_ground_is_put_on_it() -> None:
    m = la.models.quadruped()
    m.add_ground(friction=0.8)
    model = m.build()
    x = model.state()
    memory = la.Maximal().start(model, model.state(q=raised(model, x.q, 1.0)))
    lowest = 1.0 - clearance(model, memory["x"])
    run = la.simulate(model, model.state(q=raised(model, x.q, lowest - 0.01)), dt=0.002, duration=0.6, method="maximal")
    found = run.contacts
    assert min(found.gap[0, : found.count[0]]) < -0.0099
    assert all(found.gap[k, : found.count[k]].min(initial=0.0) > -1e-4 for k in range(250, 300))


def raised(model: la.Model, q: np.ndarray, height: float) -> np.ndarray:
    """Coordinates of a floating robot whose trunk is so much higher."""
    out = q.copy()
    out[2] += height
    return out


def clearance(model: la.Model, x: np.ndarray) -> float:
    """Distance of the lowest point from the ground."""
    from leastaction.contact import features, gap
    from leastaction.maximal import step

    table = maximal_method.touch_of(model).table
    P = np.zeros((len(model.system.tree.rows), 12))
    step.row_poses(model.system.tree, x, P)
    ints, floats = np.zeros((table.capacity, 4), dtype=np.int64), np.zeros((table.capacity, 24))
    n = features.find_contacts(table.contacts, P, 10.0, ints, floats)
    phi = np.zeros(n)
    gap.contact_gaps(ints, floats, n, P, phi, *(np.zeros((n, width)) for width in (3, 6, 6, 3, 3)))
    return float(phi.min())


def test_what_is_deeper_than_its_size_is_refused() -> None:
    model = on_ground("sphere")
    with pytest.raises(la.ModelError, match=r"'body0' and the ground .* 0\.12 m .* the sphere of 'body0', 0\.1 m"):
        la.simulate(model, stacked(model, ("sphere",), (0.12,)), dt=0.01, duration=0.1, method="maximal")
    model = on_ground("box", "sphere")
    deep = stacked(model, ("box", "sphere"), (0.0, 0.11))
    with pytest.raises(la.ModelError, match=r"interpenetrate by 0\.11 m .* deeper than .* 0\.1 m"):
        la.simulate(model, deep, dt=0.01, duration=0.1, method="maximal")


def test_a_saved_run_goes_on_at_the_same_speed(tmp_path) -> None:
    model = on_ground("box")
    start = stacked(model, ("box",), (0.018,))
    whole = la.simulate(model, start, dt=0.002, duration=0.4, method="maximal")
    half = la.simulate(model, start, dt=0.002, duration=0.2, method="maximal")
    half.save(tmp_path / "half.npz")
    rest = la.resume(tmp_path / "half.npz", duration=0.2)
    assert np.array_equal(rest.q, whole.q)
    assert rest.report.notes == whole.report.notes


def differences(model: la.Model, x: la.State, dt: float, e: float = 1e-5) -> np.ndarray:
    """Jacobian of a step by central differences."""
    n = model.nv
    J = np.zeros((2 * n, 2 * n))
    for j in range(2 * n):
        ends = []
        for side in (e, -e):
            d = side * np.eye(2 * n)[j]
            ends.append(METHOD.step(model, model.state(retract(model, x.q, d[:n]), x.v + d[n:]), dt))
        J[:n, j] = difference(model, ends[1].q, ends[0].q) / (2 * e)
        J[n:, j] = (ends[0].v - ends[1].v) / (2 * e)
    return J


@pytest.mark.parametrize("depth", [0.0003, 0.001, 0.005])
@pytest.mark.parametrize("name", ["sphere", "box"])
def test_steps_of_deep_bodies_have_derivatives(name: str, depth: float) -> None:
    model = on_ground(name)
    x = stacked(model, (name,), (depth,))
    x = model.state(retract(model, x.q, 1e-4 * np.arange(6)), [0.02, -0.01, 0.03, 0.05, 0.02, 0.005])
    A, J = la.linearize(model, METHOD, x, None, 0.002).A, differences(model, x, 0.002)
    assert np.abs(A - J).max() < 1e-5 * np.abs(J).max()  # 4e-6


def test_no_derivative_where_the_speed_is_that_of_the_start() -> None:
    model = on_ground("sphere")
    with pytest.raises(la.UnsupportedError, match=r"'body0' and the ground interpenetrate by 0\.02 m"):
        la.linearize(model, METHOD, stacked(model, ("sphere",), (0.02,)), None, 0.01)
