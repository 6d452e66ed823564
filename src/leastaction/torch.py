"""Runs inside PyTorch: an ``autograd.Function`` over the adjoint method.

``pip install 'leastaction[torch]'`` brings PyTorch. The run itself is computed outside of it, on the processor and in
double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leastaction.errors import UnsupportedError
from leastaction.methods.base import Method
from leastaction.model.model import Model
from leastaction.sensitivity.rollouts import rollout_of


def rollout(model: Model, method: Method | str, dt: float) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """A function (q0, v0, controls) -> (q, v) of tensors that PyTorch can differentiate.

    Args:
        model: the mechanism.
        method: ``BDF``, ``SDIRK2``, or another method with a gradient; or a name.
        dt: step in seconds.

    Returns:
        A function of q0 (nq,), v0 (nv,) and controls (steps, nv) with results q (steps + 1, nq), v (steps + 1, nv).
    """
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError("leastaction.torch needs PyTorch: pip install 'leastaction[torch]'.") from error
    runs = rollout_of(model, method, dt)

    def array(tensor: Any) -> Any:
        return tensor.detach().cpu().double().numpy()

    class Run(torch.autograd.Function):  # type: ignore[misc]
        """The run and its adjoint."""

        @staticmethod
        def forward(context: Any, q0: Any, v0: Any, controls: Any) -> tuple[Any, Any]:
            context.save_for_backward(q0, v0, controls)
            q, v = runs.run(array(q0), array(v0), array(controls))
            return torch.from_numpy(q).to(controls), torch.from_numpy(v).to(controls)

        @staticmethod
        def backward(context: Any, by_q: Any, by_v: Any) -> tuple[Any, Any, Any]:
            given = context.saved_tensors
            found = runs.back(*(array(each) for each in (*given, by_q, by_v)))
            first, second, third = (torch.from_numpy(part).to(like) for part, like in zip(found, given, strict=True))
            return first, second, third

    def rolled(q0: Any, v0: Any, controls: Any) -> tuple[Any, Any]:
        q, v = Run.apply(q0, v0, controls)
        return q, v

    return rolled
