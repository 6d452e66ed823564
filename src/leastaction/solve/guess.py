"""First iterates of a step from the steps before."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel


@kernel
def extrapolation(h, lengths, known):
    """Coefficients by which the last displacements give the next: mean rates of up to three steps, extrapolated."""
    # middles of the last steps; this one's is h / 2
    m1 = -0.5 * lengths[0]
    m2 = -lengths[0] - 0.5 * lengths[1]
    m3 = -lengths[0] - lengths[1] - 0.5 * lengths[2]
    x, r1, r2, r3 = 0.5 * h, h / lengths[0], h / lengths[1], h / lengths[2]
    if known < 2:
        return r1, 0.0, 0.0
    if known == 2:
        return r1 * (x - m2) / (m1 - m2), r2 * (x - m1) / (m2 - m1), 0.0
    return (
        r1 * (x - m2) * (x - m3) / ((m1 - m2) * (m1 - m3)),
        r2 * (x - m1) * (x - m3) / ((m2 - m1) * (m2 - m3)),
        r3 * (x - m1) * (x - m2) / ((m3 - m1) * (m3 - m2)),
    )
