"""Galerkin variational integrators of any even order (Fan, Schultz, Murphey 2018)."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.galerkin.derivative import Nodes, Step, step_derivative
from leastaction.galerkin.flight_derivative import RelativeStep, flight_of
from leastaction.galerkin.loops_derivative import linked_derivative
from leastaction.galerkin.parameters_derivative import parameter_columns
from leastaction.jit.status import Status
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, counted_chunk, new_counts, saved_rows
from leastaction.methods.closing import check_closed, row_count
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import TINY, Field, numbers
from leastaction.methods.parameters import PARAMETERS, collect, columns
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.solve.solvers import RIQN, Broyden, DenseNewton, Newton, solver_from
from leastaction.tree.layout import POINT_SPRING

_GUESSES = {"hold": 0, "euler": 1, "quadratic": 2, "dynamics": 3, "cubic": 4}
_KINDS = {"newton": 0, "riqn": 1, "broyden": 2, "dense": 3}


@final
class Galerkin(Method):
    """Variational integrator of order 2s on curves through s + 1 Lobatto nodes: symplectic, and it keeps momenta.

    The discrete Euler-Lagrange equations of the whole mechanism are solved by Newton's method with a direction in O(n)
    that is exact for gravity, springs, dampers, control and forces on single bodies. Joints are sequences of screws and
    balls; the chart of a ball is centred at the start of the step, so nothing is ever singular. Loop joints and
    constraints of the user hold at every node; redundant ones do no harm.

    Args:
        order: 2, 4, 6, ...; s is half of it.
        solver: ``Newton()``, or to compare with ``DenseNewton()`` (the same direction by a dense matrix, O(n^3)),
            ``RIQN()``, ``Broyden()``; sets tolerance and most iterations.
        guess: first iterate: "hold" (no motion), "euler" (constant velocity), "dynamics" (forward dynamics),
            "quadratic" or "cubic" (continue the last steps; of order 4 and up both continue the last curve).
        quadrature: of the action: "lobatto", at the nodes of the curve, or "gauss", at the s points of Gauss between
            them (order 2 is then the implicit midpoint rule); "gauss" takes no loops or constraints.
    """

    name: ClassVar[str] = "galerkin"
    symplectic: ClassVar[bool] = True
    conserves: ClassVar[frozenset[str]] = frozenset({"linear momentum", "angular momentum", "constraints"})
    supports: ClassVar[frozenset[str]] = frozenset(
        {"loops", "couplings", "equality constraints", "velocity constraints"}
    )
    has_derivative: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = PARAMETERS

    def __init__(
        self, order: int = 2, *, solver: Any = None, guess: str = "quadratic", quadrature: str = "lobatto"
    ) -> None:
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 2 or order % 2:
            raise ModelError(f"Galerkin: order must be an even number from 2 on, got {order!r}.")
        if order > 16:
            raise ModelError(f"Galerkin: orders above 16 gain nothing in double precision, got {order}.")
        if guess not in _GUESSES:
            raise ModelError(f"Galerkin: guess must be one of {', '.join(_GUESSES)}, got {guess!r}.")
        if quadrature not in ("lobatto", "gauss"):
            raise ModelError(f"Galerkin: quadrature must be lobatto or gauss, got {quadrature!r}.")
        self._order = int(order)
        self.guess = guess
        self.quadrature = quadrature
        self.solver = solver_from(solver, (Newton, RIQN, Broyden, DenseNewton), "Galerkin")
        if quadrature == "gauss" and isinstance(self.solver, DenseNewton):
            raise UnsupportedError("Galerkin: DenseNewton() has only the Lobatto quadrature; use Newton().")

    @property
    def order(self) -> int:
        """2 s."""
        return self._order

    @property
    def stages(self) -> int:
        """s."""
        return self._order // 2

    @property
    def control_points(self) -> int:
        """A control may have one value for each point of the quadrature: s + 1, or s of Gauss."""
        return self.stages if self.quadrature == "gauss" else self.stages + 1

    @property
    def label(self) -> str:
        """Such as ``galerkin:4``, or ``galerkin:4:gauss``."""
        return f"galerkin:{self._order}{':gauss' if self.quadrature == 'gauss' else ''}"

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {
            "order": self._order, "solver": self.solver.options(), "guess": self.guess, "quadrature": self.quadrature,
        }  # fmt: skip

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and momenta of the tree's rows (discrete Legendre transform), and no past."""
        from leastaction.dynamics import legendre

        self._check(model)
        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        legendre.enter_momenta(model.system, state.q.copy(), state.v.copy(), x, u, p)
        check_closed(model, state.t, x, u)
        return {
            "x": x, "p": p, "past": np.zeros((model.nv, 3 * (self.stages + 1))), "lengths": np.ones(3),
            "known": np.zeros(1, dtype=np.int64), "multipliers": np.zeros((self.stages, row_count(model))),
        }  # fmt: skip

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates, momenta, curves and lengths of the last three steps, and multipliers."""
        nv, s = model.nv, self.stages
        return {
            "x": Field((model.nq,)), "p": Field((nv,)), "past": Field((nv, 3 * (s + 1))),
            "lengths": Field((3,), TINY), "known": numbers(3), "multipliers": Field((s, row_count(model))),
        }  # fmt: skip

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q, and v = M^-1 p."""
        from leastaction.dynamics import legendre

        q, v = np.zeros(model.nq), np.zeros(model.nv)
        if not legendre.leave_momenta(model.system, 0.0, memory["x"], memory["p"], q, v):
            raise ConvergenceError(f"{self.label}: {failure_of(Status.NO_RATES)}")
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call."""
        from leastaction.galerkin import step as galerkin_step

        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
        c, w, b, ahead = lobatto(self.stages)
        address = control.callback.address if control.callback else 0
        passive = model.system.passive
        active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
        controls = control.array[k : k + steps]
        done, status = galerkin_step.galerkin_rollout(
            model.system, tuple(w.tolist()), with_body_forces(model), self._direction(),
            1 if self.guess == "dynamics" else None, self._points(), self._couplings(model), flight_of(model),
            (b, c, ahead, balance(self.stages)),
            across(model.system.tree.gravity), clock.uniform, clock.table(k, steps), k, steps,
            memory["x"], memory["p"], memory["past"], memory["lengths"], memory["known"],
            memory["multipliers"], every, controls if controls.ndim == 3 else controls[:, None], address, active,
            _GUESSES[self.guess], _KINDS[self.solver.name], self.solver.tolerance, self.solver.iterations, q, v, count,
        )  # fmt: skip
        rows = saved_rows(k, done, every)
        failure = failure_of(status, iterations=self.solver.iterations)
        return counted_chunk(done, failure, q[:rows], v[:rows], count)

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Exact derivative of the step, O(n^2).

        O(n^3) with loops, constraints, forces on bodies or in free joints, and by parameters of the mechanism.
        """
        if self.quadrature == "gauss":
            raise UnsupportedError(f"{self.label} has no derivative of its step; use the Lobatto quadrature.")
        if "velocity constraints" in model.features:
            raise UnsupportedError(f"{self.label} has no derivative of its step with velocity constraints.")
        tau = np.zeros(model.nv) if control is None else model.check_v(control, "control")
        memory, start, passive = self.start(model, state), state, model.system.passive
        chunk = self.rollout(model, memory, Clock(state.t, dt), 0, 1, 1, Control(tau[None]))
        model.raise_pending()
        if chunk.failure:
            raise ConvergenceError(f"{self.label}: {chunk.failure}", state=state)
        end = finish = model.state(chunk.q[0], chunk.v[0], state.t + dt)
        # floating trees are seen from a frame that flies along
        flight, relative = flight_of(model), None
        if flight is not None:
            relative = RelativeStep(model, flight, state, dt)
            start, finish = relative.start, relative.seen(end)
        first, xi = self.start(model, start), memory["past"][:, : self.stages + 1].copy()
        c, w, b, _ = lobatto(self.stages)
        active = bool(len(passive.screw) or len(passive.ball) or len(passive.free) or tau.any())
        step = Step(state.t, dt, first["x"], first["p"], xi, tau, active)
        nodes = Nodes(c, w, b, across(model.system.tree.gravity), balance(self.stages))
        if not (row_count(model) or parameters or (relative is not None and relative.pushed(tau))):
            A, B = step_derivative(model, nodes, step)
            if relative is not None:
                A, B = relative.without_push(A, B, finish, relative.pushes(xi, nodes, tau).tau)
            return StepDerivative(A, B, end)
        lam, parts = memory["multipliers"], columns(model, parameters, self.label)
        world = None if relative is None else relative.world
        more = parameter_columns(model, nodes, step, lam, start, finish, parts, world) if parts else None
        try:
            if relative is None:
                A, B, C = linked_derivative(model, nodes, step, lam, start, finish, more)
            else:
                by = relative.pushes(xi, nodes, tau, more.F if more else None)
                found = linked_derivative(model, nodes, step, lam, start, finish, more, (by.y, by.e))
                found[1][2 * model.nv :] += by.tau
                found[2][2 * model.nv :] += by.parts
                A, B, C = relative.derivative(found, finish, by.tau @ tau, parts)
        except np.linalg.LinAlgError as error:
            message = f"{self.label}: the derivative of the step is singular here; take a smaller dt."
            raise ConvergenceError(message, state=state) from error
        return StepDerivative(A, B, end, collect(model, parts, C, parameters))

    def _direction(self) -> Any:
        """What chooses the direction by its type; see ``galerkin.quasi.make_quasi``."""
        if isinstance(self.solver, DenseNewton):
            from leastaction.galerkin.dense import Densely

            return Densely(1)
        return None if isinstance(self.solver, Newton) else mass_weights(self.stages, self.quadrature)

    def _points(self) -> Any:
        """The quadrature where it is not that of the nodes."""
        if self.quadrature == "lobatto":
            return None
        from leastaction.galerkin.gauss import Points

        c, w, values, b = gauss(self.stages)
        return Points(tuple(w.tolist()), c, values, b)

    def _couplings(self, model: Model) -> Any:
        """Forces between moving bodies for ``galerkin.couplings``, or None where the direction needs nothing of it."""
        exact = isinstance(self.solver, Newton | DenseNewton)
        return couplings(model, self.stages, self.quadrature) if exact else None

    def _check(self, model: Model) -> None:
        """UnsupportedError for pairs of quadrature, solver and mechanism that do not exist."""
        if self.quadrature == "gauss" and row_count(model):
            raise UnsupportedError(f"{self.label}: the Gauss quadrature takes no loops or constraints; use Lobatto's.")
        if isinstance(self.solver, Broyden) and row_count(model):
            raise UnsupportedError(f"{self.label}: Broyden() takes no loops or constraints; use Newton() or RIQN().")
        if isinstance(self.solver, RIQN | Broyden) and "velocity constraints" in model.features:
            raise UnsupportedError(f"{self.label}: {type(self.solver).__name__}() takes no velocity constraints.")


