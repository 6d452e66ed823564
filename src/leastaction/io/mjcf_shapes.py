"""Geoms and sites of a compiled MuJoCo model as shapes and frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.mjcf_names import object_name, unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from leastaction.model.terrain import Heights, Plane

_DEFAULT_COLOR = (0.5, 0.5, 0.5, 1.0)

_HIDDEN_GROUP = 3
"""MuJoCo's viewer shows the geom groups below this one."""


WORLD_GEOMS = f"{WORLD}/geoms"
"""Name of the fixed body that carries the geoms of the world."""


def geom_pose(source: Source, g: int) -> FloatArray:
    """Pose (4, 4) of a geom in its body."""
    return pose(xyz=source.mj.geom_pos[g], quat=source.mj.geom_quat[g])


def geom_label(source: Source, g: int) -> str:
    """Words that name a geom."""
    name = object_name(source.mj, "geom", g)
    return f"geom {name!r}" if name else f"geom {g} of body {source.bodies[source.mj.geom_bodyid[g]]!r}"


def collides(source: Source, g: int) -> bool:
    """Whether a geom takes part in contact: by its bits, or by a pair that names it."""
    mj = source.mj
    named = bool(np.any(mj.pair_geom1 == g) or np.any(mj.pair_geom2 == g))
    return named or bool(mj.geom_contype[g] or mj.geom_conaffinity[g])


def shape_places(source: Source) -> dict[int, int]:
    """Place of every geom that is kept as a shape among the shapes of its body."""
    out: dict[int, int] = {}
    counts: dict[int, int] = {}
    for g in range(source.mj.ngeom):
        if int(source.mj.geom_type[g]) in _solids() or g in source.terrain:
            b = int(source.mj.geom_bodyid[g])
            out[g] = counts.get(b, 0)
            counts[b] = out[g] + 1
    return out


def _solids() -> set[int]:
    """The types of geoms that are shapes here."""
    import mujoco

    kinds = ("BOX", "SPHERE", "CYLINDER", "CAPSULE", "ELLIPSOID", "MESH")
    return {int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")) for kind in kinds}


def body_shapes(source: Source, b: int, notes: Notes) -> list[Shape]:
    """Shapes of a body; planes, height fields and the like are noted."""
    import mujoco

    first, count = int(source.mj.body_geomadr[b]), int(source.mj.body_geomnum[b])
    out: list[Shape] = []
    for g in range(first, first + count):
        kind = mujoco.mjtGeom(int(source.mj.geom_type[g]))
        # the ground, and planes that touch nothing
        fixed = kind == mujoco.mjtGeom.mjGEOM_PLANE and source.mj.body_weldid[b] == 0
        if fixed and g not in source.terrain:
            continue
        shape = _shape(source, g, kind)
        if shape is None:
            notes.add(f"{geom_label(source, g)}: a {kind.name.removeprefix('mjGEOM_').lower()} is not kept as a shape.")
        else:
            out.append(shape)
    return out


def _shape(source: Source, g: int, kind: Any) -> Shape | None:
    """The shape of one geom, None for kinds that are no solids here."""
    import mujoco

    mj = source.mj
    size = mj.geom_size[g]
    solid = collides(source, g)
    # the colour of the material counts unless the geom has its own
    rgba = mj.geom_rgba[g]
    if mj.geom_matid[g] >= 0 and np.array_equal(rgba, _DEFAULT_COLOR):
        rgba = mj.mat_rgba[mj.geom_matid[g]]
    common: dict[str, Any] = {
        "at": geom_pose(source, g),
        "color": np.clip(rgba, 0.0, 1.0).astype(float),
        "visual": not solid or int(mj.geom_group[g]) < _HIDDEN_GROUP,
        "collision": solid,
        "name": object_name(mj, "geom", g) or None,
    }
    # MuJoCo's sizes are half lengths
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return Box(2.0 * size, **common)
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return Sphere(size[0], **common)
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return Cylinder(size[0], 2.0 * size[1], **common)
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return Capsule(size[0], 2.0 * size[1], **common)
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return Ellipsoid(size, **common)
    if kind == mujoco.mjtGeom.mjGEOM_PLANE and g in source.terrain:
        return Plane(2.0 * float(size[:2].max()) or 10.0, **common)
    if kind == mujoco.mjtGeom.mjGEOM_HFIELD and g in source.terrain:
        return _field(mj, int(mj.geom_dataid[g]), common)
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        return _mesh(mj, int(mj.geom_dataid[g]), common)
    return None


def _field(mj: Any, i: int, common: dict[str, Any]) -> Heights:
    """A height field: MuJoCo's rows go along y, its columns along x, and its data from 0 to 1.

    MuJoCo cuts its cells along the other diagonal, so the grid is turned by a quarter.
    """
    rows, columns = int(mj.hfield_nrow[i]), int(mj.hfield_ncol[i])
    first = int(mj.hfield_adr[i])
    data = mj.hfield_data[first : first + rows * columns].reshape(rows, columns).astype(float)
    x, y, top, _ = mj.hfield_size[i]
    common = {**common, "at": common["at"] @ pose(rpy=(0.0, 0.0, 0.5 * np.pi))}
    return Heights(top * data[:, ::-1], np.array([2.0 * y / (rows - 1), 2.0 * x / (columns - 1)]), **common)


def _mesh(mj: Any, i: int, common: dict[str, Any]) -> Mesh:
    """A compiled mesh, scaled and centred by MuJoCo."""
    vertices = mj.mesh_vert[mj.mesh_vertadr[i] :][: mj.mesh_vertnum[i]]
    faces = mj.mesh_face[mj.mesh_faceadr[i] :][: mj.mesh_facenum[i]]
    return Mesh(vertices=vertices.astype(float), faces=faces.astype(np.int64), **common)


def add_static_shapes(m: Mechanism, source: Source, notes: Notes) -> None:
    """Geoms of the world other than planes, on a massless body that is fixed to it."""
    shapes = body_shapes(source, 0, notes)
    if not shapes:
        return
    body = unused(WORLD_GEOMS, m.bodies)
    m.add_body(body, shapes=shapes)
    m.add_joint(unused(body, m.joints), "fixed", parent=WORLD, child=body)
    notes.add(f"the {len(shapes)} geoms of the world are on the body {body!r}, which is fixed to it.")


def add_sites(m: Mechanism, source: Source, notes: Notes) -> dict[int, str]:
    """Sites with a name, as frames; their names by number."""
    mj, out = source.mj, {}
    for s in range(mj.nsite):
        name = object_name(mj, "site", s)
        if not name:
            notes.add("sites without a name are not kept.")
            continue
        # a frame must not have the name of a body
        label = unused(name if name not in m.bodies and name != WORLD else f"{name}/site", {*m.bodies, *m.frames})
        if label != name:
            notes.add(f"the site {name!r} is the frame {label!r}, since there is a body of its name.")
        try:
            m.add_frame(label, source.bodies[mj.site_bodyid[s]], pose(xyz=mj.site_pos[s], quat=mj.site_quat[s]))
        except ModelError as error:
            raise source.element("site", name).error(str(error)) from error
        out[s] = label
    return out
