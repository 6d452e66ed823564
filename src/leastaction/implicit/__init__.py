"""Implicit methods on the reduced equations of motion: BDF, SDIRK2, linearly implicit Euler."""
