"""The live viewer keeps to itself: words of strangers are no markup, and other sites get nothing."""

from __future__ import annotations

import asyncio
import html
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leastaction as la
from leastaction.view import serve
from leastaction.view.guard import plain

EVIL = [
    '<img src=x onerror="window.pwned=1">',
    '<iframe srcdoc="<script>parent.window.pwned=1</script>"></iframe>',
    "[click](javascript:window.pwned=1)",
    "![x](http://127.0.0.1:9/track.png)",
    "https://evil.example",
    "**bold** _low_ `code` # head\n\n- list\n\n| a | b |",
    "&lt;script&gt; \\<b\\> $x^2$ {1+1}",
]


@pytest.mark.parametrize("text", EVIL)
def test_words_are_shown_as_they_are(text: str) -> None:
    shown = plain(text)
    # nothing of what Markdown, HTML or MDX reads is left, and the words are still those
    assert set("<>[]()!`*_|\\${}\"':/.@~-+=\n").isdisjoint(shown)
    assert html.unescape(shown) == " ".join(text.split())


def test_long_words_are_cut_and_codes_do_not_pass() -> None:
    assert len(html.unescape(plain("x" * 10_000))) < 2100
    assert plain("a\x1b[31m\x9bb\u202ec") == "a &#91;31m b c"


def test_failure_text_of_a_file_is_no_markup(tmp_path: Path) -> None:
    pytest.importorskip("viser", reason="the extra 'view' (viser) is not installed")
    from leastaction.view import live
    from leastaction.view.page import record_all

    model = la.models.pendulum().build()
    path = tmp_path / "run.npz"
    la.simulate(model, model.state(v=[3.0]), dt=0.01, duration=0.1, method="rk4").save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    meta = json.loads(str(arrays["meta"]))
    for text in EVIL:
        meta["report"]["failure"] = text
        np.savez(path, **{**arrays, "meta": np.array(json.dumps(meta))})
        recording = record_all([la.Trajectory.load(path)])[0]
        assert "<" not in live._words(recording, len(recording.t) - 1)
        assert "](" not in live._words(recording, len(recording.t) - 1)
    # codes for a terminal are refused
    meta["report"]["failure"] = "\x9b31m red"
    np.savez(path, **{**arrays, "meta": np.array(json.dumps(meta))})
    with pytest.raises(la.ModelError, match="failure is unknown, or of the wrong kind"):
        la.Trajectory.load(path)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a viewer."""
    pytest.importorskip("viser", reason="the extra 'view' (viser) is not installed")
    stage = la.view(la.models.pendulum().build(), block=False, port=8700)
    yield stage.server.get_port()
    stage.close()


def _status(port: int, headers: str) -> bytes:
    """First line of the answer to a request."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(f"GET / HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode())
        return line.recv(200).split(b"\r\n")[0]


def test_only_its_own_host_is_answered(port: int) -> None:
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert b" 200 " in _status(port, f"Host: {host}\r\n")
    evil = (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", f"127.0.0.1:{port + 1}", "")
    for host in evil:
        assert b" 403 " in _status(port, f"Host: {host}\r\n")
    assert b" 403 " in _status(port, f"Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n")


def test_only_its_own_page_may_open_a_connection(port: int) -> None:
    import viser
    import websockets

    async def received(origin: Any) -> int:
        protocol: Any = f"viser-v{viser.__version__}"
        async with websockets.connect(f"ws://127.0.0.1:{port}/", origin=origin, subprotocols=[protocol]) as line:
            return len(await asyncio.wait_for(line.recv(), 10))

    def asked(origin: Any) -> int:
        # in a thread of its own: tests with a browser leave an event loop running in this one
        with ThreadPoolExecutor(1) as worker:
            return worker.submit(lambda: asyncio.run(received(origin))).result()

    for origin in (None, f"http://127.0.0.1:{port}"):
        assert asked(origin) > 0
    for origin in ("http://evil.example", "null", f"http://localhost:{port}", f"https://127.0.0.1:{port}"):
        with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
            asked(origin)


def test_our_own_pages_answer_likewise() -> None:
    served = serve.serve("<p>page</p>", lambda words: {"words": 1}, port=8760)
    try:
        port = int(served.url.rstrip("/").rpartition(":")[2])
        own = f"Host: 127.0.0.1:{port}\r\n"
        assert b" 200 " in _status(port, own)
        assert b" 200 " in _status(port, f"{own}Origin: http://127.0.0.1:{port}\r\n")
        assert b" 403 " in _status(port, f"{own}Origin: http://evil.example\r\n")
        assert b" 403 " in _status(port, f"Host: evil.example:{port}\r\n")
        assert b" 403 " in _status(port, "Host: 127.0.0.1:1\r\n")
    finally:
        served.close()


def test_a_viewer_for_other_machines_is_found_by_their_names_for_it() -> None:
    assert serve.asked_here("0.0.0.0", 80, "192.168.1.5:80", "http://192.168.1.5:80")
    assert serve.asked_here("0.0.0.0", 80, f"{socket.gethostname()}:80", None)
    assert serve.asked_here("::", 80, "[::1]:80", None)
    assert not serve.asked_here("0.0.0.0", 80, "evil.example:80", None)
    assert not serve.asked_here("0.0.0.0", 80, "192.168.1.5:80", "http://evil.example")
    # the name that was given
    assert serve.asked_here("robot.local", 80, "robot.local:80", "http://robot.local:80")
