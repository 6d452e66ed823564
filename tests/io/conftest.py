from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SECONDS = 20.0


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    """No reader may hang: every test of this folder ends within the limit or fails."""

    def late(signum: int, frame: object) -> None:
        raise TimeoutError(f"the test took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a text file below the test's own folder."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make


@pytest.fixture
def urdf(write: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """Write a URDF file from what stands inside <robot>; its content begins on line 2."""
    return lambda inside: write("robot.urdf", f'<robot name="r">\n{inside}\n</robot>\n')


@pytest.fixture
def mjcf(write: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """Write an MJCF file from what stands inside <mujoco>; its content begins on line 2."""
    return lambda inside: write("model.xml", f'<mujoco model="r">\n{inside}\n</mujoco>\n')
