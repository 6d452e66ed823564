"""Galerkin variational integrators of any even order."""
