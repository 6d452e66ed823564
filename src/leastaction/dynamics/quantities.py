"""Kinematics and dynamics of a model at given states. Conventions: docs/conventions.

Every function takes one state, q (nq,) and v (nv,), or rows of them, (rows, nq) and (rows, nv); results then have the
same leading axis. q may also be a dict by joint name, as in ``model.state``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.model.actuation import relief_energy
from leastaction.model.checks import FloatArray, check_array, check_number, check_vector
from leastaction.model.joints import layout
from leastaction.model.model import Model, check_determined, check_model
from leastaction.model.tables import flat_pose


@dataclass(frozen=True, eq=False)
class Energy:
    """Energies in joules: numbers for one state, arrays (rows,) for several."""

    kinetic: Any
    potential: Any

    @property
    def total(self) -> Any:
        """Kinetic plus potential."""
        return self.kinetic + self.potential


@dataclass(frozen=True, eq=False)
class Momentum:
    """Momenta (..., 3) in world axes: linear in N s, angular about the world's origin in N m s."""

    linear: FloatArray
    angular: FloatArray


def mass_matrix(model: Model, q: Any) -> FloatArray:
    """Mass matrix (nv, nv): kinetic energy is v^T M v / 2. Rotor inertia included."""
    from leastaction.dynamics import entries

    rows, single = _positions(model, q)
    out = np.zeros((len(rows), model.nv, model.nv))
    entries.mass_matrices(model.system, rows, out)
    return _result(out, single, "mass matrix: the numbers")


def inverse_dynamics(model: Model, q: Any, v: Any, a: Any, *, t: float = 0.0, passive: bool = True) -> FloatArray:
    """Generalised forces (nv,) that produce the accelerations a.

    Args:
        model: the model; loops are not closed here, their forces are not counted.
        q: coordinates.
        v: velocities.
        a: accelerations, the component derivatives of v.
        t: time in seconds, for forces that depend on it.
        passive: whether springs, dampers and forces of the mechanism act; without them the result is
            M a + Coriolis and gravity forces alone, as in other libraries.
    """
    from leastaction.dynamics import entries

    qs, vs, single = _motions(model, q, v)
    accelerations = _velocities(model, a, "a", len(qs))
    out = np.zeros((len(qs), model.nv))
    entries.inverse_dynamics(model.system, check_times(t, len(qs)), qs, vs, accelerations, passive, out)
    model.raise_pending()
    return _result(out, single, "inverse dynamics: the forces")


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any = None, *, t: float = 0.0) -> FloatArray:
    """Accelerations (nv,) under generalised forces tau, springs, dampers, forces and closed loops.

    Where limits are enforced, tau counts up to the efforts, and a joint that rests on its limit is held by it. Dry
    friction of a joint acts against its motion; where the joint rests it holds it, as far as it can.

    Raises:
        UnsupportedError: the mechanism has bearings, contact or constraints of the user, which do not count here;
            ``mechanism.without(...)`` drops them. Or a joint strikes its enforced limit, or leans on one of a ball or
            of a free joint.
    """
    return _bounded(model, q, v, tau, t)[0]


def loop_forces(model: Model, q: Any, v: Any, tau: Any = None, *, t: float = 0.0) -> FloatArray:
    """Multipliers (m,) of the loop joints in newtons and newton metres: force +G^T lambda on the child's side."""
    return _bounded(model, q, v, tau, t)[1]


COUNTED = frozenset({"loops", "couplings", "enforced limits", "joint friction", "spline joints"})
"""Features of a model that do not keep ``forward_dynamics`` from being right."""

HELD = 1e-6
"""Metres or radians from an enforced limit within which a joint may lean on it; and a rate that counts as rest."""

SIGNS = 1e-6
"""Part of the accelerations by which a limit or dry friction may miss what it has to do."""


class Lean(NamedTuple):
    """An enforced limit that a joint has reached.

    Attributes:
        joint: its name.
        rate: its place in v; -1 where no single one belongs to it.
        side: 1 at the lower bound, -1 at the upper one: the sign of the force that holds it.
    """

    joint: str
    rate: int
    side: float


