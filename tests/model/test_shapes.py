"""Shapes: mass properties against quadrature, closed forms and trimesh; mesh files of all kinds."""

from __future__ import annotations

import itertools
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh

from leastaction.errors import ModelError
from leastaction.model import mesh_geometry
from leastaction.model.inertia import combine
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere, shape_from_dict

SOLIDS = [Box((0.3, 0.5, 0.7)), Sphere(0.4), Cylinder(0.2, 0.9), Capsule(0.2, 0.6), Ellipsoid((0.2, 0.3, 0.5))]
CUBE = trimesh.creation.box((1.0, 2.0, 3.0))


def half_widths(shape: Shape, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half widths along x and y of the section at height z."""
    if isinstance(shape, Box):
        return np.full_like(z, shape.size[0] / 2), np.full_like(z, shape.size[1] / 2)
    if isinstance(shape, Ellipsoid):
        s = np.sqrt(1 - (z / shape.radii[2]) ** 2)
        return shape.radii[0] * s, shape.radii[1] * s
    if isinstance(shape, Sphere):
        s = np.sqrt(shape.radius**2 - z**2)
        return s, s
    if isinstance(shape, Capsule):
        s = np.sqrt(shape.radius**2 - np.maximum(np.abs(z) - shape.length / 2, 0) ** 2)
        return s, s
    assert isinstance(shape, Cylinder)
    return np.full_like(z, shape.radius), np.full_like(z, shape.radius)


def height(shape: Shape) -> float:
    """Half the extent along z."""
    if isinstance(shape, Box):
        return float(shape.size[2]) / 2
    if isinstance(shape, Ellipsoid):
        return float(shape.radii[2])
    if isinstance(shape, Sphere):
        return shape.radius
    if isinstance(shape, Capsule):
        return shape.length / 2 + shape.radius
    assert isinstance(shape, Cylinder)
    return shape.length / 2


def by_quadrature(shape: Shape) -> tuple[float, np.ndarray]:
    """Volume and inertia at unit density by Gauss quadrature over sections along z, split where they have a kink."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    top = height(shape)
    cuts = [-top, -shape.length / 2, shape.length / 2, top] if isinstance(shape, Capsule) else [-top, top]
    volume, second = 0.0, np.zeros(3)
    for a, b in itertools.pairwise(cuts):
        z, w = 0.5 * (a + b) + 0.5 * (b - a) * nodes, 0.5 * (b - a) * weights
        hx, hy = half_widths(shape, z)
        # area and mean squares of a rectangle or an ellipse with these half widths
        area = 4 * hx * hy if isinstance(shape, Box) else np.pi * hx * hy
        share = 1 / 3 if isinstance(shape, Box) else 1 / 4
        volume += float(w @ area)
        second += np.array([w @ (area * share * hx**2), w @ (area * share * hy**2), w @ (area * z**2)])
    return volume, np.diag(second.sum() - second)


@pytest.mark.parametrize("shape", SOLIDS, ids=lambda s: s.kind)
def test_mass_properties_against_quadrature(shape):
    volume, inertia = by_quadrature(shape)
    made = shape.mass_properties(density=1000.0)
    # measured 4e-15, 4e-15, 6e-15
    np.testing.assert_allclose(shape.volume, volume, rtol=1e-13)
    np.testing.assert_allclose(made.mass, 1000 * volume, rtol=1e-13)
    np.testing.assert_allclose(made.inertia, 1000 * inertia, rtol=1e-13, atol=1e-13)
    assert not made.com.any()


@pytest.mark.parametrize("shape", SOLIDS, ids=lambda s: s.kind)
def test_mass_and_density_agree(shape):
    by_density = shape.mass_properties(density=700.0)
    by_mass = shape.mass_properties(mass=by_density.mass)
    # measured 0
    np.testing.assert_allclose(by_mass.inertia, by_density.inertia, rtol=1e-15)


def test_known_closed_forms():
    # measured 0
    np.testing.assert_allclose(Sphere(2.0).mass_properties(mass=5).inertia, 8.0 * np.eye(3), rtol=1e-15)
    np.testing.assert_allclose(Box((1, 2, 3)).mass_properties(mass=12).inertia, np.diag([13, 10, 5]), rtol=1e-15)
    np.testing.assert_allclose(Cylinder(2, 3).mass_properties(mass=4).inertia, np.diag([7, 7, 8]), rtol=1e-15)


def test_a_capsule_is_a_cylinder_and_a_ball():
    """Along the axis the two half balls are one ball."""
    parts = [Cylinder(0.2, 0.6).mass_properties(density=1), Sphere(0.2).mass_properties(density=1)]
    made = Capsule(0.2, 0.6).mass_properties(density=1)
    # measured 1e-16
    np.testing.assert_allclose(made.mass, combine(parts).mass, rtol=1e-14)
    np.testing.assert_allclose(made.inertia[2, 2], combine(parts).inertia[2, 2], rtol=1e-14)


def test_mass_properties_are_in_the_link_frame():
    at = pose((1, 2, 3), rpy=(np.pi / 2, 0, 0))
    made = Cylinder(0.1, 2.0, at=at).mass_properties(mass=3)
    plain = Cylinder(0.1, 2.0).mass_properties(mass=3)
    assert made.com.tolist() == [1, 2, 3]
    # a quarter turn about x takes z to y; measured 6e-17
    expected = np.diag(np.diag(plain.inertia)[[0, 2, 1]])
    np.testing.assert_allclose(made.inertia, expected, rtol=0, atol=1e-15)


def test_mesh_from_arrays_against_trimesh():
    rng = np.random.default_rng(5)
    hull = trimesh.convex.convex_hull(rng.uniform(-1, 1, (40, 3)) + np.array([3.0, 0.0, 0.0]))
    shape = Mesh(vertices=hull.vertices, faces=hull.faces)
    made = shape.mass_properties(density=2.0)
    # measured 2e-16, 2e-16, 7e-15
    np.testing.assert_allclose(shape.volume, hull.volume, rtol=1e-14)
    np.testing.assert_allclose(made.com, hull.center_mass, rtol=1e-14)
    np.testing.assert_allclose(made.inertia, 2.0 * hull.moment_inertia, rtol=0, atol=1e-13)
    assert shape.notes == []


def test_a_fine_mesh_of_a_ball_comes_near_the_ball():
    ball = trimesh.creation.icosphere(4, 0.5)
    made = Mesh(vertices=ball.vertices, faces=ball.faces).mass_properties(mass=1)
    # measured 1.4e-4, the facets
    np.testing.assert_allclose(made.inertia, Sphere(0.5).mass_properties(mass=1).inertia, rtol=0, atol=4e-4)


@pytest.mark.parametrize("scale", [2.0, (1.0, 2.0, 3.0), (1.0, -1.0, 1.0), (-1.0, -2.0, -1.0)])
def test_scaled_and_mirrored_meshes(scale):
    s = np.abs(np.broadcast_to(scale, 3))
    made = Mesh(vertices=CUBE.vertices, faces=CUBE.faces, scale=scale)
    expected = Box(s * [1.0, 2.0, 3.0])
    # measured 4e-16
    np.testing.assert_allclose(made.volume, expected.volume, rtol=1e-14)
    np.testing.assert_allclose(
        made.mass_properties(mass=1).inertia, expected.mass_properties(mass=1).inertia, rtol=1e-14, atol=1e-14
    )
    assert mesh_geometry.signed_moments(made.points, made.triangles)[0] > 0


def test_a_mesh_turned_inside_out_is_the_same_solid():
    made = Mesh(vertices=CUBE.vertices, faces=CUBE.faces[:, ::-1])
    # measured 0
    np.testing.assert_allclose(made.volume, 6.0, rtol=1e-14)


def test_unmerged_vertices_are_still_closed():
    soup = CUBE.vertices[CUBE.faces].reshape(-1, 3)
    made = Mesh(vertices=soup, faces=np.arange(len(soup)).reshape(-1, 3))
    # measured 0
    np.testing.assert_allclose(made.volume, 6.0, rtol=1e-14)
    assert made.notes == []


def test_an_open_mesh_falls_back_to_its_hull_and_says_so():
    made = Mesh(vertices=CUBE.vertices, faces=CUBE.faces[:-1], name="lid off")
    # measured 0
    np.testing.assert_allclose(made.volume, 6.0, rtol=1e-14)
    # measured 6e-17
    np.testing.assert_allclose(
        made.mass_properties(mass=1).inertia, Box((1, 2, 3)).mass_properties(mass=1).inertia, rtol=1e-13, atol=1e-13
    )
    assert len(made.notes) == 1
    assert "lid off" in made.notes[0]
    assert "not closed" in made.notes[0]


def test_faces_that_disagree_on_the_outside_fall_back_to_the_hull():
    faces = CUBE.faces.copy()
    faces[0] = faces[0][::-1]
    made = Mesh(vertices=CUBE.vertices, faces=faces)
    # measured 0
    np.testing.assert_allclose(made.volume, 6.0, rtol=1e-14)
    assert len(made.notes) == 1


def test_a_mesh_far_from_its_origin_loses_no_digits():
    far = Mesh(vertices=CUBE.vertices + 1000.1, faces=CUBE.faces).mass_properties(mass=1)
    # measured 6e-17; integrated about the origin the error would be 2e-3
    expected = Box((1, 2, 3)).mass_properties(mass=1).inertia
    np.testing.assert_allclose(far.inertia, expected, rtol=0, atol=2e-15)


def test_flat_meshes_have_no_mass_properties():
    flat = Mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], faces=[[0, 1, 2], [1, 3, 2]])
    with pytest.raises(ModelError, match="flat"):
        flat.mass_properties(mass=1)


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off", "glb"])
def test_mesh_files(tmp_path, suffix):
    file = tmp_path / f"cube.{suffix}"
    CUBE.export(file)
    made = Mesh(file, scale=0.5)
    # binary files hold single precision, in which these numbers are exact; measured 0
    np.testing.assert_allclose(made.volume, 6.0 / 8, rtol=1e-14)
    assert made.notes == []
    assert made.points.shape[1] == made.triangles.shape[1] == 3


