"""Seeded random mechanisms: a recipe says what a mechanism has besides bodies and joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import leastaction as la
from fuzzing.plan import ROTATIONS, Joint, Plan
from fuzzing.writing import write
from leastaction.dynamics import quantities
from leastaction.model.joints import KINDS
from leastaction.run import observe
from leastaction.spatial import quaternion, se3

SERIAL = tuple(kind for kind in KINDS if kind not in ("fixed", "spline", "free", "composite"))
"""Kinds that can be a part of a composite joint."""

MOVING = (*SERIAL, "composite", "revolute", "revolute", "spherical")
"""Kinds of the joints of a tree, the usual ones more often."""

CLOSING = ("spherical", "universal", "cylindrical", "planar", "cylindrical_free", "planar_free", "revolute")
"""Kinds of joints that close a loop through a chain of any axes."""

SHAPES: dict[str, Callable[[np.random.Generator], list[Any]]] = {
    "Sphere": lambda rng: [_number(rng, 0.05, 0.15)],
    "Box": lambda rng: [[_number(rng, 0.1, 0.3) for _ in range(3)]],
    "Capsule": lambda rng: [_number(rng, 0.04, 0.1), _number(rng, 0.1, 0.3)],
    "Cylinder": lambda rng: [_number(rng, 0.05, 0.15), _number(rng, 0.1, 0.3)],
}


def _number(rng: np.random.Generator, low: float, high: float) -> float:
    """A number with few digits, so that programs can be read."""
    return round(float(rng.uniform(low, high)), 3)


def _vector(rng: np.random.Generator, size: float, n: int = 3) -> np.ndarray:
    return np.round(size * rng.normal(size=n), 3)


def _turn(rng: np.random.Generator) -> np.ndarray:
    """A rotation (3, 3)."""
    return quaternion.to_matrix(quaternion.normalize(_vector(rng, 1.0, 4) + np.array([1e-3, 0, 0, 0])))


def _frame(rng: np.random.Generator, size: float) -> np.ndarray:
    """A pose; one in three is not turned, one in six is none."""
    if rng.random() < 1 / 6:
        return np.eye(4)
    return se3.pose(np.eye(3) if rng.random() < 1 / 3 else _turn(rng), _vector(rng, size))


def _axis(rng: np.random.Generator) -> np.ndarray:
    """A direction; every second one along x, y or z."""
    return np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else _vector(rng, 1.0) + np.array([0.01, 0, 0])


class Drawer:
    """Draws a plan from a seed.

    Args:
        seed: of all random numbers.
        recipe: a key of ``RECIPES``.
        attempt: another one where the first is singular.
    """

    def __init__(self, seed: int, recipe: str, attempt: int = 0) -> None:
        self.rng = np.random.default_rng([seed, list(RECIPES).index(recipe), attempt])
        gravity = np.array([0.0, 0.0, -9.81]) if self.rng.random() < 0.5 else _vector(self.rng, 5.0)
        self.plan = Plan(seed, recipe, gravity)

    # ------------------------------------------------------------------------------------ bodies and joints

    def body(self) -> str:
        """A body with any centre of mass and the inertia of a cloud of points."""
        name = f"b{len(self.plan.bodies)}"
        points, weights = _vector(self.rng, 0.15, 18).reshape(6, 3), self.rng.uniform(0.1, 0.4, size=6)
        r = points - weights @ points / weights.sum()
        second = (weights[:, None] * r).T @ r + 1e-3 * np.eye(3)
        inertia = np.round(np.trace(second) * np.eye(3) - second, 5)
        self.plan.bodies[name] = {
            "mass": round(float(weights.sum()), 3), "com": _vector(self.rng, 0.1), "inertia": inertia,
        }  # fmt: skip
        return name

    def joint(self, kind: str, parent: str, child: str) -> Joint:
        """A joint of any axes and frames, where it stands and how fast it moves."""
        rng = self.rng
        size = 0.3 if kind != "free" else 0.0
        out = Joint(f"j{len(self.plan.joints)}", kind, parent, child, _frame(rng, size), _frame(rng, 0.3 * size))
        if kind == "composite":
            for part in rng.choice(SERIAL, size=2).tolist():
                out.parts.append((part, self._axes(part), _frame(rng, 0.2), self._pitch(part)))
        elif kind not in ("free", "fixed"):
            out.data, out.pitch = self._axes(kind), self._pitch(kind)
        names = out.q_names
        out.q = [_number(rng, -0.8, 0.8) if name.startswith("angle") else _number(rng, -0.2, 0.2) for name in names]
        for i, name in enumerate(names):
            if name == "qw":
                out.q[i : i + 4] = quaternion.normalize(_vector(rng, 1.0, 4) + np.array([1e-3, 0, 0, 0])).tolist()
        out.v = [_number(rng, -1.5, 1.5) if name in ROTATIONS else _number(rng, -0.5, 0.5) for name in out.v_names]
        self.plan.joints.append(out)
        return out

    def tree(self, bodies: int, floating: bool | None = None) -> None:
        """A branching tree on the world; floating ones have a free joint there."""
        rng = self.rng
        floating = bool(rng.random() < 0.35) if floating is None else floating
        for k in range(bodies):
            parent = "world" if k == 0 else f"b{rng.integers(k)}"
            kind = "free" if k == 0 and floating else str(rng.choice(MOVING))
            # a chain of many wide joints is slow and shows no more
            if sum(len(joint.v_names) for joint in self.plan.joints) > 7:
                kind = "revolute"
            self.joint(kind, parent, self.body())

    def _axes(self, kind: str) -> dict[str, Any]:
        out: dict[str, Any] = {"axis": _axis(self.rng)}
        if kind == "universal":
            out["axis2"] = np.cross(out["axis"], _vector(self.rng, 1.0) + np.array([0.3, 0.5, 0.7]))
            out["axis2"] = out["axis2"] + 0.2 * out["axis"]
        return out

    def _pitch(self, kind: str) -> float:
        return _number(self.rng, 0.05, 0.2) if kind == "helical" else 0.0

    # ------------------------------------------------------------------------------------ what acts

    def springs(self, share: float = 0.6, laws: bool = False) -> None:
        """Springs, dampers and rotor inertia in joints; with ``laws`` some of them are functions.

        A mechanism of the recipe "floating" has none to the world.
        """
        rng = self.rng
        for joint in self.plan.joints:
            n = len(joint.v_names)
            held = joint.kind == "free" and self.plan.recipe == "floating"
            if n == 0 or joint.closes or held or rng.random() > share:
                continue
            for what, low, high in (("stiffness", 0.5, 8.0), ("damping", 0.02, 0.3)):
                if rng.random() < 0.7:
                    joint.springs[what] = [_number(rng, low, high) for _ in range(n)]
            if laws:
                for what in ("stiffness", "damping"):
                    row = joint.springs.get(what, [0.0] * n)
                    for i in joint.screws:
                        if rng.random() < 0.7:
                            row[i] = (_number(rng, 0.2, 3.0), _number(rng, 0.1, 2.0))
                    joint.springs[what] = row
            if joint.kind != "free" and rng.random() < 0.5:
                # a ball's rotor has no preferred axis
                one = _number(rng, 0.01, 0.1)
                joint.springs["armature"] = [one] * n
            if rng.random() < 0.5 and joint.springs.get("stiffness") and not laws:
                joint.rest = [0.5 * x for x in joint.q]
                for i, name in enumerate(joint.q_names):
                    if name == "qw":
                        joint.rest[i : i + 4] = quaternion.normalize(np.array([2.0, 0.3, -0.4, 0.5])).tolist()

    def forces(self) -> None:
        """One to three forces on bodies."""
        rng, names = self.rng, list(self.plan.bodies)
        for _ in range(rng.integers(1, 4)):
            a = str(rng.choice(names))
            b = str(rng.choice([name for name in ("world", *names) if name != a]))
            kind = str(rng.choice(["PointSpring", "PointForce", "Wrench", "Cable", "Potential", "PenaltyContact"]))
            data: dict[str, Any] = {"a": a}
            if kind == "PointSpring":
                data |= {"b": b, "point_a": _vector(rng, 0.2), "point_b": _vector(rng, 0.2)}
                data |= {"stiffness": _number(rng, 5, 40), "damping": _number(rng, 0, 1), "rest_length": 0.1}
            elif kind == "Cable":
                # always taut, as a slack cable has a kink
                data |= {"through": [a, b], "points": [_vector(rng, 0.2), _vector(rng, 0.2) + np.array([0, 0, 0.8])]}
                data |= {"stiffness": _number(rng, 5, 30), "damping": _number(rng, 0, 1), "rest_length": 0.05}
            elif kind == "Potential":
                half = _vector(rng, 2.0, 9).reshape(3, 3)
                data |= {"matrix": half @ half.T, "center": _vector(rng, 0.3), "hessian": bool(rng.random() < 0.5)}
            elif kind == "PenaltyContact":
                # deep in the ground, and moving, as its edges have a kink
                data |= {"points": _vector(rng, 0.1, 6).reshape(2, 3), "stiffness": _number(rng, 2, 6), "damping": 0.1}
                data |= {"friction": 0.4, "sticking": _number(rng, 0.05, 0.3), "height": 2.0}
                data |= {"normal": se3.pose(_turn(rng), np.zeros(3))[:3, 2]}
            else:
                data |= {"point": _vector(rng, 0.2), "force": _vector(rng, 3.0), "wrench": _vector(rng, 2.0, 6)}
                data |= {"frame": str(rng.choice(["world", "body"]))}
                data |= {"rate": _number(rng, 1, 5) if rng.random() < 0.3 else None}
            self.plan.forces.append((kind, data))

    def servos(self) -> None:
        """Motors and servos on single coordinates."""
        rng = self.rng
        for joint in self.plan.joints:
            for i in joint.screws:
                if rng.random() > 0.5 or joint.closes:
                    continue
                kind = rng.integers(3)
                data = {"name": f"s{len(self.plan.servos)}", "joint": joint.name, "coordinate": i}
                data |= {"gear": _number(rng, 0.5, 2.0), "target": _number(rng, -0.5, 0.5) if kind == 0 else 0.0}
                data |= {"kp": _number(rng, 1, 10) if kind == 0 else 0.0}
                data |= {"kd": _number(rng, 0.05, 0.4) if kind < 2 else 0.0}
                self.plan.servos.append(data)

    def locks(self) -> None:
        """Fixed joints and locked ones."""
        rng = self.rng
        self.joint("fixed", str(rng.choice(list(self.plan.bodies))), self.body())
        tree = [joint for joint in self.plan.joints if joint.v_names]
        if len(tree) > 1 and rng.random() < 0.7:
            held = tree[int(rng.integers(1, len(tree)))]
            held.lock = list(held.q)

    # ------------------------------------------------------------------------------------ loops, limits, contact

    def loop(self, to_world: bool = True) -> None:
        """A joint that closes a loop of the tree where it stands, with as few rows as leave some motion."""
        rng, plan = self.rng, self.plan
        program = write(plan)
        model, names = program.model, list(plan.bodies)
        poses = dict(zip(names, quantities.frame_poses(model, program.state.q[None], names)[0], strict=True))
        if to_world:
            poses["world"] = np.eye(4)
        for _ in range(20):
            kind, child = str(rng.choice(CLOSING)), str(rng.choice(names))
            parent = str(rng.choice([name for name in poses if name != child]))
            rows = _rows(kind)
            if rows < model.nv - 1:
                break
        else:
            return
        data, child_frame = self._axes(kind), se3.pose(_turn(rng), _vector(rng, 0.2))
        at = poses[child] @ child_frame
        name = f"j{len(plan.joints)}"
        plan.joints.append(
            Joint(name, kind, parent, child, se3.inverse(poses[parent]) @ at, child_frame, data, closes=True)
        )

    def four_bar(self) -> None:
        """A flat linkage of four bars; its closing hinge has three rows too many."""
        rng = self.rng
        axis, base = np.array([0.0, 1.0, 0.0]), _frame(rng, 0.3)
        lengths = [_number(rng, 0.25, 0.35), _number(rng, 0.5, 0.6), _number(rng, 0.35, 0.45)]
        at = [np.zeros(3), *(np.array([length, 0.0, 0.0]) for length in lengths)]
        for k in range(3):
            child, frame = self.body(), se3.pose(np.eye(3), at[k])
            joint = self.joint("revolute", "world" if k == 0 else f"b{k - 1}", child)
            joint.parent_frame, joint.child_frame, joint.data = (
                base @ frame if k == 0 else frame,
                np.eye(4),
                {"axis": axis},
            )
            joint.q, joint.v = [-1.3 if k == 0 else (1.2 if k == 1 else 1.1)], [1.0]
        program = write(self.plan)
        names = list(self.plan.bodies)
        last = quantities.frame_poses(program.model, program.state.q[None], names)[0, -1]
        tip = se3.pose(np.eye(3), at[3])
        kind = str(rng.choice(["revolute", "revolute", "spherical", "cylindrical"]))
        name = f"j{len(self.plan.joints)}"
        self.plan.joints.append(
            Joint(
                name,
                kind,
                "world",
                names[-1],
                last @ tip,
                tip,
                {} if kind == "spherical" else {"axis": axis},
                closes=True,
            )
        )

    def limits(self) -> None:
        """Limits near where the joints stand, in force; servos with an effort."""
        rng = self.rng
        self.plan.enforce, self.plan.smooth = True, False
        for joint in self.plan.joints:
            # a joint that goes round and round has none
            if joint.kind == "free" or not joint.v_names or "continuous" in joint.kinds:
                continue
            joint.limits = []
            i = 0
            while i < len(joint.q):
                if joint.q_names[i] == "qw":
                    joint.limits.append(None)
                    i += 4
                    continue
                low, high = joint.q[i] - _number(rng, 0.01, 0.3), joint.q[i] + _number(rng, 0.01, 0.3)
                joint.limits.append((round(low, 4), round(high, 4)))
                i += 1
        for servo in self.plan.servos:
            if rng.random() < 0.5 and (servo["kp"] or servo["kd"]):
                servo["effort"] = _number(rng, 0.5, 3.0)

    def contact(self) -> None:
        """One to three bodies with shapes above a ground, thrown; some hold a second one."""
        rng, plan = self.rng, self.plan
        plan.smooth = False
        plan.gravity = np.array([0.0, 0.0, -9.81]) if rng.random() < 0.6 else np.array([1.5, -1.0, -9.0])
        bounce = 0.0 if rng.random() < 0.7 else _number(rng, 0.2, 0.8)
        plan.ground = {
            "friction": _number(rng, 0.0, 0.8),
            "restitution": bounce,
            "normal": (0.0, 0.0, 1.0),
            "height": 0.0,
        }
        count = int(rng.integers(1, 4))
        for k in range(count):
            name, kind = f"b{k}", str(rng.choice(list(SHAPES)))
            plan.bodies[name] = {"mass": _number(rng, 0.3, 2.0), "shape": (kind, SHAPES[kind](rng))}
            joint = self.joint("free", "world", name)
            joint.parent_frame = joint.child_frame = np.eye(4)
            joint.q[:3] = [0.6 * k, _number(rng, -0.1, 0.1), _number(rng, 0.3, 0.4)]
            if rng.random() < 0.3:
                joint.q[3:] = [1.0, 0.0, 0.0, 0.0]
                joint.q[:3] = [0.6 * k, 0.0, _rest_height(plan.bodies[name]["shape"])]
                joint.v = [0.0] * 6
        if count > 1 and rng.random() < 0.6:
            plan.contacts.append({"a": "b0", "b": "b1", "friction": _number(rng, 0.0, 0.8), "restitution": bounce})
            first, second = plan.joints[0], plan.joints[1]
            second.q[:3] = [first.q[0], first.q[1] + 0.02, first.q[2] + 0.6]


def _rows(kind: str) -> int:
    """Constraint rows of a kind that closes a loop."""
    size = {"all": 3, "plane": 2, "axis": 1, "none": 0}
    row = KINDS[kind]
    return size[row.translation or "none"] + size[row.rotation or "none"] + (1 if row.coupling else 0)


def _rest_height(shape: tuple[str, list[Any]]) -> float:
    """Height of the middle of an upright shape that stands on the ground, metres."""
    kind, sizes = shape
    if kind == "Box":
        return 0.5 * sizes[0][2]
    return sizes[0] if kind == "Sphere" else 0.5 * sizes[1] + (sizes[0] if kind == "Capsule" else 0.0)


def _tree(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 4)))
    d.springs()


def _plain(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 4)))


def _laws(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 4)), floating=False)
    d.springs(1.0, laws=True)


def _forces(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 4)))
    d.springs(0.3)
    d.forces()


def _servos(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 4)))
    d.springs(0.4)
    d.servos()


def _locks(d: Drawer) -> None:
    d.tree(int(d.rng.integers(2, 4)))
    d.springs(0.4)
    d.locks()


def _loops(d: Drawer) -> None:
    d.tree(int(d.rng.integers(2, 4)))
    d.loop()
    d.springs(0.4)
    if d.rng.random() < 0.4:
        d.servos()
    if d.rng.random() < 0.3:
        d.forces()


def _floating(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 5)), floating=True)
    if len(d.plan.bodies) > 2 and d.rng.random() < 0.5:
        d.loop(to_world=False)
    d.springs(0.6)
    d.servos()


def _four_bar(d: Drawer) -> None:
    d.four_bar()
    d.springs(0.4)


def _limits(d: Drawer) -> None:
    d.tree(int(d.rng.integers(1, 4)))
    d.springs(0.3)
    d.servos()
    d.limits()


def _contact(d: Drawer) -> None:
    d.contact()


RECIPES: dict[str, Callable[[Drawer], None]] = {
    "plain": _plain,
    "springs": _tree,
    "laws": _laws,
    "forces": _forces,
    "servos": _servos,
    "locks": _locks,
    "loops": _loops,
    "floating": _floating,
    "four-bar": _four_bar,
    "limits": _limits,
    "contact": _contact,
}
"""What a mechanism has besides bodies and joints."""

SMOOTH = tuple(recipe for recipe in RECIPES if recipe not in ("limits", "contact"))
"""Recipes of mechanisms whose motion is smooth."""


def draw(seed: int, recipe: str) -> Plan:
    """The plan of a seed and a recipe: the first one drawn that is not singular, nor nearly so, where it stands."""
    for attempt in range(50):
        drawer = Drawer(seed, recipe, attempt)
        try:
            RECIPES[recipe](drawer)
            model, state = write(drawer.plan).model, write(drawer.plan).state
        except la.ModelError as error:
            # a chain of joints that can move without moving anything
            if "undetermined" not in str(error):
                raise
            continue
        except la.ConvergenceError:
            continue
        if _sound(model, state):
            return drawer.plan
    raise AssertionError(f"seed {seed}: no {recipe} mechanism in 50 attempts")


def _sound(model: la.Model, state: la.State) -> bool:
    """Whether masses and loops are far from singular, so that rounding stays small."""
    M = la.mass_matrix(model, state.q)
    if np.linalg.cond(M) > 1e5 or np.abs(state.v).max(initial=0.0) > 20:
        return False
    if not model.constraint_size:
        return True
    # rows on rates of unit energy: either there, or redundant to rounding
    G = observe._constraints(model, state.q, state.v)[1]
    sizes = np.linalg.svd(G @ np.linalg.inv(np.linalg.cholesky(M)).T, compute_uv=False)
    sizes = sizes / sizes.max(initial=1e-300)
    rank = int((sizes > 1e-2).sum())
    return bool(((sizes > 1e-2) | (sizes < 1e-10)).all()) and rank < model.nv
