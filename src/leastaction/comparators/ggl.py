"""The variational integrator of the GGL principle, to compare with: constraints on positions and on velocities.

Kinon, Betsch, Schneider, The GGL variational principle for constrained mechanical systems, Multibody System Dynamics
57, 2023. It takes coordinates with a constant mass matrix M and constraints g(q) = 0, here of second degree. With G the
derivative of g, velocities v, momenta p and multipliers l and c of the two kinds of constraints, the discrete action is

    sum_k  h L(q_k, v_k) + p_k+1 . (q_k+1 - q_k - h v_k) - h l_k . g(q_k) - h c_k+1 . G(qb) M^-1 p_k+1

with qb = q_k + h v_k, and its variations by p_k+1, q_k, v_k and the multipliers are the equations of a step. It is
written in NumPy with dense matrices, and shows accuracy, not speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.model.checks import FloatArray


class Quadratic(NamedTuple):
    """Constraints g_k(q) = q . A_k q / 2 + b_k . q + c_k, with their masses and weights.

    Attributes:
        A: symmetric matrices (m, n, n).
        b: (m, n).
        c: (m,).
        mass: diagonal of the mass matrix (n,).
        slope: gradient of the potential energy (n,), which is constant.
    """

    A: FloatArray
    b: FloatArray
    c: FloatArray
    mass: FloatArray
    slope: FloatArray

    def value(self, q: FloatArray) -> FloatArray:
        """The constraints (m,)."""
        out: FloatArray = (0.5 * (self.A @ q) + self.b) @ q + self.c
        return out

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Their derivatives (m, n)."""
        out: FloatArray = self.A @ q + self.b
        return out


class GGLRun(NamedTuple):
    """What a run gives.

    Attributes:
        q: coordinates (steps + 1, n).
        p: momenta (steps + 1, n).
        position: largest constraint of each step (steps + 1,).
        velocity: largest rate of a constraint (steps + 1,).
        iterations: of Newton's method, all together.
        failure: why it stopped early, or empty; the arrays then end there.
    """

    q: FloatArray
    p: FloatArray
    position: FloatArray
    velocity: FloatArray
    iterations: int
    failure: str


def run(
    system: Quadratic, q: FloatArray, v: FloatArray, dt: float, steps: int, tolerance: float = 1e-9, most: int = 40
) -> GGLRun:
    """Steps of the method from coordinates and velocities (n,).

    Args:
        system: masses, potential and constraints.
        q: coordinates (n,).
        v: velocities (n,).
        dt: step, seconds.
        steps: number of steps.
        tolerance: largest norm of the residual; the default is that of the authors' program.
        most: iterations of a step.
    """
    n, m = len(q), len(system.c)
    Q, P = [q], [system.mass * v]
    z = np.concatenate([q, P[0], v, np.zeros(2 * m)])
    total, failure = 0, ""
    for k in range(steps):
        found = None
        # where rods line up there are several solutions: the guess without multipliers goes first, then those of the
        # last step
        for factor in (0.0, 1.0, 2.0, 0.5):
            guess = z.copy()
            guess[3 * n :] *= factor
            found, count = _step(system, Q[k], P[k], guess, dt, tolerance, most)
            total += count
            if found is not None:
                break
        if found is None:
            failure = f"step {k} (t = {k * dt:g} s) did not converge in {most} iterations"
            break
        z = found
        Q.append(z[:n])
        P.append(z[n : 2 * n])
    position = np.array([np.abs(system.value(row)).max() for row in Q])
    rates = [np.abs(system.jacobian(row) @ (row_p / system.mass)).max() for row, row_p in zip(Q, P, strict=True)]
    return GGLRun(np.array(Q), np.array(P), position, np.array(rates), total, failure)


