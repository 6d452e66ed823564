"""The user's coordinates and the rows' coordinates: the only file that knows both.

q, v, a, tau are the user's: joints in build order; a free joint has q = (position, quaternion) of its child frame
and v = (angular; linear) of that frame in its own axes. x, u, udot, f are the rows': the same numbers in row order,
but a free joint is three translations of the *centre of mass* along parent axes and then a ball. With R the
rotation of the ball, c the centre of mass in the child frame and w the angular velocity in child axes:

    x = p + R c            u = T v:       xdot = R (v + w x c),  w = w
    udot = T a + Tdot v:   xddot = R (a + w x v + wdot x c + w x (w x c)),  wdot = wdot
    tau = T^T f:           torque + c x (R^T force);  R^T force

A method may ask for the other order, first the ball and then three translations along child axes (``Turned``). With
b = R^T p, the position in child axes:

    x = b + c              u:     bdot = v - w x b,  w = w
    udot:                  bddot = a - wdot x b - w x bdot,  wdot = wdot
    tau:                   torque - b x force;  force
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld1, number, st1
from leastaction.spatial._source.vector import add3, cross, matvec, sub3, tmatvec
from leastaction.tree.kinematics import turn_by_quaternion


@kernel
def get3(a, k):
    """Three entries of a vector."""
    return (ld1(a, k), ld1(a, k + 1), ld1(a, k + 2))


@kernel
def put3(a, k, v):
    """Store three entries of a vector."""
    st1(a, k, v[0])
    st1(a, k + 1, v[1])
    st1(a, k + 2, v[2])


@kernel
def quat_at(x, k):
    """Quaternion of a ball whose first coordinate is k."""
    return (x[k], x[k + 1], x[k + 2], x[k + 3])


@kernel
def put_quat(x, k, q):
    """Store a quaternion."""
    for e in range(4):
        x[k + e] = q[e]


@kernel
def free_rotation(x, k):
    """Rotation of the ball of a free joint whose first coordinate is k."""
    one, zero = number(x, 1.0), number(x, 0.0)
    identity = (one, zero, zero, zero, one, zero, zero, zero, one)
    return turn_by_quaternion(identity, ld1(x, k + 3), ld1(x, k + 4), ld1(x, k + 5), ld1(x, k + 6))


@kernel
def offset_of(c, j):
    """Centre of mass of free joint j in its child frame."""
    return (c.offset[j, 0], c.offset[j, 1], c.offset[j, 2])


# --- free joints that turn first --------------------------------------------------------------------------------------
@kernel
def ball_rotation(x, k):
    """Rotation of a ball whose first coordinate is k."""
    one, zero = number(x, 1.0), number(x, 0.0)
    identity = (one, zero, zero, zero, one, zero, zero, zero, one)
    return turn_by_quaternion(identity, ld1(x, k), ld1(x, k + 1), ld1(x, k + 2), ld1(x, k + 3))


@kernel
def turned_arm(turned, j, x):
    """b of turned joint j: the origin of its child frame, in child axes."""
    return sub3(get3(x, turned.free[j, 0] + 4), offset_of(turned, j))


@kernel
def rate_of(c, v):
    """Row rate of the user's velocity v."""
    for k in range(c.v.size):
        if c.v[k] == v:
            return k
    return -1


@kernel
def user3(a, order, d):
    """Three of the user's numbers, those of the rates from d on."""
    return (ld1(a, order[d]), ld1(a, order[d + 1]), ld1(a, order[d + 2]))


@kernel
def give3(a, order, d, value):
    """Store three of the user's numbers."""
    for i in range(3):
        st1(a, order[d + i], value[i])


@optional(None)
def turned_positions_in(turned, x):
    """b + c in place of the position."""
    for j in range(turned.free.shape[0]):
        k = turned.free[j, 0]
        put3(x, k + 4, add3(tmatvec(ball_rotation(x, k), get3(x, k + 4)), offset_of(turned, j)))


@optional(None)
def turned_positions_out(turned, c, x, q):
    """The position from b + c."""
    for j in range(turned.free.shape[0]):
        k = turned.free[j, 0]
        give3(q, c.q, k + 4, matvec(ball_rotation(x, k), turned_arm(turned, j, x)))


@optional(None)
def turned_rates_in(turned, x, u):
    """bdot in place of the linear velocity."""
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        put3(u, d + 3, sub3(get3(u, d + 3), cross(get3(u, d), turned_arm(turned, j, x))))


@optional(None)
def turned_rates_out(turned, c, x, u, v):
    """The linear velocity from bdot."""
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        give3(v, c.v, d + 3, add3(get3(u, d + 3), cross(get3(u, d), turned_arm(turned, j, x))))


@kernel
def turned_bias(turned, c, j, x, v):
    """w x bdot."""
    d = turned.free[j, 1]
    w = user3(v, c.v, d)
    return cross(w, sub3(user3(v, c.v, d + 3), cross(w, turned_arm(turned, j, x))))


@optional(None)
def turned_accelerations_in(turned, c, x, v, udot):
    """bddot in place of the linear acceleration."""
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        bias = turned_bias(turned, c, j, x, v)
        turn = cross(get3(udot, d), turned_arm(turned, j, x))
        put3(udot, d + 3, sub3(sub3(get3(udot, d + 3), turn), bias))


