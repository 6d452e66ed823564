"""From a Mechanism to a Model: merge fixed joints, write every joint as rows of the tree, fill the tables.

A *row frame* is the frame behind one factor of a joint (see ``tree/layout.py``). A screw's row frame has its axis
along z. The last row of a joint carries all bodies that are rigidly attached there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from leastaction.model.actuation import with_servos
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.coupling import tie_table
from leastaction.model.elements import Joint
from leastaction.model.inertia import MassProperties, combine, why_impossible
from leastaction.model.joints import Ball, SplineFactor, factors, plane_basis
from leastaction.model.mechanism import Mechanism
from leastaction.model.model import JointView, Model
from leastaction.model.parts import with_parts
from leastaction.model.pose import inverse_pose
from leastaction.model.singular import why_singular
from leastaction.model.spline import Spline, SplineCurve
from leastaction.model.splitting import split
from leastaction.model.tables import Place, constraint_table, force_table, joint_force_table, loop_table
from leastaction.model.tendon_force import add_tendon_forces
from leastaction.model.topology import Topology, rigid_offsets, topology
from leastaction.tree import layout as kl

_REPAIR = 'For a file, la.load(..., inertia="repair") takes the nearest possible one.'

_KIND = {"revolute": kl.REVOLUTE, "prismatic": kl.PRISMATIC, "helical": kl.HELICAL}


@dataclass
class _Rows:
    """Rows of the tree while they are being written; row 0 is the world. ``turned``: free joints turn first."""

    turned: bool = False
    parent: list[int] = field(default_factory=lambda: [0])
    kind: list[int] = field(default_factory=lambda: [kl.PRISMATIC])
    before: list[FloatArray] = field(default_factory=lambda: [np.eye(4)])
    pitch: list[float] = field(default_factory=lambda: [0.0])
    joint: list[str] = field(default_factory=lambda: [""])
    masses: list[list[MassProperties]] = field(default_factory=lambda: [[]])
    names: list[list[str]] = field(default_factory=lambda: [[WORLD]])
    offset: dict[str, FloatArray] = field(default_factory=dict)
    splines: dict[int, Spline] = field(default_factory=dict)
    impossible: str = ""

    def add(self, parent: int, kind: int, before: FloatArray, pitch: float, joint: str) -> int:
        """Append a row and return its number."""
        self.parent.append(parent)
        self.kind.append(kind)
        self.before.append(before)
        self.pitch.append(pitch)
        self.joint.append(joint)
        self.masses.append([])
        self.names.append([])
        return len(self.parent) - 1


def build(mechanism: Mechanism) -> Model:
    """The frozen model of a checked mechanism."""
    given, described = mechanism.copy(), mechanism.copy()
    add_tendon_forces(given)
    # where loop joints carry something, bodies are cut
    mechanism, graph, twins = split(given, topology(given))
    rows, places, first = _write_rows(mechanism, graph)
    views = _joint_views(mechanism, graph)
    tree, coordinates = _tables(mechanism, rows, views, first)
    shares = {
        twin.joint: f" (behind it is a part of '{twin.body}', cut there to close a loop)" for twin in twins.values()
    }
    labels = [_label(mechanism, name, shares.get(name, "")) for name in rows.joint]
    undetermined = rows.impossible or why_singular(tree, labels, rows.splines)
    # forces, springs, loops
    passive, law_callbacks = joint_force_table(mechanism, views)
    forces, force_callbacks = force_table(mechanism, places)
    loops, loop_rows = loop_table(mechanism, graph.loops, places)
    pairs = max((each.stop for each in loop_rows.values()), default=0)
    couplings = mechanism.couplings.values()
    ties, coupling_rows = tie_table(couplings, mechanism.joints, views, tree, coordinates, pairs)
    loops = loops._replace(ties=ties)
    constraints, constraint_callbacks = constraint_table(mechanism, places)
    inequalities, inequality_callbacks = constraint_table(mechanism, places, ("inequality",))
    tree = with_parts(tree, forces, loops, constraints, inequalities)
    plain = not any(len(each) for each in (forces.kind, loops.rows, ties.kind, constraints.kind))
    extra = (None, None, None) if plain else (forces, loops, constraints)
    return Model(
        mechanism=given,
        described=described,
        split=mechanism,
        twins=twins,
        topology=graph,
        system=kl.System(tree, coordinates, passive, *extra),
        joints=views,
        places=places,
        row_names=tuple(names[0] for names in rows.names[1:] if names),
        first_rows=first,
        loop_rows=loop_rows,
        coupling_rows=coupling_rows,
        inequalities=inequalities,
        undetermined=undetermined,
        callbacks=(*law_callbacks, *force_callbacks, *constraint_callbacks, *inequality_callbacks),
    )


def _label(mechanism: Mechanism, joint: str, more: str) -> str:
    """A joint and the body that it carries, in words."""
    return f"joint '{joint}' of body '{mechanism.joints[joint].child}'{more}" if joint else WORLD


@lru_cache(maxsize=64)
def turned_model(model: Model) -> Model:
    """The same model with free joints that turn first and then translate along child axes; all names and places stay.

    The rows of a free joint are then a ball and three translations; their last one carries the body in both cases.
    """
    rows, _, first = _write_rows(model.split, model.topology, True)
    tree, coordinates = _tables(model.split, rows, model.joints, first)
    tree = tree._replace(part=model.system.tree.part, parts=model.system.tree.parts)
    return replace(model, system=model.system._replace(tree=tree, coordinates=coordinates))


def _write_rows(
    mechanism: Mechanism, graph: Topology, turned: bool = False
) -> tuple[_Rows, dict[str, Place], dict[str, int]]:
    """Rows of all tree joints, the place of every body and frame, and the first row of every moving joint."""
    rows = _Rows(turned)
    places: dict[str, Place] = {WORLD: Place(0, np.eye(4))}
    first: dict[str, int] = {}
    # bodies that a fixed or locked joint attaches move with its parent
    rigid = rigid_offsets(mechanism, graph)
    groups: dict[str, list[MassProperties]] = {}
    for body, (leader, offset) in rigid.items():
        groups.setdefault(leader, []).append(mechanism.bodies[body].mass_properties.transformed(offset))
    for name in graph.tree:
        joint = mechanism.joints[name]
        leader, offset = rigid[joint.child]
        if leader != joint.child:
            base = places[leader]
            places[joint.child] = Place(base.row, base.pose @ offset)
            if base.row > 0:
                rows.names[base.row].append(joint.child)
            continue
        # a moving joint: one row for each factor, the bodies on the last
        base = places[joint.parent]
        first[name] = len(rows.parent)
        mass = combine(groups[leader])
        rows.impossible = rows.impossible or _why_impossible(leader, name, mass)
        row, carry = _write_joint(rows, joint, base, mass)
        link = carry @ inverse_pose(joint.child_frame)
        places[joint.child] = Place(row, link)
        rows.masses[row] = [mass.transformed(link)]
        rows.names[row].append(joint.child)
    for frame in mechanism.frames.values():
        base = places[frame.body]
        places[frame.name] = Place(base.row, base.pose @ frame.pose)
    return rows, places, first


def _why_impossible(body: str, joint: str, mass: MassProperties) -> str:
    """Why nothing can have these mass properties of a body with what is fixed to it, in words; "" if something can."""
    where = f"body '{body}' with what is fixed to it"
    if mass.mass == 0 and mass.inertia.any():
        return (
            f"{where} has inertia and no mass, which no body has. Give it a mass; or leave its inertia out, and give "
            f"the inertia of a rotor as the armature of joint '{joint}'. {_REPAIR}"
        )
    why = why_impossible(mass.inertia)
    return f"{where}: {why}. {_REPAIR}" if why else ""


def _write_joint(rows: _Rows, joint: Joint, base: Place, mass: MassProperties) -> tuple[int, FloatArray]:
    """Append the rows of a joint; returns the last row and the pose of the joint's child side in it."""
    carry = base.pose @ joint.parent_frame
    row = base.row
    parts = factors(joint)
    if joint.kind == "free" and rows.turned:
        parts = [parts[3], *parts[:3]]
    for factor in parts:
        before = carry @ factor.before
        if isinstance(factor, SplineFactor):
            row = rows.add(row, kl.SPLINE, before, 0.0, joint.name)
            rows.splines[row] = factor.spline
            for _ in range(factor.spline.size - 1):
                row = rows.add(row, kl.SPLINE_MORE, np.eye(4), 0.0, joint.name)
            carry = np.eye(4)
        elif isinstance(factor, Ball):
            row = rows.add(row, kl.BALL, before, 0.0, joint.name)
            carry = np.eye(4)
        else:
            align = _align(factor.axis)
            row = rows.add(row, _KIND[factor.kind], before @ align, factor.pitch, joint.name)
            carry = inverse_pose(align)
    # the ball of a free joint turns about the centre of mass
    if joint.kind == "free":
        to_child = inverse_pose(joint.child_frame)
        offset = to_child[:3, :3] @ mass.com + to_child[:3, 3] if mass.mass > 0 else np.zeros(3)
        rows.offset[joint.name] = offset
        carry[:3, 3] = -offset
    return row, carry


