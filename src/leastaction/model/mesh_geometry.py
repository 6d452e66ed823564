"""Triangle meshes: reading files, and the mass properties of the solid that a surface encloses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import ModelError
from leastaction.model.checks import LARGEST, FloatArray, frozen
from leastaction.model.collada import read_collada
from leastaction.model.files import check_regular_file, read_file

IntArray = NDArray[np.int64]

MAX_BYTES = 200_000_000
"""Largest mesh file that is read."""

FORMATS = ("stl", "obj", "ply", "off", "glb", "dae")
"""File endings that are read: COLLADA (dae) by ``model.collada``, the others through trimesh."""

_FLAT = 1e-12
"""A volume below this fraction of the cube of the mesh's extent is no volume."""


def check_mesh_file(path: Path) -> None:
    """Raise unless the path is a regular file of a known format and a reasonable size; nothing is opened."""
    check_regular_file(path, "mesh", MAX_BYTES)
    if path.suffix[1:].lower() not in FORMATS:
        raise ModelError(f"mesh '{path}': unknown format '{path.suffix}'; known are {', '.join(FORMATS)}.")


def read_mesh_file(path: Path) -> tuple[FloatArray, IntArray]:
    """Vertices (n, 3) and faces (m, 3) of a mesh file, read-only; all but COLLADA need the extra ``mesh``."""
    check_mesh_file(path)
    data, suffix = read_file(path, "mesh", MAX_BYTES), path.suffix[1:].lower()
    if suffix == "dae":
        try:
            vertices, faces = read_collada(data)
        except ModelError as error:
            raise ModelError(f"mesh '{path}': {error}") from error
        return check_mesh(vertices, faces, f"mesh '{path}'")
    # the only part that needs trimesh; it is given bytes, so that it cannot follow references to other files
    try:
        import trimesh
    except ImportError as error:
        raise ModelError(
            f"mesh '{path}': reading mesh files needs trimesh; install it with pip install 'leastaction[mesh]'."
        ) from error
    # readers of strangers' files raise whatever they please
    try:
        mesh: Any = trimesh.load(io.BytesIO(data), file_type=suffix, force="mesh", skip_materials=True)
        vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64)
    except Exception as error:
        raise ModelError(f"mesh '{path}': cannot be read as {suffix} ({_reason(error)}).") from error
    return check_mesh(vertices, faces, f"mesh '{path}'")


def check_mesh(vertices: Any, faces: Any, where: str) -> tuple[FloatArray, IntArray]:
    """Vertices (n, 3) and faces (m, 3) as read-only arrays, if they are finite and fit together."""
    points = np.asarray(vertices)
    indices = np.asarray(faces)
    # numbers of the right shape
    if points.dtype.kind not in "iuf" or points.ndim != 2 or points.shape[1] != 3:
        raise ModelError(f"{where}: vertices must be an array (n, 3) of numbers.")
    if not (np.abs(points) <= LARGEST).all():
        raise ModelError(f"{where}: every vertex must be finite.")
    if indices.dtype.kind not in "iu" or indices.ndim != 2 or indices.shape[1] != 3 or len(indices) == 0:
        raise ModelError(f"{where}: faces must be an array (m, 3) of whole numbers with at least one row.")
    # faces that name vertices
    if indices.min() < 0 or indices.max() >= len(points):
        raise ModelError(f"{where}: a face names vertex {indices.max()}, but there are {len(points)} vertices.")
    return frozen(points), frozen_indices(indices)


def frozen_indices(faces: Any) -> IntArray:
    """A read-only copy of indices."""
    out = np.array(faces, dtype=np.int64)
    out.setflags(write=False)
    return out


def solid_moments(points: FloatArray, faces: IntArray, where: str) -> tuple[float, FloatArray, FloatArray, list[str]]:
    """Volume, centroid (3,), inertia (3, 3) at unit density about the centroid, and notes on what was assumed.

    A closed surface is integrated by signed tetrahedra, whichever way it is oriented. Where the surface is open or
    not consistently oriented, its convex hull is taken instead and a note says so.
    """
    notes: list[str] = []
    # the surface itself, if it encloses something
    if is_closed(points, faces):
        volume, centroid, inertia = signed_moments(points, faces)
        if volume < 0:
            volume, inertia = -volume, -inertia
        if _is_solid(points, volume, inertia):
            return volume, centroid, inertia, notes
        notes.append(f"{where}: the surface encloses no volume; mass properties are those of its convex hull.")
    else:
        notes.append(f"{where}: the surface is not closed; mass properties are those of its convex hull.")
    # its hull
    volume, centroid, inertia = signed_moments(points, _hull_faces(points, where))
    if not _is_solid(points, volume, inertia):
        raise ModelError(f"{where}: the mesh is flat and has no volume; give mass and inertia.")
    return volume, centroid, inertia, notes


def is_closed(points: FloatArray, faces: IntArray) -> bool:
    """Whether every edge is passed as often forward as backward, once equal vertices are merged."""
    # vertices that differ by rounding only are one
    low, extent = points.min(axis=0), _extent(points)
    cells = np.round((points - low) / (1e-9 * extent + np.finfo(float).tiny)).astype(np.int64)
    merged = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)[faces]
    # drop triangles that collapsed
    a, b, c = merged.T
    merged = merged[(a != b) & (b != c) & (c != a)]
    if len(merged) == 0:
        return False
    # number the directed edges and compare the counts with those of the reversed ones
    start = merged.reshape(-1)
    end = np.roll(merged, -1, axis=1).reshape(-1)
    n = int(merged.max()) + 1
    forward, backward = np.sort(start * n + end), np.sort(end * n + start)
    return bool(np.array_equal(forward, backward))


def signed_moments(points: FloatArray, faces: IntArray) -> tuple[float, FloatArray, FloatArray]:
    """Volume, centroid and inertia at unit density about the centroid, from tetrahedra over the triangles."""
    # about a point in the middle of the mesh, so that a mesh far from its origin loses no digits
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    corners = (points - middle)[faces]
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    if volume == 0.0:
        return 0.0, middle, np.zeros((3, 3))
    # first and second moments of a tetrahedron with one corner at the origin
    s = a + b + c
    centroid = np.einsum("i,ij->j", volumes, s) / (4.0 * volume)
    second = sum(np.einsum("i,ij,ik->jk", volumes, x, x) for x in (s, a, b, c)) / 20.0
    # about the centroid
    second = second - volume * np.outer(centroid, centroid)
    return volume, centroid + middle, np.trace(second) * np.eye(3) - second


def _is_solid(points: FloatArray, volume: float, inertia: FloatArray) -> bool:
    """Whether the volume is positive and the moments are those of some solid."""
    if volume <= _FLAT * _extent(points) ** 3:
        return False
    a, b, c = np.linalg.eigvalsh(0.5 * (inertia + inertia.T))
    return bool(a > 0 and c <= (a + b) * (1 + 1e-9))


def _hull_faces(points: FloatArray, where: str) -> IntArray:
    """Outward triangles (m, 3) of the convex hull."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise ModelError(f"{where}: the mesh is flat and has no volume; give mass and inertia.") from error
    # turn each triangle so that its normal points outward
    faces = hull.simplices.astype(np.int64)
    a, b, c = points[faces[:, 0]], points[faces[:, 1]], points[faces[:, 2]]
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return np.asarray(faces, dtype=np.int64)


def _extent(points: FloatArray) -> float:
    """Longest side of the bounding box."""
    return float((points.max(axis=0) - points.min(axis=0)).max())


def _reason(error: BaseException) -> str:
    """Short text of an exception."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.splitlines()[0][:200] if text else type(error).__name__