def leaning(model: Model, q: FloatArray) -> list[list[Lean]]:
    """For every row of q (rows, nq) the enforced limits that are reached there."""
    out: list[list[Lean]] = [[] for _ in q]
    for view in model.joints.values() if "enforced limits" in model.features else ():
        for piece in layout(view.joint):
            low, high = view.joint.limits[piece.limit].tolist()
            at = q[:, view.q.start + piece.q.start]
            if piece.factor == "ball":
                at, low = 2.0 * np.arccos(np.minimum(1.0, np.abs(at))), -np.inf
            plain = piece.factor != "ball" and view.kind != "free"
            rate = view.v.start + piece.v.start if plain else -1
            for side, gap in ((1.0, at - low), (-1.0, high - at)):
                for row in np.flatnonzero(gap < HELD):
                    out[row].append(Lean(view.name, rate, side))
    return out


def _bounded(model: Model, q: Any, v: Any, tau: Any, t: Any) -> tuple[FloatArray, FloatArray]:
    """Accelerations and loop multipliers under forces within the efforts, and held by limits, where they are enforced.

    At a limit a joint neither accelerates beyond it nor is pulled back: 0 <= a + W f, f >= 0, and one of them is zero.
    """
    qs, vs, single = _motions(model, q, v)
    _refuse(model, "forward_dynamics", model.features - COUNTED)
    asked = np.zeros((len(qs), model.nv)) if tau is None else _velocities(model, tau, "tau", len(qs))
    forces, times = np.clip(asked, -model.efforts, model.efforts), check_times(t, len(qs))
    a, lam = held(model, qs, vs, forces, times, leaning(model, qs))
    return (a[0], lam[0]) if single else (a, lam)