def _align(axis: FloatArray) -> FloatArray:
    """Pose (4, 4) whose z axis is the given unit vector."""
    out = np.eye(4)
    u, v = plane_basis(axis)
    out[:3, :3] = np.column_stack([u, v, axis])
    return out


def _joint_views(mechanism: Mechanism, graph: Topology) -> dict[str, JointView]:
    """Slices of the moving tree joints, in build order; their springs and dampers are those of servos too."""
    out: dict[str, JointView] = {}
    nq = nv = 0
    for joint in mechanism.joints.values():
        moving = joint.kind != "fixed" and joint.locked is None and joint.name not in graph.loops
        if moving:
            joint = with_servos(joint, mechanism.actuators.values())
            out[joint.name] = JointView(joint, slice(nq, nq + joint.nq), slice(nv, nv + joint.nv))
            nq, nv = nq + joint.nq, nv + joint.nv
    return out


def _tables(
    mechanism: Mechanism, rows: _Rows, views: dict[str, JointView], first: dict[str, int]
) -> tuple[kl.Tree, kl.Coordinates]:
    """The arrays of the tree and the maps between the user's coordinates and the rows'."""
    n = len(rows.parent)
    table = np.zeros((n, 4), dtype=np.int64)
    const = np.zeros((n, kl.CONST_WIDTH))
    rates: list[tuple[int, int]] = []
    last_rate = np.full(n, -1, dtype=np.int64)
    nx = nu = 0
    for i in range(1, n):
        ball = rows.kind[i] == kl.BALL
        table[i] = rows.parent[i], rows.kind[i], nx, nu
        # rates of the row, chained towards the world
        before = last_rate[rows.parent[i]]
        for _ in range(3 if ball else 1):
            rates.append((i, int(before)))
            before = len(rates) - 1
        last_rate[i] = before
        nx, nu = nx + (4 if ball else 1), nu + (3 if ball else 1)
        # constants
        const[i, kl.ROT : kl.ROT + 9] = rows.before[i][:3, :3].ravel()
        const[i, kl.POS : kl.POS + 3] = rows.before[i][:3, 3]
        const[i, kl.PITCH] = rows.pitch[i]
        for mass in rows.masses[i]:
            const[i, kl.MASS] = mass.mass
            const[i, kl.COM : kl.COM + 3] = mass.com
            const[i, kl.INERTIA : kl.INERTIA + 6] = mass.inertia[np.triu_indices(3)]
    coordinates = _coordinates(rows, table, views, first)
    armature = np.concatenate([np.zeros(0), *(view.joint.armature for view in views.values())])
    origin, moves = _origin(table, rows)
    rate_table = np.array(rates, dtype=np.int64).reshape(-1, 2)
    gravity, splines = np.array(mechanism.gravity), _splines(rows)
    # parts are known when forces and loops are
    none = (np.zeros(n, dtype=np.int64), np.ones((1, 2)))
    tree = kl.Tree(table, const, rate_table, armature[coordinates.v], gravity, origin, moves, splines, *none)
    return tree, coordinates


