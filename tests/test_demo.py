"""The demo: the page it serves, what it prints, and what it does where there is no display."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
import time
import urllib.request

import pytest
from rich.console import Console

import leastaction as la
from leastaction import demo
from leastaction.cli import run_app
from leastaction.cli.demo import has_display


def quiet():
    return Console(file=io.StringIO(), width=180)


def test_every_mechanism_starts_closed():
    for setting in demo.SETTINGS.values():
        model, start = setting.start()
        still = la.simulate(model, start, dt=setting.dt, duration=0.0, method=setting.method)
        assert still.constraint_error[0] < 1e-11  # measured 1e-12
        assert setting.method in demo.METHODS


def test_the_quadruped_lands_alone():
    # RK4 knows no contact, so there is nothing beside it
    (run,) = demo.simulate_pair(demo.SETTINGS["quadruped"], "maximal", duration=1.0)
    assert run.report.failure is None
    assert run.contacts.count[0] == 0
    assert run.contacts.count[-1] >= 3


def test_rk4_lets_the_loop_open_and_galerkin_does_not():
    lines = [demo.Line.of(run) for run in demo.simulate_pair(demo.SETTINGS["four_bar"], "galerkin:4")]
    ours, rk4 = lines
    assert ours.gap < 1e-12  # measured 2.4e-14
    assert rk4.gap > 0.02  # measured 0.031
    assert ours.drift < 1e-5 < 0.01 < rk4.drift  # measured 3.4e-6 and 1.6e-2
    assert len(demo.simulate_pair(demo.SETTINGS["four_bar"], "rk4", duration=0.1)) == 1


def test_a_run_that_blows_up_is_a_line_like_another():
    run = demo.simulate_pair(demo.SETTINGS["four_bar"], "euler")[0]
    line = demo.Line.of(run)
    assert line.stopped is not None
    assert line.t < 6.0  # measured 5.515
    console = quiet()
    console.print(demo.comparison([line]))
    assert "stopped: " in console.file.getvalue()


def test_answers_of_the_page():
    answers = demo.Answers()
    data = answers.answer({"mechanism": "four_bar", "method": "galerkin:4"})
    assert [run["label"] for run in data["runs"]] == ["galerkin:4, dt = 0.005 s", "rk4, dt = 0.005 s"]
    assert len(json.dumps(data)) < 1_000_000
    assert answers.answer({"mechanism": "four_bar", "method": "galerkin:4"}) is data
    with pytest.raises(la.ModelError, match="no mechanism '/etc/passwd'"):
        answers.answer({"mechanism": "/etc/passwd", "method": "rk4"})
    with pytest.raises(la.UnsupportedError, match="lie-trapezoid"):
        answers.answer({"mechanism": "four_bar", "method": "lie-trapezoid"})


def test_the_page_is_served_while_the_table_goes_on():
    console = quiet()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 7600))
        taken.listen()
        options = {"host": "127.0.0.1", "port": 7600, "open_browser": False, "until": 1.0}
        worker = threading.Thread(target=demo.run_page, args=(console,), kwargs=options)
        worker.start()
        url = None
        while url is None and worker.is_alive():
            found = re.search(r"http://127\.0\.0\.1:\d+/", console.file.getvalue())
            url = found and found[0]
            time.sleep(0.02)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        page = opener.open(url, timeout=10).read().decode()
        worker.join()
    assert "<canvas" in page
    said = console.file.getvalue()
    assert "port 7600 is taken" in said
    assert "what should stay zero" in said


def test_without_a_display_it_ends(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert has_display() is False
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run_app(["demo"]) == 0
    assert (tmp_path / "out" / "demo.html").is_file()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_display() is True


def test_a_bad_port_is_one_line(capsys):
    assert run_app(["demo", "--browser", "--port", "99999"]) == 2
    assert "whole number from 0 to 65535" in capsys.readouterr().err


def test_opens_the_browser_where_there_is_a_display(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    demo.run_page(quiet(), host="127.0.0.1", port=7650, open_browser=True, until=0.0)
    assert len(opened) == 1
    assert opened[0].startswith("http://127.0.0.1:76")
