"""The energy and the loop of a four-bar linkage over an hour: python examples/four_bar_hour.py [SECONDS]."""

import sys

import numpy as np

import leastaction as la

duration = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
model = la.models.four_bar().build()
start = la.project(model, model.state(v={"crank_hinge": 8.0}))

# one row in a second is enough to see a drift; the simulation takes every step
run = la.simulate(model, start, dt=0.01, duration=duration, method=la.Galerkin(4), save_every=100, progress=True)
print(run.report)

error = np.abs(run.energy.total - run.energy.total[0])
first, last = (part.max() for part in np.array_split(error[1:], 2))
print(f"largest energy error in the first half {first:.1e} J, in the second half {last:.1e} J")
print(f"largest gap of the loop {run.constraint_error.max():.1e}")
assert last < 3 * first
assert run.constraint_error.max() < 1e-10

run.plot("four_bar_hour.png", panels=["energy", "constraints"])
print("wrote four_bar_hour.png")
