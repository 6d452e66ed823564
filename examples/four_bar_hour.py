"""The energy and the loop of a four-bar linkage over an hour: python examples/four_bar_hour.py [SECONDS]."""

import sys

import numpy as np

import leastaction as la

duration = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
model = la.models.four_bar().build()
start = la.project(model, model.state(v={"crank_hinge": 8.0}))
run = la.simulate(model, start, dt=0.005, duration=duration, method=la.Galerkin(4), save_every=10, progress=True)

error = np.abs(run.energy.total - run.energy.total[0])
before, after = (part.max() for part in np.array_split(error, 2))
print(f"{duration:g} s, {run.positions('crank_hinge')[-1, 0] / (2 * np.pi):.0f} turns of the crank")
print(f"largest energy error in the first half {before:.1e} J, in the second half {after:.1e} J")
print(f"largest gap of the loop {run.constraint_error.max():.1e}")
print(run.report)
assert after < 3 * before
assert run.constraint_error.max() < 1e-10
