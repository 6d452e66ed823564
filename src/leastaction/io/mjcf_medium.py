"""The medium around the bodies of a compiled MuJoCo model, and compensation of their weight, as forces on bodies."""

from __future__ import annotations

import numpy as np

from leastaction.io.mjcf_joints import Settings
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.model.fluid import FluidDrag
from leastaction.model.forces import PointForce
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose

# Inertia of a body below which MuJoCo takes the box to be no thinner, kg m^2.
_LEAST = 1e-15


def add_medium(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> None:
    """Drag on every moving body with mass, by the box that has its inertia."""
    mj = source.mj
    if mj.opt.density == 0 and mj.opt.viscosity == 0:
        return
    if {"spring", "damper"} <= settings.off:
        return
    option = source.first.get("option", source.root)
    for b in _moving(source):
        if mj.body_mass[b] < _LEAST:
            continue
        geoms = range(int(mj.body_geomadr[b]), int(mj.body_geomadr[b] + mj.body_geomnum[b]))
        if any(mj.geom_fluid[g, 0] > 0 for g in geoms):
            what = f'the body {source.bodies[b]!r} has fluidshape="ellipsoid", which is not supported.'
            notes.unless_allowed("fluid", source.element("body", source.bodies[b]).error(what))
            continue
        inertia = mj.body_inertia[b]
        box = np.sqrt(6.0 / mj.body_mass[b] * np.maximum(inertia.sum() - 2.0 * inertia, _LEAST))
        frame = pose(xyz=mj.body_ipos[b], quat=mj.body_iquat[b])
        with located(option):
            m.add_force(
                FluidDrag(
                    source.bodies[b], box, density=float(mj.opt.density), viscosity=float(mj.opt.viscosity),
                    wind=mj.opt.wind, frame=frame, name=f"medium/{source.bodies[b]}",
                )
            )  # fmt: skip
    notes.add(f"{option.where}: the medium drags every body as the box that has its inertia, as in MuJoCo.")


def add_compensation(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> None:
    """A constant force against the weight of every body with gravcomp."""
    mj = source.mj
    if {"spring", "damper"} <= settings.off or not settings.gravity.any():
        return
    moving = set(_moving(source))
    for b in np.flatnonzero(mj.body_gravcomp).tolist():
        if b not in moving or mj.body_mass[b] == 0:
            continue
        element = source.element("body", source.bodies[b])
        # a motor that carries it may be too weak
        joint = _carried_by_motor(source, b)
        if joint is not None:
            what = f"gravcomp of {source.bodies[b]!r} counts as force of the motor of {joint!r}, which has a range"
            notes.unless_allowed("gravcomp", element.error(f"{what}; this is not supported."))
        with located(element):
            name, push = f"gravcomp/{source.bodies[b]}", -mj.body_gravcomp[b] * mj.body_mass[b] * settings.gravity
            m.add_force(PointForce(source.bodies[b], mj.body_ipos[b], push, name=name))


def _moving(source: Source) -> list[int]:
    """Bodies that are not fixed to the world."""
    mj = source.mj
    return [b for b in range(1, mj.nbody) if mj.body_weldid[b] != 0]


def _carried_by_motor(source: Source, b: int) -> str | None:
    """A joint above a body whose motor carries the compensation within a bounded force, or None."""
    mj = source.mj
    while b > 0:
        for j in range(int(mj.body_jntadr[b]), int(mj.body_jntadr[b] + mj.body_jntnum[b])):
            if mj.jnt_actgravcomp[j] and mj.jnt_actfrclimited[j]:
                return source.joints[j]
        b = int(mj.body_parentid[b])
    return None
