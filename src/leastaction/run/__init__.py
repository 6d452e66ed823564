"""Runs: the simulation loop, step control, what a run leaves, many environments, the table of methods."""
