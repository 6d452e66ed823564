"""Rigid motions: poses, the exponential map of SE(3), the adjoint action on twists and wrenches, Jacobians.

A pose T = (R, p) is twelve numbers, R row by row and then p: x_world = R x + p. Twists are (angular; linear),
wrenches (torque; force). ``dexp`` is the *left* Jacobian (dT T^-1, components in the frame T maps into):

    Tdot T^-1 = hat(dexp(V) Vdot)        T^-1 Tdot = hat(dexp_right(V) Vdot),   T = exp(V)
    dexp(V) = sum_k ad_V^k / (k+1)!      dexp_right(V) = dexp(-V)

Lee et al. 2016 call ``dexp_inv`` dlog. A twist is a rotation vector with one dual component, w + eps v, and a map of
SE(3) is the map of SO(3) at it (the principle of transference): the lower left block of dexp(V) is the derivative
of the SO(3) Jacobian at w along v. So with the coefficients of angle.py and x a 3-vector,

    J x = x + b w x x + c w x (w x x)
    Q x = b v x x + c (w x (v x x) + v x (w x x)) + 2 (w.v) (b1 w x x + c1 w x (w x x))
    dexp(V) (x; y) = (J x; Q x + J y)

and dexp_inv is the same with b = -1/2, b1 = 0, c = e, c1 = e1. The transpose of dexp(V) is dexp(-V) with the two
halves exchanged.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.angle import dexp_coefficients, dexp_coefficients_rate, dexp_inv_coefficients
from leastaction.spatial._source.scalar import source
from leastaction.spatial._source.so3 import dexp_inv_times, dexp_times, jacobian_times
from leastaction.spatial._source.so3 import exp as so3_exp
from leastaction.spatial._source.so3 import log as so3_log
from leastaction.spatial._source.vector import (
    M9,
    V3,
    V6,
    add3,
    ang,
    cross,
    dot3,
    join,
    lin,
    matmul,
    matvec,
    sub3,
    tmatvec,
    transpose,
)

P12 = tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any]


@source
def rotation(T: P12) -> M9:
    """Rotation of a pose."""
    return (T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8])


@source
def position(T: P12) -> V3:
    """Position of a pose."""
    return (T[9], T[10], T[11])


@source
def pose(R: M9, p: V3) -> P12:
    """Pose from rotation and position."""
    return (R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8], p[0], p[1], p[2])


@source
def compose(A: P12, B: P12) -> P12:
    """``A B``: first B, then A."""
    R = rotation(A)
    return pose(matmul(R, rotation(B)), add3(matvec(R, position(B)), position(A)))


@source
def inverse(T: P12) -> P12:
    """Inverse pose."""
    R = rotation(T)
    p = tmatvec(R, position(T))
    return pose(transpose(R), (-p[0], -p[1], -p[2]))


@source
def act(T: P12, x: V3) -> V3:
    """``R x + p``."""
    return add3(matvec(rotation(T), x), position(T))


@source
def Ad(T: P12, s: V6) -> V6:
    """Twist s carried by T: ``(R w; p x R w + R v)``."""
    R = rotation(T)
    w = matvec(R, ang(s))
    return join(w, add3(cross(position(T), w), matvec(R, lin(s))))


@source
def Ad_inv(T: P12, s: V6) -> V6:
    """``Ad(T)^-1 s = Ad(T^-1) s``."""
    R = rotation(T)
    w = ang(s)
    return join(tmatvec(R, w), tmatvec(R, sub3(lin(s), cross(position(T), w))))


@source
def Ad_dual(T: P12, f: V6) -> V6:
    """``Ad(T)^T f``: a wrench pulled back, so that f . Ad(T) s = (Ad(T)^T f) . s."""
    R = rotation(T)
    n = lin(f)
    return join(tmatvec(R, sub3(ang(f), cross(position(T), n))), tmatvec(R, n))


@source
def Ad_inv_dual(T: P12, f: V6) -> V6:
    """``Ad(T)^-T f``: a wrench carried by T, ``(R tau + p x R n; R n)`` with force n."""
    R = rotation(T)
    n = matvec(R, lin(f))
    return join(add3(matvec(R, ang(f)), cross(position(T), n)), n)


@source
def exp(V: V6) -> P12:
    """Pose after unit time at the constant twist V: ``(exp(w), dexp(w) v)``."""
    w = ang(V)
    return pose(so3_exp(w), dexp_times(w, lin(V)))


@source
def log(T: P12) -> V6:
    """Twist V with ``exp(V) = T``, its rotation at most pi."""
    w = so3_log(rotation(T))
    return join(w, dexp_inv_times(w, position(T)))


@source
def block_times(b: Any, c: Any, b1: Any, c1: Any, w: V3, v: V3, x: V3) -> V3:
    """``Q x``, the lower left block with coefficients b, c and their rates b1, c1, applied to x."""
    wx = cross(w, x)
    vx = cross(v, x)
    wwx = cross(w, wx)
    wvx = cross(w, vx)
    vwx = cross(v, wx)
    d = 2.0 * dot3(w, v)
    k, l = d * b1, d * c1
    return (
        b * vx[0] + c * (wvx[0] + vwx[0]) + k * wx[0] + l * wwx[0],
        b * vx[1] + c * (wvx[1] + vwx[1]) + k * wx[1] + l * wwx[1],
        b * vx[2] + c * (wvx[2] + vwx[2]) + k * wx[2] + l * wwx[2],
    )


@source
def dexp(V: V6, s: V6) -> V6:
    """Left Jacobian applied to a twist: Tdot T^-1 = hat(dexp(V) Vdot) with T = exp(V)."""
    w, v, x = ang(V), lin(V), ang(s)
    t = dot3(w, w)
    b, c = dexp_coefficients(t)
    b1, c1 = dexp_coefficients_rate(t, b, c)
    y = jacobian_times(b, c, w, lin(s))
    return join(jacobian_times(b, c, w, x), add3(block_times(b, c, b1, c1, w, v, x), y))


@source
def dexp_inv(V: V6, s: V6) -> V6:
    """Inverse of the left Jacobian applied to a twist: Vdot from Tdot T^-1. The dlog of Lee et al. 2016."""
    w, v, x = ang(V), lin(V), ang(s)
    e, e1 = dexp_inv_coefficients(dot3(w, w))
    y = jacobian_times(-0.5, e, w, lin(s))
    return join(jacobian_times(-0.5, e, w, x), add3(block_times(-0.5, e, 0.0, e1, w, v, x), y))


@source
def dexp_right(V: V6, s: V6) -> V6:
    """Right Jacobian applied to a twist, ``dexp(-V) s``: T^-1 Tdot = hat(dexp_right(V) Vdot)."""
    return dexp((-V[0], -V[1], -V[2], -V[3], -V[4], -V[5]), s)


@source
def dexp_right_inv(V: V6, s: V6) -> V6:
    """Inverse of the right Jacobian applied to a twist, ``dexp_inv(-V) s``: Vdot from T^-1 Tdot."""
    return dexp_inv((-V[0], -V[1], -V[2], -V[3], -V[4], -V[5]), s)


@source
def swap(f: V6) -> V6:
    """Exchange the two halves: (torque; force) to (force; torque)."""
    return (f[3], f[4], f[5], f[0], f[1], f[2])


@source
def dexp_dual(V: V6, f: V6) -> V6:
    """``dexp(V)^T f``, a wrench: f . dexp(V) s = (dexp(V)^T f) . s."""
    return swap(dexp_right(V, swap(f)))


@source
def dexp_inv_dual(V: V6, f: V6) -> V6:
    """``dexp(V)^-T f``, a wrench."""
    return swap(dexp_right_inv(V, swap(f)))


@source
def dexp_right_dual(V: V6, f: V6) -> V6:
    """``dexp_right(V)^T f``, a wrench."""
    return swap(dexp(V, swap(f)))


@source
def dexp_right_inv_dual(V: V6, f: V6) -> V6:
    """``dexp_right(V)^-T f``, a wrench."""
    return swap(dexp_inv(V, swap(f)))
