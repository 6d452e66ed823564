"""Many environments of one model: ``simulate_many``."""
