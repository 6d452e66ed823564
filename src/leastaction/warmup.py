"""Compiling ahead of time: small mechanisms go once through everything that has compiled code behind it.

There are two forms of every kernel: one for plain mechanisms, one for those with loops or forces on bodies
(``kernels.layout.System``). ``JOBS`` lists what is run for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from leastaction import derivatives, dynamics, models, observe
from leastaction.methods.registry import METHODS
from leastaction.model.forces import PointForce
from leastaction.model.model import Model
from leastaction.simulate import simulate

Job = Callable[[Model], Any]


def variants() -> dict[str, Model]:
    """A model for each form of the kernels: small, with every kind of row that kernels tell apart."""
    plain = models.spherical_pendulum()
    full = models.four_bar()
    full.add_force(PointForce("rocker", (0.0, 0.0, 0.0), (0.0, 0.0, 0.1)))
    return {"plain": plain.build(), "with loops and forces": full.build()}
