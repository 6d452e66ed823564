"""One-file animations: whole, small, asking for nothing, and refusing what makes no sense."""

from __future__ import annotations

import base64
import json
import re
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import numpy as np
import pytest

import leastaction as la
from leastaction.view.page import payload, write_html
from leastaction.view.serve import serve


def swing(method="rk4", duration=0.5):
    model = la.models.double_pendulum().build()
    return la.simulate(model, model.state(q=[1.0, 0.5]), dt=0.01, duration=duration, method=method)


def data_of(path):
    """The data inside a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])


def numbers(text):
    kind, code = text.split(":")
    return np.frombuffer(base64.b64decode(code), dtype="<" + kind)


def test_the_page_holds_the_run(tmp_path):
    run = swing()
    path = tmp_path / "a.html"
    assert run.to_html(path) == []
    data = data_of(path)
    (only,) = data["runs"]
    t = numbers(only["t"])
    rows = np.searchsorted(run.t, t - 1e-4)
    assert t == pytest.approx(run.t[rows], abs=1e-6)
    shown = numbers(only["positions"]).reshape(len(t), 2, 3)
    assert shown[:, 1] == pytest.approx(run.poses("bob2")[rows, :3, 3], abs=1e-6)
    assert numbers(only["energy"]) == pytest.approx((run.energy.total - run.energy.total[0])[rows], rel=1e-5, abs=1e-12)


def test_nothing_outside_is_named(tmp_path):
    path = tmp_path / "a.html"
    swing().to_html(path)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://|src=|@import|url\(", text)
    assert "default-src 'none'" in text


def test_ten_seconds_of_a_quadruped_are_small(tmp_path):
    model = la.models.quadruped().build()
    run = la.simulate(model, model.state(v={"root": (1, 2, 3, 0, 0, 3)}), dt=0.005, duration=10.0)
    path = tmp_path / "a.html"
    run.to_html(path)
    assert path.stat().st_size < 500_000  # measured 306 kB; 3 MB were asked for
    data = data_of(path)
    # it falls far: the camera follows, and there is no ground to stand on
    assert data["follow"] is True
    assert data["ground"] is None


def test_what_is_held_is_framed_whole():
    model = la.models.double_pendulum().build()
    folded = la.simulate(model, model.state(q=[2.0, 2.5]), dt=0.01, duration=3.0)
    data = payload([folded])
    assert data["follow"] is False
    assert data["ground"] is not None
    assert data["camera"]["radius"] > 1.9  # it reaches two metres from its hinge


def test_long_runs_have_fewer_pictures():
    data = payload([swing(duration=30.0)], rate=1000.0)
    assert len(numbers(data["runs"][0]["t"])) == 3001
    model = la.models.chain(100).build()
    run = la.simulate(model, dt=0.005, duration=10.0)
    assert len(numbers(payload([run], rate=1000.0)["runs"][0]["t"])) == 1200


def test_names_cannot_leave_the_data(tmp_path):
    m = la.Mechanism("</script><script>alert(1)</script>{{style}}")
    m.add_body("b", mass=1.0, shape=la.Sphere(0.1))
    m.add_joint("j", "prismatic", parent="world", child="b")
    path = tmp_path / "a.html"
    la.simulate(m.build(), dt=0.01, duration=0.1).to_html(path)
    text = path.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "alert(1)</script>" not in text
    assert data_of(path)["title"] == m.name


def test_one_row_and_several_runs(tmp_path):
    one = swing(duration=0.0)
    assert one.to_html(tmp_path / "one.html") == []
    data = payload([swing(), swing("euler")], layout="side", labels=["good", "bad"])
    assert [run["label"] for run in data["runs"]] == ["good", "bad"]
    # the two models are one and share their surfaces
    same = swing()
    assert len(payload([same, same])["geometries"]) == len(payload([same])["geometries"])


def test_a_body_without_shape_is_a_note(tmp_path):
    m = la.Mechanism("bare")
    m.add_body("link", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.02))
    m.add_joint("hinge", "revolute", parent="world", child="link", axis=(0, 1, 0))
    notes = la.simulate(m.build(), dt=0.01, duration=0.1).to_html(tmp_path / "a.html")
    assert notes == ["body 'link' has no shape; drawn as the ellipsoid of its inertia."]


def test_a_mechanism_without_a_known_energy_has_none(tmp_path):
    def energy(poses):
        raise la.UnsupportedError("a table of forces has no energy")

    m = la.models.pendulum()
    m.add_force(la.Potential("bob", energy, lambda poses: np.zeros((1, 6))))
    still = la.simulate(m.build(), dt=0.01, duration=0.0)
    assert payload([still])["runs"][0]["energy"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layout": "tiled"}, "'overlay' or 'side'"),
        ({"labels": ["a", "b"]}, "expected 1 labels"),
        ({"rate": 0.0}, "rate must be"),
        ({"traces": ["nose"]}, "no body or frame 'nose'"),
    ],
)
def test_bad_options(tmp_path, options, words):
    with pytest.raises(la.ModelError, match=words):
        swing().to_html(tmp_path / "a.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_bad_runs_and_paths(tmp_path):
    with pytest.raises(la.ModelError, match="no runs"):
        write_html([], tmp_path / "a.html")
    with pytest.raises(la.ModelError, match="expected a run"):
        write_html(["run"], tmp_path / "a.html")
    with pytest.raises(la.ModelError, match="at most 6 runs"):
        write_html([swing(duration=0.0)] * 7, tmp_path / "a.html")
    with pytest.raises(la.ModelError, match=r"must be \.html"):
        swing().to_html(tmp_path / "a.mp4")
    with pytest.raises(la.ModelError, match="does not exist"):
        swing().to_html(tmp_path / "no" / "a.html")


class TestServer:
    def test_page_data_and_errors(self):
        def answer(words):
            if "bad" in words:
                raise la.ModelError("no such thing")
            return {"words": words}

        served = serve("<p>hello</p>", answer, port=7300)
        try:
            assert urlsplit(served.url).hostname == "127.0.0.1"
            assert get(served.url) == "<p>hello</p>"
            assert json.loads(get(served.url + "data?a=1&b=%20x")) == {"words": {"a": "1", "b": " x"}}
            assert json.loads(get(served.url + "data?bad=1")) == {"error": "no such thing"}
            with pytest.raises(urllib.error.HTTPError, match="404"):
                get(served.url + "etc/passwd")
            # a page of another site, by its own name for this machine
            with pytest.raises(urllib.error.HTTPError, match="403"):
                get(served.url, {"Host": "evil.example:7300"})
        finally:
            served.close()

    def test_a_port_that_is_taken(self):
        first = serve("a", lambda words: {}, port=7350)
        second = serve("b", lambda words: {}, port=7350)
        try:
            assert second.url != first.url
            assert "port" in second.note
            assert "is taken" in second.note
            assert (get(first.url), get(second.url)) == ("a", "b")
        finally:
            first.close()
            second.close()

    @pytest.mark.parametrize("port", [-1, 70000, "x", True])
    def test_bad_ports(self, port):
        with pytest.raises(la.ModelError, match="whole number from 0 to 65535"):
            serve("a", lambda words: {}, port=port)

    def test_a_host_that_is_not_here(self):
        with pytest.raises(la.ModelError, match="cannot listen there"):
            serve("a", lambda words: {}, host="203.0.113.1", port=7400)


def get(url, headers=None):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, headers=headers or {}), timeout=10) as reply:
        return reply.read().decode("utf-8")
