"""Friction of one contact of a step of ``Maximal``: the exact cone, or a pyramid with any even number of sides.

The exact cone has (mu gamma, beta) o (psi, d) = (e0, e1, e2); see ``maximal.contact`` for the symbols. The pyramid
of Bruedigam et al. 2023, section II-D, holds the friction force in the polygon with corners mu gamma (cos a, sin a),
a = 2 pi j / N. That is N sides n_j, with one slack and one multiplier each:

    sigma_j = mu cos(pi/N) gamma - n_j . beta > 0        n_j = (cos, sin)(2 pi (j + 1/2) / N)
    d + sum_j lambda_j n_j = 0                           friction dissipates the most that it can
    lambda_j sigma_j = e0                                metres times newtons

With w = lambda / sigma and a = mu cos(pi/N), Newton's step for one contact is, exactly,

    M dbeta = -d - e0 sum_j n_j / sigma_j + a m dgamma - dd        M = sum_j w_j n_j n_j^T,  m = sum_j w_j n_j

so it is eliminated to the same three numbers as the cone.

    cone  None, or (N, 3): n_j and cos(pi/N)           V columns 2, 3: beta; 4: psi; 5..: lambda_j
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import PART_OPTIONS, either, kernel

LOOSE = 1.001
"""How far a step may leave the cones of friction and slip, times their radius: near the border of a round cone a force
cannot turn without leaving it. Both are put back before the next iteration."""

OFF = 0.1
"""Smallest distance from the border of a cone, as a part of that on the curve of the barrier."""


# --- elimination ----------------------------------------------------------------------------------------------------
def _cone_forces(cone, T, k):
    """The same for the exact cone."""
    aim, e0, e1, e2 = T.aim[k, 0], T.aim[k, 1], T.aim[k, 2], T.aim[k, 3]
    mu, s, gamma, b1, b2, psi = T.mu[k], T.V[k, 0], T.V[k, 1], T.V[k, 2], T.V[k, 3], T.V[k, 4]
    phi, d1, d2 = T.g[k, 0], T.g[k, 1], T.g[k, 2]
    k00, c0 = gamma / s, (aim - gamma * phi) / s
    if mu <= 0.0:
        return (k00, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (c0, 0.0, 0.0)
    x = mu * gamma
    # M dbeta = r + g dgamma + N dd,  det M > 0 inside the cones
    m11, m12, m21, m22 = psi - b1 * d1 / x, -b1 * d2 / x, -b2 * d1 / x, psi - b2 * d2 / x
    i = 1.0 / (m11 * m22 - m12 * m21)
    q = (e0 - x * psi - b1 * d1 - b2 * d2) / x
    g1, g2 = mu * (b1 * psi / x - d1), mu * (b2 * psi / x - d2)
    r1, r2 = e1 - x * d1 - psi * b1 - b1 * q + g1 * c0, e2 - x * d2 - psi * b2 - b2 * q + g2 * c0
    n11, n12, n22 = b1 * b1 / x - x, b1 * b2 / x, b2 * b2 / x - x
    c1, c2 = i * (m22 * r1 - m12 * r2), i * (m11 * r2 - m21 * r1)
    h1, h2 = i * (m22 * g1 - m12 * g2), i * (m11 * g2 - m21 * g1)
    return (
        (k00, 0.0, 0.0),
        (h1 * k00, -i * (m22 * n11 - m12 * n12), -i * (m22 * n12 - m12 * n22)),
        (h2 * k00, -i * (m11 * n12 - m21 * n11), -i * (m11 * n22 - m21 * n12)),
        (c0, c1, c2),
    )


@either(_cone_forces, PART_OPTIONS)
def forces_of(cone, T, k):
    """Rows of Kc and c0 of contact k for its aims: (dgamma, dbeta) = c0 - Kc (dphi, dd)."""
    mu, s, gamma, b1, b2 = T.mu[k], T.V[k, 0], T.V[k, 1], T.V[k, 2], T.V[k, 3]
    k00, c0 = gamma / s, (T.aim[k, 0] - gamma * T.g[k, 0]) / s
    if mu <= 0.0:
        return (k00, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (c0, 0.0, 0.0)
    # axes along the stiffest side and across it: there the soft complement of that side survives rounding
    best, n1, n2 = -1.0, 1.0, 0.0
    for j in range(cone.shape[0]):
        w = T.V[k, 5 + j] / side_slack(cone, j, mu, gamma, b1, b2)
        if w > best:
            best, n1, n2 = w, cone[j, 0], cone[j, 1]
    m11, m12, m22, m1, m2, v1, v2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(cone.shape[0]):
        sigma = side_slack(cone, j, mu, gamma, b1, b2)
        along, across, w = n1 * cone[j, 0] + n2 * cone[j, 1], n1 * cone[j, 1] - n2 * cone[j, 0], T.V[k, 5 + j] / sigma
        m11, m12, m22 = m11 + w * along * along, m12 + w * along * across, m22 + w * across * across
        m1, m2, v1, v2 = m1 + w * along, m2 + w * across, v1 + along / sigma, v2 + across / sigma
    i, a, d1, d2 = 1.0 / (m11 * m22 - m12 * m12), mu * cone[0, 2], T.g[k, 1], T.g[k, 2]
    r1 = a * m1 * c0 - T.aim[k, 1] * v1 - (n1 * d1 + n2 * d2)
    r2 = a * m2 * c0 - T.aim[k, 1] * v2 - (n1 * d2 - n2 * d1)
    c1, c2 = i * (m22 * r1 - m12 * r2), i * (m11 * r2 - m12 * r1)
    h1, h2 = i * a * (m22 * m1 - m12 * m2) * k00, i * a * (m11 * m2 - m12 * m1) * k00
    # back to the tangents
    i11, i12, i22 = i * m22, -i * m12, i * m11
    x11, x12, x21, x22 = n1 * i11 - n2 * i12, n1 * i12 - n2 * i22, n2 * i11 + n1 * i12, n2 * i12 + n1 * i22
    return (
        (k00, 0.0, 0.0),
        (n1 * h1 - n2 * h2, x11 * n1 - x12 * n2, x11 * n2 + x12 * n1),
        (n2 * h1 + n1 * h2, x21 * n1 - x22 * n2, x21 * n2 + x22 * n1),
        (c0, n1 * c1 - n2 * c2, n2 * c1 + n1 * c2),
    )


@kernel
def side_slack(cone, j, mu, gamma, b1, b2):
    """sigma of side j."""
    return mu * cone[j, 2] * gamma - cone[j, 0] * b1 - cone[j, 1] * b2


# --- directions -----------------------------------------------------------------------------------------------------
@kernel
def cone_step(x0, x1, x2, d0, d1, d2):
    """Largest a with x + a d in the second-order cone, for x inside; infinite if there is none."""
    A, B, C = d0 * d0 - d1 * d1 - d2 * d2, x0 * d0 - x1 * d1 - x2 * d2, max(x0 * x0 - x1 * x1 - x2 * x2, 1.0e-300)
    a, q = math.inf, B * B - A * C
    # smallest positive root of A a^2 + 2 B a + C
    if q >= 0.0:
        r = math.sqrt(q)
        if B < 0.0:
            a = C / (r - B)
        elif A < 0.0:
            a = -(B + r) / A
    if d0 < 0.0:
        a = min(a, -x0 / d0)
    return a


def _cone_direction(cone, T, k, dg, db1, db2, e1, e2):
    """The same for the exact cone: dpsi."""
    mu, gamma, b1, b2, psi = T.mu[k], T.V[k, 1], T.V[k, 2], T.V[k, 3], T.V[k, 4]
    d1, d2, x = T.g[k, 1], T.g[k, 2], mu * gamma
    left = T.aim[k, 1] - x * psi - b1 * d1 - b2 * d2
    dpsi = (left - psi * mu * dg - d1 * db1 - d2 * db2 - b1 * e1 - b2 * e2) / x
    T.dV[k, 4] = dpsi
    loose = T.tune[1]
    a = cone_step(loose * x, b1, b2, loose * mu * dg, db1, db2)
    return min(a, cone_step(loose * psi, d1, d2, loose * dpsi, e1, e2))


@either(_cone_direction, PART_OPTIONS)
def friction_direction(cone, T, k, dg, db1, db2, e1, e2):
    """Directions of what else a contact has, from those of its forces and of its slip; the largest step inside."""
    mu, gamma, b1, b2, a = T.mu[k], T.V[k, 1], T.V[k, 2], T.V[k, 3], math.inf
    for j in range(cone.shape[0]):
        sigma, change = side_slack(cone, j, mu, gamma, b1, b2), side_slack(cone, j, mu, dg, db1, db2)
        lam = T.V[k, 5 + j]
        dlam = (T.aim[k, 1] - lam * change) / sigma - lam
        T.dV[k, 5 + j] = dlam
        if change < 0.0:
            a = min(a, -sigma / change)
        if dlam < 0.0:
            a = min(a, -lam / dlam)
    return a


def _keep_in_cone(cone, T, k):
    """The exact cone: psi above the slip, beta below its bound.

    On the curve of a small barrier e0, psi = |d| + e0 / (2 mu gamma) where it slips, and |beta| = mu gamma |d| / psi.
    """
    d, mu = math.sqrt(T.g[k, 1] * T.g[k, 1] + T.g[k, 2] * T.g[k, 2]), T.mu[k]
    T.V[k, 4] = max(T.V[k, 4], d * (1.0 + 1.0e-15) + OFF * T.aim[k, 1] / (mu * T.V[k, 1]))
    size = math.sqrt(T.V[k, 2] * T.V[k, 2] + T.V[k, 3] * T.V[k, 3])
    most = mu * T.V[k, 1] * (1.0 - OFF + OFF * d / T.V[k, 4])
    if size > most:
        T.V[k, 2], T.V[k, 3] = T.V[k, 2] * most / size, T.V[k, 3] * most / size


@either(_keep_in_cone, PART_OPTIONS)
def keep_in_cone(cone, T, k):
    """Friction back into its cones after a step. A pyramid has straight sides and an equation of the slip, no need."""


# --- how far off ----------------------------------------------------------------------------------------------------
def _cone_products(cone, T, k):
    """The same for the exact cone."""
    x, psi, b1, b2, d1, d2 = T.mu[k] * T.V[k, 1], T.V[k, 4], T.V[k, 2], T.V[k, 3], T.g[k, 1], T.g[k, 2]
    b = x * psi + b1 * d1 + b2 * d2
    return b, 1, max(b, abs(x * d1 + psi * b1), abs(x * d2 + psi * b2)), 0.0


@either(_cone_products, PART_OPTIONS)
def friction_products(cone, T, k):
    """Sum, number and largest of the products of friction, and what is missing in the equation of the slip, metres."""
    total, most, r1, r2 = 0.0, 0.0, T.g[k, 1], T.g[k, 2]
    for j in range(cone.shape[0]):
        lam = T.V[k, 5 + j]
        p = lam * side_slack(cone, j, T.mu[k], T.V[k, 1], T.V[k, 2], T.V[k, 3])
        total, most = total + p, max(most, p)
        r1, r2 = r1 + lam * cone[j, 0], r2 + lam * cone[j, 1]
    return total, cone.shape[0], most, max(abs(r1), abs(r2))


# --- first values ---------------------------------------------------------------------------------------------------
def _start_cone(cone, T, k, x, target, b1, b2):
    """The exact cone: beta at most 0.95 of its bound, psi for the target."""
    d1, d2, size, most = T.g[k, 1], T.g[k, 2], math.sqrt(b1 * b1 + b2 * b2), 0.95 * x
    if size > most:
        b1, b2 = b1 * most / size, b2 * most / size
    T.V[k, 2], T.V[k, 3] = b1, b2
    T.V[k, 4] = max(target * x / (x * x - b1 * b1 - b2 * b2), math.sqrt(d1 * d1 + d2 * d2) + 0.5 * target / x)


@either(_start_cone, PART_OPTIONS)
def start_friction(cone, T, k, x, target, b1, b2):
    """First friction of contact k from a force (b1, b2) to start with; x = mu gamma. The slip's equation holds."""
    N, largest = cone.shape[0], 0.0
    for j in range(N):
        largest = max(largest, cone[j, 0] * b1 + cone[j, 1] * b2)
    most = 0.95 * x * cone[0, 2]
    if largest > most:
        b1, b2 = b1 * most / largest, b2 * most / largest
    T.V[k, 2], T.V[k, 3], T.V[k, 4] = b1, b2, 0.0
    # on the curve of the target, and what the slip is off spread over all sides
    r1, r2 = T.g[k, 1], T.g[k, 2]
    for j in range(N):
        lam = target / side_slack(cone, j, 1.0, x, b1, b2)
        T.V[k, 5 + j] = lam
        r1, r2 = r1 + lam * cone[j, 0], r2 + lam * cone[j, 1]
    size = math.sqrt(r1 * r1 + r2 * r2)
    for j in range(N):
        T.V[k, 5 + j] += 2.0 / N * (size - cone[j, 0] * r1 - cone[j, 1] * r2)
