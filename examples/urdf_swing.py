"""A robot from a URDF file swings without motors, and an animation of it is written."""

from pathlib import Path

import numpy as np

import leastaction as la

m = la.load(Path(__file__).parent / "arm.urdf")
model = m.build()
print(model)
print("notes of the loader:", m.notes or "none")

# let go with the upper arm level
start = model.state(q={"shoulder": np.pi / 2})
run = la.simulate(model, start, dt=0.005, duration=5.0, method=la.Galerkin(4))
print(run.report)

# nothing takes energy away, so it stays
error = np.abs(run.energy.total - run.energy.total[0]).max()
print(f"the energy changed by at most {error:.1e} J of {run.energy.kinetic.max():.2f} J of motion")
assert error < 1e-3

run.to_html("urdf_swing.html", traces={"lower": (0.0, 0.0, -0.3)})
print("wrote urdf_swing.html")
