"""Runs as video files: the page of ``to_html`` in a browser without a window, picture by picture, through ffmpeg."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leastaction.errors import ModelError
from leastaction.model.files import check_path, check_writable
from leastaction.view.page import write_html

if TYPE_CHECKING:
    from leastaction.run.trajectory import Trajectory

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")

FLAGS = (
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--force-color-profile=srgb",
)
"""So that a browser asks nobody for anything of its own."""

# longest video, in pictures
_MOST = 20_000


def find_browser() -> str | None:
    """Path of a Chromium or a relative of it, or None; the variable LEASTACTION_BROWSER names another one."""
    named = os.environ.get("LEASTACTION_BROWSER")
    return named or next((path for path in map(shutil.which, BROWSERS) if path), None)


@contextmanager
def open_browser() -> Iterator[Any]:
    """A browser without a window, driven by Playwright (extra ``video``)."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise ModelError("this needs playwright; install the extra: pip install 'leastaction[video]'.") from error
    path = find_browser()
    if path is None:
        raise ModelError(f"this needs a browser; none of {', '.join(BROWSERS)} was found (Debian: package chromium).")
    # a browser refuses its own sandbox to the user root
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=path, args=[*FLAGS, *root])
        except Error as error:
            raise ModelError(f"the browser {path} does not start: {str(error).splitlines()[0]}") from error
        try:
            yield browser
        finally:
            browser.close()


def write_video(
    runs: Sequence[Trajectory],
    path: str | Path,
    *,
    size: tuple[int, int] = (1280, 720),
    rate: int = 30,
    speed: float = 1.0,
    charts: bool = True,
    **options: Any,
) -> None:
    """Write runs to a video file (.mp4, .webm or .gif); needs a browser, ffmpeg and the extra ``video``.

    Args:
        runs: one run or several.
        path: the file.
        size: width and height in pixels, even numbers.
        rate: pictures in a second of the video.
        speed: seconds of simulated time in a second of the video.
        charts: whether the charts below the picture are in the video.
        **options: ``labels``, ``layout``, ``traces``, ``title`` and ``follow``, as in ``to_html``.
    """
    path = check_path(path)
    codec = _CODECS.get(path.suffix.lower())
    if codec is None:
        raise ModelError(f"{path}: the ending of a video must be {', '.join(_CODECS)}.")
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        raise ModelError("videos need ffmpeg, which was not found (Debian: package ffmpeg).")
    width, height = _even(size)
    if not (rate > 0 and speed > 0):
        raise ModelError(f"to_video: rate and speed must be positive, got {rate!r} and {speed!r}.")
    check_writable(path)
    with tempfile.TemporaryDirectory() as folder:
        page, film = Path(folder) / "run.html", Path(folder) / f"film{path.suffix.lower()}"
        write_html(runs, page, rate=max(rate / speed, 1.0), **options)
        words = [ffmpeg, "-y", "-loglevel", "error", "-f", "image2pipe", "-framerate", str(rate), "-i", "-"]

        def make() -> None:
            with open_browser() as browser:
                _film(browser, page, [*words, *codec, str(film)], (width, height), rate, speed, charts)

        # in a thread of its own, as a notebook has an event loop that the driver would not share
        with ThreadPoolExecutor(1) as worker:
            worker.submit(make).result()
        _move(film, path)


_CODECS: dict[str, list[str]] = {
    ".mp4": ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart"],
    ".webm": ["-c:v", "libvpx-vp9", "-crf", "32", "-b:v", "0"],
    ".gif": [],
}


def _even(size: Any) -> tuple[int, int]:
    """Width and height, checked."""
    try:
        width, height = (int(side) for side in size)
    except (TypeError, ValueError) as error:
        raise ModelError(f"to_video: size must be two whole numbers, got {size!r}.") from error
    if not all(64 <= side <= 8192 and side % 2 == 0 for side in (width, height)):
        raise ModelError(f"to_video: size must be two even numbers from 64 to 8192, got {size!r}.")
    return width, height


def _film(
    browser: Any, page: Path, words: list[str], size: tuple[int, int], rate: float, speed: float, charts: bool
) -> None:
    """Take the pictures one after the other and pass them to ffmpeg."""
    tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
    tab.goto(page.as_uri())
    # only what moves is in the film
    hidden = "header, #controls, #numbers, #notes" + ("" if charts else ", #charts")
    tab.add_style_tag(content=f"{hidden} {{ display: none !important; }}")
    first, last = tab.evaluate("(() => { viewer.playing = false; return [viewer.first, viewer.length]; })()")
    count = max(int((last - first) / speed * rate) + 1, 1)
    if count > _MOST:
        raise ModelError(f"to_video: {count} pictures are too many, at most {_MOST} are made; take a larger speed.")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for k in range(count):
                tab.evaluate(f"viewer.seek({first + k / rate * speed!r})")
                process.stdin.write(tab.screenshot(type="jpeg", quality=92))
            process.stdin.close()
        # ffmpeg that ended early says why below
        except BrokenPipeError:
            process.kill()
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode != 0:
        raise ModelError(f"ffmpeg could not write the video: {said.splitlines()[-1] if said else 'it gave no reason'}.")


def _move(film: Path, path: Path) -> None:
    """Put the finished film in its place, whole or not at all."""
    from leastaction.model.files import write_beside

    write_beside(path, lambda stream: stream.write(film.read_bytes()))
