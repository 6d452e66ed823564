"""Contacts of an ellipsoid: the nearest face, edge, side, corner or end of the other solid, and one contact with it.

B    half axes of the ellipsoid, as columns in world axes
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.contact.layout import MATRIX, OVAL_GAP, SIZE, TURN
from leastaction.contact.oval_gap import oval_gap
from leastaction.contact.shapes import fill, room, shape_pose
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import matmul


@kernel
def half_axes(contacts, s):
    """Half axes of ellipsoid s, as columns in the frame of its row."""
    T, h = row9(contacts.frames, s, TURN), row3(contacts.frames, s, SIZE)
    return (
        T[0] * h[0], T[1] * h[1], T[2] * h[2], T[3] * h[0], T[4] * h[1], T[5] * h[2], T[6] * h[0], T[7] * h[1],
        T[8] * h[2],
    )  # fmt: skip


@sweep
def write_round(contacts, out, count, feature, s, b, x, r, e):
    """Ellipsoid s against a ball of row b, a corner, or a line along e with a radius."""
    a, _, xa = shape_pose(contacts, s, out[2])
    B = half_axes(contacts, s)
    apart, _, _, _ = oval_gap(matmul(row9(out[2], a, 0), B), xa, x, e, r)
    row = room(out, count, apart)
    if row < 0:
        return count
    fill(out, row, OVAL_GAP, feature, a, xa, 0.0, (0.0, 0.0, 0.0), b, x, r, e, 0.0)
    for c in range(9):
        out[1][row, MATRIX + c] = B[c]
    return max(count, row + 1)


@sweep
def ball_oval(contacts, out, count, feature, b, x, r, s):
    """A ball of row b, or a corner, against ellipsoid s."""
    return write_round(contacts, out, count, feature, s, b, x, r, (0.0, 0.0, 0.0))
