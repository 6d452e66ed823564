"""Mathematics of rotations, rigid motions and inertia, on NumPy arrays of any batch shape.

The formulas are written once, in ``_source``, on tuples of scalars; these modules call them on arrays and the
compiled kernels call the same text.
"""

from leastaction.spatial import inertia, quaternion, se3, so3

__all__ = ["inertia", "quaternion", "se3", "so3"]
