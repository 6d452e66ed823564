"""Runs in the form of other libraries: xarray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leastaction._version import __version__
from leastaction.errors import ModelError
from leastaction.model.joints import Ball, Screw, factors

if TYPE_CHECKING:
    from leastaction.model.elements import Joint
    from leastaction.run.trajectory import Trajectory


def coordinate_units(joint: Joint) -> tuple[str, ...]:
    """Unit of each position coordinate: "rad", "m", or "1" for the numbers of a quaternion and along a spline."""
    out: list[str] = []
    for factor in factors(joint):
        out += [_unit(factor)] if isinstance(factor, Screw) else ["1"] * factor.nq
    return tuple(out)


def velocity_units(joint: Joint) -> tuple[str, ...]:
    """Unit of each velocity coordinate, in public order: "rad/s", "m/s", or "1/s" along a spline."""
    # the public order of a free joint is (angular; linear), not that of its factors
    if joint.kind == "free":
        return ("rad/s",) * 3 + ("m/s",) * 3
    out: list[str] = []
    for factor in factors(joint):
        if isinstance(factor, Screw):
            out.append(f"{_unit(factor)}/s")
        else:
            out += ["rad/s" if isinstance(factor, Ball) else "1/s"] * factor.nv
    return tuple(out)


def _unit(screw: Screw) -> str:
    """Unit of a screw's coordinate."""
    return "m" if screw.kind == "prismatic" else "rad"


def to_xarray(run: Trajectory) -> Any:
    """A run as an ``xarray.Dataset`` (extra ``xarray``).

    Dimensions: ``time`` (s); ``coordinate`` and ``velocity``, labelled "joint.name of the coordinate"; ``axis``
    (x, y, z of the world). Variables: q, v, energies (J), momenta (N s and N m s), constraint_error, and iterations
    where the method has a root finder. Units stand in the attributes; where they differ along a dimension, in the
    coordinates ``coordinate_unit`` and ``velocity_unit``.
    """
    try:
        import xarray
    except ImportError as error:
        raise ModelError("to_xarray needs xarray; install the extra: pip install 'leastaction[xarray]'.") from error

    # labels and units along q and v
    joints = [view.joint for view in run.model.joints.values()]
    q_names = [f"{joint.name}.{name}" for joint in joints for name in joint.coordinate_names]
    v_names = [f"{joint.name}.{name}" for joint in joints for name in joint.velocity_names]
    q_units = [unit for joint in joints for unit in coordinate_units(joint)]
    v_units = [unit for joint in joints for unit in velocity_units(joint)]
    coordinates = {
        "time": ("time", run.t, {"units": "s"}),
        "coordinate": ("coordinate", q_names),
        "velocity": ("velocity", v_names),
        "axis": ("axis", ["x", "y", "z"]),
        "coordinate_unit": ("coordinate", q_units),
        "velocity_unit": ("velocity", v_units),
    }

    # what the run holds and what follows from it
    energy, momentum, gap = run.energy, run.momentum, run.constraint_error
    variables = {
        "q": (("time", "coordinate"), run.q, {"long_name": "joint positions", "units": _common(q_units)}),
        "v": (("time", "velocity"), run.v, {"long_name": "joint velocities", "units": _common(v_units)}),
        "kinetic_energy": ("time", energy.kinetic, {"units": "J"}),
        "potential_energy": ("time", energy.potential, {"units": "J"}),
        "total_energy": ("time", energy.total, {"units": "J"}),
        "linear_momentum": (("time", "axis"), momentum.linear, {"units": "N s"}),
        "angular_momentum": (
            ("time", "axis"),
            momentum.angular,
            {"units": "N m s", "long_name": "angular momentum about the world's origin"},
        ),
        "constraint_error": ("time", gap, {"units": "m or rad", "long_name": "largest gap of loops and constraints"}),
    }
    if run.iterations is not None:
        words = "iterations of the root finder since the row before"
        variables["iterations"] = ("time", run.iterations, {"units": "1", "long_name": words})
    about = {
        "mechanism": run.model.name,
        "method": run.method.label,
        **_step(run),
        "steps": run.steps,
        "source": f"leastaction {__version__}",
    }
    return xarray.Dataset(variables, coordinates, about)


def _step(run: Trajectory) -> dict[str, float]:
    """The step in seconds, or the shortest and the longest one."""
    if isinstance(run.dt, float):
        return {"dt": run.dt}
    return {"dt_least": float(run.dt.min()), "dt_most": float(run.dt.max())} if len(run.dt) else {}


def _common(units: list[str]) -> str:
    """The one unit of all, or the words "mixed, see ..." where there are several."""
    kinds = sorted(set(units))
    return kinds[0] if len(kinds) == 1 else f"mixed ({', '.join(kinds)})" if kinds else "1"
