"""Surfaces of shapes: closed, outward, of the right size; meshes with creases and thinned."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.mesh_geometry import is_closed, signed_moments
from leastaction.view.surfaces import creased, surface_of, thinned

SHAPES = [
    la.Box((0.2, 0.3, 0.5)),
    la.Sphere(0.3),
    la.Cylinder(0.1, 0.4),
    la.Capsule(0.1, 0.4),
    la.Ellipsoid((0.1, 0.2, 0.3)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kind)
def test_a_surface_encloses_its_shape(shape):
    surface = surface_of(shape)
    assert is_closed(surface.points, surface.faces)
    volume, centroid, _ = signed_moments(surface.points, surface.faces)
    # positive, so outward; round shapes lose a little by their flat sides: measured 0.984 to 1
    assert 0.98 * shape.volume < volume <= shape.volume * (1 + 1e-12)
    assert np.abs(centroid).max() < 1e-12  # measured 2e-17


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kind)
def test_normals_stand_on_the_triangles(shape):
    surface = surface_of(shape)
    assert np.abs(np.linalg.norm(surface.normals, axis=1) - 1).max() < 1e-12  # measured 2e-16
    a, b, c = (surface.points[surface.faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    for k in range(3):
        assert np.einsum("ij,ij->i", flat, surface.normals[surface.faces[:, k]]).min() > 0.95  # measured 0.959


def test_a_mesh_is_smooth_over_small_angles_and_sharp_over_large_ones():
    box = surface_of(la.Box((1, 1, 1)))
    corners, index = np.unique(box.points, axis=0, return_inverse=True)
    sharp = creased(corners, index.reshape(-1)[box.faces])
    assert len(corners) == 8
    assert len(sharp.points) == 24
    ball = surface_of(la.Sphere(1.0))
    points, index = np.unique(ball.points.round(12), axis=0, return_inverse=True)
    smooth = creased(points, index.reshape(-1)[ball.faces])
    assert len(smooth.points) == len(points)
    assert np.abs(smooth.normals - smooth.points).max() < 0.05  # measured 0.033, at the poles


def test_a_large_mesh_is_thinned_and_keeps_its_size():
    n = 150
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, n), np.linspace(-1.5, 1.5, n))
    points = np.stack([np.cos(u) * np.cos(v), np.sin(u) * np.cos(v), np.sin(v)], axis=-1).reshape(-1, 3)
    k = np.arange((n - 1) * n).reshape(n - 1, n)[:, :-1].ravel()
    faces = np.concatenate([np.stack([k, k + 1, k + n + 1], 1), np.stack([k, k + n + 1, k + n], 1)])
    fewer, left = thinned(points, faces, 5000)
    assert 1000 < len(left) <= 5000
    assert np.ptp(fewer, axis=0) == pytest.approx(np.ptp(points, axis=0), rel=0.05)
    same, all_faces = thinned(points, faces, len(faces))
    assert same is points
    assert all_faces is faces


def test_a_mesh_shape():
    box = surface_of(la.Box((1, 2, 3)))
    mesh = la.Mesh(vertices=box.points, faces=box.faces)
    surface = surface_of(mesh)
    assert signed_moments(surface.points, surface.faces)[0] == pytest.approx(6.0)
