"""Which shapes of a mechanism may touch, as tables for the kernels.

Every collision shape of a moving body meets the ground. Two bodies meet where ``add_contact`` names them; neighbours in
the tree are no exception once they are named. A pair with "world" is one with the ground, and takes the place of the
body's ordinary contact with it; where it names a shape, the other shapes of the body touch the ground by pairs of their
own or not at all. A margin lets two shapes touch before they meet: it raises the ground, or thickens a round shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.contact import layout as cl
from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray, check_array, check_contact, check_name, check_number, frozen
from leastaction.model.hulls import Hull, hull_of
from leastaction.model.joints import plane_basis
from leastaction.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from leastaction.model.terrain import Heights, Plane, Terrain

if TYPE_CHECKING:
    from leastaction.model.elements import ContactPair, Ground
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.tables import Place

MESH_POINTS = 64
"""Most corners of the convex hull of a mesh."""

_LIMITS = {
    (cl.CAPSULE, cl.HALF_SPACE): 2,
    (cl.CYLINDER, cl.HALF_SPACE): 16,
    (cl.BOX, cl.HALF_SPACE): 8,
    (cl.SPHERE, cl.HEIGHTS): 4,
    (cl.CAPSULE, cl.HEIGHTS): 16,
    (cl.CYLINDER, cl.HEIGHTS): 32,
    (cl.BOX, cl.HEIGHTS): 32,
    (cl.CAPSULE, cl.CAPSULE): 5,
    (cl.CAPSULE, cl.CYLINDER): 7,
    (cl.CAPSULE, cl.BOX): 8,
    (cl.CYLINDER, cl.CYLINDER): 24,
    (cl.CYLINDER, cl.BOX): 24,
    (cl.BOX, cl.BOX): 9,
    (cl.CAPSULE, cl.HULL): 8,
    (cl.CYLINDER, cl.HULL): 24,
    (cl.HULL, cl.HULL): 9,
}
"""Largest number of contacts of a pair of shapes; 1 where it is not listed; points and corners have one each."""


@dataclass(frozen=True)
class ContactTable:
    """What may touch in a mechanism.

    Attributes:
        contacts: the arrays that kernels read.
        names: body a and body b (or "world") of each row of ``contacts.pairs``.
        capacity: largest number of contacts at a time.
        room: how many a run begins with room for: four full pairs of every shape, if these are fewer.
        notes: what was assumed about meshes, and pairs that never touch.
    """

    contacts: cl.Contacts
    names: tuple[tuple[str, str], ...]
    capacity: int
    room: int
    notes: tuple[str, ...]


@dataclass
class _Tables:
    """The tables while they are being written."""

    pairs: list[tuple[int, int, int]] = field(default_factory=list)
    numbers: list[tuple[float, float]] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    frames: list[FloatArray] = field(default_factory=list)
    points: list[FloatArray] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    known: dict[str, dict[int, int]] = field(default_factory=dict)
    thicker: dict[tuple[int, float], int] = field(default_factory=dict)
    flat: dict[int, str] = field(default_factory=dict)
    hulls: list[tuple[int, Hull]] = field(default_factory=list)
    boxes: dict[int, int] = field(default_factory=dict)
    larger: dict[tuple[str, float], list[str]] = field(default_factory=dict)

    def add_shape(self, code: int, row: int, frame: FloatArray, size: Any, reach: float, *counts: int) -> int:
        """Append a shape and return its number."""
        self.shapes.append((code, row, *counts, *[0] * (3 - len(counts))))
        sizes = np.zeros(3)
        sizes[: len(size)] = size
        self.frames.append(np.concatenate([frame[:3, :3].ravel(), frame[:3, 3], sizes, [reach]]))
        return len(self.shapes) - 1

    def add_points(self, row: int, points: FloatArray) -> int:
        """Append points (n, 3) given in the frame of a row."""
        first = sum(len(some) for some in self.points)
        frame = np.eye(4)
        frame[:3, 3] = points.mean(axis=0)
        reach = float(np.linalg.norm(points - frame[:3, 3], axis=1).max())
        self.points.append(points)
        return self.add_shape(cl.POINT_SET, row, frame, (), reach, first, len(points))

    def add_hull(self, row: int, hull: Hull) -> int:
        """Append a convex hull given in the frame of a row."""
        number = self.add_points(row, hull.points)
        first = self.shapes[number][cl.FIRST]
        self.shapes[number] = (cl.HULL, row, first, len(hull.points), len(self.hulls))
        self.hulls.append((first, hull))
        return number

    def add_field(self, row: int, frame: FloatArray, heights: FloatArray, spacing: FloatArray) -> int:
        """Append a height field."""
        first = len(self.heights)
        self.heights.extend(heights.ravel().tolist())
        return self.add_shape(cl.HEIGHTS, row, frame, spacing, np.inf, first, *heights.shape)

    def box_as_hull(self, s: int) -> int:
        """The convex hull of a box, which is a shape of its own."""
        if s not in self.boxes:
            frame = self.frames[s]
            signs = np.array([[(1.0 if k >> e & 1 else -1.0) for e in range(3)] for k in range(8)])
            points = signs * frame[cl.SIZE : cl.REACH] @ frame[:9].reshape(3, 3).T + frame[cl.PLACE : cl.SIZE]
            self.boxes[s] = self.add_hull(self.shapes[s][cl.ROW], hull_of(points, "box"))
        return self.boxes[s]

    def add_pair(self, s: int, t: int, friction: float, restitution: float, names: tuple[str, str]) -> None:
        """Append a pair of shapes, the one with the smaller code first."""
        if self.shapes[s][cl.CODE] > self.shapes[t][cl.CODE]:
            s, t, names = t, s, (names[1], names[0])
        one, two = self.shapes[s][cl.CODE], self.shapes[t][cl.CODE]
        points = one == cl.POINT_SET or (one == cl.HULL and two != cl.HULL)
        limit = self.shapes[s][cl.COUNT] if points else _LIMITS.get((one, two), 1)
        self.pairs.append((s, t, limit))
        self.numbers.append((friction, restitution))
        self.names.append(names)


def two_bodies(a: Any, b: Any, where: str) -> frozenset[str]:
    """Two different body names."""
    names = frozenset((check_name(a, where), check_name(b, where)))
    if len(names) != 2:
        raise ModelError(f"{where}: the two bodies are the same, '{a}'.")
    return names


def check_pair(pair: ContactPair) -> frozenset[str]:
    """Check a contact pair in place; its two bodies."""
    where = f"contact '{pair.a}' and '{pair.b}'"
    names = two_bodies(pair.a, pair.b, where)
    pair.friction, pair.restitution = check_contact(pair.friction, pair.restitution, where)
    pair.margin = check_number(pair.margin, f"{where}: margin", nonnegative=True)
    # points placed by hand
    if pair.points is not None:
        points = check_array(pair.points, f"{where}: points")
        if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
            raise ModelError(f"{where}: points must be an array (n, 3), got shape {points.shape}.")
        pair.points = frozen(points)
    # one shape of each body, or all
    chosen = tuple(pair.shapes) if isinstance(pair.shapes, (tuple, list)) else ()
    whole = all(i is None or (isinstance(i, (int, np.integer)) and not isinstance(i, bool) and i >= 0) for i in chosen)
    if len(chosen) != 2 or not whole:
        raise ModelError(f"{where}: shapes must be two whole numbers or None, got {pair.shapes!r}.")
    pair.shapes = (None if chosen[0] is None else int(chosen[0]), None if chosen[1] is None else int(chosen[1]))
    for name, i in ((pair.a, pair.shapes[0]), (pair.b, pair.shapes[1])):
        if i is not None and (name == WORLD or (name == pair.a and pair.points is not None)):
            raise ModelError(f"{where}: '{name}' has no shapes in this pair; give None for it.")
    return names


def contact_table(mechanism: Mechanism, places: dict[str, Place]) -> ContactTable:
    """All pairs of shapes that may touch.

    Args:
        mechanism: a checked mechanism.
        places: row and pose in the row frame of every body, as of ``Model.places``.
    """
    out = _Tables()
    ground = None if mechanism.ground is None else _add_ground(out, mechanism.ground)
    # pairs by name; those with the world replace the body's contact with the ground
    by_hand = set()
    for pair in mechanism.contacts:
        if WORLD in (pair.a, pair.b):
            by_hand.add(pair.a if pair.b == WORLD else pair.b)
        _add_pair(out, mechanism, places, pair, ground)
    # every other shape against the ground
    if mechanism.ground is not None and ground is not None:
        for name in mechanism.bodies:
            excluded = frozenset((name, WORLD)) in mechanism.contact_excludes
            if places[name].row == 0 or name in by_hand or excluded:
                continue
            for s in _shapes(out, mechanism, places, name).values():
                out.add_pair(s, ground, mechanism.ground.friction, mechanism.ground.restitution, (name, WORLD))
        if not out.pairs:
            out.notes.append("ground: no moving body has a collision shape, so nothing touches it.")
    return _finish(out)


def _finish(out: _Tables) -> ContactTable:
    """The tables as arrays."""
    codes = [(out.shapes[s][cl.CODE], out.shapes[t][cl.CODE]) for s, t, _ in out.pairs]
    boxes = [k for k, code in enumerate(codes) if code == (cl.BOX, cl.BOX)]
    rounds = [k for k, (one, two) in enumerate(codes) if one in (cl.CAPSULE, cl.CYLINDER) and two <= cl.BOX]
    for (what, margin), pairs in out.larger.items():
        more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
        out.notes.append(
            f"{pairs[0]}{more}: the margin of {margin:g} m makes the {what} larger on all sides, so that its edges and "
            "corners touch up to 0.73 of it too early."
        )
    ovals = [k for k, (one, two) in enumerate(codes) if one > cl.SPHERE and two == cl.OVAL]
    contacts = cl.Contacts(
        np.array(out.pairs, dtype=np.int64).reshape(-1, 3),
        np.array(out.numbers, dtype=float).reshape(-1, 2),
        np.array(out.shapes, dtype=np.int64).reshape(-1, cl.SHAPE_WIDTH),
        np.array(out.frames, dtype=float).reshape(-1, cl.FRAME_WIDTH),
        np.array([_capsule(out, s) for s in range(len(out.shapes))], dtype=float).reshape(-1, 4),
        np.concatenate([np.zeros((0, 3)), *out.points]),
        np.array(out.heights, dtype=float) if out.heights else None,
        np.array(boxes, dtype=np.int64) if boxes else None,
        np.array(rounds, dtype=np.int64) if rounds else None,
        np.array(ovals, dtype=np.int64) if ovals else None,
        _hull_tables(out) if any(two == cl.HULL for _, two in codes) else None,
    )
    capacity, most = int(contacts.pairs[:, 2].sum()), np.zeros(len(out.shapes), dtype=np.int64)
    for side in range(2):
        np.maximum.at(most, contacts.pairs[:, side], contacts.pairs[:, 2])
    return ContactTable(contacts, tuple(out.names), capacity, min(capacity, 4 * int(most.sum())), tuple(out.notes))


def _capsule(out: _Tables, s: int) -> list[float]:
    """Half the axis, in the frame of the row, and the radius of a capsule that holds a shape."""
    code, first, count = (out.shapes[s][k] for k in (cl.CODE, cl.FIRST, cl.COUNT))
    frame = out.frames[s]
    turn, size, reach = frame[:9].reshape(3, 3), frame[cl.SIZE : cl.REACH], float(frame[cl.REACH])
    k = int(np.argmax(size))
    if code in (cl.CAPSULE, cl.CYLINDER):
        return [*size[1] * turn[:, 2], float(size[0])]
    if code == cl.BOX:
        return [*size[k] * turn[:, k], float(np.hypot(*np.delete(size, k)))]
    if code == cl.OVAL:
        thick = float(np.delete(size, k).max())
        return [*(size[k] - thick) * turn[:, k], thick]
    if code in (cl.POINT_SET, cl.HULL):
        # along the direction in which the points reach farthest
        away = np.concatenate([np.zeros((0, 3)), *out.points])[first : first + count] - frame[cl.PLACE : cl.SIZE]
        axis = np.linalg.svd(away, full_matrices=False)[2][0]
        along = away @ axis
        return [*np.abs(along).max() * axis, float(np.linalg.norm(away - np.outer(along, axis), axis=1).max())]
    return [0.0, 0.0, 0.0, reach]


def _hull_tables(out: _Tables) -> cl.Hulls:
    """Faces and edges of all hulls as arrays."""
    spans: list[list[int]] = []
    faces: list[list[int]] = []
    loops: list[list[int]] = []
    edges: list[list[int]] = []
    planes = [hull.planes for _, hull in out.hulls]
    for first, hull in out.hulls:
        spans.append([len(faces), len(hull.planes), len(edges), len(hull.edges)])
        number = {}
        for e, (i, j, *_) in enumerate(hull.edges.tolist()):
            number[i, j] = number[j, i] = len(edges) + e
        start = len(faces)
        for loop in hull.loops:
            faces.append([len(loops), len(loop)])
            ends = np.roll(loop, -1).tolist()
            loops += [[first + i, number[i, j]] for i, j in zip(loop.tolist(), ends, strict=True)]
        edges += [[first + i, first + j, start + f, start + g] for i, j, f, g in hull.edges.tolist()]
    whole = (np.array(table, dtype=np.int64) for table in (spans, faces, loops, edges))
    return cl.Hulls(next(whole), np.concatenate(planes), *whole)


def _add_ground(out: _Tables, ground: Ground) -> int:
    """The ground as a shape of the world: a half-space or a height field."""
    frame = np.eye(4)
    frame[:3, 3] = ground.height * ground.normal
    if ground.heights is None or ground.spacing is None:
        frame[:3, :3] = np.column_stack([*plane_basis(ground.normal), ground.normal])
        return out.add_shape(cl.HALF_SPACE, 0, frame, (), np.inf)
    return out.add_field(0, frame, ground.heights, ground.spacing)


def _add_pair(
    out: _Tables, mechanism: Mechanism, places: dict[str, Place], pair: ContactPair, ground: int | None
) -> None:
    """The shapes of two bodies against each other, or points of the first against the shapes of the second."""
    where = f"contact '{pair.a}' and '{pair.b}'"
    if frozenset((pair.a, pair.b)) in mechanism.contact_excludes:
        out.notes.append(f"{where}: left out, exclude_contact names the pair.")
        return
    if places[pair.a].row == places[pair.b].row:
        out.notes.append(f"{where}: left out, the two bodies are fixed to each other.")
        return
    if WORLD in (pair.a, pair.b) and ground is None:
        raise ModelError(f"{where}: a pair with the world is one with the ground; call add_ground as well.")
    # the two sides
    sides: list[list[int]] = []
    for name, points, chosen in ((pair.a, pair.points, pair.shapes[0]), (pair.b, None, pair.shapes[1])):
        if points is not None and name != WORLD:
            place = places[name]
            sides.append([out.add_points(place.row, points @ place.pose[:3, :3].T + place.pose[:3, 3])])
        elif points is not None:
            raise ModelError(f"{where}: points lie on the first body; name the body first and the world second.")
        elif name == WORLD and ground is not None:
            sides.append([ground])
        else:
            found = _shapes(out, mechanism, places, name)
            if chosen is not None and chosen not in found:
                raise ModelError(f"{where}: body '{name}' has no collision shape at place {chosen} of its shapes.")
            sides.append(list(found.values()) if chosen is None else [found[chosen]])
            if not sides[-1]:
                raise ModelError(
                    f"{where}: body '{name}' has no collision shape; give it one, or points= on the first body."
                )
    for s in sides[0]:
        for t in sides[1]:
            _check_touch(out, s, t, where)
            one, two = (s, t) if pair.margin == 0 else _thickened(out, s, t, pair.margin, where)
            # a box meets hulls and ellipsoids as its own hull
            kinds = {out.shapes[one][cl.CODE], out.shapes[two][cl.CODE]}
            if kinds in ({cl.BOX, cl.HULL}, {cl.BOX, cl.OVAL}):
                one, two = (out.box_as_hull(k) if out.shapes[k][cl.CODE] == cl.BOX else k for k in (one, two))
            out.add_pair(one, two, pair.friction, pair.restitution, (pair.a, pair.b))


_EXACT = (cl.HALF_SPACE, cl.SPHERE, cl.CAPSULE)
_LARGER = {cl.CYLINDER: "cylinder", cl.BOX: "box", cl.OVAL: "ellipsoid"}


def _thickened(out: _Tables, s: int, t: int, margin: float, where: str) -> tuple[int, int]:
    """The two shapes with one of them thicker by the margin: the flat ground raised, or a round shape, else a solid."""
    k = next((k for code in (*_EXACT, *_LARGER) for k in (s, t) if out.shapes[k][cl.CODE] == code), None)
    if k is None:
        raise ModelError(
            f"{where}: a margin needs flat ground or a solid that is no mesh on one side; set it to zero or change a "
            "shape."
        )
    if out.shapes[k][cl.CODE] in _LARGER:
        out.larger.setdefault((_LARGER[out.shapes[k][cl.CODE]], margin), []).append(where)
    if (k, margin) not in out.thicker:
        frame, sizes = np.eye(4), out.frames[k][12:15].copy()
        frame[:3, :3], frame[:3, 3] = out.frames[k][:9].reshape(3, 3), out.frames[k][9:12]
        if out.shapes[k][cl.CODE] == cl.HALF_SPACE:
            frame[:3, 3] += margin * frame[:3, 2]
        else:
            sizes[: 3 if out.shapes[k][cl.CODE] in _LARGER else 1] += margin
        reach = float(out.frames[k][15]) + np.sqrt(3.0) * margin
        out.thicker[k, margin] = out.add_shape(out.shapes[k][cl.CODE], out.shapes[k][1], frame, sizes, reach)
    thick = out.thicker[k, margin]
    return (thick, t) if k == s else (s, thick)


def _check_touch(out: _Tables, s: int, t: int, where: str) -> None:
    """Refuse what has no inside where it does not meet the ground."""
    if not {out.shapes[s][cl.CODE], out.shapes[t][cl.CODE]} & {cl.HALF_SPACE, cl.HEIGHTS}:
        for k in (s, t):
            if k in out.flat:
                raise ModelError(f"{where}: {out.flat[k]}")


def _shapes(out: _Tables, mechanism: Mechanism, places: dict[str, Place], name: str) -> dict[int, int]:
    """Numbers of the collision shapes of a body by their place in it; they are written on first use."""
    if name not in out.known:
        place = places[name]
        listed = {i: shape for i, shape in enumerate(mechanism.bodies[name].shapes) if shape.collision}
        out.known[name] = {
            i: _add_shape(out, shape, place.row, place.pose @ shape.at, name) for i, shape in listed.items()
        }
    return out.known[name]


def _add_shape(out: _Tables, shape: Shape, row: int, frame: FloatArray, name: str) -> int:
    """Write one shape of a body."""
    if isinstance(shape, Sphere):
        return out.add_shape(cl.SPHERE, row, frame, (shape.radius,), shape.radius)
    if isinstance(shape, Capsule):
        half = 0.5 * shape.length
        return out.add_shape(cl.CAPSULE, row, frame, (shape.radius, half), half + shape.radius)
    if isinstance(shape, Cylinder):
        half = 0.5 * shape.length
        return out.add_shape(cl.CYLINDER, row, frame, (shape.radius, half), float(np.hypot(half, shape.radius)))
    if isinstance(shape, Box):
        return out.add_shape(cl.BOX, row, frame, 0.5 * shape.size, 0.5 * float(np.linalg.norm(shape.size)))
    if isinstance(shape, Ellipsoid):
        return out.add_shape(cl.OVAL, row, frame, shape.radii, float(shape.radii.max()))
    if isinstance(shape, Terrain) and row != 0:
        raise ModelError(f"body '{name}': a {shape.kind} must be on a body that is fixed to the world.")
    if isinstance(shape, Plane):
        return out.add_shape(cl.HALF_SPACE, row, frame, (), np.inf)
    if isinstance(shape, Heights):
        return out.add_field(row, frame, shape.heights, shape.spacing)
    if isinstance(shape, Mesh):
        where = f"body '{name}': {shape.label}"
        points = _corners(shape, where, out.notes) @ frame[:3, :3].T + frame[:3, 3]
        try:
            return out.add_hull(row, hull_of(points, where))
        except ModelError as error:
            number = out.add_points(row, points)
            out.flat[number] = str(error)
            return number
    raise ModelError(f"body '{name}': a {shape.kind} cannot touch anything; give it collision=False.")


def _corners(mesh: Mesh, where: str, notes: list[str]) -> FloatArray:
    """Corners (n, 3) of the convex hull of a mesh, at most ``MESH_POINTS``: the extreme ones of spread directions."""
    from scipy.spatial import ConvexHull, QhullError

    points = mesh.points
    try:
        points = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        notes.append(f"{where}: it is flat, so all its vertices are taken as corners.")
        points = np.unique(points, axis=0)
    notes.append(f"{where}: contact is that of its convex hull.")
    if len(points) > MESH_POINTS:
        k = np.arange(MESH_POINTS)
        z = 1.0 - (2.0 * k + 1.0) / MESH_POINTS
        turn = np.pi * (3.0 - np.sqrt(5.0)) * k
        directions = np.column_stack([np.sqrt(1.0 - z * z) * np.cos(turn), np.sqrt(1.0 - z * z) * np.sin(turn), z])
        # the six extreme ones along the axes first, then the others in the order of the directions
        order = np.concatenate([np.eye(3), -np.eye(3), directions]) @ (points - points.mean(axis=0)).T
        chosen = list(dict.fromkeys(order.argmax(axis=1).tolist()))[:MESH_POINTS]
        notes.append(f"{where}: of its {len(points)} corners the {len(chosen)} most extreme ones are kept.")
        points = points[chosen]
    return np.asarray(points, dtype=float)