def with_body_forces(model: Model) -> tuple[int, ...]:
    """What makes forces on bodies part of the Newton direction; nothing where there are none."""
    return (0,) if model.mechanism.forces else ()


def couplings(model: Model, s: int, quadrature: str = "lobatto") -> Any:
    """(number, 5): force, point, first row, rows and bodies of forces that tie moving bodies together, or None.

    Node 0 does not move, so a spring without damping ties nothing there.
    """
    forces, out, first = model.system.forces, [], 0
    if forces is None:
        return None
    for k, (kind, b, count) in enumerate(forces.kind):
        spring = kind == POINT_SPRING
        if np.count_nonzero(forces.bodies[b : b + count]) < 2 or not (spring or forces.address[k, 1]):
            continue
        still = quadrature == "lobatto" and spring and forces.data[k, 7] == 0.0
        for a in range(1 if still else 0, s):
            out.append((k, a, first, 3 if spring else 6 * count, count))
            first += out[-1][3]
    return np.array(out, dtype=np.int64) if out else None


def across(gravity: FloatArray) -> FloatArray:
    """Two unit vectors (2, 3) perpendicular to gravity (to z where there is none)."""
    from leastaction.model.joints import plane_basis

    size = float(np.linalg.norm(gravity))
    return np.array(plane_basis(gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])))


