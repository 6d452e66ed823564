"""Compiled sweeps over plain arrays. Only ``layout`` and ``callbacks`` can be imported without Numba."""
