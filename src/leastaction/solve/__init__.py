"""Root finders, small dense and graph solvers: they know a residual and a direction, and nothing about mechanics."""
