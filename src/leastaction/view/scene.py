"""What there is to draw of a model: surfaces with colours on its bodies, and what could not be drawn as asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.elements import Body
from leastaction.model.joints import plane_basis
from leastaction.model.model import Model
from leastaction.model.shapes import Shape
from leastaction.view.surfaces import Surface, ball, field_surface, surface_of

WORLD = "world"

# colours of shapes that have none, by body, quiet and apart; and of ellipsoids that stand for an inertia
COLOURS = ((0.36, 0.52, 0.74), (0.82, 0.56, 0.30), (0.47, 0.64, 0.46), (0.60, 0.50, 0.68), (0.62, 0.63, 0.66))
INERTIA_COLOUR = (0.65, 0.55, 0.75)
GROUND_COLOUR = (0.86, 0.87, 0.84)

# ground whose normal has this z component, or more, is level
LEVEL = 0.9999

# an ellipsoid is never thinner than this share of its longest axis, so that it can be seen
_THINNEST = 0.05


@dataclass(frozen=True, eq=False)
class Item:
    """One surface of the scene.

    Attributes:
        carrier: index of the body it moves with in ``Scene.carriers``; -1 stands still.
        pose: (4, 4) of the surface in the carrier's link frame.
        surface: index in ``Scene.surfaces``.
        colour: red, green, blue, opacity, each 0 to 1.
        body: name of the body it belongs to, which may be fixed to the carrier.
        ground: whether it is ground, which pictures need not hold whole.
    """

    carrier: int
    pose: FloatArray
    surface: int
    colour: tuple[float, float, float, float]
    body: str
    ground: bool = False


@dataclass(eq=False)
class Scene:
    """Everything to draw of a model.

    Attributes:
        carriers: names of the moving bodies.
        surfaces: each different surface once.
        items: where they stand.
        notes: what was drawn otherwise than asked, one line each.
    """

    carriers: tuple[str, ...]
    surfaces: list[Surface] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def scene_of(model: Model) -> Scene:
    """The scene of a model: visible shapes, else those for contact, else an ellipsoid with the body's inertia."""
    scene = Scene(model.body_names)
    known: dict[tuple[object, ...], int] = {}
    bare: list[tuple[Body, int, FloatArray]] = []
    carriers = {model.places[name].row: (k, name) for k, name in enumerate(model.body_names)}
    for number, body in enumerate(model.mechanism.bodies.values()):
        place = model.places[body.name]
        # a body that is fixed to another one is carried by it, or by the world
        index, carrier = carriers.get(place.row, (-1, WORLD))
        offset: FloatArray = np.asarray(np.linalg.solve(model.places[carrier].pose, place.pose), dtype=float)
        colour = COLOURS[number % len(COLOURS)]
        drawn = _add_shapes(scene, known, body, [s for s in body.shapes if s.visual], index, offset, colour)
        # what cannot be drawn as it should look is drawn as it touches
        if not drawn:
            drawn = _add_shapes(scene, known, body, [s for s in body.shapes if not s.visual], index, offset, colour)
        if not drawn:
            bare.append((body, index, offset))
    # nothing to see of what moves together: its inertia; a frame on a body that is seen needs none
    seen = {item.carrier for item in scene.items}
    for body, index, offset in bare:
        if index not in seen and index >= 0 and body.mass > 0:
            _add_ellipsoid(scene, model, body, index, offset)
    _add_ground(scene, model)
    return scene


def _add_ground(scene: Scene, model: Model) -> None:
    """Ground that is not level: a height field, or a part of a slope around the origin."""
    ground = model.mechanism.ground
    if ground is None or (ground.heights is None and ground.normal[2] > LEVEL):
        return
    if ground.heights is not None and ground.spacing is not None:
        surface = field_surface(ground.heights, ground.spacing)
    else:
        reach = 8 * model_size(model)
        surface = field_surface(np.zeros((2, 2)), np.array([2 * reach, 2 * reach]))
    u, v = plane_basis(ground.normal)
    at = np.eye(4)
    # a field lies along the world's axes
    if ground.normal[2] <= LEVEL:
        at[:3, :3] = np.column_stack([u, v, ground.normal])
    at[:3, 3] = ground.height * ground.normal
    scene.surfaces.append(surface)
    scene.items.append(Item(-1, at, len(scene.surfaces) - 1, (*GROUND_COLOUR, 1.0), WORLD, ground=True))


def _add_shapes(
    scene: Scene,
    known: dict[tuple[object, ...], int],
    body: Body,
    shapes: Sequence[Shape],
    carrier: int,
    offset: FloatArray,
    colour: tuple[float, float, float],
) -> bool:
    """Add the shapes of a body that can be drawn; notes for the others. Returns whether there is one."""
    drawn = False
    for shape in shapes:
        try:
            surface = _index(scene, known, shape)
        except ModelError as error:
            scene.notes.append(f"body '{body.name}': {error}")
            continue
        item = Item(carrier, offset @ shape.at, surface, _colour(shape.color, colour), body.name)
        scene.items.append(item)
        drawn = True
    return drawn


def _index(scene: Scene, known: dict[tuple[object, ...], int], shape: Shape) -> int:
    """Index of the shape's surface, made once for equal shapes."""
    entries = {key: value for key, value in shape.to_dict().items() if key not in _NOT_GEOMETRY}
    key: tuple[object, ...] = (str(entries),) if entries.get("vertices") is None else (id(shape),)
    if key not in known:
        surface = surface_of(shape)
        known[key] = len(scene.surfaces)
        scene.surfaces.append(surface)
    return known[key]


_NOT_GEOMETRY = ("at", "color", "visual", "collision", "name")


def _add_ellipsoid(scene: Scene, model: Model, body: Body, carrier: int, offset: FloatArray) -> None:
    """The uniform ellipsoid of the body's mass and inertia; a body that is a point gets a small ball."""
    moments, axes = np.linalg.eigh(body.inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] = -axes[:, 0]
    # m (b^2 + c^2) / 5 = I_a and so on
    squares = np.maximum(2.5 / body.mass * (moments.sum() - 2 * moments), 0.0)
    radii = np.sqrt(squares)
    largest = float(radii.max()) or 0.03 * model_size(model)
    radii = np.maximum(radii, _THINNEST * largest) if radii.any() else np.full(3, largest)
    at = np.eye(4)
    at[:3, :3], at[:3, 3] = axes, body.com
    scene.surfaces.append(ball(radii))
    scene.items.append(Item(carrier, offset @ at, len(scene.surfaces) - 1, (*INERTIA_COLOUR, 1.0), body.name))
    if not body.shapes:
        scene.notes.append(f"body '{body.name}' has no shape; drawn as the ellipsoid of its inertia.")


def model_size(model: Model) -> float:
    """A length of the order of the mechanism's, metres: from joints and centres of mass."""
    lengths = [float(np.linalg.norm(body.com)) for body in model.mechanism.bodies.values()]
    for joint in model.mechanism.joints.values():
        lengths += [float(np.linalg.norm(frame[:3, 3])) for frame in (joint.parent_frame, joint.child_frame)]
    return max(lengths, default=0.0) or 1.0


def _colour(given: tuple[float, ...] | None, default: tuple[float, float, float]) -> tuple[float, float, float, float]:
    """Four numbers."""
    r, g, b = default if given is None else given[:3]
    return (r, g, b, given[3] if given is not None and len(given) == 4 else 1.0)


def plain_note(text: str) -> str:
    """A note on one line."""
    return re.sub(r"\s+", " ", text).strip()