def held(
    model: Model, q: FloatArray, v: FloatArray, tau: FloatArray, t: FloatArray, leans: list[list[Lean]],
    known: frozenset[str] = frozenset(),
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Accelerations (rows, nv) and loop multipliers with dry friction, and with the limits that are reached, by row.

    ``known``: features whose forces are in tau.
    """
    friction = np.concatenate([np.zeros(0), *(view.joint.friction_values for view in model.joints.values())])
    still = np.abs(v) <= HELD
    forces = tau - np.where(still, 0.0, friction * np.sign(v))
    a, lam = _forward(model, q, v, forces, t, known)
    for row, reached in enumerate(leans):
        sticking = np.flatnonzero(still[row] & (friction > 0.0))
        if reached or len(sticking):
            here = (q[row : row + 1], v[row : row + 1], forces[row : row + 1], t[row : row + 1])
            a[row], lam[row] = _at_rest(model, reached, sticking, friction, *here, a[row], lam[row], known)
    return a, lam


def resting(where: str, reached: list[Lean], v: FloatArray) -> list[Lean]:
    """Those of the limits that are not being left; error where one is struck."""
    for lean in reached:
        if lean.rate < 0 or lean.side * v[lean.rate] < -HELD:
            what = "leans on" if lean.rate < 0 else "moves into"
            raise UnsupportedError(
                f"{where}: joint '{lean.joint}' {what} its enforced limit, with a force that does not count here; "
                'simulate with method="maximal" has it; mechanism.enforce_limits(False), or '
                'la.load(..., limits="report"), makes the limits data.'
            )
    return [lean for lean in reached if lean.side * v[lean.rate] <= HELD]


def pushed(where: str, reached: list[Lean], v: FloatArray, a: FloatArray) -> list[Lean]:
    """Those of the limits that rest and would be crossed with acceleration a (nv,); error where one is struck."""
    size, rest = 1e-12 * float(np.abs(a).max(initial=0.0)), resting(where, reached, v)
    return rest if any(lean.side * a[lean.rate] < -size for lean in rest) else []


def _at_rest(
    model: Model, reached: list[Lean], sticking: Any, friction: FloatArray, q: FloatArray, v: FloatArray,
    tau: FloatArray, t: FloatArray, a: FloatArray, lam: FloatArray, known: frozenset[str],
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Accelerations and multipliers at one row with the forces that hold it; a, lam: without them.

    Forces f of limits push, and are at least zero; those of friction at the rates ``sticking`` are at most its size.
    Of all of them act those with the least f W f/2 + a f: where they may be larger still, nothing moves into them.
    """
    from scipy.optimize import lsq_linear

    where = "forward_dynamics"
    rest = resting(where, reached, v[0]) if len(sticking) else pushed(where, reached, v[0], a)
    if not rest and len(sticking) == 0:
        return a, lam
    rates = np.array([*(lean.rate for lean in rest), *sticking], dtype=np.int64)
    sides = np.array([*(lean.side for lean in rest), *np.ones(len(sticking))])
    least = np.array([*np.zeros(len(rest)), *(-friction[sticking])])
    most = np.array([*np.full(len(rest), np.inf), *friction[sticking]])
    units, b = np.zeros((len(rates), model.nv)), sides * a[rates]
    units[np.arange(len(rates)), rates] = sides
    # answers to unit forces; then to forces of the size of those wanted, so that differences keep their digits
    qs, vs, forces, times = (np.repeat(each, len(rates), axis=0) for each in (q, v, tau, t))
    sizes = np.ones(len(rates))
    for _ in range(2):
        moved = _forward(model, qs, vs, forces + sizes[:, None] * units, times, known)[0] - a
        W = (moved[:, rates] * sides / sizes[:, None]).T
        sizes = np.where(b == 0.0, sizes, np.abs(b) / np.maximum(np.diag(W), 1e-300))
    w, V = np.linalg.eigh(0.5 * (W + W.T))
    keep = w > 1e-12 * w.max()
    root = np.sqrt(w[keep])
    found = lsq_linear((V[:, keep] * root).T, -(V[:, keep].T @ b) / root, (least, most), method="bvls")
    force = np.clip(found.x, least, most)
    # the exact answer to these forces
    again, loops = _forward(model, q, v, tau + force @ units, t, known)
    short, size = sides * again[0, rates], SIGNS * float(np.abs(b).max())
    if ((short < -size) & (force < most)).any() or ((short > size) & (force > least) & np.isfinite(most)).any():
        raise ConvergenceError("forward dynamics: the limits that are reached contradict each other.")
    return again[0], loops[0]


def _forward(
    model: Model, q: Any, v: Any, tau: Any, t: Any, known: frozenset[str] = frozenset()
) -> tuple[FloatArray, FloatArray]:
    """Accelerations and loop multipliers; ``known``: features whose forces are in tau."""
    from leastaction.dynamics import entries

    qs, vs, single = _motions(model, q, v)
    check_determined(model, "forward_dynamics")
    _refuse(model, "forward_dynamics", model.features - COUNTED - known)
    forces = np.zeros((len(qs), model.nv)) if tau is None else _velocities(model, tau, "tau", len(qs))
    a, lam = np.zeros((len(qs), model.nv)), np.zeros((len(qs), model.constraint_size))
    good = entries.forward_dynamics(model.system, check_times(t, len(qs)), qs, vs, forces, a, lam)
    model.raise_pending()
    if not good or not np.isfinite(a).all() or not np.isfinite(lam).all():
        raise ConvergenceError("forward dynamics: the accelerations are not finite; the state may be singular.")
    return (a[0], lam[0]) if single else (a, lam)


def bias_forces(model: Model, q: Any, v: Any) -> FloatArray:
    """Coriolis, centrifugal and gravity forces (nv,)."""
    qs, vs, single = _motions(model, q, v)
    out = inverse_dynamics(model, qs, vs, np.zeros_like(vs), passive=False)
    return out[0] if single else out


def gravity_forces(model: Model, q: Any) -> FloatArray:
    """Generalised forces (nv,) that hold the mechanism against gravity."""
    rows, single = _positions(model, q)
    zero = np.zeros((len(rows), model.nv))
    out = inverse_dynamics(model, rows, zero, zero, passive=False)
    return out[0] if single else out


def energy(model: Model, q: Any, v: Any = None) -> Energy:
    """Kinetic energy and potential energy of gravity, springs and conservative forces."""
    from leastaction.dynamics import entries

    qs, vs, single = _motions(model, q, v)
    out = np.zeros((len(qs), 3))
    entries.energies(model.system, qs, vs, out)
    model.raise_pending()
    out[:, 1] += out[:, 2] + _user_energy(model, qs) + relief_energy(model, qs)
    kinetic, potential = _result(out[:, :2], single, "energy: the numbers").T
    return Energy(kinetic, potential)


def momentum(model: Model, q: Any, v: Any) -> Momentum:
    """Linear momentum, and angular momentum about the world's origin."""
    out, single = _momenta(model, q, v)
    return Momentum(out[0, 3:6], out[0, :3]) if single else Momentum(out[:, 3:6], out[:, :3])


def center_of_mass(model: Model, q: Any) -> FloatArray:
    """Centre of mass (3,) of everything that moves, in the world."""
    check_model(model)
    if model.total_mass == 0:
        raise ModelError("center_of_mass: nothing that moves has mass.")
    out, single = _momenta(model, q, None)
    return out[0, 6:] if single else out[:, 6:]


def centroidal_map(model: Model, q: Any) -> FloatArray:
    """Map (6, nv) from v to (angular momentum about the centre of mass; linear momentum), world axes."""
    from leastaction.dynamics import entries

    rows, single = _positions(model, q)
    out = np.zeros((len(rows), 6, model.nv))
    entries.centroidal_maps(model.system, rows, out)
    return _result(out, single, "centroidal map: the numbers")


def poses(model: Model, q: Any) -> dict[str, FloatArray]:
    """Poses (4, 4) in the world of every body and frame, by name."""
    rows, single = _positions(model, q)
    names = [name for name in model.frame_names if name != "world"]
    out = frame_poses(model, rows, names)
    return {name: out[0, k] if single else out[:, k] for k, name in enumerate(names)}


def frame_poses(model: Model, rows: FloatArray, names: list[str]) -> FloatArray:
    """Poses (rows, names, 4, 4) of the named bodies and frames, for checked rows of q."""
    from leastaction.dynamics import entries

    tree_rows, frames = _frames(model, names)
    out = np.zeros((len(rows), len(names), 4, 4))
    entries.frame_poses(model.system, rows, tree_rows, frames, out)
    return _result(out, False, "poses: the numbers")


def jacobian(model: Model, q: Any, body: str, point: Any = (0.0, 0.0, 0.0)) -> FloatArray:
    """Jacobian (6, nv) of a point of a body or frame: (angular; linear) velocity at the point, world axes.

    Args:
        model: the model.
        q: coordinates.
        body: name of a body, of a body fixed to another one, or of a frame.
        point: (3,) in the link frame, metres.
    """
    from leastaction.dynamics import entries

    rows, single = _positions(model, q)
    place = model.place(body)
    frame = place.pose.copy()
    frame[:3, 3] += frame[:3, :3] @ check_vector(point, 3, f"jacobian of '{body}': point")
    out = np.zeros((len(rows), 6, model.nv))
    entries.frame_jacobian(model.system, rows, place.row, flat_pose(frame), out)
    return _result(out, single, f"jacobian of '{body}': the numbers")


def body_twists(model: Model, q: Any, v: Any, names: list[str] | None = None) -> FloatArray:
    """Twists (names, 6) of bodies or frames: (angular; linear) at their origins, world axes. All bodies by default.

    The product J v for all of them at once, in O(n).
    """
    from leastaction.dynamics import entries

    qs, vs, single = _motions(model, q, v)
    rows, frames = _frames(model, names)
    out = np.zeros((len(qs), len(rows), 6))
    entries.body_twists(model.system, qs, vs, rows, frames, out)
    return _result(out, single, "twists: the numbers")


def wrench_forces(model: Model, q: Any, wrenches: dict[str, Any]) -> FloatArray:
    """Generalised forces (nv,) of wrenches on bodies or frames: the sum of J^T w, in O(n).

    Args:
        model: the model.
        q: coordinates of one state.
        wrenches: name -> (torque; force) (6,) at the origin, world axes.
    """
    from leastaction.dynamics import entries

    qs, single = _positions(model, q)
    if not single:
        raise ModelError(f"wrench_forces takes one state, got {len(qs)} rows of q; call it for each of them.")
    rows, frames = _frames(model, list(wrenches))
    given = [check_vector(wrench, 6, f"wrench on '{name}'") for name, wrench in wrenches.items()]
    out: FloatArray = np.zeros((1, model.nv))
    entries.wrench_forces(model.system, qs, rows, frames, np.array(given).reshape(1, -1, 6), out)
    return _result(out, True, "forces of wrenches: the numbers")


def _refuse(model: Model, what: str, features: frozenset[str]) -> None:
    """Raise for the first feature of the model that a function does not count."""
    for feature in sorted(features):
        raise UnsupportedError(
            f"{what}: '{model.name}' has {feature}, which does not count here; mechanism.without(...) drops it."
        )


# --- inputs ------------------------------------------------------------------------------------------------------
def _positions(model: Model, q: Any) -> tuple[FloatArray, bool]:
    """Rows (rows, nq) of checked coordinates, and whether one state was given."""
    check_model(model)
    if _is_one(q):
        return model.check_q(q)[None], True
    return model.check_rows(q), False


def _velocities(model: Model, v: Any, what: str, rows: int) -> FloatArray:
    """Rows (rows, nv) of checked velocities, accelerations or forces."""
    if _is_one(v):
        return np.tile(model.check_v(v, what), (rows, 1))
    array = np.ascontiguousarray(v, dtype=float)
    if array.shape != (rows, model.nv):
        raise ModelError(f"{what} has shape {array.shape}, expected ({model.nv},) or ({rows}, {model.nv}).")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise ModelError(f"{what}: row {row} is not finite.")
    return array


def _is_one(value: Any) -> bool:
    """Whether q or v of one state is given, or something that is neither one nor rows: its check says so."""
    if value is None or isinstance(value, Mapping):
        return True
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return True
    return array.ndim != 2 or array.dtype.kind not in "biuf"


def check_times(t: Any, rows: int) -> FloatArray:
    """Times (rows,) from one time in seconds, or from one for each row."""
    if np.isscalar(t) or t is None or np.ndim(t) == 0:
        return np.full(rows, check_number(t, "time"))
    times = check_array(t, "time")
    if times.shape != (rows,):
        raise ModelError(f"time has shape {times.shape}, expected one number or ({rows},).")
    return times


def _motions(model: Model, q: Any, v: Any) -> tuple[FloatArray, FloatArray, bool]:
    """Rows of q and of v, and whether one state was given."""
    qs, single = _positions(model, q)
    if isinstance(v, Mapping) and model.twins:
        return qs, np.array([model.check_motion(row, v)[1] for row in qs]).reshape(-1, model.nv), single
    return qs, _velocities(model, v, "v", len(qs)), single


def _frames(model: Model, names: list[str] | None) -> tuple[Any, FloatArray]:
    """Tree rows (k,) and offsets (k, 12) of named bodies and frames; of all moving bodies by default."""
    places = [model.place(name) for name in (model.body_names if names is None else names)]
    rows = np.array([place.row for place in places], dtype=np.int64)
    return rows, np.array([flat_pose(place.pose) for place in places]).reshape(-1, 12)


def _result(rows: FloatArray, single: bool, what: str) -> FloatArray:
    """Rows of a result, or the only one; what is not finite is an error."""
    if not np.isfinite(rows).all():
        bad = np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))
        where = "" if single else f" in row {int(bad[0])}"
        raise ConvergenceError(
            f"{what} are not finite{where}; a number of the state is too large, or a law or force has no value there."
        )
    return np.asarray(rows[0]) if single else rows


def _momenta(model: Model, q: Any, v: Any) -> tuple[FloatArray, bool]:
    """Angular momentum, linear momentum and centre of mass (rows, 9)."""
    from leastaction.dynamics import entries

    qs, vs, single = _motions(model, q, v)
    out = np.zeros((len(qs), 9))
    entries.all_momenta(model.system, qs, vs, out)
    return _result(out, False, "momentum: the numbers"), single


def _user_energy(model: Model, qs: FloatArray) -> FloatArray:
    """Energy (rows,) of the conservative forces that the kernels do not know."""
    from leastaction.model.forces import PointSpring

    out = np.zeros(len(qs))
    for force in model.mechanism.forces:
        if isinstance(force, PointSpring):
            continue
        at = frame_poses(model, qs, list(force.bodies))
        out += [force.energy(0.0, at[r]) for r in range(len(qs))]
    return out
