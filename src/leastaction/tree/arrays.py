"""Small parts on plain arrays, for every room: copies, numbers that are no state, three entries of a column."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel
from leastaction.jit.lanes import ld

# Coordinates, rates and momenta beyond this are no state, whatever the units: what grows without bound ends here.
HUGE = 1.0e60


@kernel
def all_finite(a):
    """Whether every entry is finite, and no larger than what a run that has not got out of hand can have."""
    good = True
    for k in range(a.size):
        good = good and abs(a[k]) < HUGE
    return good


@kernel
def copy(a, b):
    """b = a."""
    for k in range(a.size):
        b[k] = a[k]


@kernel
def vec3(a, d, c):
    """Three entries of column c from row d on."""
    return (ld(a, d, c), ld(a, d + 1, c), ld(a, d + 2, c))


@kernel
def scalar_product(a, b):
    """Scalar product of two vectors."""
    s = 0.0
    for k in range(a.size):
        s += a[k] * b[k]
    return s
