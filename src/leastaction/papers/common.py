"""What several experiments share: the pendulum of n links, random starts, slopes, axes of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.model.checks import FloatArray

if TYPE_CHECKING:
    from leastaction.model.model import Model


def pendulum(n: int, length: float = 1.0, mass: float = 1.0) -> Model:
    """A planar pendulum of n equal links that hangs along -z: thin uniform rods, hinges along y.

    Fan et al. 2018 do not say which links their pendulums have; these are rods of 1 m and 1 kg.

    Args:
        n: number of links.
        length: of each link, metres.
        mass: of each link, kg.
    """
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    m = Mechanism(f"pendulum of {n} links")
    across = mass * length**2 / 12
    for i in range(1, n + 1):
        # a rod has hardly any inertia about itself
        inertia = (across, across, 1e-4 * across)
        m.add_body(f"link{i}", mass=mass, com=(0.0, 0.0, -length / 2), inertia=inertia)
        parent, frame = ("world", None) if i == 1 else (f"link{i - 1}", pose(xyz=(0.0, 0.0, -length)))
        m.add_joint(f"hinge{i}", "revolute", parent=parent, child=f"link{i}", axis=(0.0, 1.0, 0.0), parent_frame=frame)
    return m.build()


def starts(count: int, n: int, q: float, v: float, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Angles and velocities (count, n), uniform in +-q and +-v."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-q, q, size=(count, n)), rng.uniform(-v, v, size=(count, n))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Exponent of y against x by least squares of the logarithms."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def columns(rows: Sequence[dict[str, Any]], x: str, y: str, **where: Any) -> tuple[FloatArray, FloatArray]:
    """Two columns of the rows that have the given values."""
    chosen = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return np.array([row[x] for row in chosen], dtype=float), np.array([row[y] for row in chosen], dtype=float)


def legend_outside(axes: Any) -> None:
    """The legend to the right of the last panel."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)


def few_ticks(axes: Any, which: str = "xy") -> None:
    """Plain numbers at 1, 2 and 5 on logarithmic axes, which may span less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in which:
        axis, (low, high) = getattr(axes, f"{name}axis"), getattr(axes, f"get_{name}lim")()
        decades = np.log10(high / low)
        # two labels in a decade where there are few of them
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=20))
        if decades < 2.5:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
