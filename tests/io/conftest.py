from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

SECONDS = 20.0


@pytest.fixture(autouse=True)
def time_limit(limited: Callable[[float], AbstractContextManager[None]]) -> Iterator[None]:
    """No reader may hang: every test of this folder ends within the limit or fails."""
    with limited(SECONDS):
        yield


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
