"""Slow, obviously right NumPy of kinematics, dynamics and loops; only tests import it.

It reads the description of a mechanism (bodies, joints, forces) and the model's slices of q and v, never the arrays of
the kernels, so that the two are independent.
"""
