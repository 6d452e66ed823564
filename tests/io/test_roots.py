"""Which files a model may read: packages found, nothing outside, no devices, no pipes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import leastaction as la

TETRA = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


def robot(filename):
    mesh = f'<mesh filename="{filename}"/>'
    return f'<robot name="r"><link name="a">\n<visual><geometry>{mesh}</geometry></visual></link></robot>'


def mesh_of(path, **options):
    (shape,) = la.load(path, **options).bodies["a"].shapes
    return Path(shape.file).resolve()


def left_out(path, reason, **options):
    """The mesh is not read, and a note says why; the note."""
    m = la.load(path, **options)
    assert m.bodies["a"].shapes == ()
    (note,) = [note for note in m.notes if re.search(reason, note)]
    assert note.endswith("the visual shape is left out.")
    return note


@pytest.mark.parametrize(
    ("model", "mesh", "name"),
    [
        ("pkg/urdf/r.urdf", "pkg/meshes/t.obj", "package://pkg/meshes/t.obj"),  # an ancestor of that name
        ("one/urdf/r.urdf", "two/meshes/t.obj", "package://two/meshes/t.obj"),  # a neighbour of an ancestor
        ("one/a/b/c/d/r.urdf", "two/meshes/t.obj", "package://two/meshes/t.obj"),  # far: by its package.xml
        ("r.urdf", "pkg/t.obj", "package://pkg/t.obj"),  # below the model
        ("pkg/urdf/r.urdf", "pkg/meshes/t.obj", "package:///pkg/meshes/t.obj"),  # one slash more
        ("r.urdf", "meshes/t.obj", "meshes/t.obj"),
        ("r.urdf", "meshes/t.obj", "./meshes/../meshes/t.obj"),
        ("r.urdf", "meshes/t t.obj", "file:meshes/t%20t.obj"),
    ],
)
def test_found(write, model, mesh, name):
    path = write(model, robot(name))
    expected = write(mesh, TETRA)
    if len(path.parts) > 4 and "two" in mesh:
        write("two/package.xml", "<package/>")
    assert mesh_of(path) == expected.resolve()


def test_relative_path_of_the_model(write, tmp_path, monkeypatch):
    write("pkg/urdf/r.urdf", robot("package://pkg/meshes/t.obj"))
    expected = write("pkg/meshes/t.obj", TETRA)
    for folder, name in ((".", "pkg/urdf/r.urdf"), ("pkg/urdf", "r.urdf"), ("pkg/meshes", "../urdf/r.urdf")):
        monkeypatch.chdir(tmp_path / folder)
        assert mesh_of(name) == expected.resolve()


def test_far_folder_without_package_file_is_no_package(write):
    path = write("one/a/b/c/d/r.urdf", robot("package://two/t.obj"))
    write("two/t.obj", TETRA)
    left_out(path, r'r.urdf:2: <mesh> in <link name="a">: .*does not exist.*package_dirs=')


@pytest.mark.parametrize("folder", ["elsewhere", "elsewhere/two"])
def test_package_dirs(write, folder, tmp_path):
    path = write("one/r.urdf", robot("package://two/meshes/t.obj"))
    expected = write("elsewhere/two/meshes/t.obj", TETRA)
    left_out(path, "does not exist")
    assert mesh_of(path, package_dirs=[tmp_path / folder]) == expected.resolve()
    assert mesh_of(path, package_dirs=tmp_path / folder) == expected.resolve()


def test_package_dir_that_is_missing(write):
    with pytest.raises(la.ModelError, match="package_dirs names a folder that does not exist"):
        la.load(write("r.urdf", robot("t.obj")), package_dirs=["no-such-folder"])


def test_absolute_path_inside(write, tmp_path):
    expected = write("t.obj", TETRA)
    assert mesh_of(write("r.urdf", robot(str(expected)))) == expected.resolve()
    assert mesh_of(write("r.urdf", robot(f"file://{expected}"))) == expected.resolve()


class TestOutside:
    REASON = r'r\.urdf:2: <mesh> in <link name="a">: the mesh ".*" lies outside the folders'

    @pytest.mark.parametrize(
        "name", ["../secret.obj", "sub/../../secret.obj", "package://robot/../secret.obj", "file:../secret.obj"]
    )
    def test_by_dots(self, write, name):
        write("secret.obj", TETRA)
        path = write("robot/r.urdf", robot(name))
        (path.parent / "sub").mkdir()
        left_out(path, self.REASON)

    def test_absolute(self, write):
        secret = write("secret.obj", TETRA)
        left_out(write("robot/r.urdf", robot(str(secret))), self.REASON)

    def test_says_nothing_about_what_exists(self, write):
        write("secret.obj", TETRA)
        messages = []
        for name in ("../secret.obj", "../absent.obj"):
            note = left_out(write("robot/r.urdf", robot(name)), self.REASON)
            messages.append(note.replace(name, ""))
        assert messages[0] == messages[1]

    def test_by_a_link_to_a_file(self, write):
        secret = write("secret.obj", TETRA)
        path = write("robot/r.urdf", robot("t.obj"))
        (path.parent / "t.obj").symlink_to(secret)
        left_out(path, self.REASON)

    def test_by_a_link_to_a_folder(self, write, tmp_path):
        write("secret/t.obj", TETRA)
        path = write("robot/r.urdf", robot("meshes/t.obj"))
        (path.parent / "meshes").symlink_to(tmp_path / "secret")
        left_out(path, self.REASON)

    def test_by_a_package_that_is_a_link(self, write, tmp_path):
        write("secret/t.obj", TETRA)
        path = write("robot/r.urdf", robot("package://pkg/t.obj"))
        (path.parent / "pkg").symlink_to(tmp_path / "secret")
        left_out(path, "does not exist")

    def test_top_of_the_file_system_is_no_package(self, write):
        left_out(write("r.urdf", robot("package://etc/hostname")), "does not exist")

    @pytest.mark.parametrize("name", ["package://../t.obj", "package://.ssh/t.obj", "package://pkg", "package://"])
    def test_package_names_are_plain(self, write, name):
        left_out(write("r.urdf", robot(name)), "is not of the form package://package/path")

    @pytest.mark.parametrize("name", ["http://127.0.0.1:9/t.obj", "https://x/t.obj", "ftp://x/t.obj"])
    def test_network(self, write, name):
        left_out(write("r.urdf", robot(name)), "is not a local file")


class TestNotAMesh:
    def test_device(self, write):
        path = write("r.urdf", robot("t.obj"))
        (path.parent / "t.obj").symlink_to("/dev/zero")
        left_out(path, "lies outside")
        left_out(path, "is a device", package_dirs=["/dev"])

    def test_pipe(self, write):
        path = write("r.urdf", robot("t.obj"))
        os.mkfifo(path.parent / "t.obj")
        left_out(path, r"r\.urdf:2: <mesh> in .*t\.obj: is a pipe")

    def test_folder(self, write):
        path = write("r.urdf", robot("t.obj"))
        (path.parent / "t.obj").mkdir()
        left_out(path, "is a folder")

    def test_link_to_itself(self, write):
        path = write("r.urdf", robot("t.obj"))
        (path.parent / "t.obj").symlink_to(path.parent / "t.obj")
        left_out(path, r"r\.urdf:2: <mesh>")

    def test_unknown_format(self, write):
        write("t.step", "x")
        left_out(write("r.urdf", robot("t.step")), r"r\.urdf:2: <mesh> in .*unknown format")

    def test_control_characters(self, write):
        left_out(write("r.urdf", robot("t&#10;.obj")), "control characters")
