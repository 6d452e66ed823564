"""Sweeps over the rows of a tree: kinematics, inverse dynamics, coordinates. ``layout`` needs no Numba."""
