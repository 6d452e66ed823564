"""Tables of contacts and plans that are too small: a run goes on from its last good step with more room."""

from dataclasses import replace

import numpy as np
import pytest

import leastaction as la
from leastaction.maximal import method as maximal_method


def box_over_ground():
    m = la.Mechanism("box")
    m.add_body("b", shape=la.Box((0.2, 0.2, 0.1)), mass=1.0)
    m.add_joint("j", "free", parent="world", child="b")
    m.add_ground(friction=0.5)
    return m.build(), np.array([0.0, 0.0, 0.052, 1.0, 0.0, 0.0, 0.0])


def balls_in_a_heap():
    m, q = la.Mechanism("heap"), []
    for k in range(5):
        m.add_body(f"b{k}", shape=la.Sphere(0.1), mass=1.0)
        m.add_joint(f"j{k}", "free", parent="world", child=f"b{k}")
        q.append(
            [0.2 * np.cos(1.7 * k) * (k < 4), 0.2 * np.sin(1.7 * k) * (k < 4), 0.1001 + 0.16 * (k == 4), 1, 0, 0, 0]
        )
    m.add_ground(friction=0.5)
    m.add_contacts(friction=0.3)
    return m.build(), np.concatenate(q)


@pytest.mark.parametrize("scene", [box_over_ground, balls_in_a_heap])
def test_a_run_with_little_room_is_that_with_enough(scene, monkeypatch):
    """The box comes down on four corners with room for one contact; the balls have room for one coupling as well."""
    model, q = scene()
    options = {"dt": 0.005, "duration": 0.1, "method": la.Maximal(), "save_every": 1}
    expected = la.simulate(model, model.state(q), **options)
    full = maximal_method.touch_of(model)
    assert expected.contacts.count.max() >= 4
    small = replace(full, table=replace(full.table, room=1))
    asked = []
    grow = maximal_method.with_rows

    def growing(kept, rows):
        asked.append(rows)
        return grow(kept, rows)

    monkeypatch.setattr(maximal_method, "touch_of", lambda _: small)
    monkeypatch.setattr(maximal_method, "with_rows", growing)
    plan = maximal_method.plan_of(model)
    if plan is not None:
        tight = plan._replace(size=np.array([1, 1]))
        monkeypatch.setattr(maximal_method, "plan_of", lambda _: tight)
    run = la.simulate(model, model.state(q), **options)
    assert max(asked) >= 4
    # what begins anew has its gap within the barrier; measured 1e-10
    assert np.abs(run.q - expected.q).max() < 1e-8
    # the derivative asks for room too
    state = model.state(*(getattr(expected, name)[-1] for name in ("q", "v")))
    monkeypatch.undo()
    wanted = la.linearize(model, la.Maximal(), state, None, 0.005).A
    monkeypatch.setattr(maximal_method, "touch_of", lambda _: small)
    found = la.linearize(model, la.Maximal(), state, None, 0.005).A
    assert np.abs(found - wanted).max() < 1e-6 * np.abs(wanted).max()
