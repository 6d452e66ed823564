"""Which shapes touch, and where, compiled. ``layout`` needs no Numba."""
