"""Velocity-level Euler in maximal coordinates."""
