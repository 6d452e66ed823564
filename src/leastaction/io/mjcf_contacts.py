"""Contact of a compiled MuJoCo model: which geoms may touch, with what friction, and where the ground is.

MuJoCo decides for each pair of geoms: by an explicit pair, else by bits, bodies and excluded pairs. Friction and condim
are those of the geom with the higher priority, else the larger of each; margins are added.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.mjcf_names import object_name
from leastaction.io.mjcf_shapes import WORLD_GEOMS, collides, geom_label, geom_pose, shape_places
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.contacts import check_pair
from leastaction.model.elements import ContactPair
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose

MAX_TOUCHES = 50_000
"""Most pairs of geoms that may touch: those of 300 bodies that all may."""


class Touch(NamedTuple):
    """Two geoms that may touch.

    Attributes:
        g, h: the geoms, the smaller number first.
        friction: (5,) two of sliding, one of torsion, two of rolling.
        condim: 1 without friction, 3 sliding, 4 with torsion, 6 with rolling.
        margin: distance at which they touch, metres.
    """

    g: int
    h: int
    friction: FloatArray
    condim: int
    margin: float

    @property
    def numbers(self) -> tuple[float, float]:
        """Coulomb coefficient and margin."""
        return (float(self.friction[0]) if self.condim > 1 else 0.0), self.margin


def add_contacts(m: Mechanism, source: Source, touches: list[Touch] | None, notes: Notes) -> None:
    """The ground, and the pairs of shapes that MuJoCo lets touch; None where it lets nothing.

    They are data of the mechanism: a method without contact refuses it by name until ``m.without("contacts")``.
    """
    if touches is None:
        return
    _check_effects(source, notes, touches)
    # what is neither the ground nor a shape cannot touch
    places, ground = shape_places(source), source.ground
    kept: list[Touch] = []
    dropped: dict[int, None] = {}
    for touch in touches:
        lost = [k for k in (touch.g, touch.h) if k not in places and k != ground]
        dropped.update(dict.fromkeys(lost))
        kept += [] if lost else [touch]
    for g in dropped:
        notes.unless_allowed("contacts", _error(source, g, f"contact with a {_kind(source, g)} is not supported here."))
    _add_ground(m, source, notes, [t for t in kept if ground in (t.g, t.h)], ground, places)
    _add_pairs(m, source, notes, [t for t in kept if ground not in (t.g, t.h)], places)
    _exclude(m, source)


def _add_contact(
    m: Mechanism, a: str, b: str, friction: float, margin: float, shapes: tuple[int | None, int | None] = (None, None)
) -> None:
    """``m.add_contact`` of a pair that is known to be new: looking for it among all others takes time for each."""
    contact = ContactPair(a, b, friction, 0.0, shapes=shapes, margin=margin)
    check_pair(contact)
    m.contacts.append(contact)


def touching(source: Source) -> list[Touch]:
    """Every two geoms that MuJoCo lets touch, of bodies that move against each other."""
    import mujoco

    mj = source.mj
    named = {tuple(sorted((int(mj.pair_geom1[p]), int(mj.pair_geom2[p])))): p for p in range(mj.npair)}
    of_first: dict[int, list[int]] = {}
    for first, second in named:
        of_first.setdefault(first, []).append(second)
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in mj.exclude_signature}
    neighbours = bool(mj.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT))
    body = mj.geom_bodyid
    weld = mj.body_weldid[body]
    above = mj.body_weldid[mj.body_parentid[weld]]
    flat = np.isin(mj.geom_type, [int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD)])
    out: list[Touch] = []
    for g in range(mj.ngeom):
        # matching bits, not fixed to each other, not parent and child (the world counts as no parent)
        may = (mj.geom_contype[g] & mj.geom_conaffinity) | (mj.geom_contype & mj.geom_conaffinity[g]) != 0
        related = (weld[g] != 0) & (weld != 0) & ((weld[g] == above) | (weld == above[g]))
        may &= ~(flat & flat[g]) & (neighbours | ~related)
        may[: g + 1] = False
        for h in of_first.get(g, ()):
            may[h] = True
        for h in np.flatnonzero(may & (weld != weld[g])).tolist():
            p = named.get((g, h))
            if p is not None:
                margin = float(mj.pair_margin[p])
                out.append(Touch(g, h, np.array(mj.pair_friction[p]), int(mj.pair_dim[p]), margin))
            elif not {(body[g], body[h]), (body[h], body[g])} & excluded:
                out.append(_mixed(mj, g, h))
        if len(out) > MAX_TOUCHES:
            what = f"more than {MAX_TOUCHES} pairs of geoms may touch, which is more than is read"
            raise _error(source, g, f"{what}; say by contype and conaffinity, or by <exclude>, which cannot.")
    # one friction and margin for all
    if mj.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        friction, margin = np.array(mj.opt.o_friction), float(mj.opt.o_margin)
        out = [touch._replace(friction=friction, margin=margin) for touch in out]
    return out


def _mixed(mj: Any, g: int, h: int) -> Touch:
    """Friction, condim and margin of two geoms."""
    friction, condim = mj.geom_friction, mj.geom_condim
    if mj.geom_priority[g] != mj.geom_priority[h]:
        k = g if mj.geom_priority[g] > mj.geom_priority[h] else h
        three, dim = friction[k], condim[k]
    else:
        three, dim = np.maximum(friction[g], friction[h]), max(condim[g], condim[h])
    margin = float(mj.geom_margin[g] + mj.geom_margin[h])
    return Touch(g, h, np.array(three, dtype=float)[[0, 0, 1, 2, 2]], int(dim), margin)


def _check_effects(source: Source, notes: Notes, touches: list[Touch]) -> None:
    """Refuse what contact here does not have, unless it is allowed; torsion and rolling are left out with a word."""
    mj = source.mj
    twisting = [t for t in touches if (t.condim >= 4 and t.friction[2] > 0) or (t.condim >= 6 and t.friction[3:].any())]
    if twisting:
        t = twisting[0]
        g = t.g if mj.geom_condim[t.g] >= 4 else t.h
        what = f"condim {t.condim} with {geom_label(source, t.h if g == t.g else t.g)}: torsional and rolling friction"
        count = f"{len(twisting)} pairs of geoms have" if len(twisting) > 1 else "one pair of geoms has"
        notes.left_out(
            "torsion", str(_error(source, g, f"{what} are left out, sliding friction is kept; {count} such."))
        )
    for t in touches:
        if t.condim >= 3 and t.friction[0] != t.friction[1]:
            what = f"friction {t.friction[0]:g} and {t.friction[1]:g} with {geom_label(source, t.h)}"
            advice = "is not the same in all directions, which is not supported; allowed, the first counts"
            notes.unless_allowed("contacts", _error(source, t.g, f"{what} {advice}."))
    used = dict.fromkeys(k for t in touches for k in (t.g, t.h))
    for g in used:
        if np.any(mj.geom_adhesion[g]) or np.any(mj.geom_surfacevel[g]):
            what = "adhesion" if np.any(mj.geom_adhesion[g]) else "surfacevel"
            notes.unless_allowed("contacts", _error(source, g, f"{what} is not supported."))
    if np.any(mj.pair_adhesion):
        p = int(np.flatnonzero(mj.pair_adhesion)[0])
        notes.unless_allowed("contacts", _error(source, int(mj.pair_geom1[p]), "adhesion of a pair is not supported."))


def find_ground(source: Source, notes: Notes, touches: list[Touch]) -> None:
    """The first fixed plane that touches anything is the ground; further ones, and height fields, are shapes."""
    mj = source.mj
    met = {k for touch in touches for k in (touch.g, touch.h)}
    for g in range(mj.ngeom):
        plane = _is_plane(source, g)
        if not (plane or _kind(source, g) == "hfield") or mj.body_weldid[mj.geom_bodyid[g]] != 0:
            continue
        if g not in met:
            if plane:
                notes.add(f"{geom_label(source, g)}: a plane that touches nothing; not kept.")
        elif plane and source.ground is None:
            source.ground = g
        else:
            source.terrain.add(g)
            if not plane:
                what = "a height field without sides and bottom; beyond its border it goes on in straight lines"
                notes.add(f"{geom_label(source, g)}: {what}.")


def _add_ground(
    m: Mechanism, source: Source, notes: Notes, touches: list[Touch], ground: int | None, places: dict[int, int]
) -> None:
    """The ground with the friction that most shapes have on it, and a pair with the world for every other body."""
    if ground is None:
        return
    mj = source.mj
    frame = _world_pose(source, int(mj.geom_bodyid[ground])) @ geom_pose(source, ground)
    normal = frame[:3, 2]
    common = Counter(touch.numbers for touch in touches).most_common(1)
    mu = common[0][0][0] if common else float(mj.geom_friction[ground, 0])
    m.add_ground(friction=mu, normal=normal, height=float(normal @ frame[:3, 3]))
    # shapes on the ground, by body
    met: dict[int, dict[int, tuple[float, float]]] = {}
    for touch in touches:
        g = touch.h if touch.g == ground else touch.g
        met.setdefault(int(mj.geom_bodyid[g]), {})[places[g]] = touch.numbers
    others = 0
    for b in range(1, mj.nbody):
        solid = _solid_places(source, b, places)
        found = met.get(b, {})
        if not solid or mj.body_weldid[b] == 0:
            continue
        kinds = set(found.values())
        if not found:
            m.exclude_contact(source.bodies[b], WORLD)
        elif set(found) == set(solid) and len(kinds) == 1:
            friction, margin = kinds.pop()
            if (friction, margin) != (mu, 0.0):
                _add_contact(m, source.bodies[b], WORLD, friction=friction, margin=margin)
                others += 1
        else:
            for i, (friction, margin) in found.items():
                _add_contact(m, source.bodies[b], WORLD, friction=friction, shapes=(i, None), margin=margin)
            others += 1
    more = f" ({others} bodies have friction, margin or shapes of their own on it)" if others else ""
    notes.add(
        f"{geom_label(source, ground)} is the ground, friction {mu:g}{more}; contact is hard, solref and solimp are "
        'not read; for methods without contact take m.without("contacts").'
    )


def _add_pairs(m: Mechanism, source: Source, notes: Notes, touches: list[Touch], places: dict[int, int]) -> None:
    """Pairs of bodies: one for all their shapes where these agree, else one for each two shapes."""
    mj = source.mj
    met: dict[tuple[int, int], dict[tuple[int, int], tuple[float, float]]] = {}
    for touch in touches:
        g, h = sorted((touch.g, touch.h), key=lambda k: int(mj.geom_bodyid[k]))
        pair = int(mj.geom_bodyid[g]), int(mj.geom_bodyid[h])
        met.setdefault(pair, {})[places[g], places[h]] = touch.numbers
    for (first, second), found in met.items():
        a, b = _body_of(m, source, first), _body_of(m, source, second)
        kinds = set(found.values())
        whole = len(_solid_places(source, first, places)) * len(_solid_places(source, second, places))
        if len(found) == whole and len(kinds) == 1:
            friction, margin = kinds.pop()
            _add_contact(m, a, b, friction=friction, margin=margin)
            continue
        for (i, j), (friction, margin) in found.items():
            _add_contact(m, a, b, friction=friction, shapes=(i, j), margin=margin)
    if met:
        count = f"{len(met)} contact pair" + ("s" if len(met) > 1 else "")
        notes.add(
            f"{count} as MuJoCo lets bodies touch; contact is hard, solref and solimp are not read; for methods "
            'without contact take m.without("contacts").'
        )


def _exclude(m: Mechanism, source: Source) -> None:
    """The excluded pairs of the file, but for those that an explicit pair lets touch."""
    named = {frozenset((pair.a, pair.b)) for pair in m.contacts}
    for signature in source.mj.exclude_signature:
        a, b = source.bodies[int(signature) >> 16], source.bodies[int(signature) & 0xFFFF]
        if frozenset((a, b)) not in named:
            m.exclude_contact(a, b)


def _solid_places(source: Source, b: int, places: dict[int, int]) -> list[int]:
    """Places of the collision shapes of a body."""
    first, count = int(source.mj.body_geomadr[b]), int(source.mj.body_geomnum[b])
    return [places[g] for g in range(first, first + count) if g in places and collides(source, g)]


def _world_pose(source: Source, b: int) -> FloatArray:
    """Pose (4, 4) of a body that is fixed to the world."""
    out = np.eye(4)
    while b != 0:
        out = pose(xyz=source.mj.body_pos[b], quat=source.mj.body_quat[b]) @ out
        b = int(source.mj.body_parentid[b])
    return out


def _body_of(m: Mechanism, source: Source, body: int) -> str:
    """Name of a body; geoms of the world sit on a fixed body of their own."""
    return WORLD_GEOMS if body == 0 and WORLD_GEOMS in m.bodies else source.bodies[body]


def _is_plane(source: Source, g: int) -> bool:
    return _kind(source, g) == "plane"


def _kind(source: Source, g: int) -> str:
    """MuJoCo's word for the kind of a geom."""
    import mujoco

    return str(mujoco.mjtGeom(int(source.mj.geom_type[g])).name).removeprefix("mjGEOM_").lower()


def _error(source: Source, g: int, text: str) -> ModelError:
    """An error at the element of a geom."""
    return source.element("geom", object_name(source.mj, "geom", g)).error(f"{geom_label(source, g)}: {text}")
