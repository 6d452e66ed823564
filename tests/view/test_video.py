"""Videos: made where there are a browser and ffmpeg, refused in one line where not."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import leastaction as la
from leastaction.view import video


def swing(duration=0.4):
    model = la.models.double_pendulum().build()
    return la.simulate(model, model.state(q=[1.0, 0.5]), dt=0.01, duration=duration)


def test_a_video(tmp_path):
    pytest.importorskip("playwright", reason="videos need playwright (extra 'video')")
    if video.find_browser() is None or shutil.which("ffmpeg") is None:
        pytest.skip("videos need a browser and ffmpeg; on Debian: apt-get install chromium ffmpeg")

    # also where an event loop runs, as in a notebook
    async def film() -> None:
        swing().to_video(tmp_path / "a.mp4", size=(320, 240), rate=10, charts=False)

    with ThreadPoolExecutor(1) as worker:
        worker.submit(asyncio.run, film()).result()
    words = ["-v", "error", "-count_frames", "-select_streams", "v:0"]
    words += ["-show_entries", "stream=width,height,nb_read_frames", "-of", "csv=p=0", "a.mp4"]
    told = subprocess.run(["ffprobe", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert told.stdout.strip() == "320,240,5"


class TestRefusals:
    def test_ending(self, tmp_path):
        with pytest.raises(la.ModelError, match=r"must be \.mp4, \.webm, \.gif"):
            swing().to_video(tmp_path / "a.avi")

    def test_no_ffmpeg(self, tmp_path, monkeypatch):
        monkeypatch.setattr(video.shutil, "which", lambda name: None)
        with pytest.raises(la.ModelError, match="ffmpeg, which was not found"):
            swing().to_video(tmp_path / "a.mp4")

    def test_no_browser(self, tmp_path, monkeypatch):
        pytest.importorskip("playwright", reason="videos need playwright (extra 'video')")
        monkeypatch.delenv("LEASTACTION_BROWSER", raising=False)
        monkeypatch.setattr(video.shutil, "which", lambda name: "ffmpeg" if name == "ffmpeg" else None)
        with pytest.raises(la.ModelError, match=r"none of chromium.* was found"):
            swing().to_video(tmp_path / "a.mp4")
        assert list(tmp_path.iterdir()) == []

    def test_no_playwright(self, tmp_path, monkeypatch):
        monkeypatch.setattr(video.shutil, "which", lambda name: name)
        monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
        with pytest.raises(la.ModelError, match=r"leastaction\[video\]"):
            swing().to_video(tmp_path / "a.mp4")

    @pytest.mark.parametrize("options", [{"size": (10, 10)}, {"size": (641, 480)}, {"size": "big"}, {"rate": 0}])
    def test_numbers(self, tmp_path, monkeypatch, options):
        monkeypatch.setattr(video.shutil, "which", lambda name: name)
        with pytest.raises(la.ModelError, match="to_video"):
            swing().to_video(tmp_path / "a.mp4", **options)
