"""Comparator: the discrete Euler-Lagrange equations of a chain of revolute links by automatic differentiation (JAX).

The action of one Simpson step is written down as it stands, sweeping outward over the links; residual, Newton direction
and linearisation come from JAX alone. Fan et al. 2018 compare with automatic differentiation in Fig. 2 and do not say
in which mode; both are here. JAX is an optional extra.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError, UnsupportedError
from leastaction.tree.layout import COM, INERTIA, KIND, MASS, PARENT, REVOLUTE

if TYPE_CHECKING:
    from leastaction.model.checks import FloatArray
    from leastaction.model.model import Model

MODES = ("forward", "reverse")


def load_jax() -> Any:
    """The module jax in double precision, or ModelError that says how to install it."""
    try:
        import jax
    except ImportError as error:
        raise ModelError("this comparison needs JAX: pip install 'leastaction[peers]'.") from error
    jax.config.update("jax_enable_x64", True)
    return jax


def chain_data(model: Model) -> dict[str, FloatArray]:
    """Constants of a serial chain of revolute joints: poses before the motion, masses, centres, second moments."""
    tree = model.system.tree
    n = tree.rows.shape[0]
    if (tree.rows[1:, KIND] != REVOLUTE).any() or (tree.rows[1:, PARENT] != np.arange(n - 1)).any():
        raise UnsupportedError(f"'{model.name}' is not a serial chain of revolute joints.")
    C = np.asarray(tree.const)[1:]
    second = C[:, [INERTIA, INERTIA + 1, INERTIA + 2, INERTIA + 1, INERTIA + 3, INERTIA + 4, INERTIA + 2, INERTIA + 4]]
    return {
        "R": C[:, :9].reshape(-1, 3, 3),
        "p": C[:, 9:12],
        "mass": C[:, MASS],
        "com": C[:, COM : COM + 3],
        "inertia": np.concatenate([second, C[:, INERTIA + 5 : INERTIA + 6]], axis=1).reshape(-1, 3, 3),
        "gravity": np.asarray(tree.gravity),
    }


def lagrangian(jax: Any, data: dict[str, FloatArray]) -> Callable[[Any, Any], Any]:
    """L(q, qd) of the chain: one sweep outward in the axes of the links."""
    jnp = jax.numpy
    links = {key: jnp.asarray(value) for key, value in data.items() if key != "gravity"}
    g, z = jnp.asarray(data["gravity"]), jnp.array([0.0, 0.0, 1.0])

    def step(carry: Any, link: Any) -> Any:
        R, p, w, v = carry
        q, qd, at = link
        c, s = jnp.cos(q), jnp.sin(q)
        zero, one = jnp.zeros_like(c), jnp.ones_like(c)
        turn = at["R"] @ jnp.array([[c, -s, zero], [s, c, zero], [zero, zero, one]])
        # pose and twist of the link, at its joint and in its axes
        p = p + R @ at["p"]
        v = turn.T @ (v + jnp.cross(w, at["p"]))
        w = turn.T @ w + qd * z
        R = R @ turn
        # kinetic energy about the centre of mass, work of gravity
        speed = v + jnp.cross(w, at["com"])
        kinetic = 0.5 * at["mass"] * (speed @ speed) + 0.5 * w @ at["inertia"] @ w
        return (R, p, w, v), kinetic + at["mass"] * (g @ (p + R @ at["com"]))

    def value(q: Any, qd: Any) -> Any:
        start = (jnp.eye(3), jnp.zeros(3), jnp.zeros(3), jnp.zeros(3))
        return jnp.sum(jax.lax.scan(step, start, (q, qd, links))[1])

    return value


class Simpson:
    """Residual, Newton direction and linearisation of the Simpson variational integrator, jitted.

    Args:
        model: a serial chain of revolute joints under gravity.
        dt: time step, s.
        mode: "forward" or "reverse": how the action is differentiated for the residual. Its derivatives are taken in
            forward mode on top of that.
    """

    def __init__(self, model: Model, dt: float, mode: str = "reverse") -> None:
        if mode not in MODES:
            raise ModelError(f"Simpson: mode must be one of {', '.join(MODES)}, got {mode!r}.")
        jax = load_jax()
        jnp, n = jax.numpy, model.nv
        L = lagrangian(jax, chain_data(model))
        first = jax.grad if mode == "reverse" else jax.jacfwd

        def action(q0: Any, q1: Any, q2: Any) -> Any:
            # Example 2 of the paper
            a = L(q0, (4.0 * q1 - 3.0 * q0 - q2) / dt)
            b = L(q1, (q2 - q0) / dt)
            c = L(q2, (q0 + 3.0 * q2 - 4.0 * q1) / dt)
            return dt / 6.0 * (a + 4.0 * b + c)

        def split(z: Any) -> tuple[Any, Any, Any]:
            return z[:n], z[n : 2 * n], z[2 * n :]

        slopes = first(lambda z: action(*split(z)))

        def residual(q0: Any, p: Any, y: Any) -> Any:
            return slopes(jnp.concatenate([q0, y]))[: 2 * n] + jnp.concatenate([p, jnp.zeros(n)])

        def direction(q0: Any, p: Any, y: Any) -> Any:
            return -jnp.linalg.solve(jax.jacfwd(residual, 2)(q0, p, y), residual(q0, p, y))

        def linearisation(q0: Any, p: Any, y: Any) -> Any:
            # derivative of (q2, p+) by (q0, p) where the residual vanishes
            second = jax.jacfwd(slopes)(jnp.concatenate([q0, y]))
            by_p = jnp.concatenate([jnp.eye(n), jnp.zeros((n, n))])
            moved = -jnp.linalg.solve(second[: 2 * n, n:], jnp.concatenate([second[: 2 * n, :n], by_p], axis=1))
            end = second[2 * n :, n:] @ moved
            momentum = end + jnp.concatenate([second[2 * n :, :n], jnp.zeros((n, n))], axis=1)
            return jnp.concatenate([moved[n:], momentum])

        self._many = {
            name: jax.jit(lambda Q, P, Y, f=function: jax.lax.map(lambda one: f(*one), (Q, P, Y)))
            for name, function in (("evaluation", residual), ("direction", direction), ("linearisation", linearisation))
        }

    def evaluate(self, name: str, q0: FloatArray, p: FloatArray, y: FloatArray) -> FloatArray:
        """``name`` is "evaluation", "direction" or "linearisation"; arguments (starts, n), (starts, n), (starts, 2n).

        The starts go one after the other through one compiled call. y holds the coordinates of the middle and the end.
        """
        return np.asarray(self._many[name](q0, p, y).block_until_ready())
