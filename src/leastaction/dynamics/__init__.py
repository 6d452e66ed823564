"""Kinematics and dynamics of a whole model: what users call, and the compiled code behind it."""
