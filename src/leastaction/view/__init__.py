"""Runs and models to look at: one-file animations, the live viewer, videos. Reads Model and Trajectory only."""
