"""Paths and files that are no models: a clear error that names the file, nothing written, no hang."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import leastaction as la
from leastaction.model import files

ROBOT = '<robot name="r"><link name="a"/></robot>'


@pytest.mark.parametrize("ending", [".urdf", ".xml", ".json"])
class TestNotAFile:
    def test_missing(self, tmp_path, ending):
        with pytest.raises(la.ModelError, match=rf"gone\{ending}: no such file"):
            la.load(tmp_path / f"gone{ending}")

    def test_folder(self, tmp_path, ending):
        path = tmp_path / f"folder{ending}"
        path.mkdir()
        with pytest.raises(la.ModelError, match=rf"folder\{ending}: is a folder"):
            la.load(path)

    def test_pipe_does_not_hang(self, tmp_path, ending):
        path = tmp_path / f"pipe{ending}"
        os.mkfifo(path)
        with pytest.raises(la.ModelError, match=rf"pipe\{ending}: is a pipe"):
            la.load(path)

    def test_device(self, tmp_path, ending):
        path = tmp_path / f"device{ending}"
        path.symlink_to("/dev/zero")
        with pytest.raises(la.ModelError, match=rf"device\{ending}: is a device"):
            la.load(path)

    def test_socket(self, tmp_path, ending, monkeypatch):
        # socket names are short: bind by a relative path
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"s{ending}")
            with pytest.raises(la.ModelError, match="is a socket"):
                la.load(f"s{ending}")

    @pytest.mark.parametrize("content", ["", "  \n \t"])
    def test_empty(self, write, ending, content):
        with pytest.raises(la.ModelError, match=rf"nothing\{ending}: the model file is empty"):
            la.load(write(f"nothing{ending}", content))

    def test_too_large(self, tmp_path, ending):
        path = tmp_path / f"huge{ending}"
        with path.open("wb") as stream:
            stream.truncate(files.MAX_MODEL_BYTES + 1)
        with pytest.raises(la.ModelError, match=rf"huge\{ending}: the model file is too large"):
            la.load(path)

    def test_unreadable(self, write, ending, monkeypatch):
        # permissions do not stop a superuser, so the refusal of the system is played
        path = write(f"closed{ending}", ROBOT)

        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(files.os, "open", refuse)
        with pytest.raises(la.ModelError, match=rf"closed\{ending}: cannot read the model file: Permission denied"):
            la.load(path)

    def test_link_to_itself(self, tmp_path, ending):
        path = tmp_path / f"loop{ending}"
        path.symlink_to(path)
        with pytest.raises(la.ModelError, match=rf"loop\{ending}: cannot look at the file"):
            la.load(path)

    def test_not_the_format(self, write, ending):
        with pytest.raises(la.ModelError, match=rf"words\{ending}(:1)?: (not well-formed|cannot be read)"):
            la.load(write(f"words{ending}", "these are words"))

    def test_binary(self, tmp_path, ending):
        path = tmp_path / f"bytes{ending}"
        path.write_bytes(bytes(range(256)) * 100)
        with pytest.raises(la.ModelError, match=rf"bytes\{ending}"):
            la.load(path)


@pytest.mark.parametrize("path", [None, 3, b"robot.urdf", "", ["robot.urdf"]])
def test_path_of_the_wrong_type(path):
    with pytest.raises(la.ModelError, match="expected the path of a file"):
        la.load(path)


def test_zero_byte_in_the_path():
    with pytest.raises(la.ModelError, match="cannot look at the file"):
        la.load("a\0b.urdf")


@pytest.mark.parametrize(("name", "hint"), [("robot.sdf", "unknown ending"), ("robot.xacro", "xacro"), ("robot", "''")])
def test_unknown_ending(write, name, hint):
    with pytest.raises(la.ModelError, match=hint):
        la.load(write(name, ROBOT))


def test_unknown_allow(write):
    with pytest.raises(la.ModelError, match=r"unknown mimics; known are .*mimic"):
        la.load(write("robot.urdf", ROBOT), allow=("mimics",))


def test_xml_root_decides(write):
    assert la.load(write("robot.xml", ROBOT)).bodies.keys() == {"a"}
    with pytest.raises(la.ModelError, match=r"other\.xml:1: <sdf>: expected <mujoco> or <robot>"):
        la.load(write("other.xml", "<sdf/>"))


@pytest.mark.parametrize("ending", [".json", ".urdf"])
class TestSave:
    def mechanism(self):
        m = la.Mechanism("m")
        m.add_body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
        m.add_joint("j", "revolute", parent="world", child="a")
        return m

    def test_missing_folder(self, tmp_path, ending):
        with pytest.raises(la.ModelError, match=r"the output folder .* does not exist"):
            la.save(self.mechanism(), tmp_path / "no" / f"m{ending}")
        assert not list(tmp_path.iterdir())

    def test_folder_is_a_file(self, write, ending):
        file = write("file", "x")
        with pytest.raises(la.ModelError, match=r"the output folder .* does not exist"):
            la.save(self.mechanism(), file / f"m{ending}")

    def test_target_is_a_folder(self, tmp_path, ending):
        (tmp_path / f"m{ending}").mkdir()
        with pytest.raises(la.ModelError, match="is not a regular file"):
            la.save(self.mechanism(), tmp_path / f"m{ending}")

    def test_target_is_a_pipe(self, tmp_path, ending):
        os.mkfifo(tmp_path / f"m{ending}")
        with pytest.raises(la.ModelError, match="is not a regular file"):
            la.save(self.mechanism(), tmp_path / f"m{ending}")

    def test_folder_that_cannot_be_written(self, tmp_path, ending, monkeypatch):
        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
        with pytest.raises(la.ModelError, match=r"cannot write into the folder .*: Permission denied"):
            la.save(self.mechanism(), tmp_path / f"m{ending}")
        assert not list(tmp_path.iterdir())

    def test_disk_full_keeps_the_old_file(self, tmp_path, ending, monkeypatch):
        path = tmp_path / f"m{ending}"
        path.write_text("old")

        def full(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files.os, "fsync", full)
        with pytest.raises(la.ModelError, match="cannot write the file: No space left on device"):
            la.save(self.mechanism(), path)
        assert path.read_text() == "old"
        assert [p.name for p in tmp_path.iterdir()] == [path.name]

    def test_replaces_and_keeps_permissions(self, tmp_path, ending):
        path = tmp_path / f"m{ending}"
        path.write_text("old")
        path.chmod(0o640)
        la.save(self.mechanism(), path)
        assert path.stat().st_mode & 0o777 == 0o640
        assert la.load(path).joints.keys() == {"j"}
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_save_unknown_ending(tmp_path):
    with pytest.raises(la.ModelError, match=r"m\.yaml: unknown ending '\.yaml'; \.json and \.urdf are written"):
        la.save(la.Mechanism("m"), tmp_path / "m.yaml")


def test_file_that_becomes_a_pipe_after_the_check(tmp_path, monkeypatch):
    """The kind is looked at again once the file is open, and opening does not block."""
    path = tmp_path / "robot.urdf"
    os.mkfifo(path)
    regular = Path(__file__)
    real = os.stat
    monkeypatch.setattr(files.os, "stat", lambda p, *a, **k: real(regular))
    start = time.perf_counter()
    with pytest.raises(la.ModelError, match="is a pipe"):
        files.read_file(path)
    assert time.perf_counter() - start < 5


class TestCheckWritable:
    """Asked before long work: whether a file can really be written there."""

    def test_good_leaves_nothing_behind(self, tmp_path):
        files.check_writable(tmp_path / "run.npz")
        assert not list(tmp_path.iterdir())
        # a name as long as the system takes
        files.write_file(tmp_path / ("x" * 255), "text")
        files.check_writable(tmp_path / ("x" * 255))

    def test_name_that_is_too_long(self, tmp_path):
        with pytest.raises(la.ModelError, match="too long"):
            files.check_writable(tmp_path / ("x" * 300))
        with pytest.raises(la.ModelError, match="too long"):
            files.check_writable(tmp_path / ("x" * 300) / "run.npz")

    def test_zero_byte(self, tmp_path):
        with pytest.raises(la.ModelError, match="null"):
            files.check_writable(tmp_path / "a\0b")

    def test_folder_that_may_not_be_looked_into(self, tmp_path, monkeypatch):
        # permissions do not stop a superuser, so the refusal of the system is played
        real = os.stat

        def stat(path, *args, **kwargs):
            if str(path).startswith(str(tmp_path / "closed")):
                raise PermissionError(13, "Permission denied")
            return real(path, *args, **kwargs)

        monkeypatch.setattr(files.os, "stat", stat)
        with pytest.raises(la.ModelError, match=r"run\.npz: .*Permission denied"):
            files.check_writable(tmp_path / "closed" / "run.npz")

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
    def test_folder_that_takes_no_files_though_permissions_say_so(self):
        with pytest.raises(la.ModelError, match="cannot write into the folder /proc"):
            files.check_writable(Path("/proc/run.npz"))


@pytest.mark.parametrize("ending", ["json", "urdf"])
def test_a_model_is_not_written(tmp_path, ending):
    with pytest.raises(la.ModelError, match=r"save writes a mechanism, got Model; that of a model is model\.mechanism"):
        la.save(la.models.pendulum().build(), tmp_path / f"x.{ending}")
    assert list(tmp_path.iterdir()) == []


class TestUnfinishedFiles:
    def test_what_a_killed_writer_left_goes_with_the_next_write(self, tmp_path):
        path = tmp_path / "model.json"
        code = (
            "import os, sys, pathlib; from leastaction.model import files; "
            "files.write_beside(pathlib.Path(sys.argv[1]), lambda stream: os.kill(os.getpid(), 9))"
        )
        subprocess.run([sys.executable, "-c", code, str(path)], check=False)
        assert len(list(tmp_path.iterdir())) == 1
        files.write_file(path, "{}")
        assert list(tmp_path.iterdir()) == [path]

    def test_those_of_a_living_writer_and_of_other_files_stay_for_a_day(self, tmp_path):
        path = tmp_path / "model.json"
        seen = []

        def write(stream):
            files.write_file(path, "inner")
            seen.extend(p.name for p in tmp_path.iterdir() if p.suffix == ".part")

        others = [tmp_path / ".other.json.999999-0-x.part", tmp_path / ".model.json.abc.part", tmp_path / "my.part"]
        for other in others:
            other.write_text("")
        files.write_beside(path, write)
        assert len(seen) == 4
        assert {p.name for p in tmp_path.iterdir()} == {path.name, *(p.name for p in others)}
        # a day later nobody writes it any more
        old = time.time() - 90_000
        for other in others:
            os.utime(other, (old, old))
        files.write_file(path, "{}")
        assert {p.name for p in tmp_path.iterdir()} == {path.name, others[0].name, others[2].name}
