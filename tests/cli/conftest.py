from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest

from leastaction.cli import run_app

# the first test of a session may have to compile kernels
SECONDS = 180.0


@pytest.fixture(autouse=True)
def time_limit(limited: Callable[[float], AbstractContextManager[None]]) -> Iterator[None]:
    """No command may hang: every test of this folder ends within the limit or fails."""
    with limited(SECONDS):
        yield


class Answer(NamedTuple):
    """What a command did: exit code and what it printed on both streams."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines on the error stream, the note about compiling left out: it comes only where no cache is warm."""
        return [line for line in self.err.splitlines() if not line.startswith("compiling, once")]


Command = Callable[..., Answer]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run the command line in this process, in the test's own empty folder."""
    monkeypatch.chdir(tmp_path)
    # as wide as output to a file is; test runners set a width of their own
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*words: object) -> Answer:
        capsys.readouterr()
        code = run_app([str(word) for word in words])
        return Answer(code, *capsys.readouterr())

    return call


LINK = """
<link name="{0}"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
"""
JOINT = """
<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="5" velocity="8"/><dynamics damping="0.1"/></joint>
"""
ARM = LINK.format("base") + LINK.format("upper") + LINK.format("lower")
ARM += JOINT.format("shoulder", "base", "upper") + JOINT.format("elbow", "upper", "lower")


@pytest.fixture
def arm() -> str:
    """Inside of a URDF: three links, of which the first is the base, and two damped joints with limits."""
    return ARM


@pytest.fixture
def urdf(tmp_path: Path) -> Callable[[str], Path]:
    """Write a URDF file from what stands inside <robot>."""

    def write(inside: str = ARM, name: str = "robot.urdf") -> Path:
        path = tmp_path / name
        path.write_text(f'<robot name="r">\n{inside}\n</robot>\n')
        return path

    return write
