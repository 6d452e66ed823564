"""Convex hulls of meshes as tables for contact: corners, faces with all their corners, edges.

Triangles that lie in one plane are one face, so that what stands on it touches the corners of a polygon, and a corner
inside a face or on the straight part of an edge is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.mesh_geometry import IntArray

LEVEL = 1e-6
"""Corners this far from the plane of a face, over the extent of the hull, lie in it."""


@dataclass(frozen=True)
class Hull:
    """A convex polyhedron.

    Attributes:
        points: (n, 3) corners, metres.
        planes: (nf, 4) outward unit normals and offsets: n . x is the offset on a face, and no corner is above it.
        loops: for each face its corners, counterclockwise from outside.
        edges: (ne, 4) two corners and the two faces that meet there.
    """

    points: FloatArray
    planes: FloatArray
    loops: tuple[IntArray, ...]
    edges: IntArray


def hull_of(points: FloatArray, where: str) -> Hull:
    """The convex hull of points (n, 3); flat ones are refused."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise ModelError(
            f"{where}: it is flat, so it has no inside and touches the ground only; give it thickness, take a thin "
            "box instead, or collision=False."
        ) from error
    # triangles with their normals outward
    corners, normals = hull.simplices.astype(np.int64), hull.equations[:, :3]
    a, b, c = (points[corners[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), normals) < 0
    corners[inward] = corners[inward][:, ::-1]
    extent = float((points.max(axis=0) - points.min(axis=0)).max())
    # one loop of corners for each face, or the triangles as they are where that goes wrong
    loops = _faces(points, corners, hull.neighbors, normals, LEVEL * extent)
    if loops is None:
        loops = list(corners)
    return _numbered(points, loops)


def _faces(
    points: FloatArray, corners: IntArray, neighbors: IntArray, normals: FloatArray, level: float
) -> list[IntArray] | None:
    """Loops of the corners around each face; None if the triangles of some face have no single border."""
    a, b, c = (points[corners[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    face = np.full(len(corners), -1)
    # from the largest triangle outward, as long as the corners lie in its plane
    for seed in np.argsort(-areas, kind="stable"):
        if face[seed] >= 0:
            continue
        face[seed], waiting = seed, [seed]
        while waiting:
            for t in neighbors[waiting.pop()]:
                far = np.abs((points[corners[t]] - a[seed]) @ normals[seed]).max() if face[t] < 0 else np.inf
                if far <= level and normals[t] @ normals[seed] > 0.5:
                    face[t] = seed
                    waiting.append(t)
    # borders: edges whose other side belongs to another face
    owner = {(int(t[k]), int(t[k - 2])): int(f) for t, f in zip(corners, face, strict=True) for k in range(3)}
    after: dict[int, dict[int, int]] = {}
    for (i, j), f in owner.items():
        if owner.get((j, i), f) != f:
            if i in after.setdefault(f, {}):
                return None
            after[f][i] = j
    # corners between fewer than three faces lie on a straight edge
    faces_at = np.zeros(len(points), dtype=np.int64)
    for border in after.values():
        faces_at[list(border)] += 1
    loops = []
    for border in after.values():
        start = i = next(iter(border))
        loop = [i]
        while (i := border.get(i, start)) != start:
            loop.append(i)
        kept = [i for i in loop if faces_at[i] > 2]
        if len(loop) != len(border) or len(kept) < 3:
            return None
        loops.append(np.array(kept))
    # Euler: every closed surface without holes
    edges = sum(len(loop) for loop in loops) / 2
    used = len(set(np.concatenate(loops).tolist()))
    return loops if used - edges + len(loops) == 2 else None


def _numbered(points: FloatArray, loops: list[IntArray]) -> Hull:
    """The hull of loops of corners; corners that are not used are left out."""
    used = np.unique(np.concatenate(loops))
    points, loops = points[used], [np.searchsorted(used, loop) for loop in loops]
    planes, edges, sides = [], [], {}
    for f, loop in enumerate(loops):
        # normal by the area of the polygon, the offset of its highest corner
        x = points[loop] - points[loop[0]]
        n = np.cross(x, np.roll(x, -1, axis=0)).sum(axis=0)
        n /= np.linalg.norm(n)
        planes.append([*n, (points[loop] @ n).max()])
        for i, j in zip(loop.tolist(), np.roll(loop, -1).tolist(), strict=True):
            sides[i, j] = f
    for (i, j), f in sides.items():
        if i < j:
            edges.append([i, j, f, sides[j, i]])
    return Hull(points, np.array(planes), tuple(loops), np.array(edges, dtype=np.int64))
