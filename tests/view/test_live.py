"""The live viewer: what it puts on the stage, where it listens, and what it does with its controls."""

from __future__ import annotations

import socket
import sys

import numpy as np
import pytest

import leastaction as la
from leastaction.run import observe
from leastaction.view import live, posing
from leastaction.view.page import record_all

pytest.importorskip("viser", reason="the extra 'view' (viser) is not installed")


@pytest.fixture
def stages():
    """A list whose stages are closed at the end."""
    opened: list[live.Stage] = []
    yield opened
    for stage in opened:
        stage.close()


def swing(duration=0.5, method="rk4"):
    model = la.models.double_pendulum().build()
    return la.simulate(model, model.state(q=[1.0, 0.5]), dt=0.01, duration=duration, method=method)


def test_a_run_is_shown_on_this_machine_only(stages, capsys):
    stage = swing().show(block=False, port=8300)
    stages.append(stage)
    assert stage.server.get_host() == "127.0.0.1"
    assert stage.url in capsys.readouterr().out
    # every body has its surfaces
    assert [stage.server.scene.get_handle_by_name(f"/run0/{k}") is not None for k in range(3)] == [True, True, False]
    assert stage.notes == []


def test_a_port_that_is_taken_is_said(stages, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 8340))
        taken.listen()
        stages.append(la.view(swing(), block=False, port=8340))
    assert stages[0].server.get_port() != 8340
    assert "port 8340 is taken" in capsys.readouterr().out


def test_the_player_follows_time(stages):
    run = swing()
    stage = live.Stage("test", "127.0.0.1", 8380)
    stages.append(stage)
    player = live.Player(stage, record_all([run]), "overlay", ["bob2"])
    player.toggle(False)
    player.show(0.25)
    row = int(np.argmin(np.abs(player.recordings[0].t - 0.25)))
    expected = player.recordings[0].positions[row, 1]
    assert np.asarray(player.bodies[0].handles[1].position) == pytest.approx(expected, abs=1e-9)
    assert player.slider.value == pytest.approx(0.25, abs=0.02)
    assert "energy change" in player.words.content
    # beyond the end it stays at the end
    player.show(99.0)
    assert player.time == pytest.approx(0.5)
    assert len(player.traces) == 1


def test_side_by_side_and_one_row(stages):
    runs = [swing(0.0), swing(0.0, "euler")]
    recordings = record_all(runs, layout="side")
    offsets = live.side_by_side(recordings)
    assert offsets[1][0] > np.ptp(recordings[0].positions[0, :, 0])
    stage = live.show_runs(runs, layout="side", block=False, port=8420)
    stages.append(stage)


def test_follow_and_contacts(stages):
    m = la.Mechanism("ball")
    m.add_body("ball", mass=1.0, shape=la.Sphere(0.1))
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(friction=0.5)
    model = m.build()
    start = model.state(q={"root": (0, 0, 0.12, 1, 0, 0, 0)})
    run = la.simulate(model, start, dt=0.005, duration=0.3, method=la.Maximal())
    stage = live.Stage("test", "127.0.0.1", 8460)
    stages.append(stage)
    player = live.Player(stage, record_all([run]), "overlay", ())
    player.toggle(False)
    player.follow.value = True
    player.show(0.25)
    assert player.arrows[0].handle is not None
    player.show(0.0)
    assert player.arrows[0].handle is None


class TestModels:
    def test_sliders(self):
        model = la.models.quadruped().build()
        sliders = posing.sliders_of(model)
        assert len(sliders) == 18
        assert [s.label for s in sliders[:7]] == [
            "root x", "root y", "root z", "root rx", "root ry", "root rz", "FR_hip_joint"
        ]  # fmt: skip
        # the limits of the joint
        assert (sliders[6].low, sliders[6].high) == pytest.approx((np.radians(-46), np.radians(46)), abs=1e-3)
        values = [0.1 * k / 18 for k in range(18)]
        values[posing_index(sliders, "FR_calf_joint")] = -1.0
        q = posing.position(model, sliders, values)
        assert q[model.joint("FR_calf_joint").q] == pytest.approx([-1.0])
        assert np.linalg.norm(q[3:7]) == pytest.approx(1.0)
        back = posing.values_at(sliders, q)
        assert back[:6] == pytest.approx(values[:6], abs=1e-9)

    def test_loops_are_closed(self):
        model = la.models.four_bar().build()
        q, words = posing.closed(model, model.check_q({"crank_hinge": 0.4}))
        assert observe.constraint_error(model, q[None])[0] < 1e-9  # measured 1e-12
        assert words.startswith("The loops are closed")
        far = model.check_q({"crank_hinge": 1.0, "rocker_hinge": 3.0, "coupler_hinge": 3.0})
        assert "loops" in posing.closed(model, far)[1]

    def test_a_model_is_shown_and_moved(self, stages):
        model = la.models.pendulum().build()
        stage = la.view(model, q={"hinge": 0.5}, block=False, port=8500)
        stages.append(stage)
        poser = posing.Poser(stage, model, posing.still(model, model.check_q(None)), model.check_q({"hinge": 0.5}))
        assert poser.wanted() == pytest.approx([0.5])
        poser.handles[0].value = 1.0
        poser.update()
        rotation = np.asarray(poser.bodies.handles[0].wxyz)
        assert 2 * np.arctan2(rotation[2], rotation[0]) == pytest.approx(1.0)
        poser.go_home()
        assert poser.wanted() == pytest.approx([0.0])

    def test_no_shape_is_said(self, stages, capsys):
        m = la.Mechanism("bare")
        m.add_body("link", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.02))
        m.add_joint("hinge", "revolute", parent="world", child="link", axis=(0, 1, 0))
        stages.append(la.view(m.build(), block=False, port=8540))
        assert "body 'link' has no shape" in capsys.readouterr().out


def posing_index(sliders, label):
    return next(k for k, slider in enumerate(sliders) if slider.label == label)


def test_bad_input():
    with pytest.raises(la.ModelError, match="expected a run"):
        la.view(["pendulum"], block=False)
    with pytest.raises(la.ModelError, match="no runs"):
        la.view([], block=False)
    with pytest.raises(la.ModelError, match="cannot listen"):
        swing().show(host="203.0.113.1", block=False)


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(la.ModelError, match=r"leastaction\[view\]"):
        swing().show(block=False)


def test_the_name_of_the_package_is_the_function():
    # leastaction.view is a package and la.view the function, in whichever order they are loaded
    import subprocess

    code = "import leastaction.view.page, leastaction as la; import leastaction.view.live; print(callable(la.view))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "True", done.stderr
