"""The larger of two packs, lane by lane: ``max`` of the scalar kernels, for lanes."""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from leastaction.jit.decorators import PART_OPTIONS
from leastaction.jit.lanes import PackType
from leastaction.spatial._source.scalar import pick


@overload(max, jit_options=PART_OPTIONS, strict=False)
def _max(a: Any, b: Any) -> Any:
    if isinstance(a, PackType) and isinstance(b, PackType):
        # as for numbers: the first one unless the second is larger
        return lambda a, b: pick(b, a, b, a)
    return None