def _coordinates(rows: _Rows, table: kl.Ints, views: dict[str, JointView], first: dict[str, int]) -> kl.Coordinates:
    """Gather maps from the user's order to row order; free joints also swap (angular; linear)."""
    nq, nv = sum(view.nq for view in views.values()), sum(view.nv for view in views.values())
    q, v = np.zeros(nq, dtype=np.int64), np.zeros(nv, dtype=np.int64)
    free, offset = [], []
    for name, view in views.items():
        x, u = table[first[name], kl.IX], table[first[name], kl.IU]
        places, order = np.arange(view.q.start, view.q.stop), np.arange(view.v.start, view.v.stop)
        if view.kind == "free":
            # (position, quaternion), and (angular; linear) the other way round, unless it turns first
            if rows.turned:
                places = np.concatenate([places[3:], places[:3]])
            else:
                order = np.concatenate([order[3:], order[:3]])
            free.append((x, u))
            offset.append(rows.offset[name])
        q[x : x + view.nq], v[u : u + view.nv] = places, order
    table_free, table_offset = np.array(free, dtype=np.int64).reshape(-1, 2), np.array(offset).reshape(-1, 3)
    if rows.turned:
        return kl.Coordinates(q, v, table_free[:0], table_offset[:0], kl.Turned(table_free, table_offset))
    return kl.Coordinates(q, v, table_free, table_offset, None)


