"""Pages in a real browser: they play, their controls work, and they ask for nothing outside."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.view.page import write_html

RUNS: dict[str, la.Trajectory] = {}


def four_bar(method):
    if method not in RUNS:
        model = la.models.four_bar().build()
        start = la.project(model, model.state(v={"crank_hinge": 8.0}))
        RUNS[method] = la.simulate(model, start, dt=0.005, duration=8.0, method=method)
    return RUNS[method]


@pytest.fixture
def playing(tab, tmp_path):
    """A file with two runs side by side, open and playing."""
    path = tmp_path / "a.html"
    runs = [four_bar("galerkin:4"), four_bar("rk4")]
    write_html(runs, path, layout="side", traces={"coupler": (0.1, 0.0, 0.05)})
    tab.open(path.as_uri())
    tab.wait("window.viewer && viewer.frames > 1 && viewer.time > 0.05")
    return tab


def test_a_file_plays_from_disk_and_asks_for_nothing(playing, changed):
    before = playing.pixels()
    t = playing.viewer("time")
    playing.page.wait_for_timeout(300)
    after = playing.pixels()
    assert playing.viewer("time") != t
    assert changed(before, after) > 0.002  # measured 0.01 to 0.03: the bars and their shadows
    # the page itself is all that was asked for
    assert [url for url in playing.requests if not url.startswith("data:")] == [playing.page.url]
    assert playing.page.url.startswith("file:")


def test_both_runs_are_lit_framed_and_labelled(playing):
    playing.page.evaluate("viewer.playing = false; viewer.seek(6.0)")
    # below the labels
    picture = playing.pixels()[44:].astype(int)
    half = picture.shape[1] // 2
    for part in (picture[:, :half], picture[:, half:]):
        # blue and orange bars, light and dark sides of them, away from the edges
        blue = (part[..., 2] > part[..., 0] + 60) & (part[..., 2] > 90)
        orange = (part[..., 0] > part[..., 2] + 90) & (part[..., 1] > 40)
        for mask in (blue, orange):
            rows, columns = np.nonzero(mask)
            assert len(rows) > 150
            assert rows.min() > 5
            assert rows.max() < part.shape[0] - 20
            assert columns.min() > 20
            assert columns.max() < part.shape[1] - 20
        assert np.ptp(part[orange][:, 0]) > 60
    labels = playing.page.locator("#labels > div").all_inner_texts()
    assert labels == ["galerkin:4, dt = 0.005 s", "rk4, dt = 0.005 s"]
    assert playing.page.locator("#charts figure").count() == 2
    numbers = playing.page.locator("#numbers").inner_text()
    assert "loop gap now" in numbers
    playing.screenshot("four_bar")


def test_play_pause_reset_speed_and_slider(playing, changed):
    page = playing.page
    # pause: nothing moves any more
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    t = playing.viewer("time")
    before = playing.pixels()
    page.wait_for_timeout(250)
    assert playing.viewer("time") == t
    assert changed(before, playing.pixels()) == 0.0
    # the slider leads to its time, and the picture with it
    page.locator("#slider").fill("750")
    assert playing.viewer("time") == pytest.approx(6.0, abs=0.01)
    assert page.inner_text("#clock") == "6.00 of 8 s"
    assert changed(before, playing.pixels()) > 0.002
    # reset leads to the start
    page.click("#reset")
    assert playing.viewer("time") == 0.0
    # ten times as fast is faster
    page.select_option("#speed", "10")
    page.click("#play")
    playing.wait("viewer.time > 1.5", 10)
    assert page.inner_text("#play") == "Pause"


def test_mouse_keys_and_switches(playing, changed):
    page = playing.page
    page.evaluate("viewer.playing = false; viewer.seek(3.0)")
    before = playing.pixels()
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + 200, box["y"] + 200
    # turn, shift, come nearer: each changes the picture
    for button, key in (("left", None), ("left", "Shift")):
        if key:
            page.keyboard.down(key)
        page.mouse.move(x, y)
        page.mouse.down(button=button)
        page.mouse.move(x + 80, y + 40)
        page.mouse.up(button=button)
        if key:
            page.keyboard.up(key)
        after = playing.pixels()
        assert changed(before, after) > 0.01
        before = after
    page.mouse.wheel(0, 300)
    page.wait_for_timeout(50)
    assert changed(before, playing.pixels()) > 0.01
    page.click("#reset")
    page.evaluate("viewer.seek(3.0)")
    before = playing.pixels()
    for name in ("frames", "com"):
        page.check(f"#show-{name}")
        after = playing.pixels()
        assert changed(before, after) > 0.0002
        before = after
    page.uncheck("#show-traces")
    assert changed(before, playing.pixels()) > 0.0002
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    assert playing.viewer("time") == pytest.approx(3.08)
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Pause"


def test_overlay_and_narrow_pages(tab, tmp_path):
    path = tmp_path / "a.html"
    write_html([four_bar("galerkin:4"), four_bar("rk4")], path)
    narrow = {"width": 420, "height": 800}
    tab.page.set_viewport_size(narrow)
    tab.open(path.as_uri())
    tab.wait("window.viewer && viewer.frames > 0")
    # nothing is wider than the page
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 420
    tab.screenshot("overlay_narrow", narrow)


def test_one_row(tab, tmp_path):
    model = la.models.quadruped().build()
    stance = {
        f"{leg}_{part}_joint": x for leg in ("FR", "FL", "RR", "RL") for part, x in (("thigh", 0.9), ("calf", -1.8))
    }
    path = tmp_path / "a.html"
    la.simulate(model, model.state(q=stance), dt=0.01, duration=0.0).to_html(path)
    tab.open(path.as_uri())
    tab.wait("window.viewer && viewer.frames > 0")
    assert tab.page.is_disabled("#slider")
    assert tab.page.inner_text("#notes") == "The run has one row: there is nothing to play."
    tab.screenshot("one_row")


def test_a_robot_with_meshes(tab, tmp_path):
    pytest.importorskip("trimesh")
    try:
        data = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    folder = Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    m = la.load(folder / "talos_data/robots/talos_full_v2.urdf", allow=("mimic",))
    model = m.without("friction", "damping").build()
    path = tmp_path / "a.html"
    run = la.simulate(model, dt=0.005, duration=0.5)
    assert run.to_html(path, traces=["gripper_left_base_link"]) == []
    assert path.stat().st_size < 12_000_000  # measured 4.5 MB
    tab.open(path.as_uri())
    tab.wait("window.viewer && viewer.frames > 0")
    tab.page.evaluate("viewer.playing = false; viewer.seek(0.3)")
    picture = tab.pixels().astype(int)
    # the arm is light and dark on its own, and not the colour of the ground
    assert (picture.max(axis=2) < 150).mean() > 0.01
    tab.screenshot("robot_with_meshes")


@pytest.fixture
def demo(tmp_path):
    """The demo, served; its address, and when it was started."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "leastaction", "demo", "--browser", "--port", "7500"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "DISPLAY": "", "WAYLAND_DISPLAY": ""},
    )
    url = None
    while url is None:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        url = found and found[0]
    yield url, started, process
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_the_demo(tab, demo, changed):
    url, started, process = demo
    tab.open(url)
    tab.wait("window.viewer && viewer.runs.length == 2 && viewer.frames > 2 && viewer.time > 0.02", 240)
    seconds = time.monotonic() - started
    # measured 3.4 to 4.2 s warm, on two cores that had other work too; where no cache is warm, a minute more
    print(f"first moving picture after {seconds:.1f} s")
    before = tab.pixels()
    tab.page.wait_for_timeout(300)
    assert changed(before, tab.pixels()) > 0.002
    tab.page.evaluate("viewer.playing = false; viewer.seek(14.0)")
    tab.screenshot("demo")
    # another mechanism, then a method that cannot take it
    tab.page.select_option("#mechanism", "bricard")
    tab.wait("document.title.includes('Bricard') && viewer.frames > 5", 240)
    assert tab.page.input_value("#method") == "galerkin:4"
    tab.page.select_option("#method", "lie-trapezoid")
    tab.wait("!document.getElementById('message').hidden")
    assert "lie-trapezoid cannot honour" in tab.page.inner_text("#message")
    tab.page.select_option("#method", "rk4")
    tab.wait("document.getElementById('message').hidden && viewer.runs.length == 1")
    # everything came from the demo itself
    assert all(request.startswith((url, "data:")) for request in tab.requests)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "ended." in out
    assert "Traceback" not in err