def test_mesh_files_are_read_on_first_use_only(tmp_path):
    file = tmp_path / "later.stl"
    file.write_bytes(b"not a mesh at all")
    made = Mesh(file)
    with pytest.raises(ModelError, match=r"later\.stl"):
        made.mass_properties(mass=1)


def test_a_mesh_file_that_references_others_does_not_read_them(tmp_path):
    (tmp_path / "other.mtl").write_text("newmtl a\nmap_Kd secret.png\n")
    file = tmp_path / "a.obj"
    file.write_text("mtllib other.mtl\nusemtl a\n" + trimesh.exchange.obj.export_obj(CUBE))
    # measured 0
    np.testing.assert_allclose(Mesh(file).volume, 6.0, rtol=1e-14)


def test_a_document_type_in_a_mesh_is_refused(tmp_path):
    file = tmp_path / "bomb.dae"
    file.write_text('<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><COLLADA>&b;</COLLADA>')
    with pytest.raises(ModelError, match=r"bomb\.dae.*document type"):
        Mesh(file).mass_properties(mass=1)


def bad_paths(folder: Path) -> dict[str, tuple[Path, str]]:
    """Paths that are no mesh files, and what the message says."""
    (folder / "folder.stl").mkdir()
    os.mkfifo(folder / "pipe.stl")
    (folder / "empty.stl").touch()
    (folder / "text.txt").write_text("hello")
    (folder / "device.stl").symlink_to("/dev/zero")
    (folder / "loop.stl").symlink_to(folder / "loop.stl")
    endpoint = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)
    endpoint.bind("socket.stl")
    os.chdir(here)
    endpoint.close()
    return {
        "directory": (folder / "folder.stl", "is a folder"),
        "pipe": (folder / "pipe.stl", "is a pipe"),
        "device": (folder / "device.stl", "is a device"),
        "socket": (folder / "socket.stl", "is a socket"),
        "missing": (folder / "missing.stl", "no such mesh"),
        "loop": (folder / "loop.stl", "cannot look at the mesh"),
        "empty": (folder / "empty.stl", "empty"),
        "format": (folder / "text.txt", "unknown format"),
        "null": (folder / "a\0b.stl", "cannot look at the mesh"),
    }


