"""Built-in mechanisms. Each function returns a new ``Mechanism``, not yet built, that may be edited.

``REGISTRY`` lists them by name for the command line, and ``by_name("chain:10")`` reads a name with its parameter.
"""

from __future__ import annotations

from leastaction.models.franka_panda import arm
from leastaction.models.ghost_minitaur import minitaur
from leastaction.models.jansen import strandbeest
from leastaction.models.linkages import bricard, four_bar, n_four_bar, slider_crank
from leastaction.models.registry import REGISTRY, by_name
from leastaction.models.simple import (
    cart_pole,
    chain,
    double_pendulum,
    free_body,
    pendulum,
    spherical_pendulum,
    spinning_top,
)
from leastaction.models.strand import add_strand
from leastaction.models.unitree_a1 import quadruped

__all__ = [
    "REGISTRY",
    "add_strand",
    "arm",
    "bricard",
    "by_name",
    "cart_pole",
    "chain",
    "double_pendulum",
    "four_bar",
    "free_body",
    "minitaur",
    "n_four_bar",
    "pendulum",
    "quadruped",
    "slider_crank",
    "spherical_pendulum",
    "spinning_top",
    "strandbeest",
]
