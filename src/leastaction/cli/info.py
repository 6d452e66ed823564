"""``leastaction info``: what a mechanism consists of, and what its loader could not honour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from leastaction.cli.inputs import as_options, build_model, mechanism_options, read_mechanism
from leastaction.cli.output import console, one_line

if TYPE_CHECKING:
    from leastaction.model.elements import Joint
    from leastaction.model.model import Model


@click.command(short_help="Show what a mechanism consists of.")
@mechanism_options
def info(
    source: str,
    floating: bool,
    package_dirs: tuple[str, ...],
    allow: tuple[str, ...],
    without: tuple[str, ...],
    gravity: str | None,
    inertia: str,
    limits: str | None,
) -> None:
    """Show bodies, joints, loops, frames and notes of a mechanism from a file or a built-in one; compiles nothing."""
    mechanism = read_mechanism(
        source,
        floating=floating,
        package_dirs=package_dirs,
        allow=allow,
        without=without,
        gravity=gravity,
        inertia=inertia,
        limits=limits,
    )
    model = build_model(mechanism, source)
    out = console()
    out.print(_summary(model))
    for part in (_bodies(model), _joints(model), _loops(model), _couplings(model), _frames(model), _notes(model)):
        if part is not None:
            out.print()
            out.print(part)


def _summary(model: Model) -> Any:
    """Numbers about the whole mechanism."""
    m = model.mechanism
    fixed = len(m.bodies) - len(model.body_names)
    table = _table(None, "", "")
    rows = [
        ("name", m.name),
        ("bodies", f"{len(m.bodies)}" + (f", {fixed} of them fixed to others or to the world" if fixed else "")),
        ("total mass", f"{model.total_mass:.6g} kg"),
        ("coordinates", f"nq = {model.nq}, nv = {model.nv}"),
        ("gravity", f"({_numbers(m.gravity)}) m/s^2"),
    ]
    # what is there only sometimes
    counts = {"forces": len(m.forces), "constraints": len(m.constraints), "actuators": len(m.actuators)}
    rows += [(name, str(count)) for name, count in counts.items() if count]
    if m.ground is not None or m.contacts:
        rows.append(("contact", f"pairs: {len(m.contacts)}" + (", and the ground" if m.ground is not None else "")))
    rows.append(("a method must support", ", ".join(sorted(model.features)) or "nothing special"))
    if model.undetermined:
        rows.append(("motion", f"none, only kinematics: {as_options(model.undetermined)}"))
    for label, value in rows:
        _add(table, label, value)
    return table


def _bodies(model: Model) -> Any:
    """One row for each body: mass, centre of mass, and whether it moves on its own."""
    table = _table("bodies", "name", "mass (kg)", "centre of mass (m)", "carried by")
    inbound = model.topology.inbound
    for body in model.mechanism.bodies.values():
        _add(table, body.name, f"{body.mass:.6g}", _numbers(body.com), inbound[body.name])
    return table


def _joints(model: Model) -> Any:
    """One row for each joint of the tree, fixed and locked ones included."""
    table = _table("joints", "name", "kind", "parent -> child", "q", "v", "limits", "forces and bounds")
    # those that move in the order of q, then the rest in the order of the tree
    moving = sorted(model.joints, key=lambda name: model.joints[name].q.start)
    for name in (*moving, *(name for name in model.topology.tree if name not in model.joints)):
        joint = model.mechanism.joints[name]
        view = model.joints.get(name)
        q, v = ("", "") if view is None else (_range(view.q), _range(view.v))
        kind = joint.kind if joint.locked is None else f"{joint.kind}, locked"
        _add(table, name, kind, f"{joint.parent} -> {joint.child}", q, v, _limits(joint), _forces(joint))
    return table


def _loops(model: Model) -> Any:
    """One row for each joint that closes a loop."""
    if not model.loop_names:
        return None
    table = _table("joints that close loops", "name", "kind", "parent -> child", "constraint rows")
    for name in model.loop_names:
        joint, rows = model.split.joints[name], model.loop_rows[name]
        _add(table, name, joint.kind, f"{joint.parent} -> {joint.child}", str(rows.stop - rows.start))
    return table


def _couplings(model: Model) -> Any:
    """One row for each coupling."""
    if not model.mechanism.couplings:
        return None
    table = _table("couplings", "name", "terms", "total")
    for each in model.mechanism.couplings.values():
        terms = "; ".join(f"{term.label}: {_numbers(term.coefficients)}" for term in each.terms)
        _add(table, each.name, terms, f"{each.total:.6g}")
    return table


def _frames(model: Model) -> Any:
    """One row for each named frame."""
    frames = model.mechanism.frames
    if not frames:
        return None
    table = _table("frames", "name", "on body", "position (m)")
    for frame in frames.values():
        _add(table, frame.name, frame.body, _numbers(frame.pose[:3, 3]))
    return table


def _notes(model: Model) -> Any:
    """What the loader could not honour, and what contact assumes."""
    from leastaction.errors import ModelError
    from leastaction.model.contacts import contact_table

    notes = list(model.mechanism.notes)
    if "contact" in model.features:
        try:
            notes += contact_table(model.mechanism, model.places).notes
        except ModelError as error:
            notes.append(str(error))
    if not notes:
        return None
    table = _table("notes", "")
    for note in notes:
        _add(table, note)
    return table


# --- words -------------------------------------------------------------------------------------------------------
def _table(title: str | None, *columns: str) -> Any:
    """An open table; columns without a heading where all of them are empty."""
    from rich.table import Table

    table = Table(title=title, box=None, title_justify="left", padding=(0, 2, 0, 0), show_header=any(columns))
    if title is not None:
        table.title_style = "bold"
    # names stay whole; the rest gives way on a narrow terminal
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=index == 0 and len(columns) > 1)
    return table


def _add(table: Any, *cells: str) -> None:
    """A row of plain text: names of a file are no markup and steer no terminal."""
    from rich.text import Text

    table.add_row(*(Text(one_line(cell)) for cell in cells))


def _numbers(values: Any) -> str:
    """A few digits of each number; what is zero but for rounding is zero."""
    return ", ".join(f"{round(float(value), 12) + 0.0:.4g}" for value in values)


def _range(where: slice) -> str:
    """A slice as the user would write it."""
    return str(where.start) if where.stop - where.start == 1 else f"{where.start}:{where.stop}"


def _limits(joint: Joint) -> str:
    """Bounds of each coordinate that has some."""
    if not joint.has_limits:
        return ""
    return "; ".join(f"{low:.4g} .. {high:.4g}" for low, high in joint.limits)


def _forces(joint: Joint) -> str:
    """Dampers, springs, friction, rotor inertia, bounds of effort and speed: those that are there."""
    import numpy as np

    words = []
    values = {
        "damping": joint.damping_values,
        "stiffness": joint.stiffness_values,
        "friction": joint.friction_values,
        "armature": joint.armature,
    }
    words += [f"{name} {_short(array)}" for name, array in values.items() if array.any()]
    if joint.bearing is not None:
        words.append(f"bearing with friction {joint.bearing.coefficient:.4g}")
    laws = {"damping law": joint.damping_laws, "stiffness law": joint.stiffness_laws}
    words += [name for name, found in laws.items() if found]
    bounds = {"effort": joint.effort, "speed": joint.speed}
    words += [f"{name} {_short(array)}" for name, array in bounds.items() if np.isfinite(array).any()]
    return ", ".join(words)


def _short(array: Any) -> str:
    """One number where all are the same."""
    return f"{array[0]:.4g}" if (array == array[0]).all() else f"({_numbers(array)})"
