"""Key frames and starts: states by name, where joints start, loops that a key frame leaves open by little."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leastaction as la
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict
from leastaction.run.observe import CLOSABLE


def arm() -> la.Mechanism:
    m = la.Mechanism("arm")
    m.add_body("base", mass=1.0, inertia=(1, 1, 1))
    m.add_body("link", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("root", "free", parent="world", child="base")
    m.add_joint("elbow", "revolute", parent="base", child="link", axis=(0, 1, 0))
    m.add_actuator("motor", "elbow")
    m.add_key_frame("home", {"elbow": 0.3, "root": (0, 0, 2, 2, 0, 0, 0)}, {"elbow": -1.0}, 4.0, {"motor": 2.0})
    m.add_key_frame("there", {"elbow": -0.7})
    return m


def test_a_state_by_name():
    model = arm().build()
    assert model.key_frame_names == ("home", "there")
    state = model.state("home")
    assert state.q.tolist() == [0, 0, 2, 1, 0, 0, 0, 0.3]
    assert state.v.tolist() == [0] * 6 + [-1]
    assert (state.t, state.key) == (4.0, "home")
    # what is given besides wins
    assert model.state("home", {"elbow": 5.0}, 1.0).v[-1] == 5.0
    assert model.state("home", t=1.0).t == 1.0
    assert la.poses(model, "there")["link"][0, 0] == pytest.approx(np.cos(0.7), rel=1e-15)  # measured 1e-16
    assert model.actuate(model.mechanism.key_frames["home"].inputs)[-1] == 2.0
    with pytest.raises(la.ModelError, match=r"state: there is no key frame 'hone'; did you mean 'home'\?"):
        model.state("hone")
    with pytest.raises(la.ModelError, match="there is no key frame 'x'; there are 'home', 'there'"):
        model.state("x")
    with pytest.raises(la.ModelError, match="there is no key frame 'x'; there are none"):
        la.models.pendulum().build().state("x")


def test_where_a_joint_starts():
    m = arm()
    m.joints["root"].start = np.array([0, 0, 1, 0, 0, 0, 2])
    m.joints["elbow"].start = 0.5
    model = m.build()
    assert model.state().q.tolist() == [0, 0, 1, 0, 0, 0, 1, 0.5]
    assert model.state({"elbow": 0.1}).q.tolist() == [0, 0, 1, 0, 0, 0, 1, 0.1]
    # key frames count from there, neutral is neutral
    assert model.state("there").q.tolist() == [0, 0, 1, 0, 0, 0, 1, -0.7]
    assert model.neutral().tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    m.joints["elbow"].start = (1, 2)
    with pytest.raises(la.ModelError, match="joint 'elbow': start: expected 1 numbers"):
        m.build()


def test_files_keep_key_frames_and_starts():
    m = arm()
    m.joints["elbow"].start = 0.5
    again = mechanism_from_dict(mechanism_to_dict(m)).build()
    for name in (None, "home", "there"):
        ours, theirs = m.build().state(name), again.state(name)
        assert np.array_equal(ours.q, theirs.q)
        assert np.array_equal(ours.v, theirs.v)
        assert ours.t == theirs.t
    assert again.mechanism.key_frames["home"].inputs == {"motor": 2.0}


def test_what_is_removed_goes_from_key_frames():
    m = arm()
    kept = m.copy()
    m.remove_joint("elbow")
    m.remove_body("link")
    key = m.key_frames["home"]
    assert (list(key.q), list(key.v), key.inputs) == (["root"], [], {})
    assert m.build().state("home").q.tolist() == [0, 0, 2, 1, 0, 0, 0]
    # a copy is independent, a locked joint has no coordinates
    kept.lock("elbow", 1.0)
    assert kept.build().state("home").q.tolist() == [0, 0, 2, 1, 0, 0, 0]
    assert kept.without("actuators").key_frames["home"].inputs == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": {"elbw": 1.0}}, "q: there is no joint 'elbw'; did you mean 'elbow'"),
        ({"q": {"elbow": (1, 2)}}, "'elbow': expected 1 numbers"),
        ({"v": {"root": 1.0}}, "v of 'root': expected 6 numbers"),
        ({"v": {"elbow": np.nan}}, "v of 'elbow': .*finite"),
        ({"inputs": {"motr": 1.0}}, "inputs: there is no actuator 'motr'; did you mean 'motor'"),
        ({"inputs": {"motor": "1"}}, "input 'motor'"),
        ({"t": np.inf}, "t: must be a finite number"),
        ({"q": [1, 2]}, "q must be a dict by name"),
        ({"name": "home"}, "there is already one of this name"),
    ],
)
def test_bad_key_frames(given, message):
    with pytest.raises(la.ModelError, match=f"key frame '.*': {message}"):
        arm().add_key_frame(**{"name": "new", **given})


def four_bar(offset: float) -> la.Mechanism:
    """A closed four-bar linkage whose key frame is off by an angle."""
    m = la.models.four_bar()
    model = m.build()
    closed = la.project(model, model.state())
    m.add_key_frame("home", {name: closed.q[view.q] + offset for name, view in model.joints.items()})
    return m


def test_loops_that_are_open_by_little_are_closed():
    model = four_bar(1e-3).build()
    state = model.state("home")
    gap = la.simulate(model, state, dt=0.01, duration=0.01).report
    (note,) = gap.notes
    assert re.match(
        r"the loops of the key frame 'home' were open by 0.0\d+ m or rad and are closed by projection", note
    )
    assert gap.loop_gap < 1e-12  # measured 1e-16
    # as by hand
    run = la.simulate(model, state, dt=0.01, duration=0.01)
    assert np.array_equal(run.q[0], la.project(model, state).q)
    # a state of the user, and one that is open by more, are refused as ever
    with pytest.raises(la.ModelError, match="loop joint 'loop' is open by"):
        la.simulate(model, model.state(state.q), dt=0.01, duration=0.01)
    wide = four_bar(50 * CLOSABLE).build()
    with pytest.raises(la.ModelError, match="loop joint 'loop' is open by"):
        la.simulate(wide, wide.state("home"), dt=0.01, duration=0.01)
    # closed ones have no note
    good = four_bar(0.0).build()
    assert la.simulate(good, good.state("home"), dt=0.01, duration=0.01).report.notes == []
