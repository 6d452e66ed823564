"""Which pairs of bodies ``Mechanism.add_contacts`` names: all of one group, or one group against another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, quoted
from leastaction.model.contacts import two_bodies

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism

_WHERE = "add_contacts"


def pairs_among(
    mechanism: Mechanism, bodies: Any, others: Any, exclude: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Pairs of bodies with collision shapes that may touch, each once; see ``Mechanism.add_contacts``."""
    one = _group(mechanism, bodies, "bodies")
    two = None if others is None else _group(mechanism, others, "others")
    out = {frozenset((pair.a, pair.b)) for pair in mechanism.contacts} | mechanism.contact_excludes
    for pair in exclude:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ModelError(f"{_WHERE}: exclude must be pairs of body names, got {pair!r}.")
        for name in pair:
            _check_body(mechanism, name, "exclude")
        out.add(two_bodies(*pair, f"{_WHERE}: exclude"))
    # bodies fixed to each other count as one; of what is fixed to the world only the body that the joint names
    leader = _rigid_groups(mechanism)
    direct = {frozenset((joint.parent, joint.child)) for joint in mechanism.joints.values()}
    joined = {frozenset((leader[joint.parent], leader[joint.child])) for joint in mechanism.joints.values()}
    joined = {ends for ends in joined if leader[WORLD] not in ends}
    pairs = []
    for a, b in combinations(one, 2) if two is None else product(one, two):
        names, ends = frozenset((a, b)), frozenset((leader[a], leader[b]))
        if names not in out and len(ends) == 2 and names not in direct and ends not in joined:
            pairs.append((a, b))
            out.add(names)
    return pairs


def _group(mechanism: Mechanism, group: Any, what: str) -> list[str]:
    """Bodies of a group in the order in which they were added, or as they are named."""
    if isinstance(group, str) and group == "all":
        found = [name for name, body in mechanism.bodies.items() if any(shape.collision for shape in body.shapes)]
        if not found:
            raise ModelError(f"{_WHERE}: {what}: no body has a collision shape; give bodies one first.")
        return found
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise ModelError(f'{_WHERE}: {what} must be "all" or names of bodies, got {group!r}.')
    names = list(dict.fromkeys(group))
    if not names:
        raise ModelError(f"{_WHERE}: {what} names no body.")
    for name in names:
        body = _check_body(mechanism, name, what)
        if not any(shape.collision for shape in body.shapes):
            raise ModelError(f"{_WHERE}: {what}: body '{name}' has no collision shape; give it one, or leave it out.")
    return names


def _check_body(mechanism: Mechanism, name: Any, what: str) -> Any:
    """The body of a name."""
    if not isinstance(name, str) or name not in mechanism.bodies:
        raise ModelError(
            f"{_WHERE}: {what}: there is no body {name!r}; there are {quoted(list(mechanism.bodies)[:20])}."
        )
    return mechanism.bodies[name]


def _rigid_groups(mechanism: Mechanism) -> dict[str, str]:
    """For the world and every body the one that stands for all that is fixed to it."""
    leader = {name: name for name in (WORLD, *mechanism.bodies)}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    for joint in mechanism.joints.values():
        if joint.kind == "fixed" or joint.locked is not None:
            leader[find(joint.child)] = find(joint.parent)
    return {name: find(name) for name in leader}
