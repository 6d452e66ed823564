"""Derivatives of steps and of whole runs."""
