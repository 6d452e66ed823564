"""Runs inside JAX: a function with a custom derivative (``jax.custom_vjp``) over the adjoint method.

``pip install 'leastaction[jax]'`` brings JAX. The run itself is computed outside of JAX, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.methods.base import Method
from leastaction.model.model import Model
from leastaction.sensitivity.rollouts import rollout_of


def rollout(model: Model, method: Method | str, dt: float) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """A function (q0, v0, controls) -> (q, v) that JAX can differentiate in reverse mode, also inside ``jit``.

    Args:
        model: the mechanism.
        method: ``BDF``, ``SDIRK2``, or another method with a gradient; or a name.
        dt: step in seconds.

    Returns:
        A function of q0 (nq,), v0 (nv,) and controls (steps, nv) with results q (steps + 1, nq), v (steps + 1, nv).
    """
    try:
        import jax
        import jax.numpy as jnp
    except ImportError as error:
        raise UnsupportedError("leastaction.jax needs JAX; pip install 'leastaction[jax]' brings it.") from error
    runs = rollout_of(model, method, dt)

    def shapes(controls: Any) -> tuple[Any, Any]:
        rows = controls.shape[0] + 1
        kind = controls.dtype
        return jax.ShapeDtypeStruct((rows, model.nq), kind), jax.ShapeDtypeStruct((rows, model.nv), kind)

    def outside(q0: Any, v0: Any, controls: Any) -> tuple[Any, Any]:
        q, v = runs.run(q0, v0, controls)
        return q.astype(controls.dtype), v.astype(controls.dtype)

    def outside_back(q0: Any, v0: Any, controls: Any, by_q: Any, by_v: Any) -> tuple[Any, ...]:
        found = runs.back(q0, v0, controls, np.asarray(by_q, dtype=float), np.asarray(by_v, dtype=float))
        return tuple(part.astype(kind) for part, kind in zip(found, (q0.dtype, v0.dtype, controls.dtype), strict=True))

    def call(q0: Any, v0: Any, controls: Any) -> Any:
        return jax.pure_callback(outside, shapes(controls), q0, v0, controls)

    def forth(q0: Any, v0: Any, controls: Any) -> tuple[Any, Any]:
        return call(q0, v0, controls), (q0, v0, controls)

    def back(kept: Any, by: Any) -> Any:
        like = tuple(jax.ShapeDtypeStruct(part.shape, part.dtype) for part in kept)
        return jax.pure_callback(outside_back, like, *kept, *by)

    differentiable = jax.custom_vjp(call)
    differentiable.defvjp(forth, back)

    def rolled(q0: Any, v0: Any, controls: Any) -> tuple[Any, Any]:
        q, v = differentiable(jnp.asarray(q0), jnp.asarray(v0), jnp.asarray(controls))
        return q, v

    return rolled
