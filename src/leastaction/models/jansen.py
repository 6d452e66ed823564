"""Two legs of Theo Jansen's Strandbeest on one crank, by his published lengths."""

from __future__ import annotations

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.models.parts import BLUE, DARK, ORANGE, STEEL, bar, thin_rod

_AXIS = (0.0, -1.0, 0.0)

# lengths by Jansen's letters: a and l place the fixed hinge beside and below the crank, m is the crank
LENGTHS = {
    "a": 38.0, "b": 41.5, "c": 39.3, "d": 40.1, "e": 55.8, "f": 39.4, "g": 36.7, "h": 65.7, "i": 49.0, "j": 50.0,
    "k": 61.9, "l": 7.8, "m": 15.0,
}  # fmt: skip

Plane = tuple[float, float]


def strandbeest(unit: float = 0.01, angle: float = 0.0, line_density: float = 1.0) -> Mechanism:
    """A pair of legs left and right of a crank at the origin, in the x-z plane: 13 bodies, 6 loops, one freedom.

    Body ``crank`` on the joint ``crank_hinge``; for each side ``left`` and ``right`` the bodies ``left_upper`` (from
    the crank to the upper corner of the triangle), ``left_lower`` (from the crank to the knee), ``left_triangle`` and
    ``left_link`` (both on the fixed hinge), ``left_rod`` (from the triangle to the foot) and ``left_foot``. The hinges
    ``left_loop_upper``, ``left_loop_knee`` and ``left_loop_foot`` close the loops, and the frame ``left_toe`` is where
    the leg touches the ground, which is not part of the mechanism. Lengths are those of Jansen, The Great Pretender
    (2007), by his letters in ``LENGTHS``; bars are uniform thin rods, and triangles three of them.

    Args:
        unit: metres of one of his units.
        angle: of the crank from x towards z in the position that is q = 0, radians.
        line_density: of the bars, kg per metre.
    """
    unit = check_number(unit, "strandbeest: unit", positive=True)
    angle = check_number(angle, "strandbeest: angle")
    density = check_number(line_density, "strandbeest: line_density", positive=True)
    m = Mechanism("strandbeest")
    tip = (LENGTHS["m"] * np.cos(angle), LENGTHS["m"] * np.sin(angle))
    _add(m, "crank", [((0.0, 0.0), tip)], unit, density, BLUE)
    m.add_joint("crank_hinge", "revolute", parent="world", child="crank", axis=_AXIS)
    for side, sign in (("left", -1.0), ("right", 1.0)):
        _add_leg(m, side, sign, tip, unit, density)
    return m


def _add_leg(m: Mechanism, side: str, sign: float, tip: Plane, unit: float, density: float) -> None:
    """One leg; ``sign`` is that of x of its fixed hinge."""
    s = LENGTHS
    base = (sign * s["a"], -s["l"])
    # corners by two circles each: up or down, or away from the crank
    top = _meet(tip, s["j"], base, s["b"], (0.0, 1.0))
    knee = _meet(tip, s["k"], base, s["c"], (0.0, -1.0))
    outer = _meet(top, s["e"], base, s["d"], (sign, 0.0))
    heel = _meet(outer, s["f"], knee, s["g"], (sign, 0.0))
    toe = _meet(heel, s["h"], knee, s["i"], (0.0, -1.0))
    # bodies: bars by their ends, the first end of all is the link's origin
    bars: dict[str, tuple[list[tuple[Plane, Plane]], tuple[float, float, float]]] = {
        "upper": ([(tip, top)], STEEL),
        "lower": ([(tip, knee)], STEEL),
        "triangle": ([(base, top), (base, outer), (top, outer)], ORANGE),
        "link": ([(base, knee)], STEEL),
        "rod": ([(outer, heel)], STEEL),
        "foot": ([(knee, heel), (knee, toe), (heel, toe)], DARK),
    }
    for part, (ends, color) in bars.items():
        _add(m, f"{side}_{part}", ends, unit, density, color)
    m.add_frame(f"{side}_toe", f"{side}_foot", pose(unit * _space(np.subtract(toe, knee))))
    # hinges: parent, child and the place; a place is taken from the origins of both
    origin = {"crank": (0.0, 0.0), "world": (0.0, 0.0)}
    origin |= {f"{side}_{part}": ends[0][0] for part, (ends, _) in bars.items()}
    hinges = (
        ("upper_hinge", "crank", "upper", tip),
        ("lower_hinge", "crank", "lower", tip),
        ("triangle_hinge", "world", "triangle", base),
        ("link_hinge", "world", "link", base),
        ("rod_hinge", "triangle", "rod", outer),
        ("foot_hinge", "link", "foot", knee),
        ("loop_upper", "upper", "triangle", top),
        ("loop_knee", "lower", "link", knee),
        ("loop_foot", "rod", "foot", heel),
    )
    for name, parent, child, place in hinges:
        ends_of = [body if body in origin else f"{side}_{body}" for body in (parent, child)]
        frames = [pose(unit * _space(np.subtract(place, origin[body]))) for body in ends_of]
        m.add_joint(
            f"{side}_{name}", "revolute", parent=ends_of[0], child=ends_of[1], axis=_AXIS,
            parent_frame=frames[0], child_frame=frames[1],
        )  # fmt: skip


def _add(
    m: Mechanism, name: str, ends: list[tuple[Plane, Plane]], unit: float, density: float,
    color: tuple[float, float, float],
) -> None:  # fmt: skip
    """A body of bars; its link frame is at the first end of the first one."""
    origin = np.array(ends[0][0])
    mass, moment, about = 0.0, np.zeros(3), np.zeros((3, 3))
    shapes = []
    for start, end in ends:
        a, b = (unit * _space(np.subtract(point, origin)) for point in (start, end))
        rod = thin_rod(density * float(np.linalg.norm(b - a)), b - a)
        centre = a + rod["com"]
        mass += rod["mass"]
        moment += rod["mass"] * centre
        about += rod["inertia"] + rod["mass"] * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        shapes.append(bar(b, 0.8 * unit, start=a, color=color, collision=False))
    com = moment / mass
    inertia = about - mass * (com @ com * np.eye(3) - np.outer(com, com))
    m.add_body(name, mass=mass, com=com, inertia=inertia, shapes=shapes)


def _space(point: FloatArray) -> FloatArray:
    """A point of the plane as (x, 0, z)."""
    return np.array([point[0], 0.0, point[1]])


def _meet(p: Plane, p_radius: float, q: Plane, q_radius: float, towards: Plane) -> Plane:
    """Where two circles meet; of the two points the one that lies further in a direction."""
    line = np.subtract(q, p)
    d = float(np.linalg.norm(line))
    if not abs(p_radius - q_radius) <= d <= p_radius + q_radius:
        raise ModelError(f"strandbeest: bars of {p_radius} and {q_radius} units cannot meet over {d:.6g} units.")
    x = (d * d + p_radius**2 - q_radius**2) / (2 * d)
    y = float(np.sqrt(p_radius**2 - x * x))
    u = line / d
    points = [np.asarray(p) + x * u + sign * y * np.array([-u[1], u[0]]) for sign in (1, -1)]
    chosen = max(points, key=lambda point: float(point @ np.asarray(towards)))
    return float(chosen[0]), float(chosen[1])
