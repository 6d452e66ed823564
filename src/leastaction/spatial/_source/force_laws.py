"""Laws of the forces between points, in world axes, for the Python classes and for the compiled kernels.

Symbols: p point (m), v velocity (m/s), R rotation body to world (nine numbers), k stiffness (N/m), d damping (N s/m),
l0 rest length (m). Index a and b: the two ends.

The length of a spring is l = sqrt(|pb - pa|^2 + e^2) with e one nanometre. So force, energy and all derivatives exist
where the ends coincide (there the force and the damping vanish, whatever the rest length), energy and force belong
together exactly, and for ends more than ten centimetres apart the e^2 is below the last bit.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.scalar import source, sqrt
from leastaction.spatial._source.vector import M9, V3, V6, add3, cross, dot3, join, matvec, scale3, sub3, tmatvec

E2 = 1e-18


@source
def spring_length(pa: V3, pb: V3) -> Any:
    """Smooth distance of the two ends."""
    r = sub3(pb, pa)
    return sqrt(dot3(r, r) + E2)


@source
def point_spring(pa: V3, va: V3, pb: V3, vb: V3, k: Any, d: Any, l0: Any) -> V3:
    """Force on end a, along the line to end b; the force on b is its opposite."""
    r = sub3(pb, pa)
    l = spring_length(pa, pb)
    # (k (l - l0) + d dl/dt) r / l
    rate = dot3(r, sub3(vb, va)) / l
    return scale3((k * (l - l0) + d * rate) / l, r)


@source
def spring_energy(pa: V3, pb: V3, k: Any, l0: Any) -> Any:
    """Potential energy k (l - l0)^2 / 2."""
    stretch = spring_length(pa, pb) - l0
    return 0.5 * k * stretch * stretch


@source
def world_point(R: M9, x: V3, p: V3) -> V3:
    """World position of the point p of a body at (R, x)."""
    return add3(x, matvec(R, p))


@source
def world_velocity(R: M9, twist: V6, p: V3) -> V3:
    """World velocity of the point p of a body with body twist (angular; linear)."""
    return matvec(R, add3((twist[3], twist[4], twist[5]), cross((twist[0], twist[1], twist[2]), p)))


@source
def point_wrench(R: M9, p: V3, f: V3) -> V6:
    """Body wrench about the link origin of the world force f at the point p of the body."""
    g = tmatvec(R, f)
    return join(cross(p, g), g)


@source
def turned_wrench(R: M9, w: V6) -> V6:
    """A wrench at the link origin given in world axes, in body axes."""
    return join(tmatvec(R, (w[0], w[1], w[2])), tmatvec(R, (w[3], w[4], w[5])))