@cache
def lobatto(s: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Lobatto nodes c and weights w (s+1,) on [0, 1], derivatives b[a, e] = l_e'(c_a), and l_e(1 + c_a).

    The inner nodes are the zeros of the derivative of the Legendre polynomial of degree s.
    """
    from numpy.polynomial import legendre

    coefficients = np.zeros(s + 1)
    coefficients[s] = 1.0
    derivative = legendre.legder(coefficients)
    inner = np.sort(np.real(legendre.legroots(derivative))) if s > 1 else np.zeros(0)
    # polish the zeros
    for _ in range(3):
        if s > 1:
            inner = inner - legendre.legval(inner, derivative) / legendre.legval(inner, legendre.legder(derivative))
    x = np.concatenate([[-1.0], inner, [1.0]])
    w = 1.0 / (s * (s + 1) * legendre.legval(x, coefficients) ** 2)
    w[0] = w[s] = 1.0 / (s * (s + 1))
    c = 0.5 * (1.0 + x)
    # derivative matrix by barycentric weights
    gaps = c[:, None] - c[None, :] + np.eye(s + 1)
    bary = 1.0 / np.prod(gaps, axis=1)
    b = bary[None, :] / bary[:, None] / gaps
    b[np.diag_indices(s + 1)] = 0.0
    b[np.diag_indices(s + 1)] = -b.sum(axis=1)
    ahead = np.array(
        [[np.prod([(1 + ca - c[j]) / (c[e] - c[j]) for j in range(s + 1) if j != e]) for e in range(s + 1)] for ca in c]
    )
    return c, w, b, ahead


@cache
def gauss(s: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Gauss points c and weights w (s,) on [0, 1], and values and derivatives (s, s+1) of the Lobatto polynomials."""
    x, w = np.polynomial.legendre.leggauss(s)
    c, nodes = 0.5 * (1.0 + x), lobatto(s)[0]
    # l_e(c) by its factors; derivatives are those at the nodes, interpolated
    gaps = nodes[:, None] - nodes[None, :] + np.eye(s + 1)
    away = c[:, None, None] - nodes[None, None, :] + np.zeros((1, s + 1, 1))
    away[:, np.arange(s + 1), np.arange(s + 1)] = 1.0
    values = np.prod(away / gaps, axis=2)
    return c, 0.5 * w, values, np.ascontiguousarray(values @ lobatto(s)[2])


@cache
def mass_weights(s: int, quadrature: str = "lobatto") -> FloatArray:
    """Inverse (s, s) of At_ag = sum_c w_c b_ca b_cg, rows a = 0..s-1, columns g = 1..s: J is about At (x) M / h."""
    w, b = lobatto(s)[1:3] if quadrature == "lobatto" else gauss(s)[1::2]
    return np.ascontiguousarray(np.linalg.inv((b[:, :s] * w[:, None]).T @ b[:, 1:]))


@cache
def balance(s: int) -> FloatArray:
    """(2, s, s): minus At for positions, minus At B^-1 for velocities with B as ``loops.nodes`` imposes them."""
    _, w, b, _ = lobatto(s)
    At = np.linalg.inv(mass_weights(s))
    share = np.sqrt(w[0] / w[1:]) * (-1.0) ** np.arange(1, s + 1)
    return np.array([-At, -At @ np.linalg.inv(b[1:, 1:] - np.outer(share, b[0, 1:]))])
