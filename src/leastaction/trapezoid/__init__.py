"""The Lie trapezoid, a variational integrator."""
