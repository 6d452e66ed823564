"""The scalable variational integrator of Johnson and Murphey."""