def test_the_live_viewer(tab, changed):
    pytest.importorskip("viser", reason="the extra 'view' (viser) is not installed")
    stage = la.view(four_bar("galerkin:4"), traces=["coupler"], block=False, port=8600)
    try:
        tab.open(stage.url)
        tab.page.get_by_role("button", name="Pause").wait_for(timeout=60000)
        tab.page.wait_for_timeout(1500)
        before = tab.pixels("canvas")
        # thin bars move; how far between two pictures is up to the machine
        for _ in range(10):
            tab.page.wait_for_timeout(700)
            moved = changed(before, tab.pixels("canvas"))
            if moved > 0.001:
                break
        assert moved > 0.001
        tab.page.get_by_role("button", name="Pause").click()
        tab.page.get_by_role("button", name="Play").wait_for()
        tab.screenshot("live_viewer")
        host = stage.url.removeprefix("http://")
        assert all(re.match(rf"(http|ws|blob:http)://{host}|data:|blob:", request) for request in tab.requests)
    finally:
        stage.close()


def test_without_webgl_the_page_says_so(browser, tmp_path):
    path = tmp_path / "a.html"
    four_bar("rk4").to_html(path)
    page = browser.new_page()
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(path.as_uri())
    assert "no WebGL 2" in page.inner_text("#message")
    page.close()
