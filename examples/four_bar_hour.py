"""The energy and the loop of a four-bar linkage over an hour: python examples/four_bar_hour.py [SECONDS]."""

import sys

import numpy as np

import leastaction as la

PART = 20.0
duration = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
model = la.models.four_bar().build()
state = la.project(model, model.state(v={"crank_hinge": 8.0}))
first = la.energy(model, state.q, state.v).total

# In parts: after each the hinges count their turns from zero again, as an angle of thousands of radians has fewer
# digits left for the gap of the loop.
t, error, gap = [], [], []
for number in range(round(duration / PART)):
    run = la.simulate(model, state, dt=0.005, duration=PART, method=la.Galerkin(4), save_every=10)
    t.append(run.t)
    error.append(np.abs(run.energy.total - first))
    gap.append(run.constraint_error)
    state = model.state((run.q[-1] + np.pi) % (2 * np.pi) - np.pi, run.v[-1], run.t[-1])
    if number % 20 == 0:
        print(f"{run.t[-1]:5.0f} s  largest energy error so far {np.max(error):.1e} J, gap {np.max(gap):.1e}")

before, after = (part.max() for part in np.array_split(np.concatenate(error), 2))
print(f"largest energy error in the first half {before:.1e} J, in the second half {after:.1e} J")
print(f"largest gap of the loop {np.max(gap):.1e}")
assert after < 3 * before
assert np.max(gap) < 1e-10