@pytest.mark.parametrize(
    "what", ["directory", "pipe", "device", "socket", "missing", "loop", "empty", "format", "null"]
)
def test_paths_that_are_no_mesh_files(tmp_path, what):
    path, message = bad_paths(tmp_path)[what]
    with pytest.raises(ModelError, match=message) as caught:
        Mesh(path)
    assert path.name in str(caught.value)


def test_a_pipe_that_takes_the_place_of_a_file_does_not_block(tmp_path):
    file = tmp_path / "cube.stl"
    CUBE.export(file)
    made = Mesh(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ModelError, match="is a pipe"):
        made.mass_properties(mass=1)


def test_mesh_files_have_a_size_limit(tmp_path, monkeypatch):
    file = tmp_path / "cube.stl"
    CUBE.export(file)
    monkeypatch.setattr(mesh_geometry, "MAX_BYTES", 100)
    with pytest.raises(ModelError, match=r"too large .*at most 100"):
        Mesh(file)


def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch):
    file = tmp_path / "cube.stl"
    CUBE.export(file)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ModelError, match=r"leastaction\[mesh\]"):
        Mesh(file).mass_properties(mass=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box((1, 2)), "3 numbers"),
        (lambda: Box((1, 2, 0)), "positive"),
        (lambda: Sphere(-1), "positive"),
        (lambda: Sphere(np.nan), "finite"),
        (lambda: Sphere("1"), "number"),
        (lambda: Cylinder(1, 0), "positive"),
        (lambda: Capsule(1, -1), "positive"),
        (lambda: Ellipsoid((1, 1, np.inf)), "finite"),
        (lambda: Mesh(), "file, or vertices"),
        (lambda: Mesh(7), "path"),
        (lambda: Mesh("a.stl", vertices=[[0, 0, 0]], faces=[[0, 0, 0]]), "either"),
        (lambda: Mesh(vertices=[[0, 0, 0]], faces=[[0, 0, 1]]), "names vertex 1"),
        (lambda: Mesh(vertices=[[0, 0, np.nan]], faces=[[0, 0, 0]]), "finite"),
        (lambda: Mesh(vertices=CUBE.vertices, faces=CUBE.faces, scale=0), "scale"),
        (lambda: Mesh(vertices=CUBE.vertices, faces=CUBE.faces * 1.0), "whole numbers"),
        (lambda: Box((1, 1, 1), at=np.eye(3)), "box: at"),
        (lambda: Box((1, 1, 1), color=(2, 0, 0)), "color"),
        (lambda: Box((1, 1, 1), color="red"), "color"),
        (lambda: Box((1, 1, 1), visual=1), "visual"),
        (lambda: Box((1, 1, 1), name=""), "name"),
        (lambda: Box((1, 1, 1)).mass_properties(), "either density or mass"),
        (lambda: Box((1, 1, 1)).mass_properties(density=1, mass=1), "either density or mass"),
        (lambda: Box((1, 1, 1)).mass_properties(density=-1), "positive"),
        (lambda: Box((1, 1, 1)).mass_properties(mass=np.nan), "finite"),
    ],
)
def test_bad_shapes(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_shapes_are_frozen():
    box = Box((1, 2, 3))
    with pytest.raises(AttributeError):
        box.size = (1, 1, 1)
    with pytest.raises(ValueError, match="read-only"):
        box.size[0] = 2


ROUND = [
    *SOLIDS,
    Box((0.1, 0.2, 0.3), at=pose((1, 2, 3), rpy=(0.1, 0.2, 0.3)), color=(0.1, 0.2, 0.3, 0.4), visual=False, name="b"),
    Mesh(vertices=CUBE.vertices / 3, faces=CUBE.faces, scale=(1, 2, 3), collision=False),
]


@pytest.mark.parametrize("shape", ROUND, ids=lambda s: s.kind)
def test_dictionaries_round_trip_to_the_last_bit(shape):
    data = shape.to_dict()
    made = shape_from_dict(data)
    assert type(made) is type(shape)
    assert made.to_dict() == data
    assert np.array_equal(made.at, shape.at)
    assert type(shape).from_dict(data).to_dict() == data


def test_a_class_refuses_the_dictionary_of_another():
    with pytest.raises(ModelError, match="expected 'box', got 'sphere'"):
        Box.from_dict(Sphere(1).to_dict())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "torus"}, "shape.kind: unknown shape 'torus'"),
        ({"size": [1, 2]}, "shape.size: expected 3 finite numbers"),
        ({"size": [1, 2, "3"]}, "shape.size"),
        ({"size": [1, 2, float("inf")]}, "shape.size"),
        ({"size": [1, 2, -3]}, "shape: box: size"),
        ({"radius": 1}, "shape.radius: unknown key"),
        ({"visual": 1}, "shape.visual: expected true or false"),
    ],
)
def test_the_reader_is_strict(change, message):
    with pytest.raises(ModelError, match=message):
        shape_from_dict({**Box((1, 2, 3)).to_dict(), **change})


def test_mesh_files_stay_inside_the_allowed_folders(tmp_path):
    inside, outside = tmp_path / "model", tmp_path / "other"
    for folder in (inside, outside):
        folder.mkdir()
        CUBE.export(folder / "cube.stl")
    (inside / "link.stl").symlink_to(outside / "cube.stl")
    data = {"kind": "mesh", "file": "cube.stl"}
    # measured 0
    np.testing.assert_allclose(shape_from_dict(data, base=inside).volume, 6.0, rtol=1e-14)
    # by a path, by an absolute path and by a link
    for file in ("../other/cube.stl", str(outside / "cube.stl"), "link.stl"):
        with pytest.raises(ModelError, match=r"shape\.file: .* outside"):
            shape_from_dict({**data, "file": file}, base=inside)
        assert shape_from_dict({**data, "file": file}, base=inside, roots=[outside]).volume > 0
