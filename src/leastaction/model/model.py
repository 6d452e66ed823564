"""Model: the frozen arrays and names that methods run on. State: one instant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.jit.callbacks import Callback, take_pending
from leastaction.model.actuation import forces_of_inputs, servo_bound
from leastaction.model.checks import LARGEST, FloatArray, check_number, frozen, quoted
from leastaction.model.elements import Actuator, Joint
from leastaction.model.joints import check_coordinates, layout
from leastaction.model.key_frames import key_motion
from leastaction.model.loop_coordinates import recover_coordinates, recover_rates
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import inverse_pose
from leastaction.model.random_states import random_q
from leastaction.model.spline import check_ends
from leastaction.model.splitting import Twin
from leastaction.model.tables import Place
from leastaction.model.tendon_force import TendonLimit
from leastaction.model.topology import Topology
from leastaction.tree.layout import Constraints, System


@dataclass(frozen=True, eq=False)
class State:
    """One instant: time t in seconds, coordinates q (nq,) and velocities v (nv,), read-only; ``key``: its key frame."""

    t: float
    q: FloatArray
    v: FloatArray
    key: str = ""


@dataclass(frozen=True, eq=False)
class JointView:
    """A moving joint of a model: its description and its slices of q and v."""

    joint: Joint
    q: slice
    v: slice

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self.joint.name

    @property
    def kind(self) -> str:
        """Kind of the joint."""
        return self.joint.kind

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.q.stop - self.q.start)

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return int(self.v.stop - self.v.start)


@dataclass(frozen=True, eq=False)
class Model:
    """A mechanism ready to run. Made by ``Mechanism.build``; never changes.

    Attributes:
        mechanism: the description it was built from (a copy).
        described: the same once more, for files: what was built, whatever is done to ``mechanism`` later.
        split: what the arrays describe: the same, with bodies cut where loop joints carry something.
        twins: the parts that were cut off, by name; see ``leastaction.model.splitting``.
        topology: tree, loops and elimination order.
        system: the arrays that kernels read.
        joints: the moving joints in build order, with their slices of q and v.
        places: row and offset of every body and frame.
        row_names: moving bodies and twins, in tree order.
        first_rows: first tree row of every moving joint.
        loop_rows: constraint rows of every loop joint.
        coupling_rows: constraint rows of every coupling: one, or none where all of its joints are locked.
        inequalities: the user's inequality constraints, as kernels read them.
        undetermined: why the mechanism has kinematics and no motion, in words: a joint moves nothing that has inertia,
            or a body has an inertia that none can have; "" where it has. Dynamics raises it.
        callbacks: functions of the user that the arrays point to.
    """

    mechanism: Mechanism
    described: Mechanism
    split: Mechanism
    twins: dict[str, Twin]
    topology: Topology
    system: System
    joints: dict[str, JointView]
    places: dict[str, Place]
    row_names: tuple[str, ...]
    first_rows: dict[str, int]
    loop_rows: dict[str, slice]
    coupling_rows: dict[str, slice]
    inequalities: Constraints
    undetermined: str
    callbacks: tuple[Callback, ...]

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.mechanism.name

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates."""
        return sum(view.nq for view in self.joints.values())

    @cached_property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return sum(view.nv for view in self.joints.values())

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Moving bodies, in tree order; bodies fixed to another one are frames."""
        return tuple(name for name in self.row_names if name not in self.twins)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Moving joints, in the order of q and v."""
        return tuple(self.joints)

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Joints that close loops, and the welds of those that carry something."""
        return self.topology.loops

    @property
    def held_names(self) -> tuple[str, ...]:
        """Joints that close loops, then couplings."""
        return (*self.loop_names, *self.coupling_rows)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every name that has a pose: bodies, bodies fixed to them, frames."""
        return tuple(name for name in self.places if name not in self.twins)

    @property
    def constraint_size(self) -> int:
        """Number of constraint rows of loop joints and couplings."""
        return max((rows.stop for rows in (*self.loop_rows.values(), *self.coupling_rows.values())), default=0)

    @cached_property
    def total_mass(self) -> float:
        """Mass of everything that moves, kg."""
        return float(self.system.tree.const[:, 12].sum())

    @cached_property
    def efforts(self) -> FloatArray:
        """Largest generalised force (nv,) of a control, infinite where efforts are not enforced or bound a servo."""
        out = np.full(self.nv, np.inf)
        if self.mechanism.limits_enforced:
            for view in self.joints.values():
                out[view.v] = view.joint.effort
            for each in self.mechanism.actuators.values():
                if each.joint in self.joints and _is_bounded(each, self.mechanism):
                    out[self.joints[each.joint].v.start + int(each.coordinate)] = np.inf
        return frozen(out)

    @cached_property
    def features(self) -> frozenset[str]:
        """What a method must support to run this model; see ``leastaction.methods.base``."""
        m = self.mechanism
        # what belongs to a joint counts only where the joint can move
        closing = [self.split.joints[name] for name in self.loop_names]
        loops = [joint for joint in closing if joint.locked is None]
        tree = [view.joint for view in self.joints.values()]
        moving = [*tree, *loops]
        own = [each for each in m.constraints if not isinstance(each, TendonLimit)]
        present = {
            "loops": bool(self.loop_names),
            "couplings": any(rows.stop > rows.start for rows in self.coupling_rows.values()),
            "joint friction": any(joint.friction_values.any() for joint in moving),
            "bearings": any(joint.bearing is not None and joint.bearing.coefficient > 0 for joint in moving),
            "spline joints": any(joint.spline is not None for joint in moving),
            "contact": m.ground is not None or bool(m.contacts),
            "restitution": any(c.restitution > 0 for c in m.contacts)
            or (m.ground is not None and m.ground.restitution > 0),
            "enforced limits": m.limits_enforced
            and (any(_has_bounds(joint) for joint in tree) or any(each.has_limits for each in m.tendons.values())),
            "bounded servos": m.limits_enforced and any(_is_bounded(each, m) for each in m.actuators.values()),
            **{f"{kind} constraints": any(c.kind == kind for c in own) for kind in _CONSTRAINTS},
        }
        return frozenset(name for name, there in present.items() if there)

    @property
    def is_closed(self) -> bool:
        """Whether loops, couplings or equality constraints hold, so that a state may be off them."""
        return bool(self.features & {"loops", "couplings", "equality constraints"})

    def joint(self, name: str) -> JointView:
        """A moving joint by name."""
        if name not in self.joints:
            raise ModelError(self._no_joint(name))
        return self.joints[name]

    def place(self, name: str) -> Place:
        """Row and offset of a body, a body fixed to another one, or a frame."""
        if name not in self.places:
            raise ModelError(f"there is no body or frame '{name}'{_near(name, self.places)}.")
        return self.places[name]

    def shares(self, body: str) -> list[tuple[Place, float]]:
        """Where the mass of a body is: the body itself, then its twins, each with its part of the mass."""
        place = self.place(body)
        out: list[tuple[Place, float]] = []
        for name, twin in self.twins.items():
            owner = self.places[twin.body]
            if owner.row == place.row:
                at = self.places[name]
                out.append((Place(at.row, at.pose @ inverse_pose(owner.pose) @ place.pose), twin.share))
        return [(place, 1.0 - sum(part for _, part in out)), *out]

    def neutral(self) -> FloatArray:
        """Neutral coordinates (nq,): zeros, and (1, 0, 0, 0) for rotations; loop joints follow from the others."""
        out = np.concatenate([np.zeros(0), *(view.joint.neutral for view in self.joints.values())])
        recover_coordinates(self, out, ())
        return out

    def _default_q(self) -> FloatArray:
        """Coordinates (nq,) of the default state: neutral, but for joints that start elsewhere."""
        out = self.neutral()
        given = {view.name: view.joint.start for view in self.joints.values() if view.joint.start is not None}
        for name, start in given.items():
            out[self.joints[name].q] = start
        if given:
            recover_coordinates(self, out, given)
        return out

    def state(self, q: Any = None, v: Any = None, t: float | None = None) -> State:
        """A checked state.

        Args:
            q: full array (nq,), or a dict of joint names with one number or one array each; the rest is that of the
                default state, which is neutral but for ``joint.start``. Or the name of a key frame, whose velocities
                and time count then too, unless they are given.
            v: full array (nv,), or a dict by joint name; the rest is zero.
            t: time in seconds, 0 by default.

        Joints that close loops and have coordinates follow from the others where a dict does not name them.
        """
        key = q if isinstance(q, str) else ""
        if isinstance(q, str):
            q, rates, time = key_motion(self, q)
            v, t = rates if v is None else v, time if t is None else t
        t = check_number(0.0 if t is None else t, "state: time")
        q, v = self.check_motion(q, v)
        return State(t, frozen(q), frozen(v), key)

    def random(self, seed: Any = None, reach: float = 1.0) -> State:
        """A random state at rest, within the limits of the joints; loops are open, ``la.project`` closes them.

        Args:
            seed: a whole number, or a ``numpy.random.Generator``; None is another state each time.
            reach: metres; a translation without limits is drawn from -reach to reach.
        """
        reach = check_number(reach, "random: reach", positive=True)
        return self.state(random_q(self, np.random.default_rng(seed), reach))

    @property
    def key_frame_names(self) -> tuple[str, ...]:
        """Names of the key frames, for ``state``."""
        return tuple(self.mechanism.key_frames)

    def check_motion(self, q: Any, v: Any) -> tuple[FloatArray, FloatArray]:
        """Coordinates (nq,) and velocities (nv,) from arrays or dicts."""
        q, given = self.check_q(q), v
        v = self.check_v(v)
        if isinstance(given, Mapping):
            recover_rates(self, q, v, given)
        return q, v

    def check_q(self, q: Any) -> FloatArray:
        """Coordinates (nq,) from an array, a dict or the name of a key frame, quaternions normalised."""
        if q is None:
            return self._default_q()
        if isinstance(q, str):
            q = key_motion(self, q)[0]
        if isinstance(q, Mapping):
            out = self._default_q()
            for name, value in q.items():
                out[self.joint(name).q] = check_coordinates(self.joint(name).joint, value, f"state: joint '{name}'")
            recover_coordinates(self, out, q)
            return out
        array = _vector(q, self.nq, "state: q", self.joints)
        return self._normalised(array.reshape(1, -1), "state").reshape(-1)

    def check_rows(self, q: Any) -> FloatArray:
        """Rows of coordinates (rows, nq) from an array, quaternions normalised."""
        array = _numbers(q, f"q must be ({self.nq},) or (rows, {self.nq}) numbers, or a dict by joint name")
        if array.ndim != 2 or array.shape[1] != self.nq:
            raise ModelError(f"q has shape {array.shape}, expected ({self.nq},) or (rows, {self.nq}).")
        bad = ~np.isfinite(array).all(axis=1)
        if bad.any():
            raise ModelError(f"q: row {int(np.flatnonzero(bad)[0])} is not finite.")
        return self._normalised(array, "q: row {}")

    def _normalised(self, rows: FloatArray, where: str) -> FloatArray:
        """The rows (a new array) with unit quaternions; ``where`` names a row in an error."""
        for name, ball in self._balls:
            # beyond this squares are no numbers, and the quaternion would become zero
            large = np.flatnonzero((np.abs(rows[:, ball]) > LARGEST).any(axis=1))
            if large.size:
                raise ModelError(
                    f"{where.format(int(large[0]))}: joint '{name}': its quaternion is beyond {LARGEST:g}."
                )
            n = np.linalg.norm(rows[:, ball], axis=1)
            if (n < 1e-6).any():
                row = where.format(int(np.flatnonzero(n < 1e-6)[0]))
                raise ModelError(f"{row}: joint '{name}': its quaternion is zero.")
            # those that are normalised but for rounding are left as they are
            off = np.abs(n - 1.0) > 1e-14
            rows[off, ball] /= n[off, None]
        for view in self._splines:
            for k, row in enumerate(rows):
                check_ends(view.joint.spline, row[view.q], f"{where.format(k)}: joint '{view.name}'")
        return rows

    def on_splines(self, q: FloatArray) -> bool:
        """Whether q (nq,) is within the ends of all open splines."""
        ends = ((q[view.q], np.array(view.joint.spline.ends)) for view in self._splines)
        return all(bool(((here >= 0) & (here <= end) | np.isinf(end)).all()) for here, end in ends)

    def spline_end(self, q: FloatArray, v: FloatArray, dt: float) -> str:
        """Words for a joint that comes to the end of its spline within two steps, or nothing."""
        for view in self._splines:
            names, ends = view.joint.coordinate_names, view.joint.spline.ends
            for name, here, rate, end in zip(names, q[view.q], v[view.v], ends, strict=True):
                target = end if rate > 0 else 0.0
                if np.isfinite(end) and abs(target - here) <= 2 * dt * abs(rate):
                    return f"; joint '{view.name}' comes to the end of its spline, {name} = {target:g}"
        return ""

    @cached_property
    def _splines(self) -> list[Any]:
        """Joints along splines."""
        return [view for view in self.joints.values() if view.joint.spline is not None]

    @cached_property
    def _balls(self) -> list[tuple[str, slice]]:
        """Joint and slice of q of every quaternion."""
        return [
            (name, slice(view.q.start + piece.q.start, view.q.start + piece.q.stop))
            for name, view in self.joints.items()
            for piece in layout(view.joint)
            if piece.factor == "ball"
        ]

    def check_v(self, v: Any, what: str = "v") -> FloatArray:
        """Velocities, accelerations or generalised forces (nv,) from an array or a dict.

        None is zero, but not what a function of the user returned (``what`` is "control"): there a return is missing.
        """
        out = np.zeros(self.nv)
        where, label = ("control", "tau") if what == "control" else ("state", what)
        if v is None and where == "control":
            raise ModelError(f"control: the function returned None; return {self.nv} numbers or a dict by joint name.")
        if v is None:
            return out
        if not isinstance(v, Mapping):
            return _vector(v, self.nv, f"{where}: {label}", self.joints)
        for name, value in v.items():
            view = self.joint(name)
            names = ", ".join(view.joint.velocity_names)
            wrong = f"{where}: joint '{name}': expected {view.nv} finite numbers ({names})"
            array = np.atleast_1d(_numbers(value, wrong))
            if array.shape != (view.nv,) or not np.isfinite(array).all():
                raise ModelError(f"{wrong}, got {value!r}.")
            out[view.v] = array
        return out

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the actuators, in the order of inputs."""
        return tuple(self.mechanism.actuators)

    @property
    def nu(self) -> int:
        """Number of actuators."""
        return len(self.mechanism.actuators)

    def actuate(
        self, inputs: Mapping[str, Any] | ArrayLike, arms: Mapping[str, FloatArray] | None = None
    ) -> FloatArray:
        """Generalised forces of the actuators for their inputs, to be given as a control.

        A motor gives gear * input. A servo pulls towards its own target in any case; its input is another target (a
        rate where it has no kp), and what is returned moves it there. A motor that is not named has the input 0.

        Args:
            inputs: by name of the actuator one number, or an array (steps,); or an array (nu,) or (..., nu) in the
                order of ``actuator_names``.
            arms: moment arms (nv,) of tendons through space by name, from ``la.moment_arms``.

        Returns:
            (nv,), or (steps, nv) where there are inputs for steps.
        """
        return forces_of_inputs(self, inputs, arms or {})

    def raise_pending(self) -> None:
        """Raise the error of a function of the user that failed inside compiled code."""
        error = take_pending(self.callbacks)
        if error is not None:
            raise error

    def __repr__(self) -> str:
        loops = f", {len(self.loop_names)} loops" if self.loop_names else ""
        loops += f", {len(self.coupling_rows)} couplings" if self.coupling_rows else ""
        return f"Model('{self.name}', {len(self.body_names)} bodies, nq={self.nq}, nv={self.nv}{loops})"

    def _no_joint(self, name: Any) -> str:
        """Why a joint has no coordinates."""
        joint = self.mechanism.joints.get(name)
        if joint is None:
            return f"there is no joint '{name}'{_near(name, self.joints)}."
        why, hint = "is fixed" if joint.locked is None else "is locked", ""
        if name in self.loop_names and joint.kind != "fixed":
            why, hint = "closes a loop", " (an actuator, spring, damper, coupling or enforced limit would give it some)"
        known = quoted(list(self.joints)[:20])
        return f"joint '{name}' {why}, so it has no coordinates{hint}; those that move are {known}."


def check_model(model: Any) -> None:
    """Refuse what is not a model, such as a mechanism that was not built."""
    if not isinstance(model, Model):
        raise ModelError(f"expected a model, got {type(model).__name__}; call mechanism.build().")


def check_determined(model: Model, where: str) -> None:
    """Refuse a model whose inertias do not determine its motion; ``where`` is who asks, for the error."""
    if model.undetermined:
        raise ModelError(f"{where}: {model.undetermined}")


_CONSTRAINTS = ("equality", "velocity", "inequality")


def _has_bounds(joint: Joint) -> bool:
    """Whether a joint has a limit or an effort bound."""
    return joint.has_limits or bool(np.isfinite(joint.effort).any())


def _is_bounded(actuator: Actuator, mechanism: Mechanism) -> bool:
    """Whether it is a servo with a largest force, on a joint that moves."""
    if actuator.tendon:
        return actuator.is_servo and actuator.effort is not None
    joint = mechanism.joints[actuator.joint]
    return actuator.is_servo and joint.locked is None and bool(np.isfinite(servo_bound(actuator, joint)))


def _near(name: Any, known: Mapping[str, Any]) -> str:
    """A hint for a misspelt name."""
    close = difflib.get_close_matches(str(name), list(known), n=3)
    return f"; did you mean {quoted(close)}?" if close else f"; there are {quoted(list(known)[:20])}"


def _vector(value: Any, n: int, what: str, joints: Mapping[str, JointView]) -> FloatArray:
    """A finite vector of n numbers, a copy."""
    array = _numbers(value, f"{what} must be {n} numbers or a dict by joint name")
    if array.shape != (n,):
        names = quoted(list(joints)[:20])
        raise ModelError(f"{what} has shape {array.shape}, expected ({n},) for the joints {names}.")
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ModelError(f"{what}[{where}] is {array[where]}; every number must be finite.")
    return array


def _numbers(value: Any, wrong: str) -> FloatArray:
    """A float copy of numbers in any shape; ``wrong`` says what is expected instead of anything else."""
    # ragged lists end as an exception of NumPy; text and objects as an array of another kind
    try:
        raw = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{wrong}, got {value!r}.") from error
    if raw.dtype.kind not in "biuf" and raw.size:
        raise ModelError(f"{wrong}, got {value!r}.")
    return np.array(raw, dtype=float)
