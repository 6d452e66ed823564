"""The heavy top: it precesses and nods, and keeps its energy and two of its momenta."""

import numpy as np

import leastaction as la

model = la.models.spinning_top().build()

# tilted by 30 degrees, spinning about its own axis
tilt = np.radians(30.0)
start = model.state(q={"tip": (np.cos(tilt / 2), np.sin(tilt / 2), 0, 0)}, v={"tip": (0, 0, 150.0)})
run = la.simulate(model, start, dt=0.001, duration=4.0, method=la.Galerkin(4))

# the angular momentum about the vertical, and about the top's own axis
axis = run.poses("top")[:, :3, 2]
about_vertical = run.momentum.angular[:, 2]
about_axis = np.einsum("ij,ij->i", run.momentum.angular, axis)
for name, values in {
    "energy": run.energy.total,
    "momentum about the vertical": about_vertical,
    "momentum about its axis": about_axis,
}.items():
    print(f"{name} {values[0]:.6g}, largest change {np.abs(values - values[0]).max():.1e}")
assert np.abs(about_vertical - about_vertical[0]).max() < 1e-8 * abs(about_vertical[0])

# it nods between two angles and walks round
nod = np.degrees(np.arccos(axis[:, 2]))
turns = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
print(f"it nods between {nod.min():.1f} and {nod.max():.1f} degrees")
print(f"it walks round by {np.ptp(turns):.3g} rad in {run.t[-1]:g} s")

run.to_html("spinning_top.html", traces={"top": (0.0, 0.0, 1.2)})
print("wrote spinning_top.html")
