"""Drag of a fluid at rest or in a wind on a body with the extent of a box.

In the frame of the box, at its centre, with v the velocity against the fluid and w the angular velocity,

    force_i  = -(b + a_i |v_i|) v_i        torque_i = -(d + c_i |w_i|) w_i

    numbers  R (9), p (3): frame of the box in the link; a (3), c (3), b, d; wind (3), world axes
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel
from leastaction.jit.functions import force_function
from leastaction.spatial._source.mrp import spread
from leastaction.spatial._source.vector import add3, cross, matmul, matvec, sub3, tmatvec, transpose

OWN = 18


@kernel
def three(a, k):
    """Three numbers from place k on."""
    return (a[k], a[k + 1], a[k + 2])


@kernel
def nine_of(a, k):
    """Nine numbers from place k on."""
    return (a[k], a[k + 1], a[k + 2], a[k + 3], a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8])


@kernel
def against(given):
    """Velocity against the fluid and angular velocity in the frame of the box, and the wind in link axes."""
    box, p = nine_of(given, OWN), three(given, OWN + 9)
    wind = tmatvec(nine_of(given, 0), three(given, OWN + 20))
    w = three(given, 12)
    v = sub3(add3(three(given, 15), cross(w, p)), wind)
    return tmatvec(box, v), tmatvec(box, w), wind


@kernel
def drag(x, quadratic, linear):
    """-(linear + quadratic_i |x_i|) x_i."""
    return (
        -(linear + quadratic[0] * abs(x[0])) * x[0],
        -(linear + quadratic[1] * abs(x[1])) * x[1],
        -(linear + quadratic[2] * abs(x[2])) * x[2],
    )


@kernel
def slope(box, x, quadratic, linear):
    """Derivative of ``drag`` by x, in link axes: R diag R^T."""
    d = (
        -linear - 2.0 * quadratic[0] * abs(x[0]), 0.0, 0.0,
        0.0, -linear - 2.0 * quadratic[1] * abs(x[1]), 0.0,
        0.0, 0.0, -linear - 2.0 * quadratic[2] * abs(x[2]),
    )  # fmt: skip
    return matmul(box, matmul(d, transpose(box)))


@force_function
def fluid_wrench(t, given, out):
    """Force at the centre of the box and torque, moved to the link origin."""
    v, w, _ = against(given)
    box, p = nine_of(given, OWN), three(given, OWN + 9)
    f = matvec(box, drag(v, three(given, OWN + 12), given[OWN + 18]))
    torque = add3(matvec(box, drag(w, three(given, OWN + 15), given[OWN + 19])), cross(p, f))
    for e in range(3):
        out[e], out[3 + e] = torque[e], f[e]


@force_function
def fluid_derivatives(t, given, out):
    """K, by the turning of the link in the wind, and D."""
    v, w, wind = against(given)
    box, p = nine_of(given, OWN), three(given, OWN + 9)
    A = slope(box, v, three(given, OWN + 12), given[OWN + 18])
    B = slope(box, w, three(given, OWN + 15), given[OWN + 19])
    # dv = dv_link - p x dw - wind x theta, with f at p: torque p x f
    arm, turn = spread(0.0, p), matmul(A, spread(0.0, wind))
    by_w = matmul(A, arm)
    for e in range(72):
        out[e] = 0.0
    for half in range(2):
        lever = matmul(arm, turn) if half == 0 else turn
        by_v = matmul(arm, A) if half == 0 else A
        by_turn = matmul(arm, by_w) if half == 0 else by_w
        for r in range(3):
            for c in range(3):
                e, at = 3 * r + c, 6 * (3 * half + r) + c
                out[at] = -lever[e]
                out[36 + at] = -by_turn[e] + (B[e] if half == 0 else 0.0)
                out[36 + at + 3] = by_v[e]
