"""Speed, measured: ``leastaction bench``, one module for each group."""