def _splines(rows: _Rows) -> kl.Splines | None:
    """Control points of the spline joints, None where there are none."""
    if not rows.splines:
        return None
    kind: list[tuple[int, ...]] = []
    data: list[FloatArray] = [np.zeros((0, 18))]
    number = np.full(len(rows.parent), -1, dtype=np.int64)
    for row, spline in rows.splines.items():
        number[row] = len(kind)
        first = sum(len(part) for part in data)
        if isinstance(spline, SplineCurve):
            n, closed = (len(spline.frames), 1), (spline.closed, False)
            poses = np.concatenate([spline.frames[:, :3, :3].reshape(-1, 9), spline.frames[:, :3, 3]], axis=1)
            data.append(np.concatenate([poses, spline.steps], axis=1))
        else:
            n, closed = (spline.values.shape[0], spline.values.shape[1]), spline.closed
            data.append(np.pad(spline.values.reshape(-1, 6), ((0, 0), (0, 12))))
        kind.append((row, spline.size, first, *n, *closed))
    return kl.Splines(np.array(kind, dtype=np.int64), number, np.concatenate(data))


def _origin(table: kl.Ints, rows: _Rows) -> tuple[kl.Floats, kl.Ints]:
    """The kernels' origin: mean over the trees of where the root is after its leading translations."""
    roots = np.flatnonzero(table[1:, kl.PARENT] == 0) + 1
    base, axes, moves = np.zeros(3), [], []
    for root in roots:
        frame, row = np.eye(4), int(root)
        while True:
            frame = frame @ rows.before[row]
            if rows.kind[row] != kl.PRISMATIC:
                break
            axes.append(frame[:3, 2] / len(roots))
            moves.append(int(table[row, kl.IX]))
            # go on while the same joint translates
            same = row + 1 < len(rows.joint) and rows.joint[row + 1] == rows.joint[row]
            if not same:
                break
            row += 1
        base += frame[:3, 3] / len(roots)
    return np.array([base, *axes]), np.array(moves, dtype=np.int64)
