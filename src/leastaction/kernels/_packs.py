"""What a solver in lanes needs of packs besides ``_lanes``: the larger of two, and a product that is never fused."""

from __future__ import annotations

from typing import Any

from numba.extending import intrinsic, overload
from numba.core.typing.templates import signature

from leastaction.kernels._jit import PART_OPTIONS
from leastaction.kernels._lanes import PACK, PackType, _select_above


@overload(max, jit_options=PART_OPTIONS, strict=False)
def _max(a: Any, b: Any) -> Any:
    if isinstance(a, PackType) and isinstance(b, PackType):
        # as for numbers: the first one unless the second is larger
        return lambda a, b: _select_above(b, a, b, a)
    return None


@intrinsic
def times(typingctx: Any, a: Any, b: Any) -> Any:
    """``a b`` of packs, rounded by itself: never part of a fused multiply and add.

    The scalar kernels put such products into a register of four columns, which ends the fusing there; lanes must
    round at the same places to give the same bits.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fmul(*args)

    return signature(PACK, PACK, PACK), code
