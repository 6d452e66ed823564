"""How things compile: decorators, compiler, cache, lanes, calls of the user. ``callbacks`` needs no Numba."""
