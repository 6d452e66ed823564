"""A browser for the tests of pages; without one they are skipped with a line that says what is missing."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest

from leastaction.view.video import BROWSERS, find_browser, open_browser

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"


@pytest.fixture(scope="session")
def browser():
    """Chromium of the system, driven by Playwright."""
    pytest.importorskip("playwright", reason="tests in a browser need playwright (extra 'video')")
    if find_browser() is None:
        pytest.skip(f"tests in a browser need one of {', '.join(BROWSERS)}; on Debian: apt-get install chromium")
    with open_browser() as opened:
        yield opened


class Tab:
    """A page in the browser, with every address that it asked for and every error that it met."""

    # small, as the browser of the tests draws without a graphics card; pictures for people are larger
    SMALL, LARGE = {"width": 760, "height": 560}, {"width": 1280, "height": 860}

    def __init__(self, browser):
        self.page = browser.new_page(viewport=self.SMALL)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, url):
        self.page.goto(url)
        return self

    def viewer(self, words):
        """A value of the page's viewer."""
        return self.page.evaluate(f"window.viewer.{words}")

    def wait(self, words, seconds=60):
        """Wait until a condition holds in the page; asked from here, as the page itself allows no evaluation."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(f"Boolean({words})"):
            assert time.monotonic() < end, f"still not: {words}"
            self.page.wait_for_timeout(20)

    def pixels(self, selector="#view"):
        """The picture of an element, (height, width, 3)."""
        from PIL import Image

        return np.asarray(Image.open(io.BytesIO(self.page.locator(selector).first.screenshot())).convert("RGB"))

    def screenshot(self, name, size=LARGE):
        """Keep the whole page as a picture for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.set_viewport_size(size)
        self.page.wait_for_timeout(200)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture
def tab(browser):
    """A new page."""
    made = Tab(browser)
    yield made
    made.page.close()
    assert made.errors == []


def changed(a, b):
    """Share of the pixels that differ."""
    return float((np.abs(a.astype(int) - b.astype(int)).max(axis=2) > 24).mean())


@pytest.fixture(name="changed")
def changed_fixture():
    return changed