@optional(None)
def turned_accelerations_out(turned, c, x, v, udot, a):
    """The linear acceleration from bddot."""
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        bias = turned_bias(turned, c, j, x, v)
        turn = cross(get3(udot, d), turned_arm(turned, j, x))
        give3(a, c.v, d + 3, add3(add3(get3(udot, d + 3), turn), bias))


@optional(None)
def turned_forces_in(turned, x, f):
    """Torque of the ball from that of the user."""
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        put3(f, d, add3(get3(f, d), cross(turned_arm(turned, j, x), get3(f, d + 3))))


@optional(None)
def turned_forces_out(turned, c, x, f, tau):
    """Torque of the user from that of the ball."""
    for j in range(turned.free.shape[0]):
        d = turned.free[j, 1]
        give3(tau, c.v, d, sub3(get3(f, d), cross(turned_arm(turned, j, x), get3(f, d + 3))))


# --- all joints -------------------------------------------------------------------------------------------------------
@sweep
def positions_in(c, q, x):
    """x from q."""
    for k in range(c.q.size):
        st1(x, k, ld1(q, c.q[k]))
    for j in range(c.free.shape[0]):
        k = c.free[j, 0]
        put3(x, k, add3(get3(x, k), matvec(free_rotation(x, k), offset_of(c, j))))
    turned_positions_in(c.turned, x)


@sweep
def positions_out(c, x, q):
    """q from x."""
    for k in range(c.q.size):
        st1(q, c.q[k], ld1(x, k))
    for j in range(c.free.shape[0]):
        k = c.free[j, 0]
        p = sub3(get3(x, k), matvec(free_rotation(x, k), offset_of(c, j)))
        for i in range(3):
            st1(q, c.q[k + i], p[i])
    turned_positions_out(c.turned, c, x, q)


@sweep
def rates_in(c, x, v, u):
    """u = T v."""
    for k in range(c.v.size):
        st1(u, k, ld1(v, c.v[k]))
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        w = get3(u, d + 3)
        put3(u, d, matvec(free_rotation(x, c.free[j, 0]), add3(get3(u, d), cross(w, offset_of(c, j)))))
    turned_rates_in(c.turned, x, u)


@sweep
def rates_out(c, x, u, v):
    """v = T^-1 u."""
    for k in range(c.v.size):
        st1(v, c.v[k], ld1(u, k))
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        w = get3(u, d + 3)
        lin = sub3(tmatvec(free_rotation(x, c.free[j, 0]), get3(u, d)), cross(w, offset_of(c, j)))
        for i in range(3):
            st1(v, c.v[d + i], lin[i])
    turned_rates_out(c.turned, c, x, u, v)


@sweep
def accelerations_in(c, x, v, a, udot):
    """udot = T a + Tdot v."""
    for k in range(c.v.size):
        st1(udot, k, ld1(a, c.v[k]))
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        o = offset_of(c, j)
        lin = (ld1(v, c.v[d]), ld1(v, c.v[d + 1]), ld1(v, c.v[d + 2]))
        w = (ld1(v, c.v[d + 3]), ld1(v, c.v[d + 4]), ld1(v, c.v[d + 5]))
        turning = add3(cross(w, add3(lin, cross(w, o))), cross(get3(udot, d + 3), o))
        put3(udot, d, matvec(free_rotation(x, c.free[j, 0]), add3(get3(udot, d), turning)))
    turned_accelerations_in(c.turned, c, x, v, udot)


@sweep
def accelerations_out(c, x, v, udot, a):
    """a = T^-1 (udot - Tdot v)."""
    for k in range(c.v.size):
        st1(a, c.v[k], ld1(udot, k))
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        o = offset_of(c, j)
        lin = (ld1(v, c.v[d]), ld1(v, c.v[d + 1]), ld1(v, c.v[d + 2]))
        w = (ld1(v, c.v[d + 3]), ld1(v, c.v[d + 4]), ld1(v, c.v[d + 5]))
        turning = add3(cross(w, add3(lin, cross(w, o))), cross(get3(udot, d + 3), o))
        out = sub3(tmatvec(free_rotation(x, c.free[j, 0]), get3(udot, d)), turning)
        for i in range(3):
            st1(a, c.v[d + i], out[i])
    turned_accelerations_out(c.turned, c, x, v, udot, a)


@sweep
def forces_in(c, x, tau, f):
    """f = T^-T tau."""
    for k in range(c.v.size):
        st1(f, k, ld1(tau, c.v[k]))
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        lin = get3(f, d)
        put3(f, d + 3, sub3(get3(f, d + 3), cross(offset_of(c, j), lin)))
        put3(f, d, matvec(free_rotation(x, c.free[j, 0]), lin))
    turned_forces_in(c.turned, x, f)


@sweep
def forces_out(c, x, f, tau):
    """tau = T^T f."""
    for k in range(c.v.size):
        st1(tau, c.v[k], ld1(f, k))
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        lin = tmatvec(free_rotation(x, c.free[j, 0]), get3(f, d))
        turn = add3(get3(f, d + 3), cross(offset_of(c, j), lin))
        for i in range(3):
            st1(tau, c.v[d + i], lin[i])
            st1(tau, c.v[d + 3 + i], turn[i])
    turned_forces_out(c.turned, c, x, f, tau)


@sweep
def columns_out(c, x, B, out):
    """B T for a matrix B with one column per rate: (m, nu) to the user's (m, nv)."""
    for r in range(B.shape[0]):
        forces_out(c, x, B[r], out[r])