def _step(
    system: Quadratic, q0: FloatArray, p0: FloatArray, guess: FloatArray, h: float, tolerance: float, most: int
) -> tuple[FloatArray | None, int]:
    """Unknowns q1, p1, v0 and both multipliers of a step by Newton's method, or None; and its iterations."""
    n, m = len(q0), len(system.c)
    eye, weight = np.eye(n), 1 / system.mass
    G0 = system.jacobian(q0)
    z = guess.copy()
    for count in range(most + 1):
        q1, p1, v0 = z[:n], z[n : 2 * n], z[2 * n : 3 * n]
        force, stabiliser = z[3 * n : 3 * n + m], z[3 * n + m :]
        # constraints on velocities are taken where the velocity leads from the start of the step
        bar = system.jacobian(q0 + h * v0)
        T = np.tensordot(stabiliser, system.A, 1)
        bent, u = T * weight, weight * p1
        residual = np.concatenate(
            [
                q1 - q0 - h * v0 - h * weight * (stabiliser @ bar),
                p1 - p0 + h * system.slope + h * force @ G0 + h * T @ u,
                system.mass * v0 - p1 - h * T @ u,
                system.value(q1),
                bar @ u,
            ]
        )
        if np.linalg.norm(residual) < tolerance:
            return z, count
        # the exact derivative
        J = np.zeros((3 * n + 2 * m, 3 * n + 2 * m))
        Au = system.A @ u
        J[:n, :n], J[:n, 2 * n : 3 * n] = eye, -h * eye - h * h * weight[:, None] * T
        J[:n, 3 * n + m :] = -h * weight[:, None] * bar.T
        J[n : 2 * n, n : 2 * n], J[n : 2 * n, 3 * n : 3 * n + m] = eye + h * bent, h * G0.T
        J[n : 2 * n, 3 * n + m :] = h * Au.T
        J[2 * n : 3 * n, n : 2 * n], J[2 * n : 3 * n, 2 * n : 3 * n] = -eye - h * bent, np.diag(system.mass)
        J[2 * n : 3 * n, 3 * n + m :] = -h * Au.T
        J[3 * n : 3 * n + m, :n] = system.jacobian(q1)
        J[3 * n + m :, n : 2 * n], J[3 * n + m :, 2 * n : 3 * n] = bar * weight, h * Au
        z = z - np.linalg.solve(J, residual)
        if not np.isfinite(z).all():
            break
    return None, most


def windows(n: int, length: float, mass: float, gravity: float) -> tuple[Quadratic, FloatArray, FloatArray]:
    """The n-four-bar linkage ``la.models.n_four_bar`` in coordinates with a constant mass matrix.

    Every rod has its centre and two unit vectors in the plane x-z, six coordinates and three constraints: the two are
    perpendicular and of length one. The order is rod0, bar1, rod1, bar2, rod2, ...; the first unit vector of a rod
    points up at the start, that of a bar to the right.

    Returns:
        The system; coordinates of the upright start; velocities with the tops at 1 m/s to the right.
    """
    rods = 2 * n + 1
    size = 6 * rods
    A: list[FloatArray] = []
    b: list[FloatArray] = []
    c: list[float] = []
    for i in range(rods):
        # d1.d1 = 1, d2.d2 = 1, d1.d2 = 0
        for one, two in ((2, 2), (4, 4), (2, 4)):
            matrix = np.zeros((size, size))
            for axis in range(2):
                matrix[6 * i + one + axis, 6 * i + two + axis] = 1.0
                matrix[6 * i + two + axis, 6 * i + one + axis] = 1.0
            A.append(matrix)
            b.append(np.zeros(size))
            c.append(-0.5 if one == two else 0.0)

    def hinge(i: int, end_i: float, j: int | None, end_j: float, x: float) -> None:
        # ends of two rods, or of one and a point of the ground, are together
        for axis in range(2):
            row = np.zeros(size)
            row[6 * i + axis], row[6 * i + 2 + axis] = 1.0, end_i * length / 2
            if j is not None:
                row[6 * j + axis], row[6 * j + 2 + axis] = -1.0, -end_j * length / 2
            A.append(np.zeros((size, size)))
            b.append(row)
            c.append(-x if axis == 0 else 0.0)

    hinge(0, -1, None, 0, 0.0)
    for i in range(1, n + 1):
        before, bar, rod = 2 * i - 2, 2 * i - 1, 2 * i
        hinge(before, 1, bar, -1, 0.0)
        hinge(bar, 1, rod, 1, 0.0)
        hinge(rod, -1, None, 0, i * length)
    # a thin rod: half its inertia with each unit vector
    half = mass * length**2 / 24
    masses = np.tile([mass, mass, half, half, half, half], rods)
    slope = np.tile([0.0, mass * gravity, 0.0, 0.0, 0.0, 0.0], rods)
    q, v = np.zeros(size), np.zeros(size)
    for i in range(rods):
        up = i % 2 == 0
        x = (i // 2) * length + (0.0 if up else length / 2)
        q[6 * i : 6 * i + 6] = [x, length / 2, 0, 1, 1, 0] if up else [x, length, 1, 0, 0, -1]
        v[6 * i : 6 * i + 6] = [0.5, 0, 1 / length, 0, 0, -1 / length] if up else [1, 0, 0, 0, 0, 0]
    return Quadratic(np.array(A), np.array(b), np.array(c), masses, slope), q, v


def energy(system: Quadratic, result: GGLRun) -> tuple[FloatArray, FloatArray]:
    """Kinetic and potential energy (steps + 1,) of a run, joules."""
    return 0.5 * (result.p**2 / system.mass).sum(axis=1), result.q @ system.slope
