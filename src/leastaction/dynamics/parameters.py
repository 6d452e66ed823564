"""Momenta of one state for several mechanisms that differ in constants."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.dynamics.forward import make_work, with_constants
from leastaction.dynamics.legendre import momenta
from leastaction.jit.decorators import entry


@entry
def momenta_of(system, consts, x, u, P):
    """Momenta P (k, nu), balls along parent axes."""
    f = make_work(system, x)
    for k in range(consts.shape[0]):
        momenta(with_constants(system, consts[k]).tree, x, u, f, P[k])
