"""Hermite-Simpson collocation."""
