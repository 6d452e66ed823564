"""The variational integrator in maximal coordinates, with contact."""
