"""Root finders that know a residual and a direction, and nothing about mechanics."""
