"""Shapes as triangles with normals, for viewers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leastaction.model.checks import FloatArray
from leastaction.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from leastaction.model.terrain import Heights, Plane

# sides of a round shape, and steps from the equator of a ball to its pole
_SIDES, _STEPS = 32, 8

# triangles of a mesh beyond this number are thinned out
LARGEST_MESH = 30_000

# corners whose faces turn by more than this are drawn sharp: cosine of 40 degrees
_CREASE = np.cos(np.radians(40.0))


class Surface(NamedTuple):
    """Triangles: points (n, 3) in metres, unit normals (n, 3), faces (m, 3) counterclockwise from outside."""

    points: FloatArray
    normals: FloatArray
    faces: NDArray[np.int64]


def surface_of(shape: Shape) -> Surface:
    """The surface of a shape in the shape's own frame; reads the file of a mesh."""
    return _MAKERS[type(shape)](shape)


def ball(radii: Sequence[float] | FloatArray) -> Surface:
    """An ellipsoid with half axes ``radii`` (3,) along x, y, z, metres."""
    size = np.asarray(radii, dtype=float)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 2 * _STEPS + 1)
    unit = _turned([(np.cos(a), np.sin(a), np.cos(a), np.sin(a)) for a in angle])
    # a normal of an ellipsoid is that of the ball, divided by the half axes
    normals = unit.normals / size
    return Surface(unit.points * size, normals / np.linalg.norm(normals, axis=1, keepdims=True), unit.faces)


def _box(shape: Box) -> Surface:
    """Six faces with corners of their own."""
    points: list[FloatArray] = []
    normals: list[FloatArray] = []
    faces: list[list[int]] = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            out = np.zeros(3)
            out[axis] = sign
            u = np.eye(3)[(axis + 1) % 3]
            v = np.cross(out, u)
            first = len(points)
            points += [out + a * u + b * v for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals += [out] * 4
            faces += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return Surface(np.array(points) * shape.size / 2, np.array(normals), np.array(faces))


def _cylinder(shape: Cylinder) -> Surface:
    r, h = shape.radius, shape.length / 2
    profile = [(0.0, -h, 0.0, -1.0), (r, -h, 0.0, -1.0), (r, -h, 1.0, 0.0)]
    profile += [(r, h, 1.0, 0.0), (r, h, 0.0, 1.0), (0.0, h, 0.0, 1.0)]
    return _turned(profile)


def _capsule(shape: Capsule) -> Surface:
    r, h = shape.radius, shape.length / 2
    lower = np.linspace(-np.pi / 2, 0.0, _STEPS + 1)
    profile = [(r * np.cos(a), r * np.sin(a) - h, np.cos(a), np.sin(a)) for a in lower]
    profile += [(r * np.cos(a), h - r * np.sin(a), np.cos(a), -np.sin(a)) for a in lower[::-1]]
    return _turned(profile)


def _mesh(shape: Mesh) -> Surface:
    points, faces = thinned(shape.points, shape.triangles, LARGEST_MESH)
    return creased(points, faces)


_MAKERS: dict[type, Callable[[Any], Surface]] = {
    Box: _box,
    Sphere: lambda shape: ball(np.full(3, shape.radius)),
    Cylinder: _cylinder,
    Capsule: _capsule,
    Ellipsoid: lambda shape: ball(shape.radii),
    Mesh: _mesh,
    Plane: lambda shape: field_surface(np.zeros((2, 2)), np.full(2, shape.size)),
    Heights: lambda shape: field_surface(shape.heights, shape.spacing),
}


def field_surface(heights: FloatArray, spacing: FloatArray) -> Surface:
    """Surface of heights (nx, ny) on a grid around the origin, two triangles to a cell."""
    nx, ny = heights.shape
    x, y = (np.arange(nx) - 0.5 * (nx - 1)) * spacing[0], (np.arange(ny) - 0.5 * (ny - 1)) * spacing[1]
    points = np.stack([*np.meshgrid(x, y, indexing="ij"), heights], axis=-1).reshape(-1, 3)
    k = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)).ravel()
    low, high = np.stack([k, k + ny, k + 1], axis=1), np.stack([k + ny + 1, k + 1, k + ny], axis=1)
    return creased(points, np.concatenate([low, high]))


def _turned(profile: Sequence[tuple[float, float, float, float]]) -> Surface:
    """A surface of revolution about z: profile points (radius, height, normal's radius, normal's height), upward."""
    angle = np.linspace(0.0, 2 * np.pi, _SIDES + 1)
    c, s = np.cos(angle), np.sin(angle)
    r, z, nr, nz = (np.array(column)[:, None] for column in zip(*profile, strict=True))
    points = np.stack([r * c, r * s, z + 0 * c], axis=-1).reshape(-1, 3)
    normals = np.stack([nr * c, nr * s, nz + 0 * c], axis=-1).reshape(-1, 3)
    # two triangles between neighbours; those that end in a point have no area and are left out
    low = np.arange((len(profile) - 1) * (_SIDES + 1)).reshape(-1, _SIDES + 1)[:, :-1].ravel()
    up = low + _SIDES + 1
    faces = np.concatenate([np.stack([low, low + 1, up + 1], axis=1), np.stack([low, up + 1, up], axis=1)])
    a, b, d = (points[faces[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, d - a), axis=1)
    return Surface(points, normals, faces[area > 1e-12 * area.max()])


def creased(points: FloatArray, faces: NDArray[np.int64]) -> Surface:
    """A surface with normals that are smooth over small angles between faces and sharp over large ones."""
    corners = points[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1, keepdims=True)
    flat = across / np.where(area > 0, area, 1.0)
    # equal points of a file that lists every triangle on its own count as one
    _, same = np.unique(points.astype(np.float32), axis=0, return_inverse=True)
    joined = same.reshape(-1)[faces]
    total = np.zeros((int(joined.max()) + 1, 3))
    for k in range(3):
        np.add.at(total, joined[:, k], across)
    total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), np.finfo(float).tiny)
    # one normal for each corner of each face, then equal corners once
    normals = total[joined]
    sharp = np.einsum("fkx,fx->fk", normals, flat) < _CREASE
    normals[sharp] = np.broadcast_to(flat[:, None], normals.shape)[sharp]
    rows = np.concatenate([corners, np.round(normals, 2)], axis=2).reshape(-1, 6).astype(np.float32)
    _, first, index = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return Surface(corners.reshape(-1, 3)[first], normals.reshape(-1, 3)[first], index.reshape(-1, 3))


def thinned(points: FloatArray, faces: NDArray[np.int64], most: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """At most about ``most`` triangles: the points in each cell of a grid become one, as fine a grid as that allows."""
    if len(faces) <= most:
        return points, faces
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max())
    cells = 1024
    while True:
        keys = np.floor((points - low) / extent * cells).astype(np.int64)
        _, index = np.unique(keys, axis=0, return_inverse=True)
        index = index.reshape(-1)
        merged = index[faces]
        a, b, c = merged.T
        merged = merged[(a != b) & (b != c) & (c != a)]
        if len(merged) <= most or cells <= 4:
            break
        cells = cells * 3 // 4
    # each cell at the mean of its points
    count = np.bincount(index)
    means = np.stack([np.bincount(index, weights=points[:, k]) / count for k in range(3)], axis=1)
    return means, merged
