"""Derivatives of a user's function by central differences that are checked: right to many digits, or an error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.model.checks import FloatArray

# Step lengths in radians and metres, tried one after the other.
_STEPS = (1e-4, 1e-5, 1e-6)

# How well two step lengths must agree, as a part of the largest entry.
_AGREE = 1e-5

# What a function is assumed to be rounded by, as a part of its largest value.
_ROUNDING = 1e-13


def checked_differences(
    function: Callable[[FloatArray], FloatArray], n: int, where: str, give: str, scale: float = 0.0
) -> FloatArray:
    """Derivative (..., n) of a function of a displacement (n,) at zero.

    Differences over h and 2 h are extrapolated to h = 0, which leaves an error of fourth order. They must agree with
    each other, and the slopes on both sides must do so as h goes to zero, so that a kink at or beside the point is
    found.

    Args:
        function: displacement (n,) -> array of a fixed shape.
        n: number of displacements.
        where: words that name the function in messages.
        give: what the user can give instead.
        scale: size of the terms that a value is the sum of, where these may cancel.

    Raises:
        UnsupportedError: no step length has differences that agree.
    """
    here = np.asarray(function(np.zeros(n)))
    off = 0.0
    for h in _STEPS:
        out, worst, size = np.zeros((*here.shape, n)), 0.0, max(scale, float(np.abs(here).max(initial=0.0)))
        for j in range(n):
            unit = np.zeros(n)
            unit[j] = h
            ahead, behind, far, back = (np.asarray(function(s * unit)) for s in (1.0, -1.0, 2.0, -2.0))
            near, wide = (ahead - behind) / (2 * h), (far - back) / (4 * h)
            # second differences over h vanish with h, but for a kink
            bend, wide_bend = (ahead - 2 * here + behind) / h, (far - 2 * here + back) / (2 * h)
            out[..., j] = (4 * near - wide) / 3
            worst = max(worst, float(np.abs(near - wide).max()), float(np.abs(2 * bend - wide_bend).max()))
            size = max(size, *(float(np.abs(each).max()) for each in (far, back)))
        off = worst / max(float(np.abs(out).max(initial=0.0)), 1e-300)
        if worst <= _AGREE * float(np.abs(out).max(initial=0.0)) + _ROUNDING * size / h:
            return out
    raise UnsupportedError(
        f"{where}: its derivative is needed, and central differences over two lengths differ by {off:.1e} of its "
        f"largest entry, as at a kink; give {give}."
    )


def moved(poses: FloatArray, delta: FloatArray) -> FloatArray:
    """Poses (k, 4, 4) moved by E exp(xi), xi stacked in delta (6k,)."""
    from leastaction.spatial import se3

    return np.asarray(poses @ se3.exp(delta.reshape(-1, 6)))
