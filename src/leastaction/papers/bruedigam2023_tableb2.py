"""Joints from two general constraint functions: rows and minimal coordinates of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.papers.common import legend_outside
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.model import Model, State

_AXIS, _AXIS2, _PITCH = (0.36, 0.48, 0.80), (0.80, -0.60, 0.0), 0.1

# the joint's name in the paper, our kind, rows on the relative position and rotation (columns of its D_T and D_R)
_TABLE = (
    ("Fixed", "fixed", 3, 3),
    ("Prismatic", "prismatic", 2, 3),
    ("Planar, fixed orientation", "planar_translation", 1, 3),
    ("Fixed orientation", "translational", 0, 3),
    ("Revolute (Hinge)", "revolute", 3, 2),
    ("Cylindrical", "cylindrical", 2, 2),
    ("Planar, rotation along axis", "planar", 1, 2),
    ("Rotation along axis, free movement", "axis_rotation_free_translation", 0, 2),
    ("Spherical (ball-and-socket)", "spherical", 3, 0),
    ("Cylindrical, free orientation", "cylindrical_free", 2, 0),
    ("Planar, free orientation", "planar_free", 1, 0),
    ("Floating (unconstrained)", "free", 0, 0),
)
_OTHERS = (("Helical (not in the table)", "helical"), ("Universal (not in the table)", "universal"))


class _Found(NamedTuple):
    """What a joint of one kind does here.

    Attributes:
        translation: rows on the relative position.
        rotation: rows on the relative rotation.
        coupling: one more row of the helical and the universal joint.
        coordinates: minimal coordinates, counted as velocities.
        rank: of the rows' Jacobian, at a random position of the joint.
        gap: largest row where the same joint placed the bodies in a tree, metres and radians.
    """

    translation: int
    rotation: int
    coupling: int
    coordinates: int
    rank: int
    gap: float


@experiment(
    "bruedigam2023-tableB2",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Table B.2",
    title="Joints from two general constraint functions: rows and minimal coordinates",
)
def table_b2(context: Context) -> Result:
    """Each joint between two bodies, once in a tree by its coordinates and once by rows between free bodies."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    printed, complete, independent, gaps = [], [], [], []
    kinds = [(name, kind, (t, r)) for name, kind, t, r in _TABLE] + [(name, kind, None) for name, kind in _OTHERS]
    for name, kind, paper in kinds:
        context.progress(name)
        found = _measure(kind, rng)
        count = found.translation + found.rotation + found.coupling
        # the table itself, then what must hold for any joint
        if paper is not None:
            printed.append(paper == (found.translation, found.rotation))
        complete.append(count == 6 - found.coordinates)
        independent.append(found.rank == count)
        gaps.append(found.gap)
        rows.append({"joint": name, "kind": kind, "rows": count, **found._asdict()})
    claims = [
        Claim("joints with the rows of D_T and D_R", "12 joints", f"{sum(printed)} of {len(printed)}", all(printed)),
        Claim("rows = 6 - minimal coordinates", "all", f"{sum(complete)} of {len(complete)}", all(complete)),
        Claim(
            "the rows are independent at a random position: rank = rows",
            "not in the text",
            f"{sum(independent)} of {len(independent)}",
            all(independent),
        ),
        Claim(
            "the rows vanish where minimal coordinates place the bodies: largest row",
            "0",
            f"{max(gaps):.1e}",
            max(gaps) < 1e-12,
        ),
        Claim(
            "joints beyond this composition are possible as constraints too: helical, universal",
            "helical",
            "5 and 4 rows",
            [row["rows"] for row in rows[-2:]] == [5, 4],
        ),
    ]
    return Result(claims, {"": rows}, {"": _figure(rows)})


def _measure(kind: str, rng: np.random.Generator) -> _Found:
    """Rows and coordinates of one kind, and how they fit together at a random position."""
    from leastaction.dynamics import entries
    from leastaction.dynamics.quantities import poses
    from leastaction.model.configuration import retract
    from leastaction.model.joints import loop_rows

    # in a tree: the joint's own coordinates, away from half turns
    tree = _two_bodies(kind, closing=False)
    q = retract(tree, tree.state().q, rng.uniform(-1.0, 1.0, tree.nv))
    placed = poses(tree, q)
    # between free bodies: the rows of the joint, at the same poses
    loop = _two_bodies(kind, closing=True)
    state = _free_state(loop, placed)
    m = loop.constraint_size
    gap, rate, J = np.zeros((1, m)), np.zeros((1, m)), np.zeros((1, m, loop.nv))
    if m:
        entries.loop_gaps(loop.system, state.q[None], state.v[None], gap, rate, J)
    rank = int(np.linalg.matrix_rank(J[0], tol=1e-6)) if m else 0
    selected = loop_rows(loop.mechanism.joints["joint"])
    translation, rotation = len(selected.translation), len(selected.rotation)
    coordinates = tree.nv - tree.joints["root"].nv
    return _Found(
        translation, rotation, m - translation - rotation, coordinates, rank, float(np.abs(gap).max(initial=0))
    )


def _two_bodies(kind: str, closing: bool) -> Model:
    """Two bodies joined by a joint of a kind; ``closing`` makes both free, and the joint closes the loop."""
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    m = Mechanism(f"{kind}, {'rows' if closing else 'coordinates'}")
    for name in ("a", "b"):
        m.add_body(name, mass=1.0, inertia=(0.1, 0.2, 0.3))
    m.add_joint("root", "free", parent="world", child="a")
    if closing:
        m.add_joint("other", "free", parent="world", child="b")
    frames = {"parent_frame": pose(xyz=(0.3, 0.1, -0.2)), "child_frame": pose(xyz=(-0.1, 0.2, 0.4))}
    m.add_joint(
        "joint", kind, parent="a", child="b", axis=_AXIS, axis2=_AXIS2 if kind == "universal" else None,
        pitch=_PITCH if kind == "helical" else 0.0, **frames,
    )  # fmt: skip
    return m.build()


def _free_state(model: Model, placed: dict[str, Any]) -> State:
    """The state of two free bodies at given poses (4, 4)."""
    from leastaction.spatial import quaternion

    values = {}
    for joint, body in (("root", "a"), ("other", "b")):
        values[joint] = np.concatenate([placed[body][:3, 3], quaternion.from_matrix(placed[body][:3, :3])])
    return model.state(values)


def _figure(rows: list[dict[str, Any]]) -> Any:
    """Six freedoms of every joint: locked translations and rotations, couplings, coordinates."""
    from leastaction.plot import PALETTE, styled

    parts = ("translation", "rotation", "coupling", "coordinates")
    labels = ("rows on the position", "rows on the rotation", "coupling row", "minimal coordinates")
    colours = (PALETTE[0], PALETTE[5], PALETTE[3], "#cccccc")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        places, left = np.arange(len(rows)), np.zeros(len(rows))
        for part, label, colour in zip(parts, labels, colours, strict=True):
            width = np.array([row[part] for row in rows], dtype=float)
            axes.barh(places, width, left=left, color=colour, label=label, height=0.7)
            left += width
        axes.set_yticks(places, [row["joint"] for row in rows])
        axes.invert_yaxis()
        axes.set_xlabel("rows and coordinates, six together")
        axes.grid(visible=False, axis="y")
        legend_outside(axes)

    return styled(draw, 8.0, 3.8)
